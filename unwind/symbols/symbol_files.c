/* SPDX-License-Identifier: MIT */
#include "unwind/symbols/symbol_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "memory/hash.h"
#include "memory/slow_file.h"
#include "unwind/elf/elf_file.h"
#include "unwind/elf/file_identity.h"
#include "unwind/symbols/symbol_extents.h"

enum {
	FAILURES_MAX = 2, /* one with debug info, one without */
	FILES_MAX = 1024, /* kept; when full, those that no process has mapped any more go */
};

/* The root directory decides which debug files exist. No padding: compared as bytes. */
struct key {
	struct file_identity file;
	uint64_t root_device, root_inode;
};

struct symbol_file_entry {
	struct key key;
	UT_hash_handle hh;
	size_t number; /* the server's for the file */
	size_t users;
	bool is_open;                  /* the server has it */
	uint64_t base;                 /* where it is mapped, as the server knows it */
	bool has_no_rules;             /* a question for rules ended a server */
	unsigned int failures;         /* of questions other than for rules */
	struct symbol_extents extents; /* from earlier answers */
};

struct symbol_files {
	struct errands *errands;      /* may be NULL; not owned */
	struct symbol_server *server; /* NULL if none runs */
	struct symbol_file_entry *entries;
	struct symbol_file_entry *by_number[FILES_MAX];
	uint64_t cpu_ns; /* of servers that have ended */
	symbol_server_meanwhile *meanwhile;
	void *meanwhile_context;
};

struct symbol_files *symbol_files_new(struct errands *errands)
{
	struct symbol_files *files = calloc(1, sizeof(*files));

	if (files)
		files->errands = errands;
	return files;
}

void symbol_files_while_waiting(struct symbol_files *files, symbol_server_meanwhile *meanwhile, void *context)
{
	files->meanwhile = meanwhile;
	files->meanwhile_context = context;
}

uint64_t symbol_files_cpu_ns(const struct symbol_files *files)
{
	return files->cpu_ns + (files->server ? symbol_server_cpu_ns(files->server) : 0);
}

static void end_server(struct symbol_files *files)
{
	files->cpu_ns = symbol_files_cpu_ns(files);
	symbol_server_end(files->server);
	files->server = NULL;
	for (size_t i = 0; i < FILES_MAX; i++)
		if (files->by_number[i])
			files->by_number[i]->is_open = false;
}

static void drop(struct symbol_files *files, struct symbol_file_entry *entry)
{
	HASH_DEL(files->entries, entry);
	files->by_number[entry->number] = NULL;
	symbol_extents_clear(&entry->extents);
	free(entry);
}

void symbol_files_free(struct symbol_files *files)
{
	struct symbol_file_entry *entry, *next;

	if (!files)
		return;
	end_server(files);
	HASH_ITER(hh, files->entries, entry, next) {
		drop(files, entry);
	}
	free(files);
}

/*---- Files ----*/

static bool find_number(const struct symbol_files *files, size_t *ret_number)
{
	for (size_t i = 0; i < FILES_MAX; i++) {
		if (files->by_number[i])
			continue;
		*ret_number = i;
		return true;
	}
	return false;
}

/* The server cannot close a file, so it ends and a new one starts later. */
static void drop_unused(struct symbol_files *files)
{
	struct symbol_file_entry *entry, *next;

	end_server(files);
	HASH_ITER(hh, files->entries, entry, next) {
		if (entry->users == 0)
			drop(files, entry);
	}
}

static struct symbol_file_entry *add(struct symbol_files *files, const struct key *key)
{
	struct symbol_file_entry *entry;
	size_t number;

	if (!find_number(files, &number)) {
		drop_unused(files);
		if (!find_number(files, &number))
			return NULL;
	}
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return NULL;
	entry->key = *key;
	entry->number = number;
	HASH_ADD(hh, files->entries, key, sizeof(entry->key), entry);
	if (!hash_added(&entry->hh)) {
		free(entry);
		return NULL;
	}
	files->by_number[number] = entry;
	return entry;
}

struct symbol_file_entry *symbol_files_get(struct symbol_files *files, const struct symbol_mapping *mapping)
{
	const char *directory = image_root(mapping->image);
	struct symbol_file_entry *entry;
	struct stat root;
	struct key key;

	memset(&key, 0, sizeof(key));
	if (!file_identity_read(mapping->module, mapping->live, &key.file))
		return NULL;
	if (slow_stat(files->errands, *directory ? directory : "/", &root)) {
		key.root_device = root.st_dev;
		key.root_inode = root.st_ino;
	}
	HASH_FIND(hh, files->entries, &key, sizeof(key), entry);
	if (!entry)
		entry = add(files, &key);
	if (entry)
		entry->users++;
	return entry;
}

void symbol_files_release(struct symbol_file_entry *entry)
{
	if (entry)
		entry->users--;
}

/*---- Questions ----*/

static bool open_file(struct symbol_files *files, struct symbol_file_entry *entry,
		      const struct symbol_mapping *mapping)
{
	const struct module *module = mapping->module;
	struct symbol_source source = {
		.base = module->base,
		.end = module->end,
		.root = image_root(mapping->image),
		.path = module->path,
		.plain = entry->failures > 0,
	};

	source.fd = elf_file_descriptor(module, mapping->live, files->errands);
	if (source.fd < 0) {
		entry->failures = FAILURES_MAX;
		return false;
	}
	entry->is_open = symbol_server_open(files->server, entry->number, &source);
	entry->base = module->base;
	slow_close(files->errands, source.fd);
	return entry->is_open;
}

/* Make sure that a server has the file. False on failure. */
static bool prepare(struct symbol_files *files, struct symbol_file_entry *entry,
		    const struct symbol_mapping *mapping)
{
	if (!files->server)
		files->server = symbol_server_start(files->meanwhile, files->meanwhile_context);
	if (files->server)
		symbol_server_while_waiting(files->server, files->meanwhile, files->meanwhile_context);
	return files->server && (entry->is_open || open_file(files, entry, mapping));
}

/* Note a failure, so that the same is not tried again. */
static void note_failure(struct symbol_file_entry *entry, enum symbol_question question)
{
	if (question == SYMBOL_RULES)
		entry->has_no_rules = true;
	else
		entry->failures++;
}

/* Answer from earlier answers; false if they do not suffice. */
static bool recall(const struct symbol_file_entry *entry, enum symbol_question question, uint64_t offset,
		   struct symbol_answer *ret_answer)
{
	const struct known_extent *known = symbol_extents_find(&entry->extents, offset);

	if (!known)
		return false;
	switch (question) {
	case SYMBOL_FUNCTIONS:
		ret_answer->count = known->name ? 1 : 0;
		memset(&ret_answer->symbols[0], 0, sizeof(ret_answer->symbols[0]));
		if (known->name)
			snprintf(ret_answer->symbols[0].name, sizeof(ret_answer->symbols[0].name), "%s",
				 known->name);
		return true;
	case SYMBOL_COVERED: ret_answer->count = 1; return !known->name;
	case SYMBOL_RULES: break;
	}
	return false;
}

static void remember(struct symbol_file_entry *entry, const struct symbol_answer *answer)
{
	const struct symbol_extent extent = { answer->extent.begin - entry->base,
					      answer->extent.end - entry->base };

	/* With debug info, each address may have another line. */
	if (extent.end - extent.begin > 1 && extent.begin < extent.end && answer->count <= 1)
		symbol_extents_add(&entry->extents, extent, answer->count ? answer->symbols[0].name : NULL);
}

bool symbol_files_ask(struct symbol_files *files, struct symbol_file_entry *entry,
		      const struct symbol_mapping *mapping, enum symbol_question question, uint64_t address,
		      struct symbol_answer *ret_answer)
{
	uint64_t offset = address - mapping->module->base;

	if (recall(entry, question, offset, ret_answer))
		return true;
	while (entry->failures < FAILURES_MAX && !(question == SYMBOL_RULES && entry->has_no_rules)) {
		if (prepare(files, entry, mapping) &&
		    symbol_server_ask(files->server, question, entry->number, offset + entry->base,
				      ret_answer)) {
			if (question == SYMBOL_FUNCTIONS)
				remember(entry, ret_answer);
			return true;
		}
		note_failure(entry, question);
		end_server(files);
	}
	return false;
}

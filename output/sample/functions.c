/* SPDX-License-Identifier: MIT */
#include "output/sample/functions.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "memory/hash.h"

/* The key holds all members of the function but its root as bytes; the function's strings point into it. */
struct entry {
	struct function function; /* first: a function pointer is its entry's pointer */
	bool kept;                /* see functions_keep() */
	size_t key_length;
	UT_hash_handle hh;
	char key[];
};

struct functions {
	struct entry *entries;
	size_t size;
};

struct functions *functions_new(void)
{
	return calloc(1, sizeof(struct functions));
}

void functions_free(struct functions *functions)
{
	if (!functions)
		return;
	HASH_FREE_ALL(functions->entries);
	free(functions);
}

/* A string in the key is one byte, 1 or 0 for NULL, then the string with its NUL. */
static size_t string_size(const char *string)
{
	return 1 + (string ? strlen(string) + 1 : 0);
}

static char *put_string(char *at, const char *string, const char **ret_copy)
{
	*at++ = string ? 1 : 0;
	*ret_copy = NULL;
	if (!string)
		return at;
	*ret_copy = memcpy(at, string, strlen(string) + 1);
	return at + strlen(string) + 1;
}

const struct function *functions_intern(struct functions *functions, const struct function *function)
{
	size_t length = sizeof(function->kind) + sizeof(function->firstline) + string_size(function->name) +
			string_size(function->file) + string_size(function->module);
	struct entry *made = calloc(1, sizeof(*made) + length), *known;
	char *at;

	if (!made)
		return NULL;
	at = made->key;
	memcpy(at, &function->kind, sizeof(function->kind));
	at += sizeof(function->kind);
	memcpy(at, &function->firstline, sizeof(function->firstline));
	at += sizeof(function->firstline);
	made->function = *function;
	if (!function->file || function->root >= strlen(function->file))
		made->function.root = 0;
	at = put_string(at, function->name, &made->function.name);
	at = put_string(at, function->file, &made->function.file);
	put_string(at, function->module, &made->function.module);

	HASH_FIND(hh, functions->entries, made->key, length, known);
	if (known) {
		free(made);
		return &known->function;
	}
	made->key_length = length;
	HASH_ADD_KEYPTR(hh, functions->entries, made->key, length, made);
	if (!hash_added(&made->hh)) {
		free(made);
		return NULL;
	}
	functions->size += sizeof(*made) + length;
	return &made->function;
}

const struct function *functions_allocated(struct functions *functions, const char *what)
{
	return functions_intern(functions, &(const struct function){ .kind = FRAME_ALLOCATED, .name = what });
}

/* The functions of lost frames are static and have no entry. */
static bool is_entry(const struct function *function)
{
	for (int reason = 0; reason < LOST_COUNT; reason++)
		if (function == lost_function((enum lost_reason)reason))
			return false;
	return function != NULL;
}

static struct entry *entry_of(const struct function *function)
{
	union {
		const struct function *function;
		struct entry *entry;
	} same = { .function = function };

	return is_entry(function) ? same.entry : NULL;
}

void functions_keep(const struct function *function)
{
	struct entry *entry = entry_of(function);

	if (entry)
		entry->kept = true;
}

bool functions_share_definition(const struct function *a, const struct function *b)
{
	return a == b || (a && b && a->kind == b->kind && a->firstline == b->firstline && a->file &&
			  b->file && strcmp(a->file, b->file) == 0);
}

void functions_set_root(const struct function *function, uint32_t root)
{
	struct entry *entry = entry_of(function);

	if (entry && function->file && root < strlen(function->file))
		entry->function.root = root;
}

void functions_drop_others(struct functions *functions)
{
	struct entry *entry, *next;

	HASH_ITER(hh, functions->entries, entry, next) {
		if (entry->kept) {
			entry->kept = false;
			continue;
		}
		HASH_DEL(functions->entries, entry);
		functions->size -= sizeof(*entry) + entry->key_length;
		free(entry);
	}
}

size_t functions_size(const struct functions *functions)
{
	return functions->size;
}

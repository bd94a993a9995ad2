/* SPDX-License-Identifier: MIT */
#include "src/inspect/known_files.h"

#include <stdlib.h>
#include <string.h>

#include "memory/hash.h"

enum {
	FILES_MAX = 4096,     /* one more, and all are forgotten */
	CODE_MAX = 256 << 10, /* bytes of a VM; a VM has some 20 KB */
};

struct known_file {
	struct file_identity identity;
	UT_hash_handle hh;
	struct known_vm known;
	uint64_t base; /* where it was mapped when noted */
	uint8_t *code; /* of the VM; NULL if there is none */
};

struct known_files {
	struct known_file *files;
	struct symbol_files *symbols;
	struct errands *errands, *memory_errands;
	uint64_t left_ns; /* for both */
};

static void drop(struct known_files *files, struct known_file *file)
{
	HASH_DEL(files->files, file);
	free(file->code);
	free(file);
}

static void drop_all(struct known_files *files)
{
	struct known_file *file, *next;

	HASH_ITER(hh, files->files, file, next) {
		drop(files, file);
	}
}

void known_files_free(struct known_files *files)
{
	if (!files)
		return;
	drop_all(files);
	symbol_files_free(files->symbols);
	errands_free(files->errands);
	errands_free(files->memory_errands);
	free(files);
}

struct known_files *known_files_new(void)
{
	struct known_files *files = calloc(1, sizeof(*files));

	if (!files)
		return NULL;
	files->errands = errands_new();
	files->memory_errands = errands_new();
	files->symbols = files->errands && files->memory_errands ? symbol_files_new(files->errands) : NULL;
	if (!files->symbols) {
		known_files_free(files);
		return NULL;
	}
	files->left_ns = UINT64_MAX;
	errands_allow(files->errands, &files->left_ns);
	errands_allow(files->memory_errands, &files->left_ns);
	return files;
}

struct symbol_files *known_files_symbols(const struct known_files *files)
{
	return files->symbols;
}

struct errands *known_files_errands(const struct known_files *files)
{
	return files->errands;
}

struct errands *known_files_memory_errands(const struct known_files *files)
{
	return files->memory_errands;
}

void known_files_allow_ns(struct known_files *files, uint64_t ns)
{
	files->left_ns = ns;
}

static struct known_file *find(const struct known_files *files, const struct file_identity *identity)
{
	struct known_file *file;

	HASH_FIND(hh, files->files, identity, sizeof(*identity), file);
	return file;
}

/* The VM's code, from which its layout was read; to be freed. NULL if it cannot be read. */
static uint8_t *read_code(struct memory *memory, const struct vm_code *vm)
{
	size_t length = vm->end - vm->begin;
	uint8_t *code = length <= CODE_MAX ? malloc(length) : NULL;

	if (!code)
		return NULL;
	if (memory_read(memory, vm->begin, code, length) == MEMORY_OK)
		return code;
	free(code);
	return NULL;
}

static bool has_code(const struct known_vm *known)
{
	return known->status == RECOGNISE_OK || known->status == RECOGNISE_UNKNOWN_LAYOUT;
}

/* Move the VM to where it is when the file is mapped so much further up. */
static void move(struct vm_code *vm, uint64_t by)
{
	vm->begin += by;
	vm->end += by;
	if (vm->ffi_call) {
		vm->ffi_call += by;
		vm->ffi_call_end += by;
	}
}

bool known_files_find(const struct known_files *files, const struct file_identity *identity,
		      struct memory *memory, uint64_t base, struct known_vm *ret_known)
{
	const struct known_file *file = find(files, identity);
	struct known_vm known;
	uint8_t *code;
	bool same;

	if (!file)
		return false;
	known = file->known;
	if (has_code(&known)) {
		move(&known.vm, base - file->base);
		code = read_code(memory, &known.vm);
		same = code && memcmp(code, file->code, known.vm.end - known.vm.begin) == 0;
		free(code);
		if (!same)
			return false;
	}
	*ret_known = known;
	return true;
}

static struct known_file *add(struct known_files *files, const struct file_identity *identity)
{
	struct known_file *file;

	if (HASH_COUNT(files->files) >= FILES_MAX)
		drop_all(files);
	file = calloc(1, sizeof(*file));
	if (!file)
		return NULL;
	file->identity = *identity;
	HASH_ADD(hh, files->files, identity, sizeof(file->identity), file);
	if (!hash_added(&file->hh)) {
		free(file);
		return NULL;
	}
	return file;
}

/* Is everything known of this very code? Then keep it: another process may know less. */
static bool is_all_known(const struct known_file *file, const struct known_vm *known, const uint8_t *code)
{
	size_t length = known->vm.end - known->vm.begin;

	return code && file->code && file->known.vm.confirmed && !file->known.vm.traces_open &&
	       length == file->known.vm.end - file->known.vm.begin && memcmp(code, file->code, length) == 0;
}

void known_files_note(struct known_files *files, const struct file_identity *identity, struct memory *memory,
		      uint64_t base, const struct known_vm *known)
{
	uint8_t *code = has_code(known) ? read_code(memory, &known->vm) : NULL;
	struct known_file *file;

	if (has_code(known) && !code)
		return;
	file = find(files, identity);
	if (!file)
		file = add(files, identity);
	if (!file) {
		free(code);
		return;
	}
	if (is_all_known(file, known, code)) {
		free(code);
		return;
	}
	free(file->code);
	file->code = code;
	file->base = base;
	file->known = *known;
}

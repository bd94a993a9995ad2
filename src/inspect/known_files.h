/* SPDX-License-Identifier: MIT */
/*
 * known_files: what was found out about files that several processes have mapped.
 *
 * The first process that has a file mapped takes some milliseconds to be
 * recognised and some tens of them until its native code has names; the others
 * of the same program take that over. What is taken over is what the file
 * decides: whether there is a LuaJIT VM in it and how that is laid out, and the
 * names of its functions. The VM's code is compared byte by byte with that of
 * the process at hand before its layout is believed.
 */
#ifndef LJSPY_KNOWN_FILES_H
#define LJSPY_KNOWN_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "luajit-layouts/recognise/recognise.h"
#include "memory/errand.h"
#include "memory/memory.h"
#include "unwind/elf/file_identity.h"
#include "unwind/symbols/symbol_files.h"

enum { VERDICT_MAX = 160 };

struct known_files;

/* What is known of one loading of a file. */
struct known_vm {
	enum recognise_status status;
	struct vm_code vm;	/* if that is RECOGNISE_OK; where its code is, if RECOGNISE_UNKNOWN_LAYOUT */
	bool has_requests;	/* it is lua-nginx-module, see request.h */
	char verdict[VERDICT_MAX];	/* the last thing found out about its layout, in words */
};

/* NULL when memory is short. */
struct known_files *known_files_new(void);
void known_files_free(struct known_files *files);

struct symbol_files *known_files_symbols(const struct known_files *files);

/*
 * By which files are read; and memory that is mapped from files, as most of that is there
 * although its disk does not answer.
 */
struct errands *known_files_errands(const struct known_files *files);
struct errands *known_files_memory_errands(const struct known_files *files);

/*
 * What was noted of this file, for where it is mapped at base. False if that is
 * nothing, or if the code in this memory is another.
 */
bool known_files_find(const struct known_files *files, const struct file_identity *identity,
		      struct memory *memory, uint64_t base, struct known_vm *ret_known);

/* Note it, in place of what was noted before. Too much is forgotten, and found out anew. */
void known_files_note(struct known_files *files, const struct file_identity *identity,
		      struct memory *memory, uint64_t base, const struct known_vm *known);

#endif

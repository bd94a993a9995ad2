/* SPDX-License-Identifier: MIT */
/*
 * known_files: what ljspy found out about files that several processes have mapped.
 *
 * Recognising LuaJIT in the first process that maps a file takes some
 * milliseconds, and naming its native code some tens of them; other processes of
 * the same program take over the result. They take over what the file decides:
 * whether it contains a LuaJIT VM, the VM's layout, and the names of its
 * functions. Before a process takes over a layout, or that it is unknown, ljspy compares
 * the VM's code byte by byte with that of the process.
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

/* What is known of a file that is mapped. */
struct known_vm {
	enum recognise_status status;
	struct vm_code vm; /* with RECOGNISE_OK; with RECOGNISE_UNKNOWN_LAYOUT only where its code is */
	bool has_requests; /* it is lua-nginx-module, see request.h */
	char verdict[VERDICT_MAX]; /* the last thing found out about its layout, in words */
};

/* NULL when memory is short. */
struct known_files *known_files_new(void);
void known_files_free(struct known_files *files);

struct symbol_files *known_files_symbols(const struct known_files *files);

/*
 * The first reads files. The second reads memory that is mapped from files: most
 * of that is present even if its disk does not answer.
 */
struct errands *known_files_errands(const struct known_files *files);
struct errands *known_files_memory_errands(const struct known_files *files);

/* Both together may take so long from now on; UINT64_MAX, as at first: see errands_allow(). */
void known_files_allow_ns(struct known_files *files, uint64_t ns);

/*
 * What was noted of this file, with addresses for where it is mapped, at base.
 * False if nothing was noted, or if the code in this memory differs.
 */
bool known_files_find(const struct known_files *files, const struct file_identity *identity,
		      struct memory *memory, uint64_t base, struct known_vm *ret_known);

/*
 * Note what is known, in place of what was noted before, unless that is complete for
 * the same code. When there are too many files, all are forgotten.
 */
void known_files_note(struct known_files *files, const struct file_identity *identity, struct memory *memory,
		      uint64_t base, const struct known_vm *known);

#endif

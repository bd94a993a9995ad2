/* SPDX-License-Identifier: MIT */
/*
 * symbol_files: the files with the names of native code, each read once.
 *
 * However many processes have a file mapped, one process of ljspy
 * (symbol_server.h) reads it and answers for all of them. If that process fails
 * over a file, another one reads the file without debug info. If that fails,
 * too, the file stays without names. A file whose unwind rules made a server
 * fail is not asked for rules again.
 */
#ifndef LJSPY_SYMBOL_FILES_H
#define LJSPY_SYMBOL_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memory/errand.h"
#include "memory/memory.h"
#include "unwind/elf/image.h"
#include "unwind/symbols/symbol_server.h"

struct symbol_files;
struct symbol_file_entry;

/* Where a process has a file mapped. */
struct symbol_mapping {
	const struct image *image; /* debug files lie in its root directory */
	const struct module *module;
	struct memory *live;
};

/* NULL when memory is short. errands, by which files are opened, must outlive it; it may be NULL. */
struct symbol_files *symbol_files_new(struct errands *errands);
void symbol_files_free(struct symbol_files *files);

/* The file of a module. Release it once. NULL on failure. */
struct symbol_file_entry *symbol_files_get(struct symbol_files *files, const struct symbol_mapping *mapping);
void symbol_files_release(struct symbol_file_entry *entry);

/*
 * Answer a question (symbol_server.h) about an address in the module, which must
 * be the one of symbol_files_get() or another one of the same file. False if
 * there is no answer.
 */
bool symbol_files_ask(struct symbol_files *files, struct symbol_file_entry *entry,
		      const struct symbol_mapping *mapping, enum symbol_question question, uint64_t address,
		      struct symbol_answer *ret_answer);

/* Call meanwhile every few milliseconds while waiting for an answer; if false, do without the answer. */
void symbol_files_while_waiting(struct symbol_files *files, symbol_server_meanwhile *meanwhile,
				void *context);

/* CPU time that servers have taken to read symbols. */
uint64_t symbol_files_cpu_ns(const struct symbol_files *files);

#endif

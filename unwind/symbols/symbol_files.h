/* SPDX-License-Identifier: MIT */
/*
 * symbol_files: the files that native code is named by, each read once.
 *
 * However many processes have a file mapped, one process of ljspy's own reads
 * it (symbol_server.h) and answers for all of them. Where that comes to grief
 * over a file, the file is read once more without debug info, and is left
 * without names if that fails as well; one that cannot tell how its code is
 * unwound is not asked for that again.
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

/* NULL when memory is short. errands, by which files are opened, must outlive it; it may be NULL. */
struct symbol_files *symbol_files_new(struct errands *errands);
void symbol_files_free(struct symbol_files *files);

/*
 * The file of a module, whose debug files lie in the image's root directory;
 * NULL if there can be none. To be released once.
 */
struct symbol_file_entry *symbol_files_get(struct symbol_files *files, const struct image *image,
					   const struct module *module, struct memory *live);
void symbol_files_release(struct symbol_file_entry *entry);

/*
 * Have it answer a question (symbol_server.h) on an address of the module,
 * which must be the one it was got for, or another one of the same file.
 */
bool symbol_files_ask(struct symbol_files *files, struct symbol_file_entry *entry,
		      const struct image *image, const struct module *module, struct memory *live,
		      enum symbol_question question, uint64_t address,
		      struct symbol_answer *ret_answer);

/* Called every few milliseconds while an answer is waited for; false to do without it. */
void symbol_files_while_waiting(struct symbol_files *files, symbol_server_meanwhile *meanwhile,
				void *context);

/* CPU time that it took other processes to read symbols. */
uint64_t symbol_files_cpu_ns(const struct symbol_files *files);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * file_backed: the image of a module's file (file_image.h), where a target has the file's own pages.
 *
 * A program may write to its private copy of code, or map something else in the place of it: packed and
 * protected programs decrypt themselves so. What is there then, only the target's memory tells.
 */
#ifndef LJSPY_FILE_BACKED_H
#define LJSPY_FILE_BACKED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "memory/memory.h"
#include "src/linux/proc/maps.h"

struct file_backed;

/*
 * Reads go to the image. They fail with MEMORY_NOT_CAPTURED where the process maps no such file, has pages
 * that are not the file's, or does not tell (/proc/PID/pagemap). The ELF headers at base in live, the
 * process's memory, must be the image's, and the beginning of the file be mapped there: else the image is
 * that of another file, and this is NULL; so it is when memory is short or the pagemap cannot be opened.
 * image and maps must outlive it.
 */
struct file_backed *file_backed_new(struct memory *image, struct memory *live, const struct maps *maps,
				    pid_t pid, uint64_t base);
void file_backed_free(struct file_backed *backed); /* NULL is allowed */

/*
 * Is all executable memory from the file's begin to its end the file's own, page by page? pagemap is the
 * process's, as from resident_open(). False also if the process does not tell.
 */
bool file_backed_is_all_code(const struct maps *maps, int pagemap, const struct mapped_file *file);

/* The memory to read from; owned by it. */
struct memory *file_backed_memory(struct file_backed *backed);

#endif

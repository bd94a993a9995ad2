/* SPDX-License-Identifier: MIT */
/*
 * file_image: a module's file, read as if it were the memory that the file is mapped to.
 *
 * To read a page of a target's that is not in its memory brings it there: a search through all of a large
 * program's code makes the program's resident set larger by all of it. What a module's file decides is read
 * from the file.
 *
 * Addresses are those in the target. What is written to while the program runs is as it was before.
 */
#ifndef LJSPY_FILE_IMAGE_H
#define LJSPY_FILE_IMAGE_H

#include <stdint.h>

#include "memory/errand.h"
#include "memory/memory.h"

struct file_image;

/*
 * The file at the path, whose first byte is mapped at base in a target. Reads that would have to wait for a
 * disk are errands; errands may be NULL, and must outlive the image. NULL if it cannot be opened, is no
 * 64-bit ELF file, or memory is short.
 */
struct file_image *file_image_open(struct errands *errands, const char *path, uint64_t base);
void file_image_close(struct file_image *image);

/* The memory to read from; owned by the image. */
struct memory *file_image_memory(struct file_image *image);

#endif

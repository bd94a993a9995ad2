/* SPDX-License-Identifier: MIT */
/*
 * elf_file: the ELF file of a module that is mapped in a target.
 *
 * A file is opened by its path only if it is the one that is mapped: its
 * headers and notes, the build id among them, equal those in memory. Where it
 * is not, or is gone, the image is put together from what is mapped, which
 * holds .dynsym but not .symtab.
 */
#ifndef LJSPY_ELF_FILE_H
#define LJSPY_ELF_FILE_H

#include <stdint.h>

#include <libelf.h>

#include "memory/errand.h"
#include "memory/memory.h"
#include "unwind/elf/image.h"

struct elf_file {
	Elf *elf;
	int fd;
};

/*
 * A descriptor to read the module's file by, or a file of what is mapped of
 * it; -1 if neither can be had. errands may be NULL; to be closed by slow_close().
 */
int elf_file_descriptor(const struct module *module, struct memory *live, struct errands *errands);

/* Open any ELF file for reading; never mapped, so that cutting it short does no harm. */
bool elf_file_open_path(const char *path, struct elf_file *ret_file);

void elf_file_close(struct elf_file *file);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * elf_file: the ELF file of a module that is mapped in a target.
 *
 * The file at the module's path serves only if it is the mapped one: its
 * headers and notes, the build id among them, equal those in memory. If it is
 * another or gone, an image made from the mapped segments takes its place. Such
 * an image has .dynsym but not .symtab.
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
 * A descriptor of the module's file, or of an image of its mapped segments; -1
 * if neither is available. errands may be NULL. The caller closes it by slow_close().
 */
int elf_file_descriptor(const struct module *module, struct memory *live, struct errands *errands);

/* Open any ELF file for reading. It is never mapped, so truncating it does no harm. False on failure. */
bool elf_file_open_path(const char *path, struct elf_file *ret_file);

void elf_file_close(struct elf_file *file);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * own_module: where a module of this very process is mapped.
 */
#ifndef LJSPY_OWN_MODULE_H
#define LJSPY_OWN_MODULE_H

#include <link.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/elf/image.h"

enum { OWN_PAGE = 4096 };

/* A module of which all but the extent is to be set. */
static inline struct module own_module(const struct dl_phdr_info *info)
{
	struct module module = { .begin = UINT64_MAX };

	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uint64_t begin = info->dlpi_addr + segment->p_vaddr;

		if (segment->p_type != PT_LOAD)
			continue;
		if (begin < module.begin)
			module.begin = module.base = begin & ~(uint64_t)(OWN_PAGE - 1);
		if (begin + segment->p_memsz > module.end)
			module.end = begin + segment->p_memsz;
	}
	return module;
}

static inline int own_module_take_first(struct dl_phdr_info *info, size_t size, void *context)
{
	(void)size;
	*(struct module *)context = own_module(info);
	return 1;
}

/* The same of the program itself, which is the first module. */
static inline struct module own_program(void)
{
	struct module module = { .begin = 0 };

	dl_iterate_phdr(own_module_take_first, &module);
	return module;
}

#endif

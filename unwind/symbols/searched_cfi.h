/* SPDX-License-Identifier: MIT */
/* searched_cfi: the unwind table that table_search() finds, as libdw reads it. */
#ifndef LJSPY_SEARCHED_CFI_H
#define LJSPY_SEARCHED_CFI_H

#include <elfutils/libdw.h>

struct searched_cfi;

/* Search a file. NULL if it has no such table, or has section headers, which would lead libdw to one. */
struct searched_cfi *searched_cfi_new(Elf *elf);
void searched_cfi_free(struct searched_cfi *searched);

/* By addresses in the file; owned by searched. */
Dwarf_CFI *searched_cfi_get(const struct searched_cfi *searched);

#endif

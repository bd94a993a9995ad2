/* SPDX-License-Identifier: MIT */
/*
 * string_tables: do the names of an ELF file's symbols come to an end?
 *
 * libdwfl hands out names as pointers into a string table after checking where
 * they begin only. If the last byte of a table is not NUL, its last name goes
 * on into whatever lies behind the table in memory.
 */
#ifndef LJSPY_STRING_TABLES_H
#define LJSPY_STRING_TABLES_H

#include <stdbool.h>

#include <libelf.h>

/* Every string table that section headers or PT_DYNAMIC name ends with NUL, or is empty. */
bool string_tables_end(Elf *elf);

#endif

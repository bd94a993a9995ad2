/* SPDX-License-Identifier: MIT */
/*
 * string_tables: do the string tables of an ELF file end with NUL?
 *
 * libdwfl returns names as pointers into a string table and checks only where
 * they begin. If the last byte of a table is not NUL, its last name runs on
 * into the memory behind the table.
 */
#ifndef LJSPY_STRING_TABLES_H
#define LJSPY_STRING_TABLES_H

#include <stdbool.h>

#include <libelf.h>

/* Does every string table that section headers or PT_DYNAMIC name end with NUL, or is it empty? */
bool string_tables_end(Elf *elf);

#endif

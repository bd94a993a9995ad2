/* SPDX-License-Identifier: MIT */
/*
 * dwarf_layout: a layout as a LuaJIT binary's debug info gives it.
 *
 * For builds that the tables do not know, and to check the tables by. The
 * C frame is defined by macros alone, so it is not in debug info: its fields
 * stay LAYOUT_UNKNOWN.
 */
#ifndef LJSPY_DWARF_LAYOUT_H
#define LJSPY_DWARF_LAYOUT_H

#include "luajit-layouts/layout.h"

enum dwarf_layout_status {
	DWARF_LAYOUT_OK,
	DWARF_LAYOUT_UNREADABLE,	/* no such file, or no ELF file */
	DWARF_LAYOUT_NO_DEBUG_INFO,
	DWARF_LAYOUT_NOT_LUAJIT,	/* debug info, but not of LuaJIT's structures */
};

/*
 * Fields of structures that are described are offsets or LAYOUT_ABSENT; those
 * of structures that are not stay LAYOUT_UNKNOWN.
 */
enum dwarf_layout_status dwarf_layout_read(const char *path, struct layout *ret_layout);

const char *dwarf_layout_status_text(enum dwarf_layout_status status);

#endif

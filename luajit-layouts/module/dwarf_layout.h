/* SPDX-License-Identifier: MIT */
/*
 * dwarf_layout: reads a layout from a LuaJIT binary's debug info.
 *
 * It serves builds that the tables do not know, and checks the tables. Macros
 * alone define the C frame, so debug info lacks it: its fields stay
 * LAYOUT_UNKNOWN.
 */
#ifndef LJSPY_DWARF_LAYOUT_H
#define LJSPY_DWARF_LAYOUT_H

#include "luajit-layouts/layout.h"

enum dwarf_layout_status {
	DWARF_LAYOUT_OK,
	DWARF_LAYOUT_UNREADABLE, /* no such file, or no ELF file */
	DWARF_LAYOUT_NO_DEBUG_INFO,
	DWARF_LAYOUT_OTHER_STATES, /* LuaJIT's, but VM states are numbered in an unknown way */
	DWARF_LAYOUT_NOT_LUAJIT,   /* debug info, but not of LuaJIT's structures */
};

/*
 * Fields of structures that debug info describes become offsets or
 * LAYOUT_ABSENT; those of other structures stay LAYOUT_UNKNOWN. Writes
 * *ret_layout only on DWARF_LAYOUT_OK.
 */
enum dwarf_layout_status dwarf_layout_read(const char *path, struct layout *ret_layout);

const char *dwarf_layout_status_text(enum dwarf_layout_status status);

#endif

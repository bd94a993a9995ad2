/* SPDX-License-Identifier: MIT */
/*
 * layout_text: a layout as a text file, for builds that ljspy does not know.
 *
 * One "key = value" a line; "#" starts a comment. Keys are LuaJIT's own
 * names: L.glref, GCproto.k, g.cur_L, J.trace, ... with offsets in bytes,
 * "absent" where the build has no such field, "unknown" where the offset is
 * not known. Other keys: name, gc64 (yes, no), has_jit (yes, no), bytecode
 * (2.0, 2.1, 2.1-bitops).
 */
#ifndef LJSPY_LAYOUT_TEXT_H
#define LJSPY_LAYOUT_TEXT_H

#include <stdio.h>

#include "luajit-layouts/layout.h"

enum { LAYOUT_OFFSET_MAX = 1 << 20 };

/* Write a line for each field that both know but that differs: "PREFIXg.vmstate is 4 there, 8 here". */
void layout_text_compare(const struct layout *here, const struct layout *there, const char *prefix,
			 FILE *file);

void layout_text_write(const struct layout *layout, FILE *file);

/*
 * Read a layout that layout_text_write() or a person wrote. Fields not
 * mentioned are LAYOUT_UNKNOWN. Returns 0 and writes *ret_layout, or returns
 * the number of the first bad line and the reason in *ret_reason, a constant.
 */
unsigned layout_text_read(FILE *file, struct layout *ret_layout, const char **ret_reason);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * frame_label: the text of a frame.
 *
 *                        function view             line view
 *   Lua function         heavy test.lua:5          heavy test.lua:8
 *   unnamed function     function <test.lua:5>     function <test.lua:5> test.lua:8
 *   main chunk           main chunk test.lua       main chunk test.lua:31
 *   builtin              string.gsub [builtin]     same
 *   C function, native   sqrt [libm.so.6]          sqrt s_sqrt.c:31 where known
 *   VM handler           lj_BC_ADDVV [vm]          same
 *   trace                trace#2 test.lua:8 [jit]  same
 *   unknown              [lost: reason]            same
 *
 * The line view shows an unknown line as "?". Labels hold the target's names
 * unescaped; the caller escapes them (output/labels/escape.h) before writing.
 */
#ifndef LJSPY_FRAME_LABEL_H
#define LJSPY_FRAME_LABEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "output/sample/frame.h"

/* Every label fits: long names keep their beginning, long paths their end. */
enum { FRAME_LABEL_SIZE = 1024 };

/* Write the label of a frame to ret_text. Returns its length without the NUL. */
size_t frame_label(const struct function *function, uint32_t line, bool by_line,
		   char ret_text[static FRAME_LABEL_SIZE]);

/*
 * The same, and the length of the name at the beginning of the label. After
 * it comes nothing, or a space and where the function is.
 */
size_t frame_label_parts(const struct function *function, uint32_t line, bool by_line,
			 char ret_text[static FRAME_LABEL_SIZE], size_t *ret_name_length);

/*
 * A chunk name as LuaJIT shows it, without the "=" or "@" that marks its kind
 * (lj_debug.c, lj_debug_shortname). The result points into file.
 */
const char *frame_label_file(const char *file);

#endif

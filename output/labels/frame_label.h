/* SPDX-License-Identifier: MIT */
/*
 * frame_label: how a frame reads.
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
 * A line that is not known reads "?" in the line view. Labels hold names of
 * the target as they are and must be escaped (output/labels/escape.h) by whoever
 * writes them.
 */
#ifndef LJSPY_FRAME_LABEL_H
#define LJSPY_FRAME_LABEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "output/sample/frame.h"

/* Every label fits; long names keep their beginning, long paths their end. */
enum { FRAME_LABEL_SIZE = 1024 };

/* The length of the label without its final NUL. */
size_t frame_label(const struct function *function, uint32_t line, bool by_line,
		   char ret_text[static FRAME_LABEL_SIZE]);

/*
 * The same, and how much of the label is the name: what follows, after a
 * space, says where the function is. There may be nothing.
 */
size_t frame_label_parts(const struct function *function, uint32_t line, bool by_line,
			 char ret_text[static FRAME_LABEL_SIZE], size_t *ret_name_length);

/*
 * A chunk name as LuaJIT shows it: without the "=" or "@" that says what
 * kind of name it is (lj_debug.c, lj_debug_shortname). Points into file.
 */
const char *frame_label_file(const char *file);

#endif

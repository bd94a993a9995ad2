/* SPDX-License-Identifier: MIT */
/*
 * pprof_name: names for readers that shorten them at slashes and dots, as pprof's pages do.
 *
 * In little room they show what is behind the last of them. So what tells functions apart
 * at a glance comes last, as in names of Go:
 *
 *   handler /usr/share/lua/5.1/kong/plugins/acl/handler.lua:12   kong/plugins/acl/handler.handler:12
 *   function <test.lua:5>                                        test.function:5
 *   main chunk test.lua                                          test.main chunk
 *   string.gsub [builtin]                                        string.gsub
 *   sqrt [libm.so.6]                                             sqrt [libm]
 *   trace#2 test.lua:8 [jit]                                     test.trace#2:8
 *   [vm: growing a table], [lost: reason]                        same
 */
#ifndef LJSPY_PPROF_NAME_H
#define LJSPY_PPROF_NAME_H

#include "output/labels/frame_text.h"

/* Write the name of a function, escaped as ESCAPE_PLAIN, to ret_text, and return ret_text. */
const char *pprof_name(const struct function *function, char ret_text[static FRAME_TEXT_SIZE]);

#endif

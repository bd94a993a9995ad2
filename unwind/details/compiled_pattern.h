/* SPDX-License-Identifier: MIT */
/*
 * compiled_pattern: which regular expression compiled code passes to lua-nginx-module.
 *
 * A trace keeps its values in registers, but its IR says where they come from. ngx.re.match() and
 * ngx.re.find() of lua-resty-core take a compiled expression from a cache of lua-resty-lrucache
 * (self.hasht), by the pattern, a zero byte and the options. If these were the same whenever
 * the trace was recorded, the key is a constant of the trace, with a guard on it:
 *
 *	CALLXS f CARG(.. CARG(FLOAD(HLOAD(HREFK(FLOAD(HLOAD(HREFK(.. "hasht"))) "^a+$\0jo"))) ..))
 *
 * Facts: lua-resty-core 0.1.1 to 0.1.30, regex.lua (re_match_compile, re_match_helper); lj_ir.h,
 * lj_crecord.c (crec_call).
 */
#ifndef LJSPY_COMPILED_PATTERN_H
#define LJSPY_COMPILED_PATTERN_H

#include <stdbool.h>
#include <stdint.h>

#include "memory/memory.h"
#include "unwind/stack/merged_stack.h"

/*
 * The address and length of the pattern, in memory, that the compiled frame's call in progress of
 * ngx_http_lua_ffi_exec_regex() has as its subject. False if the trace does not tell.
 */
bool compiled_pattern_find(struct memory *memory, const struct merged_frame *frame, uint64_t *ret_address,
			   uint32_t *ret_length);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * What a trace's machine code was assembled from, as LuaJIT itself knows it.
 *
 * Included into LuaJIT's own sources by instrument.sh: while recording, each
 * IR instruction is marked with the bytecode that is being recorded and with
 * the calls that lead to it; while assembling, each IR instruction's machine
 * code is noted. The tail, which stores what the stack lacks, belongs to the
 * bytecode that the trace leads to. A finished trace is appended to the file named by
 * LUAJIT_TRUTH:
 *
 *	T number address size spadjust
 *	C offset ref frame...
 *
 * where frame is FIRSTLINE:LINE of a Lua function, innermost first, up to the
 * trace's start frame, and code at the offset, up to the next C's, belongs to
 * those. "-" stands for code that belongs to no instruction.
 */
#ifndef LJ_TRUTH_H
#define LJ_TRUTH_H

LJ_FUNC void lj_truth_recorded(struct jit_State *J, uint32_t ref);
LJ_FUNC void lj_truth_recording(struct jit_State *J);
LJ_FUNC void lj_truth_copying(uint32_t ref);
LJ_FUNC void lj_truth_assembled(uint32_t ref, const uint8_t *code);
LJ_FUNC void lj_truth_tail(const uint8_t *code);
LJ_FUNC void lj_truth_saved(struct jit_State *J, struct GCtrace *T);

#endif

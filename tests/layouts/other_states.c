/* SPDX-License-Identifier: MIT */
/*
 * Debug info that looks like LuaJIT's: two opcodes are numbered as by LuaJIT 2.1 (lj_bc.h), and STATE is the
 * VM state after the interpreter's. LuaJIT has no LJ_VMST_HEAD. RaptorJIT has one, and numbers the states in
 * its own way.
 */
typedef struct GCRef {
	unsigned long gcptr64;
} GCRef;

struct global_State {
	GCRef mainthref;
	int vmstate;
};

enum { BC_JMP = 88, BC_FUNCF = FUNCF };
enum { LJ_VMST_INTERP, STATE };

struct global_State state;
int numbers[] = { BC_JMP, BC_FUNCF, STATE };

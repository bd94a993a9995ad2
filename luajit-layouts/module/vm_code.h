/* SPDX-License-Identifier: MIT */
/*
 * vm_code: what the interpreter's code shows, on any machine.
 *
 * One file per machine reads it: vm_code_x86_64.h, vm_code_arm64.h.
 */
#ifndef LJSPY_VM_CODE_H
#define LJSPY_VM_CODE_H

#include <stdbool.h>
#include <stdint.h>

#include "luajit-layouts/layout.h"

enum {
	VM_CODE_DISPATCHES_MIN = 32, /* a VM has 76 to 88 */
	VM_CODE_MM_METATABLE = 17,   /* MM_metatable (lj_obj.h), the same in all releases */
};

enum vm_code_status {
	VM_CODE_OK,
	VM_CODE_NOT_A_VM,      /* the dispatch sequence does not occur, or is mixed */
	VM_CODE_CONTRADICTION, /* two places of the code disagree; see contradiction */
	VM_CODE_NO_MEMORY,
};

struct vm_code_evidence {
	struct layout offsets;     /* LAYOUT_UNKNOWN where the code does not show it */
	unsigned dispatches;       /* how often the dispatch sequence of the mode occurs */
	int op_jmp, op_funcf;      /* opcode numbers of BC_JMP and BC_FUNCF, or LAYOUT_UNKNOWN */
	bool exit_error_code;      /* vm_exit_interp hands lj_err_trace() an error code */
	uint32_t vmstates;         /* bit n: some instruction sets vmstate to ~n */
	const char *contradiction; /* the field two places disagree about */
};

/* Make all evidence unknown. */
static inline void vm_code_clear(struct vm_code_evidence *evidence)
{
	*evidence = (struct vm_code_evidence){
		.op_jmp = LAYOUT_UNKNOWN,
		.op_funcf = LAYOUT_UNKNOWN,
	};
	layout_clear(&evidence->offsets);
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * vm_finish: finish, on the copy, what the interpreter has half done.
 *
 * While a call, a return or a coroutine switch is under way, LuaJIT's fields
 * and registers disagree for a few dozen instructions. The VM's own code says
 * what they will agree on: vm_finish() runs that code on, on the snapshot, to
 * where all is consistent again: the next dispatch of a bytecode instruction or
 * a way out of the VM. So the stack is as it is just after the call or return,
 * and ljspy need not know any build's code. The same serves the end of a trace,
 * from its last guard to where it jumps, the stubs by which a trace exits, and
 * those by which an FFI callback enters.
 */
#ifndef LJSPY_VM_FINISH_H
#define LJSPY_VM_FINISH_H

#include "unwind/capture/capture.h"
#include "unwind/elf/registers.h"
#include "unwind/lua/lua_objects.h"
#include "unwind/native/vm_decoder.h"

enum vm_finished {
	VM_FINISHD_STAYS,   /* nothing is half done */
	VM_FINISHD_UNKNOWN, /* something is, and where it leads is unknown */
	/* registers of the VM on its way to the next dispatch, or of a trace's start */
	VM_FINISHD_DISPATCHES,
	VM_FINISHD_CALLS,    /* ... of the VM when what it calls returns */
	VM_FINISHD_RETURNED, /* ... of the VM's caller */
};

/*
 * registers: of a leaf, or of what a signal handler interrupted, in vm's code or in
 * code that vm generated. Unless the result is STAYS or UNKNOWN, they become those at
 * the end of the run, and the capture holds what it stored on the way.
 */
enum vm_finished vm_finish(struct capture *capture, const struct vm_code *vm, struct memory *text,
			   struct lua_objects *objects, struct vm_decoder *decoder,
			   struct registers *registers);

#endif

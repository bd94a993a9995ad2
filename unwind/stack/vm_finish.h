/* SPDX-License-Identifier: MIT */
/*
 * vm_finish: finish, on the copy, what the interpreter has half done.
 *
 * While a call, a return or a coroutine switch is under way, LuaJIT's fields
 * and registers disagree with each other, for a few dozen instructions at a
 * time. What they will agree on is written in the VM's own code: it is run on,
 * on the snapshot, to where all is in one piece again, the next dispatch of a
 * bytecode instruction or a way out of the VM. So the stack is shown as it is
 * just after the call or return, and no build's code needs to be known by heart.
 * The same goes for the end of a trace, from its last guard on to where it
 * jumps to, and for the stubs through which a trace is left and an FFI callback
 * entered.
 */
#ifndef LJSPY_VM_FINISH_H
#define LJSPY_VM_FINISH_H

#include "unwind/capture/capture.h"
#include "unwind/elf/registers.h"
#include "unwind/lua/lua_objects.h"
#include "unwind/native/vm_decoder.h"

enum vm_finished {
	VM_FINISHD_STAYS,	/* nothing is half done */
	VM_FINISHD_UNKNOWN,	/* something is, and where it leads cannot be known */
	VM_FINISHD_DISPATCHES,	/* registers are those of the VM, on its way to the next dispatch, or of a trace's start */
	VM_FINISHD_CALLS,	/* ... of the VM when what it calls returns */
	VM_FINISHD_RETURNED,	/* ... of the VM's caller */
};

/*
 * The registers are in vm's code, or in what it has generated, of a leaf or of
 * what a signal handler interrupted. Unless it stays, ret_registers are where it was
 * run on to, and the capture holds what was stored on the way.
 */
enum vm_finished vm_finish(struct capture *capture, const struct registers *registers,
			  struct memory *text, struct lua_objects *objects,
			  struct vm_decoder *decoder, const struct vm_code *vm,
			  struct registers *ret_registers);

#endif

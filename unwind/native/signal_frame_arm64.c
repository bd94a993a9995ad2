/* SPDX-License-Identifier: MIT */
#include "unwind/native/signal_frame.h"

#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <ucontext.h>

/* struct rt_sigframe (arch/arm64/kernel/signal.c) is a siginfo_t and a ucontext_t. */
enum { FRAME_CONTEXT = sizeof(siginfo_t) };

bool signal_frame_is_at(struct memory *text, uint64_t pc)
{
	/* mov x8, #__NR_rt_sigreturn; svc #0: in the vDSO */
	static const uint8_t code[] = { 0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4 };
	uint8_t bytes[sizeof(code)];

	return memory_read(text, pc, bytes, sizeof(bytes)) == MEMORY_OK &&
	       memcmp(bytes, code, sizeof(code)) == 0;
}

/* The vDSO's unwind table does not tell these: it leads to what the handler's frame pointer links to. */
bool signal_frame_interrupted(struct memory *stack, const struct registers *frame,
			      struct registers *ret_interrupted)
{
	struct registers interrupted = *frame;
	mcontext_t context;

	if (memory_read(stack, frame->sp + FRAME_CONTEXT + offsetof(ucontext_t, uc_mcontext), &context,
			offsetof(mcontext_t, __reserved)) != MEMORY_OK)
		return false;
	_Static_assert(sizeof(context.regs) == sizeof(interrupted.x), "x0 to x30");
	memcpy(interrupted.x, context.regs, sizeof(interrupted.x));
	interrupted.sp = context.sp;
	interrupted.pc = context.pc;
	interrupted.flags = context.pstate;
	interrupted.call_number = UINT64_MAX;
	interrupted.unknown = 0;
	*ret_interrupted = interrupted;
	return true;
}

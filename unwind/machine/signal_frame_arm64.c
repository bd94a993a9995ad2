/* SPDX-License-Identifier: MIT */
#include "unwind/machine/signal_frame.h"

#include <string.h>

/*
 * struct rt_sigframe (arch/arm64/kernel/signal.c) is a siginfo_t of 128 bytes and a struct ucontext
 * (asm/ucontext.h), whose uc_mcontext is a struct sigcontext (asm/sigcontext.h), aligned to 16 bytes.
 */
enum { FRAME_CONTEXT = 128 + 176 };

struct signal_context {
	uint64_t fault_address;
	struct kernel_registers registers;
};

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
	struct signal_context context;

	if (memory_read(stack, frame->sp + FRAME_CONTEXT, &context, sizeof(context)) != MEMORY_OK)
		return false;
	memcpy(interrupted.x, context.registers.regs, sizeof(interrupted.x));
	interrupted.sp = context.registers.sp;
	interrupted.pc = context.registers.pc;
	interrupted.flags = context.registers.pstate;
	interrupted.call_number = UINT64_MAX;
	interrupted.unknown = 0;
	*ret_interrupted = interrupted;
	return true;
}

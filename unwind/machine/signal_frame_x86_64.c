/* SPDX-License-Identifier: MIT */
#include "unwind/machine/signal_frame.h"

#include <string.h>

/*
 * In struct ucontext (asm/ucontext.h): the struct sigcontext_64 (asm/sigcontext.h), of which this is the
 * beginning.
 */
enum { FRAME_CONTEXT = 40 };

struct signal_context {
	uint64_t r8, r9, r10, r11, r12, r13, r14, r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip, eflags;
};

bool signal_frame_is_at(struct memory *text, uint64_t pc)
{
	/* mov rax, __NR_rt_sigreturn; syscall */
	static const uint8_t code[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };
	uint8_t bytes[sizeof(code)];

	return memory_read(text, pc, bytes, sizeof(bytes)) == MEMORY_OK &&
	       memcmp(bytes, code, sizeof(code)) == 0;
}

bool signal_frame_interrupted(struct memory *stack, const struct registers *frame,
			      struct registers *ret_interrupted)
{
	struct signal_context saved;

	if (memory_read(stack, frame->sp + FRAME_CONTEXT, &saved, sizeof(saved)) != MEMORY_OK)
		return false;
	*ret_interrupted = (struct registers){
		.rax = saved.rax,
		.rbx = saved.rbx,
		.rcx = saved.rcx,
		.rdx = saved.rdx,
		.rsi = saved.rsi,
		.rdi = saved.rdi,
		.rbp = saved.rbp,
		.sp = saved.rsp,
		.r8 = saved.r8,
		.r9 = saved.r9,
		.r10 = saved.r10,
		.r11 = saved.r11,
		.r12 = saved.r12,
		.r13 = saved.r13,
		.r14 = saved.r14,
		.r15 = saved.r15,
		.pc = saved.rip,
		.flags = saved.eflags,
		.call_number = UINT64_MAX,
		.thread_pointer = frame->thread_pointer,
	};
	return true;
}

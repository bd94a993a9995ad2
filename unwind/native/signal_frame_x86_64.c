/* SPDX-License-Identifier: MIT */
#include "unwind/native/signal_frame.h"

#include <stddef.h>
#include <string.h>
#include <ucontext.h>

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
	gregset_t saved;

	if (memory_read(stack, frame->sp + offsetof(ucontext_t, uc_mcontext.gregs), &saved, sizeof(saved)) !=
	    MEMORY_OK)
		return false;
	*ret_interrupted = (struct registers){
		.rax = (uint64_t)saved[REG_RAX],
		.rbx = (uint64_t)saved[REG_RBX],
		.rcx = (uint64_t)saved[REG_RCX],
		.rdx = (uint64_t)saved[REG_RDX],
		.rsi = (uint64_t)saved[REG_RSI],
		.rdi = (uint64_t)saved[REG_RDI],
		.rbp = (uint64_t)saved[REG_RBP],
		.sp = (uint64_t)saved[REG_RSP],
		.r8 = (uint64_t)saved[REG_R8],
		.r9 = (uint64_t)saved[REG_R9],
		.r10 = (uint64_t)saved[REG_R10],
		.r11 = (uint64_t)saved[REG_R11],
		.r12 = (uint64_t)saved[REG_R12],
		.r13 = (uint64_t)saved[REG_R13],
		.r14 = (uint64_t)saved[REG_R14],
		.r15 = (uint64_t)saved[REG_R15],
		.pc = (uint64_t)saved[REG_RIP],
		.flags = (uint64_t)saved[REG_EFL],
		.call_number = UINT64_MAX,
		.thread_pointer = frame->thread_pointer,
	};
	return true;
}

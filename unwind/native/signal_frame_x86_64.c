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

bool signal_frame_flags(struct memory *stack, uint64_t sp, uint64_t *ret_flags)
{
	return memory_u64(stack, sp + offsetof(ucontext_t, uc_mcontext.gregs[REG_EFL]), ret_flags);
}

/* SPDX-License-Identifier: MIT */
/*
 * Interrupted system calls on arm64.
 *
 * The kernel itself begins again all that return ERESTART*: before the stop it has put back
 * the first argument and the pc (do_signal(), arch/arm64/kernel/signal.c). For those that
 * return EINTR, ljspy does the same: it sets the pc back to the call's instruction, and x0 to
 * the first argument (forgotten_call_arm64.h). If the thread then gets a signal with a
 * handler before it goes on, ljspy takes that back, as the kernel would.
 *
 * A thread that returns from a signal handler into the end of an interrupted call looks the
 * same. Its signal frame lies below its stack pointer. ljspy restarts nothing where it finds
 * such a frame, though it may be of an earlier signal.
 */
#include "src/linux/calls/interrupted_call.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <ucontext.h>

#include "src/linux/proc/proc_file.h"
#include "src/linux/calls/forgotten_call_arm64.h"
#include "src/linux/calls/interrupted_call_parts.h"

enum {
	FRAME_BYTES_MAX = 96 << 10, /* of a signal, with the largest vectors and matrices */
	PIECE_BYTES = 4096,
};

/* What a signal frame keeps of the interrupted thread, from x0 on (struct sigcontext). */
struct kept_registers {
	uint64_t x[X_REGISTERS], sp, pc;
};

static bool is_kept(const uint64_t *at, const struct user_regs_struct *regs)
{
	const struct kept_registers *kept = (const struct kept_registers *)at;

	return kept->sp == regs->sp && kept->pc == regs->pc &&
	       kept->x[REGISTER_X0] == regs->regs[REGISTER_X0];
}

/* Is there a signal frame with these registers below the stack pointer? */
static bool may_come_from_handler(pid_t tid, const struct user_regs_struct *regs)
{
	enum { KEPT = sizeof(struct kept_registers), WORDS = (PIECE_BYTES + KEPT) / sizeof(uint64_t) };
	uint64_t words[WORDS];

	for (uint64_t below = PIECE_BYTES; below <= FRAME_BYTES_MAX && below < regs->sp;
	     below += PIECE_BYTES) {
		struct iovec here = { words, sizeof(words) };
		struct iovec there = { (void *)(uintptr_t)(regs->sp - below),
				       below < sizeof(words) ? below : sizeof(words) };
		ssize_t length = process_vm_readv(tid, &here, 1, &there, 1, 0);

		if (length < KEPT)
			return false;
		for (size_t i = 0; i + KEPT / sizeof(words[0]) <= (size_t)length / sizeof(words[0]); i++)
			if (is_kept(words + i, regs))
				return true;
	}
	return false;
}

bool interrupted_call_find(pid_t tid, const struct user_regs_struct *regs, bool *ret_limited)
{
	struct ended_call call = {
		.number = regs->regs[REGISTER_X8],
		.result = (int64_t)regs->regs[REGISTER_X0],
	};
	bool begins;

	if ((call.result != -EINTR && !interrupted_call_may_be_a_part(call.number, call.result)) ||
	    forgotten_call_number(tid, regs->pc, call.number, &begins) < 0 || begins)
		return false;
	memcpy(call.arguments, regs->regs, sizeof(call.arguments));
	return forgotten_call_argument(tid, call.number, &call.arguments[0]) &&
	       interrupted_call_begins_again(tid, &call, ret_limited) && !may_come_from_handler(tid, regs);
}

/*
 * The call's number has a register set of its own (NT_ARM_SYSTEM_CALL), which a look does without: by the
 * instruction before the pc, or at it if the call begins again.
 */
bool interrupted_call_may_be(pid_t tid, const struct registers *registers)
{
	bool begins;

	return forgotten_call_number(tid, registers->pc, registers->x[REGISTER_X8], &begins) >= 0;
}

/* The kernel no longer tells whether there was a call, but a result like this one has no other cause. */
bool interrupted_call_has_ended(const struct registers *registers)
{
	return registers_call_result(registers) == -EINTR;
}

static bool set_registers(pid_t tid, const struct user_regs_struct *regs)
{
	struct user_regs_struct copy = *regs;
	struct iovec io = { &copy, sizeof(copy) };

	return ptrace(PTRACE_SETREGSET, tid, NT_PRSTATUS, &io) == 0;
}

/* The registers with which the call begins again. */
static bool begin_again(pid_t tid, const struct user_regs_struct *ended, struct user_regs_struct *ret_regs)
{
	uint64_t first;

	if (!forgotten_call_argument(tid, ended->regs[REGISTER_X8], &first))
		return false;
	*ret_regs = *ended;
	ret_regs->regs[REGISTER_X0] = first;
	ret_regs->pc -= CALL_INSTRUCTION_BYTES;
	return true;
}

void interrupted_call_restart(pid_t tid, const struct user_regs_struct *regs, struct restarted_call *ret_call)
{
	struct user_regs_struct begins;

	if (!begin_again(tid, regs, &begins) || !set_registers(tid, &begins))
		return;
	ret_call->is_set = true;
	ret_call->ended = *regs;
}

/* Does the process handle this signal? If that is not known, it may. */
static bool is_caught(pid_t tid, int signal)
{
	uint64_t caught;

	return !proc_file_number(tid, "status", "\nSigCgt:", 16, &caught) || caught >> (signal - 1) & 1;
}

void interrupted_call_deliver(pid_t tid, int signal, struct restarted_call *call)
{
	struct user_regs_struct now, begins;
	struct iovec io = { &now, sizeof(now) };

	if (!call->is_set)
		return;
	call->is_set = false;
	if (ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &io) == 0 && begin_again(tid, &call->ended, &begins) &&
	    memcmp(&now, &begins, sizeof(now)) == 0 && is_caught(tid, signal))
		set_registers(tid, &call->ended);
}

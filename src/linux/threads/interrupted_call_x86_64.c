/* SPDX-License-Identifier: MIT */
/* Interrupted system calls on x86-64. */
#include "src/linux/threads/interrupted_call.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/user.h>

#include "src/linux/proc/target_file.h"
#include "src/linux/proc/call_numbers.h"

/* linux/errno.h in the kernel: "restart if no handler" */
enum { ERESTARTSYS = 512, ERESTARTNOHAND = 514, ERESTART_RESTARTBLOCK = 516 };

enum limit {
	LIMITED, /* or the call would not have returned EINTR */
	UNLIMITED,
	UNLESS_NEGATIVE, /* an int */
	UNLESS_NULL,     /* a pointer to the limit */
};

/*
 * Calls that return EINTR even if no handler has run, and have done nothing: a call
 * that has transferred something returns how much. close() is not among them: it has
 * closed.
 */
static const struct {
	unsigned int number;
	enum limit limit;
	size_t argument; /* offset in user_regs_struct of the argument with the limit */
} calls[] = {
	{ SYS_epoll_wait, UNLESS_NEGATIVE, offsetof(struct user_regs_struct, r10) },
	{ SYS_epoll_pwait, UNLESS_NEGATIVE, offsetof(struct user_regs_struct, r10) },
	{ SYS_epoll_pwait2, UNLESS_NULL, offsetof(struct user_regs_struct, r10) },
	{ SYS_rt_sigtimedwait, UNLESS_NULL, offsetof(struct user_regs_struct, rdx) },
	{ SYS_semtimedop, UNLESS_NULL, offsetof(struct user_regs_struct, r10) },
	{ SYS_semop, UNLIMITED, 0 },
	{ SYS_io_getevents, UNLESS_NULL, offsetof(struct user_regs_struct, r8) },
	{ SYS_io_pgetevents, UNLESS_NULL, offsetof(struct user_regs_struct, r8) },
	/* If it has a limit, that is behind a pointer. */
	{ SYS_io_uring_enter, LIMITED, 0 },
	/* With a limit in memory to which the kernel cannot write the remaining time. */
	{ SYS_select, LIMITED, 0 },
	{ SYS_pselect6, LIMITED, 0 },
	{ SYS_ppoll, LIMITED, 0 },
	/* On a file in memory: it has given back what it had reserved. */
	{ SYS_fallocate, LIMITED, 0 },
	/* On sockets with SO_RCVTIMEO or SO_SNDTIMEO; without these they restart by themselves. */
	{ SYS_read, LIMITED, 0 },
	{ SYS_readv, LIMITED, 0 },
	{ SYS_recvfrom, LIMITED, 0 },
	{ SYS_recvmsg, LIMITED, 0 },
	{ SYS_recvmmsg, LIMITED, 0 },
	{ SYS_write, LIMITED, 0 },
	{ SYS_writev, LIMITED, 0 },
	{ SYS_sendto, LIMITED, 0 },
	{ SYS_sendmsg, LIMITED, 0 },
	{ SYS_sendmmsg, LIMITED, 0 },
	{ SYS_accept, LIMITED, 0 },
	{ SYS_accept4, LIMITED, 0 },
	{ SYS_connect, LIMITED, 0 },
	{ SYS_preadv2, LIMITED, 0 },
	{ SYS_pwritev2, LIMITED, 0 },
	{ SYS_splice, LIMITED, 0 },
	{ SYS_sendfile, LIMITED, 0 },
};

/* linux/major.h, and drivers/char/mem.c in the kernel */
enum { MEM_MAJOR = 1, ZERO_MINOR = 5, FULL_MINOR = 7, RANDOM_MINOR = 8, URANDOM_MINOR = 9 };

static bool is_limited(enum limit limit, uint64_t argument)
{
	switch (limit) {
	case LIMITED: return true;
	case UNLIMITED: return false;
	case UNLESS_NEGATIVE: return (int32_t)argument >= 0;
	case UNLESS_NULL: return argument != 0;
	}
	return true;
}

/* Is it a device that gives zeroes or random bytes: as many as asked for, and again the next time? */
static bool gives_without_end(pid_t tid, uint64_t fd)
{
	struct statx status;
	unsigned int number;

	if (!target_file_status(tid, fd, &status) || !S_ISCHR(status.stx_mode) ||
	    status.stx_rdev_major != MEM_MAJOR)
		return false;
	number = status.stx_rdev_minor;
	return number == ZERO_MINOR || number == FULL_MINOR || number == RANDOM_MINOR ||
	       number == URANDOM_MINOR;
}

/*
 * Is it a long call that looks for signals now and then, has returned a part, and may
 * start over? It fills the program's memory again.
 */
static bool is_begun_anew(pid_t tid, const struct user_regs_struct *regs)
{
	if ((int64_t)regs->rax <= 0)
		return false;
	if (regs->orig_rax == SYS_getrandom)
		return regs->rax < regs->rsi;
	return regs->orig_rax == SYS_read && regs->rax < regs->rdx && gives_without_end(tid, regs->rdi);
}

/* Is it tcdrain() or tcsendbreak(), which wait until all is sent? */
static bool drains_terminal(const struct user_regs_struct *regs)
{
	return regs->orig_rax == SYS_ioctl &&
	       ((uint32_t)regs->rsi == TCSBRK || (uint32_t)regs->rsi == TCSBRKP);
}

bool interrupted_call_find(pid_t tid, const struct user_regs_struct *regs, bool *ret_limited)
{
	if (is_begun_anew(tid, regs)) {
		*ret_limited = true;
		return true;
	}
	if ((int64_t)regs->rax != -EINTR)
		return false;
	if (drains_terminal(regs)) {
		*ret_limited = true;
		return true;
	}
	/* Outside of a call, orig_rax is negative. */
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		if (regs->orig_rax != calls[i].number)
			continue;
		*ret_limited = is_limited(calls[i].limit, *(const unsigned long long *)((const char *)regs +
											calls[i].argument));
		return true;
	}
	return false;
}

bool interrupted_call_has_ended(const struct registers *registers)
{
	int64_t result = (int64_t)registers->rax;

	/* Outside of a call, its number is negative. */
	return (int64_t)registers->call_number >= 0 &&
	       (result == -EINTR || (result <= -ERESTARTSYS && result >= -ERESTART_RESTARTBLOCK));
}

void interrupted_call_restart(pid_t tid)
{
	ptrace(PTRACE_POKEUSER, tid, offsetof(struct user_regs_struct, rax), -(long)ERESTARTNOHAND);
}

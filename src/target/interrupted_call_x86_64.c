#include "src/target/interrupted_call.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>

/* linux/errno.h in the kernel: "restart if no handler" */
enum { ERESTARTSYS = 512, ERESTARTNOHAND = 514, ERESTART_RESTARTBLOCK = 516 };

#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif

enum limit {
	LIMITED,		/* or it would not have returned EINTR */
	UNLIMITED,
	UNLESS_NEGATIVE,	/* an int */
	UNLESS_NULL,		/* a pointer to the time */
};

/*
 * Calls that return EINTR even if no handler has run, having done nothing:
 * whatever has transferred something returns how much. Not among them is
 * close(), which has closed.
 */
static const struct {
	unsigned int number;
	enum limit limit;
	size_t argument;	/* the one that limits it: its place in user_regs_struct */
} calls[] = {
	{ SYS_epoll_wait, UNLESS_NEGATIVE, offsetof(struct user_regs_struct, r10) },
	{ SYS_epoll_pwait, UNLESS_NEGATIVE, offsetof(struct user_regs_struct, r10) },
	{ SYS_epoll_pwait2, UNLESS_NULL, offsetof(struct user_regs_struct, r10) },
	{ SYS_rt_sigtimedwait, UNLESS_NULL, offsetof(struct user_regs_struct, rdx) },
	{ SYS_semtimedop, UNLESS_NULL, offsetof(struct user_regs_struct, r10) },
	{ SYS_semop, UNLIMITED, 0 },
	{ SYS_io_getevents, UNLESS_NULL, offsetof(struct user_regs_struct, r8) },
	{ SYS_io_pgetevents, UNLESS_NULL, offsetof(struct user_regs_struct, r8) },
	/* Its limit is behind a pointer, if it has one. */
	{ SYS_io_uring_enter, LIMITED, 0 },
	/* On sockets with SO_RCVTIMEO or SO_SNDTIMEO; without, they begin again by themselves. */
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
};

static bool is_limited(enum limit limit, uint64_t argument)
{
	switch (limit) {
	case LIMITED:
		return true;
	case UNLIMITED:
		return false;
	case UNLESS_NEGATIVE:
		return (int32_t)argument >= 0;
	case UNLESS_NULL:
		return argument != 0;
	}
	return true;
}

bool interrupted_call_find(const struct user_regs_struct *regs, bool *ret_limited)
{
	if ((int64_t)regs->rax != -EINTR)
		return false;
	/* Outside of a call, orig_rax is negative. */
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		if (regs->orig_rax != calls[i].number)
			continue;
		*ret_limited = is_limited(calls[i].limit,
					  *(const unsigned long long *)((const char *)regs + calls[i].argument));
		return true;
	}
	return false;
}

bool interrupted_call_has_ended(const struct registers *registers)
{
	int64_t result = (int64_t)registers->rax;

	/* Outside of a call, orig_rax is negative. */
	return (int64_t)registers->orig_rax >= 0 &&
	       (result == -EINTR || (result <= -ERESTARTSYS && result >= -ERESTART_RESTARTBLOCK));
}

void interrupted_call_restart(pid_t tid)
{
	ptrace(PTRACE_POKEUSER, tid, offsetof(struct user_regs_struct, rax), -(long)ERESTARTNOHAND);
}

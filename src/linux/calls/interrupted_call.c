/* SPDX-License-Identifier: MIT */
/* What all machines have in common: which calls may begin again, by their numbers and arguments. */
#include "src/linux/calls/interrupted_call_parts.h"

#include <errno.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "src/linux/proc/call_numbers.h"
#include "src/linux/proc/target_file.h"

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
	unsigned int argument; /* the one with the limit, counted from 0 */
} calls[] = {
#ifdef SYS_epoll_wait
	{ SYS_epoll_wait, UNLESS_NEGATIVE, 3 },
#endif
	{ SYS_epoll_pwait, UNLESS_NEGATIVE, 3 },
	{ SYS_epoll_pwait2, UNLESS_NULL, 3 },
	{ SYS_rt_sigtimedwait, UNLESS_NULL, 2 },
	{ SYS_semtimedop, UNLESS_NULL, 3 },
	{ SYS_semop, UNLIMITED, 0 },
	{ SYS_io_getevents, UNLESS_NULL, 4 },
	{ SYS_io_pgetevents, UNLESS_NULL, 4 },
	/* If it has a limit, that is behind a pointer. */
	{ SYS_io_uring_enter, LIMITED, 0 },
/* With a limit in memory to which the kernel cannot write the remaining time. */
#ifdef SYS_select
	{ SYS_select, LIMITED, 0 },
#endif
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
static bool is_begun_anew(pid_t tid, const struct ended_call *call)
{
	if (!interrupted_call_may_be_a_part(call->number, call->result))
		return false;
	if (call->number == SYS_getrandom)
		return (uint64_t)call->result < call->arguments[1];
	return (uint64_t)call->result < call->arguments[2] && gives_without_end(tid, call->arguments[0]);
}

/* Is it tcdrain() or tcsendbreak(), which wait until all is sent? */
static bool drains_terminal(const struct ended_call *call)
{
	uint32_t request = (uint32_t)call->arguments[1];

	return call->number == SYS_ioctl && (request == TCSBRK || request == TCSBRKP);
}

bool interrupted_call_may_be_a_part(uint64_t number, int64_t result)
{
	return result > 0 && (number == SYS_getrandom || number == SYS_read);
}

bool interrupted_call_begins_again(pid_t tid, const struct ended_call *call, bool *ret_limited)
{
	if (is_begun_anew(tid, call)) {
		*ret_limited = true;
		return true;
	}
	if (call->result != -EINTR)
		return false;
	if (drains_terminal(call)) {
		*ret_limited = true;
		return true;
	}
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		if (call->number != calls[i].number)
			continue;
		*ret_limited = is_limited(calls[i].limit, call->arguments[calls[i].argument]);
		return true;
	}
	return false;
}

/* SPDX-License-Identifier: MIT */
#include "src/linux/calls/call_nature.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "memory/memory.h"
#include "src/linux/proc/proc_file.h"
#include "src/linux/proc/target_file.h"

/* Newer than some headers; the same for all machines. */
enum {
	CALL_EPOLL_PWAIT2 = 441,
	CALL_FUTEX_WAITV = 449,
	CALL_FUTEX_WAIT = 455,
};

/* A condition on one or two arguments, numbered from 0. */
enum condition {
	ALWAYS,
	TAKES_WHAT_COMES,  /* the first is a file from which the call takes what there is */
	GIVES_AT_ONCE,     /* the first is a file that takes the bytes, the third how many, all or none */
	ONE_AT_MOST,       /* this one is the number of things to wait for, at most 1 */
	NOT_ALL,           /* these flags do not ask for all bytes of a message */
	NOT_REQUEUED,      /* the second is a futex operation other than FUTEX_WAIT_REQUEUE_PI */
	NOTHING_SUBMITTED, /* the second, how many the call submits before it waits, is 0 */
	DRAINS_TERMINAL,   /* the second is an ioctl() request that waits until all is sent */
};

static const struct rule {
	int number;
	enum condition condition;
	uint8_t argument;
} rules[] = {
/* Wait for time, signals, children, locks, or until something is ready. */
#ifdef SYS_epoll_wait
	{ SYS_epoll_wait, ALWAYS, 0 },
	{ SYS_poll, ALWAYS, 0 },
	{ SYS_select, ALWAYS, 0 },
	{ SYS_pause, ALWAYS, 0 },
	{ SYS_fork, ALWAYS, 0 },
	{ SYS_vfork, ALWAYS, 0 },
#endif
	{ SYS_epoll_pwait, ALWAYS, 0 },
	{ CALL_EPOLL_PWAIT2, ALWAYS, 0 },
	{ SYS_ppoll, ALWAYS, 0 },
	{ SYS_pselect6, ALWAYS, 0 },
	{ SYS_nanosleep, ALWAYS, 0 },
	{ SYS_clock_nanosleep, ALWAYS, 0 },
	{ SYS_restart_syscall, ALWAYS, 0 },
	{ SYS_rt_sigsuspend, ALWAYS, 0 },
	{ SYS_rt_sigtimedwait, ALWAYS, 0 },
	{ SYS_wait4, ALWAYS, 0 },
	{ SYS_waitid, ALWAYS, 0 },
	{ SYS_clone, ALWAYS, 0 },
	{ SYS_clone3, ALWAYS, 0 },
	{ SYS_execve, ALWAYS, 0 },
	{ SYS_execveat, ALWAYS, 0 },
	/* Only the end of the thread interrupts these. They wait for locks, which ljspy's reads take, too. */
	{ SYS_mmap, ALWAYS, 0 },
	{ SYS_mprotect, ALWAYS, 0 },
	{ SYS_munmap, ALWAYS, 0 },
	{ SYS_mremap, ALWAYS, 0 },
	{ SYS_brk, ALWAYS, 0 },
	{ SYS_flock, ALWAYS, 0 },
	{ SYS_fcntl, ALWAYS, 0 }, /* F_SETLKW and the like */
	{ SYS_semop, ALWAYS, 0 },
	{ SYS_semtimedop, ALWAYS, 0 },
	{ SYS_msgsnd, ALWAYS, 0 },
	{ SYS_msgrcv, ALWAYS, 0 },
	{ SYS_mq_timedsend, ALWAYS, 0 },
	{ SYS_mq_timedreceive, ALWAYS, 0 },
	{ SYS_futex, NOT_REQUEUED, 1 },
	{ CALL_FUTEX_WAITV, ALWAYS, 0 },
	{ CALL_FUTEX_WAIT, ALWAYS, 0 },
	{ SYS_getrandom, ALWAYS, 0 },
	{ SYS_accept, ALWAYS, 0 },
	{ SYS_accept4, ALWAYS, 0 },
	{ SYS_io_getevents, ONE_AT_MOST, 1 },
	{ SYS_io_pgetevents, ONE_AT_MOST, 1 },
	{ SYS_io_uring_enter, NOTHING_SUBMITTED, 1 },
	/* Transfer bytes. */
	{ SYS_read, TAKES_WHAT_COMES, 0 },
	{ SYS_readv, TAKES_WHAT_COMES, 0 },
	{ SYS_preadv2, TAKES_WHAT_COMES, 0 },
	{ SYS_recvfrom, NOT_ALL, 3 },
	{ SYS_recvmsg, NOT_ALL, 2 },
	{ SYS_recvmmsg, ONE_AT_MOST, 2 },
	{ SYS_write, GIVES_AT_ONCE, 0 },
	{ SYS_sendto, GIVES_AT_ONCE, 0 },
	{ SYS_ioctl, DRAINS_TERMINAL, 1 },
};

static bool read_mode(pid_t pid, uint64_t fd, mode_t *ret_mode)
{
	struct statx status;

	if (!target_file_status(pid, fd, &status))
		return false;
	*ret_mode = status.stx_mode;
	return true;
}

/*
 * True for pipes, sockets, and files without a type (eventfd, timerfd, inotify,
 * signalfd). A terminal may be set to wait for several bytes. A regular file in which
 * a thread sleeps interruptibly is on FUSE or 9p.
 */
static bool takes_what_comes(pid_t pid, uint64_t fd)
{
	mode_t mode;

	return read_mode(pid, fd, &mode) && (S_ISFIFO(mode) || S_ISSOCK(mode) || (mode & S_IFMT) == 0);
}

static bool gives_at_once(pid_t pid, uint64_t fd, uint64_t size)
{
	mode_t mode;

	if (!read_mode(pid, fd, &mode))
		return false;
	if (S_ISFIFO(mode))
		return size <= PIPE_BUF;
	return S_ISSOCK(mode) ? size <= 1 : (mode & S_IFMT) == 0;
}

static bool applies(const struct rule *rule, pid_t pid, const uint64_t arguments[static 6])
{
	uint64_t argument = arguments[rule->argument];

	switch (rule->condition) {
	case ALWAYS: return true;
	case TAKES_WHAT_COMES: return takes_what_comes(pid, argument);
	case GIVES_AT_ONCE: return gives_at_once(pid, argument, arguments[2]);
	case ONE_AT_MOST: return argument <= 1;
	case NOT_ALL: return !(argument & MSG_WAITALL);
	case NOT_REQUEUED: return (argument & FUTEX_CMD_MASK) != FUTEX_WAIT_REQUEUE_PI;
	case NOTHING_SUBMITTED: return (uint32_t)argument == 0;
	case DRAINS_TERMINAL: return argument == TCSBRK || argument == TCSBRKP;
	}
	return false;
}

bool call_bears_stop(pid_t pid, int64_t number, const uint64_t arguments[static 6])
{
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (rules[i].number == number)
			return applies(&rules[i], pid, arguments);
	return false;
}

/* Is the file there without O_NONBLOCK, by its flags in /proc? */
static bool is_blocking(pid_t pid, uint64_t fd)
{
	char name[sizeof("fdinfo/") + 3 * sizeof(int)];
	uint64_t flags;

	snprintf(name, sizeof(name), "fdinfo/%d", (int)fd);
	return proc_file_number(pid, name, "flags:", 8, &flags) && !(flags & O_NONBLOCK);
}

/* Can a stop interrupt transfers of the file: does it block, and is no regular file or block device? */
static bool is_cuttable(pid_t pid, uint64_t fd)
{
	mode_t mode;

	return is_blocking(pid, fd) && read_mode(pid, fd, &mode) && !S_ISREG(mode) && !S_ISBLK(mode);
}

/* Is it more than a page? Calls look for signals after each page. */
static bool is_long(uint64_t size)
{
	return size > memory_page_size();
}

bool call_may_be_cut(int64_t number, const uint64_t arguments[static 6], int64_t result)
{
	switch (number) {
	/* These start over. */
	case SYS_fallocate: return true;
	case SYS_getrandom: return is_long(arguments[1]);
	case SYS_read: return is_long(arguments[2]);
	/* These may have transferred a part. */
	case SYS_write:
	case SYS_sendto: return result > 0 && is_long(arguments[2]);
	case SYS_writev:
	case SYS_pwritev2:
	case SYS_sendmsg:
	case SYS_sendmmsg:
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_recvmmsg: return result > 0;
	case SYS_sendfile: return result > 0 && (uint64_t)result < arguments[3];
	case SYS_splice:
	case SYS_copy_file_range: return result > 0 && (uint64_t)result < arguments[4];
	default: return false;
	}
}

bool call_was_at_risk(pid_t pid, int64_t number, const uint64_t arguments[static 6], int64_t result)
{
	mode_t mode;

	if (!call_may_be_cut(number, arguments, result))
		return false;
	switch (number) {
	case SYS_read: return read_mode(pid, arguments[0], &mode) && S_ISCHR(mode);
	case SYS_write:
	case SYS_sendto:
	case SYS_writev:
	case SYS_pwritev2:
	case SYS_sendmsg:
	case SYS_sendmmsg: return is_cuttable(pid, arguments[0]);
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_recvmmsg: return !call_bears_stop(pid, number, arguments) && is_cuttable(pid, arguments[0]);
	case SYS_sendfile: return is_blocking(pid, arguments[0]);
	case SYS_splice:
	case SYS_copy_file_range: return is_blocking(pid, arguments[2]);
	default: return true;
	}
}

/* SPDX-License-Identifier: MIT */
#include "src/linux/threads/wait.h"

#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/select.h>

#include "src/linux/proc/call_numbers.h"

/* How a call says what it waits for. */
enum call_form {
	FORM_OTHER,
	FORM_EVENTS,
	FORM_TIME,
	FORM_FD,      /* the first argument is a file descriptor */
	FORM_PATH,    /* the first argument is a name, */
	FORM_PATH_AT, /* ... or the second, after a directory */
	FORM_CHILD,
	FORM_FUTEX,
	FORM_POLL,   /* array, count */
	FORM_SELECT, /* limit, three sets */
};

/* System calls that may sleep, by number. */
static const struct {
	const char *name;
	enum call_form form;
} calls[] = {
	[SYS_accept] = { "accept", FORM_EVENTS },
	[SYS_accept4] = { "accept4", FORM_EVENTS },
	[SYS_epoll_pwait] = { "epoll_pwait", FORM_EVENTS },
	[SYS_epoll_pwait2] = { "epoll_pwait2", FORM_EVENTS },
	[SYS_io_getevents] = { "io_getevents", FORM_EVENTS },
	[SYS_io_uring_enter] = { "io_uring_enter", FORM_EVENTS },
	[SYS_rt_sigsuspend] = { "rt_sigsuspend", FORM_EVENTS },
	[SYS_rt_sigtimedwait] = { "rt_sigtimedwait", FORM_EVENTS },
	[SYS_ppoll] = { "ppoll", FORM_POLL },
	[SYS_pselect6] = { "pselect6", FORM_SELECT },
#ifdef __x86_64__ /* later architectures know only the more general ones */
	[SYS_epoll_wait] = { "epoll_wait", FORM_EVENTS },
	[SYS_pause] = { "pause", FORM_EVENTS },
	[SYS_poll] = { "poll", FORM_POLL },
	[SYS_select] = { "select", FORM_SELECT },
	[SYS_mkdir] = { "mkdir", FORM_PATH },
	[SYS_open] = { "open", FORM_PATH },
	[SYS_stat] = { "stat", FORM_PATH },
	[SYS_lstat] = { "lstat", FORM_PATH },
	[SYS_access] = { "access", FORM_PATH },
	[SYS_rename] = { "rename", FORM_PATH },
	[SYS_rmdir] = { "rmdir", FORM_PATH },
	[SYS_unlink] = { "unlink", FORM_PATH },
	[SYS_vfork] = { "vfork", FORM_CHILD },
	[SYS_getdents] = { "getdents", FORM_FD },
#endif
	[SYS_nanosleep] = { "nanosleep", FORM_TIME },
	[SYS_clock_nanosleep] = { "clock_nanosleep", FORM_TIME },
	[SYS_restart_syscall] = { "restart_syscall", FORM_TIME }, /* which has a time limit */
	[SYS_futex] = { "futex", FORM_FUTEX },
	[SYS_clone] = { "clone", FORM_CHILD }, /* how today's C library does vfork() */
	[SYS_clone3] = { "clone3", FORM_CHILD },
	[SYS_wait4] = { "wait4", FORM_CHILD },
	[SYS_waitid] = { "waitid", FORM_CHILD },
	[SYS_close] = { "close", FORM_FD },
	[SYS_connect] = { "connect", FORM_FD },
	[SYS_copy_file_range] = { "copy_file_range", FORM_FD },
	[SYS_fallocate] = { "fallocate", FORM_FD },
	[SYS_fcntl] = { "fcntl", FORM_FD },
	[SYS_fdatasync] = { "fdatasync", FORM_FD },
	[SYS_flock] = { "flock", FORM_FD },
	[SYS_fstat] = { "fstat", FORM_FD },
	[SYS_fsync] = { "fsync", FORM_FD },
	[SYS_ftruncate] = { "ftruncate", FORM_FD },
	[SYS_getdents64] = { "getdents64", FORM_FD },
	[SYS_ioctl] = { "ioctl", FORM_FD },
	[SYS_lseek] = { "lseek", FORM_FD },
	[SYS_pread64] = { "pread64", FORM_FD },
	[SYS_preadv] = { "preadv", FORM_FD },
	[SYS_preadv2] = { "preadv2", FORM_FD },
	[SYS_pwrite64] = { "pwrite64", FORM_FD },
	[SYS_pwritev] = { "pwritev", FORM_FD },
	[SYS_pwritev2] = { "pwritev2", FORM_FD },
	[SYS_read] = { "read", FORM_FD },
	[SYS_readv] = { "readv", FORM_FD },
	[SYS_recvfrom] = { "recvfrom", FORM_FD },
	[SYS_recvmmsg] = { "recvmmsg", FORM_FD },
	[SYS_recvmsg] = { "recvmsg", FORM_FD },
	[SYS_sendfile] = { "sendfile", FORM_FD },
	[SYS_sendmmsg] = { "sendmmsg", FORM_FD },
	[SYS_sendmsg] = { "sendmsg", FORM_FD },
	[SYS_sendto] = { "sendto", FORM_FD },
	[SYS_splice] = { "splice", FORM_FD },
	[SYS_sync_file_range] = { "sync_file_range", FORM_FD },
	[SYS_syncfs] = { "syncfs", FORM_FD },
	[SYS_write] = { "write", FORM_FD },
	[SYS_writev] = { "writev", FORM_FD },
	[SYS_execve] = { "execve", FORM_PATH },
	[SYS_execveat] = { "execveat", FORM_PATH_AT },
	[SYS_faccessat] = { "faccessat", FORM_PATH_AT },
	[SYS_mkdirat] = { "mkdirat", FORM_PATH_AT },
	[SYS_newfstatat] = { "newfstatat", FORM_PATH_AT },
	[SYS_openat] = { "openat", FORM_PATH_AT },
	[SYS_openat2] = { "openat2", FORM_PATH_AT },
	[SYS_renameat] = { "renameat", FORM_PATH_AT },
	[SYS_renameat2] = { "renameat2", FORM_PATH_AT },
	[SYS_statx] = { "statx", FORM_PATH_AT },
	[SYS_truncate] = { "truncate", FORM_PATH },
	[SYS_unlinkat] = { "unlinkat", FORM_PATH_AT },
	[SYS_exit_group] = { "exit_group", FORM_OTHER },
	[SYS_getrandom] = { "getrandom", FORM_OTHER },
	[SYS_madvise] = { "madvise", FORM_OTHER },
	[SYS_mmap] = { "mmap", FORM_OTHER },
	[SYS_mprotect] = { "mprotect", FORM_OTHER },
	[SYS_mq_timedreceive] = { "mq_timedreceive", FORM_FD },
	[SYS_mq_timedsend] = { "mq_timedsend", FORM_FD },
	[SYS_mremap] = { "mremap", FORM_OTHER },
	[SYS_msgrcv] = { "msgrcv", FORM_OTHER },
	[SYS_msgsnd] = { "msgsnd", FORM_OTHER },
	[SYS_msync] = { "msync", FORM_OTHER },
	[SYS_munmap] = { "munmap", FORM_OTHER },
	[SYS_process_vm_readv] = { "process_vm_readv", FORM_OTHER },
	[SYS_ptrace] = { "ptrace", FORM_OTHER },
	[SYS_semop] = { "semop", FORM_OTHER },
	[SYS_semtimedop] = { "semtimedop", FORM_OTHER },
	[SYS_sync] = { "sync", FORM_OTHER },
};

enum {
	CALL_COUNT = sizeof(calls) / sizeof(calls[0]),
	SETS = 3, /* of files that select waits for */
};

/* A poll of one file waits for that file, of none for time, of several for events. */
static void read_poll(struct memory *memory, uint64_t address, uint64_t count, struct wait *wait)
{
	struct pollfd polled;

	wait->kind = count == 0 ? WAIT_TIME : WAIT_EVENTS;
	if (count != 1 || memory_read(memory, address, &polled, sizeof(polled)) != MEMORY_OK)
		return;
	wait->kind = polled.fd < 0 ? WAIT_TIME : WAIT_POLL;
	wait->fd = polled.fd < 0 ? -1 : polled.fd;
}

/*
 * The sets keep the files asked for until the call is over: the kernel works on a copy.
 * A file may be in more than one of them. A select of several files waits for events.
 */
static void read_select(struct memory *memory, const uint64_t arguments[static 6], struct wait *wait)
{
	uint64_t limit = arguments[0] < FD_SETSIZE ? arguments[0] : FD_SETSIZE;
	int fd = -1;

	wait->kind = WAIT_EVENTS;
	for (unsigned int i = 1; i <= SETS; i++) {
		unsigned char bits[FD_SETSIZE / CHAR_BIT] = { 0 };
		size_t length = (size_t)(limit + CHAR_BIT - 1) / CHAR_BIT;

		if (arguments[i] == 0 || length == 0)
			continue;
		if (memory_read(memory, arguments[i], bits, length) != MEMORY_OK)
			return;
		for (int at = 0; at < (int)limit; at++) {
			if (!(bits[at / CHAR_BIT] & 1 << at % CHAR_BIT) || at == fd)
				continue;
			if (fd >= 0)
				return;
			fd = at;
		}
	}
	wait->kind = fd < 0 ? WAIT_TIME : WAIT_POLL;
	wait->fd = fd;
}

/*
 * The C libraries wait for condition variables and semaphores by the operation with an
 * absolute time limit, even if they wait for ever; for mutexes by the plain one.
 */
static enum wait_kind futex_kind(uint64_t operation)
{
	switch (operation & FUTEX_CMD_MASK) {
	case FUTEX_WAIT_BITSET:
	case FUTEX_WAIT_REQUEUE_PI: return WAIT_CONDITION;
	case FUTEX_WAIT:
	case FUTEX_LOCK_PI: return WAIT_LOCK;
	default: return WAIT_OTHER;
	}
}

void wait_read(struct memory *memory, const struct thread_call *call, struct wait *ret_wait)
{
	struct wait wait = { .kind = WAIT_UNKNOWN, .fd = -1 };
	enum call_form form = FORM_OTHER;

	if (call->known && call->number >= 0)
		wait.kind = WAIT_OTHER;
	if (wait.kind == WAIT_OTHER && call->number < CALL_COUNT) {
		wait.call = calls[call->number].name;
		form = calls[call->number].form;
	}
	switch (form) {
	case FORM_OTHER: break;
	case FORM_EVENTS: wait.kind = WAIT_EVENTS; break;
	case FORM_TIME: wait.kind = WAIT_TIME; break;
	case FORM_FD:
		wait.kind = WAIT_FILE;
		wait.fd = (int)call->arguments[0];
		break;
	case FORM_PATH:
	case FORM_PATH_AT:
		wait.kind = WAIT_PATH;
		wait.path = call->arguments[form == FORM_PATH_AT ? 1 : 0];
		break;
	case FORM_CHILD: wait.kind = WAIT_CHILD; break;
	case FORM_FUTEX:
		wait.kind = futex_kind(call->arguments[1]);
		wait.lock = call->arguments[0];
		wait.is_shared = !(call->arguments[1] & FUTEX_PRIVATE_FLAG);
		break;
	case FORM_POLL: read_poll(memory, call->arguments[0], call->arguments[1], &wait); break;
	case FORM_SELECT: read_select(memory, call->arguments, &wait); break;
	}
	*ret_wait = wait;
}

enum thread_state wait_state(const struct wait *wait, const struct wait_stack *stack)
{
	if (stack->request)
		return THREAD_BLOCKED;
	switch (wait->kind) {
	case WAIT_EVENTS: return THREAD_IDLE;
	case WAIT_TIME: return stack->lua_function ? THREAD_BLOCKED : THREAD_IDLE;
	case WAIT_CONDITION:
	case WAIT_POLL: return stack->lua ? THREAD_BLOCKED : THREAD_IDLE;
	case WAIT_UNKNOWN:
	case WAIT_LOCK:
	case WAIT_FILE:
	case WAIT_PATH:
	case WAIT_CHILD:
	case WAIT_OTHER: return THREAD_BLOCKED;
	}
	return THREAD_BLOCKED;
}

bool wait_is_for_events(const struct wait *wait)
{
	return wait->kind == WAIT_EVENTS || wait->kind == WAIT_POLL;
}

bool wait_call_is_for_events(const struct thread_call *call)
{
	enum call_form form = FORM_OTHER;

	if (call->known && call->number >= 0 && call->number < CALL_COUNT)
		form = calls[call->number].form;
	return form == FORM_EVENTS || (form == FORM_POLL && call->arguments[1] > 1);
}

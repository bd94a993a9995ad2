/* SPDX-License-Identifier: MIT */
#include "src/apart/blocked.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "memory/errand.h"
#include "src/apart/thread_status.h"
#include "src/linux/proc/proc_file.h"
#include "src/linux/proc/proc_text.h"
#include "src/linux/proc/process.h"

enum {
	CALL_MAX = 256,
	FD_PATH_MAX = 32,
	PROC_PATH_MAX = 64,
	LOOKS_BETWEEN_MAX = 4,
};

static const uint64_t look_ns = 250 * 1000 * 1000, look_at_rest_ns = 1000 * 1000 * 1000;
/* A disk with swap that has to spin up takes longer, but the target is not to stand still for that. */
static const uint64_t long_ns = UINT64_C(2000) * 1000 * 1000;

/* The process in whose directory in /proc the path is, or 0. */
static pid_t owner_of_path(const char *path)
{
	static const char proc[] = "/proc/";

	return strncmp(path, proc, sizeof(proc) - 1) == 0 ? (pid_t)strtol(path + sizeof(proc) - 1, NULL, 10)
							  : 0;
}

static pid_t owner_of_file(uint64_t fd)
{
	char link[FD_PATH_MAX], path[PROC_PATH_MAX] = "";

	snprintf(link, sizeof(link), "/proc/self/fd/%d", (int)fd);
	return readlink(link, path, sizeof(path) - 1) > 0 ? owner_of_path(path) : 0;
}

/* By its path in this process's memory, which by now may be of something else, or nothing. */
static pid_t owner_of_named(uint64_t address)
{
	char path[PROC_PATH_MAX] = "";
	const struct iovec here = { path, sizeof(path) - 1 };
	const struct iovec there = { (void *)(uintptr_t)address, sizeof(path) - 1 };

	return process_vm_readv(getpid(), &here, 1, &there, 1, 0) > 0 ? owner_of_path(path) : 0;
}

/*
 * Whose memory or files in /proc does the call read in which the thread waits? 0 if it does not, or if that
 * is unknown.
 */
static pid_t process_read_by(pid_t tid)
{
	char text[CALL_MAX], *end;
	uint64_t arguments[2];
	pid_t owner = 0;
	long call;

	if (proc_text_read(tid, "syscall", text, sizeof(text)) < 0)
		return 0;
	call = strtol(text, &end, 10);
	if (end == text) /* "running" */
		return 0;
	arguments[0] = strtoull(end, &end, 16);
	arguments[1] = strtoull(end, &end, 16);
	switch (call) {
	case SYS_process_vm_readv: owner = (pid_t)arguments[0]; break;
	case SYS_read:
	case SYS_pread64:
	case SYS_ioctl: owner = owner_of_file(arguments[0]); break;
#ifdef SYS_readlink
	case SYS_readlink: owner = owner_of_named(arguments[0]); break;
#endif
	case SYS_readlinkat:
	case SYS_openat: owner = owner_of_named(arguments[1]); break;
	default: break;
	}
	return owner > 0 ? process_of_thread(owner) : 0;
}

/* Of a thread that waits so that no signal but SIGKILL wakes it, and that does no errand. */
static bool read_waiting(pid_t tid, uint64_t *ret_switches)
{
	static const char errand[] = "Name:\t" ERRAND_THREAD_NAME "\n";
	char text[THREAD_STATUS_SIZE];

	return thread_status_is(tid, 'D', text, ret_switches) &&
	       strncmp(text, errand, sizeof(errand) - 1) != 0;
}

static uint64_t waiting_since(const struct blocked *blocked, pid_t tid, uint64_t switches, uint64_t now_ns)
{
	for (unsigned int i = 0; i < blocked->count; i++)
		if (blocked->threads[i].tid == tid && blocked->threads[i].switches == switches)
			return blocked->threads[i].since_ns;
	return now_ns;
}

/* The thread that has waited for long; 0 if there is none. */
static pid_t look(struct blocked *blocked, DIR *threads, uint64_t now_ns)
{
	struct blocked now = { .looked_ns = now_ns };
	pid_t found = 0, tid;

	while (now.count < BLOCKED_THREADS_MAX && !proc_file_next_id(threads, &tid) && tid > 0) {
		struct blocked_thread thread = { .tid = tid };

		if (!read_waiting(thread.tid, &thread.switches))
			continue;
		thread.since_ns = waiting_since(blocked, thread.tid, thread.switches, now_ns);
		if (now_ns - thread.since_ns >= long_ns)
			found = thread.tid;
		now.threads[now.count++] = thread;
	}
	*blocked = now;
	return found;
}

bool blocked_for_long(struct blocked *blocked, bool rests, uint64_t now_ns, pid_t *ret_pid)
{
	DIR *threads;
	pid_t found;

	if (now_ns - blocked->looked_ns < (rests && blocked->count == 0 ? look_at_rest_ns : look_ns))
		return false;
	/* Who could not look, as on a machine that was paused, does not know what was in between. */
	if (now_ns - blocked->looked_ns > LOOKS_BETWEEN_MAX * look_ns)
		blocked->count = 0;
	threads = opendir("/proc/self/task");
	if (!threads)
		return false;
	found = look(blocked, threads, now_ns);
	closedir(threads);
	if (found)
		*ret_pid = process_read_by(found);
	return found != 0;
}

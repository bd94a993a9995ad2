/* SPDX-License-Identifier: MIT */
#include "src/apart/blocked.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "memory/errand.h"
#include "src/linux/clocks/scheduler.h"
#include "src/linux/proc/proc_file.h"

enum { STATUS_MAX = 4096 };

static const uint64_t look_ns = 250 * 1000 * 1000;
/* A disk with swap that has to spin up takes longer, but the target is not to stand still for that. */
static const uint64_t long_ns = UINT64_C(2000) * 1000 * 1000;

/* Of a thread that waits so that no signal but SIGKILL wakes it, and that does no errand. */
static bool read_waiting(pid_t tid, uint64_t *ret_switches)
{
	static const char errand[] = "Name:\t" ERRAND_THREAD_NAME "\n";
	struct switches switches;
	char text[STATUS_MAX];
	int fd = proc_file_open(tid, "status");
	ssize_t length;

	if (fd < 0)
		return false;
	length = proc_file_fill(fd, text, sizeof(text) - 1);
	close(fd);
	text[length > 0 ? length : 0] = '\0';
	if (!strstr(text, "\nState:\tD") || strncmp(text, errand, sizeof(errand) - 1) == 0 ||
	    !switches_parse(text, &switches))
		return false;
	*ret_switches = switches.count;
	return true;
}

static uint64_t waiting_since(const struct blocked *blocked, pid_t tid, uint64_t switches, uint64_t now_ns)
{
	for (unsigned int i = 0; i < blocked->count; i++)
		if (blocked->threads[i].tid == tid && blocked->threads[i].switches == switches)
			return blocked->threads[i].since_ns;
	return now_ns;
}

static bool look(struct blocked *blocked, DIR *threads, uint64_t now_ns)
{
	struct blocked now = { .looked_ns = now_ns };
	const struct dirent *entry;
	bool is_long = false;

	while (now.count < BLOCKED_THREADS_MAX && (entry = readdir(threads))) {
		struct blocked_thread thread = { .tid = (pid_t)strtol(entry->d_name, NULL, 10) };

		if (thread.tid <= 0 || !read_waiting(thread.tid, &thread.switches))
			continue;
		thread.since_ns = waiting_since(blocked, thread.tid, thread.switches, now_ns);
		is_long |= now_ns - thread.since_ns >= long_ns;
		now.threads[now.count++] = thread;
	}
	*blocked = now;
	return is_long;
}

bool blocked_for_long(struct blocked *blocked, uint64_t now_ns)
{
	DIR *threads;
	bool is_long;

	if (now_ns - blocked->looked_ns < look_ns)
		return false;
	threads = opendir("/proc/self/task");
	if (!threads)
		return false;
	is_long = look(blocked, threads, now_ns);
	closedir(threads);
	return is_long;
}

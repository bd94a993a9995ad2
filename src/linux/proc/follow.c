/* SPDX-License-Identifier: MIT */
#include "src/linux/proc/follow.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "memory/hash.h"
#include "src/linux/clocks/clock.h"
#include "src/linux/proc/proc_file.h"
#include "src/linux/proc/process.h"

enum {
	INTERVAL_NS = 20 * 1000 * 1000,
	/* List all of /proc at least this often, in case the newest id does not change. */
	LISTING_NS = 1000 * 1000 * 1000,
	/* A new process is read again for this long: it may run another program or get another parent. */
	YOUNG_NS = 1000 * 1000 * 1000,
	/* Looking takes at most 1/SHARE of a CPU. */
	SHARE = 100,
};

struct known {
	pid_t pid, parent;
	bool read; /* parent and kernel_thread are set */
	bool kernel_thread;
	bool followed, told;
	uint64_t young_until_ns;
	unsigned int listing; /* the last listing that contained it */
	UT_hash_handle hh;
};

struct follow {
	struct follow_options options;
	struct known *known;  /* all processes that exist, by pid */
	unsigned int listing; /* how many listings there were */
	int newest_fd;        /* of /proc/loadavg, -1 if it cannot be read */
	long newest;          /* process id at the last listing, -1 if unknown */
	uint64_t due_ns, listing_due_ns;
	size_t young_count;
};

struct follow *follow_new(const struct follow_options *options)
{
	struct follow *follow = calloc(1, sizeof(*follow));

	if (!follow)
		return NULL;
	follow->options = *options;
	follow->newest_fd = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
	follow->newest = -1;
	return follow;
}

static void forget(struct follow *follow, struct known *known)
{
	HASH_DEL(follow->known, known);
	free(known);
}

void follow_free(struct follow *follow)
{
	struct known *known, *next;

	if (!follow)
		return;
	HASH_ITER(hh, follow->known, known, next) {
		forget(follow, known);
	}
	if (follow->newest_fd >= 0)
		close(follow->newest_fd);
	free(follow);
}

static struct known *find(const struct follow *follow, pid_t pid)
{
	struct known *known;

	HASH_FIND_INT(follow->known, &pid, known);
	return known;
}

static struct known *add(struct follow *follow, pid_t pid)
{
	struct known *known = calloc(1, sizeof(*known));

	if (!known)
		return NULL;
	known->pid = pid;
	HASH_ADD_INT(follow->known, pid, known);
	if (hash_added(&known->hh))
		return known;
	free(known);
	return NULL;
}

int follow_add(struct follow *follow, pid_t pid)
{
	struct known *known = find(follow, pid);

	if (!known)
		known = add(follow, pid);
	if (!known)
		return -ENOMEM;
	known->followed = known->told = true;
	return 0;
}

uint64_t follow_due(const struct follow *follow)
{
	return follow->due_ns;
}

/* The newest process id, from "0.00 0.00 0.00 1/123 ID"; -1 if it cannot be read. */
static long read_newest(const struct follow *follow)
{
	char text[128], *last;
	ssize_t length;

	if (follow->newest_fd < 0)
		return -1;
	length = pread(follow->newest_fd, text, sizeof(text) - 1, 0);
	if (length <= 0)
		return -1;
	text[length] = '\0';
	last = strrchr(text, ' ');
	return last ? strtol(last, NULL, 10) : -1;
}

/* Read what decides whether a process is followed: its parent and, with a pattern, its name. */
static void read_known(struct follow *follow, struct known *known)
{
	struct process process;

	known->read = !process_is_in_exec(known->pid);
	if (!known->read)
		return;
	if (!follow->options.pattern) {
		known->parent = process_parent(known->pid);
		return;
	}
	if (process_read(known->pid, &process))
		return;
	known->parent = process.parent_pid;
	known->kernel_thread = process.kernel_thread;
	known->followed |= !process.kernel_thread && process_matches(&process, follow->options.pattern);
	process_clear(&process);
}

static bool is_own(const struct follow *follow, pid_t pid)
{
	for (size_t i = 0; i < follow->options.own_pid_count; i++)
		if (follow->options.own_pids[i] == pid)
			return true;
	return pid == getpid();
}

/* List the processes that exist: add new ones, forget those that are gone. */
static int list(struct follow *follow, uint64_t now)
{
	struct known *known, *next;
	bool first = follow->listing == 0;
	DIR *proc = opendir("/proc");
	int error = 0;
	pid_t pid;

	if (!proc)
		return -errno;
	follow->listing++;
	while (!error && !(error = proc_file_next_id(proc, &pid)) && pid > 0) {
		if (is_own(follow, pid))
			continue;
		known = find(follow, pid);
		if (!known) {
			known = add(follow, pid);
			if (known && !first)
				known->young_until_ns = now + YOUNG_NS;
		}
		if (known)
			known->listing = follow->listing;
		else
			error = -ENOMEM;
	}
	closedir(proc);
	HASH_ITER(hh, follow->known, known, next) {
		if (!error && known->listing != follow->listing)
			forget(follow, known);
	}
	return error;
}

/* Read new and young processes; if thorough, all that may match the pattern after a change of name. */
static void read_all(struct follow *follow, uint64_t now, bool thorough)
{
	struct known *known, *next;

	follow->young_count = 0;
	HASH_ITER(hh, follow->known, known, next) {
		bool young = now < known->young_until_ns;
		bool again = thorough && follow->options.pattern && !known->kernel_thread;

		if (known->followed)
			continue;
		if (young || again || !known->read)
			read_known(follow, known);
		follow->young_count += young;
	}
}

static bool belongs(const struct follow *follow, const struct known *known)
{
	const struct known *parent;

	if (known->followed || (follow->options.orphans && known->parent == getpid()))
		return true;
	if (!follow->options.descendants)
		return false;
	parent = find(follow, known->parent);
	return parent && parent->told;
}

/* Report processes generation by generation. */
static void tell(struct follow *follow, follow_found *found, void *context)
{
	struct known *known, *next;
	bool any;

	do {
		any = false;
		HASH_ITER(hh, follow->known, known, next) {
			if (known->told || !belongs(follow, known))
				continue;
			known->followed = known->told = any = true;
			found(context, known->pid);
		}
	} while (any);
}

int follow_search(struct follow *follow, uint64_t now, follow_found *found, void *context)
{
	long newest = read_newest(follow);
	bool late = now >= follow->listing_due_ns;
	bool started = newest < 0 || newest != follow->newest;
	uint64_t begin = clock_now_ns(CLOCK_THREAD_CPUTIME_ID), cost;
	int error = 0;

	/* The id was read first: a process that starts during the listing causes another listing. */
	if (late || started)
		error = list(follow, now);
	if (!error)
		follow->newest = newest;
	if (late || started || follow->young_count) {
		read_all(follow, now, late);
		tell(follow, found, context);
	}
	cost = SHARE * (clock_now_ns(CLOCK_THREAD_CPUTIME_ID) - begin);
	follow->due_ns = now + (cost > INTERVAL_NS ? cost : INTERVAL_NS);
	if (late)
		follow->listing_due_ns = now + (cost > LISTING_NS ? cost : LISTING_NS);
	return error;
}

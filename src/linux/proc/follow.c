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
	pid_t reader; /* who waits for it; 0: nobody */
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
	struct errands *errands; /* with a pattern; NULL for want of memory, too */
	size_t ended_unread;     /* processes */
	/* CPU time of the last search: the helper's, and what the caller has used for what it serves. */
	uint64_t looks_ns, served_ns;
};

struct follow *follow_new(const struct follow_options *options)
{
	struct follow *follow = calloc(1, sizeof(*follow));

	if (!follow)
		return NULL;
	follow->options = *options;
	if (options->pattern) {
		follow->errands = errands_new();
		if (!follow->errands) {
			free(follow);
			return NULL;
		}
		errands_wait_as(follow->errands, options->waiter);
	}
	follow->newest_fd = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
	follow->newest = -1;
	return follow;
}

static void forget(struct follow *follow, struct known *known)
{
	HASH_DEL(follow->known, known);
	follow->ended_unread += known->reader != 0;
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
	errands_free(follow->errands);
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

/* Without a pattern, a process's parent decides whether it is followed. */
static void read_parent(struct known *known)
{
	known->read = !process_is_in_exec(known->pid);
	if (known->read)
		known->parent = process_parent(known->pid);
}

/* With a pattern, its name does, too. One that is gone, or not shown, is not read again. */
static void take_look(struct follow *follow, struct process_look *look)
{
	struct known *known = find(follow, look->pid);

	known->read = look->error != -EBUSY;
	if (look->error)
		return;
	known->parent = look->process.parent_pid;
	known->kernel_thread = look->process.kernel_thread;
	known->followed |= !look->process.kernel_thread &&
			   process_matches(&look->process, follow->options.pattern);
	process_clear(&look->process);
}

/*
 * Look at them up to the first that keeps its reader waiting, which takes half a second: the rest has its
 * turn at the next search.
 */
static void take_looks(struct follow *follow, struct process_look *looks, size_t count)
{
	const uint64_t begin_ns = clock_now_ns(CLOCK_THREAD_CPUTIME_ID);
	const size_t done = process_look_at(&follow->errands, looks, count);

	follow->served_ns = clock_now_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns;
	for (size_t i = 0; i < done; i++) {
		follow->looks_ns += looks[i].cpu_ns;
		take_look(follow, &looks[i]);
	}
	for (size_t i = done; i < count; i++)
		find(follow, looks[i].pid)->read = false;
	if (done < count && looks[done].error == -ETIMEDOUT)
		find(follow, looks[done].pid)->reader = looks[done].reader;
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

/* May it be read now? Whoever waited for it has waited in vain for as long as it waits. */
static bool is_readable(struct known *known)
{
	if (known->reader && !process_reader_waits(known->reader))
		known->reader = 0;
	return !known->reader;
}

/* Read new and young processes; if thorough, all that may match the pattern after a change of name. */
static int read_all(struct follow *follow, uint64_t now, bool thorough)
{
	const bool has_pattern = follow->options.pattern;
	struct process_look *looks = has_pattern ? calloc(HASH_COUNT(follow->known) + 1, sizeof(*looks))
						 : NULL;
	struct known *known, *next;
	size_t count = 0;

	if (has_pattern && !looks)
		return -ENOMEM;
	follow->young_count = 0;
	HASH_ITER(hh, follow->known, known, next) {
		bool young = now < known->young_until_ns;
		bool again = thorough && has_pattern && !known->kernel_thread;

		if (known->followed)
			continue;
		follow->young_count += young;
		if (!(young || again || !known->read) || !is_readable(known))
			continue;
		if (looks)
			looks[count++].pid = known->pid;
		else
			read_parent(known);
	}
	if (count)
		take_looks(follow, looks, count);
	free(looks);
	return 0;
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

	follow->looks_ns = follow->served_ns = 0;
	/* The id was read first: a process that starts during the listing causes another listing. */
	if (late || started)
		error = list(follow, now);
	if (!error)
		follow->newest = newest;
	if (late || started || follow->young_count) {
		const int unread = read_all(follow, now, late);

		if (!error)
			error = unread;
		tell(follow, found, context);
	}
	cost = clock_now_ns(CLOCK_THREAD_CPUTIME_ID) - begin - follow->served_ns + follow->looks_ns;
	cost *= SHARE;
	follow->due_ns = now + (cost > INTERVAL_NS ? cost : INTERVAL_NS);
	if (late)
		follow->listing_due_ns = now + (cost > LISTING_NS ? cost : LISTING_NS);
	return error;
}

size_t follow_unread(const struct follow *follow, pid_t *ret_pid)
{
	size_t count = follow->ended_unread;
	const struct known *known, *next;

	HASH_ITER(hh, follow->known, known, next) {
		if (!known->reader || known->followed)
			continue;
		count++;
		*ret_pid = known->pid;
	}
	return count;
}

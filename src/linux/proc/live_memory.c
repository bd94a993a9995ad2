/* SPDX-License-Identifier: MIT */
#include "src/linux/proc/live_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "memory/memory.h"
#include "src/linux/proc/process.h"
#include "src/linux/proc/resident.h"

/* Far more than anything reads at once, and far below the kernel's own limit per call. */
enum { CALL_BYTES_MAX = 1 << 30 };

enum {
	ANONYMOUS_KEPT = 4, /* a stack or two, and the parts of the heap in use */
};

struct extent {
	uint64_t begin, end;
};

/* How to read. */
enum method {
	METHOD_CALL, /* process_vm_readv() */
	METHOD_FILE, /* /proc/PID/mem */
};

struct live_memory {
	struct memory memory; /* first, so that a pointer to one points to the other */
	pid_t pid;
	pid_t tid; /* the thread used for reading: pid while that lives */
	enum method method;
	int fd;                  /* of /proc/PID/mem, -1 if not open */
	const struct maps *maps; /* NULL before live_memory_beware() */
	struct errands *errands;
	int pages_fd;                            /* of /proc/PID/pagemap, or a negative errno */
	struct extent anonymous[ANONYMOUS_KEPT]; /* the last ones read that have no file behind them */
	size_t anonymous_next;
	uint64_t bytes_since_pause;
	struct iovec local[IOV_MAX], remote[IOV_MAX];
};

static enum memory_status status_of_errno(int error)
{
	switch (error) {
	case EFAULT:
	case EIO:
	case EINVAL: return MEMORY_UNMAPPED;
	case ESRCH:
	case ENOENT: return MEMORY_GONE;
	default: return MEMORY_REFUSED;
	}
}

static bool range_is_sane(const struct memory_range *range)
{
	return range->length <= CALL_BYTES_MAX && range->address <= (uint64_t)INT64_MAX - range->length;
}

static int open_file(struct live_memory *live)
{
	char path[sizeof("/proc//mem") + 3 * sizeof(int)];

	if (live->fd >= 0)
		return 0;
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)live->tid);
	live->fd = open(path, O_RDONLY | O_CLOEXEC);
	return live->fd >= 0 ? 0 : -errno;
}

static enum memory_status read_range_from_file(const struct live_memory *live,
					       const struct memory_range *range)
{
	size_t done = 0;

	while (done < range->length) {
		ssize_t n = pread(live->fd, (char *)range->copy + done, range->length - done,
				  (off_t)(range->address + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return status_of_errno(errno);
		if (n == 0) /* the address space is gone */
			return MEMORY_GONE;
		done += (size_t)n;
	}
	return MEMORY_OK;
}

static void read_from_file(struct live_memory *live, struct memory_range *ranges, size_t count)
{
	int error = open_file(live);

	for (size_t i = 0; i < count; i++) {
		struct memory_range *range = &ranges[i];

		if (range->length == 0)
			range->status = MEMORY_OK;
		else if (!range_is_sane(range))
			range->status = MEMORY_UNMAPPED;
		else if (error)
			range->status = status_of_errno(-error);
		else
			range->status = read_range_from_file(live, range);
	}
}

/*
 * Collect ranges from *next on into the vectors of one call. Returns how many;
 * *next is then the first range left. Sets the status of ranges that need no call.
 */
static size_t fill_vectors(struct live_memory *live, struct memory_range *ranges, size_t count, size_t *next,
			   struct memory_range **batch)
{
	size_t filled = 0, bytes = 0;

	for (; *next < count && filled < IOV_MAX; (*next)++) {
		struct memory_range *range = &ranges[*next];

		if (range->length == 0) {
			range->status = MEMORY_OK;
			continue;
		}
		if (!range_is_sane(range)) {
			range->status = MEMORY_UNMAPPED;
			continue;
		}
		if (bytes + range->length > CALL_BYTES_MAX)
			break;
		bytes += range->length;
		live->local[filled] = (struct iovec){ range->copy, range->length };
		/* An address in the target; ljspy never dereferences it. */
		live->remote[filled] = (struct iovec){ (void *)(uintptr_t)range->address, range->length };
		batch[filled++] = range;
	}
	return filled;
}

/*
 * Read a batch. A range that fails ends the transfer and costs one more call for the
 * ranges behind it. 0, or a negative errno of the whole batch: then ranges from
 * *ret_done on have no status yet.
 */
static int read_batch(struct live_memory *live, struct memory_range **batch, size_t count, size_t *ret_done)
{
	size_t at = 0;

	while (at < count) {
		ssize_t n = process_vm_readv(live->tid, live->local + at, count - at, live->remote + at,
					     count - at, 0);
		size_t left;

		if (n < 0 && errno != EFAULT) {
			*ret_done = at;
			return -errno;
		}
		left = n < 0 ? 0 : (size_t)n;
		while (at < count && left >= batch[at]->length) {
			left -= batch[at]->length;
			batch[at++]->status = MEMORY_OK;
		}
		/* The kernel may have copied the first pages of the range that failed. */
		if (at < count)
			batch[at++]->status = MEMORY_UNMAPPED;
	}
	*ret_done = count;
	return 0;
}

/* The index of the first range for which the call failed as a whole, or count. */
static size_t read_by_call(struct live_memory *live, struct memory_range *ranges, size_t count,
			   int *ret_error)
{
	struct memory_range *batch[IOV_MAX];
	size_t next = 0;

	while (next < count) {
		size_t filled = fill_vectors(live, ranges, count, &next, batch), done;
		int error = read_batch(live, batch, filled, &done);

		if (error) {
			*ret_error = error;
			return (size_t)(batch[done] - ranges);
		}
	}
	return count;
}

static void read_ranges(struct live_memory *live, struct memory_range *ranges, size_t count)
{
	size_t done = 0;
	int error = 0;

	if (live->method == METHOD_CALL) {
		done = read_by_call(live, ranges, count, &error);
		if (done == count)
			return;
		/* The call may be missing or forbidden by a filter while the file is allowed. */
		if (error != -ENOSYS && error != -EPERM) {
			for (; done < count; done++)
				ranges[done].status = ranges[done].length ? status_of_errno(-error)
									  : MEMORY_OK;
			return;
		}
	}
	read_from_file(live, ranges + done, count - done);
	if (live->fd >= 0)
		live->method = METHOD_FILE;
}

/* Memory cannot be read through a thread that has ended; choose one that still has it. */
static bool choose_other_thread(struct live_memory *live)
{
	pid_t tid = process_thread_with_memory(live->pid);

	if (tid == 0 || tid == live->tid)
		return false;
	live->tid = tid;
	if (live->fd >= 0)
		close(live->fd);
	live->fd = -1;
	return true;
}

/*---- Reads that may have to wait ----*/

static bool is_known_anonymous(const struct live_memory *live, uint64_t begin, uint64_t end)
{
	for (size_t i = 0; i < ANONYMOUS_KEPT; i++)
		if (live->anonymous[i].begin <= begin && end <= live->anonymous[i].end)
			return true;
	return false;
}

/* By the maps, is the range mapped, and no file behind any part of it? Then remember it. */
static bool is_anonymous(struct live_memory *live, uint64_t begin, uint64_t end)
{
	uint64_t at = begin;

	if (is_known_anonymous(live, begin, end))
		return true;
	while (at < end) {
		const struct mapping *mapping = maps_find(live->maps, at);

		if (!mapping || mapping->inode)
			return false;
		at = mapping->end;
	}
	live->anonymous[live->anonymous_next++ % ANONYMOUS_KEPT] = (struct extent){ begin, at };
	return true;
}

static bool is_present(const struct live_memory *live, uint64_t begin, uint64_t end)
{
	const uint64_t page = memory_page_size();
	uint64_t at = begin / page * page, found, found_end;

	end = (end + page - 1) / page * page;
	return resident_next(live->pages_fd, &at, end, &found, &found_end) && found <= begin &&
	       found_end >= end;
}

/*
 * A page that is not in memory comes from a file, or from who has registered it with userfaultfd(2) and may
 * never answer. Memory without a file hardly ever waits: who serves tracees saves the time to ask whether it
 * is there, as the engine ends if it has to wait (src/apart/blocked.h). If ljspy cannot know whether a page
 * of a file is in memory, it assumes so when it may not wait.
 */
static bool may_wait_for_page(struct live_memory *live, const struct memory_range *range)
{
	uint64_t end = range->address + range->length;

	if (range->length == 0 || !range_is_sane(range))
		return false;
	if (is_anonymous(live, range->address, end) &&
	    (live->pages_fd < 0 || !errands_serve_nobody(live->errands)))
		return false;
	if (live->pages_fd < 0)
		return errands_may_wait(live->errands);
	return !is_present(live, range->address, end);
}

struct patient_read {
	pid_t tid;
	uint64_t address;
	size_t length;
	enum memory_status status;
	unsigned char bytes[];
};

static void read_patiently(void *arguments)
{
	struct patient_read *read = arguments;
	struct memory_range range = { .address = read->address, .copy = read->bytes, .length = read->length };
	struct live_memory *live = live_memory_new(read->tid);

	read->status = MEMORY_NOT_CAPTURED;
	if (!live)
		return;
	read_ranges(live, &range, 1);
	read->status = range.status;
	live_memory_free(live);
}

static void read_by_errand(const struct live_memory *live, struct memory_range *range)
{
	size_t size = sizeof(struct patient_read) + range->length;
	struct patient_read *read = errands_may_wait(live->errands) ? malloc(size) : NULL;

	range->status = MEMORY_NOT_CAPTURED;
	if (!read)
		return;
	*read = (struct patient_read){ .tid = live->tid, .address = range->address, .length = range->length };
	if (errands_run(live->errands, read_patiently, NULL, read, size))
		range->status = read->status;
	if (range->status == MEMORY_OK)
		memcpy(range->copy, read->bytes, range->length);
	free(read);
}

static void read_bewaring(struct live_memory *live, struct memory_range *ranges, size_t count)
{
	size_t begin = 0;

	if (!live->maps) {
		read_ranges(live, ranges, count);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		if (!may_wait_for_page(live, &ranges[i]))
			continue;
		read_ranges(live, ranges + begin, i - begin);
		read_by_errand(live, &ranges[i]);
		begin = i + 1;
	}
	read_ranges(live, ranges + begin, count - begin);
}

/*
 * Searches read gigabytes, one piece after the other. False if this one is abandoned: nothing more is read
 * then.
 */
static bool pause_before(struct live_memory *live, const struct memory_range *ranges, size_t count)
{
	uint64_t length = 0;

	for (size_t i = 0; i < count; i++)
		length += ranges[i].length;
	return errands_pause_before(live->errands, &live->bytes_since_pause, length);
}

static void live_read_ranges(struct memory *memory, struct memory_range *ranges, size_t count)
{
	struct live_memory *live = (struct live_memory *)memory;

	if (!pause_before(live, ranges, count)) {
		for (size_t i = 0; i < count; i++)
			ranges[i].status = MEMORY_NOT_CAPTURED;
		return;
	}
	read_bewaring(live, ranges, count);
	for (size_t i = 0; i < count; i++) {
		if (ranges[i].status != MEMORY_GONE)
			continue;
		if (choose_other_thread(live))
			read_bewaring(live, ranges, count);
		return;
	}
}

struct live_memory *live_memory_new(pid_t pid)
{
	struct live_memory *live = calloc(1, sizeof(*live));

	if (!live)
		return NULL;
	live->memory.read_ranges = live_read_ranges;
	live->pid = live->tid = pid;
	live->fd = live->pages_fd = -1;
	return live;
}

void live_memory_free(struct live_memory *live)
{
	if (!live)
		return;
	if (live->fd >= 0)
		close(live->fd);
	if (live->pages_fd >= 0)
		close(live->pages_fd);
	free(live);
}

void live_memory_beware(struct live_memory *live, const struct maps *maps, struct errands *errands)
{
	live->maps = maps;
	live->errands = errands;
	live->pages_fd = resident_open(live->pid);
}

void live_memory_forget_maps(struct live_memory *live)
{
	memset(live->anonymous, 0, sizeof(live->anonymous));
}

struct memory *live_memory_memory(struct live_memory *live)
{
	return &live->memory;
}

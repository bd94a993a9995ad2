#include "src/linux/proc/live_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

#include "src/linux/proc/process.h"

/* Far more than anything reads at once, and far below the kernel's own limit per call. */
enum { CALL_BYTES_MAX = 1 << 30 };

struct live_memory {
	struct memory memory;	/* first, so that one is the other */
	pid_t pid;
	pid_t tid;		/* of the thread by which it is read: pid while that lives */
	enum live_memory_method method;
	int fd;			/* of /proc/PID/mem, -1 if not open */
	struct iovec local[IOV_MAX], remote[IOV_MAX];
};

static enum memory_status status_of_errno(int error)
{
	switch (error) {
	case EFAULT:
	case EIO:
	case EINVAL:
		return MEMORY_UNMAPPED;
	case ESRCH:
	case ENOENT:
		return MEMORY_GONE;
	default:
		return MEMORY_REFUSED;
	}
}

static bool range_is_sane(const struct memory_range *range)
{
	return range->length <= CALL_BYTES_MAX &&
	       range->address <= (uint64_t)INT64_MAX - range->length;
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
		if (n == 0)	/* the address space is gone */
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
 * Collect ranges from *next on into one call's vectors. Returns how many;
 * *next is then the first range not looked at. Ranges that need no call get
 * their status here.
 */
static size_t fill_vectors(struct live_memory *live, struct memory_range *ranges, size_t count,
			   size_t *next, struct memory_range **batch)
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
		/* An address of the target, never followed here. */
		live->remote[filled] = (struct iovec){ (void *)(uintptr_t)range->address, range->length };
		batch[filled++] = range;
	}
	return filled;
}

/*
 * Read a batch; a range that fails cuts the transfer short and costs one more
 * call for those behind it. 0, or a negative errno that speaks for the whole batch:
 * then nothing is known of ranges from *ret_done on.
 */
static int read_batch(struct live_memory *live, struct memory_range **batch, size_t count,
		      size_t *ret_done)
{
	size_t at = 0;

	while (at < count) {
		ssize_t n = process_vm_readv(live->tid, live->local + at, count - at,
					     live->remote + at, count - at, 0);
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
		/* The kernel may have copied the first pages of the one that failed. */
		if (at < count)
			batch[at++]->status = MEMORY_UNMAPPED;
	}
	*ret_done = count;
	return 0;
}

/* The index in ranges of the first one that the call could not be used for, or count. */
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

	if (live->method == LIVE_MEMORY_CALL) {
		done = read_by_call(live, ranges, count, &error);
		if (done == count)
			return;
		/* The call may be missing, or forbidden by a filter, where the file is not. */
		if (error != -ENOSYS && error != -EPERM) {
			for (; done < count; done++)
				ranges[done].status = ranges[done].length ? status_of_errno(-error) : MEMORY_OK;
			return;
		}
	}
	read_from_file(live, ranges + done, count - done);
	if (live->fd >= 0)
		live->method = LIVE_MEMORY_FILE;
}

/* The memory of a thread that has ended cannot be reached, though others still have it. */
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

static void live_read_ranges(struct memory *memory, struct memory_range *ranges, size_t count)
{
	struct live_memory *live = (struct live_memory *)memory;

	read_ranges(live, ranges, count);
	for (size_t i = 0; i < count; i++) {
		if (ranges[i].status != MEMORY_GONE)
			continue;
		if (choose_other_thread(live))
			read_ranges(live, ranges, count);
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
	live->fd = -1;
	return live;
}

void live_memory_free(struct live_memory *live)
{
	if (!live)
		return;
	if (live->fd >= 0)
		close(live->fd);
	free(live);
}

struct memory *live_memory_memory(struct live_memory *live)
{
	return &live->memory;
}

enum live_memory_method live_memory_method(const struct live_memory *live)
{
	return live->method;
}

/* SPDX-License-Identifier: MIT */
#include "src/linux/proc/resident.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "memory/memory.h"

enum {
	ENTRIES_AT_ONCE = 4096,
};

/*
 * Documentation/admin-guide/mm/pagemap.rst: bit 63 present, 62 swapped, 61 of a file or shared, 55
 * soft-dirty.
 */
static const uint64_t content_bits = UINT64_C(3) << 62, swapped_bit = UINT64_C(1) << 62,
		      file_bit = UINT64_C(1) << 61, soft_dirty_bit = UINT64_C(1) << 55;

int resident_open(pid_t pid)
{
	char path[sizeof("/proc//pagemap") + 3 * sizeof(int)];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 ? fd : -errno;
}

static bool has_content(uint64_t entry)
{
	return entry & content_bits;
}

/* What was dropped without a write reads as something else, too. */
static bool may_differ(uint64_t entry)
{
	return (entry & soft_dirty_bit) || !has_content(entry);
}

/* The kernel drops pages of files, and swaps out only those of memory. */
static bool is_private(uint64_t entry)
{
	return (entry & swapped_bit) || (has_content(entry) && !(entry & file_bit));
}

/* Find the next run of pages whose entries are wanted. */
static bool next_wanted(int fd, bool (*wanted_entry)(uint64_t entry), uint64_t *at, uint64_t end,
			uint64_t *ret_begin, uint64_t *ret_end)
{
	const uint64_t page = memory_page_size();
	uint64_t entries[ENTRIES_AT_ONCE], begin = *at;
	bool found = false;

	while (*at < end) {
		uint64_t wanted = (end - *at) / page, count;
		ssize_t length;

		wanted = wanted < ENTRIES_AT_ONCE ? wanted : ENTRIES_AT_ONCE;
		length = pread(fd, entries, wanted * sizeof(entries[0]),
			       (off_t)(*at / page * sizeof(entries[0])));
		count = length > 0 ? (uint64_t)length / sizeof(entries[0]) : 0;
		if (count == 0) {
			begin = found ? begin : *at;
			*at = end;
			found = true;
			break;
		}
		for (uint64_t i = 0; i < count; i++) {
			const bool is_wanted = wanted_entry(entries[i]);

			if (found && !is_wanted)
				goto done;
			if (is_wanted && !found) {
				begin = *at;
				found = true;
			}
			*at += page;
		}
	}
done:
	if (!found)
		return false;
	*ret_begin = begin;
	*ret_end = *at;
	return true;
}

bool resident_next(int fd, uint64_t *at, uint64_t end, uint64_t *ret_begin, uint64_t *ret_end)
{
	return next_wanted(fd, has_content, at, end, ret_begin, ret_end);
}

bool resident_next_written(int fd, uint64_t *at, uint64_t end, uint64_t *ret_begin, uint64_t *ret_end)
{
	return next_wanted(fd, may_differ, at, end, ret_begin, ret_end);
}

bool resident_next_private(int fd, uint64_t *at, uint64_t end, uint64_t *ret_begin, uint64_t *ret_end)
{
	return next_wanted(fd, is_private, at, end, ret_begin, ret_end);
}

/* The kernel marks all pages of a new mapping, if it marks any. */
static bool marks_own_page(int fd)
{
	const uint64_t size = memory_page_size();
	void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t entry = 0;
	ssize_t length;

	if (page == MAP_FAILED)
		return false;
	*(volatile char *)page = 1;
	length = pread(fd, &entry, sizeof(entry), (off_t)((uintptr_t)page / size * sizeof(entry)));
	munmap(page, size);
	return length == (ssize_t)sizeof(entry) && (entry & soft_dirty_bit);
}

bool resident_has_marks(void)
{
	int fd = resident_open(getpid());
	bool has_marks = fd >= 0 && marks_own_page(fd);

	if (fd >= 0)
		close(fd);
	return has_marks;
}

bool resident_clear_marks(pid_t pid)
{
	static const char soft_dirty[] = "4";
	char path[sizeof("/proc//clear_refs") + 3 * sizeof(int)];
	bool cleared;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/clear_refs", (int)pid);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	cleared = fd >= 0 && write(fd, soft_dirty, 1) == 1;
	if (fd >= 0)
		close(fd);
	return cleared;
}

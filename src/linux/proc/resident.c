/* SPDX-License-Identifier: MIT */
#include "src/linux/proc/resident.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum {
	PAGE_BYTES = 4096,
	ENTRIES_AT_ONCE = 4096,
};

/* Documentation/admin-guide/mm/pagemap.rst: bit 63 present, bit 62 swapped. */
static const uint64_t content_bits = UINT64_C(3) << 62;

int resident_open(pid_t pid)
{
	char path[sizeof("/proc//pagemap") + 3 * sizeof(int)];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 ? fd : -errno;
}

bool resident_next(int fd, uint64_t *at, uint64_t end, uint64_t *ret_begin, uint64_t *ret_end)
{
	uint64_t entries[ENTRIES_AT_ONCE], begin = *at;
	bool found = false;

	while (*at < end) {
		uint64_t wanted = (end - *at) / PAGE_BYTES, count;
		ssize_t length;

		wanted = wanted < ENTRIES_AT_ONCE ? wanted : ENTRIES_AT_ONCE;
		length = pread(fd, entries, wanted * sizeof(entries[0]),
			       (off_t)(*at / PAGE_BYTES * sizeof(entries[0])));
		count = length > 0 ? (uint64_t)length / sizeof(entries[0]) : 0;
		if (count == 0) {
			begin = found ? begin : *at;
			*at = end;
			found = true;
			break;
		}
		for (uint64_t i = 0; i < count; i++) {
			bool has_content = entries[i] & content_bits;

			if (found && !has_content)
				goto done;
			if (has_content && !found) {
				begin = *at;
				found = true;
			}
			*at += PAGE_BYTES;
		}
	}
done:
	if (!found)
		return false;
	*ret_begin = begin;
	*ret_end = *at;
	return true;
}

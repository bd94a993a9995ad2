/* SPDX-License-Identifier: MIT */
#include "src/linux/pages/page_runs.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "memory/array.h"
#include "memory/memory.h"

enum { ENTRIES_AT_ONCE = 4096 };

static const uint64_t bit_present = UINT64_C(1) << 63, bit_file = UINT64_C(1) << 61,
		      bit_exclusive = UINT64_C(1) << 56;

void page_runs_clear(struct page_runs *runs)
{
	free(runs->runs);
	*runs = (struct page_runs){ .runs = NULL };
}

int page_runs_add(struct page_runs *runs, uint64_t begin, uint64_t end, bool exclusive)
{
	struct page_run *last = runs->count ? &runs->runs[runs->count - 1] : NULL;
	struct page_run *moved;

	if (last && last->end == begin && last->exclusive == exclusive) {
		last->end = end;
		return 0;
	}
	moved = array_grow(runs->runs, &runs->room, runs->count + 1, sizeof(*moved));
	if (!moved)
		return -ENOMEM;
	runs->runs = moved;
	runs->runs[runs->count++] = (struct page_run){ begin, end, exclusive };
	return 0;
}

/*
 * The page of zeros is present, of no file, and not exclusive. So is a page that a
 * process shares with its parent since the fork.
 */
static bool counts(uint64_t entry, bool has_shared_pages)
{
	return (entry & bit_present) && (has_shared_pages || (entry & (bit_file | bit_exclusive)));
}

int page_runs_read(struct page_runs *runs, int pagemap, uint64_t begin, uint64_t end, bool has_shared_pages)
{
	const uint64_t page = memory_page_size();
	uint64_t entries[ENTRIES_AT_ONCE];

	while (begin < end) {
		uint64_t wanted = (end - begin) / page;
		ssize_t length;

		wanted = wanted < ENTRIES_AT_ONCE ? wanted : ENTRIES_AT_ONCE;
		length = pread(pagemap, entries, wanted * sizeof(entries[0]),
			       (off_t)(begin / page * sizeof(entries[0])));
		if (length < (ssize_t)sizeof(entries[0]))
			return length < 0 ? -errno : -ESRCH;
		for (size_t i = 0; i < (size_t)length / sizeof(entries[0]); i++, begin += page)
			if (counts(entries[i], has_shared_pages) &&
			    page_runs_add(runs, begin, begin + page, entries[i] & bit_exclusive))
				return -ENOMEM;
	}
	return 0;
}

const struct page_run *page_runs_from(const struct page_runs *runs, uint64_t address)
{
	size_t low = 0, high = runs->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (runs->runs[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < runs->count ? &runs->runs[low] : NULL;
}

struct page_sum page_runs_sum(const struct page_runs *runs, uint64_t begin, uint64_t end)
{
	const struct page_run *run = page_runs_from(runs, begin),
			      *last = run ? runs->runs + runs->count : NULL;
	struct page_sum sum = { 0, 0 };

	for (; run && run < last && run->begin < end; run++) {
		uint64_t from = run->begin > begin ? run->begin : begin;
		uint64_t to = run->end < end ? run->end : end;

		*(run->exclusive ? &sum.exclusive : &sum.shared) += to - from;
	}
	return sum;
}

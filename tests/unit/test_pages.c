/* SPDX-License-Identifier: MIT */
/* What of a process's memory is there, by smaps and pagemap, of made-up texts and of this process. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/linux/pages/page_runs.h"
#include "src/linux/pages/smaps.h"
#include "src/linux/proc/maps.h"
#include "src/linux/proc/proc_file.h"
#include "tests/unit/instead_of.h"

INSTEAD_OF(proc_file_open);
INSTEAD_OF(malloc);
INSTEAD_OF(calloc);
INSTEAD_OF(realloc);
INSTEAD_OF(reallocarray);
#define FAILING_REALLOCARRAY
#include "tests/unit/failing_allocation.h"

enum { PAGE = PAGE_RUNS_PAGE };

#define PRESENT (UINT64_C(1) << 63)
#define SWAPPED (UINT64_C(1) << 62)
#define OF_FILE (UINT64_C(1) << 61)
#define EXCLUSIVE (UINT64_C(1) << 56)

/*---- smaps ----*/

static const char text[] = "10000-14000 r-xp 00000000 08:01 77 /usr/bin/app\n"
			   "Size:                 16 kB\n"
			   "Rss:                  12 kB\n"
			   "Pss:                   5 kB\n"
			   "Shared_Clean:          8 kB\n"
			   "Shared_Dirty:          2 kB\n"
			   "Swap:                  1 kB\n"
			   "SwapPss:             900 kB\n"
			   "VmFlags: rd ex mr mw me\n"
			   "20000-40000 rw-p 00000000 00:00 0 [heap]\n"
			   "Rss:                 100 kB\n"
			   "Pss:                 100 kB\n"
			   "Shared_Hugetlb:     2048 kB\n"
			   "Private_Hugetlb:    4096 kB\n";

static struct smaps parse(const char *from)
{
	struct smaps smaps;

	assert_int_equal(smaps_parse(from, strlen(from), &smaps), 0);
	return smaps;
}

static void figures_belong_to_the_mapping_above(void **state)
{
	struct smaps smaps = parse(text);

	(void)state;
	assert_int_equal(maps_count(smaps.maps), 2);
	assert_int_equal(smaps.figures[0].rss, 12 << 10);
	assert_int_equal(smaps.figures[0].pss, 5 << 10);
	assert_int_equal(smaps.figures[0].shared, 10 << 10);
	assert_int_equal(smaps.figures[0].swap, 1 << 10);
	assert_int_equal(smaps.figures[0].hugetlb, 0);
	assert_int_equal(smaps.figures[1].rss, 100 << 10);
	assert_int_equal(smaps.figures[1].shared, 0);
	assert_int_equal(smaps.figures[1].hugetlb, 6144 << 10);
	assert_int_equal(smaps.total.rss, 112 << 10);
	assert_int_equal(smaps.total.pss, 105 << 10);
	assert_int_equal(smaps.total.shared, 10 << 10);
	assert_int_equal(smaps.total.swap, 1 << 10);
	assert_int_equal(smaps.total.hugetlb, 6144 << 10);
	smaps_clear(&smaps);
	assert_null(smaps.maps);
}

/* An address begins with any of the sixteen digits. */
static void a_mapping_may_be_at_any_address(void **state)
{
	(void)state;
	for (const char *digit = "0123456789abcdef"; *digit; digit++) {
		struct smaps smaps;
		char two[256];

		snprintf(two, sizeof(two),
			 "00001000-00002000 r-xp 00000000 08:01 77 /a\nRss: 7 kB\n"
			 "%c0004000-%c0005000 rw-p 00000000 00:00 0 \nRss: 3 kB\n",
			 *digit, *digit);
		smaps = parse(two);
		assert_int_equal(maps_count(smaps.maps), 2);
		assert_int_equal(smaps.figures[0].rss, 7 << 10);
		assert_int_equal(smaps.figures[1].rss, 3 << 10);
		smaps_clear(&smaps);
	}
}

static void what_has_no_mapping_counts_nowhere(void **state)
{
	struct smaps smaps = parse(
		"Rss: 4 kB\n10000-14000 r-xp 00000000 08:01 77 /a\nRss: 7 kB\nRss:\nPss: 3 kB");

	(void)state;
	assert_int_equal(smaps.total.rss, 7 << 10);
	assert_int_equal(smaps.total.pss, 0); /* half a line */
	smaps_clear(&smaps);
}

/* The text with a part of it replaced by one of the same length. */
static bool equals_with(const char *old, const char *new)
{
	char other[sizeof(text)];
	struct smaps left = parse(text), right;
	bool equal;

	memcpy(other, text, sizeof(text));
	assert_int_equal(strlen(old), strlen(new));
	memcpy(strstr(other, old), new, strlen(old));
	right = parse(other);
	equal = smaps_are_equal(&left, &right);
	smaps_clear(&left);
	smaps_clear(&right);
	return equal;
}

static void another_mapping_or_size_is_a_change(void **state)
{
	struct smaps whole = parse(text), half;

	(void)state;
	assert_true(equals_with("Pss:                   5", "Pss:                   4"));
	assert_false(equals_with("Rss:                  12", "Rss:                  11"));
	assert_false(equals_with("Rss:                 100", "Rss:                 104"));
	assert_false(equals_with("10000-14000", "11000-14000"));
	assert_false(equals_with("10000-14000", "10000-13000"));
	assert_false(equals_with("r-xp", "r--p"));
	half = parse("10000-14000 r-xp 00000000 08:01 77 /usr/bin/app\nRss: 12 kB\n");
	assert_false(smaps_are_equal(&half, &whole));
	smaps_clear(&half);
	smaps_clear(&whole);
}

/* An own mapping of some pages, of which the first ones are written. */
static char *map_pages(size_t pages, size_t written)
{
	char *at = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(at, MAP_FAILED);
	memset(at, 1, written * PAGE);
	return at;
}

static void this_process_has_what_it_wrote(void **state)
{
	char *at = map_pages(64, 40);
	struct smaps smaps;
	const struct mapping *mapping;
	pid_t child;
	int status;

	(void)state;
	assert_int_equal(smaps_read(getpid(), &smaps), 0);
	mapping = maps_find(smaps.maps, (uint64_t)(uintptr_t)at);
	assert_non_null(mapping);
	assert_true(smaps.figures[mapping - maps_at(smaps.maps, 0)].rss >= 40 * PAGE);
	assert_true(smaps.total.rss >= 40 * PAGE);
	assert_true(smaps.total.rss < UINT64_C(1) << 40);
	smaps_clear(&smaps);
	munmap(at, 64 * PAGE);
	/* One that has ended has no memory. */
	child = fork();
	if (child == 0)
		_exit(0);
	assert_int_equal(waitid(P_PID, (id_t)child, NULL, WEXITED | WNOWAIT), 0);
	assert_int_equal(smaps_read(child, &smaps), -ESRCH);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_not_equal(smaps_read(child, &smaps), 0);
}

/* The file that is read in place of smaps; -1: smaps itself. */
static int smaps_instead = -1;

int __wrap_proc_file_open(pid_t pid, const char *name)
{
	return smaps_instead < 0 || strcmp(name, "smaps") != 0 ? __real_proc_file_open(pid, name)
							       : dup(smaps_instead);
}

/* Its last line counts, whatever is read at once. */
static void a_file_of_any_length_is_read_whole(void **state)
{
	enum { AT_ONCE = 1 << 16, LONGEST = 3 * AT_ONCE, NEAR = 2 };
	static const char first[] = "10000-14000 r-xp 00000000 08:01 77 /a\n", last[] = "Rss: 7 kB\n";
	char *whole = malloc(LONGEST);

	(void)state;
	assert_non_null(whole);
	for (size_t times = 1; times <= 2; times++)
		for (size_t length = times * AT_ONCE - NEAR; length <= times * AT_ONCE + NEAR; length++) {
			struct smaps smaps;

			memset(whole, 'X', length);
			memcpy(whole, first, sizeof(first) - 1);
			whole[length - strlen(last) - 1] = '\n';
			memcpy(whole + length - (sizeof(last) - 1), last, sizeof(last) - 1);
			smaps_instead = memfd_create("smaps", MFD_CLOEXEC);
			assert_int_equal(pwrite(smaps_instead, whole, length, 0), length);
			assert_int_equal(smaps_read(getpid(), &smaps), 0);
			assert_int_equal(smaps.total.rss, 7 << 10);
			smaps_clear(&smaps);
			close(smaps_instead);
		}
	smaps_instead = -1;
	free(whole);
}

/* One that is too large for any machine does not become a small one. */
static void figures_do_not_overflow(void **state)
{
	struct smaps smaps = parse("10000-14000 r-xp 00000000 08:01 77 /a\n"
				   "Rss: 18446744073709551616 kB\n"
				   "Pss: 281474976710655 kB\n"
				   "Swap: 28147497671065 kB\n");

	(void)state;
	assert_true(smaps.total.rss >= UINT64_C(281474976710655) << 10);
	assert_true(smaps.total.pss == UINT64_C(281474976710655) << 10);
	assert_true(smaps.total.swap == UINT64_C(28147497671065) << 10);
	smaps_clear(&smaps);
}

/*---- pagemap ----*/

static int made_up_pagemap(const uint64_t *entries, size_t count, size_t first)
{
	int fd = memfd_create("pagemap", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, entries, count * sizeof(entries[0]), (off_t)(first * sizeof(entries[0]))),
			 count * sizeof(entries[0]));
	return fd;
}

static void check_run(const struct page_runs *runs, size_t index, uint64_t begin, uint64_t end,
		      bool exclusive)
{
	assert_true(index < runs->count);
	assert_int_equal(runs->runs[index].begin, begin * PAGE);
	assert_int_equal(runs->runs[index].end, end * PAGE);
	assert_int_equal(runs->runs[index].exclusive, exclusive);
}

static void pages_in_memory_are_runs(void **state)
{
	const uint64_t entries[] = { PRESENT | EXCLUSIVE, PRESENT | EXCLUSIVE,
				     PRESENT | OF_FILE,   0,
				     SWAPPED | EXCLUSIVE, PRESENT,
				     PRESENT | OF_FILE };
	int fd = made_up_pagemap(entries, 7, 16);
	struct page_runs runs = { .count = 0 };

	(void)state;
	assert_int_equal(page_runs_read(&runs, fd, 16 * PAGE, 23 * PAGE, false), 0);
	assert_int_equal(runs.count, 3);
	check_run(&runs, 0, 16, 18, true);
	check_run(&runs, 1, 18, 19, false);
	check_run(&runs, 2, 22, 23, false);
	page_runs_clear(&runs);
	assert_int_equal(runs.count, 0);
	/* Where others have pages, one of nothing and of no file may be theirs. */
	assert_int_equal(page_runs_read(&runs, fd, 16 * PAGE, 23 * PAGE, true), 0);
	assert_int_equal(runs.count, 3);
	check_run(&runs, 2, 21, 23, false);
	page_runs_clear(&runs);
	/* Beyond the end there is nothing to read. */
	assert_int_equal(page_runs_read(&runs, fd, 16 * PAGE, 24 * PAGE, true), -ESRCH);
	page_runs_clear(&runs);
	assert_int_equal(page_runs_read(&runs, -1, 16 * PAGE, 24 * PAGE, true), -EBADF);
	close(fd);
}

static void many_pages_are_read_in_turns(void **state)
{
	enum { COUNT = 10000 };
	static uint64_t entries[COUNT];
	struct page_runs runs = { .count = 0 };
	int fd;

	(void)state;
	for (size_t i = 0; i < COUNT; i++)
		entries[i] = i == 5000 ? 0 : PRESENT | EXCLUSIVE;
	fd = made_up_pagemap(entries, COUNT, 0);
	assert_int_equal(page_runs_read(&runs, fd, 0, (uint64_t)COUNT * PAGE, false), 0);
	assert_int_equal(runs.count, 2);
	check_run(&runs, 0, 0, 5000, true);
	check_run(&runs, 1, 5001, COUNT, true);
	page_runs_clear(&runs);
	close(fd);
}

static void without_memory_for_a_run_there_is_none(void **state)
{
	const uint64_t entry = PRESENT | EXCLUSIVE;
	struct page_runs runs = { .count = 0 };
	int fd = made_up_pagemap(&entry, 1, 16);

	(void)state;
	allocation_fails_after(0);
	assert_int_equal(page_runs_read(&runs, fd, 16 * PAGE, 17 * PAGE, false), -ENOMEM);
	assert_true(allocation_failed());
	allocation_fails_after(0);
	assert_int_equal(page_runs_add(&runs, 16 * PAGE, 17 * PAGE, true), -ENOMEM);
	assert_true(allocation_failed());
	assert_int_equal(runs.count, 0);
	assert_int_equal(page_runs_read(&runs, fd, 16 * PAGE, 17 * PAGE, false), 0);
	check_run(&runs, 0, 16, 17, true);
	page_runs_clear(&runs);
	close(fd);
}

static void runs_are_found_and_added_up(void **state)
{
	struct page_runs runs = { .count = 0 };
	struct page_sum sum;

	(void)state;
	assert_null(page_runs_from(&runs, 0));
	sum = page_runs_sum(&runs, 0, UINT64_MAX);
	assert_int_equal(sum.exclusive + sum.shared, 0);
	assert_int_equal(page_runs_add(&runs, 10 * PAGE, 12 * PAGE, true), 0);
	assert_int_equal(page_runs_add(&runs, 12 * PAGE, 13 * PAGE, true), 0);
	assert_int_equal(page_runs_add(&runs, 13 * PAGE, 15 * PAGE, false), 0);
	assert_int_equal(page_runs_add(&runs, 20 * PAGE, 30 * PAGE, true), 0);
	assert_int_equal(runs.count, 3);
	assert_ptr_equal(page_runs_from(&runs, 0), &runs.runs[0]);
	assert_ptr_equal(page_runs_from(&runs, 13 * PAGE - 1), &runs.runs[0]);
	assert_ptr_equal(page_runs_from(&runs, 13 * PAGE), &runs.runs[1]);
	assert_ptr_equal(page_runs_from(&runs, 15 * PAGE), &runs.runs[2]);
	assert_ptr_equal(page_runs_from(&runs, 30 * PAGE - 1), &runs.runs[2]);
	assert_null(page_runs_from(&runs, 30 * PAGE));
	sum = page_runs_sum(&runs, 11 * PAGE, 22 * PAGE);
	assert_int_equal(sum.exclusive, 4 * PAGE);
	assert_int_equal(sum.shared, 2 * PAGE);
	sum = page_runs_sum(&runs, 14 * PAGE, 20 * PAGE);
	assert_int_equal(sum.exclusive, 0);
	assert_int_equal(sum.shared, PAGE);
	sum = page_runs_sum(&runs, 40 * PAGE, 50 * PAGE);
	assert_int_equal(sum.exclusive + sum.shared, 0);
	page_runs_clear(&runs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(figures_belong_to_the_mapping_above),
		cmocka_unit_test(a_mapping_may_be_at_any_address),
		cmocka_unit_test(what_has_no_mapping_counts_nowhere),
		cmocka_unit_test(another_mapping_or_size_is_a_change),
		cmocka_unit_test(this_process_has_what_it_wrote),
		cmocka_unit_test(a_file_of_any_length_is_read_whole),
		cmocka_unit_test(figures_do_not_overflow),
		cmocka_unit_test(pages_in_memory_are_runs),
		cmocka_unit_test(many_pages_are_read_in_turns),
		cmocka_unit_test(without_memory_for_a_run_there_is_none),
		cmocka_unit_test(runs_are_found_and_added_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* Which pages of a process have content, and which were written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "memory/memory.h"
#include "src/linux/proc/resident.h"

enum { PAGES = 5000 }; /* more than are asked for at once */

/* Private memory of so many pages, none of which has content, and no huge ones. */
static volatile unsigned char *map_pages(void)
{
	const size_t size = PAGES * memory_page_size();
	unsigned char *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(pages, MAP_FAILED);
	madvise(pages, size, MADV_NOHUGEPAGE);
	return pages;
}

static void unmap_pages(volatile unsigned char *pages)
{
	munmap((void *)(uintptr_t)pages, PAGES * memory_page_size());
}

static void touch(volatile unsigned char *pages, size_t index)
{
	pages[index * memory_page_size()] = 1;
}

typedef bool next_function(int fd, uint64_t *at, uint64_t end, uint64_t *ret_begin, uint64_t *ret_end);

/* The runs, as numbers of pages, are these pairs, which end with 0, 0. */
static void check_runs(next_function *next, volatile unsigned char *pages, const uint64_t *runs)
{
	const uint64_t begin = (uintptr_t)pages, page = memory_page_size();
	uint64_t at = begin, run_begin, run_end;
	int fd = resident_open(getpid());

	assert_in_range(fd, 0, 1000);
	for (; runs[1]; runs += 2) {
		assert_true(next(fd, &at, begin + PAGES * page, &run_begin, &run_end));
		assert_int_equal((run_begin - begin) / page, runs[0]);
		assert_int_equal((run_end - begin) / page, runs[1]);
	}
	assert_false(next(fd, &at, begin + PAGES * page, &run_begin, &run_end));
	close(fd);
}

static void pages_with_content_are_found_in_runs(void **state)
{
	volatile unsigned char *pages = map_pages();

	(void)state;
	check_runs(resident_next, pages, (const uint64_t[]){ 0, 0 });
	touch(pages, 0);
	touch(pages, 2);
	touch(pages, 3);
	for (size_t i = 4000; i < 4200; i++)
		touch(pages, i);
	touch(pages, PAGES - 1);
	check_runs(resident_next, pages,
		   (const uint64_t[]){ 0, 1, 2, 4, 4000, 4200, PAGES - 1, PAGES, 0, 0 });
	unmap_pages(pages);
}

/* Where nothing is known of pages, they are all read. */
static void all_pages_count_where_the_kernel_does_not_tell(void **state)
{
	const uint64_t page = memory_page_size();
	uint64_t at = 7 * page, begin, end;

	(void)state;
	assert_true(resident_next(-1, &at, 9 * page, &begin, &end));
	assert_int_equal(begin, 7 * page);
	assert_int_equal(end, 9 * page);
	assert_false(resident_next(-1, &at, 9 * page, &begin, &end));
}

/* As of a kernel that marks pages, which few do: pagemap.rst. */
static void written_pages_are_those_with_a_mark_or_without_content(void **state)
{
	const uint64_t present = UINT64_C(1) << 63, swapped = UINT64_C(1) << 62, marked = UINT64_C(1) << 55;
	const uint64_t entries[] = { present, present | marked, swapped | marked, swapped, 0, present };
	const uint64_t page = memory_page_size();
	uint64_t at = 0, begin, end;
	int fd = memfd_create("pagemap", MFD_CLOEXEC);

	(void)state;
	assert_int_equal(write(fd, entries, sizeof(entries)), sizeof(entries));
	assert_true(resident_next_written(fd, &at, 6 * page, &begin, &end));
	assert_int_equal(begin / page, 1);
	assert_int_equal(end / page, 3);
	assert_true(resident_next_written(fd, &at, 6 * page, &begin, &end));
	assert_int_equal(begin / page, 4);
	assert_int_equal(end / page, 5);
	assert_false(resident_next_written(fd, &at, 6 * page, &begin, &end));
	at = 0;
	assert_true(resident_next(fd, &at, 6 * page, &begin, &end));
	assert_int_equal(begin / page, 0);
	assert_int_equal(end / page, 4);
	/* Behind the end of the file, nothing is known. */
	at = 5 * page;
	assert_true(resident_next(fd, &at, 9 * page, &begin, &end));
	assert_int_equal(begin / page, 5);
	assert_int_equal(end / page, 9);
	close(fd);
}

/* Where it marks some, a page is marked by a write. */
static void marks_come_back_with_a_write(void **state)
{
	volatile unsigned char *pages;

	(void)state;
	if (!resident_has_marks()) {
		print_message("skipped: the kernel marks no pages\n");
		skip();
	}
	pages = map_pages();
	for (size_t i = 0; i < PAGES; i++)
		touch(pages, i);
	assert_true(resident_clear_marks(getpid()));
	check_runs(resident_next_written, pages, (const uint64_t[]){ 0, 0 });
	touch(pages, 7);
	check_runs(resident_next_written, pages, (const uint64_t[]){ 7, 8, 0, 0 });
	unmap_pages(pages);
}

static void a_process_that_is_gone_has_no_pages(void **state)
{
	pid_t child = fork();

	(void)state;
	if (child == 0)
		_exit(0);
	waitpid(child, NULL, 0);
	assert_true(resident_open(child) < 0);
	assert_false(resident_clear_marks(child));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pages_with_content_are_found_in_runs),
		cmocka_unit_test(all_pages_count_where_the_kernel_does_not_tell),
		cmocka_unit_test(written_pages_are_those_with_a_mark_or_without_content),
		cmocka_unit_test(marks_come_back_with_a_write),
		cmocka_unit_test(a_process_that_is_gone_has_no_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

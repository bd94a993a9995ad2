/* SPDX-License-Identifier: MIT */
/* Which pages of a process have content, and which were written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "memory/memory.h"
#include "src/linux/proc/resident.h"
#include "tests/unit/instead_of.h"

INSTEAD_OF(pread);
INSTEAD_OF(write);

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

static void private_pages_are_those_of_no_file_or_in_swap(void **state)
{
	const uint64_t present = UINT64_C(1) << 63, swapped = UINT64_C(1) << 62, of_file = UINT64_C(1) << 61;
	const uint64_t entries[] = { present | of_file, present, swapped, of_file, 0, present };
	const uint64_t page = memory_page_size();
	uint64_t at = 0, begin, end;
	int fd = memfd_create("pagemap", MFD_CLOEXEC);

	(void)state;
	assert_int_equal(write(fd, entries, sizeof(entries)), sizeof(entries));
	assert_true(resident_next_private(fd, &at, 5 * page, &begin, &end));
	assert_int_equal(begin / page, 1);
	assert_int_equal(end / page, 3);
	assert_false(resident_next_private(fd, &at, 5 * page, &begin, &end));
	/* Behind the end of the file, nothing is known. */
	at = 6 * page;
	assert_true(resident_next_private(fd, &at, 9 * page, &begin, &end));
	assert_int_equal(begin / page, 6);
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

/*---- A kernel that is made up ----*/

/* The entry of each page, if it is made up, and so many bytes of it; and what was written. */
static struct {
	bool is_made_up;
	uint64_t entry;
	ssize_t length;
	char written[8];
	bool refuses;
} kernel;

ssize_t __wrap_pread(int fd, void *bytes, size_t size, off_t offset)
{
	if (!kernel.is_made_up)
		return __real_pread(fd, bytes, size, offset);
	assert_int_equal(size, sizeof(kernel.entry));
	assert_int_equal((size_t)offset % sizeof(kernel.entry), 0);
	if (kernel.length > 0)
		memcpy(bytes, &kernel.entry, (size_t)kernel.length);
	return kernel.length;
}

ssize_t __wrap_write(int fd, const void *bytes, size_t size)
{
	if (!kernel.is_made_up)
		return __real_write(fd, bytes, size);
	assert_in_range(size, 1, sizeof(kernel.written) - 1);
	memset(kernel.written, 0, sizeof(kernel.written));
	memcpy(kernel.written, bytes, size);
	return kernel.refuses ? -1 : (ssize_t)size;
}

static void a_kernel_has_marks_if_it_marks_a_page_just_written(void **state)
{
	const uint64_t present = UINT64_C(1) << 63, marked = UINT64_C(1) << 55;

	(void)state;
	memset(&kernel, 0, sizeof(kernel));
	kernel.is_made_up = true;
	kernel.length = sizeof(kernel.entry);
	kernel.entry = present | marked;
	assert_true(resident_has_marks());
	kernel.entry = ~marked;
	assert_false(resident_has_marks());
	kernel.entry = present | marked;
	kernel.length--;
	assert_false(resident_has_marks());
	kernel.length = -1;
	assert_false(resident_has_marks());
	kernel.is_made_up = false;
}

/* soft-dirty.rst: 4 clears them, and nothing else. */
static void marks_are_cleared_by_a_number(void **state)
{
	(void)state;
	memset(&kernel, 0, sizeof(kernel));
	kernel.is_made_up = true;
	assert_true(resident_clear_marks(getpid()));
	assert_string_equal(kernel.written, "4");
	kernel.refuses = true;
	assert_false(resident_clear_marks(getpid()));
	kernel.is_made_up = false;
}

/* More entries than are read at once, and a run at the end of what was read. */
static void runs_go_on_where_another_part_is_read(void **state)
{
	enum { AT_ONCE = 4096, COUNT = 3 * AT_ONCE };
	static const struct {
		uint64_t begin, end;
	} runs[] = { { AT_ONCE - 1, AT_ONCE }, { AT_ONCE - 1, AT_ONCE + 1 }, { AT_ONCE, AT_ONCE + 1 },
		     { 5, 2 * AT_ONCE + 5 },   { COUNT - 1, COUNT },         { 0, COUNT } };
	static uint64_t entries[COUNT];
	const uint64_t page = memory_page_size();
	int fd = memfd_create("pagemap", MFD_CLOEXEC);

	(void)state;
	for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
		uint64_t at = 0, begin, end;

		for (uint64_t n = 0; n < COUNT; n++)
			entries[n] = n >= runs[i].begin && n < runs[i].end ? UINT64_C(1) << 62 : 0;
		assert_int_equal(pwrite(fd, entries, sizeof(entries), 0), sizeof(entries));
		assert_true(resident_next(fd, &at, COUNT * page, &begin, &end));
		assert_int_equal(begin / page, runs[i].begin);
		assert_int_equal(end / page, runs[i].end);
		assert_int_equal(at, end);
		assert_false(resident_next(fd, &at, COUNT * page, &begin, &end));
		/* A part of it. */
		at = runs[i].begin * page;
		assert_true(resident_next(fd, &at, (runs[i].begin + 1) * page, &begin, &end));
		assert_int_equal(end / page, runs[i].begin + 1);
	}
	close(fd);
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
		cmocka_unit_test(private_pages_are_those_of_no_file_or_in_swap),
		cmocka_unit_test(marks_come_back_with_a_write),
		cmocka_unit_test(a_kernel_has_marks_if_it_marks_a_page_just_written),
		cmocka_unit_test(marks_are_cleared_by_a_number),
		cmocka_unit_test(runs_go_on_where_another_part_is_read),
		cmocka_unit_test(a_process_that_is_gone_has_no_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

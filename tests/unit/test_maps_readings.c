/* SPDX-License-Identifier: MIT */
/* Reading a process's maps again and again. The texts are made up. */
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
#include <unistd.h>

#include <cmocka.h>

#include "src/linux/proc/maps.h"
#include "src/linux/proc/proc_file.h"
#include "src/linux/proc/process.h"
#include "tests/unit/instead_of.h"

INSTEAD_OF(malloc);
INSTEAD_OF(calloc);
INSTEAD_OF(realloc);
#include "tests/unit/failing_allocation.h"

INSTEAD_OF(proc_file_open);
INSTEAD_OF(process_thread_with_memory);

enum { PID = 4242, OTHER_TID = 4243, LINE_BYTES = 64 };

static int text_fd; /* the file, or a negative errno */
static pid_t working_tid, asked_tid;
static unsigned int opened, replaced_at; /* 0: never */
static struct maps *maps;

/*
 * A thread that has ended has an empty file, as memory has that an execve() replaces once its file is open.
 */
int __wrap_proc_file_open(pid_t pid, const char *name)
{
	assert_string_equal(name, "maps");
	asked_tid = pid;
	opened++;
	if (pid != working_tid || opened == replaced_at)
		return open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (text_fd < 0)
		return text_fd;
	lseek(text_fd, 0, SEEK_SET);
	return dup(text_fd);
}

pid_t __wrap_process_thread_with_memory(pid_t pid)
{
	assert_int_equal(pid, PID);
	return working_tid;
}

static int begin(void **state)
{
	(void)state;
	working_tid = PID;
	opened = replaced_at = 0;
	text_fd = memfd_create("maps", MFD_CLOEXEC);
	maps = maps_new(PID);
	return maps && text_fd >= 0 ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	maps_free(maps);
	return close(text_fd);
}

static void put_text(const char *text)
{
	assert_int_equal(ftruncate(text_fd, 0), 0);
	assert_int_equal(pwrite(text_fd, text, strlen(text), 0), strlen(text));
}

static bool changes(void)
{
	bool changed;

	assert_int_equal(maps_refresh(maps, &changed), 0);
	return changed;
}

static const char two[] = "1000-2000 r--p 00000000 00:01 1 /a\n"
			  "2000-3000 r-xp 00001000 00:01 1 /a\n";

static void an_unchanged_text_leaves_all_as_it_was(void **state)
{
	const struct mapping *first;

	(void)state;
	put_text(two);
	assert_true(changes());
	assert_int_equal(maps_count(maps), 2);
	first = maps_at(maps, 0);
	assert_false(changes());
	assert_ptr_equal(maps_at(maps, 0), first);
	assert_string_equal(first->path, "/a");
	/* Of the same length, shorter, longer. */
	put_text("1000-2000 r--p 00000000 00:01 1 /a\n"
		 "2000-4000 r-xp 00001000 00:01 1 /a\n");
	assert_true(changes());
	assert_int_equal(maps_at(maps, 1)->end, 0x4000);
	assert_false(changes());
	put_text("1000-2000 r--p 00000000 00:01 1 /a\n");
	assert_true(changes());
	assert_int_equal(maps_count(maps), 1);
	put_text(two);
	assert_true(changes());
	assert_int_equal(maps_count(maps), 2);
	assert_false(changes());
}

static void what_cannot_be_read_leaves_all_as_it_was(void **state)
{
	const int file = text_fd;
	bool changed = true;

	(void)state;
	put_text(two);
	assert_true(changes());
	text_fd = -EACCES;
	assert_int_equal(maps_refresh(maps, &changed), -EACCES);
	text_fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(maps_refresh(maps, &changed), -EISDIR);
	close(text_fd);
	text_fd = file;
	put_text("");
	assert_int_equal(maps_refresh(maps, &changed), -ESRCH);
	assert_true(changed);
	assert_int_equal(maps_count(maps), 2);
	assert_int_equal(maps_file_count(maps), 1);
	assert_string_equal(maps_at(maps, 1)->path, "/a");
	put_text(two);
	assert_false(changes());
}

static void maps_are_read_through_a_thread_that_has_them(void **state)
{
	bool changed;

	(void)state;
	put_text(two);
	working_tid = OTHER_TID;
	assert_true(changes());
	assert_int_equal(opened, 2);
	assert_int_equal(maps_count(maps), 2);
	/* It is remembered. */
	assert_false(changes());
	assert_int_equal(opened, 3);
	assert_int_equal(asked_tid, OTHER_TID);
	working_tid = 0;
	assert_int_equal(maps_refresh(maps, &changed), -ESRCH);
	assert_int_equal(opened, 4);
	/* One that has memory but no maps is asked once more. */
	working_tid = OTHER_TID;
	put_text("");
	assert_int_equal(maps_refresh(maps, &changed), -ESRCH);
	assert_int_equal(opened, 6);
}

static void memory_that_an_execve_replaces_meanwhile_is_not_the_processs_end(void **state)
{
	(void)state;
	put_text(two);
	replaced_at = 1;
	assert_true(changes());
	assert_int_equal(opened, 2);
	assert_int_equal(asked_tid, PID);
	assert_int_equal(maps_count(maps), 2);
	replaced_at = 3;
	assert_false(changes());
	assert_int_equal(opened, 4);
}

static void put_lines(size_t count)
{
	static char text[8000 * LINE_BYTES];
	size_t length = 0;

	assert_in_range(count, 0, 8000);
	for (size_t i = 0; i < count; i++)
		length += (size_t)snprintf(text + length, sizeof(text) - length,
					   "%zx000-%zx000 rw-p 00000000 00:00 0 [anon: %zu]\n", i + 1, i + 2,
					   i);
	put_text(text);
}

/* The first reading has room for 64 KiB. */
static void long_texts_are_read_whole(void **state)
{
	static const size_t counts[] = { 5000, 1, 8000, 1400, 8000 };

	(void)state;
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		char path[LINE_BYTES];

		put_lines(counts[i]);
		assert_true(changes());
		assert_int_equal(maps_count(maps), counts[i]);
		snprintf(path, sizeof(path), "[anon: %zu]", counts[i] - 1);
		assert_string_equal(maps_at(maps, counts[i] - 1)->path, path);
		assert_ptr_equal(maps_find_path(maps, path), maps_at(maps, counts[i] - 1));
		assert_false(changes());
	}
}

static void a_text_that_fills_the_room_exactly_is_read_whole(void **state)
{
	static char text[(1 << 16) + 1];
	static const char last[] = "\n1000-2000 rw-p 00000000 00:00 0 [last]";

	(void)state;
	memset(text, '?', sizeof(text) - 1);
	memcpy(text + sizeof(text) - sizeof(last), last, sizeof(last));
	put_text(text);
	assert_true(changes());
	assert_non_null(maps_find_path(maps, "[last]"));
	assert_false(changes());
}

/* Of a text without an end, so much is read. */
static void no_more_than_a_limit_is_read(void **state)
{
	(void)state;
	put_text(two);
	assert_int_equal(ftruncate(text_fd, (off_t)MAPS_BYTES_MAX + 8192), 0);
	assert_true(changes());
	assert_int_equal(lseek(text_fd, 0, SEEK_CUR), MAPS_BYTES_MAX);
	assert_int_equal(maps_count(maps), 2);
}

static void no_more_lines_than_a_limit_are_understood(void **state)
{
	static char text[MAPS_COUNT_MAX + 64];
	static const char line[] = "1000-2000 r--p 00000000 00:01 1 /a\n";

	(void)state;
	for (size_t empty = MAPS_COUNT_MAX - 1; empty <= MAPS_COUNT_MAX; empty++) {
		memset(text, '\n', empty);
		memcpy(text + empty, line, sizeof(line));
		assert_int_equal(maps_parse(maps, text, strlen(text)), 0);
		assert_int_equal(maps_count(maps), empty < MAPS_COUNT_MAX);
	}
}

static void where_memory_is_short_all_stays_as_it_was(void **state)
{
	const struct mapping *first;
	bool changed;
	int error;

	(void)state;
	allocation_fails_after(0);
	assert_null(maps_new(PID));
	assert_true(allocation_failed());
	put_text(two);
	assert_true(changes());
	first = maps_at(maps, 0);
	put_lines(5000);
	for (size_t count = 0;; count++) {
		allocation_fails_after(count);
		error = maps_refresh(maps, &changed);
		if (!allocation_failed())
			break;
		assert_int_equal(error, -ENOMEM);
		assert_int_equal(maps_count(maps), 2);
		assert_ptr_equal(maps_at(maps, 0), first);
		assert_string_equal(first->path, "/a");
	}
	assert_int_equal(error, 0);
	assert_true(changed);
	assert_int_equal(maps_count(maps), 5000);
}

/* With gaps between them, of any number. */
static void the_mapping_of_an_address_is_found(void **state)
{
	enum { MOST = 9, PAGE = 0x1000 };
	char text[MOST * LINE_BYTES];

	(void)state;
	for (uint64_t count = 0; count <= MOST; count++) {
		size_t length = 0;

		for (uint64_t i = 1; i <= count; i++)
			length += (size_t)snprintf(text + length, sizeof(text) - length,
						   "%x000-%x000 rw-p 00000000 00:00 0 [%x]\n",
						   (unsigned int)(3 * i), (unsigned int)(3 * i + 2),
						   (unsigned int)i);
		assert_int_equal(maps_parse(maps, text, length), 0);
		assert_int_equal(maps_count(maps), count);
		assert_null(maps_find(maps, 0));
		assert_null(maps_find(maps, UINT64_MAX));
		for (uint64_t i = 0; i < count; i++) {
			const uint64_t begin = 3 * (i + 1) * PAGE, end = begin + 2 * PAGE;

			assert_null(maps_find(maps, begin - 1));
			assert_ptr_equal(maps_find(maps, begin), maps_at(maps, i));
			assert_ptr_equal(maps_find(maps, end - 1), maps_at(maps, i));
			assert_null(maps_find(maps, end));
		}
	}
	assert_null(maps_find_path(maps, "[none]"));
}

/*---- Lines ----*/

static void numbers_have_their_base_and_their_bound(void **state)
{
	static const struct {
		const char *text;
		bool is_mapping;
	} lines[] = {
		{ "fffffffffffff000-ffffffffffffffff rwxp ffffffffffffffff ff:ff 18446744073709551615 /a",
		  true },
		{ "1000-10000000000000000 rwxp 00000000 00:01 1 /a", false },
		{ "1000-2000 rwxp 00000000 00:01 18446744073709551616 /a", false },
		{ "1000-2000 rwxp 00000000 00:01 18446744073709551620 /a", false },
		{ "1000-2000 rwxp 00000000 00:01 1a /a", false },
		{ "1000-2000 rwxp 00000000 00:01 a /a", false },
		{ "1000-200G rwxp 00000000 00:01 1 /a", false },
		{ "1000-2000 rwxp 0000000A 00:01 1 /a", false },
		{ "1000-2000 rwxp 0000000a 00:01 1 /a", true },
		{ "1000-2000 rwxp 00000000 00:01 1", true },
		{ "1000-2000 rwxp 00000000 00:01", false },
		{ "1000-2000 rwxp 00000000 :01 1", false },
		{ "1000-2000 pppp 00000000 00:01 1", true },
		{ "1000-2000 ---- 00000000 00:01 1", true },
		{ "1000-2000 -wxp00000000 00:01 1", false },
		{ "1000-2000 xwrp 00000000 00:01 1", false },
		{ "1000 2000 rwxp 00000000 00:01 1", false },
		{ "1000-2000rwxp 00000000 00:01 1", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		assert_int_equal(maps_parse(maps, lines[i].text, strlen(lines[i].text)), 0);
		if (maps_count(maps) != lines[i].is_mapping)
			fail_msg("%s", lines[i].text);
	}
	assert_int_equal(maps_parse(maps, lines[0].text, strlen(lines[0].text)), 0);
	assert_true(maps_at(maps, 0)->end == UINT64_MAX);
	assert_true(maps_at(maps, 0)->offset == UINT64_MAX);
	assert_true(maps_at(maps, 0)->inode == UINT64_MAX);
	assert_int_equal(maps_at(maps, 0)->access, MAPPING_READ | MAPPING_WRITE | MAPPING_EXECUTE);
}

static void names_are_cut_at_their_ends_only(void **state)
{
	static const char text[] = "1000-2000 r--p 00000000 00:01 1 \\012\n"
				   "2000-3000 r--p 00000000 00:01 2 /a\\01\n"
				   "3000-4000 r--p 00000000 00:01 3 /a (deleted) b\n"
				   "4000-5000 r--p 00000000 00:01 4 /a (deleted) (deleted)\n"
				   "5000-6000 r--p 00000000 00:01 5 x (deleted)\n"
				   "6000-7000 r--p 00000000 00:01 6 a(deleted)\n"
				   "7000-8000 r--p 00000000 00:00 0 /b (deleted)";
	static const struct {
		const char *path;
		bool deleted;
	} expected[] = { { "\n", false },          { "/a\\01", false }, { "/a (deleted) b", false },
			 { "/a (deleted)", true }, { "x", true },       { "a(deleted)", false },
			 { "/b", false } };

	(void)state;
	assert_int_equal(maps_parse(maps, text, strlen(text)), 0);
	assert_int_equal(maps_count(maps), 7);
	for (size_t i = 0; i < 7; i++) {
		assert_string_equal(maps_at(maps, i)->path, expected[i].path);
		assert_int_equal(maps_at(maps, i)->deleted, expected[i].deleted);
	}
}

/* A file is one by device, number and name. */
static void another_file_is_another_loading(void **state)
{
	static const char text[] = "1000-2000 r--p 00001000 00:01 1 /a\n"
				   "2000-3000 rw-p 00000000 00:01 1 /a\n"
				   "3000-4000 r--p 00001000 00:02 1 /a\n"
				   "4000-5000 r--p 00001000 00:02 2 /a\n"
				   "5000-6000 r--p 00001000 00:02 2 /b\n"
				   "6000-7000 r--p 00000000 00:02 2 /b\n"
				   "7000-8000 r--p 00001000 00:00 0 /b\n"
				   "8000-9000 --xp 00002000 00:02 2 /b\n";
	static const uint64_t begins[] = { 0x1000, 0x3000, 0x4000, 0x5000, 0x6000 };

	(void)state;
	assert_int_equal(maps_parse(maps, text, strlen(text)), 0);
	assert_int_equal(maps_file_count(maps), 5);
	for (size_t i = 0; i < 5; i++) {
		assert_int_equal(maps_file_at(maps, i)->begin, begins[i]);
		assert_int_equal(maps_file_at(maps, i)->base, begins[i]);
		assert_int_equal(maps_file_at(maps, i)->end, i < 4 ? begins[i + 1] : 0x9000);
		assert_int_equal(maps_file_at(maps, i)->executable, i == 4);
	}
	assert_int_equal(maps_file_at(maps, 1)->device, 2);
	assert_string_equal(maps_file_at(maps, 4)->path, "/b");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(an_unchanged_text_leaves_all_as_it_was, begin, end),
		cmocka_unit_test_setup_teardown(what_cannot_be_read_leaves_all_as_it_was, begin, end),
		cmocka_unit_test_setup_teardown(maps_are_read_through_a_thread_that_has_them, begin, end),
		cmocka_unit_test_setup_teardown(
			memory_that_an_execve_replaces_meanwhile_is_not_the_processs_end, begin, end),
		cmocka_unit_test_setup_teardown(long_texts_are_read_whole, begin, end),
		cmocka_unit_test_setup_teardown(a_text_that_fills_the_room_exactly_is_read_whole, begin, end),
		cmocka_unit_test_setup_teardown(no_more_than_a_limit_is_read, begin, end),
		cmocka_unit_test_setup_teardown(no_more_lines_than_a_limit_are_understood, begin, end),
		cmocka_unit_test_setup_teardown(where_memory_is_short_all_stays_as_it_was, begin, end),
		cmocka_unit_test_setup_teardown(the_mapping_of_an_address_is_found, begin, end),
		cmocka_unit_test_setup_teardown(numbers_have_their_base_and_their_bound, begin, end),
		cmocka_unit_test_setup_teardown(names_are_cut_at_their_ends_only, begin, end),
		cmocka_unit_test_setup_teardown(another_file_is_another_loading, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* Understanding /proc/PID/maps. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/linux/proc/maps.h"
#include "tests/unit/target_process.h"

static struct maps *parse(const char *text)
{
	struct maps *maps = maps_new(getpid());

	assert_int_equal(maps_parse(maps, text, strlen(text)), 0);
	return maps;
}

static void lines_become_mappings(void **state)
{
	struct maps *maps = parse(
		"00400000-00401000 r--p 00000000 fe:01 123                        /usr/bin/a b\n"
		"00401000-00403000 r-xp 00001000 fe:01 123                        /usr/bin/a b\n"
		"7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0                  [stack]\n"
		"7ffc00021000-7ffc00022000 rw-s 00000000 00:00 0 \n"
		"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0          [vsyscall]");
	const struct mapping *mapping;

	(void)state;
	assert_int_equal(maps_count(maps), 5);
	mapping = maps_at(maps, 1);
	assert_int_equal(mapping->begin, 0x401000);
	assert_int_equal(mapping->end, 0x403000);
	assert_int_equal(mapping->offset, 0x1000);
	assert_int_equal(mapping->device, makedev(0xfe, 1));
	assert_int_equal(mapping->inode, 123);
	assert_int_equal(mapping->access, MAPPING_READ | MAPPING_EXECUTE);
	assert_string_equal(mapping->path, "/usr/bin/a b");
	assert_false(mapping->deleted);
	assert_ptr_equal(maps_find_path(maps, "[stack]"), maps_at(maps, 2));
	assert_null(maps_find_path(maps, "[heap]"));
	assert_int_equal(maps_at(maps, 3)->access, MAPPING_READ | MAPPING_WRITE | MAPPING_SHARED);
	assert_string_equal(maps_at(maps, 3)->path, "");
	assert_int_equal(maps_at(maps, 4)->end, 0xffffffffff601000);
	maps_free(maps);
}

static void addresses_are_found(void **state)
{
	struct maps *maps = parse("1000-2000 r--p 00000000 00:01 1 /a\n"
				  "2000-3000 r-xp 00001000 00:01 1 /a\n"
				  "5000-6000 rw-p 00000000 00:00 0 \n");

	(void)state;
	assert_null(maps_find(maps, 0));
	assert_null(maps_find(maps, 0xfff));
	assert_ptr_equal(maps_find(maps, 0x1000), maps_at(maps, 0));
	assert_ptr_equal(maps_find(maps, 0x1fff), maps_at(maps, 0));
	assert_ptr_equal(maps_find(maps, 0x2000), maps_at(maps, 1));
	assert_null(maps_find(maps, 0x3000));
	assert_ptr_equal(maps_find(maps, 0x5fff), maps_at(maps, 2));
	assert_null(maps_find(maps, 0x6000));
	assert_null(maps_find(maps, UINT64_MAX));
	maps_free(maps);
}

static void mappings_of_a_file_are_one_loading(void **state)
{
	struct maps *maps = parse(
		"10000-11000 r--p 00000000 fe:01 5 /lib/x.so\n"
		"11000-13000 r-xp 00001000 fe:01 5 /lib/x.so\n"
		"13000-14000 rw-p 00003000 fe:01 5 /lib/x.so\n"
		"14000-15000 rw-p 00000000 00:00 0 \n"
		"15000-16000 rw-p 00000000 fe:01 5 /lib/x.so\n" /* data in its first page */
		"20000-21000 r-xp 00000000 fe:01 5 /lib/x.so\n" /* loaded once more */
		"21000-22000 rw-p 00001000 fe:01 5 /lib/x.so\n"
		"30000-31000 r--p 00000000 fe:01 6 /lib/x.so\n" /* another file of that name */
		"40000-41000 rw-p 00005000 fe:01 7 /data\n");
	const struct mapped_file *file;

	(void)state;
	assert_int_equal(maps_file_count(maps), 4);
	file = maps_file_at(maps, 0);
	assert_int_equal(file->begin, 0x10000);
	assert_int_equal(file->base, 0x10000);
	assert_int_equal(file->end, 0x16000);
	assert_true(file->executable);
	assert_int_equal(maps_file_at(maps, 1)->base, 0x20000);
	assert_int_equal(maps_file_at(maps, 1)->end, 0x22000);
	assert_int_equal(maps_file_at(maps, 2)->inode, 6);
	assert_false(maps_file_at(maps, 2)->executable);
	assert_int_equal(maps_file_at(maps, 3)->base, 0x40000);
	maps_free(maps);
}

/* A program may have moved its code to memory with large pages, in the same place. */
static void code_in_the_place_of_a_files_code_is_the_files(void **state)
{
	struct maps *maps = parse("10000-11000 r--p 00000000 fe:01 5 /lib/moved.so\n"
				  "11000-13000 r-xp 00000000 00:00 0 \n"
				  "13000-14000 r--p 00003000 fe:01 5 /lib/moved.so\n"
				  "14000-15000 r-xp 00000000 00:00 0 \n" /* code made at run time */
				  "20000-21000 r--p 00000000 fe:01 6 /data\n"
				  "21000-22000 rw-p 00000000 00:00 0 \n"
				  "22000-23000 r--p 00002000 fe:01 6 /data\n"
				  "30000-31000 r--p 00008000 fe:01 7 /parts\n" /* not from its beginning */
				  "31000-32000 rwxp 00000000 00:00 0 \n"
				  "32000-33000 r--p 00009000 fe:01 7 /parts\n"
				  "40000-41000 r--p 00000000 fe:01 8 /backwards\n"
				  "41000-42000 r--p 00005000 fe:01 8 /backwards\n"
				  "42000-43000 rwxp 00000000 00:00 0 \n"
				  "43000-44000 r--p 00004000 fe:01 8 /backwards\n");

	(void)state;
	assert_int_equal(maps_file_count(maps), 4);
	assert_true(maps_file_at(maps, 0)->executable);
	assert_int_equal(maps_file_at(maps, 0)->end, 0x14000);
	for (size_t i = 1; i < 4; i++)
		assert_false(maps_file_at(maps, i)->executable);
	maps_free(maps);
}

static void odd_names_are_kept(void **state)
{
	struct maps *maps = parse("1000-2000 r--p 00000000 00:01 1 /tmp/a\\012b \\134\n"
				  "2000-3000 r--p 00000000 00:01 2 /tmp/lib.so (deleted)\n"
				  "3000-4000 r--p 00000000 00:01 3 /memfd:jit (deleted)\n"
				  "4000-5000 r--p 00000000 00:00 0 [anon:a (deleted)]\n"
				  "5000-6000 r--p 00000000 00:01 4  (deleted)\n");

	(void)state;
	assert_string_equal(maps_at(maps, 0)->path, "/tmp/a\nb \\134");
	assert_string_equal(maps_at(maps, 1)->path, "/tmp/lib.so");
	assert_true(maps_at(maps, 1)->deleted);
	assert_true(maps_file_at(maps, 1)->deleted);
	assert_string_equal(maps_at(maps, 2)->path, "/memfd:jit");
	assert_false(maps_at(maps, 3)->deleted);
	assert_string_equal(maps_at(maps, 4)->path, "(deleted)");
	maps_free(maps);
}

static void what_is_no_mapping_is_passed_over(void **state)
{
	static const char *const bad[] = {
		"",
		"\n\n",
		"hello\n",
		"1000-2000",
		"1000-2000 r--p\n",
		"2000-1000 r--p 00000000 00:01 1 /a\n",
		"1000-1000 r--p 00000000 00:01 1 /a\n",
		"11111111111111111-22222222222222222 r--p 0 00:01 1 /a\n",
		"1000-2000 rwxq 00000000 00:01 1 /a\n",
		"1000-2000 r--p 00000000 0001 1 /a\n",
		"-\n",
		"1000-\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct maps *maps = parse(bad[i]);

		assert_int_equal(maps_count(maps), 0);
		assert_null(maps_find(maps, 0x1800));
		maps_free(maps);
	}
}

static void overlapping_lines_of_a_torn_reading_are_dropped(void **state)
{
	struct maps *maps = parse("1000-3000 r--p 00000000 00:01 1 /a\n"
				  "2000-4000 r--p 00000000 00:01 2 /b\n"
				  "4000-5000 r--p 00000000 00:01 3 /c\n");

	(void)state;
	assert_int_equal(maps_count(maps), 2);
	assert_string_equal(maps_find(maps, 0x2800)->path, "/a");
	maps_free(maps);
}

static const struct mapped_file *find_file(const struct maps *maps, uint64_t address)
{
	size_t i = 0;

	while (address < maps_file_at(maps, i)->begin || address >= maps_file_at(maps, i)->end)
		assert_true(++i < maps_file_count(maps));
	return maps_file_at(maps, i);
}

static void own_process_is_understood_and_changes_are_noticed(void **state)
{
	struct maps *maps = maps_new(getpid());
	const struct mapped_file *file;
	unsigned char *page;
	bool changed = false;
	char self[4096];
	int local;

	(void)state;
	assert_int_equal(maps_refresh(maps, &changed), 0);
	assert_true(changed);
	file = find_file(maps, (uintptr_t)parse);
	assert_true(file->executable);
	self[readlink("/proc/self/exe", self, sizeof(self) - 1)] = '\0';
	assert_string_equal(file->path, self);
	assert_memory_equal((const void *)(uintptr_t)file->base,
			    "\x7f"
			    "ELF",
			    4);
	assert_string_equal(maps_find(maps, (uintptr_t)&local)->path, "[stack]");
	assert_non_null(maps_find_path(maps, "[vdso]"));

	/* To look takes memory itself. */
	for (int i = 0; i < 20 && changed; i++)
		maps_refresh(maps, &changed);
	assert_false(changed);
	page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_int_equal(maps_refresh(maps, &changed), 0);
	assert_true(changed);
	assert_non_null(maps_find(maps, (uintptr_t)page));
	munmap(page, 4096);
	maps_free(maps);
}

static void process_that_has_ended_has_no_maps(void **state)
{
	pid_t child = fork();
	struct maps *maps = maps_new(child);
	bool changed;

	(void)state;
	if (child == 0)
		_exit(0);
	target_process_await(child, child, "Z");
	assert_int_equal(maps_refresh(maps, &changed), -ESRCH);
	waitpid(child, NULL, 0);
	assert_int_equal(maps_refresh(maps, &changed), -ESRCH);
	assert_int_equal(maps_count(maps), 0);
	maps_free(maps);
}

static double seconds_of_cpu(void)
{
	return (double)clock() / CLOCKS_PER_SEC;
}

/* Twenty times the mappings may take not much more than twenty times as long. */
static void many_mappings_take_no_more_than_their_share(void **state)
{
	enum { FEW = 2500, MANY = 20 * FEW, LINE = 80 };
	char *text = malloc((size_t)MANY * LINE), *at = text;
	size_t few_length = 0;
	struct maps *maps = maps_new(getpid());
	double start, few, many;

	(void)state;
	for (int i = 0; i < MANY; i++) {
		at += sprintf(at, "%08x-%08x r-xp %08x fe:01 %d /usr/lib/some/library-%d.so\n",
			      0x10000000 + i * 0x2000, 0x10001000 + i * 0x2000, i % 3 * 0x1000, 7 + i / 3,
			      i / 3);
		if (i == FEW - 1)
			few_length = (size_t)(at - text);
	}
	start = seconds_of_cpu();
	for (int i = 0; i < 20; i++)
		assert_int_equal(maps_parse(maps, text, few_length), 0);
	few = seconds_of_cpu() - start;
	start = seconds_of_cpu();
	assert_int_equal(maps_parse(maps, text, (size_t)(at - text)), 0);
	many = seconds_of_cpu() - start;
	assert_int_equal(maps_count(maps), MANY);
	for (uint64_t i = 0; i < MANY; i++)
		assert_int_equal(maps_find(maps, 0x10000800 + i * 0x2000)->begin, 0x10000000 + i * 0x2000);
	print_message("50,000 mappings: %.1f ms\n", many * 1e3);
	assert_true(many < 10 * few + 0.01);
	free(text);
	maps_free(maps);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_become_mappings),
		cmocka_unit_test(addresses_are_found),
		cmocka_unit_test(mappings_of_a_file_are_one_loading),
		cmocka_unit_test(code_in_the_place_of_a_files_code_is_the_files),
		cmocka_unit_test(odd_names_are_kept),
		cmocka_unit_test(what_is_no_mapping_is_passed_over),
		cmocka_unit_test(overlapping_lines_of_a_torn_reading_are_dropped),
		cmocka_unit_test(own_process_is_understood_and_changes_are_noticed),
		cmocka_unit_test(process_that_has_ended_has_no_maps),
		cmocka_unit_test(many_mappings_take_no_more_than_their_share),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

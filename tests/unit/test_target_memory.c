/* SPDX-License-Identifier: MIT */
/* Reading the memory of a live process. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/linux/proc/live_memory.h"
#include "src/linux/proc/maps.h"
#include "tests/unit/target_process.h"

enum { PAGE = 4096, RANGES = 5000 };

/* Two pages of which the second is not mapped. */
static unsigned char *map_page_before_hole(void)
{
	unsigned char *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
				    0);

	assert_true(pages != MAP_FAILED);
	assert_int_equal(munmap(pages + PAGE, PAGE), 0);
	for (int i = 0; i < PAGE; i++)
		pages[i] = (unsigned char)(i * 7);
	return pages;
}

static void reads_many_ranges_and_skips_bad_ones(void **state)
{
	struct live_memory *live = live_memory_new(getpid());
	unsigned char *page = map_page_before_hole();
	struct memory_range *ranges = calloc(RANGES, sizeof(*ranges));
	unsigned char *copies = calloc(RANGES, 16);

	(void)state;
	for (size_t i = 0; i < RANGES; i++) {
		ranges[i].address = (uintptr_t)page + i % 100;
		ranges[i].length = i % 16;
		ranges[i].copy = copies + 16 * i;
		if (i % 97 == 3)
			ranges[i].address = (uintptr_t)page + PAGE;
	}
	memory_read_ranges(live_memory_memory(live), ranges, RANGES);
	for (size_t i = 0; i < RANGES; i++) {
		if (i % 97 == 3 && i % 16 != 0) {
			assert_int_equal(ranges[i].status, MEMORY_UNMAPPED);
		} else {
			assert_int_equal(ranges[i].status, MEMORY_OK);
			if (i % 97 != 3)
				assert_memory_equal(ranges[i].copy, page + i % 100, i % 16);
		}
	}
	live_memory_free(live);
	munmap(page, PAGE);
	free(ranges);
	free(copies);
}

static void range_that_runs_into_a_hole_fails_alone(void **state)
{
	struct live_memory *live = live_memory_new(getpid());
	unsigned char *page = map_page_before_hole();
	unsigned char first[8], across[16], last[8];
	struct memory_range ranges[] = {
		{ .address = (uintptr_t)page, .copy = first, .length = 8 },
		{ .address = (uintptr_t)page + PAGE - 8, .copy = across, .length = 16 },
		{ .address = (uintptr_t)page + PAGE - 8, .copy = last, .length = 8 },
	};

	(void)state;
	memory_read_ranges(live_memory_memory(live), ranges, 3);
	assert_int_equal(ranges[0].status, MEMORY_OK);
	assert_int_equal(ranges[1].status, MEMORY_UNMAPPED);
	assert_int_equal(ranges[2].status, MEMORY_OK);
	assert_memory_equal(last, page + PAGE - 8, 8);
	live_memory_free(live);
	munmap(page, PAGE);
}

static void wild_addresses_and_lengths_are_unmapped(void **state)
{
	static const struct {
		uint64_t address;
		size_t length;
	} wild[] = {
		{ 0, 8 },
		{ 8, 8 },
		{ UINT64_MAX - 3, 8 },
		{ UINT64_MAX, 1 },
		{ 0x8000000000000000, 8 },
		{ 0x0000800000000000, 8 },
		{ 0xffffffff81000000, 8 },
		{ 4096, SIZE_MAX },
	};
	struct live_memory *live = live_memory_new(getpid());
	unsigned char copy[8];

	(void)state;
	for (size_t i = 0; i < sizeof(wild) / sizeof(wild[0]); i++)
		assert_int_equal(memory_read(live_memory_memory(live), wild[i].address, copy, wild[i].length),
				 MEMORY_UNMAPPED);
	live_memory_free(live);
}

static void ended_process_is_gone(void **state)
{
	pid_t child = fork();
	struct live_memory *live = live_memory_new(child);
	uint64_t value;

	(void)state;
	if (child == 0)
		_exit(0);
	target_process_await(child, child, "Z");
	assert_int_equal(memory_read(live_memory_memory(live), (uintptr_t)&value, &value, 8), MEMORY_GONE);
	waitpid(child, NULL, 0);
	assert_int_equal(memory_read(live_memory_memory(live), (uintptr_t)&value, &value, 8), MEMORY_GONE);
	live_memory_free(live);
}

static void other_process_is_read(void **state)
{
	static uint64_t value = 1;
	struct live_memory *live;
	uint64_t got;
	pid_t child = fork();

	(void)state;
	if (child == 0) {
		value = 0x1122334455667788;
		raise(SIGSTOP);
		_exit(0);
	}
	waitpid(child, NULL, WUNTRACED);
	live = live_memory_new(child);
	assert_true(memory_u64(live_memory_memory(live), (uintptr_t)&value, &got));
	assert_int_equal(got, 0x1122334455667788);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	live_memory_free(live);
}

static void process_whose_first_thread_has_ended_is_read(void **state)
{
	struct target_process target = target_process_start("zombie_leader", NULL);
	struct maps *maps = maps_new(target.pid);
	struct live_memory *live;
	unsigned char magic[4];
	bool changed;

	(void)state;
	target_process_await(target.pid, target.pid, "Z");
	assert_int_equal(maps_refresh(maps, &changed), 0);
	assert_true(maps_file_count(maps) > 0);
	live = live_memory_new(target.pid);
	assert_int_equal(memory_read(live_memory_memory(live), maps_file_at(maps, 0)->base, magic, 4),
			 MEMORY_OK);
	assert_memory_equal(magic,
			    "\x7f"
			    "ELF",
			    4);
	target_process_end(&target);
	assert_int_equal(memory_read(live_memory_memory(live), maps_file_at(maps, 0)->base, magic, 4),
			 MEMORY_GONE);
	assert_int_equal(maps_refresh(maps, &changed), -ESRCH);
	live_memory_free(live);
	maps_free(maps);
}

/* Make process_vm_readv() fail in this process, as a container's filter or an old kernel does. */
static bool forbid_call(int error)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* 0 if everything is as expected; otherwise which expectation failed. */
static int read_without_call(pid_t target, int error, const unsigned char *page)
{
	struct live_memory *live = live_memory_new(target);
	unsigned char copies[3][8];
	struct memory_range ranges[] = {
		{ .address = (uintptr_t)page, .copy = copies[0], .length = 8 },
		{ .address = (uintptr_t)page + PAGE, .copy = copies[1], .length = 8 },
		{ .address = (uintptr_t)page + 100, .copy = copies[2], .length = 8 },
	};

	if (!forbid_call(error))
		return 1;
	for (int round = 0; round < 2; round++) {
		memory_read_ranges(live_memory_memory(live), ranges, 3);
		if (ranges[0].status != MEMORY_OK || memcmp(copies[0], page, 8) != 0)
			return 2;
		if (ranges[1].status != MEMORY_UNMAPPED)
			return 3;
		if (ranges[2].status != MEMORY_OK || memcmp(copies[2], page + 100, 8) != 0)
			return 4;
	}
	kill(target, SIGKILL);
	while (target_process_state(target, target) != 'Z')
		sleep_ms(1);
	memory_read_ranges(live_memory_memory(live), ranges, 1);
	if (ranges[0].status != MEMORY_GONE)
		return 5;
	live_memory_free(live);
	return 0;
}

static void falls_back_to_the_file(int error)
{
	unsigned char *page = map_page_before_hole();
	pid_t target = fork(), reader;
	int status;

	if (target == 0)
		for (;;)
			pause();
	reader = fork();
	if (reader == 0)
		_exit(read_without_call(target, error, page));
	waitpid(reader, &status, 0);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	kill(target, SIGKILL);
	waitpid(target, NULL, 0);
	munmap(page, PAGE);
}

static void falls_back_to_the_file_where_the_call_is_missing(void **state)
{
	(void)state;
	falls_back_to_the_file(ENOSYS);
}

static void falls_back_to_the_file_where_the_call_is_refused(void **state)
{
	(void)state;
	falls_back_to_the_file(EPERM);
}

static void refusal_by_both_is_told(void **state)
{
	pid_t target, reader;
	int status;

	(void)state;
	if (geteuid() != 0) {
		print_message("skipped: only root can become two users\n");
		skip();
	}
	target = fork();
	if (target == 0)
		for (;;)
			pause();
	reader = fork();
	if (reader == 0) {
		struct live_memory *live = live_memory_new(target);
		uint64_t value;

		if (setresuid(65534, 65534, 65534))
			_exit(1);
		_exit(memory_read(live_memory_memory(live), (uintptr_t)&value, &value, 8) != MEMORY_REFUSED);
	}
	waitpid(reader, &status, 0);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	kill(target, SIGKILL);
	waitpid(target, NULL, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_many_ranges_and_skips_bad_ones),
		cmocka_unit_test(range_that_runs_into_a_hole_fails_alone),
		cmocka_unit_test(wild_addresses_and_lengths_are_unmapped),
		cmocka_unit_test(ended_process_is_gone),
		cmocka_unit_test(other_process_is_read),
		cmocka_unit_test(process_whose_first_thread_has_ended_is_read),
		cmocka_unit_test(falls_back_to_the_file_where_the_call_is_missing),
		cmocka_unit_test(falls_back_to_the_file_where_the_call_is_refused),
		cmocka_unit_test(refusal_by_both_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* Large reads are shared among threads, and what a file may keep waiting is read by the caller's thread. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "src/heap/parallel_memory.h"
#include "src/linux/proc/live_memory.h"
#include "tests/unit/instead_of.h"

enum {
	RANGES = 16,
	LARGE = 1 << 20,
	SMALL = 4096,
	ROUNDS = 200,
	FILE_RANGE = 3,
	UNKNOWN_RANGE = 5,
	BAD_RANGE = 7,
	/* At least, in each round; by then they have been given those of files, or the caller was. */
	HELPERS_READ = 8,
	POLLS = 20000,
	POLL_NS = 1000 * 1000
};

/* What each memory reads: the caller's, or one of the helpers' own. */
static struct made_up {
	struct memory memory; /* first */
	bool is_plain;
} plain;

static atomic_uint by_helpers, plain_reads, files_by_helpers, open_memories;
static atomic_uint in_round; /* reads by helpers */
static bool awaits_helpers;
static unsigned int cpus;
static uint8_t copies[RANGES][SMALL];
static atomic_bool helpers_must_fail;

static uint64_t address_of(size_t range)
{
	return ((uint64_t)range + 1) << 32;
}

/* On a busy machine, the caller would read all before a helper got a CPU. */
static void await_helpers(void)
{
	const struct timespec pause = { .tv_nsec = POLL_NS };

	for (unsigned int i = 0; i < POLLS && atomic_load(&in_round) < HELPERS_READ; i++)
		nanosleep(&pause, NULL);
	awaits_helpers = atomic_load(&in_round) >= HELPERS_READ; /* if in vain, it is so once */
}

static void read_made_up(struct memory *memory, struct memory_range *ranges, size_t count)
{
	const bool is_plain = ((struct made_up *)(void *)memory)->is_plain;

	if (is_plain && awaits_helpers)
		await_helpers();
	for (size_t i = 0; i < count; i++) {
		const size_t range = (size_t)(ranges[i].address >> 32) - 1;

		if (!is_plain)
			atomic_fetch_add(&in_round, 1);
		atomic_fetch_add(is_plain ? &plain_reads : &by_helpers, 1);
		if (!is_plain && (range == FILE_RANGE || range == UNKNOWN_RANGE))
			atomic_fetch_add(&files_by_helpers, 1);
		ranges[i].status = MEMORY_UNMAPPED;
		if (range == BAD_RANGE || (!is_plain && atomic_load(&helpers_must_fail)))
			continue;
		*(uint8_t *)ranges[i].copy = (uint8_t)(range + 1);
		ranges[i].status = MEMORY_OK;
	}
}

INSTEAD_OF(live_memory_new);
struct live_memory *__wrap_live_memory_new(pid_t pid)
{
	struct made_up *made_up = calloc(1, sizeof(*made_up));

	assert_int_equal(pid, 71);
	assert_non_null(made_up);
	made_up->memory.read_ranges = read_made_up;
	atomic_fetch_add(&open_memories, 1);
	return (struct live_memory *)(void *)made_up;
}

INSTEAD_OF(live_memory_memory);
struct memory *__wrap_live_memory_memory(struct live_memory *live)
{
	return (struct memory *)(void *)live;
}

INSTEAD_OF(live_memory_free);
void __wrap_live_memory_free(struct live_memory *live)
{
	atomic_fetch_sub(&open_memories, live != NULL);
	free(live);
}

/* Two mappings follow each other in each range. */
INSTEAD_OF(maps_find);
const struct mapping *__wrap_maps_find(const struct maps *maps, uint64_t address)
{
	static struct mapping mappings[RANGES][2];
	const size_t range = (size_t)(address >> 32) - 1;
	const bool is_second = (uint32_t)address >= SMALL / 2;
	struct mapping *mapping = &mappings[range][is_second];

	(void)maps;
	if (range == UNKNOWN_RANGE)
		return NULL;
	*mapping = (struct mapping){ .begin = address_of(range), .end = address_of(range) + SMALL / 2 };
	if (is_second)
		*mapping = (struct mapping){ .begin = address_of(range) + SMALL / 2,
					     .end = address_of(range) + LARGE,
					     .inode = range == FILE_RANGE };
	return mapping;
}

INSTEAD_OF(sched_getaffinity);
int __wrap_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *ret_cpus)
{
	(void)pid, (void)size;
	CPU_ZERO(ret_cpus);
	for (unsigned int i = 0; i < cpus; i++)
		CPU_SET(i, ret_cpus);
	return 0;
}

static struct parallel_memory *parallel;

static int begin(void **state)
{
	(void)state;
	plain = (struct made_up){ .memory.read_ranges = read_made_up, .is_plain = true };
	by_helpers = plain_reads = files_by_helpers = open_memories = 0;
	helpers_must_fail = awaits_helpers = false;
	cpus = 4;
	parallel = parallel_memory_new(71, &plain.memory, NULL);
	return parallel ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	parallel_memory_free(parallel);
	assert_int_equal(atomic_load(&open_memories), 0);
	return 0;
}

/* Each range as long as that; only the first byte of a copy is written. */
static void read_all(size_t count, size_t length)
{
	struct memory_range ranges[RANGES];

	memset(copies, 0, sizeof(copies));
	for (size_t i = 0; i < count; i++)
		ranges[i] = (struct memory_range){ .address = address_of(i),
						   .copy = copies[i],
						   .length = length };
	memory_read_ranges(parallel_memory_memory(parallel), ranges, count);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(ranges[i].status, i == BAD_RANGE ? MEMORY_UNMAPPED : MEMORY_OK);
		assert_int_equal(copies[i][0], i == BAD_RANGE ? 0 : i + 1);
	}
}

static void read_with_helpers(void)
{
	parallel_memory_start(parallel);
	assert_int_equal(atomic_load(&open_memories), 3);
	awaits_helpers = true;
	for (unsigned int i = 0; i < ROUNDS; i++) {
		in_round = 0;
		read_all(RANGES, LARGE);
		assert_true(atomic_load(&in_round) >= HELPERS_READ);
	}
}

static void large_reads_are_shared(void **state)
{
	(void)state;
	read_with_helpers();
	assert_int_equal(atomic_load(&files_by_helpers), 0);
	/* Only those that helpers must not read are given to two. */
	assert_in_range(atomic_load(&plain_reads) + atomic_load(&by_helpers), ROUNDS * RANGES,
			ROUNDS * (RANGES + 1));
}

/* What a helper could not read is read again by the caller's thread. */
static void what_helpers_cannot_read_the_caller_reads(void **state)
{
	(void)state;
	helpers_must_fail = true;
	read_with_helpers();
}

static void small_reads_are_the_callers(void **state)
{
	(void)state;
	read_all(RANGES, LARGE); /* nobody helps yet */
	parallel_memory_start(parallel);
	for (unsigned int i = 0; i < ROUNDS; i++) {
		read_all(1, 8 * LARGE);
		read_all(RANGES, SMALL);
		read_all(4, LARGE - 1);
	}
	assert_int_equal(atomic_load(&by_helpers), 0);
	assert_int_equal(atomic_load(&plain_reads), RANGES + ROUNDS * (1 + RANGES + 4));
}

static void there_are_as_many_helpers_as_other_cpus(void **state)
{
	static const unsigned int helpers[] = { 0, 0, 1, 2, 3, 3 };

	for (cpus = 1; cpus < sizeof(helpers) / sizeof(helpers[0]); cpus++) {
		parallel_memory_start(parallel);
		assert_int_equal(atomic_load(&open_memories), helpers[cpus]);
		/* Once they are there, they stay. */
		parallel_memory_start(parallel);
		assert_int_equal(atomic_load(&open_memories), helpers[cpus]);
	}
	end(state);
	parallel = NULL;
	parallel_memory_free(NULL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(large_reads_are_shared),
		TEST(what_helpers_cannot_read_the_caller_reads),
		TEST(small_reads_are_the_callers),
		TEST(there_are_as_many_helpers_as_other_cpus),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* The memory that nginx's processes share, found in made-up memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/range_bytes.h"
#include "unwind/nginx/zones.h"

enum {
	BASE = 0x10000,
	WORDS = 512,
	CYCLE = 8, /* word of ngx_cycle_t; ngx_cycle is word 0 */
	LIST = CYCLE + 20,
	SHM_ZONES = 150,
	SHM_ZONE_WORDS = 11,
	NAME = 180,
	DOGS = 200, /* a zone with a semaphore */
	CATS = 300, /* one without */
	MUTEX = 15, /* words from a zone's beginning */
	POOL = 0xabc0,
	HOLDER = 4711,
	HIGHEST = 1 << 22, /* PID_MAX_LIMIT of Linux */
};

struct made_up {
	struct memory memory;
	uint64_t words[WORDS];
};

static void read_ranges(struct memory *memory, struct memory_range *ranges, size_t count)
{
	const struct made_up *made_up = (const struct made_up *)memory;

	range_bytes(ranges, count, BASE, made_up->words, sizeof(made_up->words));
}

static uint64_t address_of(unsigned word)
{
	return BASE + word * sizeof(uint64_t);
}

static void add_zone(struct made_up *made_up, unsigned number, unsigned zone, const char *name)
{
	uint64_t *shm_zone = &made_up->words[SHM_ZONES + number * SHM_ZONE_WORDS];

	shm_zone[1] = address_of(zone);
	shm_zone[2] = 1 << 20;
	shm_zone[3] = strlen(name);
	shm_zone[4] = address_of(NAME + number);
	memcpy(&made_up->words[NAME + number], name, strlen(name));
	made_up->words[zone + MUTEX] = address_of(zone);
}

static struct made_up make_up(void)
{
	struct made_up made_up = { .memory = { .read_ranges = read_ranges } };
	const uint64_t list[] = {
		0, address_of(SHM_ZONES), 2, 0, SHM_ZONE_WORDS * sizeof(uint64_t), 8, POOL
	};

	made_up.words[0] = address_of(CYCLE);
	made_up.words[CYCLE + 1] = POOL;
	memcpy(&made_up.words[LIST], list, sizeof(list));
	add_zone(&made_up, 0, DOGS, "dogs");
	add_zone(&made_up, 1, CATS, "cats");
	made_up.words[DOGS + MUTEX + 1] = address_of(DOGS + 1);
	made_up.words[DOGS] = HOLDER;
	return made_up;
}

static void zones_are_found_with_their_holders(void **state)
{
	struct made_up made_up = make_up();
	uint64_t holders[ZONES_MAX];
	struct zones zones;

	(void)state;
	assert_true(zones_find(&made_up.memory, BASE, &zones));
	assert_int_equal(zones.count, 2);
	assert_string_equal(zones.list[0].name, "dogs");
	assert_int_equal(zones.list[0].begin, address_of(DOGS));
	assert_int_equal(zones.list[0].mutex, address_of(DOGS + MUTEX));
	assert_string_equal(zones.list[1].name, "cats");
	zones_read_holders(&made_up.memory, &zones, holders);
	assert_int_equal(holders[0], HOLDER);
	assert_int_equal(holders[1], 0);
}

static void a_zone_is_known_by_its_copy_and_by_its_mutex(void **state)
{
	struct made_up made_up = make_up();
	const unsigned copy = 400;
	struct zones zones;

	(void)state;
	assert_true(zones_find(&made_up.memory, BASE, &zones));
	memcpy(&made_up.words[copy], &made_up.words[SHM_ZONES + SHM_ZONE_WORDS], SHM_ZONE_WORDS * 8);
	assert_ptr_equal(zones_at(&made_up.memory, &zones, address_of(copy)), &zones.list[1]);
	made_up.words[copy + 2]++; /* its size */
	assert_null(zones_at(&made_up.memory, &zones, address_of(copy)));
	assert_null(zones_at(&made_up.memory, &zones, 8));
	assert_ptr_equal(zones_of_mutex(&zones, address_of(DOGS + MUTEX + 3)), &zones.list[0]);
	assert_null(zones_of_mutex(&zones, address_of(DOGS)));
}

static void memory_that_does_not_lead_back_is_no_zone(void **state)
{
	struct made_up made_up = make_up();
	struct zones zones;

	(void)state;
	made_up.words[CATS + MUTEX]++;
	assert_false(zones_find(&made_up.memory, BASE, &zones));
	assert_int_equal(zones.count, 0);
	made_up = make_up();
	made_up.words[LIST + 6]++; /* the list's pool is not the cycle's */
	assert_false(zones_find(&made_up.memory, BASE, &zones));
	made_up = make_up();
	made_up.words[LIST + 3] = address_of(LIST + 1); /* the list leads to itself */
	assert_false(zones_find(&made_up.memory, BASE, &zones));
	assert_false(zones_find(&made_up.memory, 0, &zones));
}

static void long_names_are_cut(void **state)
{
	struct made_up made_up = make_up();
	struct zones zones;

	(void)state;
	memset(&made_up.words[NAME], 'x', 160);
	made_up.words[SHM_ZONES + 3] = 160;
	assert_true(zones_find(&made_up.memory, BASE, &zones));
	assert_int_equal(strlen(zones.list[0].name), ZONE_NAME_BYTES - 1);
}

static void a_zone_that_is_gone_is_held_by_nobody(void **state)
{
	struct made_up made_up = make_up();
	uint64_t holders[ZONES_MAX];
	struct zones zones;

	(void)state;
	assert_true(zones_find(&made_up.memory, BASE, &zones));
	for (size_t gone = 0; gone < zones.count; gone++) {
		const uint64_t begin = zones.list[gone].begin;

		memset(holders, 0xff, sizeof(holders));
		zones.list[gone].begin = 8;
		zones_read_holders(&made_up.memory, &zones, holders);
		zones.list[gone].begin = begin;
		assert_int_equal(holders[gone], 0);
		assert_int_equal(holders[0], gone == 0 ? 0 : HOLDER);
	}
}

static void a_holder_is_a_process(void **state)
{
	struct made_up made_up = make_up();
	pid_t holder = -1;

	(void)state;
	assert_true(zones_read_holder(&made_up.memory, address_of(DOGS), &holder));
	assert_int_equal(holder, HOLDER);
	assert_true(zones_read_holder(&made_up.memory, address_of(CATS), &holder));
	assert_int_equal(holder, 0);
	made_up.words[DOGS] = HIGHEST;
	assert_true(zones_read_holder(&made_up.memory, address_of(DOGS), &holder));
	assert_int_equal(holder, HIGHEST);
	holder = -1;
	made_up.words[DOGS] = HIGHEST + 1;
	assert_false(zones_read_holder(&made_up.memory, address_of(DOGS), &holder));
	made_up.words[DOGS] = UINT64_C(1) << 32 | HOLDER;
	assert_false(zones_read_holder(&made_up.memory, address_of(DOGS), &holder));
	assert_false(zones_read_holder(&made_up.memory, 8, &holder));
	assert_int_equal(holder, -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(zones_are_found_with_their_holders),
		cmocka_unit_test(a_zone_is_known_by_its_copy_and_by_its_mutex),
		cmocka_unit_test(memory_that_does_not_lead_back_is_no_zone),
		cmocka_unit_test(long_names_are_cut),
		cmocka_unit_test(a_zone_that_is_gone_is_held_by_nobody),
		cmocka_unit_test(a_holder_is_a_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

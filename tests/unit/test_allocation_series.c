/* SPDX-License-Identifier: MIT */
/* A series of looks at the counters, on a made-up clock: which pairs it has, and what is known of each. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "src/allocations/allocation_series.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/ticking_clock.h"
#include "unwind/values/live_ctypes.h"

enum {
	LOOKS = 200,
	LARGE = 100 * 1000,
	ADDS = 16,
	ROOT = 0x1000,
	/* A look takes 1 us and the next one comes 1 us later: 75 pairs begin in 150 us. */
	TAKES_NS = 1000,
	PAIRS = 75,
	NONE = -1
};

/* What the looks meet, each beyond the one before. */
static struct step {
	uint64_t adds, roots, takes_ns;
	int strings;
} steps[LOOKS];
static size_t looks, unreadable; /* so many; that one, and those after it */
static struct allocation_counters counters;
static int signal_number; /* one that waits from that look on */
static size_t signal_at;
static bool keeps_cpu, knows_objects, has_types;
static unsigned int cpu_questions;

/* The new objects, of whichever pair. */
static struct listed_object new_objects[LISTED_OBJECTS_MAX];
static size_t new_count;
static uint64_t listed_from, listed_to;

static struct allocation_pair pairs[LOOKS];
static size_t pair_count;
static uint64_t pair_bytes;

INSTEAD_OF(sigpending);
int __wrap_sigpending(sigset_t *ret_set)
{
	sigemptyset(ret_set);
	if (signal_number && looks > signal_at)
		sigaddset(ret_set, signal_number);
	return 0;
}

INSTEAD_OF(allocation_counters_read);
bool __wrap_allocation_counters_read(struct memory *memory, const struct global_state *global,
				     struct allocation_counters *ret_counters)
{
	const struct step *step = &steps[looks];

	(void)memory;
	(void)global;
	assert_true(looks < LOOKS);
	now_ns += step->takes_ns;
	counters.total += step->adds;
	counters.root += step->roots;
	counters.strings = (uint32_t)((int)counters.strings + step->strings);
	*ret_counters = counters;
	return looks++ < unreadable;
}

INSTEAD_OF(allocated_objects);
bool __wrap_allocated_objects(struct memory *memory, const struct global_state *global, uint64_t first,
			      uint64_t last, struct listed_object *objects, size_t *ret_count)
{
	(void)memory;
	(void)global;
	listed_from = first;
	listed_to = last;
	memcpy(objects, new_objects, new_count * sizeof(*objects));
	*ret_count = new_count;
	return knows_objects;
}

INSTEAD_OF(live_ctypes_load);
bool __wrap_live_ctypes_load(struct live_ctypes *types)
{
	(void)types;
	return has_types;
}

/* Its size is its address. */
INSTEAD_OF(live_ctypes_object_bytes);
uint64_t __wrap_live_ctypes_object_bytes(struct live_ctypes *types, uint64_t address, uint32_t id)
{
	(void)types;
	assert_int_equal(id, 7);
	return address;
}

INSTEAD_OF(allocation_shares_add_pair);
void __wrap_allocation_shares_add_pair(struct allocation_shares *shares, const struct allocation_pair *pair)
{
	(void)shares;
	assert_true(pair_count < LOOKS);
	pairs[pair_count++] = *pair;
	pair_bytes += pair->bytes;
}

static bool has_kept_cpu(const void *context)
{
	assert_ptr_equal(context, &keeps_cpu);
	cpu_questions++;
	return keeps_cpu;
}

static void begin(void)
{
	for (size_t i = 0; i < LOOKS; i++)
		steps[i] = (struct step){ .adds = ADDS, .takes_ns = TAKES_NS };
	counters = (struct allocation_counters){ .total = 1000000, .root = ROOT, .strings = 50 };
	looks = new_count = signal_at = 0;
	unreadable = LOOKS;
	now_ns = UINT64_C(100000000000);
	signal_number = 0;
	keeps_cpu = knows_objects = has_types = true;
}

/* Returns the number of the pair that is large, or NONE; there is one at most. */
static int take(void)
{
	static struct listed_object objects[LISTED_OBJECTS_MAX];
	static const struct vm_code vm;
	const struct global_state global = { .vm = &vm };
	const struct series series = {
		.global = &global, .objects = objects, .has_kept_cpu = has_kept_cpu, .context = &keeps_cpu
	};
	int large = NONE;

	pair_count = 0;
	pair_bytes = listed_from = listed_to = 0;
	cpu_questions = 0;
	allocation_series_take(&series);
	for (size_t i = 0; i < pair_count; i++)
		if (pairs[i].bytes >= ALLOCATION_LARGE_MIN) {
			assert_int_equal(large, NONE);
			large = (int)i;
		} else {
			assert_int_equal(pairs[i].cdata, PAIR_NO_CDATA);
		}
	return large;
}

/* The pair that ends with look 8 is large, and the list has these new objects since look 7. */
static const struct allocation_pair *large_with(size_t count, const struct listed_object *objects)
{
	int large;

	begin();
	steps[8].adds = LARGE;
	steps[9].roots = 0x10;
	new_count = count;
	memcpy(new_objects, objects, count * sizeof(*objects));
	large = take();
	assert_int_equal(large, 7);
	assert_int_equal(pair_count, PAIRS);
	return &pairs[large];
}

static void a_series_has_all_that_comes_in_its_time(void **state)
{
	(void)state;
	begin();
	assert_int_equal(take(), NONE);
	assert_int_equal(looks, PAIRS + 2);
	assert_int_equal(pair_count, PAIRS);
	assert_int_equal(pair_bytes, PAIRS * ADDS);
	for (size_t i = 0; i < PAIRS; i++)
		assert_false(pairs[i].is_merged || pairs[i].has_string);
	begin();
	steps[1].adds = LARGE;
	assert_int_equal(take(), 0);
	assert_int_equal(pair_bytes, LARGE + (PAIRS - 1) * ADDS);
	begin();
	steps[PAIRS].adds = LARGE;
	assert_int_equal(take(), PAIRS - 1);
}

#define CDATA(size) \
	(struct listed_object) \
	{ \
		.kind = ALLOCATION_CDATA, .address = (size), .ctype = 7 \
	}

static void a_c_object_is_one_of_that_size(void **state)
{
	static const struct listed_object table = { .kind = ALLOCATION_TABLE };

	(void)state;
	assert_int_equal(large_with(1, &CDATA(LARGE + 16))->cdata, PAIR_CDATA);
	assert_int_equal(listed_from, ROOT + 0x10);
	assert_int_equal(listed_to, ROOT);
	/* Whatever is newest by then, */
	assert_int_equal(large_with(2, (struct listed_object[]){ table, CDATA(LARGE) })->cdata, PAIR_CDATA);
	/* ... also a small C object: a table has grown before. */
	assert_int_equal(large_with(2, (struct listed_object[]){ CDATA(24), table })->cdata, PAIR_NO_CDATA);
	assert_int_equal(large_with(1, &table)->cdata, PAIR_NO_CDATA);
	/* Sizes within an eighth are about equal. */
	assert_int_equal(large_with(1, &CDATA(112500))->cdata, PAIR_CDATA);
	assert_int_equal(large_with(1, &CDATA(112501))->cdata, PAIR_UNKNOWN);
	assert_int_equal(large_with(1, &CDATA(87500))->cdata, PAIR_CDATA);
	assert_int_equal(large_with(1, &CDATA(87499))->cdata, PAIR_UNKNOWN);
	assert_int_equal(large_with(1, &CDATA(ALLOCATION_LARGE_MIN - 1))->cdata, PAIR_NO_CDATA);
}

static void several_c_objects_may_be_in_one_pair(void **state)
{
	static const struct listed_object table = { .kind = ALLOCATION_TABLE };

	(void)state;
	begin();
	steps[8].adds = 2 * LARGE;
	steps[8].roots = 0x20;
	steps[8].takes_ns = 15000;
	new_objects[0] = new_objects[1] = CDATA(LARGE);
	new_count = 2;
	assert_int_equal(take(), 7);
	assert_int_equal(pairs[7].cdata, PAIR_CDATA);
	assert_true(pairs[7].is_merged);
	/* One of them, and a table. */
	begin();
	steps[8].adds = 2 * LARGE;
	steps[8].roots = 0x20;
	new_objects[1] = table;
	new_count = 2;
	assert_int_equal(take(), 7);
	assert_int_equal(pairs[7].cdata, PAIR_UNKNOWN);
}

static void what_is_unknown_is_not_told(void **state)
{
	struct listed_object small[17];

	(void)state;
	for (size_t i = 0; i < 17; i++)
		small[i] = CDATA(24);
	assert_int_equal(large_with(16, small)->cdata, PAIR_NO_CDATA);
	assert_int_equal(large_with(17, small)->cdata, PAIR_UNKNOWN);
	assert_int_equal(large_with(1, &CDATA(0))->cdata, PAIR_UNKNOWN);
	begin();
	steps[8] = (struct step){ .adds = LARGE, .roots = 16, .takes_ns = TAKES_NS };
	knows_objects = false;
	assert_int_equal(take(), 7);
	assert_int_equal(pairs[7].cdata, PAIR_UNKNOWN);
	begin();
	steps[8] = (struct step){ .adds = LARGE, .roots = 16, .takes_ns = TAKES_NS };
	new_objects[0] = CDATA(LARGE);
	new_count = 1;
	has_types = false;
	assert_int_equal(take(), 7);
	assert_int_equal(pairs[7].cdata, PAIR_UNKNOWN);
	/* Without a new object, there is no C object. */
	begin();
	steps[8].adds = LARGE;
	knows_objects = false;
	assert_int_equal(take(), 7);
	assert_int_equal(pairs[7].cdata, PAIR_NO_CDATA);
}

/* While it is copied, nothing else is allocated. */
static void a_large_string_counts_when_it_has_been_copied(void **state)
{
	(void)state;
	begin();
	steps[8].adds = LARGE;
	for (size_t i = 9; i <= 20; i++)
		steps[i].adds = 0;
	steps[20].strings = 1;
	assert_int_equal(take(), 7);
	assert_true(pairs[7].has_string);
	/* Another one, after something else; or fewer, as some were freed. */
	begin();
	steps[8].adds = LARGE;
	steps[10].strings = 1;
	assert_int_equal(take(), 7);
	assert_false(pairs[7].has_string);
	begin();
	steps[8].adds = LARGE;
	steps[9].adds = 0;
	steps[9].strings = -1;
	assert_int_equal(take(), 7);
	assert_false(pairs[7].has_string);
	/* At once. */
	begin();
	steps[8].adds = LARGE;
	steps[8].strings = 1;
	assert_int_equal(take(), 7);
	assert_true(pairs[7].has_string);
}

/* While the kernel maps memory, or others have ljspy's CPU. */
static void in_a_long_pair_there_may_be_several(void **state)
{
	(void)state;
	begin();
	steps[8].takes_ns = 8900;
	steps[8].adds = LARGE;
	assert_int_equal(take(), 7);
	assert_false(pairs[7].is_merged);
	begin();
	steps[8].takes_ns = 9100;
	steps[8].adds = LARGE;
	assert_int_equal(take(), 7);
	assert_true(pairs[7].is_merged);
	begin();
	steps[8].takes_ns = 98000;
	steps[8].adds = LARGE;
	assert_int_equal(take(), 7);
	begin();
	steps[8].takes_ns = 100000;
	steps[8].adds = LARGE;
	assert_int_equal(take(), NONE);
}

/* It is no less likely to be seen. */
static void what_takes_the_kernel_long_is_seen(void **state)
{
	(void)state;
	/* Across the end, */
	begin();
	steps[PAIRS].takes_ns = 90000;
	steps[PAIRS].adds = LARGE;
	assert_int_equal(take(), PAIRS - 1);
	/* ... and after a silence in which the thread has kept its CPU. */
	begin();
	for (size_t i = 5; i < 45; i++)
		steps[i].adds = 0;
	steps[45].adds = LARGE;
	assert_int_equal(take(), 44);
	assert_int_equal(cpu_questions, 1);
	assert_int_equal(pair_count, PAIRS);
}

static void a_series_ends_where_the_thread_has_left_its_cpu(void **state)
{
	(void)state;
	begin();
	keeps_cpu = false;
	assert_int_equal(take(), NONE);
	assert_int_equal(pair_count, PAIRS);
	begin();
	keeps_cpu = false;
	for (size_t i = 0; i < LOOKS; i++)
		steps[i].adds = 0;
	assert_int_equal(take(), NONE);
	assert_int_equal(cpu_questions, 1);
	assert_int_equal(pair_count, 24); /* in 50 us, but for the last one */
	begin();
	for (size_t i = 0; i < LOOKS; i++)
		steps[i].adds = 0;
	assert_int_equal(take(), NONE);
	assert_int_equal(cpu_questions, 3);
	assert_int_equal(pair_count, PAIRS);
}

static void a_series_ends_where_a_signal_waits(void **state)
{
	const int signals[] = { SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGRTMIN };

	(void)state;
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		begin();
		signal_number = signals[i];
		signal_at = 10;
		take();
		assert_int_equal(looks, 11);
		assert_int_equal(pair_count, 9);
	}
	begin();
	signal_number = SIGWINCH;
	take();
	assert_int_equal(pair_count, PAIRS);
}

static void a_series_ends_where_the_counters_cannot_be_read(void **state)
{
	(void)state;
	begin();
	unreadable = 0;
	take();
	assert_int_equal(pair_count, 0);
	assert_int_equal(looks, 1);
	begin();
	unreadable = 10;
	take();
	assert_int_equal(pair_count, 8);
	assert_int_equal(looks, 11);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_series_has_all_that_comes_in_its_time),
		cmocka_unit_test(a_c_object_is_one_of_that_size),
		cmocka_unit_test(several_c_objects_may_be_in_one_pair),
		cmocka_unit_test(what_is_unknown_is_not_told),
		cmocka_unit_test(a_large_string_counts_when_it_has_been_copied),
		cmocka_unit_test(in_a_long_pair_there_may_be_several),
		cmocka_unit_test(what_takes_the_kernel_long_is_seen),
		cmocka_unit_test(a_series_ends_where_the_thread_has_left_its_cpu),
		cmocka_unit_test(a_series_ends_where_a_signal_waits),
		cmocka_unit_test(a_series_ends_where_the_counters_cannot_be_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

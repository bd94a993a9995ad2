/* SPDX-License-Identifier: MIT */
/* Which frames are worth showing, and how much weight those have that are not. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "output/views/large_frames.h"
#include "tests/unit/instead_of.h"

INSTEAD_OF(malloc);
INSTEAD_OF(calloc);
INSTEAD_OF(realloc);
INSTEAD_OF(reallocarray);
#define FAILING_REALLOCARRAY
#include "tests/unit/failing_allocation.h"

enum { FUNCTIONS = 64, MANY = 1000 };

static struct function functions[FUNCTIONS];

/* A frame of a function, at a line. */
struct at {
	int function;
	uint32_t line;
};

static struct profile *new_profile(void)
{
	struct profile *profile = profile_new(&(struct profile_options){ .by_line = true });

	assert_non_null(profile);
	return profile;
}

/* CPU time of a stack of one frame or two, the caller first. */
static void add(struct profile *profile, uint64_t cpu_ns, struct at caller, struct at callee)
{
	const struct frame frames[] = {
		{ .function = &functions[callee.function], .line = callee.line },
		{ .function = &functions[caller.function], .line = caller.line },
	};
	const struct sample sample = {
		.cpu_ns = cpu_ns,
		.frames = callee.line ? frames : frames + 1,
		.frame_count = callee.line ? 2 : 1,
	};

	assert_int_equal(profile_add(profile, &sample), 0);
}

static const struct at none;

/* Where the frame stands in the list; -1: it is not listed. */
static int place_of(const struct frame_list *list, int function, uint32_t line)
{
	for (size_t i = 1; i < list->count; i++)
		if (list->nodes[i]->function == &functions[function] && list->nodes[i]->line == line)
			return (int)i;
	return -1;
}

/* The root comes first, each frame after its caller, and what is not listed is counted. */
static void assert_whole(const struct frame_list *list, const struct profile *profile)
{
	assert_ptr_equal(list->profile, profile);
	assert_ptr_equal(list->nodes[0], profile_root(profile));
	assert_int_equal(list->count + list->left_out, profile_node_count(profile) + 1);
	for (size_t i = 0; i < list->count; i++) {
		uint64_t callees_ns = list->left_out_ns[i];

		for (size_t j = 1; j < list->count; j++)
			if (list->nodes[j]->parent == list->nodes[i]) {
				assert_true(j > i);
				callees_ns += list->nodes[j]->total_ns;
			}
		assert_int_equal(callees_ns, list->nodes[i]->total_ns - list->nodes[i]->own_ns);
	}
}

static void frames_with_the_share_are_listed_and_no_others(void **state)
{
	struct profile *profile = new_profile();
	struct large_frames large;

	(void)state;
	add(profile, 100, (struct at){ 0, 1 }, (struct at){ 1, 1 });
	add(profile, 99, (struct at){ 0, 1 }, (struct at){ 2, 1 });
	add(profile, 621, (struct at){ 0, 1 }, none);
	add(profile, 80, (struct at){ 3, 1 }, (struct at){ 4, 1 });
	add(profile, 100, (struct at){ 5, 1 }, none);
	assert_int_equal(large_frames_find(profile, NULL, 0.1, MANY, &large), 0);
	assert_true(large.share == 0.1);
	assert_whole(&large.list, profile);
	assert_int_equal(large.list.count, 4);
	assert_int_equal(large.list.left_out, 3);
	assert_true(place_of(&large.list, 0, 1) > 0);
	assert_true(place_of(&large.list, 1, 1) > 0);
	assert_true(place_of(&large.list, 5, 1) > 0);
	assert_int_equal(large.list.left_out_ns[0], 80);
	assert_int_equal(large.list.left_out_ns[place_of(&large.list, 0, 1)], 99);
	assert_null(large.other.profile);
	assert_int_equal(large.other.count, 0);
	large_frames_clear(&large);
	assert_null(large.list.nodes);
	profile_free(profile);
}

/* A viewer may merge them. */
static void lines_of_a_function_have_its_share_together(void **state)
{
	struct profile *profile = new_profile();
	struct large_frames large;

	(void)state;
	add(profile, 60, (struct at){ 0, 1 }, none);
	add(profile, 40, (struct at){ 0, 2 }, none);
	add(profile, 99, (struct at){ 1, 1 }, none);
	/* Their callers are at different lines, too. */
	add(profile, 50, (struct at){ 2, 1 }, (struct at){ 3, 1 });
	add(profile, 50, (struct at){ 2, 2 }, (struct at){ 3, 2 });
	add(profile, 50, (struct at){ 2, 1 }, (struct at){ 1, 2 });
	add(profile, 651, (struct at){ 2, 1 }, none);
	assert_int_equal(large_frames_find(profile, NULL, 0.1, MANY, &large), 0);
	assert_whole(&large.list, profile);
	assert_true(place_of(&large.list, 0, 1) > 0);
	assert_true(place_of(&large.list, 0, 2) > 0);
	assert_int_equal(place_of(&large.list, 1, 1), -1);
	assert_true(place_of(&large.list, 3, 1) > 0);
	assert_true(place_of(&large.list, 3, 2) > 0);
	assert_int_equal(place_of(&large.list, 1, 2), -1);
	assert_int_equal(large.list.left_out, 2);
	large_frames_clear(&large);
	profile_free(profile);
}

static void of_two_profiles_the_larger_share_counts(void **state)
{
	struct profile *profile = new_profile(), *other = new_profile();
	struct large_frames large;

	(void)state;
	add(profile, 1, (struct at){ 0, 1 }, (struct at){ 1, 1 });
	add(profile, 99, (struct at){ 2, 1 },
	    (struct at){ 3, 1 }); /* below the share, and not in the other */
	add(profile, 900, (struct at){ 4, 1 }, none);
	add(other, 5000, (struct at){ 0, 7 }, (struct at){ 1, 8 });
	add(other, 5000, (struct at){ 5, 1 }, none);
	for (int turned = 0; turned < 2; turned++) {
		const struct profile *first = turned ? other : profile, *second = turned ? profile : other;
		const struct frame_list *list = turned ? &large.other : &large.list,
					*others = turned ? &large.list : &large.other;

		assert_int_equal(large_frames_find(first, second, 0.1, MANY, &large), 0);
		assert_whole(list, profile);
		assert_whole(others, other);
		assert_true(place_of(list, 0, 1) > 0);
		assert_true(place_of(list, 1, 1) > 0);
		assert_int_equal(place_of(list, 2, 1), -1);
		assert_int_equal(place_of(list, 3, 1), -1);
		assert_true(place_of(list, 4, 1) > 0);
		assert_int_equal(list->left_out, 2);
		assert_int_equal(others->left_out, 0);
		large_frames_clear(&large);
	}
	profile_free(profile);
	profile_free(other);
}

static void frames_without_a_weight_are_not_listed(void **state)
{
	struct profile *profile = new_profile(), *empty = new_profile();
	struct large_frames large;

	(void)state;
	add(profile, 0, (struct at){ 0, 1 }, (struct at){ 1, 1 });
	add(empty, 0, (struct at){ 0, 1 }, none);
	add(profile, 1, (struct at){ 2, 1 }, none);
	assert_int_equal(large_frames_find(profile, empty, 0, MANY, &large), 0);
	assert_whole(&large.list, profile);
	assert_whole(&large.other, empty);
	assert_int_equal(large.list.count, 2);
	assert_int_equal(place_of(&large.list, 2, 1), 1);
	assert_int_equal(large.other.count, 1);
	large_frames_clear(&large);
	profile_free(profile);
	profile_free(empty);
}

static void the_share_rises_until_few_are_listed(void **state)
{
	struct profile *profile = new_profile(), *other = new_profile();

	(void)state;
	for (int i = 0; i < FUNCTIONS; i++) {
		add(profile, 1000, (struct at){ i, 1 }, none);
		add(other, UINT64_C(1000) << (i % 8), (struct at){ i, 1 }, none);
	}
	for (size_t i = 0; i <= FUNCTIONS / 8; i++) {
		const size_t max = FUNCTIONS + 1 - 8 * i;
		struct large_frames large;
		const double all_ns = (double)profile_root(other)->total_ns;

		assert_int_equal(large_frames_find(other, NULL, 1e-4, max, &large), 0);
		assert_whole(&large.list, other);
		assert_in_range(large.list.count, 1, max);
		assert_int_equal(large.share > 1e-4, max <= FUNCTIONS);
		for (int j = 0; j < FUNCTIONS; j++)
			assert_int_equal(place_of(&large.list, j, 1) > 0,
					 (1000 << (j % 8)) + 1 > all_ns * large.share);
		large_frames_clear(&large);
		/* The other list has no more of them. */
		assert_int_equal(large_frames_find(profile, other, 1e-4, max, &large), 0);
		assert_in_range(large.list.count, 1, max);
		assert_in_range(large.other.count, 1, max);
		large_frames_clear(&large);
	}
	profile_free(profile);
	profile_free(other);
}

static void where_memory_is_short_that_is_told(void **state)
{
	struct profile *profile = new_profile(), *other = new_profile();
	size_t count = 0;

	(void)state;
	add(profile, 10, (struct at){ 0, 1 }, (struct at){ 1, 1 });
	add(other, 10, (struct at){ 0, 1 }, (struct at){ 2, 1 });
	for (bool failed = true; failed; count++) {
		struct large_frames large;
		int error;

		allocation_fails_after(count);
		error = large_frames_find(profile, other, 0.1, MANY, &large);
		failed = allocation_failed();
		assert_int_equal(error, failed ? -ENOMEM : 0);
		large_frames_clear(&large);
	}
	assert_true(count > 8);
	profile_free(profile);
	profile_free(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_with_the_share_are_listed_and_no_others),
		cmocka_unit_test(lines_of_a_function_have_its_share_together),
		cmocka_unit_test(of_two_profiles_the_larger_share_counts),
		cmocka_unit_test(frames_without_a_weight_are_not_listed),
		cmocka_unit_test(the_share_rises_until_few_are_listed),
		cmocka_unit_test(where_memory_is_short_that_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "output/views/profile.h"

enum { DEEPEST = 32768, WIDEST = 50000 };

static const struct function chunk = { .kind = FRAME_LUA, .name = "main chunk", .file = "test.lua" };
static const struct function heavy = {
	.kind = FRAME_LUA, .name = "heavy", .file = "test.lua", .firstline = 5
};
static const struct function light = {
	.kind = FRAME_LUA, .name = "light", .file = "test.lua", .firstline = 9
};

static struct profile *new_profile(struct profile_options options)
{
	struct profile *profile = profile_new(&options);

	assert_non_null(profile);
	return profile;
}

/* Frames leaf first, as samples have them. */
static void add(struct profile *profile, uint64_t cpu_ns, const struct frame *frames, size_t count)
{
	struct sample sample = {
		.cpu_ns = cpu_ns, .wall_ns = 10 * cpu_ns, .frames = frames, .frame_count = count
	};

	assert_int_equal(profile_add(profile, &sample), 0);
}

static void equal_stacks_merge(void **state)
{
	struct profile *profile = new_profile((struct profile_options){ 0 });
	struct frame first[] = { { .function = &heavy, .line = 6 }, { .function = &chunk, .line = 20 } };
	struct frame second[] = { { .function = &heavy, .line = 7 }, { .function = &chunk, .line = 21 } };
	const struct profile_node *node;

	(void)state;
	add(profile, 10, first, 2);
	add(profile, 5, second, 2);
	assert_int_equal(profile_node_count(profile), 2);
	assert_int_equal(profile_depth(profile), 2);

	node = profile_root(profile);
	assert_int_equal(node->total_ns, 15);
	assert_int_equal(node->own_ns, 0);
	node = profile_node_next(node);
	assert_ptr_equal(node->function, &chunk);
	assert_int_equal(node->depth, 1);
	assert_int_equal(node->total_ns, 15);
	assert_int_equal(node->own_ns, 0);
	node = profile_node_next(node);
	assert_ptr_equal(node->function, &heavy);
	assert_int_equal(node->line, 0);
	assert_int_equal(node->own_ns, 15);
	assert_int_equal(node->own_samples, 2);
	assert_null(profile_node_next(node));
	profile_free(profile);
}

static void lines_are_apart_in_the_line_view(void **state)
{
	struct profile *profile = new_profile((struct profile_options){ .by_line = true });
	struct frame first = { .function = &heavy, .line = 6 };
	struct frame second = { .function = &heavy, .line = 7 };

	(void)state;
	add(profile, 1, &first, 1);
	add(profile, 2, &second, 1);
	add(profile, 4, &first, 1);
	assert_int_equal(profile_node_count(profile), 2);
	assert_int_equal(profile_root(profile)->first_child->line, 6);
	assert_int_equal(profile_root(profile)->first_child->own_ns, 5);
	assert_int_equal(profile_root(profile)->first_child->next_sibling->line, 7);
	profile_free(profile);
}

static void compiled_weight_is_counted_and_split_when_asked(void **state)
{
	struct profile *merged = new_profile((struct profile_options){ 0 });
	struct profile *split = new_profile((struct profile_options){ .by_compiled = true });
	struct frame compiled = { .function = &heavy, .compiled = true };
	struct frame interpreted = { .function = &heavy };

	(void)state;
	add(merged, 3, &compiled, 1);
	assert_true(profile_root(merged)->first_child->compiled);
	add(merged, 1, &interpreted, 1);
	assert_false(profile_root(merged)->first_child->compiled);
	assert_int_equal(profile_root(merged)->first_child->compiled_ns, 3);
	assert_int_equal(profile_node_count(merged), 1);

	add(split, 3, &compiled, 1);
	add(split, 1, &interpreted, 1);
	assert_int_equal(profile_node_count(split), 2);
	assert_true(profile_root(split)->first_child->compiled);
	assert_false(profile_root(split)->first_child->next_sibling->compiled);
	profile_free(merged);
	profile_free(split);
}

static void recursion_is_kept_as_depth(void **state)
{
	struct profile *profile = new_profile((struct profile_options){ 0 });
	struct frame frames[] = { { .function = &heavy }, { .function = &heavy }, { .function = &heavy } };

	(void)state;
	add(profile, 1, frames, 3);
	add(profile, 1, frames, 2);
	assert_int_equal(profile_node_count(profile), 3);
	assert_int_equal(profile_root(profile)->first_child->first_child->own_ns, 1);
	profile_free(profile);
}

static void a_sample_without_frames_weighs_on_the_root(void **state)
{
	struct profile *profile = new_profile((struct profile_options){ .weight = WEIGHT_WALL_TIME });

	(void)state;
	add(profile, 7, NULL, 0);
	assert_int_equal(profile_root(profile)->own_ns, 70);
	assert_int_equal(profile_node_count(profile), 0);
	assert_null(profile_node_next(profile_root(profile)));
	profile_free(profile);
}

static void a_walk_visits_callers_before_callees_and_siblings_in_order(void **state)
{
	struct profile *profile = new_profile((struct profile_options){ 0 });
	struct frame one[] = { { .function = &light }, { .function = &chunk } };
	struct frame two[] = { { .function = &heavy }, { .function = &light }, { .function = &chunk } };
	struct frame three[] = { { .function = &heavy }, { .function = &chunk } };
	struct frame four[] = { { .function = &heavy } };
	const struct function *const expected[] = { &chunk, &light, &heavy, &heavy, &heavy };
	const uint32_t depths[] = { 1, 2, 3, 2, 1 };
	const struct profile_node *node;

	(void)state;
	add(profile, 1, one, 2);
	add(profile, 1, two, 3);
	add(profile, 1, three, 2);
	add(profile, 1, four, 1);
	node = profile_root(profile);
	for (size_t i = 0; i < sizeof(depths) / sizeof(depths[0]); i++) {
		node = profile_node_next(node);
		assert_ptr_equal(node->function, expected[i]);
		assert_int_equal(node->depth, depths[i]);
	}
	assert_null(profile_node_next(node));
	profile_free(profile);
}

static void own_weight_is_divided_by_state(void **state)
{
	struct profile *profile = new_profile((struct profile_options){ 0 });
	struct frame frames[] = { { .function = &heavy }, { .function = &chunk } };
	struct sample sample = { .cpu_ns = 5, .frames = frames, .frame_count = 2, .vm_state = VM_STATE_GC };
	const struct profile_node *leaf;

	(void)state;
	assert_int_equal(profile_add(profile, &sample), 0);
	sample.vm_state = VM_STATE_COMPILED;
	sample.cpu_ns = 7;
	assert_int_equal(profile_add(profile, &sample), 0);
	leaf = profile_root(profile)->first_child->first_child;
	assert_int_equal(leaf->own_state_ns[VM_STATE_GC], 5);
	assert_int_equal(leaf->own_state_ns[VM_STATE_COMPILED], 7);
	assert_int_equal(leaf->own_state_ns[VM_STATE_INTERPRETED], 0);
	assert_int_equal(leaf->parent->own_state_ns[VM_STATE_GC], 0);
	profile_free(profile);
}

static void positions_are_apart_by_certainty_when_asked(void **state)
{
	struct profile *profile = new_profile(
		(struct profile_options){ .by_line = true, .by_certainty = true });
	struct frame exact = { .function = &heavy, .line = 6 };
	struct frame nearest = { .function = &heavy, .line = 6, .certainty = CERTAINTY_NEAREST };

	(void)state;
	add(profile, 1, &exact, 1);
	add(profile, 2, &nearest, 1);
	assert_int_equal(profile_node_count(profile), 2);
	assert_int_equal(profile_root(profile)->first_child->certainty, CERTAINTY_EXACT);
	assert_int_equal(profile_root(profile)->first_child->next_sibling->certainty, CERTAINTY_NEAREST);
	profile_free(profile);
	profile = new_profile((struct profile_options){ .by_line = true });
	add(profile, 2, &nearest, 1);
	add(profile, 1, &exact, 1);
	assert_int_equal(profile_node_count(profile), 1);
	assert_int_equal(profile_root(profile)->first_child->certainty, CERTAINTY_EXACT);
	profile_free(profile);
}

static void inverted_stacks_begin_with_their_leaf(void **state)
{
	struct profile *profile = new_profile((struct profile_options){ .inverted = true });
	struct frame one[] = { { .function = &heavy, .compiled = true }, { .function = &chunk } };
	struct frame two[] = { { .function = &heavy, .compiled = true },
			       { .function = &light },
			       { .function = &chunk } };
	const struct profile_node *leaf;

	(void)state;
	add(profile, 1, one, 2);
	add(profile, 2, two, 3);
	assert_int_equal(profile_root(profile)->total_ns, 3);
	leaf = profile_root(profile)->first_child;
	assert_null(leaf->next_sibling);
	assert_ptr_equal(leaf->function, &heavy);
	assert_int_equal(leaf->total_ns, 3);
	assert_int_equal(leaf->compiled_ns, 3);
	assert_ptr_equal(leaf->first_child->function, &chunk);
	assert_int_equal(leaf->first_child->total_ns, 1);
	assert_int_equal(leaf->first_child->compiled_ns, 0);
	assert_ptr_equal(leaf->first_child->next_sibling->function, &light);
	profile_free(profile);
}

static void a_profile_can_be_merged_into_a_coarser_one(void **state)
{
	struct profile *fine = new_profile((struct profile_options){ .by_line = true, .by_compiled = true });
	struct profile *coarse = new_profile((struct profile_options){ .inverted = true });
	struct frame first[] = { { .function = &heavy, .line = 6, .compiled = true },
				 { .function = &chunk, .line = 20 } };
	struct frame second[] = { { .function = &heavy, .line = 7 }, { .function = &chunk, .line = 21 } };
	const struct profile_node *node;

	(void)state;
	add(fine, 10, first, 2);
	add(fine, 10, first, 2);
	add(fine, 5, second, 2);
	add(fine, 3, NULL, 0);
	assert_int_equal(profile_add_profile(coarse, fine), 0);
	assert_int_equal(profile_node_count(coarse), 2);
	assert_int_equal(profile_root(coarse)->total_ns, 28);
	assert_int_equal(profile_root(coarse)->own_ns, 3);
	node = profile_root(coarse)->first_child;
	assert_ptr_equal(node->function, &heavy);
	assert_int_equal(node->total_ns, 25);
	assert_int_equal(node->total_samples, 3);
	assert_int_equal(node->compiled_ns, 20);
	assert_int_equal(node->first_child->own_ns, 25);
	profile_free(fine);
	profile_free(coarse);
}

static void a_frame_is_found_in_another_profile(void **state)
{
	struct profile *one = new_profile((struct profile_options){ 0 });
	struct profile *other = new_profile((struct profile_options){ 0 });
	struct frame in_both[] = { { .function = &heavy }, { .function = &chunk } };
	struct frame in_one[] = { { .function = &light }, { .function = &chunk } };
	const struct profile_node *chunk_of_one, *found;

	(void)state;
	add(one, 1, in_both, 2);
	add(one, 1, in_one, 2);
	add(other, 4, in_both, 2);
	chunk_of_one = profile_root(one)->first_child;
	found = profile_find_child(other, profile_root(other), chunk_of_one);
	assert_ptr_equal(found, profile_root(other)->first_child);
	assert_int_equal(profile_find_child(other, found, chunk_of_one->first_child)->total_ns, 4);
	assert_null(profile_find_child(other, found, chunk_of_one->first_child->next_sibling));
	profile_free(one);
	profile_free(other);
}

static void the_deepest_stack_and_the_widest_node_are_held(void **state)
{
	struct profile *profile = new_profile((struct profile_options){ 0 });
	struct frame *frames = calloc(DEEPEST, sizeof(*frames));
	struct function *functions = calloc(WIDEST, sizeof(*functions));
	size_t count = 0;

	(void)state;
	assert_non_null(frames);
	assert_non_null(functions);
	for (size_t i = 0; i < DEEPEST; i++)
		frames[i].function = &heavy;
	add(profile, 1, frames, DEEPEST);
	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < WIDEST; i++) {
			struct frame pair[] = { { .function = &functions[i] }, { .function = &chunk } };

			add(profile, 1, pair, 2);
		}
	}
	assert_int_equal(profile_depth(profile), DEEPEST);
	for (const struct profile_node *node = profile_root(profile); (node = profile_node_next(node));)
		count++;
	assert_int_equal(count, DEEPEST + 1 + WIDEST);
	assert_int_equal(profile_node_count(profile), count);
	profile_free(profile);
	free(frames);
	free(functions);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_stacks_merge),
		cmocka_unit_test(lines_are_apart_in_the_line_view),
		cmocka_unit_test(compiled_weight_is_counted_and_split_when_asked),
		cmocka_unit_test(recursion_is_kept_as_depth),
		cmocka_unit_test(a_sample_without_frames_weighs_on_the_root),
		cmocka_unit_test(a_walk_visits_callers_before_callees_and_siblings_in_order),
		cmocka_unit_test(own_weight_is_divided_by_state),
		cmocka_unit_test(positions_are_apart_by_certainty_when_asked),
		cmocka_unit_test(inverted_stacks_begin_with_their_leaf),
		cmocka_unit_test(a_profile_can_be_merged_into_a_coarser_one),
		cmocka_unit_test(a_frame_is_found_in_another_profile),
		cmocka_unit_test(the_deepest_stack_and_the_widest_node_are_held),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

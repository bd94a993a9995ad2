#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "output/sample_table.h"

static const struct function chunk = { .kind = FRAME_LUA, .name = "main chunk", .file = "test.lua" };
static const struct function heavy = { .kind = FRAME_LUA, .name = "heavy", .file = "test.lua", .firstline = 5 };

struct list {
	struct sample_source source;	/* first: what is read */
	const struct sample *samples;
	size_t count, next;
	int end;	/* what next() says after the last one */
};

static int next_sample(struct sample_source *source, struct sample *ret_sample)
{
	struct list *list = (struct list *)source;

	if (list->next == list->count)
		return list->end;
	*ret_sample = list->samples[list->next++];
	return 1;
}

static int rewind_list(struct sample_source *source)
{
	((struct list *)source)->next = 0;
	return 0;
}

static struct sample_table *read_table(const struct sample *samples, size_t count, enum profile_weight weight)
{
	struct list list = { .source = { next_sample, rewind_list }, .samples = samples, .count = count };
	struct sample_table *table = NULL;

	assert_int_equal(sample_table_read(&list.source, weight, &table), 0);
	assert_non_null(table);
	return table;
}

static const struct frame leaf_at_8[] = { { .function = &heavy, .line = 8 }, { .function = &chunk, .line = 30 } };
static const struct frame leaf_at_9[] = { { .function = &heavy, .line = 9 }, { .function = &chunk, .line = 30 } };
static const struct frame compiled[] = {
	{ .function = &heavy, .line = 8, .compiled = true }, { .function = &chunk, .line = 30 },
};

static void equal_stacks_are_one_and_lines_tell_frames_apart(void **state)
{
	const struct sample samples[] = {
		{ .time_ns = 100, .cpu_ns = 10, .frames = leaf_at_8, .frame_count = 2 },
		{ .time_ns = 200, .cpu_ns = 10, .frames = leaf_at_9, .frame_count = 2 },
		{ .time_ns = 300, .cpu_ns = 10, .frames = compiled, .frame_count = 2 },
		{ .time_ns = 400, .cpu_ns = 10, .frames = leaf_at_8, .frame_count = 2 },
	};
	struct sample_table *table = read_table(samples, 4, PROFILE_CPU_TIME);
	uint32_t path[2];

	(void)state;
	assert_int_equal(table->function_count, 2);
	assert_int_equal(table->frame_count, 4);
	assert_int_equal(table->stack_count, 5);	/* the empty one, the chunk, and three leaves */
	assert_int_equal(table->depth, 2);
	assert_int_equal(table->samples[0].stack, table->samples[3].stack);
	assert_int_equal(sample_table_frames(table, table->samples[1].stack, path), 2);
	assert_ptr_equal(table->functions[table->frames[path[0]].function], &chunk);
	assert_ptr_equal(table->functions[table->frames[path[1]].function], &heavy);
	assert_int_equal(table->frames[path[1]].line, 9);
	assert_false(table->frames[path[1]].compiled);
	for (uint32_t i = 1; i < table->stack_count; i++)
		assert_true(table->stacks[i].parent < i);
	sample_table_free(table);
}

static void threads_are_apart_the_heaviest_first_in_time_order(void **state)
{
	const struct sample samples[] = {
		{ .time_ns = 100, .pid = 1, .tid = 1, .cpu_ns = 10, .frames = leaf_at_8, .frame_count = 2 },
		{ .time_ns = 200, .pid = 1, .tid = 2, .cpu_ns = 20, .frames = leaf_at_8, .frame_count = 2,
		  .thread_name = "first name" },
		{ .time_ns = 300, .pid = 1, .tid = 1, .cpu_ns = 5, .frames = leaf_at_9, .frame_count = 2 },
		{ .time_ns = 400, .pid = 1, .tid = 2, .cpu_ns = 20, .frames = leaf_at_9, .frame_count = 2,
		  .thread_name = "last name" },
	};
	struct sample_table *table = read_table(samples, 4, PROFILE_CPU_TIME);

	(void)state;
	assert_int_equal(table->thread_count, 2);
	assert_int_equal(table->threads[0].tid, 2);
	assert_string_equal(table->threads[0].thread_name, "last name");
	assert_int_equal(table->threads[0].weight_ns, 40);
	assert_int_equal(table->threads[1].weight_ns, 15);
	assert_int_equal(table->weight_ns, 55);
	for (uint32_t i = 0; i < 2; i++) {
		const struct table_sample *own = table->samples + table->threads[i].first;

		assert_int_equal(table->threads[i].count, 2);
		assert_int_equal(own[0].time_ns, i == 0 ? 200 : 100);
		assert_int_equal(own[1].time_ns, i == 0 ? 400 : 300);
	}
	sample_table_free(table);
}

static void time_begins_with_the_session_or_else_the_first_sample(void **state)
{
	const struct sample samples[] = { { .time_ns = 1000, .wall_ns = 300, .frames = leaf_at_8, .frame_count = 2 } };
	struct sample_table *table = read_table(samples, 1, PROFILE_WALL_TIME);

	(void)state;
	assert_int_equal(table->weight_ns, 300);
	assert_int_equal(sample_table_origin(table, &(struct session) { .start_ns = 500 }), 500);
	assert_int_equal(sample_table_origin(table, &(struct session) { 0 }), 700);
	assert_int_equal(sample_table_origin(table, &(struct session) { .start_ns = 900 }), 700);
	sample_table_free(table);
}

static void a_sample_without_frames_has_the_empty_stack(void **state)
{
	const struct sample samples[] = { { .time_ns = 5, .cpu_ns = 10 } };
	struct sample_table *table = read_table(samples, 1, PROFILE_CPU_TIME);
	uint32_t path[1];

	(void)state;
	assert_int_equal(table->samples[0].stack, 0);
	assert_int_equal(sample_table_frames(table, 0, path), 0);
	assert_int_equal(table->start_ns, 0);
	sample_table_free(table);
}

static void what_the_source_fails_with_is_told(void **state)
{
	struct list list = { .source = { next_sample, rewind_list }, .end = -EBADMSG };
	struct sample_table *table;

	(void)state;
	assert_int_equal(sample_table_read(&list.source, PROFILE_CPU_TIME, &table), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_stacks_are_one_and_lines_tell_frames_apart),
		cmocka_unit_test(threads_are_apart_the_heaviest_first_in_time_order),
		cmocka_unit_test(time_begins_with_the_session_or_else_the_first_sample),
		cmocka_unit_test(a_sample_without_frames_has_the_empty_stack),
		cmocka_unit_test(what_the_source_fails_with_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

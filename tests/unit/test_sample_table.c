/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "output/views/sample_table.h"
#include "output/views/thread_samples.h"
#include "tests/unit/made_up_source.h"

static const struct function chunk = { .kind = FRAME_LUA, .name = "main chunk", .file = "test.lua" };
static const struct function heavy = {
	.kind = FRAME_LUA, .name = "heavy", .file = "test.lua", .firstline = 5
};

static struct sample_table *read_table(struct made_up_source *list, enum weight_kind weight)
{
	struct sample_table *table = NULL;

	assert_int_equal(sample_table_read(&list->source, weight, &table), 0);
	assert_non_null(table);
	return table;
}

/* Those of a thread, or of all. */
struct seen {
	struct table_sample samples[8];
	size_t count; /* of more than fit, too */
};

static int see(void *context, const struct table_sample *sample)
{
	struct seen *seen = context;

	if (seen->count < sizeof(seen->samples) / sizeof(seen->samples[0]))
		seen->samples[seen->count] = *sample;
	seen->count++;
	return 0;
}

static struct seen see_all(struct sample_table *table)
{
	struct seen seen = { 0 };

	assert_int_equal(sample_table_each(table, see, &seen), 0);
	return seen;
}

static const struct frame leaf_at_8[] = { { .function = &heavy, .line = 8 },
					  { .function = &chunk, .line = 30 } };
static const struct frame leaf_at_9[] = { { .function = &heavy, .line = 9 },
					  { .function = &chunk, .line = 30 } };
static const struct frame compiled[] = {
	{ .function = &heavy, .line = 8, .compiled = true },
	{ .function = &chunk, .line = 30 },
};

static void equal_stacks_are_one_and_lines_tell_frames_apart(void **state)
{
	const struct sample samples[] = {
		{ .time_ns = 100, .cpu_ns = 10, .frames = leaf_at_8, .frame_count = 2 },
		{ .time_ns = 200, .cpu_ns = 10, .frames = leaf_at_9, .frame_count = 2 },
		{ .time_ns = 300, .cpu_ns = 10, .frames = compiled, .frame_count = 2 },
		{ .time_ns = 400, .cpu_ns = 10, .frames = leaf_at_8, .frame_count = 2 },
	};
	struct made_up_source list = made_up_source(samples, 4);
	struct sample_table *table = read_table(&list, WEIGHT_CPU_TIME);
	struct seen seen = see_all(table);
	uint32_t path[2];

	(void)state;
	assert_int_equal(table->function_count, 2);
	assert_int_equal(table->frame_count, 4);
	assert_int_equal(table->stack_count, 5); /* the empty one, the chunk, and three leaves */
	assert_int_equal(table->depth, 2);
	assert_int_equal(seen.count, 4);
	assert_int_equal(seen.samples[0].kind.stack, seen.samples[3].kind.stack);
	assert_int_equal(sample_table_frames(table, seen.samples[1].kind.stack, path), 2);
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
		{ .time_ns = 200,
		  .pid = 1,
		  .tid = 2,
		  .cpu_ns = 20,
		  .frames = leaf_at_8,
		  .frame_count = 2,
		  .thread_name = "first name" },
		{ .time_ns = 300, .pid = 1, .tid = 1, .cpu_ns = 5, .frames = leaf_at_9, .frame_count = 2 },
		{ .time_ns = 400,
		  .pid = 1,
		  .tid = 2,
		  .cpu_ns = 20,
		  .frames = leaf_at_9,
		  .frame_count = 2,
		  .thread_name = "last name" },
	};
	struct made_up_source list = made_up_source(samples, 4);
	struct sample_table *table = read_table(&list, WEIGHT_CPU_TIME);
	struct thread_samples *threads;

	(void)state;
	assert_int_equal(table->thread_count, 2);
	assert_int_equal(table->threads[0].tid, 2);
	assert_string_equal(table->threads[0].thread_name, "last name");
	assert_int_equal(table->threads[0].weight, 40);
	assert_int_equal(table->threads[1].weight, 15);
	assert_int_equal(table->weight_sum, 55);
	threads = thread_samples_new(table);
	assert_non_null(threads);
	for (uint32_t i = 0; i < 2; i++) {
		struct seen seen = { 0 };

		assert_int_equal(table->threads[i].sample_count, 2);
		assert_int_equal(thread_samples_each(threads, i, see, &seen), 0);
		assert_int_equal(seen.count, 2);
		assert_int_equal(seen.samples[0].time_ns, i == 0 ? 200 : 100);
		assert_int_equal(seen.samples[1].time_ns, i == 0 ? 400 : 300);
	}
	thread_samples_free(threads);
	sample_table_free(table);
}

static void equal_samples_of_a_thread_have_one_sum(void **state)
{
	static const char there[] = "access", elsewhere[] = "access";
	const struct sample samples[] = {
		{ .time_ns = 100,
		  .tid = 1,
		  .cpu_ns = 10,
		  .wall_ns = 11,
		  .frames = leaf_at_8,
		  .frame_count = 2,
		  .phase = there,
		  .stack = 7 },
		{ .time_ns = 200,
		  .tid = 2,
		  .cpu_ns = 500,
		  .frames = leaf_at_8,
		  .frame_count = 2,
		  .phase = there,
		  .stack = 7 },
		{ .time_ns = 300,
		  .tid = 1,
		  .cpu_ns = 20,
		  .wall_ns = 21,
		  .frames = leaf_at_8,
		  .frame_count = 2,
		  .phase = elsewhere,
		  .stack = 7 },
		{ .time_ns = 400, .tid = 1, .cpu_ns = 30, .frames = leaf_at_8, .frame_count = 2, .stack = 7 },
		{ .time_ns = 500,
		  .tid = 1,
		  .cpu_ns = 40,
		  .frames = leaf_at_8,
		  .frame_count = 2,
		  .phase = there,
		  .vm_state = VM_STATE_GC,
		  .stack = 7 },
		{ .time_ns = 600,
		  .tid = 1,
		  .cpu_ns = 50,
		  .frames = leaf_at_9,
		  .frame_count = 2,
		  .phase = there,
		  .stack = 8 },
	};
	struct made_up_source list = made_up_source(samples, 6);
	struct sample_table *table = read_table(&list, WEIGHT_CPU_TIME);
	const struct table_sum *sums = table->sums + table->threads[1].first_sum;

	(void)state;
	assert_int_equal(table->sum_count, 5);
	assert_int_equal(table->threads[0].sum_count, 1);
	assert_int_equal(table->sums[table->threads[0].first_sum].amounts.cpu_ns, 500);
	assert_int_equal(table->threads[1].sum_count, 4);
	assert_null(sums[0].kind.phase);
	assert_int_equal(sums[1].count, 2);
	assert_int_equal(sums[1].amounts.cpu_ns, 30);
	assert_int_equal(sums[1].amounts.wall_ns, 32);
	assert_int_equal(sums[2].kind.vm_state, VM_STATE_GC);
	assert_int_equal(sums[3].amounts.cpu_ns, 50);
	sample_table_free(table);
}

enum { KINDS = 12 };

/* The first one, and others that differ from it in one thing each. */
static void make_kinds(struct sample samples[static KINDS])
{
	for (size_t i = 0; i < KINDS; i++)
		samples[i] = (struct sample){
			.time_ns = 100 + i,
			.pid = 1,
			.tid = 1,
			.cpu_ns = 1,
			.frames = leaf_at_8,
			.frame_count = 2,
			.stack = 1,
			.request = { .route = "/a", .method = "GET", .host = "h", .connection = 5 + i },
		};
	samples[1].request.status = 200;
	samples[2].request.host = NULL;
	samples[3].request.method = "PUT";
	samples[4].request.route = "/b";
	samples[5].request.is_subrequest = true;
	samples[6].phase = "content";
	samples[7].gc.phase = GC_PHASE_MARK;
	samples[8].vm_state = VM_STATE_C;
	samples[9].thread_state = THREAD_BLOCKED;
	samples[10].frames = leaf_at_9;
	samples[10].stack = 2;
	samples[11].tid = 2;
}

static bool is_in_order(const struct table_kind *one, const struct table_kind *other)
{
	if (one->thread != other->thread)
		return one->thread < other->thread;
	if (one->stack != other->stack)
		return one->stack < other->stack;
	if (one->thread_state != other->thread_state)
		return one->thread_state < other->thread_state;
	if (one->vm_state != other->vm_state)
		return one->vm_state < other->vm_state;
	if (one->gc_phase != other->gc_phase)
		return one->gc_phase < other->gc_phase;
	return one->request != other->request || (!one->phase && other->phase);
}

static void samples_that_differ_in_anything_but_time_have_sums_of_their_own(void **state)
{
	struct sample samples[2 * KINDS] = { 0 };
	struct made_up_source list = made_up_source(samples, 2 * KINDS);
	struct sample_table *table;

	(void)state;
	make_kinds(samples);
	for (size_t i = 0; i < KINDS; i++) {
		samples[2 * KINDS - 1 - i] = samples[i];
		samples[2 * KINDS - 1 - i].stack = 0; /* found by its frames */
	}
	table = read_table(&list, WEIGHT_CPU_TIME);
	assert_int_equal(table->sum_count, KINDS);
	assert_int_equal(table->threads[0].sum_count, KINDS - 1);
	assert_int_equal(table->threads[0].first_sum, 0);
	assert_int_equal(table->threads[1].sum_count, 1);
	assert_int_equal(table->threads[1].first_sum, KINDS - 1);
	for (size_t i = 0; i < KINDS; i++) {
		assert_int_equal(table->sums[i].count, 2);
		assert_int_equal(table->sums[i].amounts.cpu_ns, 2);
		if (i > 0)
			assert_true(is_in_order(&table->sums[i - 1].kind, &table->sums[i].kind));
	}
	sample_table_free(table);
}

static void requests_that_differ_in_more_than_their_numbers_are_apart(void **state)
{
	struct sample samples[KINDS] = { 0 };
	struct made_up_source list = made_up_source(samples, KINDS);
	struct sample_table *table;
	struct seen seen;

	(void)state;
	make_kinds(samples);
	for (size_t i = 6; i < 8; i++)
		samples[i].request = (struct sample_request){ 0 };
	table = read_table(&list, WEIGHT_CPU_TIME);
	assert_int_equal(table->request_count, 7);
	seen = see_all(table);
	for (size_t i = 0; i < 8; i++) {
		const struct table_request *request = &table->requests[seen.samples[i].kind.request];

		assert_ptr_equal(request->route, samples[i].request.route);
		assert_ptr_equal(request->method, samples[i].request.method);
		assert_ptr_equal(request->host, samples[i].request.host);
		assert_int_equal(request->status, samples[i].request.status);
		assert_int_equal(request->is_subrequest, samples[i].request.is_subrequest);
	}
	sample_table_free(table);
}

static void samples_that_are_read_again_have_all_of_their_own(void **state)
{
	static const struct function wait = { .kind = FRAME_NATIVE, .name = "read" };
	const struct sample samples[] = {
		{ .time_ns = 100,
		  .tid = 1,
		  .cpu_ns = 2,
		  .wall_ns = 3,
		  .alloc_bytes = 4,
		  .alloc_objects = 5,
		  .phase = "content",
		  .thread_state = THREAD_BLOCKED,
		  .vm_state = VM_STATE_C,
		  .wait = &wait,
		  .gc = { .phase = GC_PHASE_SWEEP, .heap_bytes = 6, .allocated_bytes = 7, .step_ns = 8 },
		  .request = { .route = "/a", .connection = 9, .number = 10, .age_ns = 11 },
		  .frames = leaf_at_8,
		  .frame_count = 2 },
		{ .time_ns = 200, .tid = 2, .cpu_ns = 20, .frames = leaf_at_8, .frame_count = 2 },
	};
	struct made_up_source list = made_up_source(samples, 2);
	struct sample_table *table = read_table(&list, WEIGHT_CPU_TIME);
	const struct seen seen = see_all(table);
	const struct table_sample *first = &seen.samples[0];

	(void)state;
	assert_int_equal(seen.count, 2);
	assert_int_equal(first->time_ns, 100);
	assert_int_equal(first->amounts.cpu_ns, 2);
	assert_int_equal(first->amounts.wall_ns, 3);
	assert_int_equal(first->amounts.alloc_bytes, 4);
	assert_int_equal(first->amounts.alloc_objects, 5);
	assert_ptr_equal(first->wait, &wait);
	assert_int_equal(first->heap_bytes, 6);
	assert_int_equal(first->allocated_bytes, 7);
	assert_int_equal(first->step_ns, 8);
	assert_int_equal(first->connection, 9);
	assert_int_equal(first->number, 10);
	assert_int_equal(first->age_ns, 11);
	assert_string_equal(first->kind.phase, "content");
	assert_int_equal(first->kind.thread, 1); /* the lighter one */
	assert_int_equal(first->kind.thread_state, THREAD_BLOCKED);
	assert_int_equal(first->kind.vm_state, VM_STATE_C);
	assert_int_equal(first->kind.gc_phase, GC_PHASE_SWEEP);
	assert_int_equal(seen.samples[1].kind.thread, 0);
	sample_table_free(table);
}

static void threads_of_equal_weight_come_by_their_numbers(void **state)
{
	static const pid_t ids[][2] = { { 2, 7 }, { 1, 9 }, { 2, 3 }, { 1, 4 } };
	static const pid_t wanted[][2] = { { 1, 4 }, { 1, 9 }, { 2, 3 }, { 2, 7 } };
	struct sample samples[4] = { 0 };
	struct made_up_source list = made_up_source(samples, 4);
	struct sample_table *table;

	(void)state;
	for (size_t i = 0; i < 4; i++)
		samples[i] = (struct sample){ .pid = ids[i][0], .tid = ids[i][1], .cpu_ns = 5 };
	table = read_table(&list, WEIGHT_CPU_TIME);
	assert_int_equal(table->thread_count, 4);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(table->threads[i].pid, wanted[i][0]);
		assert_int_equal(table->threads[i].tid, wanted[i][1]);
		assert_int_equal(table->threads[i].cpu_ns, 5);
	}
	sample_table_free(table);
}

static int refuse(void *context, const struct table_sample *sample)
{
	(void)context;
	return sample->time_ns == 101 ? -ENOSPC : 0;
}

static void what_the_taker_fails_with_is_told(void **state)
{
	struct sample samples[KINDS] = { 0 };
	struct made_up_source list = made_up_source(samples, KINDS);
	struct thread_samples *threads;
	struct sample_table *table;

	(void)state;
	make_kinds(samples);
	table = read_table(&list, WEIGHT_CPU_TIME);
	threads = thread_samples_new(table);
	assert_non_null(threads);
	assert_int_equal(sample_table_each(table, refuse, NULL), -ENOSPC);
	assert_int_equal(thread_samples_each(threads, 0, refuse, NULL), -ENOSPC);
	assert_int_equal(thread_samples_each(threads, 1, refuse, NULL), 0);
	thread_samples_free(threads);
	sample_table_free(table);
}

static void a_thread_without_room_is_read_again(void **state)
{
	const struct sample samples[] = {
		{ .time_ns = 100, .tid = 1, .cpu_ns = 9, .frames = leaf_at_8, .frame_count = 2, .stack = 1 },
		{ .time_ns = 200, .tid = 1, .cpu_ns = 9, .frames = leaf_at_9, .frame_count = 2, .stack = 2 },
		{ .time_ns = 300, .tid = 2, .cpu_ns = 9, .frames = leaf_at_8, .frame_count = 2, .stack = 1 },
	};
	struct made_up_source list = made_up_source(samples, 3);
	struct thread_samples *threads;
	struct sample_table *table;
	struct seen many = { 0 }, few = { 0 };

	(void)state;
	list.count = 3 * (THREAD_SAMPLES_ROOM / 2 + 1);
	table = read_table(&list, WEIGHT_CPU_TIME);
	threads = thread_samples_new(table);
	assert_non_null(threads);
	assert_int_equal(thread_samples_each(threads, 0, see, &many), 0);
	assert_int_equal(thread_samples_each(threads, 1, see, &few), 0);
	assert_int_equal(many.count, THREAD_SAMPLES_ROOM + 2);
	assert_int_equal(many.samples[2].time_ns, 1100);
	assert_int_equal(few.count, THREAD_SAMPLES_ROOM / 2 + 1);
	assert_int_equal(few.samples[1].time_ns, 1300);
	thread_samples_free(threads);
	sample_table_free(table);
}

static void a_source_that_has_changed_is_told(void **state)
{
	const struct sample samples[] = {
		{ .time_ns = 100, .tid = 1, .cpu_ns = 9, .frames = leaf_at_8, .frame_count = 2 },
		{ .time_ns = 200, .tid = 2, .cpu_ns = 9, .frames = leaf_at_8, .frame_count = 2 },
	};
	struct sample other[] = { samples[0], samples[0] };
	struct made_up_source list = made_up_source(samples, 2);
	struct sample_table *table = read_table(&list, WEIGHT_CPU_TIME);
	struct thread_samples *threads = thread_samples_new(table);
	struct seen seen = { 0 };

	(void)state;
	assert_non_null(threads);
	list.samples = other;
	assert_int_equal(thread_samples_each(threads, 0, see, &seen), -EIO);
	other[0].frames = leaf_at_9;
	assert_int_equal(sample_table_each(table, see, &seen), -EIO);
	list.samples = samples;
	list.count = 1;
	assert_int_equal(sample_table_each(table, see, &seen), -EIO);
	thread_samples_free(threads);
	sample_table_free(table);
}

/* A sample of many coroutines that wait stands for more time than has passed. */
static void time_begins_with_the_session_or_else_the_first_sample(void **state)
{
	const struct sample samples[] = {
		{ .time_ns = 1000, .wall_ns = 300, .frames = leaf_at_8, .frame_count = 2 }
	};
	struct made_up_source list = made_up_source(samples, 1);
	struct sample_table *table = read_table(&list, WEIGHT_WALL_TIME);

	(void)state;
	assert_int_equal(table->weight_sum, 300);
	assert_int_equal(sample_table_origin(table, &(struct session){ .start_ns = 500 }), 500);
	assert_int_equal(sample_table_origin(table, &(struct session){ 0 }), 700);
	assert_int_equal(sample_table_origin(table, &(struct session){ .start_ns = 900 }), 900);
	assert_int_equal(sample_table_origin(table, &(struct session){ .start_ns = 1100 }), 700);
	sample_table_free(table);
}

static void a_sample_without_frames_has_the_empty_stack(void **state)
{
	const struct sample samples[] = { { .time_ns = 5, .cpu_ns = 10 } };
	struct made_up_source list = made_up_source(samples, 1);
	struct sample_table *table = read_table(&list, WEIGHT_CPU_TIME);
	uint32_t path[1];

	(void)state;
	assert_int_equal(see_all(table).samples[0].kind.stack, 0);
	assert_int_equal(sample_table_frames(table, 0, path), 0);
	assert_int_equal(table->start_ns, 0);
	sample_table_free(table);
}

static void what_the_source_fails_with_is_told(void **state)
{
	struct made_up_source list = made_up_source(NULL, 0);
	struct sample_table *table;

	(void)state;
	list.end = -EBADMSG;
	assert_int_equal(sample_table_read(&list.source, WEIGHT_CPU_TIME, &table), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_stacks_are_one_and_lines_tell_frames_apart),
		cmocka_unit_test(threads_are_apart_the_heaviest_first_in_time_order),
		cmocka_unit_test(equal_samples_of_a_thread_have_one_sum),
		cmocka_unit_test(samples_that_differ_in_anything_but_time_have_sums_of_their_own),
		cmocka_unit_test(requests_that_differ_in_more_than_their_numbers_are_apart),
		cmocka_unit_test(samples_that_are_read_again_have_all_of_their_own),
		cmocka_unit_test(threads_of_equal_weight_come_by_their_numbers),
		cmocka_unit_test(what_the_taker_fails_with_is_told),
		cmocka_unit_test(a_thread_without_room_is_read_again),
		cmocka_unit_test(a_source_that_has_changed_is_told),
		cmocka_unit_test(time_begins_with_the_session_or_else_the_first_sample),
		cmocka_unit_test(a_sample_without_frames_has_the_empty_stack),
		cmocka_unit_test(what_the_source_fails_with_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

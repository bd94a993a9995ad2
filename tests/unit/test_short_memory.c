/* SPDX-License-Identifier: MIT */
/*
 * What reads samples when memory is short: at whichever allocation, that is told, or all is as with memory.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "output/flamegraph/flamegraph.h"
#include "output/reports/dump_report.h"
#include "output/reports/trace_report.h"
#include "output/reports/turn_report.h"
#include "output/views/comparison.h"
#include "output/views/filter.h"
#include "output/views/profile_read.h"
#include "output/views/sample_table.h"
#include "output/views/sum.h"
#include "output/views/tally.h"
#include "output/views/thread_samples.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/made_up_source.h"

INSTEAD_OF(malloc);
INSTEAD_OF(calloc);
INSTEAD_OF(realloc);
INSTEAD_OF(reallocarray);
#define FAILING_REALLOCARRAY

#include "tests/unit/failing_allocation.h"

enum { ALLOCATIONS_MAX = 1000 };

static const struct function chunk = { .kind = FRAME_LUA, .name = "main chunk", .file = "@/a/test.lua" };
static const struct function heavy = {
	.kind = FRAME_LUA, .name = "heavy", .file = "@/a/test.lua", .root = 3
};
static const struct function gsub = { .kind = FRAME_BUILTIN, .name = "string.gsub" };

static const struct frame first[] = { { .function = &gsub }, { .function = &heavy }, { .function = &chunk } };
static const struct frame second[] = { { .function = &heavy }, { .function = &chunk } };

/* Of two threads, with and without numbers of stacks, with requests and in phases. */
static const struct sample samples[] = {
	{ .time_ns = 1000,
	  .pid = 1,
	  .tid = 1,
	  .cpu_ns = 5,
	  .wall_ns = 5,
	  .frames = first,
	  .frame_count = 3,
	  .stack = 1 },
	{ .time_ns = 2000,
	  .pid = 1,
	  .tid = 2,
	  .cpu_ns = 7,
	  .wall_ns = 7,
	  .phase = "content",
	  .request = { .route = "/a", .connection = 7, .number = 2, .age_ns = 500 },
	  .frames = second,
	  .frame_count = 2,
	  .stack = 2 },
	{ .time_ns = 3000,
	  .pid = 2,
	  .tid = 3,
	  .cpu_ns = 9,
	  .wall_ns = 9,
	  .frames = second,
	  .frame_count = 2 },
	{ .time_ns = 4000,
	  .pid = 1,
	  .tid = 1,
	  .cpu_ns = 1,
	  .wall_ns = 1,
	  .frames = first,
	  .frame_count = 3,
	  .stack = 1 },
};
enum { SAMPLES = sizeof(samples) / sizeof(samples[0]) };

static const struct session session = { .duration_ns = 5000 };
static const struct figures figures = { .samples = SAMPLES, .rate_asked_hz = 99 };

/* 0 or -ENOMEM. */
typedef int attempt(struct made_up_source *source);

/*
 * Each allocation fails once, until there are no more. A cache is not needed: what is read has to be right.
 */
static void each_allocation_may_fail(attempt *try)
{
	size_t failed = 0;

	for (; failed < ALLOCATIONS_MAX; failed++) {
		struct made_up_source source = made_up_source(samples, SAMPLES);
		int result;

		allocation_fails_after(failed);
		result = try(&source);
		if (!allocation_failed()) {
			assert_int_equal(result, 0);
			break;
		}
		if (result)
			assert_int_equal(result, -ENOMEM);
	}
	assert_in_range(failed, 1, ALLOCATIONS_MAX - 1);
}

static int read_profile(struct made_up_source *source)
{
	struct profile *profile = profile_new(&(struct profile_options){ .by_line = true });
	int error = profile ? profile_read(profile, &source->source, false) : -ENOMEM;

	if (!error)
		assert_int_equal(profile_root(profile)->total_ns, 22);
	profile_free(profile);
	return error;
}

static int add_to_profile(struct made_up_source *source)
{
	struct profile *profile = profile_new(&(struct profile_options){ 0 });
	uint64_t total_ns = 0;
	int error = profile ? 0 : -ENOMEM;

	for (size_t i = 0; i < source->count && !error; i++) {
		const size_t nodes = profile_node_count(profile);

		error = profile_add(profile, &source->samples[i]);
		if (!error)
			total_ns += source->samples[i].cpu_ns;
		else
			assert_int_equal(profile_node_count(profile), nodes);
	}
	if (profile)
		assert_int_equal(profile_root(profile)->total_ns, total_ns);
	for (const struct profile_node *node = profile ? profile_root(profile) : NULL; node;
	     node = profile_node_next(node))
		assert_true(node->total_samples > 0 || total_ns == 0);
	profile_free(profile);
	return error;
}

static int read_tally(struct made_up_source *source)
{
	struct tally tally;
	int error = tally_read(&source->source, SAMPLES, &(struct view){ 0 }, true, &tally);

	if (error)
		return error;
	assert_int_equal(tally.all_ns, 22);
	assert_int_equal(HASH_COUNT(tally.rows), 3);
	assert_int_equal(HASH_COUNT(tally.calls), 2);
	tally_clear(&tally);
	return 0;
}

static int ignore(void *context, const struct table_sample *sample)
{
	(void)context;
	(void)sample;
	return 0;
}

static int read_table(struct made_up_source *source)
{
	struct sample_table *table;
	struct thread_samples *threads;
	int error = sample_table_read(&source->source, WEIGHT_CPU_TIME, &table);

	if (error)
		return error;
	assert_int_equal(table->weight_sum, 22);
	threads = thread_samples_new(table);
	error = threads ? thread_samples_each(threads, 0, ignore, NULL) : -ENOMEM;
	thread_samples_free(threads);
	sample_table_free(table);
	return error;
}

static int read_filtered(struct made_up_source *source, const struct filter_options *options,
			 uint64_t wanted_ns)
{
	struct functions *functions = functions_new();
	struct filter *filter = functions ? filter_new(&source->source, functions, options) : NULL;
	int result = filter ? 1 : -ENOMEM;
	struct sample sample;
	uint64_t sum_ns = 0;

	while (result == 1) {
		result = filter_samples(filter)->next(filter_samples(filter), &sample);
		if (result == 1)
			sum_ns += sample.cpu_ns;
	}
	if (result == 0)
		assert_int_equal(sum_ns, wanted_ns);
	filter_free(filter);
	functions_free(functions);
	return result;
}

static int filter_by_group(struct made_up_source *source)
{
	return read_filtered(
		source,
		&(struct filter_options){ .group = GROUP_PID, .merge_recursion = true, .without_root = true },
		22);
}

static int filter_by_age(struct made_up_source *source)
{
	return read_filtered(source, &(struct filter_options){ .slower_than_ppm = 500000 }, 7);
}

static int read_sum(struct made_up_source *source)
{
	struct sum *sum = sum_new(&(struct sum_part){ .source = &source->source }, 1);

	sum_free(sum);
	return sum ? 0 : -ENOMEM;
}

static int compare(struct made_up_source *source)
{
	struct made_up_source other = *source;
	const struct side sides[] = { { "a", &source->source, &session, &figures },
				      { "b", &other.source, &session, &figures } };
	char text[4096];
	FILE *out = fmemopen(text, sizeof(text), "w");
	int error;

	assert_non_null(out);
	error = comparison_write(out, &sides[0], &sides[1], &(struct view){ 0 });
	fclose(out);
	return error;
}

static int write_flamegraph(struct made_up_source *source)
{
	const struct profile_options profile_options = flamegraph_profile_options(WEIGHT_CPU_TIME);
	struct profile *profile = profile_new(&profile_options);
	struct flamegraph_samples *read = NULL;
	FILE *out = fopen("/dev/null", "w");
	int error = profile ? flamegraph_samples_read(&source->source, profile,
						      &(struct flamegraph_samples_options){ .rate_hz = 99 },
						      &read)
			    : -ENOMEM;

	/* A stream that has no memory takes its own way. */
	if (!out) {
		flamegraph_samples_free(read);
		profile_free(profile);
		return -ENOMEM;
	}
	setvbuf(out, NULL, _IONBF, 0);
	if (!error)
		error = flamegraph_write(
			out, profile, &session, &figures,
			&(struct flamegraph_options){ .samples = read, .baseline = profile });
	fclose(out);
	flamegraph_samples_free(read);
	profile_free(profile);
	return error;
}

static int add_turns(struct made_up_source *source)
{
	struct turn_report *report = turn_report_new(1);
	const struct turns_options options = { 1, turn_report_add, turn_report_close, report };
	struct turns *turns = report ? turns_new(&options) : NULL;
	uint64_t lost = 0;
	int error = turns ? 0 : -ENOMEM;

	for (size_t i = 0; i < source->count && !error; i++) {
		struct sample sample = source->samples[i];

		sample.loop_ns = 500;
		error = turns_add(turns, &sample);
	}
	if (!error)
		error = turns_finish(turns, &lost);
	turns_free(turns);
	turn_report_free(report);
	return error;
}

static int add_coroutines(struct made_up_source *source)
{
	struct dump_process *process = dump_process_new(1, NULL);
	struct dump_vm *vm = process ? dump_process_add_vm(process, 0x4000, "luajit") : NULL;
	int error = vm ? 0 : -ENOMEM;

	for (size_t i = 0; i < source->count && !error; i++) {
		struct frame frames[3];
		const struct dump_stack stack = { .frames = frames, .count = source->samples[i].frame_count };

		memcpy(frames, source->samples[i].frames, stack.count * sizeof(*frames));
		error = dump_process_add_thread(process, &(struct dump_thread){ .tid = 1 }, &stack);
		if (!error)
			error = dump_vm_add(vm, COROUTINE_SUSPENDED, NULL, &stack);
	}
	dump_process_free(process);
	return error;
}

static int add_traces(struct made_up_source *source)
{
	struct trace_process *process = trace_process_new(1, NULL);
	struct trace_vm *vm = process ? trace_process_add_vm(process, 0x4000, "luajit") : NULL;
	int error = vm ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < source->count && !error; i++) {
		error = trace_vm_add(vm, &(struct trace_row){ .trace.number = i });
		if (!error)
			error = trace_vm_add_exit(vm, &(struct exit_row){ .number = i });
		if (!error)
			error = trace_vm_add_interpreted(vm, &(struct interpreted_row){ .line = i });
		if (!error)
			assert_int_equal(vm->row_count + vm->exit_count + vm->interpreted_count, 3 * (i + 1));
	}
	trace_process_free(process);
	return error;
}

static void a_profile_is_as_it_was_before_the_sample(void **state)
{
	(void)state;
	each_allocation_may_fail(add_to_profile);
}

static void views_tell_it(void **state)
{
	(void)state;
	each_allocation_may_fail(read_profile);
	each_allocation_may_fail(read_tally);
	each_allocation_may_fail(read_table);
	each_allocation_may_fail(filter_by_group);
	each_allocation_may_fail(filter_by_age);
	each_allocation_may_fail(read_sum);
	each_allocation_may_fail(compare);
}

static void pictures_tell_it(void **state)
{
	(void)state;
	each_allocation_may_fail(write_flamegraph);
}

static void reports_tell_it(void **state)
{
	(void)state;
	each_allocation_may_fail(add_turns);
	each_allocation_may_fail(add_coroutines);
	each_allocation_may_fail(add_traces);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_profile_is_as_it_was_before_the_sample),
		cmocka_unit_test(views_tell_it),
		cmocka_unit_test(pictures_tell_it),
		cmocka_unit_test(reports_tell_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

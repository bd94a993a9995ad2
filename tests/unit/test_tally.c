/* SPDX-License-Identifier: MIT */
/* The time of functions and calls in samples, and its errors. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "output/views/tally.h"
#include "tests/unit/made_up_source.h"

static const struct function chunk = { .kind = FRAME_LUA, .name = "main chunk" };
static const struct function heavy = { .kind = FRAME_LUA, .name = "heavy" };
static const struct function light = { .kind = FRAME_LUA, .name = "light" };
static const struct function gsub = { .kind = FRAME_BUILTIN, .name = "string.gsub" };
static const struct function new_table = { .kind = FRAME_ALLOCATED, .name = "table" };

/* heavy calls itself; then a function of another kind; and nobody. */
static const struct frame recursive[] = {
	{ &gsub, 0, CERTAINTY_EXACT, false },  { &heavy, 7, CERTAINTY_EXACT, false },
	{ &heavy, 7, CERTAINTY_EXACT, false }, { &heavy, 8, CERTAINTY_EXACT, false },
	{ &chunk, 1, CERTAINTY_EXACT, false },
};
static const struct frame in_light[] = { { &light, 9, CERTAINTY_EXACT, false },
					 { &chunk, 2, CERTAINTY_EXACT, false } };
static const struct frame in_chunk[] = { { &chunk, 2, CERTAINTY_EXACT, false } };
static const struct frame allocating[] = { { &new_table, 0, CERTAINTY_FUNCTION, false },
					   { &light, 9, CERTAINTY_EXACT, false },
					   { &chunk, 2, CERTAINTY_EXACT, false } };

static struct sample sample_of(const struct frame *frames, size_t count, uint64_t cpu_ns)
{
	return (struct sample){
		.cpu_ns = cpu_ns, .wall_ns = 2 * cpu_ns, .frames = frames, .frame_count = count
	};
}

static struct tally tally_of(struct made_up_source *source, const struct view *view)
{
	struct tally tally;

	assert_int_equal(tally_read(&source->source, source->count, view, true, &tally), 0);
	return tally;
}

static const struct tally_row *row_of(const struct tally *tally, const struct function *function,
				      uint64_t line)
{
	const struct tally_key key = { function, line };
	const struct tally_row *row;

	HASH_FIND(hh, tally->rows, &key, sizeof(key), row);
	assert_non_null(row);
	return row;
}

static uint64_t call_ns(const struct tally *tally, const struct tally_row *caller,
			const struct tally_row *callee)
{
	for (const struct tally_call *call = tally->calls; call; call = call->hh.next)
		if (call->key.caller == caller && call->key.callee == callee)
			return call->ns;
	return 0;
}

static void a_function_has_a_sample_once_however_often_it_is_in_the_stack(void **state)
{
	(void)state;
	/* Equal numbers mean equal stacks; without numbers, frames are compared. */
	for (uint64_t number = 0; number < 2; number++) {
		struct sample samples[] = { sample_of(recursive, 5, 10), sample_of(in_light, 2, 4),
					    sample_of(recursive, 5, 1), sample_of(in_chunk, 1, 2),
					    sample_of(NULL, 0, 100) };
		struct made_up_source source = made_up_source(samples, 5);
		struct tally tally;

		for (size_t i = 0; i < 5 && number; i++)
			samples[i].stack = i == 2 ? 1 : i + 1;
		tally = tally_of(&source, &(struct view){ 0 });
		assert_int_equal(tally.samples, 5);
		assert_int_equal(tally.all_ns, 117);
		assert_int_equal(HASH_COUNT(tally.rows), 4);
		assert_int_equal(row_of(&tally, &gsub, 0)->own.ns, 11);
		assert_int_equal(row_of(&tally, &gsub, 0)->own.samples, 2);
		assert_int_equal(row_of(&tally, &gsub, 0)->total.ns, 11);
		assert_int_equal(row_of(&tally, &gsub, 0)->root_ns, 0);
		assert_int_equal(row_of(&tally, &heavy, 0)->own.ns, 0);
		assert_int_equal(row_of(&tally, &heavy, 0)->total.ns, 11);
		assert_int_equal(row_of(&tally, &heavy, 0)->total.samples, 2);
		assert_int_equal(row_of(&tally, &light, 0)->own.ns, 4);
		assert_int_equal(row_of(&tally, &chunk, 0)->own.ns, 2);
		assert_int_equal(row_of(&tally, &chunk, 0)->total.ns, 17);
		assert_int_equal(row_of(&tally, &chunk, 0)->root_ns, 17);
		tally_clear(&tally);
	}
}

static void a_call_has_a_sample_once_however_often_it_is_in_the_stack(void **state)
{
	struct sample samples[] = { sample_of(recursive, 5, 10), sample_of(in_light, 2, 4) };
	struct made_up_source source = made_up_source(samples, 2);
	struct tally tally = tally_of(&source, &(struct view){ 0 });
	const struct tally_row *of_chunk = row_of(&tally, &chunk, 0), *of_heavy = row_of(&tally, &heavy, 0);

	(void)state;
	assert_int_equal(HASH_COUNT(tally.calls), 4);
	assert_int_equal(call_ns(&tally, of_heavy, row_of(&tally, &gsub, 0)), 10);
	assert_int_equal(call_ns(&tally, of_heavy, of_heavy), 10);
	assert_int_equal(call_ns(&tally, of_chunk, of_heavy), 10);
	assert_int_equal(call_ns(&tally, of_chunk, row_of(&tally, &light, 0)), 4);
	tally_clear(&tally);
	assert_int_equal(tally_read(&source.source, 2, &(struct view){ 0 }, false, &tally), 0);
	assert_null(tally.calls);
	tally_clear(&tally);
}

static void lines_are_rows_of_their_own_when_asked(void **state)
{
	struct sample samples[] = { sample_of(recursive, 5, 10), sample_of(in_light, 2, 4),
				    sample_of(in_chunk, 1, 2) };
	struct made_up_source source = made_up_source(samples, 3);
	struct tally tally = tally_of(&source, &(struct view){ .by_line = true, .weight = WEIGHT_WALL_TIME });

	(void)state;
	assert_int_equal(HASH_COUNT(tally.rows), 6);
	assert_int_equal(row_of(&tally, &heavy, 7)->total.ns, 20);
	assert_int_equal(row_of(&tally, &heavy, 8)->total.ns, 20);
	assert_int_equal(row_of(&tally, &chunk, 1)->root_ns, 20);
	assert_int_equal(row_of(&tally, &chunk, 2)->root_ns, 12);
	assert_int_equal(row_of(&tally, &chunk, 2)->own.ns, 4);
	tally_clear(&tally);
}

static void what_is_allocated_belongs_to_who_allocates_it(void **state)
{
	struct sample samples[] = { sample_of(allocating, 3, 0), sample_of(allocating, 1, 0) };
	struct made_up_source source = made_up_source(samples, 2);
	struct tally tally;

	(void)state;
	samples[0].alloc_bytes = 4000;
	samples[1].alloc_bytes = 50; /* by nobody that is known */
	tally = tally_of(&source, &(struct view){ .weight = WEIGHT_ALLOC_BYTES });
	assert_int_equal(row_of(&tally, &light, 0)->own.ns, 4000);
	assert_int_equal(row_of(&tally, &new_table, 0)->own.ns, 50);
	assert_int_equal(row_of(&tally, &new_table, 0)->total.ns, 4050);
	assert_int_equal(row_of(&tally, &new_table, 0)->root_ns, 50);
	assert_int_equal(row_of(&tally, &chunk, 0)->root_ns, 4000);
	tally_clear(&tally);
}

static void the_collector_runs_in_the_innermost_lua_function(void **state)
{
	struct sample samples[] = { sample_of(recursive, 5, 10), sample_of(recursive, 5, 3),
				    sample_of(recursive, 1, 5), sample_of(recursive, 5, 2) };
	struct made_up_source source = made_up_source(samples, 4);
	struct tally tally;

	(void)state;
	samples[0].gc.phase = samples[3].gc.phase = GC_PHASE_MARK;
	samples[2].gc.phase = GC_PHASE_SWEEP; /* without Lua */
	tally = tally_of(&source, &(struct view){ 0 });
	assert_int_equal(row_of(&tally, &heavy, 0)->collector_ns, 10 + 2);
	assert_true(row_of(&tally, &heavy, 0)->collector_squares == 10 * 10 + 2 * 2);
	assert_int_equal(row_of(&tally, &gsub, 0)->collector_ns, 0);
	assert_int_equal(row_of(&tally, &chunk, 0)->collector_ns, 0);
	assert_int_equal(tally.gc.phase_ns[GC_PHASE_MARK], 10 + 2);
	assert_int_equal(tally.gc.phase_ns[GC_PHASE_SWEEP], 5);
	tally_clear(&tally);
}

/* More stacks than are counted together, in rounds, so that each comes again after all others. */
static void no_sample_of_many_stacks_is_lost(void **state)
{
	enum { STACKS = 40000, ROUNDS = 3 };
	struct function *functions = calloc(STACKS, sizeof(*functions));
	struct frame(*frames)[2] = calloc(STACKS, sizeof(*frames));
	struct sample *samples = calloc(STACKS, sizeof(*samples));
	struct made_up_source source = made_up_source(samples, STACKS);

	(void)state;
	assert_non_null(functions);
	assert_non_null(frames);
	assert_non_null(samples);
	source.count = ROUNDS * STACKS;
	for (uint64_t number = 0; number < 2; number++) {
		struct tally tally;

		for (size_t i = 0; i < STACKS; i++) {
			frames[i][0] = (struct frame){ .function = &functions[i] };
			frames[i][1] = (struct frame){ .function = &chunk };
			samples[i] = sample_of(frames[i], 2, i);
			samples[i].stack = number * (i + 1);
		}
		tally = tally_of(&source, &(struct view){ 0 });
		assert_int_equal(HASH_COUNT(tally.rows), STACKS + 1);
		for (size_t i = 0; i < STACKS; i++) {
			assert_int_equal(row_of(&tally, &functions[i], 0)->own.ns, ROUNDS * i);
			assert_int_equal(row_of(&tally, &functions[i], 0)->total.samples, ROUNDS);
		}
		assert_int_equal(row_of(&tally, &chunk, 0)->root_ns, tally.all_ns);
		assert_int_equal(row_of(&tally, &chunk, 0)->total.samples, ROUNDS * STACKS);
		tally_clear(&tally);
	}
	free(functions);
	free(frames);
	free(samples);
}

static void deep_stacks_count_as_others_do(void **state)
{
	enum { DEPTH = 1000 };
	static struct frame frames[DEPTH];
	struct sample samples[] = { sample_of(frames, DEPTH, 3), sample_of(frames, DEPTH, 4) };
	struct made_up_source source = made_up_source(samples, 2);
	struct tally tally;

	(void)state;
	for (size_t i = 0; i < DEPTH; i++)
		frames[i].function = i ? &heavy : &gsub;
	tally = tally_of(&source, &(struct view){ 0 });
	assert_int_equal(row_of(&tally, &gsub, 0)->own.ns, 7);
	assert_int_equal(row_of(&tally, &heavy, 0)->total.ns, 7);
	assert_int_equal(row_of(&tally, &heavy, 0)->total.samples, 2);
	assert_int_equal(row_of(&tally, &heavy, 0)->root_ns, 7);
	tally_clear(&tally);
}

/*---- Errors ----*/

enum { SAMPLES = 100 * TALLY_SLICES };

static bool is_about(double value, double wanted)
{
	return fabs(value - wanted) <= 1e-9;
}

/* The steady error of light's share, which has in_run of each run of samples. */
static double error_of(size_t run, size_t in_run, size_t count)
{
	static struct sample samples[SAMPLES];
	struct made_up_source source = made_up_source(samples, SAMPLES);
	struct tally tally;
	double error;

	for (size_t i = 0; i < SAMPLES; i++)
		samples[i] = i % run < in_run ? sample_of(in_light, 2, 5) : sample_of(recursive, 5, 5);
	assert_int_equal(tally_read(&source.source, count, &(struct view){ 0 }, false, &tally), 0);
	assert_true(is_about(tally_share(&tally, row_of(&tally, &light, 0)->own.ns),
			     (double)in_run / (double)run));
	error = tally_steady_error(&tally, &row_of(&tally, &light, 0)->own);
	assert_true(is_about(error, tally_steady_error(&tally, &row_of(&tally, &light, 0)->total)));
	tally_clear(&tally);
	return error;
}

static void errors_of_a_steady_program_are_those_of_independent_samples(void **state)
{
	(void)state;
	assert_true(is_about(error_of(100, 50, SAMPLES), sqrt(0.25 / SAMPLES)));
	assert_true(is_about(error_of(100, 20, SAMPLES), sqrt(0.2 * 0.8 / SAMPLES)));
}

/* One phase, in half of the slices: as if there were one sample a slice. */
static void errors_of_a_program_with_phases_are_those_of_its_phases(void **state)
{
	(void)state;
	assert_true(is_about(error_of(SAMPLES, SAMPLES / 2, SAMPLES), sqrt(0.25 / (TALLY_SLICES - 1))));
	assert_true(is_about(error_of(200, 100, SAMPLES), sqrt(0.25 / (TALLY_SLICES - 1))));
	/* Slices are unknown, and the last one has what comes later than expected. */
	assert_true(is_about(error_of(SAMPLES, SAMPLES / 2, 0), sqrt(0.25 / SAMPLES)));
	assert_true(error_of(SAMPLES, SAMPLES / 2, SAMPLES / 2) > 0.05);
}

static void slices_have_equal_numbers_of_samples(void **state)
{
	const struct sample sample = sample_of(in_light, 2, 5);
	struct made_up_source source = made_up_source(&sample, 1);
	struct tally tally;

	(void)state;
	source.count = 2 * TALLY_SLICES + 7; /* more than expected */
	assert_int_equal(
		tally_read(&source.source, (uint64_t)2 * TALLY_SLICES, &(struct view){ 0 }, false, &tally),
		0);
	for (size_t i = 0; i < TALLY_SLICES; i++)
		assert_true(is_about(tally.slice_ns[i], i == TALLY_SLICES - 1 ? 5 * 9 : 5 * 2));
	assert_true(is_about(tally.slice_squares, 100 * (TALLY_SLICES - 1) + 45 * 45));
	tally_clear(&tally);
}

static void few_heavy_samples_are_less_sure_than_many_light_ones(void **state)
{
	struct sample samples[] = { sample_of(in_light, 2, 30), sample_of(recursive, 5, 5),
				    sample_of(recursive, 5, 5) };
	struct made_up_source source = made_up_source(samples, 3);
	struct tally tally = tally_of(&source, &(struct view){ 0 });
	const double squares = 30 * 30 + 5 * 5 + 5 * 5, even = sqrt(0.75 * 0.25 * squares) / 40;

	(void)state;
	/* One sample of a quarter, beside so many of the rest that they are sure. */
	assert_true(is_about(tally_error(&tally, 10, 950), sqrt(0.75 * 0.75 * squares) / 40));
	/* Light samples may be so by chance. */
	assert_true(is_about(tally_error(&tally, 10, 1), even));
	assert_true(is_about(tally_error(&tally, 40, squares), 0));
	/* A part may seem to have more than all, by rounding. */
	assert_true(is_about(tally_error(&tally, 40, squares + 1), 0));
	tally_clear(&tally);
}

static void each_part_knows_the_squares_of_its_own_samples(void **state)
{
	struct sample samples[] = { sample_of(in_light, 2, 30), sample_of(in_light, 2, 20),
				    sample_of(recursive, 5, 10), sample_of(in_chunk, 1, 7) };
	struct made_up_source source = made_up_source(samples, 4);
	struct tally tally = tally_of(&source, &(struct view){ 0 });
	const struct tally_row *of_light = row_of(&tally, &light, 0), *of_chunk = row_of(&tally, &chunk, 0);

	(void)state;
	assert_true(is_about(of_light->own.sample_squares, 30 * 30 + 20 * 20));
	assert_true(is_about(of_light->total.sample_squares, 30 * 30 + 20 * 20));
	assert_true(is_about(of_light->root_squares, 0));
	assert_true(is_about(of_chunk->own.sample_squares, 7 * 7));
	assert_true(is_about(of_chunk->total.sample_squares, tally.sample_squares));
	assert_true(is_about(of_chunk->root_squares, tally.sample_squares));
	/* It calls itself, and has its sample once. */
	assert_true(is_about(row_of(&tally, &heavy, 0)->total.sample_squares, 10 * 10));
	for (const struct tally_call *call = tally.calls; call; call = call->hh.next)
		if (call->key.caller == of_chunk)
			assert_true(is_about(call->squares,
					     call->key.callee == of_light ? 30 * 30 + 20 * 20 : 10 * 10));
	tally_clear(&tally);
}

/* A number from 0 to 1, the same ones in each run. */
static double drawn(void)
{
	static uint64_t state = 88172645463325252;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (double)(state >> 11) / (double)(UINT64_C(1) << 53);
}

/*
 * Recordings of a program in which light and heavy have samples of so much, and light this part of the
 * samples: how large the error that each shows is beside the differences between their shares of light.
 */
static double error_beside_spread(uint64_t of_light, uint64_t of_heavy, double part_of_light)
{
	enum { RECORDINGS = 400, COUNT = 500 };
	static struct sample samples[COUNT];
	double sum = 0, squares = 0, errors = 0, variance;

	for (size_t r = 0; r < RECORDINGS; r++) {
		struct made_up_source source = made_up_source(samples, COUNT);
		struct tally tally;
		const struct tally_weight *own;
		double share;

		for (size_t i = 0; i < COUNT; i++)
			samples[i] = drawn() < part_of_light ? sample_of(in_light, 2, of_light)
							     : sample_of(recursive, 5, of_heavy);
		tally = tally_of(&source, &(struct view){ 0 });
		own = &row_of(&tally, &light, 0)->own;
		share = tally_share(&tally, own->ns);
		sum += share;
		squares += share * share;
		errors += pow(tally_error(&tally, own->ns, own->sample_squares), 2);
		tally_clear(&tally);
	}
	variance = squares / RECORDINGS - sum / RECORDINGS * sum / RECORDINGS;
	return sqrt(errors / RECORDINGS / variance);
}

static void errors_are_as_large_as_shares_differ(void **state)
{
	(void)state;
	assert_true(fabs(error_beside_spread(1, 1, 0.3) - 1) < 0.1);
	assert_true(fabs(error_beside_spread(20, 1, 0.02) - 1) < 0.1);
	assert_true(error_beside_spread(1, 50, 0.95) > 1);
}

static void nothing_has_no_share_and_no_error(void **state)
{
	struct made_up_source source = made_up_source(NULL, 0);
	struct tally tally = tally_of(&source, &(struct view){ 0 });

	(void)state;
	assert_int_equal(tally.samples, 0);
	assert_null(tally.rows);
	assert_true(is_about(tally_share(&tally, 0), 0));
	assert_true(is_about(tally_error(&tally, 0, 0), 0));
	assert_true(is_about(tally_steady_error(&tally, &(struct tally_weight){ 0 }), 0));
	tally_clear(&tally);
}

static void an_error_of_the_source_is_passed_on(void **state)
{
	struct sample samples[] = { sample_of(recursive, 5, 10), sample_of(in_light, 2, 4) };
	struct made_up_source source = made_up_source(samples, 2);
	struct tally tally = { .samples = 77 };

	(void)state;
	source.end = -EBADMSG;
	assert_int_equal(tally_read(&source.source, 2, &(struct view){ 0 }, true, &tally), -EBADMSG);
	assert_int_equal(tally.samples, 77);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_function_has_a_sample_once_however_often_it_is_in_the_stack),
		cmocka_unit_test(a_call_has_a_sample_once_however_often_it_is_in_the_stack),
		cmocka_unit_test(lines_are_rows_of_their_own_when_asked),
		cmocka_unit_test(what_is_allocated_belongs_to_who_allocates_it),
		cmocka_unit_test(the_collector_runs_in_the_innermost_lua_function),
		cmocka_unit_test(no_sample_of_many_stacks_is_lost),
		cmocka_unit_test(deep_stacks_count_as_others_do),
		cmocka_unit_test(errors_of_a_steady_program_are_those_of_independent_samples),
		cmocka_unit_test(errors_of_a_program_with_phases_are_those_of_its_phases),
		cmocka_unit_test(slices_have_equal_numbers_of_samples),
		cmocka_unit_test(few_heavy_samples_are_less_sure_than_many_light_ones),
		cmocka_unit_test(each_part_knows_the_squares_of_its_own_samples),
		cmocka_unit_test(errors_are_as_large_as_shares_differ),
		cmocka_unit_test(nothing_has_no_share_and_no_error),
		cmocka_unit_test(an_error_of_the_source_is_passed_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

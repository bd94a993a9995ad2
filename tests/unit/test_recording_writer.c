/* SPDX-License-Identifier: MIT */
/* A writer at its limits: samples that need more than its tables hold, and if memory is short. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "output/recording/recording_format.h"
#include "output/recording/recording_reader.h"
#include "output/recording/recording_writer.h"
#include "tests/unit/instead_of.h"

INSTEAD_OF(malloc);
INSTEAD_OF(calloc);
INSTEAD_OF(realloc);
INSTEAD_OF(reallocarray);
#define FAILING_REALLOCARRAY
#include "tests/unit/failing_allocation.h"

enum {
	FEW_FUNCTIONS = 30000, /* of one sample; with those of the other they are more than a recording's */
	MANY_FUNCTIONS = 40000,
	LONG_NAMES = 128, /* as many as a recording has room for */
};

static const struct session session = { .pid = 4711, .target = "nginx", .clock = WEIGHT_CPU_TIME };

/* A recording, as it is written and as it is read. */
struct recording {
	FILE *out, *in;
	char *bytes;
	size_t size;
	struct recording_writer *writer;
	struct recording_reader *reader;
	struct functions *read;
	struct function *functions; /* that are written */
	struct frame *frames;
};

static int begin_recording(void **state)
{
	struct recording *recording = test_calloc(1, sizeof(*recording));

	*state = recording;
	recording->out = open_memstream(&recording->bytes, &recording->size);
	assert_non_null(recording->out);
	return recording_writer_new(recording->out, &session, &recording->writer);
}

static int end_recording(void **state)
{
	struct recording *recording = *state;

	recording_writer_free(recording->writer);
	fclose(recording->out);
	recording_reader_close(recording->reader);
	functions_free(recording->read);
	if (recording->in)
		fclose(recording->in);
	free(recording->bytes);
	free(recording->functions);
	free(recording->frames);
	test_free(recording);
	return 0;
}

/* A stack of as many functions, each unlike the others by its first line. */
static void make_functions(struct recording *recording, uint32_t count)
{
	recording->functions = calloc(count, sizeof(*recording->functions));
	recording->frames = calloc(count, sizeof(*recording->frames));
	assert_non_null(recording->functions);
	assert_non_null(recording->frames);
	for (uint32_t i = 0; i < count; i++) {
		recording->functions[i] = (struct function){ .kind = FRAME_LUA, .firstline = 1 + i };
		recording->frames[i] = (struct frame){ .function = &recording->functions[i] };
	}
}

/* A sample of these frames. */
static int add(struct recording *recording, uint64_t time_ns, const struct frame *frames, size_t count)
{
	struct sample sample = {
		.time_ns = time_ns, .pid = 1, .tid = 2, .frames = frames, .frame_count = count
	};

	return recording_writer_add(recording->writer, &sample);
}

static void begin_reading(struct recording *recording)
{
	assert_int_equal(recording_writer_flush(recording->writer), 0);
	recording->in = fmemopen(recording->bytes, recording->size, "r");
	recording->read = functions_new();
	assert_non_null(recording->in);
	assert_int_equal(recording_reader_open(recording->in, recording->read, &recording->reader), 0);
	assert_int_equal(recording_reader_extent(recording->reader), RECORDING_UNFINISHED);
}

/* The next sample has this time and the functions of these frames, by their lines. */
static void assert_next(struct recording *recording, uint64_t time_ns, const struct frame *frames,
			size_t count)
{
	struct sample_source *source = recording_reader_samples(recording->reader);
	struct sample sample;

	assert_int_equal(source->next(source, &sample), 1);
	assert_int_equal(sample.time_ns, time_ns);
	assert_int_equal(sample.pid, 1);
	assert_int_equal(sample.tid, 2);
	assert_int_equal(sample.frame_count, count);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(sample.frames[i].function->firstline, frames[i].function->firstline);
}

static void assert_no_more(struct recording *recording)
{
	struct sample_source *source = recording_reader_samples(recording->reader);
	struct sample sample;

	assert_int_equal(source->next(source, &sample), 0);
}

static void functions_of_two_samples_may_be_more_than_the_table_holds(void **state)
{
	struct recording *recording = *state;
	const struct frame *frames;

	make_functions(recording, FEW_FUNCTIONS + MANY_FUNCTIONS);
	frames = recording->frames;
	assert_int_equal(add(recording, 1, frames, FEW_FUNCTIONS), 0);
	assert_int_equal(add(recording, 2, frames + FEW_FUNCTIONS, MANY_FUNCTIONS), 0);
	assert_int_equal(add(recording, 3, frames, 1), 0);
	begin_reading(recording);
	assert_next(recording, 1, frames, FEW_FUNCTIONS);
	assert_next(recording, 2, frames + FEW_FUNCTIONS, MANY_FUNCTIONS);
	assert_next(recording, 3, frames, 1);
	assert_no_more(recording);
}

static void threads_may_be_more_than_the_table_holds(void **state)
{
	struct recording *recording = *state;
	struct sample_source *source;
	struct sample sample = { .pid = 1 };

	make_functions(recording, 1);
	for (pid_t tid = 1; tid <= RECORDING_THREADS_MAX + 1; tid++) {
		const struct sample written = {
			.pid = 1, .tid = tid, .frames = recording->frames, .frame_count = 1
		};

		assert_int_equal(recording_writer_add(recording->writer, &written), 0);
	}
	begin_reading(recording);
	source = recording_reader_samples(recording->reader);
	for (pid_t tid = 1; tid <= RECORDING_THREADS_MAX + 1; tid++) {
		assert_int_equal(source->next(source, &sample), 1);
		assert_int_equal(sample.tid, tid);
	}
	assert_no_more(recording);
}

static void a_sample_with_more_functions_than_the_table_holds_is_refused(void **state)
{
	struct recording *recording = *state;

	make_functions(recording, RECORDING_FUNCTIONS_MAX + 1);
	assert_int_equal(add(recording, 1, recording->frames, RECORDING_FUNCTIONS_MAX + 1), -EOVERFLOW);
	assert_int_equal(add(recording, 2, recording->frames, RECORDING_FUNCTIONS_MAX), 0);
	assert_int_equal(add(recording, 3, recording->frames, 1), 0);
	begin_reading(recording);
	assert_next(recording, 2, recording->frames, RECORDING_FUNCTIONS_MAX);
	assert_next(recording, 3, recording->frames, 1);
	assert_no_more(recording);
}

static void a_stack_that_is_too_deep_is_refused(void **state)
{
	struct recording *recording = *state;
	struct frame *deep;

	make_functions(recording, 1);
	deep = test_calloc(RECORDING_DEPTH_MAX + 1, sizeof(*deep));
	for (size_t i = 0; i <= RECORDING_DEPTH_MAX; i++)
		deep[i] = recording->frames[0];
	assert_int_equal(add(recording, 1, deep, RECORDING_DEPTH_MAX + 1), -EOVERFLOW);
	assert_int_equal(add(recording, 2, deep, RECORDING_DEPTH_MAX), 0);
	begin_reading(recording);
	assert_next(recording, 2, deep, RECORDING_DEPTH_MAX);
	assert_no_more(recording);
	test_free(deep);
}

/* Names as long as they may be, or longer: those are cut. They differ by their first letters. */
static void names_of_two_samples_may_be_longer_than_the_table_holds(void **state)
{
	struct recording *recording = *state;
	const size_t length = RECORDING_TEXT_MAX + 1;
	char *names = test_malloc(LONG_NAMES * length + 1);

	make_functions(recording, LONG_NAMES + 1);
	memset(names, 'x', LONG_NAMES * length);
	names[LONG_NAMES * length] = '\0';
	for (size_t i = 0; i < LONG_NAMES; i++) {
		names[i * length] = (char)('A' + i % 26);
		names[i * length + 1] = (char)('A' + i / 26);
		recording->functions[i].name = names + i * length;
	}
	recording->functions[LONG_NAMES].name = "one more";
	assert_int_equal(add(recording, 1, recording->frames, LONG_NAMES + 1), -EOVERFLOW);
	assert_int_equal(add(recording, 2, recording->frames, 40), 0);
	assert_int_equal(add(recording, 3, recording->frames + 1, 100), 0);
	begin_reading(recording);
	assert_next(recording, 2, recording->frames, 40);
	assert_next(recording, 3, recording->frames + 1, 100);
	assert_no_more(recording);
	test_free(names);
}

/* A sample that could not be added is added again, and stands there once. */
static void where_memory_is_short_a_sample_is_added_later(void **state)
{
	static const struct function waits = { .kind = FRAME_NATIVE, .name = "poll", .module = "libc.so.6" };
	struct recording *recording = *state;
	struct sample_source *source;
	struct sample sample = {
		.time_ns = 1,
		.pid = 1,
		.tid = 2,
		.process_name = "nginx",
		.thread_name = "io",
		.phase = "content",
		.thread_state = THREAD_BLOCKED,
		.wait = &waits,
		.request = { .route = "/a", .method = "GET", .host = "b" },
		.frame_count = 3,
	};
	struct sample read;
	size_t count = 0;
	int error;

	make_functions(recording, 3);
	recording->functions[0].file = "@/a/x.lua";
	sample.frames = recording->frames;
	for (bool failed = true; failed; count++) {
		allocation_fails_after(count);
		error = recording_writer_add(recording->writer, &sample);
		failed = allocation_failed();
		if (error) {
			assert_int_equal(error, -ENOMEM);
			assert_true(failed);
			assert_int_equal(recording_writer_add(recording->writer, &sample), 0);
		}
		sample.time_ns++;
		recording_writer_forget_functions(recording->writer);
	}
	assert_true(count > 10);
	begin_reading(recording);
	source = recording_reader_samples(recording->reader);
	for (uint64_t time_ns = 1; time_ns < sample.time_ns; time_ns++) {
		assert_int_equal(source->next(source, &read), 1);
		assert_int_equal(read.time_ns, time_ns);
		assert_string_equal(read.process_name, "nginx");
		assert_string_equal(read.thread_name, "io");
		assert_string_equal(read.phase, "content");
		assert_string_equal(read.wait->name, "poll");
		assert_string_equal(read.request.host, "b");
		assert_int_equal(read.frame_count, 3);
		for (size_t i = 0; i < 3; i++)
			assert_int_equal(read.frames[i].function->firstline, 1 + i);
		assert_string_equal(read.frames[0].function->file, "@/a/x.lua");
	}
	assert_no_more(recording);
}

static void without_memory_there_is_no_writer(void **state)
{
	struct recording *recording = *state;
	size_t count = 0;

	for (bool failed = true; failed; count++) {
		struct recording_writer *writer = NULL;
		int error;

		allocation_fails_after(count);
		error = recording_writer_new(recording->out, &session, &writer);
		failed = allocation_failed();
		assert_int_equal(error, failed ? -ENOMEM : 0);
		assert_int_equal(writer != NULL, !failed);
		recording_writer_free(writer);
	}
	assert_true(count > 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(functions_of_two_samples_may_be_more_than_the_table_holds,
						begin_recording, end_recording),
		cmocka_unit_test_setup_teardown(threads_may_be_more_than_the_table_holds, begin_recording,
						end_recording),
		cmocka_unit_test_setup_teardown(a_sample_with_more_functions_than_the_table_holds_is_refused,
						begin_recording, end_recording),
		cmocka_unit_test_setup_teardown(a_stack_that_is_too_deep_is_refused, begin_recording,
						end_recording),
		cmocka_unit_test_setup_teardown(names_of_two_samples_may_be_longer_than_the_table_holds,
						begin_recording, end_recording),
		cmocka_unit_test_setup_teardown(where_memory_is_short_a_sample_is_added_later,
						begin_recording, end_recording),
		cmocka_unit_test_setup_teardown(without_memory_there_is_no_writer, begin_recording,
						end_recording),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

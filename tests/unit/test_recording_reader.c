/* SPDX-License-Identifier: MIT */
/* What a reader makes of records, byte by byte: of older versions, of properties, and if memory is short. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <zstd.h>

#include "output/recording/recording_format.h"
#include "output/recording/recording_reader.h"
#include "tests/unit/instead_of.h"

INSTEAD_OF(malloc);
INSTEAD_OF(calloc);
INSTEAD_OF(realloc);
INSTEAD_OF(reallocarray);
#define FAILING_REALLOCARRAY
#include "tests/unit/failing_allocation.h"

enum { RECORDS_MAX = 1 << 12, FILE_MAX = 2 * RECORDS_MAX };

/* A recording of some records, as it is written and as it is read. */
struct recording {
	char records[RECORDS_MAX], file[FILE_MAX];
	size_t length, size;
	FILE *stream;
	struct functions *functions;
	struct recording_reader *reader;
};

static int begin_recording(void **state)
{
	*state = test_calloc(1, sizeof(struct recording));
	return 0;
}

static int end_recording(void **state)
{
	struct recording *recording = *state;

	recording_reader_close(recording->reader);
	functions_free(recording->functions);
	if (recording->stream)
		fclose(recording->stream);
	test_free(recording);
	return 0;
}

static void put(struct recording *recording, const char *records, size_t length)
{
	assert_true(recording->length + length <= RECORDS_MAX);
	memcpy(recording->records + recording->length, records, length);
	recording->length += length;
}

#define PUT(recording, records) put(recording, records, sizeof(records) - 1)

static void put_text(struct recording *recording, const char *text)
{
	const char length = (char)strlen(text);

	assert_true(length > 0);
	put(recording, &length, 1);
	put(recording, text, strlen(text));
}

static void put_property(struct recording *recording, const char *name, const char *value)
{
	PUT(recording, "\x06");
	put_text(recording, name);
	put_text(recording, value);
}

/* A function of a Lua file; strings are numbered from 1 on. */
static void put_function(struct recording *recording, const char *file, char string, char root)
{
	PUT(recording, "\x01");
	put_text(recording, file);
	PUT(recording, "\x02\0\0\0");
	put(recording, &string, 1);
	PUT(recording, "\0");
	put(recording, &root, 1);
}

/* Make a file of the records that is of this version of the format. */
static void pack(struct recording *recording, unsigned int version)
{
	size_t packed;

	memcpy(recording->file, RECORDING_MAGIC, BLOCK_VERSION_OFFSET);
	recording->file[BLOCK_VERSION_OFFSET] = (char)version;
	packed = ZSTD_compress(recording->file + BLOCK_HEADER_SIZE, FILE_MAX - BLOCK_HEADER_SIZE,
			       recording->records, recording->length, 1);
	assert_false(ZSTD_isError(packed));
	recording->size = BLOCK_HEADER_SIZE + packed;
	recording->stream = fmemopen(recording->file, recording->size, "r");
	recording->functions = functions_new();
	assert_non_null(recording->stream);
	assert_non_null(recording->functions);
}

/* Open it; so much of it can be read. */
static void open_as(struct recording *recording, unsigned int version, enum recording_extent extent)
{
	pack(recording, version);
	assert_int_equal(recording_reader_open(recording->stream, recording->functions, &recording->reader),
			 0);
	assert_int_equal(recording_reader_extent(recording->reader), extent);
}

static struct sample next(struct recording *recording)
{
	struct sample_source *source = recording_reader_samples(recording->reader);
	struct sample sample;

	assert_int_equal(source->next(source, &sample), 1);
	return sample;
}

static void assert_no_more(struct recording *recording)
{
	struct sample_source *source = recording_reader_samples(recording->reader);
	struct sample sample;

	assert_int_equal(source->next(source, &sample), 0);
}

/*---- Versions ----*/

static void the_first_version_says_nothing_of_waits_and_collectors(void **state)
{
	struct recording *recording = *state;

	/* A thread, and after, thread, stack, state, phase, cpu and wall. */
	PUT(recording, "\x04\x01\x02\0\0");
	PUT(recording, "\x05\x64\x01\0\x01\0\x07\x02");
	PUT(recording, "\x05\x64\x01\0\x18\0\x08\x02");
	open_as(recording, 1, RECORDING_UNFINISHED);
	for (int i = 0; i < 2; i++) {
		struct sample sample = next(recording);

		assert_int_equal(sample.time_ns, 100 * (i + 1));
		assert_int_equal(sample.pid, 1);
		assert_int_equal(sample.tid, 2);
		assert_int_equal(sample.cpu_ns, 7 + i);
		assert_int_equal(sample.wall_ns, 100 * i + 1);
		assert_null(sample.wait);
	}
	assert_no_more(recording);
}

static void a_collector_of_an_old_version_is_in_no_known_phase(void **state)
{
	struct recording *recording = *state;
	const char state_byte = (char)(VM_STATE_GC << STATE_THREAD_BITS);

	PUT(recording, "\x04\x01\x02\0\0\x05\x64\x01\0");
	put(recording, &state_byte, 1);
	PUT(recording, "\0\x07\x02");
	PUT(recording, "\x05\x64\x01\0\0\0\x07\x02");
	open_as(recording, RECORDING_VERSION_GC - 1, RECORDING_UNFINISHED);
	assert_int_equal(next(recording).gc.phase, GC_PHASE_UNKNOWN);
	assert_int_equal(next(recording).gc.phase, GC_PHASE_NONE);
}

static void a_thread_that_does_not_run_has_a_wait_since_the_second_version(void **state)
{
	struct recording *recording = *state;

	/* A native function; a thread that is in its second state and waits for it, and one that runs. */
	PUT(recording, "\x01\x04poll\x02\x02\0\x01\0\0\x04\x01\x02\0\0");
	PUT(recording, "\x05\x64\x01\0\x01\0\x01\x07\x02");
	PUT(recording, "\x05\x64\x01\0\0\0\x07\x02");
	open_as(recording, RECORDING_VERSION_WAITS, RECORDING_UNFINISHED);
	assert_string_equal(next(recording).wait->name, "poll");
	assert_null(next(recording).wait);
}

/* The byte of the collector that only later versions have is damage in this one. */
static void assert_bits(void **state, unsigned int version, const char *sample, size_t length, bool good)
{
	struct recording *recording = *state;

	PUT(recording, "\x04\x01\x02\0\0");
	put(recording, sample, length);
	open_as(recording, version, good ? RECORDING_UNFINISHED : RECORDING_DAMAGED);
	assert_int_equal(recording_reader_figures(recording->reader)->samples, good ? 1 : 0);
	end_recording(state);
	begin_recording(state);
}

static void a_version_has_no_bits_of_a_later_one(void **state)
{
	static const char allocation[] = "\x05\x64\x01\0\0\x20\0\x07\x02\x05\x06",
			  step[] = "\x05\x64\x01\0\0\x40\x01\x02\x03\0\x07\x02";

	assert_bits(state, RECORDING_VERSION_ALLOC - 1, allocation, sizeof(allocation) - 1, false);
	assert_bits(state, RECORDING_VERSION_ALLOC, allocation, sizeof(allocation) - 1, true);
	assert_bits(state, RECORDING_VERSION_STEPS - 1, step, sizeof(step) - 1, false);
	assert_bits(state, RECORDING_VERSION_STEPS, step, sizeof(step) - 1, true);
}

static void functions_have_no_root_before_the_sixth_version(void **state)
{
	struct recording *recording = *state;
	struct sample sample;

	PUT(recording, "\x01\x06@a.lua\x02\0\x03\0\x01\0");
	PUT(recording, "\x03\0\x01\x05\0\x04\x01\x02\0\0\x05\x64\x01\x01\0\0\0\x07\x02");
	open_as(recording, RECORDING_VERSION_ROOTS - 1, RECORDING_UNFINISHED);
	sample = next(recording);
	assert_int_equal(sample.frame_count, 1);
	assert_int_equal(sample.frames[0].line, 5);
	assert_int_equal(sample.frames[0].function->firstline, 3);
	assert_int_equal(sample.frames[0].function->root, 0);
	assert_string_equal(sample.frames[0].function->file, "@a.lua");
}

/*---- Records ----*/

static void a_request_without_a_sample_is_of_no_other_sample(void **state)
{
	struct recording *recording = *state;
	struct sample_source *source;

	PUT(recording, "\x01\x02/a\x04\x01\x02\0\0\x05\x64\x01\0\0\0\0\x07\x02");
	PUT(recording, "\x0a\x01\0\0\0\0\x01\x02\x03\x05\x64\x01\0\0\0\0\x07\x02");
	PUT(recording, "\x0a\x01\0\0\0\0\x01\x03\x03");
	open_as(recording, RECORDING_VERSION, RECORDING_UNFINISHED);
	source = recording_reader_samples(recording->reader);
	for (int i = 0; i < 2; i++) {
		assert_null(next(recording).request.route);
		assert_int_equal(next(recording).request.number, 2);
		assert_no_more(recording);
		assert_int_equal(source->rewind(source), 0);
	}
}

static void a_sample_after_the_end_of_time_is_damage(void **state)
{
	struct recording *recording = *state;

	PUT(recording, "\x04\x01\x02\0\0");
	PUT(recording, "\x05\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x01\0\0\0\0\x07\0");
	PUT(recording, "\x05\x01\x01\0\0\0\0\x07\0");
	open_as(recording, RECORDING_VERSION, RECORDING_DAMAGED);
	assert_int_equal(next(recording).time_ns, UINT64_MAX);
	assert_no_more(recording);
}

static void without_an_end_time_is_that_of_the_samples(void **state)
{
	struct recording *recording = *state;

	put_property(recording, "start_ns", "90");
	put_property(recording, "clock", "wall");
	PUT(recording, "\x04\x01\x02\0\0\x05\x64\x01\0\0\0\0\x07\x0a");
	PUT(recording, "\x05\x32\x01\0\0\0\0\x08\0");
	open_as(recording, RECORDING_VERSION, RECORDING_UNFINISHED);
	assert_int_equal(recording_reader_first_ns(recording->reader), 100);
	assert_int_equal(recording_reader_figures(recording->reader)->target_cpu_ns, 15);
	assert_int_equal(recording_reader_figures(recording->reader)->duration_ns, 60);
	assert_int_equal(recording_reader_session(recording->reader)->duration_ns, 60);
	assert_int_equal(recording_reader_clocked_ns(recording->reader), 55);
}

static void without_a_start_time_begins_at_the_first_sample(void **state)
{
	struct recording *recording = *state;

	PUT(recording, "\x04\x01\x02\0\0\x05\x64\x01\0\0\0\0\x07\0");
	PUT(recording, "\x05\x32\x01\0\0\0\0\x08\0");
	open_as(recording, RECORDING_VERSION, RECORDING_UNFINISHED);
	assert_int_equal(recording_reader_figures(recording->reader)->duration_ns, 50);
}

static void without_samples_and_an_end_nothing_took_time(void **state)
{
	struct recording *recording = *state;

	put_property(recording, "start_ns", "90");
	open_as(recording, RECORDING_VERSION, RECORDING_UNFINISHED);
	assert_int_equal(recording_reader_first_ns(recording->reader), 0);
	assert_int_equal(recording_reader_figures(recording->reader)->duration_ns, 0);
	assert_no_more(recording);
}

static void the_longest_root_that_a_file_is_below_is_its_root(void **state)
{
	static const uint32_t roots[] = { 5, 5, 4, 6, 0 };
	struct recording *recording = *state;
	struct sample sample;

	/* What follows the last semicolon is no root. */
	put_property(recording, "roots", ";/a/;/c/d/;/e/");
	put_function(recording, "@/a/b/x.lua", 1, 5);
	put_function(recording, "@/a/b/y.lua", 2, 0);
	put_function(recording, "@/a/z.lua", 3, 0);
	put_function(recording, "@/c/d/e.lua", 4, 0);
	put_function(recording, "@/e/f.lua", 5, 0);
	PUT(recording, "\x03\0\x05\0\0\x03\x01\x04\0\0\x03\x02\x03\0\0\x03\x03\x02\0\0\x03\x04\x01\0\0");
	PUT(recording, "\x04\x01\x02\0\0\x05\x64\x01\x05\0\0\0\x07\0");
	open_as(recording, RECORDING_VERSION, RECORDING_UNFINISHED);
	sample = next(recording);
	assert_int_equal(sample.frame_count, sizeof(roots) / sizeof(roots[0]));
	for (size_t i = 0; i < sample.frame_count; i++)
		assert_int_equal(sample.frames[i].function->root, roots[i]);
}

/* A reader knows so many of them; a file that has one of its own keeps it. */
static void files_have_one_of_the_first_roots(void **state)
{
	struct recording *recording = *state;
	struct sample sample;
	char file[16];

	for (int i = 0; i <= RECORDING_ROOTS_MAX; i++) {
		snprintf(file, sizeof(file), "@/%02d/x.lua", i);
		put_function(recording, file, (char)(i + 1), 5);
	}
	for (int i = RECORDING_ROOTS_MAX - 1; i <= RECORDING_ROOTS_MAX; i++) {
		snprintf(file, sizeof(file), "@/%02d/y.lua", i);
		put_function(recording, file, (char)(i + 3), 0);
	}
	PUT(recording, "\x03\0\x43\0\0\x03\x01\x42\0\0\x03\x02\x41\0\0"); /* the last three */
	PUT(recording, "\x04\x01\x02\0\0\x05\x64\x01\x03\0\0\0\x07\0");
	open_as(recording, RECORDING_VERSION, RECORDING_UNFINISHED);
	sample = next(recording);
	assert_int_equal(sample.frame_count, 3);
	assert_string_equal(sample.frames[0].function->file, "@/64/x.lua");
	assert_int_equal(sample.frames[0].function->root, 5);
	assert_string_equal(sample.frames[1].function->file, "@/63/y.lua");
	assert_int_equal(sample.frames[1].function->root, 5);
	assert_string_equal(sample.frames[2].function->file, "@/64/y.lua");
	assert_int_equal(sample.frames[2].function->root, 0);
}

/*---- Properties ----*/

static void a_later_property_replaces_an_earlier_one(void **state)
{
	struct recording *recording = *state;

	put_property(recording, "target", "one");
	put_property(recording, "cause", "cpu > 90");
	put_property(recording, "missed_ticks", "1");
	put_property(recording, "target", "two");
	put_property(recording, "missed_ticks", "20");
	open_as(recording, RECORDING_VERSION, RECORDING_UNFINISHED);
	assert_string_equal(recording_reader_session(recording->reader)->target, "two");
	assert_string_equal(recording_reader_session(recording->reader)->cause, "cpu > 90");
	assert_int_equal(recording_reader_figures(recording->reader)->missed_ticks, 20);
}

static void a_property_that_makes_no_sense_is_as_if_it_was_not_there(void **state)
{
	struct recording *recording = *state;

	put_property(recording, "clock", "alloc");
	put_property(recording, "clock", "sundial");
	put_property(recording, "clock", "off-cpu"); /* a view of one */
	put_property(recording, "pid", "4711");
	put_property(recording, "pid", "2147483648");
	put_property(recording, "home_pid", "4712");
	put_property(recording, "home_pid", "4294967297");
	put_property(recording, "dropped", "12x");
	put_property(recording, "away_ns", "99999999999999999999");
	put_property(recording, "undisturbed", "-1");
	put_property(recording, "labels_4294967297", "a=1\n");
	put_property(recording, "labels_x", "a=2\n");
	put_property(recording, "labels_1", "a=3\n");
	put_property(recording, "targe", "prefix");
	put_property(recording, "targets", "longer");
	open_as(recording, RECORDING_VERSION, RECORDING_UNFINISHED);
	assert_int_equal(recording_reader_session(recording->reader)->clock, WEIGHT_ALLOC_BYTES);
	assert_int_equal(recording_reader_session(recording->reader)->pid, 4711);
	assert_int_equal(recording_reader_session(recording->reader)->home.pid, 4712);
	assert_null(recording_reader_session(recording->reader)->target);
	assert_int_equal(recording_reader_figures(recording->reader)->dropped, 0);
	assert_int_equal(recording_reader_figures(recording->reader)->away_ns, 0);
	assert_int_equal(recording_reader_figures(recording->reader)->undisturbed, 0);
	assert_string_equal(recording_reader_labels(recording->reader, 1), "a=3\n");
	assert_null(recording_reader_labels(recording->reader, 0));
}

static void numbers_have_64_bits(void **state)
{
	struct recording *recording = *state;

	put_property(recording, "missed_ticks", "18446744073709551615");
	put_property(recording, "undisturbed", "18446744073709551609");
	put_property(recording, "skid", "1844674407370955161");
	put_property(recording, "away_ns", "18446744073709551616");
	put_property(recording, "self_cpu_ns", "18446744073709551620");
	open_as(recording, RECORDING_VERSION, RECORDING_UNFINISHED);
	assert_int_equal(recording_reader_figures(recording->reader)->missed_ticks, UINT64_MAX);
	assert_int_equal(recording_reader_figures(recording->reader)->undisturbed, UINT64_MAX - 6);
	assert_int_equal(recording_reader_figures(recording->reader)->skid, UINT64_MAX / 10);
	assert_int_equal(recording_reader_figures(recording->reader)->away_ns, 0);
	assert_int_equal(recording_reader_figures(recording->reader)->self_cpu_ns, 0);
}

/*---- Memory ----*/

static void put_some_of_all(struct recording *recording)
{
	put_property(recording, "target", "nginx");
	put_property(recording, "roots", "/a/;");
	put_property(recording, "labels_1", "a=1\n");
	put_function(recording, "@/b/x.lua", 1, 3);
	PUT(recording, "\x01\x02/a\x01\x05nginx\x03\0\x01\x05\0\x04\x01\x02\x03\x03");
	PUT(recording, "\x0a\x02\x02\x02\0\0\x01\x02\x03\x05\x64\x01\x01\0\0\x03\x07\x02");
	PUT(recording, "\x05\x64\x01\x01\0\0\x03\x07\x02\x09");
}

/* 0 or -ENOMEM; what is read is right, as far as it is. */
static int read_all(struct recording *recording)
{
	struct sample_source *source;
	struct sample sample;
	int result = recording_reader_open(recording->stream, recording->functions, &recording->reader);

	if (result)
		return result;
	source = recording_reader_samples(recording->reader);
	for (uint64_t i = 0; (result = source->next(source, &sample)) == 1; i++) {
		assert_int_equal(sample.time_ns, 100 * (i + 1));
		assert_string_equal(sample.process_name, "nginx");
		assert_int_equal(sample.frame_count, 1);
		assert_string_equal(sample.frames[0].function->file, "@/b/x.lua");
		assert_int_equal(sample.frames[0].function->root, 3);
		if (i == 0)
			assert_string_equal(sample.request.route, "/a");
		else
			assert_null(sample.request.route);
	}
	return result;
}

static void where_memory_is_short_that_is_told(void **state)
{
	size_t count = 0;

	for (bool failed = true; failed; count++) {
		struct recording *recording = *state;
		int result;

		put_some_of_all(recording);
		pack(recording, RECORDING_VERSION);
		allocation_fails_after(count);
		result = read_all(recording);
		failed = allocation_failed();
		assert_true(result == 0 || (failed && result == -ENOMEM));
		if (recording->reader)
			assert_int_equal(recording_reader_figures(recording->reader)->samples, 2);
		end_recording(state);
		begin_recording(state);
	}
	assert_true(count > 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_first_version_says_nothing_of_waits_and_collectors,
						begin_recording, end_recording),
		cmocka_unit_test_setup_teardown(a_collector_of_an_old_version_is_in_no_known_phase,
						begin_recording, end_recording),
		cmocka_unit_test_setup_teardown(
			a_thread_that_does_not_run_has_a_wait_since_the_second_version, begin_recording,
			end_recording),
		cmocka_unit_test_setup_teardown(a_version_has_no_bits_of_a_later_one, begin_recording,
						end_recording),
		cmocka_unit_test_setup_teardown(functions_have_no_root_before_the_sixth_version,
						begin_recording, end_recording),
		cmocka_unit_test_setup_teardown(a_request_without_a_sample_is_of_no_other_sample,
						begin_recording, end_recording),
		cmocka_unit_test_setup_teardown(a_sample_after_the_end_of_time_is_damage, begin_recording,
						end_recording),
		cmocka_unit_test_setup_teardown(without_an_end_time_is_that_of_the_samples, begin_recording,
						end_recording),
		cmocka_unit_test_setup_teardown(without_a_start_time_begins_at_the_first_sample,
						begin_recording, end_recording),
		cmocka_unit_test_setup_teardown(without_samples_and_an_end_nothing_took_time, begin_recording,
						end_recording),
		cmocka_unit_test_setup_teardown(files_have_one_of_the_first_roots, begin_recording,
						end_recording),
		cmocka_unit_test_setup_teardown(the_longest_root_that_a_file_is_below_is_its_root,
						begin_recording, end_recording),
		cmocka_unit_test_setup_teardown(a_later_property_replaces_an_earlier_one, begin_recording,
						end_recording),
		cmocka_unit_test_setup_teardown(a_property_that_makes_no_sense_is_as_if_it_was_not_there,
						begin_recording, end_recording),
		cmocka_unit_test_setup_teardown(numbers_have_64_bits, begin_recording, end_recording),
		cmocka_unit_test_setup_teardown(where_memory_is_short_that_is_told, begin_recording,
						end_recording),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

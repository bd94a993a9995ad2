/* SPDX-License-Identifier: MIT */
/* A sample is read as it was written; a message that was not sent takes nothing with it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/apart/sample_message.h"
#include "unwind/lua/request.h"

enum { SIZE_MAX_OF_MESSAGES = 4096 };

static const struct function heavy = {
	.kind = FRAME_LUA, .name = "heavy", .file = "@lib/a.lua", .firstline = 7, .root = 5
};
static const struct function native = { .kind = FRAME_NATIVE, .name = "sqrt", .module = "libm.so.6" };

struct fixture {
	struct functions *functions;
	struct sample_writer *writer;
	struct sample_reader *reader;
	struct frame frames[3];
	struct sample sample;
};

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	fixture->functions = functions_new();
	fixture->writer = sample_writer_new(SIZE_MAX_OF_MESSAGES);
	fixture->reader = sample_reader_new(fixture->functions);
	assert_true(fixture->functions && fixture->writer && fixture->reader);
	fixture->frames[0] = (struct frame){ &native, 0, CERTAINTY_FUNCTION, false };
	fixture->frames[1] = (struct frame){ lost_function(LOST_ASLEEP), 0, CERTAINTY_EXACT, false };
	fixture->frames[2] = (struct frame){ &heavy, 9, CERTAINTY_NEAREST, true };
	fixture->sample = (struct sample){
		.time_ns = UINT64_MAX,
		.pid = 12,
		.tid = 13,
		.process_name = "luajit",
		.phase = "content",
		.request = { "/users/*", "GET", "shop", 404, true, UINT64_MAX, 5, 6 },
		.thread_state = THREAD_BLOCKED,
		.vm_state = VM_STATE_GC,
		.gc = { GC_PHASE_SWEEP, true, UINT64_MAX, UINT64_MAX - 4, UINT64_MAX - 1, UINT64_MAX - 2,
			UINT64_MAX - 3 },
		.wait = &native,
		.cpu_ns = 1,
		.wall_ns = 2,
		.alloc_bytes = UINT64_MAX - 1,
		.alloc_objects = 7,
		.loop_ns = 3,
		.sleeps = 4,
		.awaits_events = true,
		.frames = fixture->frames,
		.frame_count = 3,
	};
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	sample_writer_free(fixture->writer);
	sample_reader_free(fixture->reader);
	functions_free(fixture->functions);
	free(fixture);
	return 0;
}

static const unsigned char *write_sample(struct fixture *fixture, size_t *ret_size)
{
	return sample_writer_write(fixture->writer, &fixture->sample, ret_size);
}

static void assert_same_function(const struct function *a, const struct function *b)
{
	assert_int_equal(a->kind, b->kind);
	assert_int_equal(a->firstline, b->firstline);
	assert_int_equal(a->root, b->root);
	assert_string_equal(a->name, b->name);
	assert_true(!a->file == !b->file && (!a->file || strcmp(a->file, b->file) == 0));
	assert_true(!a->module == !b->module && (!a->module || strcmp(a->module, b->module) == 0));
}

static void assert_read(struct fixture *fixture, const unsigned char *bytes, size_t size)
{
	const struct sample *sent = &fixture->sample;
	struct sample sample;

	assert_non_null(bytes);
	assert_int_equal(sample_reader_read(fixture->reader, bytes, size, &sample), 0);
	assert_true(sample.time_ns == sent->time_ns && sample.pid == sent->pid && sample.tid == sent->tid);
	assert_string_equal(sample.process_name, sent->process_name);
	assert_null(sample.thread_name);
	assert_string_equal(sample.phase, sent->phase);
	assert_ptr_equal(sample.phase, request_phase_named("content")); /* it outlasts the reader */
	assert_string_equal(sample.request.route, "/users/*");
	assert_string_equal(sample.request.method, "GET");
	assert_string_equal(sample.request.host, "shop");
	assert_true(sample.request.status == 404 && sample.request.is_subrequest &&
		    sample.request.connection == UINT64_MAX && sample.request.number == 5 &&
		    sample.request.age_ns == 6);
	assert_true(sample.thread_state == sent->thread_state && sample.vm_state == sent->vm_state);
	assert_true(sample.gc.phase == GC_PHASE_SWEEP && sample.gc.has_marked &&
		    sample.gc.heap_bytes == UINT64_MAX && sample.gc.live_bytes == UINT64_MAX - 4 &&
		    sample.gc.allocated_bytes == UINT64_MAX - 1 && sample.gc.used_ns == UINT64_MAX - 2 &&
		    sample.gc.step_ns == UINT64_MAX - 3);
	assert_same_function(sample.wait, sent->wait);
	assert_true(sample.alloc_bytes == UINT64_MAX - 1 && sample.alloc_objects == 7);
	assert_true(sample.cpu_ns == 1 && sample.wall_ns == 2 && sample.loop_ns == 3 && sample.sleeps == 4);
	assert_true(sample.awaits_events);
	assert_int_equal(sample.frame_count, sent->frame_count);
	for (size_t i = 0; i < sample.frame_count; i++) {
		assert_same_function(sample.frames[i].function, sent->frames[i].function);
		assert_int_equal(sample.frames[i].line, sent->frames[i].line);
		assert_int_equal(sample.frames[i].certainty, sent->frames[i].certainty);
		assert_int_equal(sample.frames[i].compiled, sent->frames[i].compiled);
	}
	/* Reasons are told apart by the function itself. */
	assert_ptr_equal(sample.frames[1].function, lost_function(LOST_ASLEEP));
}

static void write_and_read(struct fixture *fixture)
{
	size_t size = 0;
	const unsigned char *bytes = write_sample(fixture, &size);

	assert_read(fixture, bytes, size);
	sample_writer_note(fixture->writer, true);
}

static void test_it_is_read_as_it_was_written(void **state)
{
	struct fixture *fixture = *state;
	size_t first, second;
	const unsigned char *bytes = write_sample(fixture, &first);

	sample_writer_note(fixture->writer, true);
	assert_read(fixture, bytes, first);
	bytes = write_sample(fixture, &second);
	sample_writer_note(fixture->writer, true);
	assert_true(second < first); /* the functions are known */
	assert_read(fixture, bytes, second);
}

/* A byte has seven bits of it. */
static void test_numbers_of_any_size(void **state)
{
	struct fixture *fixture = *state;

	for (int bits = 0; bits < 64; bits++)
		for (uint64_t less = 0; less < 2; less++) {
			const uint64_t number = (UINT64_C(1) << bits) - less;
			const unsigned char *bytes;
			struct sample sample;
			size_t size;

			fixture->sample.cpu_ns = number;
			bytes = write_sample(fixture, &size);
			assert_non_null(bytes);
			sample_writer_note(fixture->writer, true);
			assert_int_equal(sample_reader_read(fixture->reader, bytes, size, &sample), 0);
			assert_true(sample.cpu_ns == number);
		}
}

static void test_one_that_was_not_sent(void **state)
{
	struct fixture *fixture = *state;
	size_t size;

	assert_non_null(write_sample(fixture, &size));
	sample_writer_note(fixture->writer, false);
	fixture->sample.frame_count = 2;
	write_and_read(fixture);
	fixture->sample.frame_count = 3;
	write_and_read(fixture);
}

static void test_one_that_is_too_long(void **state)
{
	struct fixture *fixture = *state;
	char name[SIZE_MAX_OF_MESSAGES + 1];
	struct function function = { .kind = FRAME_LUA, .name = name };
	size_t size;

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	fixture->frames[0].function = &function;
	assert_null(write_sample(fixture, &size));
	fixture->frames[0].function = &native;
	write_and_read(fixture);
}

static void test_what_is_forgotten_is_defined_again(void **state)
{
	struct fixture *fixture = *state;
	size_t first = 0, second = 0, third = 0;
	const unsigned char *bytes = write_sample(fixture, &first);

	assert_false(sample_message_forgets(bytes, first));
	assert_read(fixture, bytes, first);
	sample_writer_note(fixture->writer, true);
	sample_writer_forget(fixture->writer);
	/* One that is lost does not count. */
	bytes = write_sample(fixture, &second);
	assert_true(sample_message_forgets(bytes, second));
	assert_true(sample_message_forgets(bytes, 1));
	assert_false(sample_message_forgets(bytes, 0));
	sample_writer_note(fixture->writer, false);
	bytes = write_sample(fixture, &second);
	assert_true(sample_message_forgets(bytes, second));
	functions_drop_others(fixture->functions);
	assert_read(fixture, bytes, second);
	sample_writer_note(fixture->writer, true);
	bytes = write_sample(fixture, &third);
	assert_false(sample_message_forgets(bytes, third));
	assert_true(third < second);
	assert_read(fixture, bytes, third);
}

/* What a field may not be is no sample: a name is looked up by it. */
static void test_values_that_no_field_has(void **state)
{
	struct fixture *fixture = *state;
	struct sample *sample = &fixture->sample, read;
	struct {
		size_t size;
		const void *least, *most;
		void *field;
		unsigned int limit;
	} fields[] = {
#define FIELD(of, type, last) { sizeof(type), &(const type){ 0 }, &(const type){ last }, &(of), last }
		FIELD(sample->thread_state, enum thread_state, THREAD_STATE_COUNT - 1),
		FIELD(sample->vm_state, enum vm_state, VM_STATE_COUNT - 1),
		FIELD(sample->request.is_subrequest, bool, true),
		FIELD(sample->awaits_events, bool, true),
		FIELD(sample->gc.phase, enum gc_phase, GC_PHASE_COUNT - 1),
		FIELD(sample->gc.has_marked, bool, true),
	};

	write_and_read(fixture); /* the functions are known from here on */
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		unsigned char first[SIZE_MAX_OF_MESSAGES];
		const unsigned char *bytes;
		size_t size, place = 0;

		memcpy(fields[i].field, fields[i].least, fields[i].size);
		bytes = write_sample(fixture, &size);
		assert_non_null(bytes);
		memcpy(first, bytes, size);
		memcpy(fields[i].field, fields[i].most, fields[i].size);
		bytes = write_sample(fixture, &size);
		while (place < size && bytes[place] == first[place])
			place++;
		assert_in_range(place, 0, size - 1);
		assert_int_equal(bytes[place], fields[i].limit);
		for (unsigned int value = 0; value < 2 + fields[i].limit; value++) {
			first[place] = (unsigned char)value;
			assert_int_equal(sample_reader_read(fixture->reader, first, size, &read),
					 value <= fields[i].limit ? 0 : -EBADMSG);
		}
	}
}

/* Cut off anywhere, and with each byte changed: an error or a sample, but nothing beyond the message. */
static void test_damaged(void **state)
{
	struct fixture *fixture = *state;
	size_t size = 0;
	const unsigned char *bytes = write_sample(fixture, &size);
	struct sample sample;

	for (size_t length = 0; length < size; length++) {
		unsigned char *copy = malloc(length ? length : 1);

		assert_non_null(copy);
		memcpy(copy, bytes, length);
		assert_int_equal(sample_reader_read(fixture->reader, copy, length, &sample), -EBADMSG);
		free(copy);
	}
	for (size_t i = 0; i < size; i++) {
		unsigned char *copy = malloc(size);
		struct sample_reader *reader = sample_reader_new(fixture->functions);

		assert_true(copy && reader);
		memcpy(copy, bytes, size);
		copy[i] ^= 0xff;
		sample_reader_read(reader, copy, size, &sample);
		sample_reader_free(reader);
		free(copy);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_it_is_read_as_it_was_written, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_numbers_of_any_size, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_one_that_was_not_sent, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_one_that_is_too_long, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_what_is_forgotten_is_defined_again, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_values_that_no_field_has, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_damaged, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

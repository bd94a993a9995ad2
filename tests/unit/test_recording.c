/* SPDX-License-Identifier: MIT */
/* Recordings: what is written is read, and whatever else is in a file does no harm. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <zstd.h>

#include "output/recording/recording_format.h"
#include "output/recording/recording_reader.h"
#include "output/recording/recording_writer.h"
#include "tests/unit/bounded_files.h"

enum { DEEPEST = 65537 };

static const struct function chunk = { .kind = FRAME_LUA, .name = "main chunk", .file = "@test.lua" };
static const struct function heavy = {
	.kind = FRAME_LUA, .name = "heavy", .file = "@lib/heavy.lua", .firstline = 5, .root = 5
};
static const struct function unnamed = { .kind = FRAME_LUA, .file = "=\xff\n;", .firstline = UINT32_MAX };
static const struct function native = { .kind = FRAME_NATIVE, .name = "sqrt", .module = "libm.so.6" };
static const struct function bare = { .kind = FRAME_VM };
static const struct function work = { .kind = FRAME_VM_WORK, .name = "growing a table" };

static const struct function allocated = { .kind = FRAME_ALLOCATED, .name = "growth of a table" };

static const struct session session = {
	.pid = 4711,
	.target = "nginx: worker process",
	.command_line = "ljspy record -p 4711",
	.layout = "2.1 x64",
	.roots = "./;/srv/app/;",
	.start_unix_ns = 1700000000000000000,
	.home = {
		.pid = 4711,
		.start_ticks = 123456,
		.began_unix_ns = 1690000000000000000,
		.boot = "01234567-89ab-cdef-0123-456789abcdef",
		.root = "/srv/root",
		.directory = "/app",
	},
	.start_ns = 999,
	.duration_ns = 60,
	.clock = WEIGHT_WALL_TIME,
};

/* Every field takes another value than 0 somewhere, and each repeats. */
static const struct frame frames[] = {
	{ .function = &native, .line = 7, .certainty = CERTAINTY_FUNCTION },
	{ .function = &heavy, .line = 6, .certainty = CERTAINTY_NEAREST, .compiled = true },
	{ .function = &unnamed, .line = UINT32_MAX },
	{ .function = &bare },
	{ .function = &work },
	{ .function = &chunk, .line = 20 },
};
static const struct frame allocation[] = { { .function = &allocated }, { .function = &chunk, .line = 20 } };

static struct sample samples[] = {
	{ .time_ns = 1000,
	  .pid = 10,
	  .tid = 11,
	  .process_name = "nginx",
	  .thread_name = "io;\n",
	  .phase = "content",
	  .request = { .route = "/users/*",
		       .method = "GET",
		       .host = "shop\xff",
		       .status = UINT32_MAX,
		       .is_subrequest = true,
		       .connection = UINT64_MAX,
		       .number = 7,
		       .age_ns = UINT64_MAX - 1 },
	  .thread_state = THREAD_UNINTERRUPTIBLE,
	  .vm_state = VM_STATE_UNKNOWN,
	  .gc = { .phase = GC_PHASE_ATOMIC,
		  .has_marked = true,
		  .heap_bytes = UINT64_MAX,
		  .allocated_bytes = UINT64_MAX,
		  .used_ns = UINT64_MAX - 1,
		  .step_ns = 1 },
	  .cpu_ns = 10101010,
	  .wall_ns = 20202020,
	  .frames = frames,
	  .frame_count = 6 },
	{ .time_ns = 1000,
	  .pid = 10,
	  .tid = 12,
	  .process_name = "nginx",
	  .thread_state = THREAD_BLOCKED,
	  .vm_state = VM_STATE_C,
	  .gc = { .phase = GC_PHASE_UNKNOWN },
	  .wait = &native,
	  .wall_ns = UINT64_MAX,
	  .frames = frames + 1,
	  .frame_count = 5 },
	{ .time_ns = 5000000000,
	  .pid = 10,
	  .tid = 11,
	  .process_name = "nginx",
	  .thread_name = "io;\n",
	  .gc = { .heap_bytes = 1, .allocated_bytes = 7 },
	  .cpu_ns = UINT64_MAX,
	  .wall_ns = 4999999000,
	  .frames = frames + 1,
	  .frame_count = 5 },
	{ .time_ns = 5000000001,
	  .pid = INT32_MAX,
	  .tid = 0,
	  .phase = "log",
	  .request = { .route = "/users/*", .status = 404 },
	  .cpu_ns = 1 },
	{ .time_ns = UINT64_MAX,
	  .pid = 10,
	  .tid = 11,
	  .process_name = "other",
	  .thread_name = "io;\n",
	  .cpu_ns = 2,
	  .wall_ns = 3,
	  .frames = frames + 5,
	  .frame_count = 1 },
	{ .time_ns = UINT64_MAX,
	  .pid = 10,
	  .tid = 11,
	  .process_name = "other",
	  .thread_name = "io;\n",
	  .gc = { .phase = GC_PHASE_SWEEP, .has_marked = true, .heap_bytes = 4096 },
	  .alloc_bytes = UINT64_MAX,
	  .frames = allocation,
	  .frame_count = 2 },
	{ .time_ns = UINT64_MAX,
	  .pid = 10,
	  .tid = 11,
	  .process_name = "other",
	  .thread_name = "io;\n",
	  .alloc_objects = 1,
	  .frames = allocation,
	  .frame_count = 2 },
};

enum { SAMPLE_COUNT = sizeof(samples) / sizeof(samples[0]) };

/*
 * Tests of each place in a file try every third where sanitizers make them slow: fuzz_recording looks for
 * wrong accesses, too.
 */
#ifdef SANITIZED
enum { NEXT_PLACE = 3 };
#else
enum { NEXT_PLACE = 1 };
#endif

/* A file in memory. */
struct bytes {
	char *data;
	size_t size;
};

struct writing {
	FILE *stream;
	struct recording_writer *writer;
	struct bytes bytes;
};

static void begin_writing(struct writing *writing)
{
	writing->stream = open_memstream(&writing->bytes.data, &writing->bytes.size);
	assert_non_null(writing->stream);
	assert_int_equal(recording_writer_new(writing->stream, &session, &writing->writer), 0);
}

static struct bytes end_writing(struct writing *writing)
{
	recording_writer_free(writing->writer);
	fclose(writing->stream);
	return writing->bytes;
}

static struct figures some_figures(void)
{
	struct figures figures = {
		.missed_ticks = 3,
		.undisturbed = 5,
		.skid = 6,
		.duration_ns = 60,
		.self_cpu_ns = 70,
		.target_cpu_ns = 80,
		.alloc_estimated = 90,
		.alloc_least = 7,
		.is_part = true,
		.rate_asked_hz = 99,
	};

	histogram_add(&figures.pause_ns, 0);
	histogram_add(&figures.pause_ns, 50000);
	histogram_add(&figures.pause_ns, 50001);
	histogram_add(&figures.pause_ns, UINT64_MAX);
	return figures;
}

/* All samples, flushed after each if wanted; finished if wanted. */
static struct bytes write_recording(bool flush, bool finish)
{
	struct figures figures = some_figures();
	struct writing writing = { 0 };

	begin_writing(&writing);
	for (size_t i = 0; i < SAMPLE_COUNT; i++) {
		assert_int_equal(recording_writer_add(writing.writer, &samples[i]), 0);
		if (flush)
			assert_int_equal(recording_writer_flush(writing.writer), 0);
	}
	if (finish)
		assert_int_equal(recording_writer_finish(writing.writer, &session, &figures), 0);
	return end_writing(&writing);
}

struct reading {
	FILE *stream;
	struct functions *functions;
	struct recording_reader *reader;
	int error;
};

static void begin_reading(struct reading *reading, const void *data, size_t size)
{
	/* An empty file cannot be had in memory. */
	reading->stream = size ? fmemopen((void *)(uintptr_t)data, size, "r") : fopen("/dev/null", "r");
	reading->functions = functions_new();
	assert_non_null(reading->stream);
	reading->reader = NULL;
	reading->error = recording_reader_open(reading->stream, reading->functions, &reading->reader);
}

static void end_reading(struct reading *reading)
{
	recording_reader_close(reading->reader);
	functions_free(reading->functions);
	fclose(reading->stream);
}

static void assert_same_text(const char *a, const char *b)
{
	if (!a || !b)
		assert_ptr_equal(a, b);
	else
		assert_string_equal(a, b);
}

static void assert_same_sample(const struct sample *a, const struct sample *b)
{
	assert_int_equal(a->time_ns, b->time_ns);
	assert_int_equal(a->pid, b->pid);
	assert_int_equal(a->tid, b->tid);
	assert_same_text(a->process_name, b->process_name);
	assert_same_text(a->thread_name, b->thread_name);
	assert_same_text(a->phase, b->phase);
	assert_same_text(a->request.route, b->request.route);
	assert_same_text(a->request.method, b->request.method);
	assert_same_text(a->request.host, b->request.host);
	assert_int_equal(a->request.status, b->request.status);
	assert_int_equal(a->request.is_subrequest, b->request.is_subrequest);
	assert_int_equal(a->request.connection, b->request.connection);
	assert_int_equal(a->request.number, b->request.number);
	assert_int_equal(a->request.age_ns, b->request.age_ns);
	assert_int_equal(a->thread_state, b->thread_state);
	assert_int_equal(a->vm_state, b->vm_state);
	assert_int_equal(a->gc.phase, b->gc.phase);
	assert_int_equal(a->gc.has_marked, b->gc.has_marked);
	assert_int_equal(a->gc.heap_bytes, b->gc.heap_bytes);
	assert_int_equal(a->gc.allocated_bytes, b->gc.allocated_bytes);
	assert_int_equal(a->gc.used_ns, b->gc.used_ns);
	assert_int_equal(a->gc.step_ns, b->gc.step_ns);
	assert_same_text(a->wait ? a->wait->name : NULL, b->wait ? b->wait->name : NULL);
	assert_int_equal(a->cpu_ns, b->cpu_ns);
	assert_int_equal(a->wall_ns, b->wall_ns);
	assert_int_equal(a->alloc_bytes, b->alloc_bytes);
	assert_int_equal(a->alloc_objects, b->alloc_objects);
	assert_int_equal(a->frame_count, b->frame_count);
	for (size_t i = 0; i < a->frame_count; i++) {
		assert_int_equal(a->frames[i].line, b->frames[i].line);
		assert_int_equal(a->frames[i].certainty, b->frames[i].certainty);
		assert_int_equal(a->frames[i].compiled, b->frames[i].compiled);
		assert_int_equal(a->frames[i].function->kind, b->frames[i].function->kind);
		assert_int_equal(a->frames[i].function->firstline, b->frames[i].function->firstline);
		assert_int_equal(a->frames[i].function->root, b->frames[i].function->root);
		assert_same_text(a->frames[i].function->name, b->frames[i].function->name);
		assert_same_text(a->frames[i].function->file, b->frames[i].function->file);
		assert_same_text(a->frames[i].function->module, b->frames[i].function->module);
	}
}

/* The source gives the first of the samples, and no more. */
static void assert_first_samples(struct recording_reader *reader, size_t count)
{
	struct sample_source *source = recording_reader_samples(reader);
	struct sample sample;

	for (size_t i = 0; i < count; i++) {
		assert_int_equal(source->next(source, &sample), 1);
		assert_same_sample(&sample, &samples[i]);
	}
	assert_int_equal(source->next(source, &sample), 0);
	assert_int_equal(source->next(source, &sample), 0);
}

/* In each phase; what is known of its steps is each part alone. */
static void what_the_collector_does_is_read_as_it_was_written(void **state)
{
	static const struct sample_gc known[] = {
		{ .phase = GC_PHASE_NONE }, { .has_marked = true }, { .heap_bytes = 5 },
		{ .allocated_bytes = 6 },   { .used_ns = 7 },       { .step_ns = 8 },
	};
	enum { KNOWN = sizeof(known) / sizeof(known[0]), COUNT = KNOWN * GC_PHASE_COUNT };
	struct sample collecting[COUNT], sample;
	struct figures figures = some_figures();
	struct writing writing = { 0 };
	struct reading reading;
	struct bytes bytes;

	(void)state;
	begin_writing(&writing);
	for (size_t i = 0; i < COUNT; i++) {
		collecting[i] = (struct sample){ .time_ns = i, .gc = known[i % KNOWN] };
		collecting[i].gc.phase = (enum gc_phase)(i / KNOWN);
		assert_int_equal(recording_writer_add(writing.writer, &collecting[i]), 0);
	}
	assert_int_equal(recording_writer_finish(writing.writer, &session, &figures), 0);
	bytes = end_writing(&writing);
	begin_reading(&reading, bytes.data, bytes.size);
	for (size_t i = 0; i < COUNT; i++) {
		struct sample_source *source = recording_reader_samples(reading.reader);

		assert_int_equal(source->next(source, &sample), 1);
		assert_same_sample(&sample, &collecting[i]);
	}
	end_reading(&reading);
	free(bytes.data);
}

static void samples_are_read_as_they_were_written(void **state)
{
	struct bytes bytes = write_recording(false, true);
	struct reading reading;
	struct sample_source *source;

	(void)state;
	begin_reading(&reading, bytes.data, bytes.size);
	assert_int_equal(reading.error, 0);
	assert_int_equal(recording_reader_extent(reading.reader), RECORDING_WHOLE);
	assert_first_samples(reading.reader, SAMPLE_COUNT);
	source = recording_reader_samples(reading.reader);
	assert_int_equal(source->rewind(source), 0);
	assert_first_samples(reading.reader, SAMPLE_COUNT);
	end_reading(&reading);
	free(bytes.data);
}

/* Other weights are views of what a clock records: the recording of a view has the clock. */
static void a_recording_has_a_clock(void **state)
{
	static const struct {
		enum weight_kind shown, read;
	} cases[] = {
		{ WEIGHT_CPU_TIME, WEIGHT_CPU_TIME },         { WEIGHT_WALL_TIME, WEIGHT_WALL_TIME },
		{ WEIGHT_OFF_CPU_TIME, WEIGHT_WALL_TIME },    { WEIGHT_ALLOC_BYTES, WEIGHT_ALLOC_BYTES },
		{ WEIGHT_ALLOC_OBJECTS, WEIGHT_ALLOC_BYTES },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct session shown = { .clock = cases[i].shown };
		const struct figures none = { 0 };
		struct writing writing = { 0 };
		struct reading reading;
		struct bytes bytes;

		begin_writing(&writing);
		assert_int_equal(recording_writer_finish(writing.writer, &shown, &none), 0);
		bytes = end_writing(&writing);
		begin_reading(&reading, bytes.data, bytes.size);
		assert_int_equal(reading.error, 0);
		assert_int_equal(recording_reader_session(reading.reader)->clock, cases[i].read);
		/* The end says 0, which is true of time alone: no sample of an allocation has any. */
		assert_int_equal(recording_reader_figures(reading.reader)->target_cpu_unknown,
				 cases[i].read == WEIGHT_ALLOC_BYTES);
		assert_int_equal(recording_reader_figures(reading.reader)->lost_cpu_unknown,
				 cases[i].read == WEIGHT_ALLOC_BYTES);
		end_reading(&reading);
		free(bytes.data);
	}
}

/*
 * What an older recording does not tell is unknown, and not 0; neither is it told by one that was made from
 * that.
 */
static void large_allocations_are_told_by_all_but_older_recordings(void **state)
{
	static const struct figures cases[] = {
		{ .alloc_all = 100, .alloc_large = 8 },
		{ 0 },
		{ .alloc_all = 100, .alloc_large = 8, .alloc_large_unknown = true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct session shown = { .clock = WEIGHT_ALLOC_BYTES };
		const bool is_known = !cases[i].alloc_large_unknown;
		struct writing writing = { 0 };
		const struct figures *figures;
		struct reading reading;
		struct bytes bytes;

		begin_writing(&writing);
		assert_int_equal(recording_writer_finish(writing.writer, &shown, &cases[i]), 0);
		bytes = end_writing(&writing);
		begin_reading(&reading, bytes.data, bytes.size);
		assert_int_equal(reading.error, 0);
		figures = recording_reader_figures(reading.reader);
		assert_int_equal(figures->alloc_large_unknown, !is_known);
		assert_int_equal(figures->alloc_all, is_known ? cases[i].alloc_all : 0);
		assert_int_equal(figures->alloc_large, is_known ? cases[i].alloc_large : 0);
		end_reading(&reading);
		free(bytes.data);
	}
}

static void session_and_figures_are_read_as_they_were_written(void **state)
{
	struct bytes bytes = write_recording(false, true);
	struct figures expected = some_figures();
	const struct figures *figures;
	const struct session *read;
	struct reading reading;

	(void)state;
	begin_reading(&reading, bytes.data, bytes.size);
	assert_int_equal(reading.error, 0);
	read = recording_reader_session(reading.reader);
	assert_int_equal(read->pid, session.pid);
	assert_string_equal(read->target, session.target);
	assert_string_equal(read->command_line, session.command_line);
	assert_string_equal(read->layout, session.layout);
	assert_string_equal(read->roots, session.roots);
	assert_int_equal(read->start_unix_ns, session.start_unix_ns);
	assert_int_equal(read->home.pid, session.home.pid);
	assert_int_equal(read->home.start_ticks, session.home.start_ticks);
	assert_int_equal(read->home.began_unix_ns, session.home.began_unix_ns);
	assert_string_equal(read->home.boot, session.home.boot);
	assert_string_equal(read->home.root, session.home.root);
	assert_string_equal(read->home.directory, session.home.directory);
	assert_int_equal(read->start_ns, session.start_ns);
	assert_int_equal(read->duration_ns, session.duration_ns);
	assert_int_equal(read->clock, session.clock);
	figures = recording_reader_figures(reading.reader);
	assert_int_equal(figures->samples, SAMPLE_COUNT);
	assert_int_equal(figures->missed_ticks, expected.missed_ticks);
	assert_int_equal(figures->undisturbed, expected.undisturbed);
	assert_int_equal(figures->skid, expected.skid);
	assert_int_equal(figures->duration_ns, expected.duration_ns);
	assert_int_equal(figures->self_cpu_ns, expected.self_cpu_ns);
	assert_int_equal(figures->target_cpu_ns, expected.target_cpu_ns);
	assert_int_equal(figures->alloc_estimated, expected.alloc_estimated);
	assert_int_equal(figures->alloc_least, expected.alloc_least);
	assert_true(figures->is_part);
	assert_true(figures->rate_asked_hz == expected.rate_asked_hz);
	expected.pause_ns.sum = 0; /* is not in a recording */
	assert_memory_equal(&figures->pause_ns, &expected.pause_ns, sizeof(expected.pause_ns));
	assert_int_equal(figures->frames[CERTAINTY_NEAREST], 3);
	end_reading(&reading);
	free(bytes.data);
}

/* A program may set package.path after some of its functions were seen. */
static void a_root_holds_for_all_files_below_it(void **state)
{
	static const struct function early = { .kind = FRAME_LUA, .file = "@lib/early.lua" };
	static const struct function other = { .kind = FRAME_LUA, .file = "@library/other.lua" };
	static const struct function of_session = { .kind = FRAME_LUA, .file = "@/srv/app/lib/a.lua" };
	const struct frame stack[] = { { .function = &early },
				       { .function = &other },
				       { .function = &heavy },
				       { .function = &of_session } };
	const struct sample sample = { .time_ns = 1, .frames = stack, .frame_count = 4 };
	struct writing writing = { 0 };
	struct bytes bytes;
	struct reading reading;
	struct sample read;

	(void)state;
	begin_writing(&writing);
	assert_int_equal(recording_writer_add(writing.writer, &sample), 0);
	assert_int_equal(recording_writer_flush(writing.writer), 0);
	bytes = end_writing(&writing);
	begin_reading(&reading, bytes.data, bytes.size);
	assert_int_equal(reading.error, 0);
	assert_int_equal(recording_reader_samples(reading.reader)
				 ->next(recording_reader_samples(reading.reader), &read),
			 1);
	assert_int_equal(read.frames[0].function->root, strlen("@lib/"));
	assert_int_equal(read.frames[1].function->root, 0);
	assert_int_equal(read.frames[2].function->root, strlen("@lib/"));
	assert_int_equal(read.frames[3].function->root, strlen("@/srv/app/"));
	end_reading(&reading);
	free(bytes.data);
}

static void labels_of_processes_are_read_up_to_the_last_flush(void **state)
{
	struct writing writing = { 0 };
	struct bytes bytes;
	struct reading reading;

	(void)state;
	begin_writing(&writing);
	assert_int_equal(recording_writer_add_labels(writing.writer, 10, "a=1\n"), 0);
	assert_int_equal(recording_writer_add_labels(writing.writer, 2147483647, "pod=x\nb=\xff\n"), 0);
	assert_int_equal(recording_writer_add(writing.writer, &samples[0]), 0);
	recording_writer_forget_functions(writing.writer);
	assert_int_equal(recording_writer_add_labels(writing.writer, 10, "a=2\n"), 0);
	assert_int_equal(recording_writer_add_labels(writing.writer, 0, "a=3\n"), 0);
	assert_int_equal(recording_writer_flush(writing.writer), 0);
	bytes = end_writing(&writing);
	begin_reading(&reading, bytes.data, bytes.size);
	assert_int_equal(reading.error, 0);
	assert_string_equal(recording_reader_labels(reading.reader, 10), "a=2\n");
	assert_string_equal(recording_reader_labels(reading.reader, 2147483647), "pod=x\nb=\xff\n");
	assert_null(recording_reader_labels(reading.reader, 0));
	assert_null(recording_reader_labels(reading.reader, 11));
	end_reading(&reading);
	free(bytes.data);
}

static void lost_frames_keep_their_reason_and_time(void **state)
{
	struct frame frame = { .function = lost_function(LOST_ASLEEP) };
	struct sample sample = { .time_ns = 1, .cpu_ns = 70, .frames = &frame, .frame_count = 1 };
	struct sample whole = { .time_ns = 2, .cpu_ns = 3 };
	struct writing writing = { 0 };
	struct bytes bytes;
	struct reading reading;

	(void)state;
	begin_writing(&writing);
	assert_int_equal(recording_writer_add(writing.writer, &sample), 0);
	assert_int_equal(recording_writer_add(writing.writer, &whole), 0);
	assert_int_equal(recording_writer_flush(writing.writer), 0);
	bytes = end_writing(&writing);
	begin_reading(&reading, bytes.data, bytes.size);
	assert_int_equal(recording_reader_figures(reading.reader)->lost[LOST_ASLEEP], 1);
	assert_int_equal(recording_reader_figures(reading.reader)->lost_cpu_ns, 70);
	assert_int_equal(recording_reader_figures(reading.reader)->sampled_cpu_ns, 73);
	end_reading(&reading);
	free(bytes.data);
}

static void what_was_flushed_is_read_though_the_end_is_missing(void **state)
{
	struct bytes bytes = write_recording(true, false);
	struct reading reading;

	(void)state;
	begin_reading(&reading, bytes.data, bytes.size);
	assert_int_equal(reading.error, 0);
	assert_int_equal(recording_reader_extent(reading.reader), RECORDING_UNFINISHED);
	assert_first_samples(reading.reader, SAMPLE_COUNT);
	/* What the end would have told follows from the samples. */
	assert_int_equal(recording_reader_figures(reading.reader)->samples, SAMPLE_COUNT);
	assert_int_equal(recording_reader_session(reading.reader)->duration_ns,
			 UINT64_MAX - session.start_ns);
	end_reading(&reading);
	free(bytes.data);
}

/* Wherever it is cut, the samples of whole blocks are there and nothing else is. */
static void a_file_is_read_up_to_its_last_whole_block(void **state)
{
	struct bytes bytes = write_recording(true, true);
	size_t before = 0;

	(void)state;
	for (size_t size = 0; size < bytes.size; size += NEXT_PLACE) {
		struct reading reading;
		size_t count;

		begin_reading(&reading, bytes.data, size);
		if (size < BLOCK_HEADER_SIZE) {
			assert_int_equal(reading.error, -EILSEQ);
			end_reading(&reading);
			continue;
		}
		assert_int_equal(reading.error, 0);
		assert_int_equal(recording_reader_extent(reading.reader), RECORDING_UNFINISHED);
		count = recording_reader_figures(reading.reader)->samples;
		assert_in_range(count, before, before + 1);
		assert_first_samples(reading.reader, count);
		before = count;
		end_reading(&reading);
	}
	assert_int_equal(before, SAMPLE_COUNT);
	free(bytes.data);
}

/* Each byte, changed in one of several ways: the samples that are read are those that were written. */
static void damage_ends_the_samples(void **state)
{
	static const unsigned char changes[] = { 0x01, 0x80, 0xff, 0x10 };
	struct bytes bytes = write_recording(true, true);
	size_t damaged = 0;

	(void)state;
	for (size_t at = 0; at < bytes.size; at += NEXT_PLACE) {
		char change = (char)changes[at % sizeof(changes)];
		struct reading reading;

		bytes.data[at] ^= change;
		begin_reading(&reading, bytes.data, bytes.size);
		if (reading.error == 0) {
			assert_first_samples(reading.reader,
					     recording_reader_figures(reading.reader)->samples);
			damaged += recording_reader_extent(reading.reader) == RECORDING_DAMAGED;
		} else {
			assert_true(at < BLOCK_HEADER_SIZE);
		}
		end_reading(&reading);
		bytes.data[at] ^= change;
	}
	assert_true(damaged > bytes.size / NEXT_PLACE / 2);
	free(bytes.data);
}

/* A recording of all that is read of another. */
static struct bytes copy_of(struct recording_reader *reader)
{
	struct sample_source *source = recording_reader_samples(reader);
	const struct session *read = recording_reader_session(reader);
	struct writing writing = { 0 };
	struct sample sample;

	writing.stream = open_memstream(&writing.bytes.data, &writing.bytes.size);
	assert_non_null(writing.stream);
	assert_int_equal(recording_writer_new(writing.stream, read, &writing.writer), 0);
	while (source->next(source, &sample) == 1)
		assert_int_equal(recording_writer_add(writing.writer, &sample), 0);
	assert_int_equal(recording_writer_finish(writing.writer, read, recording_reader_figures(reader)), 0);
	return end_writing(&writing);
}

/* True if the damage of a recording is told; if not, it changes nothing that is read. */
static bool damage_is_told(const struct bytes *damaged, const struct bytes *whole_copy)
{
	enum recording_extent extent;
	struct reading reading;
	struct bytes copy;

	begin_reading(&reading, damaged->data, damaged->size);
	if (reading.error) {
		end_reading(&reading);
		return true;
	}
	extent = recording_reader_extent(reading.reader);
	if (extent == RECORDING_WHOLE) {
		copy = copy_of(reading.reader);
		assert_int_equal(copy.size, whole_copy->size);
		assert_memory_equal(copy.data, whole_copy->data, copy.size);
		free(copy.data);
	}
	end_reading(&reading);
	return extent != RECORDING_WHOLE;
}

/* Compressed data have bits without a meaning: that is why not each one is told. */
static void each_flipped_bit_is_told_or_changes_nothing(void **state)
{
	struct bytes bytes = write_recording(false, true), copy;
	struct reading reading;
	size_t tried = 0, told = 0;

	(void)state;
	begin_reading(&reading, bytes.data, bytes.size);
	copy = copy_of(reading.reader);
	end_reading(&reading);
	for (size_t bit = 0; bit < 8 * bytes.size; bit += NEXT_PLACE) {
		bytes.data[bit / 8] ^= (char)(1 << bit % 8);
		told += damage_is_told(&bytes, &copy);
		tried++;
		bytes.data[bit / 8] ^= (char)(1 << bit % 8);
	}
	assert_true(told > tried * 7 / 8);
	free(copy.data);
	free(bytes.data);
}

static void other_files_are_told_apart(void **state)
{
	static const char svg[] = "<?xml version=\"1.0\"?><svg xmlns=\"http://www.w3.org/2000/svg\"></svg>";
	struct bytes bytes = write_recording(false, true);
	struct reading reading;

	(void)state;
	begin_reading(&reading, svg, sizeof(svg));
	assert_int_equal(reading.error, -EILSEQ);
	end_reading(&reading);
	bytes.data[BLOCK_VERSION_OFFSET] = RECORDING_VERSION + 1;
	begin_reading(&reading, bytes.data, bytes.size);
	assert_int_equal(reading.error, -EPROTONOSUPPORT);
	end_reading(&reading);
	bytes.data[BLOCK_VERSION_OFFSET] = 0;
	begin_reading(&reading, bytes.data, bytes.size);
	assert_int_equal(reading.error, -EILSEQ);
	end_reading(&reading);
	free(bytes.data);
}

/* A recording of these records, which the checks of blocks say nothing against. */
static struct bytes forge(const void *records, size_t length)
{
	size_t bound = BLOCK_HEADER_SIZE + ZSTD_compressBound(length), packed;
	struct bytes bytes = { .data = calloc(1, bound) };

	assert_non_null(bytes.data);
	memcpy(bytes.data, RECORDING_MAGIC, BLOCK_VERSION_OFFSET);
	bytes.data[BLOCK_VERSION_OFFSET] = RECORDING_VERSION;
	packed = ZSTD_compress(bytes.data + BLOCK_HEADER_SIZE, bound - BLOCK_HEADER_SIZE, records, length, 1);
	assert_false(ZSTD_isError(packed));
	bytes.size = BLOCK_HEADER_SIZE + packed;
	return bytes;
}

static void assert_forged(const void *records, size_t length, enum recording_extent extent)
{
	struct bytes bytes = forge(records, length);
	struct reading reading;

	begin_reading(&reading, bytes.data, bytes.size);
	assert_int_equal(reading.error, 0);
	assert_int_equal(recording_reader_extent(reading.reader), extent);
	assert_int_equal(recording_reader_figures(reading.reader)->samples, 0);
	end_reading(&reading);
	free(bytes.data);
}

static void records_that_make_no_sense_are_damage(void **state)
{
	static const struct {
		const char *records;
		size_t length;
	} cases[] = {
#define CASE(text) { text, sizeof(text) - 1 }
		CASE("\0"),
		CASE("\x0a"),
		CASE("\xff"), /* no such record */
		CASE("\x01"),
		CASE("\x01\x05"
		     "abcd"), /* cut off */
		CASE("\x01\x03"
		     "a\0b"), /* a NUL in a string */
		CASE("\x01\x81\x80\x04"
		     "a"),                                            /* a string too long */
		CASE("\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"), /* more than 64 bits */
		CASE("\x01\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80"),
		CASE("\x02\x08\0\0\0\0"),                 /* a kind that is none */
		CASE("\x02\0\0\x01\0\0"),                 /* a string that is not defined */
		CASE("\x02\0\x80\x80\x80\x80\x10\0\0\0"), /* a line of 33 bits */
		CASE("\x02\0\0\0\0\0\x01"),               /* a root of a file that is none */
		CASE("\x01\x01/\x02\0\0\0\x01\0\x01"),    /* a root as long as its file */
		CASE("\x03\0\0\0\0"),                     /* a stack without function */
		CASE("\x02\0\0\0\0\0\0\x03\x01\x01\0\0"), /* one that is its own caller */
		CASE("\x02\0\0\0\0\0\0\x03\0\x01\0\x03"), /* a certainty that is none */
		CASE("\x02\0\0\0\0\0\0\x03\0\x01\0\x08"),
		CASE("\x02\0\0\0\0\0\0\x08\x03\0\x01\0\0"),     /* a function that was forgotten */
		CASE("\x04\x80\x80\x80\x80\x08\0\0\0"),         /* a pid of 32 bits */
		CASE("\x05\0\0\0\0\0\0\0"),                     /* a sample without a thread */
		CASE("\x04\x01\x01\0\0\x05\0\x01\x01\0\0\0\0"), /* a stack that is not defined */
		CASE("\x04\x01\x01\0\0\x05\0\x01\0\x06\0\0\0"), /* states that are none */
		CASE("\x04\x01\x01\0\0\x05\0\x01\0\x50\0\0\0"),
		CASE("\x04\x01\x01\0\0\x05\0\x01\0\0\x07\0\0\0"), /* a phase of the collector that is none */
		CASE("\x04\x01\x01\0\0\x05\0\x01\0\0\x40\0\0\0"),
		CASE("\x04\x01\x01\0\0\x05\0\x01\0\0\x20\0\0\0\x01"), /* bytes without objects */
		CASE("\x04\x01\x01\0\0\x05\0\x01\0\0\x10"),           /* no heap where there should be one */
		CASE("\x04\x01\x01\0\0\x05\0\x01\0\0\0\x01\0\0"),     /* a phase that is not defined */
		CASE("\x0a\0\0\0\0\0\0\0\0"),                         /* a request without a route */
		CASE("\x0a\x01\0\0\0\0\0\0\0"),                       /* a route that is not defined */
		CASE("\x01\x01/\x0a\x01\0\0\0\x02\0\0\0"),            /* neither a subrequest nor none */
		CASE("\x07\0\x01\x80\x0f\x01"),                       /* a bucket that is not there */
		CASE("\x07\0\x02\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\0\x01"), /* too many pauses */
#undef CASE
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_forged(cases[i].records, cases[i].length, RECORDING_DAMAGED);
	assert_forged("\x09", 1, RECORDING_WHOLE);
	assert_forged("\x09\xff", 2, RECORDING_FOLLOWED);
	assert_forged("\x06\x03"
		      "new\x01"
		      "1",
		      7, RECORDING_UNFINISHED); /* an unknown property */
}

/* A small file that unpacks to very much is held against the limits. */
static void tables_do_not_grow_beyond_their_limits(void **state)
{
	size_t count = RECORDING_STACKS_MAX + 1, length = 7 + 5 * count;
	char *records = malloc(length), *at = records;

	(void)state;
	assert_non_null(records);
	at = (char *)memcpy(at, "\x02\0\0\0\0\0\0", 7) + 7;
	for (size_t i = 0; i < count; i++)
		at = (char *)memcpy(at, "\x03\0\x01\0\0", 5) + 5;
	assert_forged(records, length, RECORDING_DAMAGED); /* a block too large */
	assert_forged(records, 7 + 5 * 100, RECORDING_UNFINISHED);
	free(records);
}

static void a_deep_stack_is_held(void **state)
{
	struct frame *deep = calloc(DEEPEST, sizeof(*deep));
	struct sample sample = { .time_ns = 1, .frames = deep, .frame_count = DEEPEST }, read;
	struct writing writing = { 0 };
	struct sample_source *source;
	struct reading reading;
	struct bytes bytes;

	(void)state;
	assert_non_null(deep);
	for (size_t i = 0; i < DEEPEST; i++)
		deep[i] = (struct frame){ .function = &heavy, .line = (uint32_t)i };
	begin_writing(&writing);
	for (int i = 0; i < 3; i++)
		assert_int_equal(recording_writer_add(writing.writer, &sample), 0);
	assert_int_equal(recording_writer_flush(writing.writer), 0);
	bytes = end_writing(&writing);
	begin_reading(&reading, bytes.data, bytes.size);
	assert_int_equal(reading.error, 0);
	source = recording_reader_samples(reading.reader);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(source->next(source, &read), 1);
		assert_same_sample(&read, &sample);
	}
	end_reading(&reading);
	free(bytes.data);
	free(deep);
}

/* Many more functions, stacks, threads and names than the tables hold. */
static void definitions_are_forgotten_and_made_anew(void **state)
{
	enum { MANY = 3 * RECORDING_THREADS_MAX };
	struct function *functions = calloc(MANY, sizeof(*functions));
	struct writing writing = { 0 };
	struct sample_source *source;
	struct reading reading;
	struct bytes bytes;
	struct sample read;

	(void)state;
	assert_non_null(functions);
	begin_writing(&writing);
	for (int i = 0; i < MANY; i++) {
		struct frame frame = { .function = &functions[i], .line = (uint32_t)i };
		struct sample sample = {
			.time_ns = (uint64_t)i,
			.pid = i,
			.tid = i,
			.wall_ns = 7,
			.frames = &frame,
			.frame_count = 1,
		};

		functions[i].firstline = (uint32_t)i;
		assert_int_equal(recording_writer_add(writing.writer, &sample), 0);
	}
	assert_int_equal(recording_writer_flush(writing.writer), 0);
	bytes = end_writing(&writing);
	begin_reading(&reading, bytes.data, bytes.size);
	assert_int_equal(reading.error, 0);
	assert_int_equal(recording_reader_extent(reading.reader), RECORDING_UNFINISHED);
	source = recording_reader_samples(reading.reader);
	for (int i = 0; i < MANY; i++) {
		assert_int_equal(source->next(source, &read), 1);
		assert_int_equal(read.pid, i);
		assert_int_equal(read.wall_ns, 7);
		assert_int_equal(read.frames[0].function->firstline, i);
	}
	assert_int_equal(source->next(source, &read), 0);
	end_reading(&reading);
	free(bytes.data);
	free(functions);
}

static void a_sample_that_comes_late_keeps_its_place(void **state)
{
	struct sample first = { .time_ns = 100 }, late = { .time_ns = 50, .wall_ns = 9 }, read;
	struct writing writing = { 0 };
	struct sample_source *source;
	struct reading reading;
	struct bytes bytes;

	(void)state;
	begin_writing(&writing);
	assert_int_equal(recording_writer_add(writing.writer, &first), 0);
	assert_int_equal(recording_writer_add(writing.writer, &late), 0);
	assert_int_equal(recording_writer_flush(writing.writer), 0);
	bytes = end_writing(&writing);
	begin_reading(&reading, bytes.data, bytes.size);
	source = recording_reader_samples(reading.reader);
	assert_int_equal(source->next(source, &read), 1);
	assert_int_equal(source->next(source, &read), 1);
	assert_int_equal(read.time_ns, 100);
	assert_int_equal(read.wall_ns, 9);
	end_reading(&reading);
	free(bytes.data);
}

static void a_full_disk_is_told_and_stays_told(void **state)
{
	FILE *full = fopen("/dev/full", "w");
	struct figures figures = some_figures();
	struct recording_writer *writer;

	(void)state;
	assert_non_null(full);
	assert_int_equal(recording_writer_new(full, &session, &writer), 0);
	assert_int_equal(recording_writer_add(writer, &samples[0]), 0);
	assert_int_equal(recording_writer_flush(writer), -EIO);
	assert_int_equal(errno, ENOSPC);
	assert_int_equal(recording_writer_add(writer, &samples[1]), -EIO);
	assert_int_equal(recording_writer_finish(writer, &session, &figures), -EIO);
	recording_writer_free(writer);
	fclose(full);
}

/* In a file, what stood there before the recording and the whole blocks of it. */
static void a_file_on_a_full_disk_ends_with_its_last_whole_block(void **state)
{
	static const char before[] = "# not of the recording\n";
	FILE *file = tmpfile();
	struct figures figures = some_figures();
	struct recording_writer *writer;
	struct reading reading;
	static char data[1 << 16];
	off_t whole;
	int error;

	(void)state;
	assert_non_null(file);
	assert_true(fputs(before, file) >= 0);
	assert_int_equal(recording_writer_new(file, &session, &writer), 0);
	assert_int_equal(recording_writer_add(writer, &samples[0]), 0);
	assert_int_equal(recording_writer_flush(writer), 0);
	whole = ftello(file);
	assert_true(whole > (off_t)strlen(before));
	for (size_t i = 1; i < SAMPLE_COUNT; i++)
		assert_int_equal(recording_writer_add(writer, &samples[i]), 0);
	bound_files((rlim_t)whole + 10);
	error = recording_writer_flush(writer);
	unbound_files();
	assert_int_equal(error, -EIO);
	assert_int_equal(errno, EFBIG);
	assert_int_equal(ftello(file), whole);
	assert_int_equal(fseeko(file, 0, SEEK_END), 0);
	assert_int_equal(ftello(file), whole);
	/* With room again, the same file may go on. */
	assert_int_equal(recording_writer_continue(writer, file), 0);
	assert_int_equal(recording_writer_finish(writer, &session, &figures), 0);
	recording_writer_free(writer);
	rewind(file);
	whole = (off_t)fread(data, 1, sizeof(data), file);
	assert_memory_equal(data, before, strlen(before));
	begin_reading(&reading, data + strlen(before), (size_t)whole - strlen(before));
	assert_int_equal(reading.error, 0);
	assert_int_equal(recording_reader_extent(reading.reader), RECORDING_WHOLE);
	assert_first_samples(reading.reader, SAMPLE_COUNT);
	end_reading(&reading);
	fclose(file);
}

/* A file that takes so many bytes, and no part of what would be more. */
struct small_disk {
	char data[1 << 16];
	size_t size, room;
};

static ssize_t write_to_disk(void *context, const char *bytes, size_t length)
{
	struct small_disk *disk = context;

	if (length > disk->room - disk->size) {
		errno = ENOSPC;
		return 0; /* as fopencookie(3) wants it */
	}
	memcpy(disk->data + disk->size, bytes, length);
	disk->size += length;
	return (ssize_t)length;
}

/* Where there was no room, the writer goes on elsewhere; whether it had. */
static bool go_on(struct writing *writing, const struct small_disk *disk, int error)
{
	if (error != -EIO || writing->bytes.data)
		return false;
	assert_int_equal(errno, ENOSPC);
	writing->stream = open_memstream(&writing->bytes.data, &writing->bytes.size);
	assert_non_null(writing->stream);
	assert_int_equal(fwrite(disk->data, 1, disk->size, writing->stream), disk->size);
	assert_int_equal(recording_writer_continue(writing->writer, writing->stream), 0);
	return true;
}

/* All samples, the first in a disk with so much room. False if that was all that was needed. */
static bool write_in_two_places(size_t room, struct writing *writing)
{
	static struct small_disk disk;
	struct figures figures = some_figures();
	FILE *small = fopencookie(&disk, "w", (cookie_io_functions_t){ .write = write_to_disk });
	int error;

	assert_non_null(small);
	setvbuf(small, NULL, _IONBF, 0);
	disk.size = 0;
	disk.room = room;
	assert_int_equal(recording_writer_new(small, &session, &writing->writer), 0);
	for (size_t i = 0; i < SAMPLE_COUNT; i++) {
		error = recording_writer_add(writing->writer, &samples[i]);
		if (go_on(writing, &disk, error))
			error = recording_writer_add(writing->writer, &samples[i]);
		assert_int_equal(error, 0);
		error = recording_writer_flush(writing->writer);
		assert_true(go_on(writing, &disk, error) || error == 0);
	}
	error = recording_writer_finish(writing->writer, &session, &figures);
	if (go_on(writing, &disk, error))
		error = recording_writer_finish(writing->writer, &session, &figures);
	assert_int_equal(error, 0);
	fclose(small);
	return writing->bytes.data != NULL;
}

static void nothing_is_missing_when_it_goes_on_elsewhere(void **state)
{
	size_t room = 0;

	(void)state;
	for (;; room += NEXT_PLACE) {
		struct writing writing = { 0 };
		struct reading reading;
		struct sample_source *source;
		struct sample read;
		bool moved = write_in_two_places(room, &writing);

		recording_writer_free(writing.writer);
		if (!moved)
			break;
		fclose(writing.stream);
		begin_reading(&reading, writing.bytes.data, writing.bytes.size);
		assert_int_equal(reading.error, 0);
		assert_int_equal(recording_reader_extent(reading.reader), RECORDING_WHOLE);
		source = recording_reader_samples(reading.reader);
		for (size_t i = 0; i < SAMPLE_COUNT; i++) {
			assert_int_equal(source->next(source, &read), 1);
			assert_same_sample(&read, &samples[i]);
		}
		assert_int_equal(source->next(source, &read), 0);
		end_reading(&reading);
		free(writing.bytes.data);
	}
	assert_true(room > BLOCK_HEADER_SIZE);
}

/* Another function may get the address of one that is gone. */
static void functions_that_are_gone_are_not_taken_for_others(void **state)
{
	struct function function = { .kind = FRAME_LUA, .name = "first", .file = "@test.lua" };
	const struct frame frame = { .function = &function, .line = 1 };
	struct sample sample = { .time_ns = 1, .frames = &frame, .frame_count = 1 }, read;
	struct writing writing = { 0 };
	struct sample_source *source;
	struct reading reading;
	struct bytes bytes;

	(void)state;
	begin_writing(&writing);
	assert_int_equal(recording_writer_add(writing.writer, &sample), 0);
	recording_writer_forget_functions(writing.writer);
	function.name = "second";
	assert_int_equal(recording_writer_add(writing.writer, &sample), 0);
	assert_int_equal(recording_writer_flush(writing.writer), 0);
	bytes = end_writing(&writing);
	begin_reading(&reading, bytes.data, bytes.size);
	source = recording_reader_samples(reading.reader);
	assert_int_equal(source->next(source, &read), 1);
	assert_string_equal(read.frames[0].function->name, "first");
	assert_int_equal(source->next(source, &read), 1);
	assert_string_equal(read.frames[0].function->name, "second");
	end_reading(&reading);
	free(bytes.data);
}

/* A gateway has thousands of stacks: a recording defines each once, not with each sample. */
static void many_stacks_are_defined_once(void **state)
{
	enum { STACKS = 5000, DEPTH = 30, FUNCTIONS = 900, ROUNDS = 20 };
	static struct function functions[FUNCTIONS];
	struct writing writing = { 0 };
	size_t first = 0;
	struct bytes bytes;

	(void)state;
	for (int i = 0; i < FUNCTIONS; i++)
		functions[i] = (struct function){
			.kind = FRAME_LUA, .name = "some", .file = "@test.lua", .firstline = (uint32_t)i
		};
	begin_writing(&writing);
	for (uint64_t i = 0; i < (uint64_t)STACKS * ROUNDS; i++) {
		struct sample sample = { .time_ns = i, .pid = 1, .tid = 1, .frame_count = DEPTH };
		struct frame all[DEPTH];
		uint32_t stack = (uint32_t)(i % STACKS);

		for (uint32_t j = 0; j < DEPTH; j++)
			all[j] = (struct frame){ .function = &functions[stack * (DEPTH - j) % FUNCTIONS],
						 .line = 1 + stack };
		sample.frames = all;
		assert_int_equal(recording_writer_add(writing.writer, &sample), 0);
		if (i == STACKS - 1) {
			assert_int_equal(recording_writer_flush(writing.writer), 0);
			first = (size_t)ftell(writing.stream);
		}
	}
	assert_int_equal(recording_writer_flush(writing.writer), 0);
	bytes = end_writing(&writing);
	assert_in_range(bytes.size, first, 4 * first);
	free(bytes.data);
}

/* Of any samples, whether they are in blocks of their own or in one together. */
static void reading_begins_anew_at_any_time(void **state)
{
	(void)state;
	for (int flush = 0; flush < 2; flush++) {
		struct bytes bytes = write_recording(flush, true);
		struct reading reading;
		struct sample_source *source;

		begin_reading(&reading, bytes.data, bytes.size);
		assert_int_equal(reading.error, 0);
		source = recording_reader_samples(reading.reader);
		for (size_t read = 0; read <= SAMPLE_COUNT; read++) {
			struct sample sample;

			for (size_t i = 0; i < read; i++) {
				assert_int_equal(source->next(source, &sample), 1);
				assert_same_sample(&sample, &samples[i]);
			}
			assert_int_equal(source->rewind(source), 0);
		}
		assert_first_samples(reading.reader, SAMPLE_COUNT);
		end_reading(&reading);
		free(bytes.data);
	}
}

/* Stacks are looked up by a part of their lines' bits first. */
static void stacks_that_differ_in_one_bit_are_told_apart(void **state)
{
	struct frame all[2 * 32 + 1] = { { .function = &chunk, .certainty = CERTAINTY_NEAREST } };
	struct writing writing = { 0 };
	struct sample_source *source;
	struct reading reading;
	struct bytes bytes;

	(void)state;
	for (uint32_t bit = 0; bit < 32; bit++) {
		all[1 + bit] = (struct frame){ .function = &chunk, .line = UINT32_C(1) << bit };
		all[33 + bit] = (struct frame){ .function = &native, .line = UINT32_C(1) << bit };
	}
	begin_writing(&writing);
	for (size_t i = 0; i < 2 * 65; i++) {
		const struct sample sample = { .time_ns = i, .frames = &all[i % 65], .frame_count = 1 };

		assert_int_equal(recording_writer_add(writing.writer, &sample), 0);
	}
	assert_int_equal(recording_writer_flush(writing.writer), 0);
	bytes = end_writing(&writing);
	begin_reading(&reading, bytes.data, bytes.size);
	source = recording_reader_samples(reading.reader);
	for (size_t i = 0; i < 2 * 65; i++) {
		const struct sample sample = {
			.time_ns = i, .wall_ns = i ? 1 : 0, .frames = &all[i % 65], .frame_count = 1
		};
		struct sample read;

		assert_int_equal(source->next(source, &read), 1);
		read.wall_ns = sample.wall_ns;
		assert_same_sample(&read, &sample);
	}
	end_reading(&reading);
	free(bytes.data);
}

static void longer_texts_are_cut(void **state)
{
	struct session with_text = session;
	struct writing writing = { 0 };
	struct reading reading;
	struct bytes bytes;
	const char *labels;
	char *text = malloc(RECORDING_TEXT_MAX + 2);

	(void)state;
	assert_non_null(text);
	memset(text, 'x', RECORDING_TEXT_MAX + 1);
	text[RECORDING_TEXT_MAX + 1] = '\0';
	with_text.target = text;
	with_text.home.directory = text + 1;
	begin_writing(&writing);
	assert_int_equal(recording_writer_add_labels(writing.writer, 4711, text + 2), 0);
	assert_int_equal(recording_writer_finish(writing.writer, &with_text, &(struct figures){ 0 }), 0);
	bytes = end_writing(&writing);
	begin_reading(&reading, bytes.data, bytes.size);
	assert_int_equal(reading.error, 0);
	assert_int_equal(recording_reader_extent(reading.reader), RECORDING_WHOLE);
	labels = recording_reader_labels(reading.reader, 4711);
	assert_string_equal(recording_reader_session(reading.reader)->target, text + 1);
	assert_string_equal(recording_reader_session(reading.reader)->home.directory, text + 1);
	assert_string_equal(labels, text + 2);
	end_reading(&reading);
	free(bytes.data);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_stacks_are_defined_once),
		cmocka_unit_test(samples_are_read_as_they_were_written),
		cmocka_unit_test(what_the_collector_does_is_read_as_it_was_written),
		cmocka_unit_test(a_recording_has_a_clock),
		cmocka_unit_test(large_allocations_are_told_by_all_but_older_recordings),
		cmocka_unit_test(session_and_figures_are_read_as_they_were_written),
		cmocka_unit_test(a_root_holds_for_all_files_below_it),
		cmocka_unit_test(labels_of_processes_are_read_up_to_the_last_flush),
		cmocka_unit_test(lost_frames_keep_their_reason_and_time),
		cmocka_unit_test(what_was_flushed_is_read_though_the_end_is_missing),
		cmocka_unit_test(a_file_is_read_up_to_its_last_whole_block),
		cmocka_unit_test(damage_ends_the_samples),
		cmocka_unit_test(each_flipped_bit_is_told_or_changes_nothing),
		cmocka_unit_test(other_files_are_told_apart),
		cmocka_unit_test(records_that_make_no_sense_are_damage),
		cmocka_unit_test(tables_do_not_grow_beyond_their_limits),
		cmocka_unit_test(a_deep_stack_is_held),
		cmocka_unit_test(definitions_are_forgotten_and_made_anew),
		cmocka_unit_test(a_sample_that_comes_late_keeps_its_place),
		cmocka_unit_test(a_full_disk_is_told_and_stays_told),
		cmocka_unit_test_teardown(a_file_on_a_full_disk_ends_with_its_last_whole_block,
					  unbound_files_after),
		cmocka_unit_test(nothing_is_missing_when_it_goes_on_elsewhere),
		cmocka_unit_test(functions_that_are_gone_are_not_taken_for_others),
		cmocka_unit_test(reading_begins_anew_at_any_time),
		cmocka_unit_test(stacks_that_differ_in_one_bit_are_told_apart),
		cmocka_unit_test(longer_texts_are_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* The samples of a run in recordings that follow each other, by a clock of the test's own. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "output/recording/recording_reader.h"
#include "src/linux/clocks/clock.h"
#include "src/rotation/rotation.h"
#include "tests/unit/bounded_files.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/told.h"

enum {
	EVERY_S = 10,
	FOR_S = 5,
	RATE_HZ = 99,
	SAMPLE_CPU_NS = 5,
	BEGIN_S = 1003,
	RECORDINGS_MAX = 8,
	WRITTEN = 100
};

/* CLOCK_MONOTONIC in ns; CLOCK_REALTIME is ahead by a time that is round, CLOCK_BOOTTIME by the sleep. */
static uint64_t time_ns;
static uint64_t ahead_ns, asleep_ns;
static int opening_error, pruning_error;

INSTEAD_OF(clock_gettime);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_time)
{
	uint64_t ns = time_ns + (clock == CLOCK_REALTIME   ? ahead_ns
				 : clock == CLOCK_BOOTTIME ? asleep_ns
							   : 0);

	*ret_time = (struct timespec){ .tv_sec = (time_t)(ns / NS_PER_SECOND),
				       .tv_nsec = (long)(ns % NS_PER_SECOND) };
	return 0;
}

INSTEAD_OF(first_thread_ask);
void __wrap_first_thread_ask(struct first_thread *first, first_thread_errand *errand, void *context)
{
	(void)first;
	errand(context);
}

INSTEAD_OF(archive_begin);
int __wrap_archive_begin(struct archive *archive, uint64_t start_unix_ns)
{
	return opening_error ? opening_error : __real_archive_begin(archive, start_unix_ns);
}

INSTEAD_OF(archive_prune);
int __wrap_archive_prune(struct archive *archive)
{
	return pruning_error ? pruning_error : __real_archive_prune(archive);
}

struct run {
	char path[sizeof("/tmp/ljspy-test-XXXXXX")];
	struct archive archive;
	struct first_thread first;
	struct pusher pusher;
	char roots[16];
	struct rotation rotation;
};

/* What a recording has. */
struct kept {
	uint64_t begin_s, duration_s; /* by CLOCK_REALTIME */
	struct figures figures;
	bool has_labels, has_roots;
	unsigned int samples;
};

static int begin_run(struct run **ret_run, uint64_t every_s, uint64_t keep_bytes)
{
	const struct archive_bounds bounds = { .keep_ns = UINT64_MAX, .bytes = keep_bytes, .every_ns = 1 };
	struct run *run = calloc(1, sizeof(*run));
	struct rotation_options options = { .every_ns = every_s * NS_PER_SECOND,
					    .for_ns = FOR_S * (uint64_t)NS_PER_SECOND,
					    .rate_hz = RATE_HZ };

	assert_non_null(run);
	*ret_run = run;
	time_ns = BEGIN_S * (uint64_t)NS_PER_SECOND;
	ahead_ns = 1700000000 * (uint64_t)NS_PER_SECOND;
	asleep_ns = 0;
	opening_error = 0;
	pruning_error = 0;
	strcpy(run->path, "/tmp/ljspy-test-XXXXXX");
	assert_non_null(mkdtemp(run->path));
	options.archive = &run->archive;
	options.first = &run->first;
	options.pusher = &run->pusher;
	options.roots = run->roots;
	rotation_init(&run->rotation, &options);
	run->rotation.session.target = "nginx";
	run->rotation.session.clock = WEIGHT_CPU_TIME;
	told_begin();
	return archive_open(run->path, &bounds, &run->archive);
}

static int begin_following(void **state)
{
	return begin_run((struct run **)state, EVERY_S, 1 << 30);
}

static int begin_waiting(void **state)
{
	return begin_run((struct run **)state, 0, 1 << 30);
}

static int begin_small(void **state)
{
	return begin_run((struct run **)state, EVERY_S, 4 * 600);
}

static int end_run(void **state)
{
	struct run *run = *state;
	char path[sizeof(run->path) + 1 + ARCHIVE_NAME_SIZE], name[ARCHIVE_NAME_SIZE];

	unbound_files();
	for (size_t i = 0; i < run->archive.list.count; i++) {
		archive_name(&run->archive.list.entries[i], name);
		snprintf(path, sizeof(path), "%s/%s", run->path, name);
		unlink(path);
	}
	archive_close(&run->archive);
	rotation_free(&run->rotation);
	rmdir(run->path);
	free(run);
	return 0;
}

/* Go on to that second of the run. */
static void pass_to(double second)
{
	time_ns = (uint64_t)((BEGIN_S + second) * 1e9);
}

/* A sample of that thread in that second of the run. */
static void sample_of(struct run *run, double second, pid_t tid)
{
	static const struct function chunk = { .kind = FRAME_LUA, .name = "main chunk", .file = "@a.lua" };
	static const struct frame frame = { .function = &chunk, .line = 1 };
	struct sample sample = {
		.pid = getpid(), .tid = tid, .cpu_ns = SAMPLE_CPU_NS, .frames = &frame, .frame_count = 1
	};

	pass_to(second);
	sample.time_ns = time_ns;
	rotation_advance(&run->rotation, time_ns);
	assert_int_equal(rotation_take(&run->rotation, &sample), 0);
}

static void sample_at(struct run *run, double second)
{
	sample_of(run, second, 7);
}

static void keep_up_at(struct run *run, double second)
{
	pass_to(second);
	rotation_keep_up(&run->rotation, time_ns);
	rotation_write(&run->rotation);
}

/* *ret_told: what the user was told. */
static void end_at(struct run *run, double second, uint64_t cpu_ns)
{
	const struct figures all = { .target_cpu_ns = cpu_ns };

	pass_to(second);
	rotation_end(&run->rotation, &all);
	told_end();
}

static void read_recording(FILE *in, struct kept *ret_kept)
{
	struct functions *functions = functions_new();
	struct recording_reader *reader;
	struct sample sample;

	assert_non_null(functions);
	assert_int_equal(recording_reader_open(in, functions, &reader), 0);
	*ret_kept = (struct kept){
		.begin_s = (recording_reader_session(reader)->start_unix_ns - ahead_ns) / NS_PER_SECOND -
			   BEGIN_S,
		.duration_s = recording_reader_session(reader)->duration_ns / NS_PER_SECOND,
		.figures = *recording_reader_figures(reader),
		.has_labels = recording_reader_labels(reader, getpid()) != NULL,
		.has_roots = recording_reader_session(reader)->roots != NULL,
	};
	while (recording_reader_samples(reader)->next(recording_reader_samples(reader), &sample) == 1)
		ret_kept->samples++;
	recording_reader_close(reader);
	functions_free(functions);
}

/* How many recordings there are, the oldest first. */
static size_t read_all(struct run *run, struct kept ret_kept[static RECORDINGS_MAX])
{
	const struct archive_list *list = &run->archive.list;
	char name[ARCHIVE_NAME_SIZE];
	FILE *in;

	assert_true(list->count <= RECORDINGS_MAX);
	for (size_t i = 0; i < list->count; i++) {
		archive_name(&list->entries[i], name);
		in = fdopen(openat(run->archive.directory, name, O_RDONLY), "r");
		assert_non_null(in);
		read_recording(in, &ret_kept[i]);
		fclose(in);
	}
	return list->count;
}

static void assert_kept(const struct kept *kept, uint64_t begin_s, uint64_t duration_s, unsigned int samples)
{
	assert_int_equal(kept->begin_s, begin_s);
	assert_int_equal(kept->duration_s, duration_s);
	assert_int_equal(kept->samples, samples);
	assert_int_equal(kept->figures.samples, samples);
	assert_int_equal(kept->figures.target_cpu_ns, samples * SAMPLE_CPU_NS);
	assert_int_equal(kept->figures.rate_asked_hz, RATE_HZ);
}

static void recordings_end_at_round_times_of_the_clock(void **state)
{
	struct run *run = *state;
	struct kept kept[RECORDINGS_MAX];

	rotation_begin_first(&run->rotation, time_ns);
	sample_at(run, 1);
	sample_at(run, 6.9);
	sample_at(run, 7.1);
	sample_at(run, 18);
	end_at(run, 20, 0);
	assert_int_equal(read_all(run, kept), 3);
	assert_kept(&kept[0], 0, 7, 2);
	assert_kept(&kept[1], 7, 10, 1);
	assert_kept(&kept[2], 17, 3, 1);
	assert_int_equal(rotation_missing(&run->rotation), 0);
	assert_string_equal(told, "");
}

static void recordings_end_without_samples_too(void **state)
{
	struct run *run = *state;
	struct kept kept[RECORDINGS_MAX];

	rotation_begin_first(&run->rotation, time_ns);
	keep_up_at(run, 8); /* samples of the time before may still come */
	sample_at(run, 6.5);
	keep_up_at(run, 9.1);
	end_at(run, 12, 0);
	assert_int_equal(read_all(run, kept), 2);
	assert_kept(&kept[0], 0, 7, 1);
	assert_kept(&kept[1], 7, 5, 0);
}

static void sample_that_comes_late_goes_into_the_recording_that_goes_on(void **state)
{
	struct run *run = *state;
	struct kept kept[RECORDINGS_MAX];

	rotation_begin_first(&run->rotation, time_ns);
	sample_at(run, 8);
	sample_at(run, 6);
	end_at(run, 9, 0);
	assert_int_equal(read_all(run, kept), 2);
	assert_kept(&kept[0], 0, 7, 0);
	assert_kept(&kept[1], 7, 2, 2);
}

static void time_without_ljspy_makes_no_recordings(void **state)
{
	struct run *run = *state;
	struct kept kept[RECORDINGS_MAX];

	rotation_begin_first(&run->rotation, time_ns);
	sample_at(run, 1);
	sample_at(run, 17.5);
	sample_at(run, 60);
	end_at(run, 61, 0);
	assert_int_equal(read_all(run, kept), 3);
	assert_kept(&kept[0], 0, 17, 1);
	assert_kept(&kept[1], 17, 40, 1);
	assert_kept(&kept[2], 57, 4, 1);
}

static void recording_that_takes_its_part_of_the_bytes_ends_early(void **state)
{
	struct run *run = *state;
	struct kept kept[RECORDINGS_MAX];

	rotation_begin_first(&run->rotation, time_ns);
	for (pid_t tid = 1; tid < 600 && run->archive.list.count == 1; tid++) {
		sample_of(run, tid / 100.0, tid * 7919); /* threads take bytes */
		keep_up_at(run, tid / 100.0);
	}
	assert_true(run->archive.list.count > 1);
	end_at(run, 6.9, 0);
	assert_true(read_all(run, kept) > 1);
	assert_true(kept[0].duration_s < 7);
	assert_true(kept[0].samples > 1);
}

static void recording_keeps_to_one_setting_of_the_clock(void **state)
{
	struct run *run = *state;
	struct kept kept[RECORDINGS_MAX];

	rotation_begin_first(&run->rotation, time_ns);
	sample_at(run, 1);
	keep_up_at(run, 2);
	ahead_ns += 100 * (uint64_t)NS_PER_SECOND;
	keep_up_at(run, 3);
	sample_at(run, 4);
	ahead_ns += 40 * (uint64_t)NS_PER_SECOND;
	asleep_ns += 40 * (uint64_t)NS_PER_SECOND;
	keep_up_at(run, 5);
	end_at(run, 6, 0);
	assert_int_equal(told_times("The clock was set by 100 s: a new recording begins."), 1);
	assert_int_equal(told_times("The machine was suspended for 40 s: a new recording begins."), 1);
	assert_int_equal(read_all(run, kept), 3);
	assert_int_equal(kept[0].samples, 1);
	assert_int_equal(kept[1].samples, 1);
	assert_int_equal(kept[2].begin_s, 5);
}

static void recording_tells_what_was_missed_in_its_own_time(void **state)
{
	struct run *run = *state;
	struct kept kept[RECORDINGS_MAX];

	rotation_begin_first(&run->rotation, time_ns);
	run->rotation.so_far.missed_ticks = 3;
	sample_at(run, 8);
	run->rotation.so_far.missed_ticks = 4;
	sample_at(run, 18);
	end_at(run, 20, 0);
	assert_int_equal(read_all(run, kept), 3);
	assert_int_equal(kept[0].figures.missed_ticks, 3);
	assert_int_equal(kept[1].figures.missed_ticks, 1);
}

static void recording_has_the_roots_that_are_known_at_its_end(void **state)
{
	struct run *run = *state;
	struct kept kept[RECORDINGS_MAX];

	rotation_begin_first(&run->rotation, time_ns);
	sample_at(run, 8);
	strcpy(run->roots, "/lua;");
	end_at(run, 9, 0);
	assert_int_equal(read_all(run, kept), 2);
	assert_false(kept[0].has_roots);
	assert_true(kept[1].has_roots);
}

static void each_recording_to_push_is_announced_and_has_labels(void **state)
{
	struct run *run = *state;
	struct kept kept[RECORDINGS_MAX];
	char noted[RECORDINGS_MAX];
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	run->pusher = (struct pusher){ .pid = 1, .pipe = ends[1] };
	rotation_begin_first(&run->rotation, time_ns);
	sample_at(run, 1);
	sample_at(run, 2);
	sample_at(run, 8);
	end_at(run, 9, 0);
	assert_int_equal(read(ends[0], noted, sizeof(noted)), 2);
	close(ends[0]);
	close(ends[1]);
	assert_int_equal(read_all(run, kept), 2);
	assert_true(kept[0].has_labels);
	assert_true(kept[1].has_labels);
}

static void old_recordings_that_cannot_be_deleted_are_told_once(void **state)
{
	struct run *run = *state;

	pruning_error = -EACCES;
	rotation_begin_first(&run->rotation, time_ns);
	sample_at(run, 8);
	sample_at(run, 18);
	end_at(run, 19, 0);
	assert_int_equal(told_times("old recordings cannot be deleted: Permission denied"), 1);
}

static void cpu_time_without_a_sample_is_in_the_last_recording(void **state)
{
	struct run *run = *state;
	struct kept kept[RECORDINGS_MAX];

	rotation_begin_first(&run->rotation, time_ns);
	sample_at(run, 1);
	sample_at(run, 8);
	end_at(run, 9, 1000);
	assert_int_equal(read_all(run, kept), 2);
	assert_int_equal(kept[0].figures.target_cpu_ns, SAMPLE_CPU_NS);
	assert_int_equal(kept[1].figures.target_cpu_ns, 1000 - SAMPLE_CPU_NS);
}

/* One sample is written, and then there is no more room. */
static void fill_after_one(struct run *run)
{
	sample_at(run, 1);
	keep_up_at(run, 1.5);
	bound_files(archive_written(&run->archive));
}

static void recording_goes_on_when_it_can_and_counts_what_is_missing(void **state)
{
	struct run *run = *state;
	struct kept kept[RECORDINGS_MAX];

	rotation_begin_first(&run->rotation, time_ns);
	fill_after_one(run);
	sample_at(run, 2);
	sample_at(run, 2.1);
	keep_up_at(run, 2.5);
	sample_at(run, 3);
	keep_up_at(run, 3.5);
	sample_at(run, 4);
	assert_int_equal(rotation_missing(&run->rotation), 2);
	unbound_files();
	keep_up_at(run, 4.5);
	sample_at(run, 5);
	sample_at(run, 8);
	end_at(run, 9, 0);
	assert_int_equal(told_times("what was written stays; recording goes on when it can"), 1);
	assert_int_equal(told_times("can be written to again; 2 samples are missing."), 1);
	assert_int_equal(read_all(run, kept), 2);
	assert_int_equal(kept[0].samples, 4);
	assert_int_equal(kept[0].figures.dropped, 2);
	assert_int_equal(kept[1].figures.dropped, 0);
	assert_int_equal(rotation_missing(&run->rotation), 2);
}

static void file_that_takes_no_more_is_given_up_once_its_time_is_over(void **state)
{
	struct run *run = *state;
	struct kept kept[RECORDINGS_MAX];

	rotation_begin_first(&run->rotation, time_ns);
	fill_after_one(run);
	sample_at(run, 2);
	keep_up_at(run, 2.5);
	sample_at(run, 3);
	assert_int_equal(run->archive.list.count, 1);
	keep_up_at(run, 9.5); /* another file has room up to the limit */
	assert_int_equal(run->archive.list.count, 2);
	unbound_files();
	sample_at(run, 10);
	end_at(run, 12, 0);
	assert_int_equal(read_all(run, kept), 2);
	assert_int_equal(kept[0].samples, 1);
	assert_int_equal(kept[1].samples, 1);
	/* The one in the writer, and the one that came meanwhile. */
	assert_int_equal(kept[1].figures.dropped, 2);
	assert_int_equal(rotation_missing(&run->rotation), 2);
}

static void end_that_cannot_be_written_is_tried_again(void **state)
{
	struct run *run = *state;
	struct kept kept[RECORDINGS_MAX];

	rotation_begin_first(&run->rotation, time_ns);
	fill_after_one(run);
	sample_at(run, 8);
	assert_int_equal(run->archive.list.count, 1);
	unbound_files();
	keep_up_at(run, 8.5);
	sample_at(run, 9);
	end_at(run, 10, 0);
	assert_int_equal(read_all(run, kept), 2);
	assert_int_equal(kept[0].samples, 1);
	assert_int_equal(kept[0].duration_s, 7);
	assert_int_equal(kept[1].samples, 1);
	assert_int_equal(kept[1].figures.dropped, 1);
}

/*
 * The file takes samples, as many bytes as another recording needs; then one cannot be written, and one is
 * missing.
 */
static void fail_until(struct run *run, double second)
{
	for (pid_t tid = 1; tid <= WRITTEN; tid++)
		sample_of(run, 1, tid * 7919);
	keep_up_at(run, 1.5);
	bound_files(archive_written(&run->archive));
	sample_at(run, 2);
	keep_up_at(run, 2.5);
	sample_at(run, 3);
	pass_to(second);
}

static void last_recording_tells_what_a_file_that_was_given_up_lacks(void **state)
{
	struct run *run = *state;
	struct kept kept[RECORDINGS_MAX];

	rotation_begin_first(&run->rotation, time_ns);
	fail_until(run, 9);
	end_at(run, 9, 0);
	unbound_files();
	assert_int_equal(rotation_missing(&run->rotation), 2);
	assert_int_equal(read_all(run, kept), 2);
	assert_int_equal(kept[0].samples, WRITTEN);
	assert_kept(&kept[1], 9, 0, 0);
	assert_int_equal(kept[1].figures.dropped, 2);
}

static void run_may_end_while_nothing_can_be_written(void **state)
{
	struct run *run = *state;
	struct kept kept[RECORDINGS_MAX];

	rotation_begin_first(&run->rotation, time_ns);
	fail_until(run, 5);
	end_at(run, 5, 0);
	unbound_files();
	assert_int_equal(told_times("can be written to again"), 0);
	assert_int_equal(rotation_missing(&run->rotation), 2);
	assert_int_equal(read_all(run, kept), 1);
	assert_int_equal(kept[0].samples, WRITTEN);
}

static void last_recording_tells_what_is_missing_if_it_can_be_written_at_last(void **state)
{
	struct run *run = *state;
	struct kept kept[RECORDINGS_MAX];

	rotation_begin_first(&run->rotation, time_ns);
	fail_until(run, 9);
	unbound_files();
	end_at(run, 9, 0);
	assert_int_equal(rotation_missing(&run->rotation), 1);
	assert_int_equal(read_all(run, kept), 1);
	assert_int_equal(kept[0].samples, WRITTEN + 1);
	assert_int_equal(kept[0].duration_s, 9);
	assert_int_equal(kept[0].figures.dropped, 1);
}

static void last_recording_tells_what_came_after_an_end_that_was_written_at_last(void **state)
{
	struct run *run = *state;
	struct kept kept[RECORDINGS_MAX];

	rotation_begin_first(&run->rotation, time_ns);
	fill_after_one(run);
	sample_at(run, 8);
	unbound_files();
	end_at(run, 9, 0);
	assert_int_equal(read_all(run, kept), 2);
	assert_kept(&kept[0], 0, 7, 1);
	assert_kept(&kept[1], 9, 0, 0);
	assert_int_equal(kept[1].figures.dropped, 1);
	assert_int_equal(rotation_missing(&run->rotation), 1);
}

/* Of a waiting run: begin the one recording. */
static void begin_one(struct run *run)
{
	rotation_begin_first(&run->rotation, time_ns);
	assert_true(rotation_begin(&run->rotation, time_ns, &run->rotation.so_far, time_ns));
}

static void waiting_run_may_end_while_nothing_can_be_written(void **state)
{
	struct run *run = *state;
	struct kept kept[RECORDINGS_MAX];

	begin_one(run);
	fail_until(run, 6);
	end_at(run, 6, 0);
	unbound_files();
	assert_int_equal(rotation_missing(&run->rotation), 2);
	assert_int_equal(read_all(run, kept), 1);
	assert_int_equal(kept[0].samples, WRITTEN);
}

static void waiting_run_may_end_where_its_recording_can_be_ended_at_last(void **state)
{
	struct run *run = *state;
	struct kept kept[RECORDINGS_MAX];

	begin_one(run);
	fill_after_one(run);
	pass_to(5.5);
	rotation_advance(&run->rotation, time_ns);
	unbound_files();
	end_at(run, 6, 0);
	assert_true(run->rotation.idle);
	assert_int_equal(read_all(run, kept), 1);
	assert_int_equal(kept[0].samples, 1);
}

static void recording_that_cannot_be_opened_is_tried_again(void **state)
{
	struct run *run = *state;
	struct kept kept[RECORDINGS_MAX];

	opening_error = -EMFILE;
	rotation_begin_first(&run->rotation, time_ns);
	sample_at(run, 1);
	keep_up_at(run, 2);
	opening_error = 0;
	keep_up_at(run, 3);
	sample_at(run, 4);
	end_at(run, 5, 0);
	assert_int_equal(told_times("Too many open files"), 1);
	assert_int_equal(told_times("can be written to again; 1 sample is missing."), 1);
	assert_int_equal(read_all(run, kept), 1);
	assert_kept(&kept[0], 3, 2, 1);
	assert_int_equal(kept[0].figures.dropped, 1);
}

static void waiting_run_records_only_what_is_asked_for(void **state)
{
	struct run *run = *state;
	const struct figures before = { .target_cpu_ns = 3 };
	struct kept kept[RECORDINGS_MAX];

	rotation_begin_first(&run->rotation, time_ns);
	assert_true(run->rotation.idle);
	keep_up_at(run, 3);
	ahead_ns += 100 * (uint64_t)NS_PER_SECOND;
	keep_up_at(run, 4);
	assert_int_equal(run->rotation.idle_since_ns, time_ns);
	assert_int_equal(run->archive.list.count, 0);
	assert_true(rotation_begin(&run->rotation, time_ns - NS_PER_SECOND, &before, time_ns));
	assert_false(run->rotation.idle);
	sample_at(run, 8.9);
	pass_to(9.1);
	rotation_advance(&run->rotation, time_ns);
	assert_true(run->rotation.idle);
	assert_int_equal(run->rotation.idle_since_ns, (BEGIN_S + 9) * (uint64_t)NS_PER_SECOND);
	end_at(run, 30, 1000);
	assert_int_equal(told_times("The clock was set by 100 s: what was sampled before is dropped."), 1);
	assert_int_equal(read_all(run, kept), 1);
	assert_kept(&kept[0], 3, 6, 1);
	assert_int_equal(kept[0].figures.target_cpu_ns, SAMPLE_CPU_NS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST_OF(test, begin) cmocka_unit_test_setup_teardown(test, begin, end_run)
		TEST_OF(recordings_end_at_round_times_of_the_clock, begin_following),
		TEST_OF(recordings_end_without_samples_too, begin_following),
		TEST_OF(sample_that_comes_late_goes_into_the_recording_that_goes_on, begin_following),
		TEST_OF(time_without_ljspy_makes_no_recordings, begin_following),
		TEST_OF(recording_that_takes_its_part_of_the_bytes_ends_early, begin_small),
		TEST_OF(recording_keeps_to_one_setting_of_the_clock, begin_following),
		TEST_OF(recording_tells_what_was_missed_in_its_own_time, begin_following),
		TEST_OF(recording_has_the_roots_that_are_known_at_its_end, begin_following),
		TEST_OF(each_recording_to_push_is_announced_and_has_labels, begin_following),
		TEST_OF(old_recordings_that_cannot_be_deleted_are_told_once, begin_following),
		TEST_OF(end_that_cannot_be_written_is_tried_again, begin_following),
		TEST_OF(cpu_time_without_a_sample_is_in_the_last_recording, begin_following),
		TEST_OF(recording_goes_on_when_it_can_and_counts_what_is_missing, begin_following),
		TEST_OF(file_that_takes_no_more_is_given_up_once_its_time_is_over, begin_following),
		TEST_OF(recording_that_cannot_be_opened_is_tried_again, begin_following),
		TEST_OF(last_recording_tells_what_a_file_that_was_given_up_lacks, begin_following),
		TEST_OF(run_may_end_while_nothing_can_be_written, begin_following),
		TEST_OF(last_recording_tells_what_is_missing_if_it_can_be_written_at_last, begin_following),
		TEST_OF(last_recording_tells_what_came_after_an_end_that_was_written_at_last,
			begin_following),
		TEST_OF(waiting_run_may_end_while_nothing_can_be_written, begin_waiting),
		TEST_OF(waiting_run_may_end_where_its_recording_can_be_ended_at_last, begin_waiting),
		TEST_OF(waiting_run_records_only_what_is_asked_for, begin_waiting),
#undef TEST_OF
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

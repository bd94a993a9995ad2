/* SPDX-License-Identifier: MIT */
/*
 * What one sampling loop hands to many clients: in which mode it samples, who gets which samples, who waits.
 *
 * While a client waits, the test goes on with what the sampling thread does, in the same thread.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "output/recording/recording_format.h"
#include "output/recording/recording_reader.h"
#include "src/linux/clocks/clock.h"
#include "src/program/interruption.h"
#include "src/program/output_file.h"
#include "src/serve/hub.h"
#include "tests/unit/instead_of.h"

/* Not long after the machine's start, as far as lingering goes. */
enum { WAITS_MAX = 1000, START_S = 10 };

static const uint64_t ns_per_second = NS_PER_SECOND;

static struct {
	uint64_t now_ns;
	void (*meanwhile)(unsigned int wait); /* NULL: waits are real, and so is the time */
	unsigned int waits;
	bool is_client_gone, is_signal_pending, lacks_files, is_disk_full;
	unsigned int depth, answers[HUB_CAPTURES_MAX + 1];
	bool goes_on; /* the run, as it was told last */
	enum hub_mode next;
	unsigned int runs; /* that began meanwhile */
} seen;

static struct hub *hub;
static struct hub_recording recording;
static int capture_error;

INSTEAD_OF(clock_gettime);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_time)
{
	if (clock != CLOCK_MONOTONIC || !seen.meanwhile)
		return __real_clock_gettime(clock, ret_time);
	*ret_time = (struct timespec){ .tv_sec = (time_t)(seen.now_ns / ns_per_second),
				       .tv_nsec = (long)(seen.now_ns % ns_per_second) };
	return 0;
}

static int go_on(pthread_mutex_t *lock)
{
	assert_in_range(seen.waits, 0, WAITS_MAX);
	pthread_mutex_unlock(lock);
	seen.meanwhile(seen.waits++);
	pthread_mutex_lock(lock);
	return 0;
}

INSTEAD_OF(pthread_cond_timedwait);
int __wrap_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *lock,
				  const struct timespec *until)
{
	return seen.meanwhile ? go_on(lock) : __real_pthread_cond_timedwait(condition, lock, until);
}

INSTEAD_OF(pthread_cond_wait);
int __wrap_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *lock)
{
	return seen.meanwhile ? go_on(lock) : __real_pthread_cond_wait(condition, lock);
}

INSTEAD_OF(interruption_is_pending);
bool __wrap_interruption_is_pending(void)
{
	return seen.is_signal_pending;
}

INSTEAD_OF(output_file_scratch);
int __wrap_output_file_scratch(FILE **ret_stream)
{
	if (seen.lacks_files)
		return -EMFILE;
	if (!seen.is_disk_full)
		return __real_output_file_scratch(ret_stream);
	*ret_stream = fopen("/dev/full", "w+");
	return *ret_stream ? 0 : -errno;
}

static bool is_there(void *client)
{
	assert_ptr_equal(client, &seen);
	return !seen.is_client_gone;
}

/*---- What the sampling thread does ----*/

static void progress(uint64_t samples)
{
	struct figures figures = { .samples = samples, .missed_ticks = samples };

	seen.goes_on = hub_progress(hub, &figures);
}

/* End the run, of so many samples at 100 a second, and begin the next one. */
static void run_anew(uint64_t samples)
{
	struct figures figures = { .samples = samples, .rate_reached_hz = 100 };

	hub_note_end(hub, &figures);
	assert_true(hub_next(hub, &seen.next));
	progress(0);
}

static void take(pid_t pid, uint64_t cpu_ns, uint64_t heap_bytes)
{
	static const struct function busy = { .kind = FRAME_LUA, .name = "busy", .file = "@a.lua" };
	struct frame frame = { .function = &busy };
	const struct sample sample = { .time_ns = seen.now_ns,
				       .pid = pid,
				       .tid = pid,
				       .process_name = "made_up",
				       .vm_state = VM_STATE_INTERPRETED,
				       .thread_state = cpu_ns ? THREAD_RUNNING : THREAD_BLOCKED,
				       .cpu_ns = cpu_ns,
				       .wall_ns = 10,
				       .gc.heap_bytes = heap_bytes,
				       .frames = &frame,
				       .frame_count = 1 };

	hub_take(hub, &sample);
}

/*---- A client ----*/

static enum hub_answer capture(enum hub_mode mode, unsigned int seconds)
{
	const struct hub_request request = {
		.mode = mode,
		.duration_ns = seconds * ns_per_second,
		.is_there = is_there,
		.client = &seen,
	};

	capture_error = 0;
	return hub_capture(hub, &request, &recording, &capture_error);
}

/* How many samples the recording has; closes it. */
static size_t count_samples(void)
{
	struct functions *functions = functions_new();
	struct recording_reader *reader = NULL;
	struct sample_source *source;
	struct sample sample;
	size_t count = 0;

	assert_int_equal(recording_reader_open(recording.stream, functions, &reader), 0);
	source = recording_reader_samples(reader);
	while (source->next(source, &sample) == 1)
		count++;
	recording_reader_close(reader);
	functions_free(functions);
	fclose(recording.stream);
	return count;
}

static struct hub_totals totals;

static void begin_hub(enum hub_mode base)
{
	const struct hub_options options = {
		.base = base, .threshold_ns = 5, .rate_hz = 99, .session = { .target = "made up", .pid = 7 }
	};

	hub_free(hub);
	hub = hub_new(&options);
	assert_non_null(hub);
	assert_true(hub_next(hub, &seen.next));
	assert_int_equal(seen.next, base);
}

static void no_more(unsigned int wait)
{
	(void)wait;
	fail();
}

static int begin(void **state)
{
	(void)state;
	memset(&seen, 0, sizeof(seen));
	seen.now_ns = START_S * ns_per_second;
	seen.meanwhile = no_more;
	hub = NULL;
	begin_hub(HUB_CPU);
	return 0;
}

static int end(void **state)
{
	(void)state;
	hub_free(hub);
	return 0;
}

/*---- Samples ----*/

static void take_and_go_on(unsigned int wait)
{
	switch (wait) {
	case 0:
		/* It has not begun: the run has not told that it samples. */
		progress(3);
		seen.now_ns -= 1;
		take(7, 5, 0); /* from before */
		seen.now_ns += 1;
		take(7, 5, 0);
		take(7, 0, 0); /* no CPU time */
		break;
	case 1:
		seen.now_ns += ns_per_second;
		take(7, 6, 0);
		progress(10);
		break;
	case 2: seen.now_ns += ns_per_second; break;
	default: fail();
	}
}

static void a_capture_has_the_samples_of_its_time(void **state)
{
	(void)state;
	seen.meanwhile = take_and_go_on;
	assert_int_equal(capture(HUB_CPU, 2), HUB_DONE);
	assert_true(seen.goes_on);
	assert_int_equal(recording.session.clock, WEIGHT_CPU_TIME);
	assert_string_equal(recording.session.target, "made up");
	assert_int_equal(recording.session.start_ns, START_S * ns_per_second);
	assert_int_equal(recording.session.duration_ns, 2 * ns_per_second);
	assert_int_equal(recording.figures.missed_ticks, 7);
	assert_int_equal(recording.figures.rate_asked_hz, 99);
	assert_int_equal(recording.figures.target_cpu_ns, 11);
	assert_int_equal(count_samples(), 2);
	hub_totals(hub, &totals);
	assert_int_equal(totals.captures, 1);
	assert_int_equal(totals.refused + totals.abandoned, 0);
	assert_int_equal(totals.cpu_ns[VM_STATE_INTERPRETED], 16);
}

/* One that fits, and one that is deeper than a recording has stacks. */
static void take_one_too_deep(unsigned int wait)
{
	struct frame *frames = calloc(RECORDING_DEPTH_MAX + 1, sizeof(*frames));
	const struct sample deep = { .time_ns = seen.now_ns,
				     .pid = 7,
				     .tid = 7,
				     .thread_state = THREAD_RUNNING,
				     .awaits_events = true,
				     .sleeps = 1,
				     .cpu_ns = 1,
				     .wall_ns = 10,
				     .frames = frames,
				     .frame_count = RECORDING_DEPTH_MAX + 1 };

	assert_non_null(frames);
	if (wait == 0) {
		progress(0);
		hub_take(hub, &deep);
		take(7, 5, 0);
	}
	seen.now_ns += ns_per_second;
	free(frames);
}

static void what_does_not_fit_into_a_recording_counts_as_dropped(void **state)
{
	(void)state;
	seen.meanwhile = take_one_too_deep;
	assert_int_equal(capture(HUB_CPU, 1), HUB_DONE);
	assert_int_equal(recording.figures.dropped, 1);
	assert_int_equal(count_samples(), 1);
}

static void take_a_long_turn(unsigned int wait)
{
	if (wait > 0) {
		seen.now_ns += ns_per_second;
		return;
	}
	progress(0);
	for (int i = 0; i < 3; i++) {
		take_one_too_deep(0);
	}
}

/* Their turn ends with the capture, and then all its samples are written. */
static void nor_do_those_of_the_last_turn_of_a_loop(void **state)
{
	(void)state;
	begin_hub(HUB_TURNS);
	seen.meanwhile = take_a_long_turn;
	assert_int_equal(capture(HUB_TURNS, 1), HUB_DONE);
	assert_int_equal(recording.figures.dropped, 3);
	count_samples();
}

/*---- Modes ----*/

static void raise_and_sample(unsigned int wait)
{
	if (wait > 0) {
		seen.now_ns += ns_per_second;
		return;
	}
	progress(0);
	/* The run has no samples for it: another one begins. */
	assert_false(seen.goes_on);
	run_anew(0);
	assert_int_equal(seen.next, HUB_WALL);
	assert_true(seen.goes_on);
	take(7, 0, 0);
}

static void a_higher_mode_stays_for_a_while(void **state)
{
	(void)state;
	progress(0);
	seen.meanwhile = raise_and_sample;
	assert_int_equal(capture(HUB_WALL, 1), HUB_DONE);
	assert_int_equal(recording.session.clock, WEIGHT_WALL_TIME);
	assert_int_equal(count_samples(), 1);
	progress(0);
	assert_true(seen.goes_on);
	seen.now_ns += 58 * ns_per_second;
	progress(0);
	assert_true(seen.goes_on);
	seen.now_ns += 2 * ns_per_second;
	progress(0);
	assert_false(seen.goes_on);
	run_anew(0);
	assert_int_equal(seen.next, HUB_CPU);
	hub_totals(hub, &totals);
	assert_int_equal(totals.runs, 3);
}

/* The second client waits within the first one's wait, so it has to go before that one ends. */
static void wait_behind_coroutines(unsigned int wait)
{
	switch (wait) {
	case 0:
		assert_int_equal(capture(HUB_CPU, 1), HUB_GONE);
		seen.is_client_gone = false;
		break;
	case 1:
		progress(0);
		assert_false(seen.goes_on);
		run_anew(0);
		assert_int_equal(seen.next, HUB_COROUTINES);
		take(7, 5, 0);
		seen.now_ns += ns_per_second;
		seen.is_client_gone = true;
		break;
	default: fail();
	}
}

static void what_needs_the_targets_for_itself_keeps_others_waiting(void **state)
{
	(void)state;
	progress(0);
	seen.meanwhile = wait_behind_coroutines;
	assert_int_equal(capture(HUB_COROUTINES, 1), HUB_DONE);
	assert_int_equal(count_samples(), 1);
	/* Nothing wants that mode any longer. */
	progress(0);
	assert_false(seen.goes_on);
	run_anew(0);
	assert_int_equal(seen.next, HUB_CPU);
}

static void wait_for_coroutines(unsigned int wait)
{
	switch (wait) {
	case 0:
		assert_int_equal(capture(HUB_COROUTINES, 1), HUB_GONE);
		seen.is_client_gone = false;
		break;
	case 1:
		take(7, 5, 0);
		progress(0);
		assert_true(seen.goes_on);
		seen.now_ns += 2 * ns_per_second;
		seen.is_client_gone = true;
		break;
	default: fail();
	}
}

static void what_needs_the_targets_for_itself_waits_for_those_before(void **state)
{
	(void)state;
	progress(0);
	seen.meanwhile = wait_for_coroutines;
	assert_int_equal(capture(HUB_CPU, 1), HUB_DONE);
	assert_int_equal(count_samples(), 1);
	hub_totals(hub, &totals);
	assert_int_equal(totals.abandoned, 1);
}

/* Its waits are real: the loop goes on in a thread of its own, and waits until the heap is read. */
static void *sample_on(void *context)
{
	const struct figures figures = { .samples = 5 };

	(void)context;
	for (;;) {
		while (hub_progress(hub, &figures))
			continue;
		hub_note_end(hub, &figures);
		if (!hub_next(hub, &seen.next))
			return NULL;
		seen.runs++;
	}
}

static void nobody_samples_while_a_heap_is_read(void **state)
{
	const struct hub_request request = { .mode = HUB_HEAP, .is_there = is_there, .client = &seen };
	struct hub_capture *reserved;
	pthread_t thread;

	(void)state;
	seen.meanwhile = NULL;
	assert_int_equal(pthread_create(&thread, NULL, sample_on, NULL), 0);
	assert_int_equal(hub_reserve(hub, &request, &reserved), HUB_DONE);
	assert_int_equal(seen.runs, 0);
	hub_totals(hub, &totals);
	assert_int_equal(totals.mode, HUB_HEAP);
	assert_true(totals.running);
	assert_false(hub_is_stopped(hub));
	hub_release(hub, reserved);
	hub_stop(hub);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(hub_is_stopped(hub));
	hub_totals(hub, &totals);
	assert_false(totals.running);
}

static void end_by_a_signal(unsigned int wait)
{
	if (wait == 0) {
		const struct figures figures = { .samples = 5 };

		progress(0);
		assert_false(seen.goes_on);
		hub_note_end(hub, &figures);
		assert_false(hub_next(hub, &seen.next));
	} else {
		/* There is no run that the signal could end. */
		seen.is_signal_pending = true;
	}
}

static void a_signal_ends_the_wait_for_a_heap(void **state)
{
	const struct hub_request request = { .mode = HUB_HEAP, .is_there = is_there, .client = &seen };
	struct hub_capture *reserved = NULL;

	(void)state;
	progress(0);
	seen.meanwhile = end_by_a_signal;
	assert_int_equal(hub_reserve(hub, &request, &reserved), HUB_STOPPED);
	assert_null(reserved);
	assert_int_equal(seen.waits, 2);
}

/*---- Who gets nothing ----*/

static void begin_captures_now(unsigned int wait)
{
	if (wait == 0)
		progress(0);
	else
		seen.now_ns += ns_per_second;
}

static void come_until_it_is_full(unsigned int wait)
{
	const unsigned int depth = ++seen.depth;

	(void)wait;
	if (depth <= HUB_CAPTURES_MAX)
		seen.answers[depth] = capture(HUB_CPU, 1);
	else
		seen.now_ns += 401 * ns_per_second; /* no run begins */
}

static void there_is_room_for_so_many(void **state)
{
	(void)state;
	seen.meanwhile = come_until_it_is_full;
	/* The last one does not wait; the others do, until it takes too long. */
	seen.depth = 0;
	assert_int_equal(capture(HUB_CPU, 1), HUB_BUSY);
	assert_int_equal(seen.depth, HUB_CAPTURES_MAX + 1);
	for (size_t i = 1; i <= HUB_CAPTURES_MAX; i++)
		assert_int_equal(seen.answers[i], HUB_BUSY);
	hub_totals(hub, &totals);
	assert_int_equal(totals.captures, HUB_CAPTURES_MAX);
	assert_int_equal(totals.refused, 1);
	/* They make room. */
	seen.meanwhile = begin_captures_now;
	seen.waits = 0;
	assert_int_equal(capture(HUB_CPU, 1), HUB_DONE);
	fclose(recording.stream);
}

static void wait_on(unsigned int wait)
{
	if (wait == 0)
		seen.now_ns += 400 * ns_per_second;
	else
		seen.now_ns++;
	assert_in_range(wait, 0, 1);
}

static void a_capture_that_cannot_begin_is_refused_in_the_end(void **state)
{
	(void)state;
	seen.meanwhile = wait_on;
	assert_int_equal(capture(HUB_CPU, 1), HUB_BUSY);
	assert_int_equal(seen.waits, 2);
}

static void leave(unsigned int wait)
{
	(void)wait;
	seen.is_client_gone = true;
}

static void a_client_that_is_gone_is_counted(void **state)
{
	(void)state;
	progress(0);
	seen.meanwhile = leave;
	assert_int_equal(capture(HUB_CPU, 100), HUB_GONE);
	hub_totals(hub, &totals);
	assert_int_equal(totals.abandoned, 1);
}

static void after_the_end_there_is_nothing(void **state)
{
	(void)state;
	hub_stop(hub);
	assert_int_equal(capture(HUB_CPU, 1), HUB_BUSY);
	progress(0);
	assert_false(seen.goes_on);
	assert_false(hub_next(hub, &seen.next));
}

static void files_may_be_short(void **state)
{
	(void)state;
	seen.meanwhile = begin_captures_now;
	seen.lacks_files = true;
	assert_int_equal(capture(HUB_CPU, 1), HUB_FAILED);
	assert_int_equal(capture_error, -EMFILE);
	/* Nothing of it stays. */
	seen.lacks_files = false;
	assert_int_equal(capture(HUB_CPU, 1), HUB_DONE);
	assert_int_equal(count_samples(), 0);
}

static void a_full_disk_shows_at_the_end(void **state)
{
	(void)state;
	progress(0);
	seen.meanwhile = begin_captures_now;
	seen.is_disk_full = true;
	assert_int_equal(capture(HUB_CPU, 1), HUB_FAILED);
	assert_int_equal(capture_error, -ENOSPC);
}

/*---- Totals ----*/

static void runs_are_added_up(void **state)
{
	(void)state;
	progress(5);
	hub_totals(hub, &totals);
	assert_int_equal(totals.figures.samples, 5);
	progress(8);
	run_anew(10);
	progress(1);
	hub_totals(hub, &totals);
	assert_int_equal(totals.figures.samples, 11);
	run_anew(20);
	hub_totals(hub, &totals);
	assert_int_equal(totals.figures.samples, 30);
	assert_int_equal(totals.runs, 3);
}

static void the_rate_is_that_of_all_runs(void **state)
{
	struct figures figures = { .samples = 100, .rate_reached_hz = 100 };

	(void)state;
	hub_note_end(hub, &figures);
	figures.rate_reached_hz = 50;
	hub_note_end(hub, &figures);
	hub_totals(hub, &totals);
	/* 200 samples of 3 seconds */
	assert_int_equal((int)totals.figures.rate_reached_hz, 66);
}

static void it_runs_while_it_was_seen_to_do_so(void **state)
{
	(void)state;
	hub_totals(hub, &totals);
	assert_false(totals.running);
	progress(0);
	hub_totals(hub, &totals);
	assert_true(totals.running);
	seen.now_ns += 30 * ns_per_second - 1;
	hub_totals(hub, &totals);
	assert_true(totals.running);
	seen.now_ns++;
	hub_totals(hub, &totals);
	assert_false(totals.running);
	take(7, 5, 0);
	hub_totals(hub, &totals);
	assert_true(totals.running);
	hub_stop(hub);
	hub_totals(hub, &totals);
	assert_false(totals.running);
}

static void heaps_of_the_processes_seen_last_are_known(void **state)
{
	(void)state;
	for (pid_t pid = 1; pid <= HUB_PROCESSES_MAX; pid++) {
		seen.now_ns++;
		take(pid, 1, 1000 + (uint64_t)pid);
	}
	seen.now_ns++;
	take(1, 1, 7);
	take(2, 1, 0); /* its heap was not read */
	hub_totals(hub, &totals);
	assert_int_equal(totals.process_count, HUB_PROCESSES_MAX);
	assert_int_equal(totals.processes[0].heap_bytes, 7);
	assert_string_equal(totals.processes[0].name, "made_up");
	seen.now_ns++;
	take(1000, 1, 8);
	hub_totals(hub, &totals);
	assert_int_equal(totals.process_count, HUB_PROCESSES_MAX);
	assert_int_equal(totals.processes[0].pid, 1);
	assert_int_equal(totals.processes[1].pid, 1000);
	assert_int_equal(totals.processes[1].heap_bytes, 8);
	assert_int_equal(totals.processes[2].heap_bytes, 1003);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_capture_has_the_samples_of_its_time),
		TEST(what_does_not_fit_into_a_recording_counts_as_dropped),
		TEST(nor_do_those_of_the_last_turn_of_a_loop),
		TEST(a_higher_mode_stays_for_a_while),
		TEST(what_needs_the_targets_for_itself_keeps_others_waiting),
		TEST(what_needs_the_targets_for_itself_waits_for_those_before),
		TEST(nobody_samples_while_a_heap_is_read),
		TEST(a_signal_ends_the_wait_for_a_heap),
		TEST(there_is_room_for_so_many),
		TEST(a_capture_that_cannot_begin_is_refused_in_the_end),
		TEST(a_client_that_is_gone_is_counted),
		TEST(after_the_end_there_is_nothing),
		TEST(files_may_be_short),
		TEST(a_full_disk_shows_at_the_end),
		TEST(runs_are_added_up),
		TEST(the_rate_is_that_of_all_runs),
		TEST(it_runs_while_it_was_seen_to_do_so),
		TEST(heaps_of_the_processes_seen_last_are_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

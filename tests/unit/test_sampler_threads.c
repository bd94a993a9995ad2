/* SPDX-License-Identifier: MIT */
/* Which threads the sampler asks at each look, and what it adds up of their times. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "src/sampler/sampler_state.h"
#include "tests/unit/instead_of.h"

enum { FIRST_TID = 100, FEW = 8, MANY = 12 };

static const uint64_t second = NS_PER_SECOND;

/* The threads of the target, what each has used since the last time, and what its clock has more. */
static struct {
	struct thread list[MANY];
	size_t count;
	uint64_t changes, unaccounted_ns;
	struct {
		uint64_t cpu_ns, waited_ns;
		int error;
	} next;
} threads;

static uint64_t now_ns;
static struct sampler_options options;
static struct sampler sampler;
static struct target target;

INSTEAD_OF(clock_gettime);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_time)
{
	(void)clock;
	*ret_time = (struct timespec){ .tv_sec = (time_t)(now_ns / second),
				       .tv_nsec = (long)(now_ns % second) };
	return 0;
}

INSTEAD_OF(threads_count);
size_t __wrap_threads_count(const struct threads *of)
{
	(void)of;
	return threads.count;
}

INSTEAD_OF(threads_at);
struct thread *__wrap_threads_at(const struct threads *of, size_t index)
{
	(void)of;
	assert_in_range(index, 0, threads.count - 1);
	return &threads.list[index];
}

INSTEAD_OF(threads_find);
struct thread *__wrap_threads_find(const struct threads *of, pid_t tid)
{
	(void)of;
	for (size_t i = 0; i < threads.count; i++)
		if (threads.list[i].tid == tid)
			return &threads.list[i];
	return NULL;
}

INSTEAD_OF(threads_changes);
uint64_t __wrap_threads_changes(const struct threads *of)
{
	(void)of;
	return threads.changes;
}

INSTEAD_OF(threads_unaccounted_ns);
uint64_t __wrap_threads_unaccounted_ns(const struct threads *of, uint64_t process_cpu_ns)
{
	(void)of;
	assert_int_equal(process_cpu_ns, target.cpu_ns);
	return threads.unaccounted_ns;
}

INSTEAD_OF(thread_measure);
int __wrap_thread_measure(struct threads *of, struct thread *thread, uint64_t *ret_used_ns)
{
	(void)of;
	if (threads.next.error)
		return threads.next.error;
	*ret_used_ns = threads.next.cpu_ns;
	thread->cpu_ns += threads.next.cpu_ns;
	thread->waited_ns += threads.next.waited_ns;
	return 0;
}

INSTEAD_OF(thread_refresh_name);
void __wrap_thread_refresh_name(const struct threads *of, struct thread *thread)
{
	(void)of;
	strcpy(thread->name, "renamed");
}

static int begin(void **state)
{
	(void)state;
	memset(&threads, 0, sizeof(threads));
	threads.count = MANY;
	threads.changes = 1;
	for (int i = 0; i < MANY; i++) {
		threads.list[i] = (struct thread){
			.tid = FIRST_TID + i, .serial = 1 + i, .cpu_ns = 7, .waited_ns = 3
		};
		snprintf(threads.list[i].name, sizeof(threads.list[i].name), "thread %d", i);
	}
	now_ns = 1000 * second;
	options = (struct sampler_options){ .rate_hz = 99 };
	sampler = (struct sampler){ .options = &options };
	target = (struct target){ .cpu_ns = 5 };
	return 0;
}

static int end(void **state)
{
	(void)state;
	target_forget_records(&target);
	assert_null(target.records);
	assert_null(target.known);
	return 0;
}

static struct thread_record *record_of(size_t index)
{
	struct thread_record *record = target_record(&target, &threads.list[index], now_ns);

	assert_non_null(record);
	return record;
}

/*---- Records ----*/

static void a_thread_has_one_record(void **state)
{
	struct thread_record *record = record_of(3);

	(void)state;
	assert_int_equal(record->tid, FIRST_TID + 3);
	assert_string_equal(record->name, "thread 3");
	assert_int_equal(record->cpu_ns, 7);
	assert_int_equal(record->waited_ns, 3);
	assert_int_equal(record->measured_ns, 0);
	now_ns += second;
	assert_ptr_equal(record_of(3), record);
	assert_ptr_not_equal(record_of(4), record);
	assert_string_equal(record_of(4)->name, "thread 4");
	target_name_thread(&target, &threads.list[3], record);
	assert_string_equal(record->name, "renamed");
}

static void a_record_ends_with_its_thread(void **state)
{
	(void)state;
	target_list_threads(&sampler, &target);
	assert_int_equal(HASH_COUNT(target.records), MANY);
	record_of(2)->has_run = record_of(3)->has_run = true;
	/* Another thread has the id of the third one, and the last one has ended. */
	threads.list[2].serial = MANY + 1;
	threads.list[2].cpu_ns = 1;
	threads.count--;
	threads.changes++;
	target_list_threads(&sampler, &target);
	assert_int_equal(target.known_count, MANY - 1);
	assert_int_equal(HASH_COUNT(target.records), MANY - 1);
	assert_false(record_of(2)->has_run);
	assert_int_equal(record_of(2)->cpu_ns, 1);
	assert_true(record_of(3)->has_run);
	/* Threads that come and go leave nothing. */
	for (uint64_t i = 2; i < 1000; i++) {
		threads.list[0].tid = threads.list[0].tid == FIRST_TID ? FIRST_TID - 1 : FIRST_TID;
		threads.list[0].serial = MANY + i;
		threads.changes++;
		target_list_threads(&sampler, &target);
	}
	assert_int_equal(HASH_COUNT(target.records), MANY - 1);
}

static bool measure(struct thread_record *record, uint64_t elapsed_ns, uint64_t cpu_ns, uint64_t waited_ns)
{
	now_ns += elapsed_ns;
	threads.next.cpu_ns = cpu_ns;
	threads.next.waited_ns = waited_ns;
	return target_measure(&sampler, &target, &threads.list[0], record);
}

static void the_time_of_a_thread_is_its_cpu_its_wait_and_its_sleep(void **state)
{
	struct thread_record *record = record_of(0);

	(void)state;
	/* When it began to sleep is not known before it was measured. */
	assert_true(measure(record, 100, 30, 20));
	assert_int_equal(record->on_cpu.pending_ns, 30);
	assert_int_equal(record->waiting.pending_ns, 20);
	assert_int_equal(record->asleep.pending_ns, 0);
	assert_true(record->has_run);
	assert_true(measure(record, 100, 30, 20));
	assert_int_equal(record->on_cpu.pending_ns, 60);
	assert_int_equal(record->waiting.pending_ns, 40);
	assert_int_equal(record->asleep.pending_ns, 50);
	assert_int_equal(record->ran_at_ns, now_ns);
	/* One that only waited has not run. */
	record->has_run = false;
	assert_true(measure(record, 100, 0, 60));
	assert_false(record->has_run);
	assert_int_equal(record->ran_at_ns, now_ns - 100);
	assert_int_equal(record->asleep.pending_ns, 90);
	assert_int_equal(record->waiting.pending_ns, 100);
	/* One that has ended is left as it was. */
	threads.next.error = -ESRCH;
	assert_false(measure(record, 100, 9, 9));
	assert_int_equal(record->on_cpu.pending_ns, 60);
	assert_int_equal(record->measured_ns, now_ns - 100);
	/* Its time so far may be discarded. */
	target_open_record(record, &threads.list[0], now_ns);
	assert_int_equal(record->on_cpu.pending_ns, 0);
	assert_int_equal(record->waiting.pending_ns, 0);
	assert_int_equal(record->asleep.pending_ns, 0);
	threads.next.error = 0;
	assert_true(measure(record, 100, 40, 50));
	assert_int_equal(record->on_cpu.pending_ns, 40);
	assert_int_equal(record->waiting.pending_ns, 50);
	assert_int_equal(record->asleep.pending_ns, 10);
}

/* The kernel counts a wait when it is over. */
static void a_wait_that_began_before_a_thread_was_known_is_cut(void **state)
{
	struct thread_record *record = record_of(0);

	(void)state;
	assert_true(measure(record, 100, 1, 0));
	assert_true(measure(record, 100, 10, 500));
	assert_int_equal(record->waiting.pending_ns, 90);
	assert_int_equal(record->asleep.pending_ns, 0);
	assert_int_equal(record->on_cpu.pending_ns, 11);
	/* Later, its sleep has had too much. */
	record->asleep.sample_count = 1;
	assert_true(measure(record, 100, 10, 500));
	assert_int_equal(record->waiting.pending_ns, 590);
	assert_int_equal(record->asleep.pending_ns, -410);
}

/* It got so many CPUs since the last measurement, after waits of so much time in all. */
static void get_cpus(struct thread_record *record, uint64_t count, uint64_t waited_ns)
{
	threads.list[0].runs += count;
	assert_true(measure(record, 100, 10, waited_ns));
}

static void check_waits(const struct thread_record *record, int64_t woken_ns, int64_t waiting_ns)
{
	assert_int_equal(record->woken.pending_ns, woken_ns);
	assert_int_equal(record->waiting.pending_ns, waiting_ns);
}

static void a_wait_after_a_sleep_is_where_the_thread_slept(void **state)
{
	struct thread_record *record = record_of(0);

	(void)state;
	get_cpus(record, 1, 20);
	check_waits(record, 0, 20); /* where it slept is unknown */
	record->sleep.known = true;
	record->sleep.runs = threads.list[0].runs;
	get_cpus(record, 0, 5); /* it waits, and has moved to another CPU */
	check_waits(record, 5, 20);
	get_cpus(record, 3, 30); /* the first one, and two after it had run */
	check_waits(record, 15, 40);
	get_cpus(record, 1, 7); /* it has run since */
	check_waits(record, 15, 47);
	record->sleep.runs = threads.list[0].runs;
	options.turns = true;
	get_cpus(record, 1, 9);
	check_waits(record, 15, 56);
	target_open_record(record, &threads.list[0], now_ns);
	check_waits(record, 0, 0);
}

/*---- Lively threads ----*/

static uint64_t lively_after(uint64_t gap_ns)
{
	struct thread_record record = { .ran_at_ns = now_ns };

	now_ns += gap_ns;
	target_note_run(&record, now_ns);
	assert_int_equal(record.ran_at_ns, now_ns);
	return record.lively_ns;
}

static void a_thread_is_lively_for_a_multiple_of_its_longest_sleep(void **state)
{
	struct thread_record record = { .ran_at_ns = now_ns };

	(void)state;
	assert_int_equal(lively_after(1), 5 * second);
	assert_int_equal(lively_after(2 * second), 8 * second);
	assert_int_equal(lively_after(149 * second), 596 * second);
	assert_int_equal(lively_after(151 * second), 600 * second);
	record.lively_ns = 20 * second;
	target_note_run(&record, record.ran_at_ns + second);
	assert_int_equal(record.lively_ns, 20 * second);
	target_note_run(&record, record.ran_at_ns + 6 * second);
	assert_int_equal(record.lively_ns, 24 * second);
	/* A new one may have begun just now. */
	assert_int_equal(record_of(0)->lively_ns, 5 * second);
	assert_int_equal(record_of(0)->visits_left, 16);
}

/* All are known, and only every third runs from now on. */
static void let_most_rest(void)
{
	target_list_threads(&sampler, &target);
	assert_int_equal(target.lively_count, MANY);
	now_ns += 5 * second;
	for (size_t i = 0; i < MANY; i += 3)
		target_note_run(record_of(i), now_ns);
}

static void threads_that_rest_come_last(void **state)
{
	(void)state;
	let_most_rest();
	for (size_t i = 0; i < MANY; i++)
		record_of(i)->presence = PRESENCE_ON_CPU;
	target_list_threads(&sampler, &target);
	assert_int_equal(target.known_count, MANY);
	assert_int_equal(target.lively_count, MANY / 3);
	for (size_t i = 0; i < MANY; i++) {
		const struct known_thread *known = &target.known[i];
		const bool runs = (known->thread->tid - FIRST_TID) % 3 == 0;

		assert_int_equal(runs, i < target.lively_count);
		assert_ptr_equal(known->record, record_of((size_t)(known->thread->tid - FIRST_TID)));
		assert_int_equal(known->record->presence, runs ? PRESENCE_ON_CPU : PRESENCE_OFF_CPU);
	}
}

static void all_are_lively_where_each_counts_or_there_are_few(void **state)
{
	for (int way = 0; way < 4; way++) {
		end(state);
		begin(state);
		let_most_rest();
		options.wall_clock = way == 1;
		sampler.closing = way == 2;
		threads.count = way == 3 ? FEW : MANY;
		assert_int_equal(target_has_few_threads(&target), way == 3);
		target_list_threads(&sampler, &target);
		assert_int_equal(target.known_count, threads.count);
		assert_int_equal(target.lively_count, way == 0 ? MANY / 3 : threads.count);
	}
	threads.count = FEW + 1;
	assert_false(target_has_few_threads(&target));
}

static void threads_are_listed_anew_after_a_change_or_a_second(void **state)
{
	(void)state;
	let_most_rest();
	target_list_threads(&sampler, &target);
	now_ns += second - 1;
	target_note_run(record_of(1), now_ns);
	target_list_threads(&sampler, &target);
	assert_int_equal(target.lively_count, MANY / 3);
	now_ns++;
	target_list_threads(&sampler, &target);
	assert_int_equal(target.lively_count, MANY / 3 + 1);
	target_note_run(record_of(2), now_ns);
	target_list_threads(&sampler, &target);
	assert_int_equal(target.lively_count, MANY / 3 + 1);
	threads.changes++;
	target_list_threads(&sampler, &target);
	assert_int_equal(target.lively_count, MANY / 3 + 2);
	/* The last look is at all of them. */
	sampler.closing = true;
	target_list_threads(&sampler, &target);
	assert_int_equal(target.lively_count, MANY);
}

static void those_that_rest_are_asked_for_time_that_others_have_not_used(void **state)
{
	(void)state;
	target_list_threads(&sampler, &target);
	threads.unaccounted_ns = 1000;
	sampler.closing = true;
	assert_false(target_others_may_have_run(&sampler, &target)); /* none rests */
	sampler.closing = false;
	let_most_rest();
	target_list_threads(&sampler, &target);
	assert_int_equal(target.lively_count, MANY / 3);
	target_note_all_seen(&target);
	assert_false(target_others_may_have_run(&sampler, &target));
	threads.unaccounted_ns = 1001;
	assert_true(target_others_may_have_run(&sampler, &target));
	/* Threads that came and went have used that for good. */
	target_note_all_seen(&target);
	assert_false(target_others_may_have_run(&sampler, &target));
	threads.unaccounted_ns = 10;
	target_note_all_seen(&target);
	threads.unaccounted_ns = 1001;
	assert_false(target_others_may_have_run(&sampler, &target));
	/* In any case, now and then and at the end. */
	sampler.closing = true;
	assert_true(target_others_may_have_run(&sampler, &target));
	sampler.closing = false;
	now_ns += 5 * second - 1;
	assert_false(target_others_may_have_run(&sampler, &target));
	now_ns++;
	assert_true(target_others_may_have_run(&sampler, &target));
}

static void one_that_was_seen_to_run_is_listed_as_lively_at_once(void **state)
{
	(void)state;
	let_most_rest();
	target_list_threads(&sampler, &target);
	target_note_all_seen(&target);
	target_list_threads(&sampler, &target);
	assert_int_equal(target.lively_count, MANY / 3);
	target_note_run(record_of(MANY - 1), now_ns);
	target_note_all_seen(&target);
	target_list_threads(&sampler, &target);
	assert_int_equal(target.lively_count, MANY / 3 + 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(a_thread_has_one_record),
		TEST(a_record_ends_with_its_thread),
		TEST(the_time_of_a_thread_is_its_cpu_its_wait_and_its_sleep),
		TEST(a_wait_that_began_before_a_thread_was_known_is_cut),
		TEST(a_wait_after_a_sleep_is_where_the_thread_slept),
		TEST(a_thread_is_lively_for_a_multiple_of_its_longest_sleep),
		TEST(threads_that_rest_come_last),
		TEST(all_are_lively_where_each_counts_or_there_are_few),
		TEST(threads_are_listed_anew_after_a_change_or_a_second),
		TEST(those_that_rest_are_asked_for_time_that_others_have_not_used),
		TEST(one_that_was_seen_to_run_is_listed_as_lively_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

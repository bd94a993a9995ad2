/* SPDX-License-Identifier: MIT */
/* Which processes `record --when` watches, and what is said of the first one for which a condition holds. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "output/reports/turns.h"
#include "src/linux/clocks/clock.h"
#include "src/linux/proc/follow.h"
#include "src/linux/proc/proc_file.h"
#include "src/watch/in_flight.h"
#include "src/watch/watch.h"
#include "tests/unit/followed.h"
#include "tests/unit/instead_of.h"

enum { FIRST = 100, PROCESSES = 4, UP_S = 50000, ASLEEP_S = 700, MANY_FILES = 100 };

static const uint64_t second = NS_PER_SECOND;

/* What /proc and nginx's memory tell of processes from FIRST on. */
static struct process {
	const char *name; /* NULL: there is none */
	char state;
	uint64_t cpu_s, start_s; /* since the machine's start */
	uint64_t resident_pages;
	int requests_error;                 /* they cannot be read */
	uint64_t age_ns;                    /* of the oldest request */
	unsigned int opens, opened, closes; /* tries, those that were good, and their ends */
} processes[PROCESSES];

static struct made_up_turns {
	struct turns_options options;
	unsigned int made, adds, keeps;
	struct turn turn; /* that the next sample is of; number 0: of none */
} turned;

static uint64_t now_ns;
static unsigned int flights;
static struct sampler_options sampler;
static struct condition conditions[CONDITIONS_MAX];
static unsigned int condition_count;
static struct watch *watch;
static char words[WATCH_WORDS_SIZE];

static struct process *process_of(pid_t pid)
{
	assert_in_range(pid, FIRST, FIRST + PROCESSES - 1);
	return &processes[pid - FIRST];
}

INSTEAD_OF(clock_gettime);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_time)
{
	/* The machine was asleep for a while. */
	const uint64_t now = clock == CLOCK_BOOTTIME ? now_ns + ASLEEP_S * second : now_ns;

	*ret_time = (struct timespec){ .tv_sec = (time_t)(now / second), .tv_nsec = (long)(now % second) };
	return 0;
}

INSTEAD_OF(proc_file_open);
int __wrap_proc_file_open(pid_t pid, const char *name)
{
	const struct process *process = process_of(pid);
	const unsigned long ticks = (unsigned long)sysconf(_SC_CLK_TCK);
	FILE *stream;
	int fd, kept;

	assert_string_equal(name, "stat");
	if (!process->name)
		return -ESRCH;
	fd = memfd_create("stat", MFD_CLOEXEC);
	kept = dup(fd);
	stream = fdopen(fd, "w");
	assert_non_null(stream);
	/* User and system time each have half of the CPU time. */
	fprintf(stream, "%d (%s) %c 1 2 3 4 5 6 7 8 9 10 %lu %lu 13 14 15 16 17 18 %lu 20 %lu 22 23\n",
		(int)pid, process->name, process->state, (unsigned long)process->cpu_s * ticks / 2,
		(unsigned long)process->cpu_s * ticks / 2, (unsigned long)process->start_s * ticks,
		(unsigned long)process->resident_pages);
	fclose(stream);
	assert_int_equal(lseek(kept, 0, SEEK_SET), 0);
	assert_in_range(kept, 0, MANY_FILES); /* none stays open */
	return kept;
}

INSTEAD_OF(turns_new);
struct turns *__wrap_turns_new(const struct turns_options *options)
{
	turned.made++;
	turned.options = *options;
	return (struct turns *)&turned;
}

INSTEAD_OF(turns_free);
void __wrap_turns_free(struct turns *turns)
{
	turned.made -= turns != NULL;
}

INSTEAD_OF(turns_keep_functions);
void __wrap_turns_keep_functions(const struct turns *turns)
{
	(void)turns;
	turned.keeps++;
}

INSTEAD_OF(turns_add);
int __wrap_turns_add(struct turns *turns, const struct sample *sample)
{
	(void)turns;
	turned.adds++;
	if (turned.turn.number)
		assert_int_equal(turned.options.take(turned.options.context, &turned.turn, sample), 0);
	return 0;
}

INSTEAD_OF(in_flight_new);
struct in_flight *__wrap_in_flight_new(const struct given_layout *layout)
{
	assert_null(layout);
	flights++;
	return (struct in_flight *)&flights;
}

INSTEAD_OF(in_flight_free);
void __wrap_in_flight_free(struct in_flight *in_flight)
{
	flights -= in_flight != NULL;
}

INSTEAD_OF(in_flight_open);
int __wrap_in_flight_open(struct in_flight *in_flight, pid_t pid, struct in_flight_worker **ret_worker)
{
	struct process *process = process_of(pid);

	(void)in_flight;
	process->opens++;
	process->opened += !process->requests_error;
	if (!process->requests_error)
		*ret_worker = (struct in_flight_worker *)process;
	return process->requests_error;
}

INSTEAD_OF(in_flight_close);
void __wrap_in_flight_close(struct in_flight_worker *worker)
{
	if (worker)
		((struct process *)worker)->closes++;
}

INSTEAD_OF(in_flight_oldest);
int __wrap_in_flight_oldest(struct in_flight_worker *worker, uint64_t *ret_age_ns)
{
	const struct process *process = (const struct process *)worker;

	if (!process->requests_error)
		*ret_age_ns = process->age_ns;
	return process->requests_error;
}

/*---- A watch ----*/

static int begin(void **state)
{
	static const pid_t pids[] = { FIRST, FIRST + 1 };

	(void)state;
	followed_begin();
	memset(&turned, 0, sizeof(turned));
	for (size_t i = 0; i < PROCESSES; i++)
		processes[i] = (struct process){ .name = "nginx", .state = 'S', .start_s = 40000 + i };
	now_ns = UP_S * second;
	flights = condition_count = 0;
	watch = NULL;
	sampler = (struct sampler_options){ .pids = pids, .pid_count = 2 };
	return 0;
}

static int end(void **state)
{
	(void)state;
	watch_free(watch);
	assert_int_equal(followed.made, 0);
	assert_int_equal(turned.made, 0);
	assert_int_equal(flights, 0);
	for (size_t i = 0; i < PROCESSES; i++)
		assert_int_equal(processes[i].closes, processes[i].opened);
	return 0;
}

static void open_watch(void)
{
	const struct watch_options options = { .conditions = conditions,
					       .condition_count = condition_count,
					       .sampler = &sampler };

	watch = watch_new(&options);
}

static void wait_for(const char *text)
{
	assert_true(condition_read(text, &conditions[condition_count++]));
}

/* Has a condition begun to hold? */
static bool look(void)
{
	now_ns += second;
	return watch_look(watch, now_ns, words);
}

static void take(pid_t pid, pid_t tid, uint64_t live_bytes)
{
	const struct sample sample = {
		.time_ns = now_ns, .pid = pid, .tid = tid, .gc = { .live_bytes = live_bytes }
	};

	watch_sample(watch, &sample);
}

/*---- What is said ----*/

static void cpu_time_is_that_of_a_core(void **state)
{
	bool holds = false;

	(void)state;
	wait_for("cpu>90% for 10s");
	open_watch();
	for (int i = 0; i < 8; i++) {
		assert_false(look());
		processes[1].cpu_s += 2;
	}
	for (int i = 0; i < 4 && !holds; i++) {
		holds = look();
		processes[1].cpu_s += 2;
	}
	assert_true(holds);
	assert_string_equal(words, "cpu>90% for 10s: nginx (pid 101) used 200 % of a core in 10 s");
	/* It is told once. */
	assert_false(look());
}

static void memory_is_what_is_resident(void **state)
{
	const uint64_t mib_pages = (1 << 20) / (uint64_t)sysconf(_SC_PAGESIZE);

	(void)state;
	wait_for("rss>3M");
	open_watch();
	processes[0].resident_pages = 3 * mib_pages;
	assert_false(look());
	processes[0].resident_pages++;
	processes[0].resident_pages += mib_pages / 2;
	assert_true(look());
	assert_string_equal(words, "rss>3M: nginx (pid 100) had 3.5 MiB in memory");
	assert_false(look());
}

static void the_first_condition_that_holds_is_told(void **state)
{
	(void)state;
	wait_for("rss>1M");
	wait_for("rss>2M");
	open_watch();
	processes[0].resident_pages = processes[1].resident_pages = 1 << 20;
	assert_true(look());
	assert_memory_equal(words, "rss>1M: nginx (pid 100) had ", strlen("rss>1M: nginx (pid 100) had "));
	assert_false(look());
}

static void the_name_of_a_process_may_hold_anything(void **state)
{
	(void)state;
	wait_for("rss>1M");
	processes[0].name = "a) S 1 (b c";
	processes[0].resident_pages = 1 << 20;
	open_watch();
	assert_true(look());
	assert_non_null(strstr(words, ": a) S 1 (b c (pid 100) had"));
}

/*---- Which processes ----*/

static void a_process_that_has_ended_is_watched_no_more(void **state)
{
	static const char ends[] = { 'Z', 'X', '\0', 'S' };

	for (size_t i = 0; i < sizeof(ends); i++) {
		begin(state);
		wait_for("rss>1M");
		open_watch();
		assert_false(look());
		processes[0].state = ends[i] ? ends[i] : 'S';
		if (!ends[i])
			processes[0].name = NULL;
		if (ends[i] == 'S')
			processes[0].start_s++; /* another one has its id */
		assert_false(look());
		/* It comes to life, which nobody is told of. */
		processes[0] = (struct process){
			.name = "nginx", .state = 'S', .start_s = 40000, .resident_pages = 1 << 20
		};
		assert_false(look());
		processes[1].resident_pages = 1 << 20;
		assert_true(look());
		end(state);
	}
	begin(state);
}

static void processes_that_begin_later_are_found(void **state)
{
	wait_for("rss>1M");
	sampler.subprocesses = true;
	open_watch();
	assert_non_null(watch);
	assert_true(followed.options.descendants);
	assert_int_equal(followed.adds, 2);
	processes[3].resident_pages = 1 << 20;
	followed.finds = FIRST + 3;
	followed.due_ns = now_ns + 3 * second;
	assert_false(look());
	assert_false(look());
	assert_int_equal(followed.searches, 0);
	assert_true(look());
	assert_int_equal(followed.searches, 1);
	assert_non_null(strstr(words, "(pid 103)"));
	end(state);
	/* No other is looked for, where none is to be followed. */
	begin(state);
	wait_for("rss>1M");
	open_watch();
	assert_false(look());
	assert_int_equal(followed.searches, 0);
	end(state);
	begin(state);
	wait_for("rss>1M");
	sampler.subprocesses = true;
	followed.error = -ENOMEM;
	open_watch();
	assert_null(watch);
}

static void a_process_that_has_a_sample_is_watched(void **state)
{
	(void)state;
	wait_for("rss>1M");
	open_watch();
	processes[2].resident_pages = 1 << 20;
	assert_false(look());
	take(FIRST + 2, FIRST + 2, 0);
	assert_true(look());
	assert_non_null(strstr(words, "(pid 102)"));
}

/*---- Heaps ----*/

/* A cycle of a second, and what is left of the heap. Says whether the condition began to hold. */
static bool cycle(pid_t pid, pid_t tid, uint64_t live_bytes)
{
	now_ns += second;
	take(pid, tid, live_bytes);
	return watch_look(watch, now_ns, words);
}

static void a_heap_that_grows_is_told(void **state)
{
	bool holds = false;

	(void)state;
	wait_for("rss>100G");
	wait_for("heap+50%/10s");
	open_watch();
	for (int i = 0; i < 30; i++)
		assert_false(cycle(FIRST, FIRST + 50, 1 << 20));
	for (uint64_t i = 0; i < 10 && !holds; i++)
		holds = cycle(FIRST, FIRST + 50, (2 + i) << 20);
	assert_true(holds);
	assert_memory_equal(words, "heap+50%/10s: nginx (pid 100) had a Lua heap that grew by ",
			    strlen("heap+50%/10s: nginx (pid 100) had a Lua heap that grew by "));
}

static void each_thread_has_a_heap_of_its_own(void **state)
{
	(void)state;
	wait_for("heap+50%/10s");
	open_watch();
	for (int i = 0; i < 60; i++) {
		assert_false(cycle(FIRST, FIRST + 50, 1 << 20));
		assert_false(cycle(FIRST, FIRST + 51, 9 << 20));
	}
}

/* Thread ids are given again. */
static void a_process_that_ends_takes_its_heaps_along(void **state)
{
	(void)state;
	wait_for("heap+50%/10s");
	open_watch();
	for (int i = 0; i < 30; i++)
		assert_false(cycle(FIRST, FIRST + 50, 1 << 20));
	processes[0].name = NULL;
	for (int i = 0; i < 30; i++)
		assert_false(cycle(FIRST + 1, FIRST + 50, 9 << 20));
	/* Heaps of others stay known. */
	processes[0].name = "nginx";
	take(FIRST, FIRST, 0);
	assert_false(look());
	processes[0].name = NULL;
	assert_false(cycle(FIRST + 1, FIRST + 50, 18 << 20));
	assert_true(cycle(FIRST + 1, FIRST + 50, 18 << 20));
}

/* It grows until it has all that it needs. */
static void a_process_that_has_just_begun_may_grow(void **state)
{
	wait_for("heap+50%/100s");
	processes[0].start_s = UP_S +
			       ASLEEP_S; /* just now; the clock of starts goes on while the machine sleeps */
	open_watch();
	for (uint64_t i = 0; i < 90; i++)
		assert_false(cycle(FIRST, FIRST + 50, (1 + i) << 20));
	for (uint64_t i = 0; i < 200; i++)
		assert_false(cycle(FIRST, FIRST + 50, 90 << 20));
	end(state);
	/* One that is older may not. */
	begin(state);
	wait_for("heap+50%/100s");
	open_watch();
	for (uint64_t i = 0; i < 200; i++) {
		if (cycle(FIRST, FIRST + 50, (1 + i) << 20))
			return;
	}
	fail();
}

/*---- Turns of event loops ----*/

static bool turn(uint64_t number, uint64_t length_ns, bool is_over)
{
	turned.turn = (struct turn){ .pid = FIRST,
				     .tid = FIRST,
				     .number = number,
				     .begin_ns = now_ns - length_ns,
				     .end_ns = is_over ? now_ns : 0 };
	take(FIRST, FIRST, 0);
	turned.turn.number = 0;
	return look();
}

static void a_long_turn_is_told_once(void **state)
{
	(void)state;
	wait_for("blocked>500ms");
	wait_for("blocked>200ms");
	open_watch();
	assert_int_equal(turned.options.threshold_ns, second / 5);
	assert_false(turn(1, second / 5 - 1, true));
	assert_true(turn(10, second / 5, true));
	assert_true(turn(2, second / 4, false));
	assert_string_equal(words, "blocked>200ms: nginx (pid 100) took 250 ms for a turn of its event loop");
	assert_false(turn(2, second / 4 + 1, true));
	assert_true(turn(3, second, true));
	assert_string_equal(words,
			    "blocked>500ms: nginx (pid 100) took 1000 ms for a turn of its event loop");
	turned.options.close(turned.options.context, &turned.turn, true);
	watch_keep(watch);
	assert_int_equal(turned.keeps, 1);
	assert_int_equal(turned.adds, 5);
}

static void turns_are_looked_at_only_where_a_condition_wants_it(void **state)
{
	(void)state;
	wait_for("rss>1M");
	open_watch();
	assert_int_equal(turned.made, 0);
	assert_int_equal(flights, 0);
	take(FIRST, FIRST, 0);
	watch_keep(watch);
	assert_int_equal(turned.adds, 0);
	assert_int_equal(turned.keeps, 0);
}

/*---- Requests ----*/

static void a_request_that_takes_long_is_told(void **state)
{
	(void)state;
	wait_for("latency>1s");
	open_watch();
	assert_int_equal(flights, 1);
	processes[1].age_ns = second;
	assert_false(look());
	processes[1].age_ns = 1500 * second / 1000;
	assert_true(look());
	assert_string_equal(words, "latency>1s: nginx (pid 101) had a request in flight for 1.50 s");
	assert_int_equal(processes[1].opens, 1);
}

static void a_process_without_requests_is_asked_again_now_and_then(void **state)
{
	(void)state;
	wait_for("latency>1s");
	processes[1].requests_error = -ENOTSUP; /* the master */
	open_watch();
	for (int i = 0; i < 10; i++)
		assert_false(look());
	assert_int_equal(processes[1].opens, 1);
	assert_int_equal(processes[0].opens, 1);
	processes[1].requests_error = 0;
	processes[1].age_ns = 2 * second;
	assert_true(look());
	assert_int_equal(processes[1].opens, 2);
	/* What cannot be read any more is opened anew. */
	processes[1].requests_error = -EFAULT;
	assert_false(look());
	assert_int_equal(processes[1].closes, 1);
	processes[1].requests_error = 0;
	for (int i = 0; i < 10; i++)
		look();
	assert_int_equal(processes[1].opens, 3);
	assert_int_equal(processes[0].opens, 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(cpu_time_is_that_of_a_core),
		TEST(memory_is_what_is_resident),
		TEST(the_first_condition_that_holds_is_told),
		TEST(the_name_of_a_process_may_hold_anything),
		TEST(a_process_that_has_ended_is_watched_no_more),
		TEST(processes_that_begin_later_are_found),
		TEST(a_process_that_has_a_sample_is_watched),
		TEST(a_heap_that_grows_is_told),
		TEST(each_thread_has_a_heap_of_its_own),
		TEST(a_process_that_ends_takes_its_heaps_along),
		TEST(a_process_that_has_just_begun_may_grow),
		TEST(a_long_turn_is_told_once),
		TEST(turns_are_looked_at_only_where_a_condition_wants_it),
		TEST(a_request_that_takes_long_is_told),
		TEST(a_process_without_requests_is_asked_again_now_and_then),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * Front, guard and engine: which files they have, and what becomes of an engine that is stopped or told to
 * end.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/apart/apart.h"
#include "src/apart/blocked.h"
#include "src/linux/proc/proc_text.h"
#include "src/linux/proc/process.h"
#include "src/program/wake_signal.h"
#include "tests/unit/instead_of.h"

enum {
	PATIENCE_MS = 20000,
	GOES_ON_MS = 100, /* the guard kills one that stays stopped for a third of that */
	BLOCKER = 77,
};

/* What the engine says. */
struct told {
	bool has_inherited, has_own; /* of the front's files */
	bool has_inherited_later;    /* once the command has them */
	bool is_concluded;           /* it was told to end, or came to its end */
	bool goes_on;                /* after it was away */
};

static struct {
	int inherited[2], own[2]; /* pipes, that a command inherits and that it does not */
	struct told told;
	unsigned int count, updates, results;
	int signal; /* the front gets it with the first message */
	int interrupted_by;
	bool by_process;
	uint64_t away_ns;
} front;

/* In all processes. */
static volatile struct all {
	bool has_timer;   /* that continues the engine: it is not away */
	bool timer_ended; /* while the engine was away */
	bool timer_began; /* once it was back */
	bool was_rescued; /* another process had to continue the engine, as nobody else did */
	bool is_blocked;  /* the engine: a thread of it waits for the lock of BLOCKER's memory */
	bool watch_waits; /* for that lock as well */
} * all;

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static void pause_for_ms(long ms)
{
	const struct timespec moment = { .tv_nsec = ms * 1000 * 1000 };

	nanosleep(&moment, NULL);
}

static void take(struct apart *apart, void *context, const unsigned char *bytes, size_t size)
{
	(void)apart;
	(void)context;
	assert_int_equal(size, sizeof(front.told));
	memcpy(&front.told, bytes, size);
	if (front.count++ == 0 && front.signal)
		kill(getpid(), front.signal);
}

static void update(struct apart *apart, void *context)
{
	unsigned int results;

	(void)context;
	front.updates++;
	if (apart_results(apart, &results))
		front.results = results;
	front.interrupted_by = apart_interrupted_by(apart, &front.by_process);
	front.away_ns = apart_away_ns(apart);
}

/* Its work done, the engine has come to its end by itself. */
static void run(void (*work)(struct apart *apart, void *context), bool keeps_standard_files)
{
	const struct apart_options options = { .work = work,
					       .take = take,
					       .update = update,
					       .results_size = sizeof(front.results),
					       .can_be_concluded = true,
					       .keeps_standard_files = keeps_standard_files };
	struct apart_outcome outcome = { .end = APART_KILLED };

	assert_int_equal(apart_run(&options, &outcome), 0);
	assert_int_equal(outcome.end, APART_CONCLUDED);
	assert_int_equal(outcome.blocked_pid, 0);
}

static int begin(void **state)
{
	(void)state;
	memset(&front, 0, sizeof(front));
	return pipe(front.inherited) || pipe2(front.own, O_CLOEXEC);
}

static int end(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		close(front.own[i]);
		if (is_open(front.inherited[i]))
			close(front.inherited[i]);
	}
	return 0;
}

static void tell_files(struct apart *apart, void *context)
{
	struct told told = { .has_inherited = is_open(front.inherited[0]) && is_open(front.inherited[1]),
			     .has_own = is_open(front.own[0]) || is_open(front.own[1]) };

	(void)context;
	apart_close_standard_files(apart);
	told.has_inherited_later = is_open(front.inherited[0]) || is_open(front.inherited[1]);
	apart_send(apart, &told, sizeof(told));
}

/* The reader of a pipe must not wait for the engine to close it. */
static void the_engine_has_none_of_the_fronts_files(void **state)
{
	(void)state;
	run(tell_files, false);
	assert_int_equal(front.count, 1);
	assert_false(front.told.has_own);
	assert_false(front.told.has_inherited);
	assert_true(is_open(front.own[0]) && is_open(front.own[1]));
	assert_true(is_open(front.inherited[0]) && is_open(front.inherited[1]));
}

static void what_a_command_inherits_the_engine_keeps_for_it(void **state)
{
	(void)state;
	run(tell_files, true);
	assert_int_equal(front.count, 1);
	assert_false(front.told.has_own);
	assert_true(front.told.has_inherited);
	assert_false(front.told.has_inherited_later);
	/* The front has no use for it. */
	assert_true(is_open(front.own[0]) && is_open(front.own[1]));
	assert_false(is_open(front.inherited[0]) || is_open(front.inherited[1]));
}

static void stop_itself(struct apart *apart, void *context)
{
	const struct told told = { .is_concluded = false };

	(void)context;
	for (int i = 0; i < 3; i++) {
		kill(getpid(), SIGSTOP);
		pause_for_ms(GOES_ON_MS);
		apart_send(apart, &told, sizeof(told));
	}
}

static void an_engine_that_is_stopped_goes_on(void **state)
{
	(void)state;
	run(stop_itself, false);
	assert_int_equal(front.count, 3);
}

static void wait_for_wish(struct apart *apart, void *context)
{
	struct told told = { .is_concluded = false };

	(void)context;
	apart_send(apart, &told, sizeof(told));
	for (int i = 0; i < PATIENCE_MS && apart_wish(apart) != APART_CONCLUDE; i++)
		pause_for_ms(1);
	told.is_concluded = apart_wish(apart) == APART_CONCLUDE;
	apart_send(apart, &told, sizeof(told));
}

static void a_signal_to_the_front_concludes_the_work(void **state)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		if (i) {
			end(state);
			begin(state);
		}
		front.signal = signals[i];
		run(wait_for_wish, false);
		assert_int_equal(front.count, 2);
		assert_true(front.told.is_concluded);
		assert_int_equal(front.interrupted_by, signals[i]);
		assert_true(front.by_process);
	}
}

INSTEAD_OF(timer_settime);
int __wrap_timer_settime(timer_t timer, int flags, const struct itimerspec *time, struct itimerspec *ret_old)
{
	const int error = __real_timer_settime(timer, flags, time, ret_old);

	all->has_timer = time->it_value.tv_sec || time->it_value.tv_nsec;
	return error;
}

static bool wait_for_timer(bool has_timer)
{
	for (int i = 0; i < PATIENCE_MS && all->has_timer != has_timer; i++)
		pause_for_ms(1);
	return all->has_timer == has_timer;
}

/* A process that continues the front once the engine is away. */
static pid_t continue_front(pid_t front_pid)
{
	const pid_t child = fork();

	if (child)
		return child;
	all->timer_ended = wait_for_timer(false);
	kill(front_pid, SIGCONT);
	_exit(0);
}

/* One that continues the engine if nobody else does. */
static pid_t rescue_later(pid_t engine)
{
	const pid_t child = fork();

	if (child)
		return child;
	for (int i = 0; i < PATIENCE_MS; i++)
		pause_for_ms(1);
	all->was_rescued = true;
	kill(engine, SIGCONT);
	_exit(0);
}

static void end_child(pid_t child)
{
	if (child < 0)
		return;
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

/* Another process; it is stopped on return. */
static void stop(pid_t pid)
{
	struct process process = { .state = 'R' };

	kill(pid, SIGSTOP);
	for (int i = 0; i < PATIENCE_MS && process.state != 'T'; i++) {
		pause_for_ms(1);
		if (process_read(pid, &process) == 0)
			process_clear(&process);
	}
}

static void wait_for(const struct apart *apart, enum apart_wish wish)
{
	for (int i = 0; i < PATIENCE_MS && apart_wish(apart) != wish; i++)
		pause_for_ms(1);
}

/* The user stops ljspy for a while; later something stops all three of its processes at once. */
static void stay_away_and_be_stopped(struct apart *apart, void *context)
{
	const pid_t front_pid = apart_own_pids(apart)[0], guard = apart_own_pids(apart)[1];
	struct told told = { .is_concluded = false };
	pid_t child;

	(void)context;
	stop(front_pid);
	wait_for(apart, APART_LET_GO);
	child = continue_front(front_pid);
	told.goes_on = apart_stay_away(apart);
	end_child(child);
	apart_send(apart, &told, sizeof(told));
	/* The engine's main thread notices that it is no longer away. */
	all->timer_began = wait_for_timer(true);
	child = rescue_later(getpid());
	stop(front_pid);
	stop(guard);
	kill(getpid(), SIGSTOP);
	kill(front_pid, SIGCONT);
	kill(guard, SIGCONT);
	end_child(child);
	told.is_concluded = true;
	apart_send(apart, &told, sizeof(told));
}

static void an_engine_that_was_away_is_not_left_stopped(void **state)
{
	(void)state;
	run(stay_away_and_be_stopped, false);
	assert_int_equal(front.count, 2);
	assert_true(front.told.goes_on);
	assert_true(front.told.is_concluded);
	assert_true(front.away_ns > 0);
	assert_true(all->timer_ended);
	assert_true(all->timer_began);
	assert_false(all->was_rescued);
}

INSTEAD_OF(blocked_for_long);
bool __wrap_blocked_for_long(struct blocked *blocked, bool rests, uint64_t now_ns, pid_t *ret_pid)
{
	*ret_pid = BLOCKER;
	return all->is_blocked || __real_blocked_for_long(blocked, rests, now_ns, ret_pid);
}

INSTEAD_OF(proc_text_read);
ssize_t __wrap_proc_text_read(pid_t tid, const char *file, char *text, size_t room)
{
	if (!all->is_blocked || tid != BLOCKER)
		return __real_proc_text_read(tid, file, text, room);
	if (strcmp(file, "statm") == 0)
		return snprintf(text, room, "34 1 0 0 0 34 0\n");
	all->watch_waits = true;
	pause_for_ms(GOES_ON_MS);
	return 0;
}

static void be_blocked(struct apart *apart, void *context)
{
	(void)apart;
	(void)context;
	all->is_blocked = true;
	for (int i = 0; i < PATIENCE_MS; i++)
		pause_for_ms(1);
}

/* Only its end lets its tracees go. */
static void an_engine_that_is_blocked_ends_without_waiting_for_the_same(void **state)
{
	const struct apart_options options = { .work = be_blocked, .take = take, .update = update };
	struct apart_outcome outcome = { .end = APART_CONCLUDED };

	(void)state;
	assert_int_equal(apart_run(&options, &outcome), 0);
	all->is_blocked = false;
	assert_int_equal(outcome.end, APART_BLOCKED);
	assert_int_equal(outcome.blocked_pid, BLOCKER);
	assert_true(outcome.blocked_in_exec);
	assert_false(all->watch_waits);
}

static void publish(struct apart *apart, void *context)
{
	(void)context;
	for (unsigned int i = 1; i <= 5; i++)
		apart_publish(apart, &i);
}

static void the_front_has_the_last_results(void **state)
{
	(void)state;
	run(publish, false);
	assert_true(front.updates > 0);
	assert_int_equal(front.results, 5);
	assert_int_equal(front.interrupted_by, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(the_engine_has_none_of_the_fronts_files),
		TEST(what_a_command_inherits_the_engine_keeps_for_it),
		TEST(an_engine_that_is_stopped_goes_on),
		TEST(a_signal_to_the_front_concludes_the_work),
		TEST(an_engine_that_was_away_is_not_left_stopped),
		TEST(an_engine_that_is_blocked_ends_without_waiting_for_the_same),
		TEST(the_front_has_the_last_results),
	};
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD, WAKE_SIGNAL };
	sigset_t blocked;

	all = mmap(NULL, sizeof(*all), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (all == MAP_FAILED)
		return 1;
	sigemptyset(&blocked);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaddset(&blocked, signals[i]);
	sigprocmask(SIG_BLOCK, &blocked, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

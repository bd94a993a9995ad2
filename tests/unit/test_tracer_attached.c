/* SPDX-License-Identifier: MIT */
/* Tracing where the kernel has no PTRACE_SEIZE, by SIGSTOP. The kernel and its threads are made up. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "src/linux/tracer/tracer.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/made_up_tracing.h"

enum { FIRST = TRACED_FIRST, SECOND = TRACED_SECOND, THIRD = TRACED_THIRD, OTHER_PID = 90, MS = 1000 * 1000 };

static struct tracer *tracer;
static struct tracee *first, *second;

/* A signal for it waits, from here or there. */
static void gets(pid_t tid, int signal, int code, pid_t sender)
{
	struct traced *traced = traced_of(tid);

	traced->signal = (siginfo_t){ .si_code = code };
	traced->signal.si_pid = sender;
	traced->signal_error = 0;
	traced_gets(tid, signal);
}

static void poll_signal(pid_t tid, int signal, int code, pid_t sender)
{
	gets(tid, signal, code, sender);
	tracer_poll(tracer);
}

/* That of the kernel when it is attached to, and that of ljspy. */
static void poll_attached(pid_t tid)
{
	poll_signal(tid, SIGSTOP, SI_KERNEL, 0);
}

static void poll_own_stop(pid_t tid)
{
	poll_signal(tid, SIGSTOP, SI_TKILL, getpid());
}

/* It has stopped for job control. */
static void poll_job_stop(pid_t tid)
{
	traced_of(tid)->signal_error = EINVAL;
	traced_gets(tid, SIGTSTP);
	tracer_poll(tracer);
}

static struct tracee *attach(pid_t pid, pid_t tid)
{
	struct tracee *tracee = NULL;

	assert_int_equal(tracer_seize(tracer, pid, tid, &tracee), 0);
	return tracee;
}

static int begin(void **state)
{
	(void)state;
	tracing_begin();
	for (int i = 0; i < TRACED_MAX; i++)
		tracing.threads[i].seize_error = EIO;
	tracer = tracer_new();
	assert_non_null(tracer);
	tracer_allow_attach(tracer);
	first = attach(FIRST, FIRST);
	second = attach(FIRST, SECOND);
	assert_told("seize 100; attach 100; seize 101; attach 101; ");
	return 0;
}

/* All have stopped once. */
static int begin_stopped(void **state)
{
	begin(state);
	poll_attached(FIRST);
	poll_attached(SECOND);
	assert_told("options 100; go on 100 0; options 101; go on 101 0; ");
	return 0;
}

static int end(void **state)
{
	(void)state;
	tracer_free(tracer);
	return 0;
}

static void none_is_attached_to_unless_that_is_allowed(void **state)
{
	struct tracer *other = tracer_new();
	struct tracee *tracee = first;

	(void)state;
	assert_int_equal(tracer_seize(other, THIRD, THIRD, &tracee), -EIO);
	assert_told("seize 102; ");
	tracer_allow_attach(other);
	traced_of(THIRD)->attach_error = EACCES;
	assert_int_equal(tracer_seize(other, THIRD, THIRD, &tracee), -EACCES);
	assert_ptr_equal(tracee, first);
	assert_null(tracer_find(other, THIRD));
	/* Where there is PTRACE_SEIZE, it is not needed. */
	traced_of(THIRD)->seize_error = EACCES;
	assert_int_equal(tracer_seize(other, THIRD, THIRD, &tracee), -EACCES);
	assert_told("seize 102; attach 102; seize 102; ");
	tracer_free(other);
}

static void the_stop_of_attaching_ends_at_once(void **state)
{
	(void)state;
	poll_attached(FIRST);
	assert_told("options 100; go on 100 0; ");
	assert_int_equal(first->state, TRACEE_RUNNING);
	/* It may as well be the one that the first look waits for. */
	gets(SECOND, SIGSTOP, SI_KERNEL, 0);
	assert_int_equal(tracer_stop(tracer, second, MS), 0);
	assert_told("options 101; ");
	assert_int_equal(second->state, TRACEE_HELD);
	tracer_resume(tracer, second);
	assert_told("go on 101 0; ");
}

static void first_stops(void)
{
	gets(FIRST, SIGSTOP, SI_TKILL, getpid());
	tracing.is_woken = true;
}

static void a_look_sends_one_sigstop(void **state)
{
	(void)state;
	traced_of(FIRST)->interrupted = true;
	tracing.asleep = first_stops;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(tracer_stop(tracer, first, MS), 0);
		assert_int_equal(first->state, TRACEE_HELD);
		tracer_resume(tracer, first);
		assert_told("kill 100 100 19; restart 100; go on 100 0; ");
	}
	tracing.asleep = NULL;
	assert_int_equal(tracer_stop(tracer, first, MS), -ETIMEDOUT);
	assert_int_equal(tracer_stop(tracer, first, MS), -ETIMEDOUT);
	assert_told("kill 100 100 19; ");
	poll_own_stop(FIRST);
	assert_told("restart 100; go on 100 0; ");
	/* Of one that it cannot be sent to there is an end to wait for. */
	traced_of(FIRST)->ask_error = ESRCH;
	traced_exits(FIRST, 0);
	assert_int_equal(tracer_stop(tracer, first, MS), -ESRCH);
}

static void a_sigstop_of_somebody_else_is_passed_on(void **state)
{
	(void)state;
	poll_signal(FIRST, SIGSTOP, SI_USER, OTHER_PID);
	assert_told("deliver 100 19; go on 100 19; ");
	poll_signal(FIRST, SIGSTOP, SI_TKILL, OTHER_PID);
	assert_told("deliver 100 19; go on 100 19; ");
	poll_signal(FIRST, SIGUSR1, SI_KERNEL, 0);
	assert_told("deliver 100 10; go on 100 10; ");
	/* While one of ljspy's is on its way, too. */
	assert_int_equal(tracer_stop(tracer, first, MS), -ETIMEDOUT);
	poll_signal(FIRST, SIGSTOP, SI_USER, OTHER_PID);
	assert_told("kill 100 100 19; deliver 100 19; go on 100 19; ");
	/* One of ljspy's of which it does not know any more: the thread was another one before execve(). */
	poll_own_stop(FIRST);
	poll_own_stop(FIRST);
	assert_told("go on 100 0; go on 100 0; ");
}

static void the_end_of_a_job_stop_is_seen_by_the_signal_that_waits(void **state)
{
	(void)state;
	poll_job_stop(FIRST);
	assert_told("");
	assert_int_equal(first->state, TRACEE_JOB_STOPPED);
	tracer_poll(tracer);
	traced_of(FIRST)->process.pending_signals = ~(UINT64_C(1) << (SIGCONT - 1));
	traced_of(SECOND)->process.pending_signals = UINT64_MAX;
	tracer_poll(tracer);
	assert_told("");
	traced_of(FIRST)->process.pending_signals = UINT64_C(1) << (SIGCONT - 1);
	traced_of(FIRST)->process_error = -ESRCH;
	tracer_poll(tracer);
	assert_told("");
	traced_of(FIRST)->process_error = 0;
	tracer_poll(tracer);
	assert_told("go on 100 0; ");
	assert_int_equal(first->state, TRACEE_RUNNING);
}

/* It has stopped already. */
static void a_stopped_job_is_held_without_a_signal(void **state)
{
	(void)state;
	poll_job_stop(FIRST);
	tracing.now_ns += MS;
	assert_int_equal(tracer_stop(tracer, first, MS), 0);
	assert_int_equal(first->state, TRACEE_HELD);
	assert_int_equal(first->stopped_ns, tracing.now_ns);
	tracer_resume(tracer, first);
	assert_int_equal(first->state, TRACEE_JOB_STOPPED);
	assert_told("");
}

/* SIGCONT takes each SIGSTOP of the process away that is on its way. */
static void stops_that_sigcont_takes_away_are_sent_again(void **state)
{
	struct tracee *other;

	(void)state;
	other = attach(THIRD, THIRD);
	poll_attached(THIRD);
	assert_int_equal(tracer_stop(tracer, other, MS), -ETIMEDOUT);
	assert_int_equal(tracer_stop(tracer, second, MS), -ETIMEDOUT);
	tracing.told[0] = '\0';
	poll_signal(FIRST, SIGCONT, SI_USER, OTHER_PID);
	assert_told("deliver 100 18; go on 100 18; kill 100 101 19; ");
	/* Those that nobody waits for are not. */
	poll_own_stop(SECOND);
	poll_signal(FIRST, SIGCONT, SI_USER, OTHER_PID);
	assert_told("go on 101 0; deliver 100 18; go on 100 18; ");
	poll_signal(FIRST, SIGUSR1, SI_USER, OTHER_PID);
	assert_told("deliver 100 10; go on 100 10; ");
}

/* The kernel then sends a SIGTRAP, as before it had PTRACE_O_TRACEEXEC. */
static void a_program_that_begins_before_the_first_stop_is_noticed(void **state)
{
	const uint64_t changes = tracer_changes(tracer);

	(void)state;
	gets(FIRST, SIGTRAP, SI_USER, FIRST);
	assert_true(tracer_poll(tracer));
	assert_true(first->execed);
	assert_int_equal(tracer_changes(tracer), changes + 1);
	assert_told("options 100; go on 100 0; ");
	first->execed = false;
	poll_attached(FIRST);
	assert_told("go on 100 0; ");
	assert_false(first->execed);
	/* Or one of a thread that has not stopped yet, which has this id now. */
	poll_signal(FIRST, SIGTRAP, SI_USER, FIRST);
	assert_true(first->execed);
	assert_told("options 100; go on 100 0; ");
}

static void any_other_sigtrap_is_the_programs(void **state)
{
	(void)state;
	poll_signal(FIRST, SIGTRAP, SI_USER, FIRST);
	assert_told("deliver 100 5; go on 100 5; ");
	/* Another process's thread has not stopped, but has nothing to do with it. */
	attach(THIRD, THIRD);
	poll_signal(FIRST, SIGTRAP, SI_USER, FIRST);
	/* And a new thread may end before it has stopped. */
	traced_exits(THIRD, 0);
	tracer_poll(tracer);
	assert_told("seize 102; attach 102; deliver 100 5; go on 100 5; ");
	poll_signal(FIRST, SIGTRAP, TRAP_BRKPT, FIRST);
	assert_told("deliver 100 5; go on 100 5; ");
	assert_false(first->execed);
}

/* Those that were sent to either id may have ended with the first thread. A second one that waits is none. */
static void a_thread_that_takes_an_id_by_execve_is_told_to_stop_anew(void **state)
{
	(void)state;
	assert_int_equal(tracer_stop(tracer, first, MS), -ETIMEDOUT);
	assert_int_equal(tracer_stop(tracer, second, MS), -ETIMEDOUT);
	tracing.told[0] = '\0';
	traced_execs(FIRST, SECOND);
	assert_true(tracer_poll(tracer));
	assert_int_equal(second->state, TRACEE_GONE);
	assert_told("kill 100 100 19; go on 100 0; ");
	/* It need not be sent again for a look. */
	gets(FIRST, SIGSTOP, SI_TKILL, getpid());
	assert_int_equal(tracer_stop(tracer, first, MS), 0);
	assert_told("");
	/* One that has the id already has lost nothing. */
	traced_execs(FIRST, FIRST);
	assert_true(tracer_poll(tracer));
	assert_told("go on 100 0; ");
}

static void so_is_one_that_is_not_known(void **state)
{
	(void)state;
	assert_int_equal(tracer_stop(tracer, first, MS), -ETIMEDOUT);
	tracer_forget(tracer, second);
	tracing.told[0] = '\0';
	traced_execs(FIRST, SECOND);
	assert_true(tracer_poll(tracer));
	assert_true(first->execed);
	assert_told("kill 100 100 19; go on 100 0; ");
	poll_own_stop(FIRST);
	assert_told("go on 100 0; ");
}

/* A SIGSTOP that came after ljspy has ended would stop the target for good. */
static void the_end_waits_for_stops_that_are_on_their_way(void **state)
{
	(void)state;
	assert_int_equal(tracer_stop(tracer, first, MS), -ETIMEDOUT);
	first->hold_late = true;
	tracing.asleep = first_stops;
	tracing.sleeps = 0;
	tracing.told[0] = '\0';
	tracer_let_go(tracer);
	assert_int_equal(tracing.sleeps, 1);
	assert_told("go on 100 0; no more urgent; ");
}

static void the_end_waits_for_a_second_at_most(void **state)
{
	uint64_t begin_ns;

	(void)state;
	assert_int_equal(tracer_stop(tracer, first, MS), -ETIMEDOUT);
	begin_ns = tracing.now_ns;
	tracer_let_go(tracer);
	assert_in_range(tracing.now_ns - begin_ns, NS_PER_SECOND, NS_PER_SECOND + 10 * MS);
	/* Nor for those that have ended. */
	tracing.sleeps = 0;
	first->state = TRACEE_GONE;
	tracer_let_go(tracer);
	assert_int_equal(tracing.sleeps, 0);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, begin_stopped, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(none_is_attached_to_unless_that_is_allowed),
		cmocka_unit_test_setup_teardown(the_stop_of_attaching_ends_at_once, begin, end),
		TEST(a_look_sends_one_sigstop),
		TEST(a_sigstop_of_somebody_else_is_passed_on),
		TEST(the_end_of_a_job_stop_is_seen_by_the_signal_that_waits),
		TEST(a_stopped_job_is_held_without_a_signal),
		TEST(stops_that_sigcont_takes_away_are_sent_again),
		cmocka_unit_test_setup_teardown(a_program_that_begins_before_the_first_stop_is_noticed, begin,
						end),
		TEST(any_other_sigtrap_is_the_programs),
		TEST(a_thread_that_takes_an_id_by_execve_is_told_to_stop_anew),
		TEST(so_is_one_that_is_not_known),
		TEST(the_end_waits_for_stops_that_are_on_their_way),
		TEST(the_end_waits_for_a_second_at_most),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

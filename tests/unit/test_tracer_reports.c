/* SPDX-License-Identifier: MIT */
/* What the tracer asks of the kernel and makes of its reports. The kernel and its threads are made up. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "output/sample/histogram.h"
#include "src/linux/tracer/tracer.h"
#include "src/linux/tracer/tracer_files.h"
#include "src/linux/tracer/tracer_looks.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/made_up_tracing.h"

INSTEAD_OF(malloc);
INSTEAD_OF(calloc);
INSTEAD_OF(realloc);
#include "tests/unit/failing_allocation.h"

enum {
	FIRST = TRACED_FIRST,
	SECOND = TRACED_SECOND,
	THIRD = TRACED_THIRD,
	MS = 1000 * 1000,
	SPIN_NS = 25 * 1000,
	EVENTS_MAX = 4096, /* of one poll */
};

static struct tracer *tracer;
static struct tracee *first, *second;

static struct tracee *seize(pid_t tid)
{
	struct tracee *tracee = NULL;

	assert_int_equal(tracer_seize(tracer, FIRST, tid, &tracee), 0);
	assert_ptr_equal(tracer_find(tracer, tid), tracee);
	return tracee;
}

/* A process with two threads, which are seized. */
static int begin(void **state)
{
	(void)state;
	tracing_begin();
	tracer = tracer_new();
	assert_non_null(tracer);
	first = seize(FIRST);
	second = seize(SECOND);
	assert_told("seize 100; seize 101; ");
	return 0;
}

static int end(void **state)
{
	(void)state;
	tracer_free(tracer);
	assert_int_equal(tracing.files_open, 0);
	return 0;
}

/*---- Holds ----*/

static void a_thread_is_held_until_it_is_let_go(void **state)
{
	struct registers registers = { .pc = 0 };

	(void)state;
	assert_int_equal(first->pid, FIRST);
	assert_int_equal(second->pid, FIRST);
	assert_int_equal(second->tid, SECOND);
	assert_false(tracer_awaits_stop(tracer));
	assert_int_equal(tracer_stop(tracer, first, MS), 0);
	assert_told("interrupt 100; ");
	assert_int_equal(first->state, TRACEE_HELD);
	assert_int_equal(second->state, TRACEE_RUNNING);
	assert_true(tracer_awaits_stop(tracer));
	assert_false(tracer_holds(tracer));
	assert_int_equal(tracer_registers(first, &registers), 0);
	assert_int_equal(registers.pc, FIRST);
	assert_int_equal(registers.thread_pointer, FIRST + 1);
	assert_true(tracer_holds(tracer));
	/* Those that are held need not be told. */
	assert_int_equal(tracer_stop(tracer, first, MS), 0);
	assert_told("");
	tracer_resume(tracer, first);
	assert_told("go on 100 0; ");
	assert_int_equal(first->state, TRACEE_RUNNING);
	assert_in_range(first->resumed_ns, first->stopped_ns + 1, tracing.now_ns);
	assert_false(tracer_holds(tracer));
	assert_false(tracer_awaits_stop(tracer));
	tracer_resume(tracer, first);
	assert_told("");
	assert_false(tracer_poll(tracer));
	assert_false(tracer_has_held_late(tracer));
}

/* One reading is enough for a stop, and the next stop has other registers. */
static void registers_are_read_once_in_a_stop(void **state)
{
	struct registers registers;

	(void)state;
	for (unsigned int i = 1; i <= 2; i++) {
		assert_int_equal(tracer_stop(tracer, first, MS), 0);
		assert_int_equal(tracer_registers(first, &registers), 0);
		assert_int_equal(tracer_registers(first, &registers), 0);
		assert_int_equal(tracing.reads, i);
		tracer_resume(tracer, first);
	}
}

/* Those with which a call begins again are others than those with which it would have ended. */
static void registers_are_read_again_if_a_call_begins_again(void **state)
{
	struct registers registers;

	(void)state;
	traced_of(FIRST)->interrupted = true;
	assert_int_equal(tracer_stop(tracer, first, MS), 0);
	assert_int_equal(tracing.reads, 1);
	assert_int_equal(tracer_registers(first, &registers), 0);
	assert_int_equal(tracing.reads, 2);
}

static void registers_that_are_no_64_bit_programs_are_refused(void **state)
{
	struct registers registers = { .pc = 7 };

	(void)state;
	assert_int_equal(tracer_stop(tracer, first, MS), 0);
	tracer_resume(tracer, first);
	traced_of(FIRST)->registers_size = 68;
	assert_int_equal(tracer_stop(tracer, first, MS), 0);
	assert_int_equal(tracer_registers(first, &registers), -ENOTSUP);
	traced_of(FIRST)->registers_error = ESRCH;
	assert_int_equal(tracer_registers(first, &registers), -ESRCH);
	/* Old kernels have another request, which others are not asked for. */
	traced_of(FIRST)->old_registers_error = ENOTSUP;
	assert_int_equal(tracer_registers(first, &registers), -ESRCH);
	traced_of(FIRST)->registers_error = EIO;
	assert_int_equal(tracer_registers(first, &registers), -ENOTSUP);
	assert_int_equal(registers.pc, 7);
	traced_of(FIRST)->old_registers_error = 0;
	assert_int_equal(tracer_registers(first, &registers), 0);
	assert_int_equal(registers.pc, FIRST);
}

static void first_stops(void)
{
	traced_stops(FIRST, SIGTRAP);
	tracing.is_woken = true;
}

/* One that runs on another CPU stops soon: ljspy asks again and again before it sleeps. */
static void one_on_another_cpu_is_waited_for_awake_at_first(void **state)
{
	uint64_t begin_ns;

	(void)state;
	traced_of(FIRST)->answers = false;
	for (int i = 0; i < 2; i++) {
		traced_of(FIRST)->cpu = i == 0 ? TRACED_CPU : TRACED_CPU + 1;
		tracing.asleep = first_stops;
		begin_ns = tracing.now_ns;
		assert_int_equal(tracer_stop(tracer, first, MS), 0);
		assert_int_equal(tracing.sleeps, i + 1);
		tracer_resume(tracer, first);
		if (i == 0)
			assert_in_range(tracing.now_ns - begin_ns, 1, SPIN_NS);
		else
			assert_in_range(tracing.now_ns - begin_ns, SPIN_NS, 2 * SPIN_NS);
	}
	tracing.asleep = NULL;
	traced_of(FIRST)->answers = true;
	assert_int_equal(tracer_stop(tracer, first, MS), 0);
	assert_int_equal(tracing.sleeps, 2);
}

static void one_that_does_not_stop_in_time_is_let_go_when_it_does(void **state)
{
	static struct histogram holds;
	uint64_t begin_ns = tracing.now_ns;

	(void)state;
	tracer_count_holds(tracer, &holds);
	traced_of(FIRST)->answers = false;
	assert_int_equal(tracer_stop(tracer, first, 3 * MS), -ETIMEDOUT);
	assert_in_range(tracing.now_ns - begin_ns, 3 * MS, 4 * MS);
	assert_told("interrupt 100; ");
	assert_int_equal(first->state, TRACEE_AWAITED);
	assert_true(tracer_awaits_stop(tracer));
	/* It is told once. */
	assert_int_equal(tracer_stop(tracer, first, MS), -ETIMEDOUT);
	assert_int_equal(tracer_stop_running(tracer, first, MS), -EAGAIN);
	assert_int_equal(tracer_stop_seen(tracer, first, MS, true), -EAGAIN);
	assert_told("");
	first_stops();
	assert_false(tracer_poll(tracer));
	assert_told("go on 100 0; ");
	assert_int_equal(first->state, TRACEE_RUNNING);
	assert_false(tracer_awaits_stop(tracer));
	assert_false(tracer_has_held_late(tracer));
	assert_int_equal(holds.count, 1);
}

/* There is no time to sleep. */
static void a_wait_may_end_before_ljspy_would_sleep(void **state)
{
	(void)state;
	traced_of(FIRST)->answers = false;
	assert_int_equal(tracer_stop(tracer, first, SPIN_NS / 2), -ETIMEDOUT);
	assert_int_equal(tracing.sleeps, 0);
}

static void one_that_stops_late_is_held_if_the_caller_wants_that(void **state)
{
	(void)state;
	traced_of(FIRST)->answers = false;
	assert_int_equal(tracer_stop(tracer, first, MS), -ETIMEDOUT);
	first->hold_late = true;
	first_stops();
	tracer_poll(tracer);
	assert_told("interrupt 100; ");
	assert_int_equal(first->state, TRACEE_HELD);
	assert_false(first->hold_late);
	assert_true(tracer_has_held_late(tracer));
	assert_false(tracer_has_held_late(tracer));
	tracer_resume(tracer, first);
	assert_told("go on 100 0; ");
}

/* It must not wait with ljspy for another one. */
static void one_that_stops_late_ends_the_wait_for_another(void **state)
{
	uint64_t begin_ns;

	(void)state;
	traced_of(FIRST)->answers = traced_of(SECOND)->answers = false;
	assert_int_equal(tracer_stop(tracer, first, MS), -ETIMEDOUT);
	first->hold_late = true;
	tracing.asleep = first_stops;
	begin_ns = tracing.now_ns;
	assert_int_equal(tracer_stop(tracer, second, UINT64_C(1000) * MS), -ETIMEDOUT);
	assert_in_range(tracing.now_ns - begin_ns, 1, MS);
	assert_int_equal(first->state, TRACEE_HELD);
	assert_int_equal(second->state, TRACEE_AWAITED);
	assert_true(tracer_has_held_late(tracer));
}

static void only_one_that_runs_is_stopped_by_its_look(void **state)
{
	(void)state;
	traced_of(FIRST)->state = 'S';
	assert_int_equal(tracer_stop_running(tracer, first, MS), -EAGAIN);
	traced_of(FIRST)->state = 0;
	assert_int_equal(tracer_stop_running(tracer, first, MS), -EAGAIN);
	assert_told("");
	traced_of(FIRST)->state = 'R';
	assert_int_equal(tracer_stop_running(tracer, first, MS), 0);
	assert_int_equal(first->state, TRACEE_HELD);
	assert_int_equal(tracer_stop_running(tracer, first, MS), -EAGAIN);
	tracer_resume(tracer, first);
	/* Another look than the caller's is not needed. */
	traced_of(FIRST)->state = 'S';
	assert_int_equal(tracer_stop_seen(tracer, first, MS, false), 0);
	assert_told("interrupt 100; go on 100 0; interrupt 100; ");
}

/*---- When it stopped ----*/

/* What is reported now was not there when it was last asked for, nor before it was told to stop. */
static void a_stop_is_not_taken_for_an_earlier_one(void **state)
{
	uint64_t told_ns;

	(void)state;
	told_ns = tracing.now_ns;
	assert_int_equal(tracer_stop(tracer, first, MS), 0);
	assert_in_range(first->stopped_ns, told_ns + 1, tracing.now_ns);
	tracer_resume(tracer, first);
	/* A signal has no such bound but the last look. */
	tracing.now_ns += MS;
	tracer_poll(tracer);
	told_ns = tracing.now_ns;
	tracing.now_ns += MS;
	traced_gets(FIRST, SIGUSR1);
	tracer_poll(tracer);
	assert_int_equal(first->stopped_ns, told_ns);
	/* Nor was it there when ljspy went to sleep. */
	tracing.now_ns += 2 * MS;
	told_ns = tracing.now_ns - MS;
	tracer_turn(tracer)->woken_ns = told_ns;
	traced_gets(FIRST, SIGUSR1);
	tracer_poll(tracer);
	assert_int_equal(first->stopped_ns, told_ns);
}

static void a_time_without_a_report_is_taken_from_the_caller(void **state)
{
	uint64_t quiet_ns;

	(void)state;
	tracer_poll(tracer);
	quiet_ns = tracing.now_ns + 5 * MS;
	tracer_note_quiet(tracer, quiet_ns);
	tracing.now_ns += 10 * MS;
	traced_gets(FIRST, SIGUSR1);
	tracer_poll(tracer);
	assert_int_equal(first->stopped_ns, quiet_ns);
	/* Not while a poll is due. */
	tracing.storms = true;
	traced_gets(SECOND, SIGUSR1);
	tracer_poll(tracer);
	assert_true(tracer_poll_is_due(tracer));
	tracing.storms = false;
	tracing.report_count = 0;
	tracer_note_quiet(tracer, tracing.now_ns + MS);
	tracing.now_ns += 2 * MS;
	traced_gets(FIRST, SIGUSR1);
	tracer_poll(tracer);
	assert_in_range(first->stopped_ns, quiet_ns, tracing.now_ns - 2 * MS);
}

/*---- Signals ----*/

static void a_signal_is_passed_on(void **state)
{
	static struct histogram holds;

	(void)state;
	tracer_count_holds(tracer, &holds);
	traced_gets(SECOND, SIGUSR1);
	traced_gets(FIRST, SIGTERM);
	assert_false(tracer_poll(tracer));
	assert_told("deliver 101 10; go on 101 10; deliver 100 15; go on 100 15; ");
	assert_int_equal(holds.count, 2);
	assert_int_equal(first->state, TRACEE_RUNNING);
	tracer_count_holds(tracer, NULL);
	traced_gets(FIRST, SIGTERM);
	tracer_poll(tracer);
	assert_int_equal(holds.count, 2);
}

/* A stop for a signal cancels the one that ljspy has asked for. */
static void one_that_gets_a_signal_is_told_to_stop_again(void **state)
{
	(void)state;
	traced_gets(FIRST, SIGUSR1);
	traced_of(FIRST)->answers = false;
	tracing.asleep = first_stops;
	assert_int_equal(tracer_stop(tracer, first, MS), 0);
	assert_told("interrupt 100; interrupt 100; deliver 100 10; go on 100 10; ");
	tracer_resume(tracer, first);
	tracing.asleep = NULL;
	assert_int_equal(tracer_stop(tracer, first, MS), -ETIMEDOUT);
	first->hold_late = true;
	tracing.told[0] = '\0';
	traced_gets(FIRST, SIGUSR1);
	tracer_poll(tracer);
	assert_told("interrupt 100; deliver 100 10; go on 100 10; ");
	assert_true(tracer_awaits_stop(tracer));
	assert_int_equal(first->state, TRACEE_RUNNING);
	first_stops();
	tracer_poll(tracer);
	assert_int_equal(first->state, TRACEE_HELD);
}

static void a_call_that_a_stop_ends_begins_again(void **state)
{
	(void)state;
	traced_of(FIRST)->interrupted = true;
	for (int i = 0; i < 2; i++) {
		traced_of(FIRST)->limited = i == 1;
		assert_int_equal(tracer_stop(tracer, first, MS), 0);
		tracer_resume(tracer, first);
		assert_told("interrupt 100; restart 100; go on 100 0; ");
	}
	/* A signal that comes before it has begun again may end it after all. */
	traced_gets(FIRST, SIGUSR1);
	traced_of(FIRST)->interrupted = false;
	tracer_poll(tracer);
	assert_told("deliver 100 10 in a call; go on 100 10; ");
	assert_int_equal(tracer_stop(tracer, first, MS), 0);
	tracer_resume(tracer, first);
	traced_gets(FIRST, SIGUSR1);
	tracer_poll(tracer);
	assert_told("interrupt 100; go on 100 0; deliver 100 10; go on 100 10; ");
}

static void get_signal(int signal)
{
	traced_gets(FIRST, signal);
	tracer_poll(tracer);
}

/* So that ignored signals cannot keep a time limit from ever being reached. */
static void a_call_with_a_limit_begins_again_once_in_a_second(void **state)
{
	(void)state;
	traced_of(FIRST)->interrupted = traced_of(FIRST)->limited = true;
	get_signal(SIGUSR1);
	assert_told("restart 100; deliver 100 10 in a call; go on 100 10; ");
	tracing.now_ns += NS_PER_SECOND - MS;
	get_signal(SIGUSR1);
	assert_told("deliver 100 10 in a call; go on 100 10; ");
	tracing.now_ns += MS;
	get_signal(SIGUSR1);
	assert_told("restart 100; deliver 100 10 in a call; go on 100 10; ");
	traced_of(FIRST)->limited = false;
	get_signal(SIGUSR1);
	assert_told("restart 100; deliver 100 10 in a call; go on 100 10; ");
}

/* A stop by job control ends calls even without ljspy. */
static void a_call_that_job_control_ends_stays_ended(void **state)
{
	static const int stops[] = { SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU };

	(void)state;
	traced_of(FIRST)->interrupted = true;
	for (size_t i = 0; i < sizeof(stops) / sizeof(stops[0]); i++) {
		get_signal(stops[i]);
		assert_null(strstr(tracing.told, "restart"));
		/* The first one after it, too, is about that stop. */
		get_signal(SIGUSR1);
		assert_null(strstr(tracing.told, "restart"));
		get_signal(SIGCONT);
		assert_null(strstr(tracing.told, "restart"));
		get_signal(SIGCONT);
		assert_non_null(strstr(tracing.told, "restart"));
		tracing.told[0] = '\0';
	}
}

/*---- Job control ----*/

static void a_job_that_is_stopped_stays_so_until_it_is_continued(void **state)
{
	(void)state;
	traced_of(FIRST)->interrupted = true;
	traced_stops(FIRST, SIGTSTP);
	tracer_poll(tracer);
	assert_told("listen 100; ");
	assert_int_equal(first->state, TRACEE_JOB_STOPPED);
	traced_stops(FIRST, SIGTRAP);
	tracer_poll(tracer);
	assert_told("go on 100 0; ");
	assert_int_equal(first->state, TRACEE_RUNNING);
}

static void a_stopped_job_can_be_held_and_stays_stopped(void **state)
{
	struct registers registers;

	(void)state;
	traced_stops(FIRST, SIGSTOP);
	tracer_poll(tracer);
	tracing.told[0] = '\0';
	traced_of(FIRST)->answers = false;
	traced_stops(FIRST, SIGSTOP);
	assert_int_equal(tracer_stop_running(tracer, first, MS), -EAGAIN);
	assert_int_equal(tracer_stop(tracer, first, MS), 0);
	assert_int_equal(first->state, TRACEE_HELD);
	assert_int_equal(tracer_registers(first, &registers), 0);
	tracer_resume(tracer, first);
	assert_told("interrupt 100; listen 100; ");
	assert_int_equal(first->state, TRACEE_JOB_STOPPED);
	assert_false(tracer_holds(tracer));
	assert_false(tracer_awaits_stop(tracer));
	/* Each stop has its own registers. */
	traced_stops(FIRST, SIGSTOP);
	assert_int_equal(tracer_stop(tracer, first, MS), 0);
	assert_int_equal(tracer_registers(first, &registers), 0);
	assert_int_equal(tracing.reads, 2);
	tracer_resume(tracer, first);
	assert_told("interrupt 100; listen 100; ");
	/* Later it is held as any other. */
	traced_stops(FIRST, SIGTRAP);
	tracer_poll(tracer);
	traced_of(FIRST)->answers = true;
	assert_int_equal(tracer_stop(tracer, first, MS), 0);
	tracer_resume(tracer, first);
	assert_told("go on 100 0; interrupt 100; go on 100 0; ");
	assert_int_equal(first->state, TRACEE_RUNNING);
}

/*---- Ends and new programs ----*/

static void the_end_of_a_thread_is_told_once(void **state)
{
	const uint64_t changes = tracer_changes(tracer);

	(void)state;
	traced_exits(FIRST, 3);
	assert_true(tracer_poll(tracer));
	assert_int_equal(first->state, TRACEE_GONE);
	assert_true(first->exit_known);
	assert_int_equal(WEXITSTATUS(first->exit_status), 3);
	assert_int_equal(tracer_changes(tracer), changes + 1);
	assert_false(tracer_poll(tracer));
	assert_int_equal(tracer_stop(tracer, first, MS), -ESRCH);
	assert_int_equal(tracer_stop_running(tracer, first, MS), -EAGAIN);
	tracer_resume(tracer, first);
	assert_told("");
	/* Until it is forgotten, its id is that of this one. */
	assert_ptr_equal(seize(FIRST), first);
	assert_told("");
	tracer_forget(tracer, first);
	assert_null(tracer_find(tracer, FIRST));
	assert_int_equal(tracing.files_open, 1);
	traced_report(SECOND, SIGKILL);
	assert_true(tracer_poll(tracer));
	assert_true(second->exit_known);
	assert_int_equal(WTERMSIG(second->exit_status), SIGKILL);
}

static void first_ends(void)
{
	traced_exits(FIRST, 0);
	tracing.is_woken = true;
}

static void one_that_ends_while_it_is_awaited_is_gone(void **state)
{
	(void)state;
	traced_of(FIRST)->answers = false;
	tracing.asleep = first_ends;
	assert_int_equal(tracer_stop(tracer, first, MS), -ESRCH);
	assert_false(tracer_awaits_stop(tracer));
	/* It ended in a wait: that is still to be told of. */
	assert_true(tracer_poll_is_due(tracer));
	assert_true(tracer_poll(tracer));
	assert_false(tracer_poll_is_due(tracer));
}

static void one_that_cannot_be_told_to_stop_is_gone(void **state)
{
	(void)state;
	traced_of(FIRST)->ask_error = ESRCH;
	traced_exits(FIRST, 0);
	assert_int_equal(tracer_stop(tracer, first, MS), -ESRCH);
	assert_true(first->exit_known);
	/* Another thread's execve() took this one away: the kernel has nothing to report. */
	traced_of(SECOND)->ask_error = ESRCH;
	traced_of(SECOND)->is_strange = true;
	assert_int_equal(tracer_stop(tracer, second, MS), -ESRCH);
	assert_int_equal(second->state, TRACEE_GONE);
	assert_false(second->exit_known);
}

/* What /proc says of one that does not answer. */
static void one_that_does_not_answer_may_be_somebody_else(void **state)
{
	(void)state;
	traced_of(FIRST)->answers = traced_of(SECOND)->answers = false;
	traced_of(FIRST)->process.state = 'Z';
	assert_int_equal(tracer_stop(tracer, first, MS), -ESRCH);
	/* Its end is reported later. */
	assert_int_not_equal(first->state, TRACEE_GONE);
	traced_of(FIRST)->process.state = 'R';
	traced_of(FIRST)->process.tracer_pid = 1;
	assert_int_equal(tracer_stop(tracer, first, MS), -ESRCH);
	assert_int_equal(first->state, TRACEE_GONE);
	traced_of(SECOND)->process_error = -ESRCH;
	assert_int_equal(tracer_stop(tracer, second, MS), -ESRCH);
	assert_int_equal(second->state, TRACEE_GONE);
	assert_false(tracer_awaits_stop(tracer));
}

static void a_new_program_is_noticed_and_runs_on(void **state)
{
	const uint64_t changes = tracer_changes(tracer);

	(void)state;
	traced_execs(FIRST, FIRST);
	assert_true(tracer_poll(tracer));
	assert_told("go on 100 0; ");
	assert_true(first->execed);
	assert_false(first->took_id);
	assert_int_equal(first->state, TRACEE_RUNNING);
	assert_int_equal(second->state, TRACEE_RUNNING);
	assert_int_equal(tracer_changes(tracer), changes + 1);
	assert_false(tracer_poll(tracer));
}

/* The thread that called execve() has the id of the first one then. */
static void a_new_program_of_another_thread_ends_that_id(void **state)
{
	const uint64_t changes = tracer_changes(tracer);

	(void)state;
	traced_execs(FIRST, SECOND);
	assert_true(tracer_poll(tracer));
	assert_true(first->execed);
	assert_true(first->took_id);
	assert_false(second->execed);
	assert_int_equal(second->state, TRACEE_GONE);
	assert_false(second->exit_known);
	assert_int_equal(tracer_changes(tracer), changes + 2);
}

static void first_execs(void)
{
	traced_execs(FIRST, FIRST);
	tracing.is_woken = true;
}

static void a_new_program_ends_a_hold(void **state)
{
	(void)state;
	traced_of(FIRST)->answers = false;
	tracing.asleep = first_execs;
	assert_int_equal(tracer_stop(tracer, first, MS), -ECANCELED);
	assert_int_equal(first->state, TRACEE_RUNNING);
	assert_told("interrupt 100; go on 100 0; ");
	assert_false(tracer_awaits_stop(tracer));
	tracing.asleep = NULL;
	assert_int_equal(tracer_stop(tracer, first, MS), -ETIMEDOUT);
	first->hold_late = true;
	first_execs();
	tracer_poll(tracer);
	assert_false(first->hold_late);
	assert_false(tracer_awaits_stop(tracer));
}

/* The first thread had ended before it could be seized. */
static void a_program_may_begin_under_an_id_that_nobody_has_seized(void **state)
{
	struct tracee *stranger, *again;

	(void)state;
	traced_execs(THIRD, SECOND);
	assert_true(tracer_poll(tracer));
	assert_told("go on 102 0; ");
	stranger = tracer_find(tracer, THIRD);
	assert_non_null(stranger);
	assert_int_equal(stranger->pid, THIRD);
	assert_true(stranger->execed);
	assert_true(stranger->took_id);
	assert_in_range(stranger->stopped_ns, 1, stranger->resumed_ns);
	assert_int_equal(second->state, TRACEE_GONE);
	assert_int_equal(tracer_seize(tracer, THIRD, THIRD, &again), 0);
	assert_ptr_equal(again, stranger);
}

/* Where memory is short, it must run on all the same. */
static void a_stranger_never_stays_stopped(void **state)
{
	(void)state;
	traced_execs(THIRD, THIRD);
	allocation_fails_after(0);
	tracer_poll(tracer);
	assert_true(allocation_failed());
	assert_null(tracer_find(tracer, THIRD));
	assert_told("go on 102 0; ");
}

/*---- Polls ----*/

/* Its parent waits for it, and it stays first in the queue. */
static void a_child_that_is_no_tracee_hides_no_report(void **state)
{
	(void)state;
	traced_exits(THIRD, 0);
	traced_gets(SECOND, SIGUSR1);
	traced_exits(FIRST, 0);
	assert_true(tracer_poll(tracer));
	assert_told("deliver 101 10; go on 101 10; ");
	assert_int_equal(first->state, TRACEE_GONE);
	assert_int_equal(tracing.report_count, 1);
	assert_int_equal(tracing.reports[0].tid, THIRD);
	/* Nor one that is known to be gone. */
	traced_exits(FIRST, 0);
	tracer_poll(tracer);
	assert_int_equal(tracing.report_count, 2);
}

static void where_the_kernel_does_not_tell_who_reports_all_are_asked(void **state)
{
	(void)state;
	tracing.waitid_error = EINVAL;
	traced_gets(SECOND, SIGUSR1);
	traced_gets(FIRST, SIGTERM);
	assert_false(tracer_poll(tracer));
	assert_int_equal(tracing.report_count, 0);
	assert_non_null(strstr(tracing.told, "go on 101 10; "));
	assert_non_null(strstr(tracing.told, "go on 100 15; "));
}

static void a_storm_of_signals_does_not_keep_a_poll(void **state)
{
	(void)state;
	tracing.storms = true;
	traced_gets(FIRST, SIGWINCH);
	for (unsigned int i = 1; i <= 2; i++) {
		tracer_poll(tracer);
		assert_int_equal(tracing.handled, i * EVENTS_MAX);
		assert_true(tracer_poll_is_due(tracer));
	}
	tracing.storms = false;
	tracer_poll(tracer);
	assert_false(tracer_poll_is_due(tracer));
}

static void all_are_passed_on_while_the_caller_cannot_look(void **state)
{
	struct registers registers;

	(void)state;
	traced_of(SECOND)->answers = false;
	assert_int_equal(tracer_stop(tracer, first, MS), 0);
	assert_int_equal(tracer_stop(tracer, second, MS), -ETIMEDOUT);
	second->hold_late = true;
	traced_stops(SECOND, SIGTRAP);
	tracing.told[0] = '\0';
	/* The first one was not read, so nobody works on it. */
	tracer_pass_on(tracer);
	assert_told("go on 101 0; go on 100 0; ");
	assert_false(second->hold_late);
	assert_false(tracer_has_held_late(tracer));
	assert_int_equal(tracer_stop(tracer, first, MS), 0);
	assert_int_equal(tracer_registers(first, &registers), 0);
	tracing.told[0] = '\0';
	traced_exits(SECOND, 0);
	tracer_pass_on(tracer);
	assert_told("");
	assert_int_equal(first->state, TRACEE_HELD);
	/* The next poll tells what has ended. */
	assert_true(tracer_poll(tracer));
	/* And holds late ones again. */
	tracer_resume(tracer, first);
	traced_of(FIRST)->answers = false;
	assert_int_equal(tracer_stop(tracer, first, MS), -ETIMEDOUT);
	first->hold_late = true;
	first_stops();
	tracer_poll(tracer);
	assert_int_equal(first->state, TRACEE_HELD);
}

static void a_wakeup_that_is_taken_is_not_lost(void **state)
{
	(void)state;
	traced_exits(FIRST, 0);
	tracer_take_wakeup(tracer);
	assert_int_equal(first->state, TRACEE_RUNNING); /* no signal has told of it */
	assert_false(tracer_poll_is_due(tracer));
	tracing.signal_waits = true;
	tracer_take_wakeup(tracer);
	assert_int_equal(first->state, TRACEE_GONE);
	assert_false(tracing.signal_waits);
	assert_true(tracer_poll_is_due(tracer));
	assert_true(tracer_poll(tracer));
	assert_false(tracer_poll_is_due(tracer));
	/* One that stopped late is due for a look. */
	traced_of(SECOND)->answers = false;
	assert_int_equal(tracer_stop(tracer, second, MS), -ETIMEDOUT);
	second->hold_late = true;
	traced_stops(SECOND, SIGTRAP);
	tracing.signal_waits = true;
	tracer_take_wakeup(tracer);
	assert_true(tracer_poll_is_due(tracer));
	assert_true(tracer_has_held_late(tracer));
}

/* The signal that ended ljspy's sleep is taken, and may have been about others, too. */
static void a_stop_that_ljspy_slept_for_leaves_no_poll_to_do(void **state)
{
	(void)state;
	traced_of(FIRST)->answers = false;
	tracing.asleep = first_stops;
	assert_int_equal(tracer_stop(tracer, first, MS), 0);
	assert_true(tracer_poll_is_due(tracer));
	tracer_resume(tracer, first);
	tracer_take_wakeup(tracer);
	assert_false(tracer_poll_is_due(tracer));
	assert_int_equal(tracer_stop(tracer, first, MS), 0);
	traced_exits(SECOND, 0);
	tracer_resume(tracer, first);
	tracer_take_wakeup(tracer);
	assert_int_equal(second->state, TRACEE_GONE);
	assert_true(tracer_poll(tracer));
}

/*---- Seizing ----*/

static int seize_error(int error)
{
	struct tracee *tracee = first;
	int result;

	traced_of(THIRD)->seize_error = error;
	result = tracer_seize(tracer, FIRST, THIRD, &tracee);
	assert_false(tracing.watches);
	/* Where nothing refuses it, a tracer that has ended since may have been the reason. */
	assert_told(result == -EPERM ? "seize 102; seize 102; " : "seize 102; ");
	if (result) {
		assert_ptr_equal(tracee, first);
		assert_null(tracer_find(tracer, THIRD));
		assert_int_equal(tracing.files_open, 2);
	}
	return result;
}

static void why_a_thread_cannot_be_seized_is_told(void **state)
{
	struct process *process = &traced_of(THIRD)->process;

	(void)state;
	process->tracer_pid = 0;
	assert_int_equal(seize_error(EPERM), -EPERM);
	process->tracer_pid = 1;
	assert_int_equal(seize_error(EPERM), -EALREADY);
	process->tracer_pid = 0;
	assert_int_equal(seize_error(EIO), -EIO);
	/* The kernels that have no such request say so of threads that exist. */
	assert_int_equal(seize_error(ESRCH), -EIO);
	process->state = 'Z';
	assert_int_equal(seize_error(ESRCH), -ESRCH);
	assert_int_equal(seize_error(EPERM), -ESRCH); /* it has ended, and was not waited for */
	traced_of(THIRD)->process_error = -ESRCH;
	assert_int_equal(seize_error(ESRCH), -ESRCH);
	assert_int_equal(seize_error(EPERM), -ESRCH);
	assert_int_equal(seize_error(0), 0);
}

static void one_that_is_seized_late_is_seized_when_it_is_to_be_held(void **state)
{
	struct tracee *third = NULL;

	(void)state;
	assert_int_equal(tracer_seize_late(tracer, FIRST, THIRD, &third), 0);
	assert_ptr_equal(tracer_find(tracer, THIRD), third);
	assert_false(tracer_has_seized(third));
	assert_true(tracer_has_seized(first));
	traced_of(THIRD)->is_strange = true;
	tracer_poll_one(tracer, third);
	tracing.waitid_error = ENOSYS; /* each is asked then */
	assert_false(tracer_poll(tracer));
	assert_int_equal(third->state, TRACEE_RUNNING);
	assert_int_equal(tracing.files_open, 2);
	assert_told("");
	traced_of(THIRD)->is_strange = false;
	assert_int_equal(tracer_stop(tracer, third, MS), 0);
	assert_told("seize 102; interrupt 102; ");
	assert_int_equal(tracing.files_open, 3);
	assert_true(tracer_has_seized(third));
	tracer_resume(tracer, third);
	assert_int_equal(tracer_stop(tracer, third, MS), 0);
	assert_told("go on 102 0; interrupt 102; ");
	tracer_resume(tracer, third);
	/* Seized before, it stays so. */
	assert_int_equal(tracer_seize_late(tracer, FIRST, SECOND, &third), 0);
	assert_ptr_equal(third, second);
	assert_true(tracer_has_seized(second));
}

static void one_that_cannot_be_seized_late_runs_on(void **state)
{
	struct tracee *third = NULL;

	(void)state;
	traced_of(THIRD)->process.tracer_pid = 0;
	assert_int_equal(tracer_seize_late(tracer, FIRST, THIRD, &third), 0);
	traced_of(THIRD)->seize_error = EPERM;
	assert_int_equal(tracer_stop(tracer, third, MS), -EPERM);
	assert_told("seize 102; seize 102; ");
	assert_int_equal(third->state, TRACEE_RUNNING);
	assert_false(tracer_awaits_stop(tracer));
	traced_of(THIRD)->seize_error = ESRCH;
	traced_of(THIRD)->process_error = -ESRCH;
	assert_int_equal(tracer_stop(tracer, third, MS), -ESRCH);
	assert_int_equal(third->state, TRACEE_GONE);
	assert_told("seize 102; ");
	assert_true(tracer_poll(tracer));
}

static void the_end_of_one_that_is_not_seized_is_the_callers_to_note(void **state)
{
	const uint64_t changes = tracer_changes(tracer);
	struct tracee *third = NULL;

	(void)state;
	assert_int_equal(tracer_seize_late(tracer, FIRST, THIRD, &third), 0);
	tracer_note_end(tracer, third);
	assert_int_equal(third->state, TRACEE_GONE);
	assert_int_equal(tracer_changes(tracer), changes + 1);
	assert_true(tracer_poll(tracer));
	assert_int_equal(tracer_stop(tracer, third, MS), -ESRCH);
	assert_told("");
}

/* Its end has no report: another thread, that was not seized, has taken its id by execve(). */
static void only_one_who_asks_learns_that_a_tracee_is_none_any_more(void **state)
{
	(void)state;
	traced_of(FIRST)->is_strange = true;
	assert_false(tracer_poll(tracer));
	assert_int_equal(first->state, TRACEE_RUNNING);
	tracer_poll_one(tracer, first);
	assert_int_equal(first->state, TRACEE_GONE);
	assert_false(first->exit_known);
	assert_true(tracer_poll(tracer));
	tracer_poll_one(tracer, first);
	assert_false(tracer_poll(tracer));
	/* One that ljspy has started is its child still. */
	tracer_poll_one(tracer, second);
	assert_int_equal(second->state, TRACEE_RUNNING);
	traced_of(SECOND)->process.tracer_pid = 0;
	tracer_poll_one(tracer, second);
	assert_int_equal(second->state, TRACEE_GONE);
	assert_true(tracer_poll(tracer));
}

/* The kernel seizes it when its execve() is over, and it has the first thread's id then. */
static void one_that_calls_execve_while_it_is_seized_has_another_id(void **state)
{
	const uint64_t changes = tracer_changes(tracer);
	struct tracee *third = NULL;

	(void)state;
	traced_of(THIRD)->has_execed = true;
	for (int late = 0; late < 2; late++) {
		if (late) {
			assert_int_equal(tracer_seize_late(tracer, FIRST, THIRD, &third), 0);
			assert_int_equal(tracer_stop(tracer, third, MS), -ESRCH);
			assert_int_equal(third->state, TRACEE_GONE);
		} else {
			assert_int_equal(tracer_seize(tracer, FIRST, THIRD, &third), -ESRCH);
			assert_null(tracer_find(tracer, THIRD));
		}
		assert_told("seize 102; ");
		assert_true(first->execed);
		assert_true(first->took_id);
		assert_false(second->execed);
		assert_true(tracer_poll(tracer));
		first->execed = false;
	}
	assert_true(tracer_changes(tracer) >= changes + 2);
	/* The first thread is a tracee as before. */
	assert_int_equal(tracer_stop(tracer, first, MS), 0);
	assert_told("interrupt 100; ");
	tracer_resume(tracer, first);
	/* One that is known to be gone stays so. */
	traced_exits(FIRST, 0);
	assert_true(tracer_poll(tracer));
	tracer_forget(tracer, third);
	assert_int_equal(tracer_seize(tracer, FIRST, THIRD, &third), -ESRCH);
	assert_int_equal(first->state, TRACEE_GONE);
	assert_false(first->execed);
}

static void one_that_may_get_signals_is_there(void **state)
{
	struct tracee *third = NULL;

	(void)state;
	traced_of(THIRD)->takes_signals = true;
	assert_int_equal(tracer_seize(tracer, FIRST, THIRD, &third), 0);
	assert_ptr_equal(tracer_find(tracer, THIRD), third);
	assert_false(first->execed);
	assert_told("seize 102; ");
}

/* The ids of threads that have ended are given to others, of other processes, too. */
static void an_id_is_that_of_one_thread_until_it_is_forgotten(void **state)
{
	struct tracee *tracee = first, *third = NULL;

	(void)state;
	assert_int_equal(tracer_seize_late(tracer, FIRST, THIRD, &third), 0);
	assert_int_equal(tracer_seize(tracer, SECOND, THIRD, &tracee), -ESRCH);
	assert_int_equal(tracer_seize_late(tracer, SECOND, THIRD, &tracee), -ESRCH);
	assert_ptr_equal(tracee, first);
	assert_told("");
	tracer_forget(tracer, third);
	assert_int_equal(tracer_seize(tracer, SECOND, THIRD, &tracee), 0);
	assert_int_equal(tracee->pid, SECOND);
	assert_told("seize 102; ");
}

static void where_threads_may_be_attached_to_none_is_seized_late(void **state)
{
	struct tracee *third = NULL;

	(void)state;
	tracer_allow_attach(tracer);
	assert_int_equal(tracer_seize_late(tracer, FIRST, THIRD, &third), 0);
	assert_told("seize 102; ");
	assert_true(tracer_has_seized(third));
}

/* Another thread, which was seized before, has taken the id by execve(). */
static void one_that_is_a_tracee_already_is_kept(void **state)
{
	(void)state;
	assert_int_equal(seize_error(EPERM), 0);
	assert_non_null(tracer_find(tracer, THIRD));
}

static void where_memory_is_short_none_is_seized(void **state)
{
	struct tracee *tracee = first;

	(void)state;
	for (size_t count = 0; count < 2; count++) {
		allocation_fails_after(count);
		if (tracer_seize(tracer, FIRST, THIRD, &tracee) == 0)
			break;
		assert_true(allocation_failed());
		assert_ptr_equal(tracee, first);
		assert_told("");
	}
	allocation_failed();
	allocation_fails_after(0);
	assert_null(tracer_new());
	assert_true(allocation_failed());
	tracing.watch_error = -EAGAIN;
	errno = 0;
	assert_null(tracer_new());
	assert_int_equal(errno, EAGAIN);
}

static void threads_that_are_left_alone_are_only_known(void **state)
{
	struct tracer *far;
	struct tracee *tracee;

	(void)state;
	assert_false(tracer_stays_away(tracer));
	far = tracer_new();
	tracer_stay_away(far);
	assert_true(tracer_stays_away(far));
	assert_int_equal(tracer_seize(far, FIRST, THIRD, &tracee), 0);
	assert_ptr_equal(tracer_find(far, THIRD), tracee);
	assert_told("");
	tracer_free(far);
	assert_told("no more urgent; ");
}

/*---- Files ----*/

static void files_are_kept_open_while_there_are_some(void **state)
{
	(void)state;
	assert_int_equal(tracing.files_open, 2);
	assert_true(tracer_reserve_files(tracer, FILES_OPEN_DEFAULT - 2));
	assert_false(tracer_reserve_files(tracer, 1));
	seize(THIRD);
	assert_int_equal(tracing.files_open, 2);
	/* Then they are opened for each look. */
	assert_int_equal(tracer_cpu(tracer_find(tracer, THIRD)), TRACED_CPU + 1);
	assert_int_equal(tracing.files_open, 2);
	tracer_forget(tracer, tracer_find(tracer, THIRD));
	assert_false(tracer_reserve_files(tracer, 1));
	tracer_forget(tracer, first);
	assert_int_equal(tracing.files_open, 1);
	assert_true(tracer_reserve_files(tracer, 1));
	tracer_release_files(tracer, 2, 0);
	assert_false(tracer_reserve_files(tracer, 3));
	tracer_allow_files(tracer, 3);
	assert_true(tracer_reserve_files(tracer, 3));
	assert_false(tracer_reserve_files(tracer, 1));
}

/* Allow as many files as are open, and some more. */
static void allow_more_files(rlim_t more)
{
	int next = dup(STDERR_FILENO);
	struct rlimit limit;

	assert_true(next >= 0);
	close(next);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = (rlim_t)next + more;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void kept_files_leave_room_for_others(void **state)
{
	struct rlimit before;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	tracer_allow_files(tracer, 100);
	allow_more_files(10);
	assert_int_equal(tracer_leave_files(tracer, 11), -EMFILE);
	assert_int_equal(tracer_leave_files(tracer, 6), 0);
	assert_false(tracer_reserve_files(tracer, 5));
	assert_true(tracer_reserve_files(tracer, 4));
	/* They will be opened, so there is no room for more than before. */
	assert_int_equal(tracer_leave_files(tracer, 7), -EMFILE);
	assert_int_equal(tracer_leave_files(tracer, 6), 0);
	/* Those that are open count as such. */
	tracer_note_opened(tracer);
	assert_int_equal(tracer_leave_files(tracer, 7), 0);
	tracer_release_files(tracer, 4, 1);
	assert_int_equal(tracer_leave_files(tracer, 10), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

static void where_a_thread_may_run_is_told(void **state)
{
	(void)state;
	traced_of(FIRST)->cpu = 17;
	assert_int_equal(tracer_cpu(first), 17);
	assert_false(tracer_is_bound(first));
	tracing.is_bound = true;
	assert_true(tracer_is_bound(first));
	traced_of(FIRST)->state = 0;
	assert_int_equal(tracer_cpu(first), -1);
	assert_false(tracer_is_bound(first));
}

/*---- How urgent it is ----*/

static void ljspy_is_urgent_until_the_thread_runs_on(void **state)
{
	(void)state;
	tracing.means = URGENT_BY_POLICY;
	tracer_be_urgent(tracer);
	assert_false(tracing.is_urgent);
	assert_true(tracer_may_be_first(tracer));
	assert_int_equal(tracer_stop(tracer, first, MS), 0);
	assert_int_equal(tracer_stop(tracer, second, MS), 0);
	assert_true(tracing.is_urgent);
	tracer_resume(tracer, first);
	assert_true(tracing.is_urgent);
	tracer_resume(tracer, second);
	assert_false(tracing.is_urgent);
	traced_of(FIRST)->answers = false;
	assert_int_equal(tracer_stop(tracer, first, MS), -ETIMEDOUT);
	assert_true(tracing.is_urgent);
	tracer_forget(tracer, first);
	assert_false(tracing.is_urgent);
}

static void a_look_is_awaited_on_a_cpu_that_ljspy_gets_first(void **state)
{
	(void)state;
	tracer_await_look(tracer, 5);
	assert_int_equal(tracing.visited, -1);
	tracer_end_look(tracer);
	tracer_be_urgent_by_nice(tracer);
	assert_false(tracer_may_be_first(tracer));
	tracer_await_look(tracer, 5);
	assert_int_equal(tracing.visited, -1);
	assert_true(tracing.is_urgent);
	tracing.turn_is_used_up = true;
	assert_true(tracer_turn_is_used_up(tracer));
	tracer_end_look(tracer);
	assert_false(tracing.is_urgent);
	tracing.means = URGENT_BY_POLICY;
	tracer_be_urgent(tracer);
	/* Once, and not for less. */
	tracer_be_urgent_by_nice(tracer);
	assert_true(tracer_may_be_first(tracer));
	assert_true(tracer_turn_is_used_up(tracer));
	tracer_await_look(tracer, 5);
	assert_int_equal(tracing.visited, 5);
	assert_false(tracer_turn_is_used_up(tracer));
	assert_true(tracer_leave(tracer));
	tracer_end_look(tracer);
	assert_false(tracer_leave(tracer));
	assert_int_equal(tracing.visited, -1);
	assert_false(tracing.is_urgent);
	tracing.turn_is_used_up = false;
	assert_false(tracer_turn_is_used_up(tracer));
}

static void who_is_modest_stays_urgent_by_the_policy(void **state)
{
	(void)state;
	tracing.is_modest = true;
	tracer_be_urgent_by_nice(tracer);
	tracer_await_look(tracer, -1);
	tracer_end_look(tracer);
	assert_false(tracing.is_urgent);
	tracing.means = URGENT_BY_POLICY;
	tracer_be_urgent(tracer);
	/* Without a look there is nothing to go on with. */
	tracer_end_look(tracer);
	assert_false(tracing.is_urgent);
	tracer_await_look(tracer, -1);
	tracer_end_look(tracer);
	assert_true(tracing.is_urgent && tracing.goes_on);
	/* Also for work that may take its time. */
	tracer_take_time(tracer);
	assert_true(tracing.is_urgent && tracing.goes_on);
	tracing.is_modest = false;
	tracer_take_time(tracer);
	assert_false(tracing.is_urgent);
}

static void after_signals_it_stays_urgent_for_a_second(void **state)
{
	(void)state;
	tracer_await_look(tracer, -1);
	get_signal(SIGUSR1);
	tracing.now_ns += NS_PER_SECOND - MS;
	tracer_end_look(tracer);
	assert_true(tracing.is_urgent);
	assert_true(tracing.goes_on);
	tracing.now_ns += 2 * MS;
	tracer_end_look(tracer);
	assert_false(tracing.is_urgent);
	/* Without a look there is nothing to go on with. */
	get_signal(SIGUSR1);
	tracer_end_look(tracer);
	assert_false(tracing.is_urgent);
	tracer_await_look(tracer, -1);
	tracer_end_look(tracer);
	assert_true(tracing.is_urgent);
	/* What takes its time must not. */
	tracer_take_time(tracer);
	assert_false(tracing.is_urgent);
	tracer_end_look(tracer);
	assert_false(tracing.is_urgent);
}

/*---- The end ----*/

static void all_that_are_held_go_on_at_the_end(void **state)
{
	struct registers registers;

	(void)state;
	assert_int_equal(tracer_stop(tracer, first, MS), 0);
	assert_int_equal(tracer_stop(tracer, second, MS), 0);
	assert_int_equal(tracer_registers(second, &registers), 0);
	tracing.told[0] = '\0';
	tracer_let_go(tracer);
	assert_told("go on 100 0; go on 101 0; no more urgent; ");
	/* Seized threads have nothing on its way that must be awaited. */
	assert_int_equal(tracing.sleeps, 0);
	tracer_free(tracer);
	assert_told("");
	tracer_free(NULL);
	tracer = tracer_new();
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_thread_is_held_until_it_is_let_go),
		TEST(registers_are_read_once_in_a_stop),
		TEST(registers_are_read_again_if_a_call_begins_again),
		TEST(registers_that_are_no_64_bit_programs_are_refused),
		TEST(one_on_another_cpu_is_waited_for_awake_at_first),
		TEST(one_that_does_not_stop_in_time_is_let_go_when_it_does),
		TEST(a_wait_may_end_before_ljspy_would_sleep),
		TEST(one_that_stops_late_is_held_if_the_caller_wants_that),
		TEST(one_that_stops_late_ends_the_wait_for_another),
		TEST(only_one_that_runs_is_stopped_by_its_look),
		TEST(a_stop_is_not_taken_for_an_earlier_one),
		TEST(a_time_without_a_report_is_taken_from_the_caller),
		TEST(a_signal_is_passed_on),
		TEST(one_that_gets_a_signal_is_told_to_stop_again),
		TEST(a_call_that_a_stop_ends_begins_again),
		TEST(a_call_with_a_limit_begins_again_once_in_a_second),
		TEST(a_call_that_job_control_ends_stays_ended),
		TEST(a_job_that_is_stopped_stays_so_until_it_is_continued),
		TEST(a_stopped_job_can_be_held_and_stays_stopped),
		TEST(the_end_of_a_thread_is_told_once),
		TEST(one_that_ends_while_it_is_awaited_is_gone),
		TEST(one_that_cannot_be_told_to_stop_is_gone),
		TEST(one_that_does_not_answer_may_be_somebody_else),
		TEST(a_new_program_is_noticed_and_runs_on),
		TEST(a_new_program_of_another_thread_ends_that_id),
		TEST(a_new_program_ends_a_hold),
		TEST(a_program_may_begin_under_an_id_that_nobody_has_seized),
		TEST(a_stranger_never_stays_stopped),
		TEST(a_child_that_is_no_tracee_hides_no_report),
		TEST(where_the_kernel_does_not_tell_who_reports_all_are_asked),
		TEST(a_storm_of_signals_does_not_keep_a_poll),
		TEST(all_are_passed_on_while_the_caller_cannot_look),
		TEST(a_wakeup_that_is_taken_is_not_lost),
		TEST(a_stop_that_ljspy_slept_for_leaves_no_poll_to_do),
		TEST(why_a_thread_cannot_be_seized_is_told),
		TEST(one_that_is_seized_late_is_seized_when_it_is_to_be_held),
		TEST(one_that_cannot_be_seized_late_runs_on),
		TEST(the_end_of_one_that_is_not_seized_is_the_callers_to_note),
		TEST(only_one_who_asks_learns_that_a_tracee_is_none_any_more),
		TEST(an_id_is_that_of_one_thread_until_it_is_forgotten),
		TEST(where_threads_may_be_attached_to_none_is_seized_late),
		TEST(one_that_calls_execve_while_it_is_seized_has_another_id),
		TEST(one_that_may_get_signals_is_there),
		TEST(one_that_is_a_tracee_already_is_kept),
		TEST(where_memory_is_short_none_is_seized),
		TEST(threads_that_are_left_alone_are_only_known),
		TEST(files_are_kept_open_while_there_are_some),
		TEST(kept_files_leave_room_for_others),
		TEST(where_a_thread_may_run_is_told),
		TEST(ljspy_is_urgent_until_the_thread_runs_on),
		TEST(a_look_is_awaited_on_a_cpu_that_ljspy_gets_first),
		TEST(who_is_modest_stays_urgent_by_the_policy),
		TEST(after_signals_it_stays_urgent_for_a_second),
		TEST(all_that_are_held_go_on_at_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

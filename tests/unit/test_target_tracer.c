/* SPDX-License-Identifier: MIT */
/* What holding threads does to a target, and what it does not do. */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/linux/proc/process.h"
#include "src/linux/threads/threads.h"
#include "src/linux/tracer/tracer.h"
#include "src/linux/tracer/tracer_looks.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/target_process.h"

static const uint64_t second_ns = 1000000000u;
/* For a stop that comes, however loaded the machine is. */
static const uint64_t patience_ns = 20000000000u;

/* A kernel before 3.4 has no PTRACE_SEIZE, and what came with it. */
static bool kernel_is_old;

/* In the midst of an execve(), no thread can be seized by its id, though one is there. */
static bool ids_change;

/* So many times the kernel lets no thread be seized. */
static int refusals;

INSTEAD_OF(process_read_status);

int __wrap_process_read_status(pid_t tid, struct process *ret_process)
{
	int error = __real_process_read_status(tid, ret_process);

	if (!error && ids_change)
		ret_process->state = 'Z';
	return error;
}

INSTEAD_OF(ptrace);

long __wrap_ptrace(enum __ptrace_request request, ...)
{
	va_list arguments;
	pid_t pid;
	void *address, *data;

	va_start(arguments, request);
	pid = va_arg(arguments, pid_t);
	address = va_arg(arguments, void *);
	data = va_arg(arguments, void *);
	va_end(arguments);
	if (request == PTRACE_SEIZE && (ids_change || refusals > 0)) {
		refusals -= refusals > 0;
		errno = EPERM;
		return -1;
	}
	if (kernel_is_old &&
	    (request == PTRACE_SEIZE || request == PTRACE_INTERRUPT || request == PTRACE_LISTEN)) {
		errno = EIO;
		return -1;
	}
	return __real_ptrace(request, pid, address, data);
}

static int make_kernel_old(void **state)
{
	(void)state;
	kernel_is_old = true;
	return 0;
}

static int make_kernel_new(void **state)
{
	(void)state;
	kernel_is_old = false;
	return 0;
}

static struct tracer *new_tracer(void)
{
	struct tracer *tracer = tracer_new();

	assert_non_null(tracer);
	if (kernel_is_old)
		tracer_allow_attach(tracer);
	return tracer;
}

/* Wait until something is to be polled or a moment has passed. */
static bool poll_for_ms(struct tracer *tracer, unsigned int ms)
{
	struct timespec moment = { 0, (long)ms * 1000000 };
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	if (!tracer_poll_is_due(tracer))
		sigtimedwait(&child, NULL, &moment);
	return tracer_poll(tracer);
}

static void poll_until_state(struct tracer *tracer, const struct tracee *tracee, enum tracee_state state)
{
	uint64_t end = monotonic_ns() + 10 * second_ns;

	while (tracee->state != state) {
		if (monotonic_ns() > end)
			fail_msg("tracee is in state %d, not %d", (int)tracee->state, (int)state);
		poll_for_ms(tracer, 1);
	}
}

/* The next line it prints, while its signals are passed on. */
static void await_line(struct tracer *tracer, struct target_process *target, char *line, size_t room)
{
	struct pollfd output = { .fd = fileno(target->output), .events = POLLIN };

	while (poll(&output, 1, 0) == 0)
		poll_for_ms(tracer, 1);
	target_process_line(target, line, room);
}

static uint64_t cpu_ns(pid_t pid)
{
	clockid_t clock;
	struct timespec now;

	assert_int_equal(clock_getcpuclockid(pid, &clock), 0);
	assert_int_equal(clock_gettime(clock, &now), 0);
	return (uint64_t)now.tv_sec * second_ns + (uint64_t)now.tv_nsec;
}

static bool uses_cpu(pid_t pid)
{
	uint64_t start = cpu_ns(pid);

	for (int i = 0; i < 1000; i++) {
		if (cpu_ns(pid) - start > 5000000)
			return true;
		sleep_ms(2);
	}
	return false;
}

/* The same while its signals are passed on. */
static bool uses_cpu_beside(struct tracer *tracer, pid_t pid)
{
	uint64_t start = cpu_ns(pid);

	for (int i = 0; i < 5000 && cpu_ns(pid) - start <= 5000000; i++)
		poll_for_ms(tracer, 1);
	return cpu_ns(pid) - start > 5000000;
}

/*
 * A stopped thread may still wait for its CPU, which takes it long beside others, and leaves it within a
 * moment.
 */
static bool stays_off_cpu(pid_t pid)
{
	const uint64_t moment_ns = 1000000;
	uint64_t start = 0;

	for (int i = 0; i < 100 && start != cpu_ns(pid); i++) {
		start = cpu_ns(pid);
		sleep_ms(20);
	}
	sleep_ms(50);
	return cpu_ns(pid) - start < moment_ns;
}

static void held_thread_shows_registers_and_runs_on(void **state)
{
	struct target_process target = target_process_start("spinner", NULL);
	struct tracer *tracer = new_tracer();
	struct tracee *tracee;
	struct registers registers;

	(void)state;
	assert_int_equal(tracer_seize(tracer, target.pid, target.pid, &tracee), 0);
	assert_ptr_equal(tracer_find(tracer, target.pid), tracee);
	assert_int_equal(tracer_stop(tracer, tracee, patience_ns), 0);
	assert_int_equal(tracee->state, TRACEE_HELD);
	assert_int_equal(target_process_state(target.pid, target.pid), 't');
	assert_int_equal(tracer_registers(tracee, &registers), 0);
	assert_true(registers.pc > 4096);
	assert_true(registers.sp > 4096);
	assert_true(stays_off_cpu(target.pid));
	tracer_resume(tracer, tracee);
	assert_true(uses_cpu(target.pid));
	target_process_end(&target);
	tracer_free(tracer);
}

static void sleeping_thread_is_never_stopped(void **state)
{
	struct target_process target = target_process_start("sleeper", NULL);
	struct tracer *tracer = new_tracer();
	struct threads *threads = threads_new(tracer, target.pid);
	char line[16];

	(void)state;
	target_process_await(target.pid, target.pid, "S");
	assert_int_equal(threads_refresh(threads, monotonic_ns(), 0), 0);
	for (int i = 0; i < 2000; i++) {
		struct thread *thread = threads_at(threads, 0);

		if (thread_is_running(threads, thread)) {
			assert_int_equal(tracer_stop(tracer, thread->tracee, patience_ns), 0);
			tracer_resume(tracer, thread->tracee);
		}
	}
	target_process_tell(&target, "enough");
	while (tracer_find(tracer, target.pid)->state != TRACEE_GONE)
		poll_for_ms(tracer, 1);
	target_process_line(&target, line, sizeof(line));
	assert_string_equal(line, "0");
	target_process_end(&target);
	threads_free(threads);
	tracer_free(tracer);
}

/* Its signals are passed on until it sleeps for good. */
static void poll_until_asleep(struct tracer *tracer, pid_t pid)
{
	int asleep = 0;

	for (int i = 0; i < 10000 && asleep < 3; i++) {
		poll_for_ms(tracer, 1);
		asleep = target_process_state(pid, pid) == 'S' ? asleep + 1 : 0;
	}
}

/* What the sleeper counted, after something was done to it in its sleep. */
static void assert_interrupted(struct tracer *tracer, struct target_process *target, const char *times)
{
	char line[16];

	poll_until_asleep(tracer, target->pid);
	target_process_tell(target, "enough");
	await_line(tracer, target, line, sizeof(line));
	assert_string_equal(line, times);
	target_process_end(target);
	tracer_free(tracer);
}

static void stop_does_not_end_the_call_that_a_thread_waits_in(void **state)
{
	struct target_process target = target_process_start("sleeper", NULL);
	struct tracer *tracer = new_tracer();
	struct tracee *tracee;

	(void)state;
	assert_int_equal(tracer_seize(tracer, target.pid, target.pid, &tracee), 0);
	for (int i = 0; i < 200; i++) {
		target_process_await(target.pid, target.pid, "S");
		assert_int_equal(tracer_stop(tracer, tracee, patience_ns), 0);
		tracer_resume(tracer, tracee);
	}
	assert_interrupted(tracer, &target, "0");
}

/* It wakes only those who are traced. */
static void ignored_signal_does_not_end_the_call_that_a_thread_waits_in(void **state)
{
	static const int ignored[] = { SIGCHLD, SIGWINCH, SIGURG, SIGCONT };
	struct target_process target = target_process_start("sleeper", NULL);
	struct tracer *tracer = new_tracer();
	struct tracee *tracee;

	(void)state;
	assert_int_equal(tracer_seize(tracer, target.pid, target.pid, &tracee), 0);
	for (int i = 0; i < 40; i++) {
		kill(target.pid, ignored[i % 4]);
		poll_until_asleep(tracer, target.pid);
	}
	assert_interrupted(tracer, &target, "0");
}

/*
 * A call that begins again has its full time again. If each ignored signal had that effect,
 * signals that keep coming would keep the call from ever ending.
 */
static void ignored_signals_do_not_put_off_the_end_of_a_limited_call(void **state)
{
	struct target_process target = target_process_start("sleeper", (const char *[]){ "50000", NULL });
	struct tracer *tracer = new_tracer();
	struct tracee *tracee;
	char line[16];

	(void)state;
	assert_int_equal(tracer_seize(tracer, target.pid, target.pid, &tracee), 0);
	for (int i = 0; i < 20; i++) {
		kill(target.pid, SIGWINCH);
		poll_until_asleep(tracer, target.pid);
	}
	target_process_tell(&target, "enough");
	await_line(tracer, &target, line, sizeof(line));
	assert_in_range(atoi(line), 1, 19); /* the first one of a second is as if it had not come */
	target_process_end(&target);
	tracer_free(tracer);
}

static void job_stop_ends_the_call_that_a_thread_waits_in_as_ever(void **state)
{
	struct target_process target = target_process_start("sleeper", NULL);
	struct tracer *tracer = new_tracer();
	struct tracee *tracee;

	(void)state;
	assert_int_equal(tracer_seize(tracer, target.pid, target.pid, &tracee), 0);
	for (int i = 0; i < 3; i++) {
		target_process_await(target.pid, target.pid, "S");
		kill(target.pid, SIGSTOP);
		poll_until_state(tracer, tracee, TRACEE_JOB_STOPPED);
		assert_int_equal(tracer_stop(tracer, tracee, patience_ns), 0);
		tracer_resume(tracer, tracee);
		kill(target.pid, SIGCONT);
		poll_until_state(tracer, tracee, TRACEE_RUNNING);
		poll_until_asleep(tracer, target.pid);
	}
	assert_interrupted(tracer, &target, "3");
}

static void *send_signals(void *target)
{
	pid_t pid = *(pid_t *)target;

	for (int i = 0; i < 5000; i++) {
		/* The queue may be full. */
		while (sigqueue(pid, SIGRTMIN, (union sigval){ .sival_int = i }) && errno == EAGAIN)
			sleep_ms(1);
		if (i % 8 == 0)
			sleep_ms(1);
	}
	return NULL;
}

static void signals_arrive_once_and_in_order(void **state)
{
	struct target_process target = target_process_start("receiver", NULL);
	struct tracer *tracer = new_tracer();
	struct tracee *tracee;
	pthread_t sender;
	char line[64];

	(void)state;
	assert_int_equal(tracer_seize(tracer, target.pid, target.pid, &tracee), 0);
	assert_int_equal(pthread_create(&sender, NULL, send_signals, &target.pid), 0);
	for (int i = 0; i < 2000; i++) {
		assert_int_equal(tracer_stop(tracer, tracee, patience_ns), 0);
		tracer_resume(tracer, tracee);
		tracer_poll(tracer);
	}
	while (pthread_tryjoin_np(sender, NULL))
		poll_for_ms(tracer, 1);
	sigqueue(target.pid, SIGRTMIN, (union sigval){ .sival_int = -1 });
	poll_until_state(tracer, tracee, TRACEE_GONE);
	target_process_line(&target, line, sizeof(line));
	assert_string_equal(line, "5000 received, 0 disordered");
	target_process_end(&target);
	tracer_free(tracer);
}

/*
 * One that gets a signal waits until ljspy lets it go on: what ljspy does after a look must not be put off.
 */
static void after_a_signal_it_stays_urgent_when_a_look_ends(void **state)
{
	struct target_process target = target_process_start("receiver", NULL);
	struct tracer *tracer = new_tracer();
	struct tracee *tracee;
	int policy = sched_getscheduler(0);

	(void)state;
	tracer_be_urgent(tracer);
	assert_int_equal(tracer_seize(tracer, target.pid, target.pid, &tracee), 0);
	tracer_await_look(tracer, -1);
	if (sched_getscheduler(0) != SCHED_RR) {
		tracer_free(tracer);
		target_process_end(&target);
		skip();
	}
	tracer_end_look(tracer);
	assert_int_equal(sched_getscheduler(0), policy | SCHED_RESET_ON_FORK);
	sigqueue(target.pid, SIGRTMIN, (union sigval){ .sival_int = 0 });
	while (sched_getscheduler(0) != SCHED_RR) {
		poll_for_ms(tracer, 1);
		tracer_await_look(tracer, -1);
		tracer_end_look(tracer);
	}
	/* It ends at once if that takes time. */
	tracer_take_time(tracer);
	assert_int_equal(sched_getscheduler(0), policy | SCHED_RESET_ON_FORK);
	tracer_end_look(tracer);
	assert_int_equal(sched_getscheduler(0), policy | SCHED_RESET_ON_FORK);
	tracer_free(tracer);
	assert_int_equal(sched_getscheduler(0), policy);
	target_process_end(&target);
}

/* Whatever else it stops for meanwhile. */
static void late_stop_holds_in_a_storm_of_signals(void **state)
{
	struct target_process target = target_process_start("receiver", NULL);
	struct tracer *tracer = new_tracer();
	struct tracee *tracee;
	pthread_t sender;
	unsigned int late = 0;

	(void)state;
	assert_int_equal(tracer_seize(tracer, target.pid, target.pid, &tracee), 0);
	assert_int_equal(pthread_create(&sender, NULL, send_signals, &target.pid), 0);
	for (int i = 0; i < 2000; i++) {
		int error = tracer_stop(tracer, tracee, 0);

		if (error) {
			assert_int_equal(error, -ETIMEDOUT);
			tracee->hold_late = true;
			late++;
			poll_until_state(tracer, tracee, TRACEE_HELD);
			assert_true(tracer_has_held_late(tracer));
		}
		tracer_resume(tracer, tracee);
	}
	while (pthread_tryjoin_np(sender, NULL))
		poll_for_ms(tracer, 1);
	assert_true(late > 100);
	target_process_end(&target);
	tracer_free(tracer);
}

/* The signal that reports a late stop is taken; that there is something to look at is remembered. */
static void late_stop_that_a_wakeup_tells_of_is_due_for_a_look(void **state)
{
	struct target_process target = target_process_start("spinner", NULL);
	struct tracer *tracer = new_tracer();
	struct tracee *tracee;
	unsigned int late = 0;

	(void)state;
	assert_int_equal(tracer_seize(tracer, target.pid, target.pid, &tracee), 0);
	for (int i = 0; i < 200; i++) {
		poll_for_ms(tracer, 1);
		assert_false(tracer_poll_is_due(tracer));
		if (tracer_stop(tracer, tracee, 0)) {
			tracee->hold_late = true;
			for (int ms = 0; ms < 5000 && tracee->state != TRACEE_HELD; ms++) {
				usleep(1000);
				tracer_take_wakeup(tracer);
			}
			assert_int_equal(tracee->state, TRACEE_HELD);
			assert_true(tracer_poll_is_due(tracer));
			late++;
		}
		tracer_resume(tracer, tracee);
	}
	assert_true(late > 0);
	target_process_end(&target);
	tracer_free(tracer);
}

static void every_stop_is_asked_for(void **state)
{
	struct target_process target = target_process_start("spinner", NULL);
	struct tracer *tracer = new_tracer();
	struct tracee *tracee;

	(void)state;
	assert_int_equal(tracer_seize(tracer, target.pid, target.pid, &tracee), 0);
	for (int i = 0; i < 200; i++) {
		siginfo_t info = { .si_pid = 0 };

		kill(target.pid, SIGWINCH); /* does nothing, but is reported to a tracer */
		assert_int_equal(tracer_stop(tracer, tracee, patience_ns), 0);
		kill(target.pid, SIGWINCH);
		tracer_resume(tracer, tracee);
		poll_for_ms(tracer, 1); /* the signal that came while it was held */
		/* Nothing is left over that would hold the target once more. */
		assert_int_equal(
			waitid(P_PID, (id_t)target.pid, &info, WSTOPPED | WNOHANG | WNOWAIT | __WALL), 0);
		if (info.si_pid)
			assert_int_not_equal(info.si_status >> 8, 128); /* PTRACE_EVENT_STOP */
		tracer_poll(tracer);
	}
	target_process_end(&target);
	tracer_free(tracer);
}

static void job_stopped_target_stays_stopped_until_continued(void **state)
{
	/* A thread that is not attached to would take the SIGCONT that shows the end of the stop. */
	const char *const threads = kernel_is_old ? "1" : "2";
	struct target_process target = target_process_start("spinner", (const char *[]){ threads, NULL });
	struct tracer *tracer = new_tracer();
	struct registers registers;
	struct tracee *tracee;

	(void)state;
	assert_int_equal(tracer_seize(tracer, target.pid, target.pid, &tracee), 0);
	kill(target.pid, SIGSTOP);
	poll_until_state(tracer, tracee, TRACEE_JOB_STOPPED);
	assert_true(stays_off_cpu(target.pid));

	/* It can be held all the same, and is stopped as before afterwards. */
	assert_int_equal(tracer_stop(tracer, tracee, patience_ns), 0);
	assert_int_equal(tracer_registers(tracee, &registers), 0);
	tracer_resume(tracer, tracee);
	assert_int_equal(tracee->state, TRACEE_JOB_STOPPED);
	for (int i = 0; i < 20; i++)
		poll_for_ms(tracer, 1);
	assert_true(stays_off_cpu(target.pid));

	kill(target.pid, SIGCONT);
	poll_until_state(tracer, tracee, TRACEE_RUNNING);
	assert_true(uses_cpu_beside(tracer, target.pid)); /* SIGCONT itself is passed on, too */
	target_process_end(&target);
	tracer_free(tracer);
}

static void target_stopped_before_it_was_seized_stays_stopped(void **state)
{
	struct target_process target = target_process_start("spinner", NULL);
	struct tracer *tracer = new_tracer();
	struct tracee *tracee;

	(void)state;
	kill(target.pid, SIGSTOP);
	target_process_await(target.pid, target.pid, "T");
	assert_int_equal(tracer_seize(tracer, target.pid, target.pid, &tracee), 0);
	poll_until_state(tracer, tracee, TRACEE_JOB_STOPPED);
	assert_true(stays_off_cpu(target.pid));
	kill(target.pid, SIGCONT);
	poll_until_state(tracer, tracee, TRACEE_RUNNING);
	assert_true(uses_cpu_beside(tracer, target.pid));
	target_process_end(&target);
	tracer_free(tracer);
}

static void stop_signal_while_held_takes_effect_on_resume(void **state)
{
	struct target_process target = target_process_start("spinner", NULL);
	struct tracer *tracer = new_tracer();
	struct tracee *tracee;

	(void)state;
	assert_int_equal(tracer_seize(tracer, target.pid, target.pid, &tracee), 0);
	assert_int_equal(tracer_stop(tracer, tracee, patience_ns), 0);
	kill(target.pid, SIGSTOP);
	tracer_resume(tracer, tracee);
	poll_until_state(tracer, tracee, TRACEE_JOB_STOPPED);
	assert_true(stays_off_cpu(target.pid));
	target_process_end(&target);
	tracer_free(tracer);
}

static bool child_signal_is_pending(void)
{
	sigset_t pending;

	assert_int_equal(sigpending(&pending), 0);
	return sigismember(&pending, SIGCHLD);
}

/* Poll as the loop does, that asks the kernel where a report is due or a signal has come. */
static void poll_what_is_told(struct tracer *tracer)
{
	const bool is_told = tracer_poll_is_due(tracer) || child_signal_is_pending();

	/* A report may come right before the poll: its signal is left. */
	if (tracer_poll(tracer) && !is_told && !child_signal_is_pending())
		fail_msg("there was a report that nothing told of");
}

/* One that ends as it is told to stop would be waited for to the last: ask after a second. */
static int stop_in_the_end(struct tracer *tracer, struct tracee *tracee)
{
	const uint64_t enough_ns = monotonic_ns() + patience_ns;
	int error;

	while ((error = tracer_stop(tracer, tracee, second_ns)) == -ETIMEDOUT && monotonic_ns() < enough_ns)
		poll_what_is_told(tracer);
	return error;
}

/* Do what a sampling loop does, once. True if the process was found to run another program. */
static bool sample(struct tracer *tracer, struct threads *threads)
{
	const uint64_t enough_ns = monotonic_ns() + patience_ns;
	bool execed = false;
	int refusal;

	while ((refusal = threads_refresh(threads, monotonic_ns(), 0)) == -EBUSY &&
	       monotonic_ns() < enough_ns)
		poll_for_ms(tracer, 1);
	if (refusal)
		fail_msg("no thread is left, by error %d", -refusal);
	for (size_t i = 0; i < threads_count(threads); i++) {
		struct thread *thread = threads_at(threads, i);
		int error;

		if (!thread_is_running(threads, thread))
			continue;
		error = stop_in_the_end(tracer, thread->tracee);
		if (!error)
			tracer_resume(tracer, thread->tracee);
		else if (error != -ESRCH && error != -ECANCELED)
			fail_msg("a stop failed by error %d", -error);
	}
	poll_for_ms(tracer, 1);
	for (size_t i = 0; i < threads_count(threads); i++) {
		struct tracee *tracee = threads_at(threads, i)->tracee;

		execed |= tracee->execed;
		tracee->execed = false;
	}
	return execed;
}

/*
 * Until the program prints that line, or reaches its time limit: without polls, that signal would wait, too.
 * True if it was found to run another one.
 */
static bool sample_until(struct tracer *tracer, struct threads *threads, struct target_process *target,
			 const char *expected)
{
	struct pollfd output = { .fd = fileno(target->output), .events = POLLIN };
	bool execed = false;
	char line[16];

	while (poll(&output, 1, 0) == 0)
		execed |= sample(tracer, threads);
	target_process_line(target, line, sizeof(line));
	assert_string_equal(line, expected);
	return execed | sample(tracer, threads);
}

/* Twenty times, or as often as a busy machine lets it within some seconds: the target has a time limit. */
static void exec_is_noticed_without_a_hang(const char *how, bool late)
{
	const uint64_t enough_ns = monotonic_ns() + 4 * UINT64_C(1000000000);
	struct target_process target = target_process_start("execer", (const char *[]){ how, NULL });
	struct tracer *tracer = new_tracer();
	struct threads *threads = threads_new(tracer, target.pid);

	if (late)
		threads_seize_late(threads);
	for (int i = 0; i < 20 && (i < 2 || monotonic_ns() < enough_ns); i++) {
		target_process_tell(&target, "start your threads");
		assert_false(sample_until(tracer, threads, &target, "threads"));
		for (int j = 0; j < 5; j++)
			assert_false(sample(tracer, threads));
		target_process_tell(&target, "run again");
		assert_true(sample_until(tracer, threads, &target, "again"));
	}
	target_process_end(&target);
	threads_free(threads);
	tracer_free(tracer);
}

static void a_process_whose_threads_cannot_be_seized_for_now_has_not_ended(void **state)
{
	struct target_process target = target_process_start("spinner", (const char *[]){ "1", NULL });
	struct tracer *tracer = new_tracer();
	struct threads *threads = threads_new(tracer, target.pid);

	(void)state;
	ids_change = true;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(threads_refresh(threads, monotonic_ns(), 0), -EBUSY);
		assert_int_equal(threads_count(threads), 0);
	}
	ids_change = false;
	assert_int_equal(threads_refresh(threads, monotonic_ns(), 0), 0);
	assert_int_equal(threads_count(threads), 1);
	target_process_end(&target);
	threads_free(threads);
	tracer_free(tracer);
}

static void exec_of_a_single_thread_is_noticed(void **state)
{
	(void)state;
	exec_is_noticed_without_a_hang("leader", false);
}

static void exec_of_one_of_several_threads_is_noticed(void **state)
{
	(void)state;
	exec_is_noticed_without_a_hang("thread", false);
}

static void exec_after_the_first_thread_has_ended_is_noticed(void **state)
{
	(void)state;
	exec_is_noticed_without_a_hang("orphan", false);
}

static void exec_of_a_first_thread_beside_those_seized_late_is_noticed(void **state)
{
	(void)state;
	exec_is_noticed_without_a_hang("leader", true);
}

/* The thread that calls execve() has never been held, as it sleeps until then. */
static void exec_of_a_thread_that_is_seized_late_is_noticed(void **state)
{
	(void)state;
	exec_is_noticed_without_a_hang("thread", true);
}

static void exec_of_one_seized_late_after_the_first_has_ended_is_noticed(void **state)
{
	(void)state;
	exec_is_noticed_without_a_hang("orphan", true);
}

static pid_t tracer_of(pid_t pid, pid_t tid)
{
	char path[64], line[256];
	pid_t found = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)pid, (int)tid);
	file = fopen(path, "r");
	assert_non_null(file);
	while (found < 0 && fgets(line, sizeof(line), file))
		sscanf(line, "TracerPid: %d", &found);
	fclose(file);
	assert_true(found >= 0);
	return found;
}

static void thread_that_is_seized_late_is_left_alone_until_it_is_held(void **state)
{
	struct target_process target = target_process_start("spinner", (const char *[]){ "3", NULL });
	struct tracer *tracer = new_tracer();
	struct threads *threads = threads_new(tracer, target.pid);
	struct registers registers;

	(void)state;
	threads_seize_late(threads);
	assert_int_equal(threads_refresh(threads, monotonic_ns(), 0), 0);
	assert_int_equal(threads_count(threads), 3);
	for (size_t i = 0; i < 3; i++) {
		struct thread *thread = threads_at(threads, i);

		/* What the kernel reports of others is no reason to seize it. */
		tracer_poll(tracer);
		assert_int_equal(tracer_has_seized(thread->tracee), i == 0);
		assert_int_equal(tracer_of(target.pid, thread->tid), i == 0 ? gettid() : 0);
		assert_int_equal(thread->tracee->state, TRACEE_RUNNING);
		assert_int_equal(tracer_stop_running(tracer, thread->tracee, patience_ns), 0);
		assert_int_equal(tracer_of(target.pid, thread->tid), gettid());
		assert_int_equal(target_process_state(target.pid, thread->tid), 't');
		assert_int_equal(tracer_registers(thread->tracee, &registers), 0);
		assert_true(registers.sp > 4096);
		tracer_resume(tracer, thread->tracee);
		assert_true(tracer_has_seized(thread->tracee));
	}
	for (size_t i = 0; i < 3; i++) {
		struct thread *thread = threads_at(threads, i);

		assert_int_equal(tracer_stop_running(tracer, thread->tracee, patience_ns), 0);
		tracer_resume(tracer, thread->tracee);
	}
	assert_true(uses_cpu(target.pid));
	target_process_end(&target);
	threads_free(threads);
	tracer_free(tracer);
}

static void exec_of_a_thread_that_was_not_seized_is_noticed(void **state)
{
	struct target_process target = target_process_start("execer", (const char *[]){ "thread", NULL });
	struct tracer *tracer = new_tracer();
	struct threads *threads = threads_new(tracer, target.pid);
	char line[16];

	(void)state;
	assert_false(sample(tracer, threads));
	target_process_tell(&target, "start your threads");
	target_process_line(&target, line, sizeof(line));
	target_process_tell(&target, "run again");
	target_process_line(&target, line, sizeof(line));
	assert_string_equal(line, "again");
	/* The first thread is not known to be gone before somebody asks for it. */
	assert_int_equal(tracer_stop(tracer, threads_at(threads, 0)->tracee, patience_ns), -ESRCH);
	assert_true(sample(tracer, threads));
	target_process_end(&target);
	threads_free(threads);
	tracer_free(tracer);
}

/* The thread other than the first one that sleeps, or that does not. */
static pid_t find_other_thread(pid_t pid, bool asleep)
{
	char path[64];
	struct dirent *entry;
	pid_t found = 0;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	tasks = opendir(path);
	assert_non_null(tasks);
	while ((entry = readdir(tasks))) {
		pid_t tid = (pid_t)atoi(entry->d_name);

		if (tid > 0 && tid != pid && (target_process_state(pid, tid) == 'S') == asleep)
			found = tid;
	}
	closedir(tasks);
	return found;
}

/* Another tracer: it lets go when it is told to. */
struct other_tracer {
	pid_t tid; /* of its tracee */
	int error;
	sem_t has_seized, may_end;
};

static void *trace_elsewhere(void *argument)
{
	struct other_tracer *other = argument;

	other->error = ptrace(PTRACE_SEIZE, other->tid, NULL, NULL) ? errno : 0;
	sem_post(&other->has_seized);
	sem_wait(&other->may_end);
	return NULL;
}

/* A thread frees its tracees a moment after pthread_join(). */
static void await_free(pid_t tid)
{
	struct process process = { .tracer_pid = 1 };

	while (process.tracer_pid != 0) {
		sleep_ms(1);
		assert_int_equal(process_read_status(tid, &process), 0);
	}
}

static void thread_whose_tracer_ends_meanwhile_is_seized(void **state)
{
	struct target_process target = target_process_start("spinner", (const char *[]){ "1", NULL });
	struct tracer *tracer = new_tracer();
	struct tracee *tracee;

	(void)state;
	refusals = 1;
	assert_int_equal(tracer_seize(tracer, target.pid, target.pid, &tracee), 0);
	assert_int_equal(refusals, 0);
	assert_true(tracer_has_seized(tracee));
	assert_int_equal(tracer_stop(tracer, tracee, patience_ns), 0);
	tracer_resume(tracer, tracee);
	tracer_free(tracer);
	target_process_end(&target);
}

static void thread_that_cannot_be_seized_late_is_told_of(void **state)
{
	struct target_process target = target_process_start("spinner", (const char *[]){ "2", NULL });
	struct other_tracer other = { .tid = 0 };
	struct tracer *tracer = new_tracer();
	struct tracee *tracee;
	pthread_t thread;

	(void)state;
	while (!other.tid)
		other.tid = find_other_thread(target.pid, false);
	assert_int_equal(tracer_seize_late(tracer, target.pid, other.tid, &tracee), 0);
	sem_init(&other.has_seized, 0, 0);
	sem_init(&other.may_end, 0, 0);
	assert_int_equal(pthread_create(&thread, NULL, trace_elsewhere, &other), 0);
	sem_wait(&other.has_seized);
	assert_int_equal(other.error, 0);
	assert_int_equal(tracer_stop(tracer, tracee, patience_ns), -EPERM);
	assert_false(tracer_has_seized(tracee));
	assert_int_equal(tracee->state, TRACEE_RUNNING);
	sem_post(&other.may_end);
	pthread_join(thread, NULL);
	await_free(other.tid);
	assert_int_equal(tracer_stop(tracer, tracee, patience_ns), 0);
	tracer_resume(tracer, tracee);
	target_process_end(&target);
	tracer_free(tracer);
}

static void thread_that_ends_before_it_is_seized_is_gone(void **state)
{
	struct target_process target = target_process_start("spinner", (const char *[]){ "2", NULL });
	struct tracer *tracer = new_tracer();
	struct tracee *tracee;
	pid_t other = 0;

	(void)state;
	while (!other)
		other = find_other_thread(target.pid, false);
	assert_int_equal(tracer_seize_late(tracer, target.pid, other, &tracee), 0);
	target_process_end(&target);
	tracer_poll(tracer);
	assert_int_equal(tracee->state, TRACEE_RUNNING); /* nobody tells */
	assert_int_equal(tracer_stop(tracer, tracee, patience_ns), -ESRCH);
	assert_int_equal(tracee->state, TRACEE_GONE);
	tracer_free(tracer);
}

/*
 * execve() of one thread waits until the others, once ended, are reaped by
 * their tracer, and lets nobody seize a thread until then.
 */
static void seizing_during_an_exec_does_not_hang(void **state)
{
	struct target_process target = target_process_start("execer", (const char *[]){ "thread", NULL });
	struct tracer *tracer = new_tracer();
	struct tracee *tracee;
	char line[16];
	pid_t runner = 0, spinner;
	int error;

	(void)state;
	target_process_tell(&target, "start your threads");
	target_process_line(&target, line, sizeof(line));
	while (!runner)
		runner = find_other_thread(target.pid, true);
	spinner = find_other_thread(target.pid, false);
	assert_int_equal(tracer_seize(tracer, target.pid, target.pid, &tracee), 0);
	assert_int_equal(tracer_seize(tracer, target.pid, spinner, &tracee), 0);
	target_process_tell(&target, "run again");
	target_process_await(target.pid, spinner, "Z");
	error = tracer_seize(tracer, target.pid, runner, &tracee);
	/* Its id is for a moment that of the first thread, which has ended. */
	assert_true(error == 0 || error == -ESRCH || error == -EPERM);
	await_line(tracer, &target, line, sizeof(line));
	assert_string_equal(line, "again");
	target_process_end(&target);
	tracer_free(tracer);
}

static void killed_target_is_noticed(void **state)
{
	struct tracer *tracer = new_tracer();

	(void)state;
	for (int i = 0; i < 50; i++) {
		struct target_process target = target_process_start("spinner", (const char *[]){ "3", NULL });
		struct registers registers;
		struct tracee *tracee;
		int error;

		assert_int_equal(tracer_seize(tracer, target.pid, target.pid, &tracee), 0);
		if (i % 2 == 0) { /* while it is held */
			assert_int_equal(tracer_stop(tracer, tracee, patience_ns), 0);
			kill(target.pid, SIGKILL);
			error = tracer_registers(tracee, &registers);
			assert_true(error == 0 || error == -ESRCH);
			tracer_resume(tracer, tracee);
		} else {
			kill(target.pid, SIGKILL);
			error = tracer_stop(tracer, tracee, patience_ns);
			assert_true(error == 0 || error == -ESRCH);
			tracer_resume(tracer, tracee);
		}
		poll_until_state(tracer, tracee, TRACEE_GONE);
		assert_true(tracee->exit_known);
		assert_true(WIFSIGNALED(tracee->exit_status));
		assert_int_equal(tracer_stop(tracer, tracee, patience_ns), -ESRCH);
		tracer_forget(tracer, tracee);
		target_process_end(&target);
	}
	tracer_free(tracer);
}

static void uninterruptible_thread_is_not_waited_for(void **state)
{
	struct target_process target = target_process_start("vforker", NULL);
	struct tracer *tracer = new_tracer();
	struct tracee *tracee;
	char line[16];

	(void)state;
	target_process_line(&target, line, sizeof(line)); /* the child's id */
	target_process_await(target.pid, target.pid, "D");
	assert_int_equal(tracer_seize(tracer, target.pid, target.pid, &tracee), 0);
	assert_int_equal(tracer_stop(tracer, tracee, second_ns / 100), -ETIMEDOUT);
	assert_int_equal(tracee->state, TRACEE_AWAITED);
	assert_int_equal(tracer_stop(tracer, tracee, second_ns / 100), -ETIMEDOUT);
	target_process_tell(&target, "end");
	poll_until_state(tracer, tracee, TRACEE_RUNNING); /* the late stop was not kept */
	await_line(tracer, &target, line, sizeof(line));
	assert_string_equal(line, "done");
	assert_int_equal(tracer_stop(tracer, tracee, patience_ns), 0);
	tracer_resume(tracer, tracee);
	/* The kernel may report the child's end only now. */
	assert_true(uses_cpu_beside(tracer, target.pid));
	target_process_end(&target);
	tracer_free(tracer);
}

/* One that stops late is held, so ljspy must see to it at once. */
static void held_thread_does_not_wait_for_the_stop_of_another(void **state)
{
	struct target_process slow = target_process_start("vforker", NULL);
	struct target_process target = target_process_start("spinner", NULL);
	struct tracer *tracer = new_tracer();
	struct tracee *awaited, *tracee;
	uint64_t begin;
	char line[16];

	(void)state;
	target_process_line(&slow, line, sizeof(line)); /* the child's id */
	target_process_await(slow.pid, slow.pid, "D");
	assert_int_equal(tracer_seize(tracer, slow.pid, slow.pid, &awaited), 0);
	assert_int_equal(tracer_seize(tracer, target.pid, target.pid, &tracee), 0);
	while (tracer_stop(tracer, tracee, 0) == 0)
		tracer_resume(tracer, tracee);
	tracee->hold_late = true;
	begin = monotonic_ns();
	assert_int_equal(tracer_stop(tracer, awaited, patience_ns), -ETIMEDOUT);
	assert_true(monotonic_ns() - begin < patience_ns);
	assert_int_equal(tracee->state, TRACEE_HELD);
	assert_int_equal(awaited->state, TRACEE_AWAITED);
	assert_true(tracer_has_held_late(tracer));
	/* From then on, the other one is awaited as long as asked. */
	assert_int_equal(tracer_stop(tracer, awaited, second_ns / 10), -ETIMEDOUT);
	assert_true(monotonic_ns() - begin > second_ns / 10);
	target_process_end(&slow);
	target_process_end(&target);
	tracer_free(tracer);
}

/* For ever if rounds is negative. */
static void hold_again_and_again(pid_t pid, int rounds)
{
	struct tracer *tracer = new_tracer();
	struct tracee *tracee;
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	if (tracer_seize(tracer, pid, pid, &tracee))
		_exit(1);
	for (int i = 0; i != rounds; i++) {
		if (tracer_stop(tracer, tracee, patience_ns))
			_exit(2);
		tracer_resume(tracer, tracee);
		tracer_poll(tracer);
	}
	tracer_free(tracer);
}

static void target_outlives_a_killed_tracer(void **state)
{
	struct target_process target = target_process_start("spinner", NULL);

	(void)state;
	for (int i = 0; i < 100; i++) {
		pid_t tracer = fork();
		int status;

		if (tracer == 0)
			hold_again_and_again(target.pid, -1);
		sleep_ms(3 + (unsigned int)i % 5);
		kill(tracer, SIGKILL);
		assert_int_equal(waitpid(tracer, &status, 0), tracer);
		assert_true(WIFSIGNALED(status));
		target_process_await(target.pid, target.pid, "RS");
	}
	assert_true(uses_cpu(target.pid));
	target_process_end(&target);
}

static void *hold_in_thread(void *target)
{
	hold_again_and_again(*(pid_t *)target, 100);
	return NULL;
}

static void end_of_the_tracing_thread_lets_go_without_a_stop(void **state)
{
	struct target_process target = target_process_start("spinner", NULL);
	pthread_t thread;
	char path[64], text[2048], tracer[32] = "";
	FILE *file;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, hold_in_thread, &target.pid), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	snprintf(path, sizeof(path), "/proc/%d/status", (int)target.pid);
	for (int i = 0; i < 1000 && strcmp(tracer, "0") != 0; i++) {
		file = fopen(path, "r");
		assert_non_null(file);
		text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
		fclose(file);
		assert_int_equal(sscanf(strstr(text, "TracerPid:"), "TracerPid: %31s", tracer), 1);
		sleep_ms(1);
	}
	assert_string_equal(tracer, "0");
	assert_true(uses_cpu(target.pid));
	target_process_end(&target);
}

static void other_children_are_left_to_their_parent(void **state)
{
	struct target_process target = target_process_start("spinner", NULL);
	struct tracer *tracer = new_tracer();
	struct tracee *tracee;
	pid_t child;
	int status;

	(void)state;
	assert_int_equal(tracer_seize(tracer, target.pid, target.pid, &tracee), 0);
	child = fork();
	if (child == 0)
		_exit(7);
	target_process_await(child, child, "Z");
	kill(target.pid, SIGSTOP);
	poll_until_state(tracer, tracee, TRACEE_JOB_STOPPED);
	tracer_poll(tracer);
	assert_int_equal(waitpid(child, &status, WNOHANG), child);
	assert_int_equal(WEXITSTATUS(status), 7);
	target_process_end(&target);
	tracer_free(tracer);
}

static void missing_thread_cannot_be_seized(void **state)
{
	struct tracer *tracer = new_tracer();
	struct tracee *tracee = NULL;
	pid_t child = fork();

	(void)state;
	if (child == 0)
		_exit(0);
	waitpid(child, NULL, 0);
	assert_int_equal(tracer_seize(tracer, child, child, &tracee), -ESRCH);
	assert_null(tracee);
	assert_null(tracer_find(tracer, child));
	tracer_free(tracer);
}

static void without_seize_threads_are_left_alone_unless_they_may_be_attached_to(void **state)
{
	struct target_process target = target_process_start("spinner", NULL);
	struct tracer *tracer = tracer_new();
	struct tracee *tracee;

	(void)state;
	assert_int_equal(tracer_seize(tracer, target.pid, target.pid, &tracee), -EIO);
	assert_null(tracer_find(tracer, target.pid));
	assert_true(uses_cpu(target.pid));
	target_process_end(&target);
	tracer_free(tracer);
}

#define BY_ATTACHING(test) cmocka_unit_test_setup_teardown(test, make_kernel_old, make_kernel_new)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(held_thread_shows_registers_and_runs_on),
		cmocka_unit_test(sleeping_thread_is_never_stopped),
		cmocka_unit_test(stop_does_not_end_the_call_that_a_thread_waits_in),
		cmocka_unit_test(ignored_signal_does_not_end_the_call_that_a_thread_waits_in),
		cmocka_unit_test(ignored_signals_do_not_put_off_the_end_of_a_limited_call),
		cmocka_unit_test(job_stop_ends_the_call_that_a_thread_waits_in_as_ever),
		cmocka_unit_test(signals_arrive_once_and_in_order),
		cmocka_unit_test(after_a_signal_it_stays_urgent_when_a_look_ends),
		cmocka_unit_test(late_stop_holds_in_a_storm_of_signals),
		cmocka_unit_test(late_stop_that_a_wakeup_tells_of_is_due_for_a_look),
		cmocka_unit_test(every_stop_is_asked_for),
		cmocka_unit_test(job_stopped_target_stays_stopped_until_continued),
		cmocka_unit_test(target_stopped_before_it_was_seized_stays_stopped),
		cmocka_unit_test(stop_signal_while_held_takes_effect_on_resume),
		cmocka_unit_test(a_process_whose_threads_cannot_be_seized_for_now_has_not_ended),
		cmocka_unit_test(exec_of_a_single_thread_is_noticed),
		cmocka_unit_test(exec_of_one_of_several_threads_is_noticed),
		cmocka_unit_test(exec_after_the_first_thread_has_ended_is_noticed),
		cmocka_unit_test(exec_of_a_first_thread_beside_those_seized_late_is_noticed),
		cmocka_unit_test(exec_of_a_thread_that_is_seized_late_is_noticed),
		cmocka_unit_test(exec_of_one_seized_late_after_the_first_has_ended_is_noticed),
		cmocka_unit_test(thread_that_is_seized_late_is_left_alone_until_it_is_held),
		cmocka_unit_test(thread_whose_tracer_ends_meanwhile_is_seized),
		cmocka_unit_test(thread_that_cannot_be_seized_late_is_told_of),
		cmocka_unit_test(thread_that_ends_before_it_is_seized_is_gone),
		cmocka_unit_test(exec_of_a_thread_that_was_not_seized_is_noticed),
		cmocka_unit_test(seizing_during_an_exec_does_not_hang),
		cmocka_unit_test(killed_target_is_noticed),
		cmocka_unit_test(uninterruptible_thread_is_not_waited_for),
		cmocka_unit_test(held_thread_does_not_wait_for_the_stop_of_another),
		cmocka_unit_test(target_outlives_a_killed_tracer),
		cmocka_unit_test(end_of_the_tracing_thread_lets_go_without_a_stop),
		cmocka_unit_test(other_children_are_left_to_their_parent),
		cmocka_unit_test(missing_thread_cannot_be_seized),
		BY_ATTACHING(without_seize_threads_are_left_alone_unless_they_may_be_attached_to),
		BY_ATTACHING(held_thread_shows_registers_and_runs_on),
		BY_ATTACHING(signals_arrive_once_and_in_order),
		BY_ATTACHING(late_stop_holds_in_a_storm_of_signals),
		BY_ATTACHING(every_stop_is_asked_for),
		BY_ATTACHING(job_stopped_target_stays_stopped_until_continued),
		BY_ATTACHING(target_stopped_before_it_was_seized_stays_stopped),
		BY_ATTACHING(stop_signal_while_held_takes_effect_on_resume),
		BY_ATTACHING(exec_of_a_single_thread_is_noticed),
		BY_ATTACHING(exec_of_one_of_several_threads_is_noticed),
		BY_ATTACHING(exec_after_the_first_thread_has_ended_is_noticed),
		BY_ATTACHING(killed_target_is_noticed),
		BY_ATTACHING(other_children_are_left_to_their_parent),
		BY_ATTACHING(missing_thread_cannot_be_seized),
	};
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	pthread_sigmask(SIG_BLOCK, &child, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

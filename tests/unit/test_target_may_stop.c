/* SPDX-License-Identifier: MIT */
/* Whether a thread may be stopped, by where it was seen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/linux/clocks/clock.h"
#include "src/linux/threads/may_stop.h"
#include "tests/unit/target_process.h"

enum { LOOKS = 20 };

/* As a look finds it: so often it has been given a CPU and gone to sleep. */
static void look(struct thread *thread, uint64_t runs, uint64_t sleeps)
{
	thread->runs = runs;
	thread->sleeps = sleeps;
	thread_note_place(thread);
}

/* Stopped after a call, or outside of one if that is -1. */
static void stop(struct thread *thread, int64_t number, uint64_t asked, uint64_t result)
{
	const struct registers registers = { .call_number = (uint64_t)number, .rsi = asked, .rax = result };

	thread_note_stop(thread, &registers);
}

static void one_that_never_sleeps_may_be_stopped_anywhere(void **state)
{
	struct thread thread = { .tid = getpid() };

	(void)state;
	look(&thread, 1, 0);
	assert_int_equal(thread_may_stop_now(&thread, PRESENCE_ON_CPU), MAY_STOP);
	assert_int_equal(thread_may_stop_now(&thread, PRESENCE_PUT_OFF), MAY_STOP);
	look(&thread, 2, 0);
	assert_int_equal(thread_may_stop_now(&thread, PRESENCE_OFF_CPU), MAY_STOP_WAITING);
}

static void one_that_waits_may_have_been_woken_in_its_call(void **state)
{
	struct thread thread = { .tid = getpid() };

	(void)state;
	look(&thread, 2, 1);
	assert_int_equal(thread_may_stop_now(&thread, PRESENCE_OFF_CPU), MAY_NOT_WAITS);
	assert_int_equal(thread_may_stop_now(&thread, PRESENCE_AWAKE), MAY_NOT_WAITS);
	look(&thread, 3, 1);
	assert_int_equal(thread_may_stop_now(&thread, PRESENCE_AWAKE), MAY_STOP_WAITING);
	look(&thread, 4, 2);
	assert_int_equal(thread_may_stop_now(&thread, PRESENCE_OFF_CPU), MAY_NOT_WAITS);
}

static void a_stop_is_a_sleep_that_matters_only_in_a_call(void **state)
{
	struct thread thread = { .tid = getpid() };

	(void)state;
	look(&thread, 2, 0);
	stop(&thread, -1, 0, 0);
	look(&thread, 2, 1);
	assert_int_equal(thread_may_stop_now(&thread, PRESENCE_OFF_CPU), MAY_STOP_WAITING);
	stop(&thread, SYS_getpid, 0, 1);
	look(&thread, 2, 2);
	assert_int_equal(thread_may_stop_now(&thread, PRESENCE_OFF_CPU), MAY_NOT_WAITS);
}

static void one_that_sleeps_unseen_is_left_alone_for_a_while(void **state)
{
	struct thread thread = { .tid = getpid() };
	int left_alone = 0;

	(void)state;
	for (uint64_t i = 1; i <= LOOKS; i++) {
		look(&thread, i + 1, i);
		left_alone += thread_may_stop_now(&thread, PRESENCE_ON_CPU) == MAY_NOT_YET;
	}
	assert_in_range(left_alone, 1, LOOKS / 2);
	assert_int_equal(thread_may_stop_now(&thread, PRESENCE_ON_CPU), MAY_STOP);
}

static void calls_that_a_stop_would_cut_are_left_alone(void **state)
{
	struct thread thread = { .tid = getpid() };

	(void)state;
	look(&thread, 1, 0);
	stop(&thread, SYS_getrandom, 100000, 256);
	look(&thread, 2, 1);
	assert_int_equal(thread_may_stop_now(&thread, PRESENCE_ON_CPU), MAY_NOT_CALLS);
	look(&thread, 3, 1);
	assert_int_equal(thread_may_stop_now(&thread, PRESENCE_OFF_CPU), MAY_NOT_CALLS_WAITING);
}

/* Stopped after it sent a part of what it was to send. */
static struct registers sent(int socket)
{
	return (struct registers){ .call_number = SYS_writev, .rdi = (uint64_t)socket, .rsi = 1, .rax = 144 };
}

static void blocks(int socket, bool whether)
{
	assert_int_equal(fcntl(socket, F_SETFL, whether ? 0 : O_NONBLOCK), 0);
}

static int open_sockets(void **state)
{
	static int sockets[2];

	*state = sockets;
	return socketpair(AF_UNIX, SOCK_STREAM, 0, sockets);
}

static int close_sockets(void **state)
{
	const int *sockets = *state;

	close(sockets[0]);
	close(sockets[1]);
	return 0;
}

static void calls_are_judged_before_their_file_changes(void **state)
{
	struct thread thread = { .tid = getpid() };
	const int *sockets = *state;
	const struct registers registers = sent(sockets[0]);

	blocks(sockets[0], false);
	thread_note_stop(&thread, &registers);
	blocks(sockets[0], true);
	thread_note_resumed(&thread, &registers);
	assert_int_equal(thread.calls.fragile_seen_ns, 0);
	thread_note_stop(&thread, &registers);
	assert_int_not_equal(thread.calls.fragile_seen_ns, 0);
}

/* A server sends on many sockets that do not block, and should not wait for that judgement each time. */
static void one_whose_calls_are_harmless_is_judged_afterwards(void **state)
{
	struct thread thread = { .tid = getpid() };
	const int *sockets = *state;
	const struct registers registers = sent(sockets[0]);

	blocks(sockets[0], false);
	for (int i = 0; i < LOOKS; i++) {
		thread_note_stop(&thread, &registers);
		thread_note_resumed(&thread, &registers);
	}
	/*
	 * That may be another file by the same number: the next one is judged before, and only that counts.
	 */
	blocks(sockets[0], true);
	thread_note_stop(&thread, &registers);
	thread_note_resumed(&thread, &registers);
	assert_int_equal(thread.calls.fragile_seen_ns, 0);
	blocks(sockets[0], false);
	thread_note_stop(&thread, &registers);
	assert_int_equal(thread.calls.fragile_seen_ns, 0);
	blocks(sockets[0], true);
	thread_note_stop(&thread, &registers);
	assert_int_not_equal(thread.calls.fragile_seen_ns, 0);
}

/* Everything that was seen of the thread is so much longer ago. */
static void pass_time(struct thread *thread, uint64_t seconds)
{
	thread->calls.fragile_seen_ns -= seconds * NS_PER_SECOND;
}

static bool is_left_alone(struct thread *thread, uint64_t runs)
{
	look(thread, runs, thread->calls.sleeps);
	return thread_may_stop_now(thread, PRESENCE_ON_CPU) == MAY_NOT_CALLS;
}

static void a_call_is_forgotten_in_seconds(void **state)
{
	struct thread thread = { .tid = getpid() };

	(void)state;
	look(&thread, 1, 0);
	stop(&thread, SYS_getrandom, 100000, 256);
	pass_time(&thread, 5);
	assert_true(is_left_alone(&thread, 2));
	pass_time(&thread, 10);
	assert_false(is_left_alone(&thread, 3));
}

static void calls_that_come_back_are_kept_in_mind(void **state)
{
	struct thread thread = { .tid = getpid() };

	(void)state;
	look(&thread, 1, 0);
	stop(&thread, SYS_getrandom, 100000, 256);
	pass_time(&thread, 30);
	assert_false(is_left_alone(&thread, 2));
	stop(&thread, SYS_getrandom, 100000, 256);
	pass_time(&thread, 60);
	assert_true(is_left_alone(&thread, 3));
	pass_time(&thread, 100);
	assert_false(is_left_alone(&thread, 4));
}

/* A target that sleeps is not looked at. */
static void a_call_counts_from_its_end(void **state)
{
	struct thread thread = { .tid = getpid() };

	(void)state;
	look(&thread, 1, 0);
	stop(&thread, SYS_getrandom, 100000, 256);
	thread.calls.sleep_runs = 1;
	pass_time(&thread, 300);
	assert_true(is_left_alone(&thread, 2));
	pass_time(&thread, 15);
	assert_false(is_left_alone(&thread, 3));
}

static void where_the_kernel_does_not_count_it_may_be_stopped(void **state)
{
	struct thread thread = { .tid = getpid() };

	(void)state;
	look(&thread, 0, 0);
	assert_int_equal(thread_may_stop_now(&thread, PRESENCE_AWAKE), MAY_STOP);
}

/*---- Of live threads ----*/

enum { WHOLE = 100, LOOKS_AT_WORK = 200 };

/* A process that waits for WHOLE bytes in one call, and then works. */
static pid_t start_receiver(int flags, int *ret_socket)
{
	int ends[2];
	pid_t child;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	child = fork();
	if (child == 0) {
		char bytes[WHOLE];

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (recv(ends[1], bytes, sizeof(bytes), flags) <= 0)
			_exit(1);
		for (;;)
			;
	}
	close(ends[1]);
	*ret_socket = ends[0];
	return child;
}

/* May the receiver be stopped once it works, if it was seen asleep in its call? */
static bool is_stopped_after_sleep(int flags)
{
	const struct timespec moment = { .tv_nsec = 5 * 1000 * 1000 };
	const char bytes[WHOLE] = { 0 };
	int socket;
	pid_t child = start_receiver(flags, &socket);
	struct tracer *tracer = tracer_new();
	struct threads *threads = threads_new(tracer, child);
	struct own_turn *turn = tracer_turn(tracer);
	bool may_be_stopped = false;
	struct thread *thread;
	sigset_t none;

	sigemptyset(&none);
	target_process_await(child, child, "S");
	assert_int_equal(threads_refresh(threads, clock_now_ns(CLOCK_MONOTONIC), 0), 0);
	thread = threads_at(threads, 0);
	for (int i = 0; i < LOOKS; i++)
		assert_int_equal(thread_may_stop(threads, thread, turn), MAY_NOT_SLEEPS);
	assert_true(thread->calls.seen.known);
	assert_int_equal(thread->calls.seen.number, SYS_recvfrom);
	assert_int_equal(send(socket, bytes, sizeof(bytes), MSG_NOSIGNAL), sizeof(bytes));
	target_process_await(child, child, "R");
	/* At first it may wait for a CPU, perhaps still in its call. */
	for (int i = 0; i < LOOKS_AT_WORK && !may_be_stopped; i++) {
		enum may_stop verdict;

		own_turn_wait(turn, &none, NULL, &moment);
		verdict = thread_may_stop(threads, thread, turn);
		may_be_stopped = verdict == MAY_STOP || verdict == MAY_STOP_WAITING;
	}
	close(socket);
	threads_free(threads);
	tracer_free(tracer);
	kill(child, SIGKILL);
	waitpid(child, NULL, __WALL);
	return may_be_stopped;
}

static void one_that_slept_in_a_call_that_bears_a_stop_may_be_stopped(void **state)
{
	(void)state;
	assert_true(is_stopped_after_sleep(0));
}

static void one_that_slept_in_a_call_that_does_not_is_left_alone(void **state)
{
	(void)state;
	assert_false(is_stopped_after_sleep(MSG_WAITALL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_that_never_sleeps_may_be_stopped_anywhere),
		cmocka_unit_test(one_that_waits_may_have_been_woken_in_its_call),
		cmocka_unit_test(a_stop_is_a_sleep_that_matters_only_in_a_call),
		cmocka_unit_test(one_that_sleeps_unseen_is_left_alone_for_a_while),
		cmocka_unit_test(calls_that_a_stop_would_cut_are_left_alone),
		cmocka_unit_test_setup_teardown(calls_are_judged_before_their_file_changes, open_sockets,
						close_sockets),
		cmocka_unit_test_setup_teardown(one_whose_calls_are_harmless_is_judged_afterwards,
						open_sockets, close_sockets),
		cmocka_unit_test(a_call_is_forgotten_in_seconds),
		cmocka_unit_test(calls_that_come_back_are_kept_in_mind),
		cmocka_unit_test(a_call_counts_from_its_end),
		cmocka_unit_test(where_the_kernel_does_not_count_it_may_be_stopped),
		cmocka_unit_test(one_that_slept_in_a_call_that_bears_a_stop_may_be_stopped),
		cmocka_unit_test(one_that_slept_in_a_call_that_does_not_is_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* What a sleeping thread waits for, and whether that is work to come or in its way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <linux/futex.h>
#include <poll.h>
#include <string.h>
#include <sys/select.h>
#include <sys/syscall.h>

#include "src/linux/threads/wait.h"

static uint64_t unreadable; /* an address, or 0 */

/* Our own memory, as if it were the target's. */
static void read_own(struct memory *memory, struct memory_range *ranges, size_t count)
{
	(void)memory;
	for (size_t i = 0; i < count; i++) {
		const bool is_mapped = ranges[i].address && ranges[i].address != unreadable;

		ranges[i].status = is_mapped ? MEMORY_OK : MEMORY_UNMAPPED;
		if (is_mapped)
			memcpy(ranges[i].copy, (const void *)(uintptr_t)ranges[i].address, ranges[i].length);
	}
}

static struct memory own = { .read_ranges = read_own };

static const struct wait_stack no_lua;
static const struct wait_stack main_chunk = { .lua = true };
static const struct wait_stack function = { .lua = true, .lua_function = true };
static const struct wait_stack request = { .lua = true, .lua_function = true, .request = true };

static struct wait wait_of(int64_t number, uint64_t first, uint64_t second, uint64_t third)
{
	const struct thread_call call = {
		.known = true,
		.number = number,
		.arguments = { first, second, third },
	};
	struct wait wait;

	wait_read(&own, &call, &wait);
	return wait;
}

static void an_event_loop_is_idle_in_its_wait(void **state)
{
	struct wait wait = wait_of(SYS_epoll_wait, 3, 0, 0);

	(void)state;
	assert_string_equal(wait.call, "epoll_wait");
	assert_true(wait_is_for_events(&wait));
	assert_int_equal(wait_state(&wait, &no_lua), THREAD_IDLE);
	assert_int_equal(wait_state(&wait, &function), THREAD_IDLE); /* the loop may be Lua's own */
	/* Not so inside of one that handles a request. */
	assert_int_equal(wait_state(&wait, &request), THREAD_BLOCKED);
}

static void a_file_that_is_read_blocks(void **state)
{
	struct wait wait = wait_of(SYS_read, 7, 0, 0);

	(void)state;
	assert_int_equal(wait.kind, WAIT_FILE);
	assert_int_equal(wait.fd, 7);
	assert_int_equal(wait_state(&wait, &function), THREAD_BLOCKED);
	assert_int_equal(wait_state(&wait, &no_lua), THREAD_BLOCKED);
}

static void a_sleep_blocks_the_function_that_asks_for_it(void **state)
{
	struct wait wait = wait_of(SYS_clock_nanosleep, 0, 0, 0);

	(void)state;
	assert_false(wait_is_for_events(&wait));
	assert_int_equal(wait_state(&wait, &function), THREAD_BLOCKED);
	assert_int_equal(wait_state(&wait, &main_chunk), THREAD_IDLE);
	assert_int_equal(wait_state(&wait, &no_lua), THREAD_IDLE);
}

static void poll_of_several_files_is_an_event_loop(void **state)
{
	struct pollfd files[] = { { .fd = 5 }, { .fd = 6 } };
	struct wait wait = wait_of(SYS_poll, (uintptr_t)files, 2, 0);

	(void)state;
	assert_int_equal(wait.kind, WAIT_EVENTS);
	wait = wait_of(SYS_poll, (uintptr_t)files, 1, 0);
	assert_int_equal(wait.kind, WAIT_POLL);
	assert_int_equal(wait.fd, 5);
	assert_true(wait_is_for_events(&wait));
	assert_int_equal(wait_state(&wait, &function), THREAD_BLOCKED);
	assert_int_equal(wait_state(&wait, &no_lua), THREAD_IDLE);
	assert_int_equal(wait_of(SYS_poll, 0, 0, 0).kind, WAIT_TIME);
	assert_int_equal(wait_of(SYS_poll, 0, 1, 0).kind, WAIT_EVENTS); /* cannot be read */
}

static void select_is_taken_for_what_its_sets_hold(void **state)
{
	fd_set readable, writable;
	struct wait wait;

	(void)state;
	FD_ZERO(&readable);
	FD_ZERO(&writable);
	assert_int_equal(wait_of(SYS_select, 0, 0, 0).kind, WAIT_TIME);
	assert_int_equal(wait_of(SYS_select, 64, (uintptr_t)&readable, 0).kind, WAIT_TIME);
	FD_SET(13, &readable);
	FD_SET(13, &writable);
	wait = wait_of(SYS_select, 14, (uintptr_t)&readable, (uintptr_t)&writable);
	assert_int_equal(wait.kind, WAIT_POLL);
	assert_int_equal(wait.fd, 13);
	FD_SET(2, &writable);
	assert_int_equal(wait_of(SYS_select, 14, (uintptr_t)&readable, (uintptr_t)&writable).kind,
			 WAIT_EVENTS);
	/* However large the target says that its sets are. */
	assert_int_equal(wait_of(SYS_select, UINT64_MAX, (uintptr_t)&readable, 0).kind, WAIT_POLL);
}

/* The wait of a select with only this set, of three. */
static struct wait wait_of_set(size_t index, const fd_set *set, uint64_t limit)
{
	struct thread_call call = { .known = true, .number = SYS_pselect6, .arguments = { limit } };
	struct wait wait;

	call.arguments[1 + index] = (uintptr_t)set;
	wait_read(&own, &call, &wait);
	if (wait.kind != WAIT_POLL)
		assert_int_equal(wait.fd, -1);
	return wait;
}

static void a_file_may_be_in_any_set_below_the_limit(void **state)
{
	static const int files[] = { 0, 1, 7, 8, 63, FD_SETSIZE - 1 };

	(void)state;
	for (size_t index = 0; index < 3; index++) {
		for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
			const uint64_t enough = (uint64_t)files[i] + 1;
			fd_set set;

			FD_ZERO(&set);
			FD_SET(files[i], &set);
			assert_int_equal(wait_of_set(index, &set, enough).fd, files[i]);
			assert_int_equal(wait_of_set(index, &set, FD_SETSIZE).fd, files[i]);
			assert_int_equal(wait_of_set(index, &set, enough - 1).kind, WAIT_TIME);
		}
	}
}

/* Two files in one set, in whatever order they come; and a set that cannot be read. */
static void a_select_of_several_files_has_no_file(void **state)
{
	struct thread_call call = { .known = true, .number = SYS_select, .arguments = { 64 } };
	struct wait wait;
	fd_set both, one;

	(void)state;
	FD_ZERO(&both);
	FD_ZERO(&one);
	FD_SET(3, &both);
	FD_SET(40, &both);
	FD_SET(40, &one);
	assert_int_equal(wait_of_set(2, &both, 64).kind, WAIT_EVENTS);
	assert_int_equal(wait_of_set(2, &both, 40).fd, 3);
	call.arguments[1] = (uintptr_t)&one;
	call.arguments[3] = (uintptr_t)&both;
	wait_read(&own, &call, &wait);
	assert_int_equal(wait.kind, WAIT_EVENTS);
	assert_int_equal(wait.fd, -1);
	unreadable = (uintptr_t)&both;
	wait_read(&own, &call, &wait);
	unreadable = 0;
	assert_int_equal(wait.kind, WAIT_EVENTS);
	assert_int_equal(wait.fd, -1);
}

static void a_poll_of_no_file_waits_for_time(void **state)
{
	struct pollfd polled = { .fd = -3 };
	struct wait wait = wait_of(SYS_ppoll, (uintptr_t)&polled, 1, 0);

	(void)state;
	assert_int_equal(wait.kind, WAIT_TIME);
	assert_int_equal(wait.fd, -1);
	polled.fd = 0;
	wait = wait_of(SYS_ppoll, (uintptr_t)&polled, 1, 0);
	assert_int_equal(wait.kind, WAIT_POLL);
	assert_int_equal(wait.fd, 0);
}

/* Only some waits are for a file, or name one. */
static void calls_say_which_file_they_wait_for(void **state)
{
	static const struct {
		int64_t number;
		const char *name;
		enum wait_kind kind;
	} calls[] = {
		{ SYS_read, "read", WAIT_FILE },
		{ SYS_flock, "flock", WAIT_FILE },
		{ SYS_mq_timedsend, "mq_timedsend", WAIT_FILE },
		{ SYS_execve, "execve", WAIT_PATH },
		{ SYS_truncate, "truncate", WAIT_PATH },
		{ SYS_openat, "openat", WAIT_PATH },
		{ SYS_accept4, "accept4", WAIT_EVENTS },
		{ SYS_rt_sigtimedwait, "rt_sigtimedwait", WAIT_EVENTS },
		{ SYS_nanosleep, "nanosleep", WAIT_TIME },
		{ SYS_wait4, "wait4", WAIT_CHILD },
		{ SYS_clone3, "clone3", WAIT_CHILD },
		{ SYS_semop, "semop", WAIT_OTHER },
		{ SYS_getpid, NULL, WAIT_OTHER }, /* which does not sleep */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		struct wait wait = wait_of(calls[i].number, 11, 12, 13);

		assert_int_equal(wait.kind, calls[i].kind);
		assert_int_equal(wait.fd, calls[i].kind == WAIT_FILE ? 11 : -1);
		assert_int_equal(wait.path, calls[i].kind != WAIT_PATH      ? 0
					    : calls[i].number == SYS_openat ? 12
									    : 11);
		if (calls[i].name)
			assert_string_equal(wait.call, calls[i].name);
		else
			assert_null(wait.call);
	}
}

static void other_operations_on_a_futex_wait_for_nothing_known(void **state)
{
	(void)state;
	assert_int_equal(wait_of(SYS_futex, 0, FUTEX_WAIT_REQUEUE_PI, 0).kind, WAIT_CONDITION);
	assert_int_equal(wait_of(SYS_futex, 0, FUTEX_LOCK_PI_PRIVATE, 0).kind, WAIT_LOCK);
	assert_int_equal(wait_of(SYS_futex, 0, FUTEX_WAKE, 0).kind, WAIT_OTHER);
	assert_int_equal(wait_of(SYS_futex, 0, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, 0).kind,
			 WAIT_CONDITION);
}

static void a_pool_waits_for_work_and_a_mutex_for_its_holder(void **state)
{
	struct wait wait = wait_of(SYS_futex, 0, FUTEX_WAIT_BITSET_PRIVATE, 0);

	(void)state;
	assert_int_equal(wait_state(&wait, &no_lua), THREAD_IDLE);
	assert_int_equal(wait_state(&wait, &function), THREAD_BLOCKED);
	wait = wait_of(SYS_futex, 0, FUTEX_WAIT_PRIVATE, 0);
	assert_int_equal(wait.kind, WAIT_LOCK);
	assert_int_equal(wait_state(&wait, &no_lua), THREAD_BLOCKED);
}

static void what_is_not_known_is_not_guessed(void **state)
{
	const struct thread_call unknown = { .known = false };
	struct wait wait;

	(void)state;
	wait_read(&own, &unknown, &wait);
	assert_int_equal(wait.kind, WAIT_UNKNOWN);
	assert_null(wait.call);
	assert_int_equal(wait_of(-1, 0, 0, 0).kind, WAIT_UNKNOWN);
	wait = wait_of(INT64_MAX, 0, 0, 0);
	assert_int_equal(wait.kind, WAIT_OTHER);
	assert_null(wait.call);
	assert_int_equal(wait.fd, -1);
}

/* epoll_pwait2 is the last one that ljspy has a name for. */
static void calls_of_later_kernels_have_no_name(void **state)
{
	enum { LATER_CALLS = 100 };

	(void)state;
	assert_string_equal(wait_of(SYS_epoll_pwait2, 0, 0, 0).call, "epoll_pwait2");
	for (int64_t i = 1; i <= LATER_CALLS; i++) {
		struct wait wait = wait_of(SYS_epoll_pwait2 + i, 11, 12, 13);

		assert_int_equal(wait.kind, WAIT_OTHER);
		assert_null(wait.call);
		assert_int_equal(wait.fd, -1);
		assert_int_equal(wait.path, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_event_loop_is_idle_in_its_wait),
		cmocka_unit_test(a_file_that_is_read_blocks),
		cmocka_unit_test(a_sleep_blocks_the_function_that_asks_for_it),
		cmocka_unit_test(poll_of_several_files_is_an_event_loop),
		cmocka_unit_test(select_is_taken_for_what_its_sets_hold),
		cmocka_unit_test(a_file_may_be_in_any_set_below_the_limit),
		cmocka_unit_test(a_select_of_several_files_has_no_file),
		cmocka_unit_test(a_poll_of_no_file_waits_for_time),
		cmocka_unit_test(calls_say_which_file_they_wait_for),
		cmocka_unit_test(other_operations_on_a_futex_wait_for_nothing_known),
		cmocka_unit_test(a_pool_waits_for_work_and_a_mutex_for_its_holder),
		cmocka_unit_test(what_is_not_known_is_not_guessed),
		cmocka_unit_test(calls_of_later_kernels_have_no_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

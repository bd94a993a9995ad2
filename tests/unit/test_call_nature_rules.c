/* SPDX-License-Identifier: MIT */
/* What a stop does to each kind of system call, by its arguments and files. The files are made up. */
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "memory/memory.h"
#include "src/linux/calls/call_nature.h"
#include "src/linux/proc/call_numbers.h"
#include "src/linux/proc/proc_file.h"
#include "src/linux/proc/target_file.h"
#include "tests/unit/instead_of.h"

INSTEAD_OF(target_file_status);
INSTEAD_OF(proc_file_number);
INSTEAD_OF(memory_page_size);

enum { PID = 4242, FD = 1000, OTHER_FD = 2000, PAGE = 4096, NO_TYPE = 0 };

/* The only file there is. */
static struct {
	uint64_t fd;
	mode_t mode;
	uint64_t flags;
} file;

bool __wrap_target_file_status(pid_t pid, uint64_t fd, struct statx *ret_status)
{
	assert_int_equal(pid, PID);
	if (fd != file.fd)
		return false;
	*ret_status = (struct statx){ .stx_mode = (uint16_t)file.mode };
	return true;
}

bool __wrap_proc_file_number(pid_t pid, const char *name, const char *label, int base, uint64_t *ret_number)
{
	char expected[32];

	assert_int_equal(pid, PID);
	assert_string_equal(label, "flags:");
	assert_int_equal(base, 8);
	snprintf(expected, sizeof(expected), "fdinfo/%d", (int)file.fd);
	if (strcmp(name, expected) != 0)
		return false;
	*ret_number = file.flags;
	return true;
}

uint64_t __wrap_memory_page_size(void)
{
	return PAGE;
}

static int begin(void **state)
{
	(void)state;
	file.fd = FD;
	file.mode = S_IFSOCK;
	file.flags = O_RDWR;
	return 0;
}

/* Of a call whose only argument that matters is this one; the others are large and odd. */
static bool bears(int64_t number, unsigned int argument, uint64_t value)
{
	uint64_t arguments[6];

	for (size_t i = 0; i < 6; i++)
		arguments[i] = 0x80001 + i;
	arguments[argument] = value;
	return call_bears_stop(PID, number, arguments);
}

/*---- Sleeps ----*/

static void calls_that_begin_again_bear_a_stop(void **state)
{
	static const int numbers[] = {
#ifdef SYS_epoll_wait
		SYS_epoll_wait,
		SYS_poll,
		SYS_select,
		SYS_pause,
		SYS_fork,
		SYS_vfork,
#endif
		SYS_epoll_pwait,
		SYS_epoll_pwait2,
		SYS_ppoll,
		SYS_pselect6,
		SYS_nanosleep,
		SYS_clock_nanosleep,
		SYS_rt_sigsuspend,
		SYS_rt_sigtimedwait,
		SYS_wait4,
		SYS_waitid,
		SYS_clone,
		SYS_clone3,
		SYS_execve,
		SYS_execveat,
		SYS_mmap,
		SYS_mprotect,
		SYS_munmap,
		SYS_mremap,
		SYS_brk,
		SYS_flock,
		SYS_fcntl,
		SYS_semop,
		SYS_semtimedop,
		SYS_msgsnd,
		SYS_msgrcv,
		SYS_mq_timedsend,
		SYS_getrandom,
		SYS_mq_timedreceive,
		SYS_accept,
		SYS_accept4,
		449 /* futex_waitv */,
		455 /* futex_wait */,
	};

	(void)state;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		assert_true(bears(numbers[i], 0, 0));
	assert_false(bears(SYS_connect, 0, FD));
	assert_false(bears(SYS_writev, 0, FD));
	assert_false(bears(-1, 0, FD));
}

static void others_bear_one_by_their_arguments(void **state)
{
	static const struct {
		int number;
		unsigned int argument;
		uint64_t bears, bears_not;
	} calls[] = {
		{ SYS_io_getevents, 1, 1, 2 },
		{ SYS_io_getevents, 1, 0, UINT64_MAX },
		{ SYS_io_pgetevents, 1, 1, 2 },
		{ SYS_recvmmsg, 2, 1, 2 },
		{ SYS_recvfrom, 3, MSG_DONTWAIT, MSG_WAITALL },
		{ SYS_recvfrom, 3, 0, MSG_WAITALL | MSG_DONTWAIT },
		{ SYS_recvmsg, 2, 0, MSG_WAITALL },
		{ SYS_futex, 1, FUTEX_WAIT, FUTEX_WAIT_REQUEUE_PI },
		{ SYS_futex, 1, FUTEX_LOCK_PI | FUTEX_PRIVATE_FLAG,
		  FUTEX_WAIT_REQUEUE_PI | FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME },
		/* The kernel takes 32 bits. */
		{ SYS_io_uring_enter, 1, UINT64_C(7) << 32, 1 },
		{ SYS_ioctl, 1, TCSBRK, TCGETS },
		{ SYS_ioctl, 1, TCSBRKP, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		assert_true(bears(calls[i].number, calls[i].argument, calls[i].bears));
		assert_false(bears(calls[i].number, calls[i].argument, calls[i].bears_not));
	}
}

static void who_takes_what_comes_bears_a_stop(void **state)
{
	static const int numbers[] = { SYS_read, SYS_readv, SYS_preadv2 };
	static const mode_t takes[] = { S_IFIFO | 0600, S_IFSOCK | 0777, NO_TYPE | 0600 },
			    takes_not[] = { S_IFREG | 0600, S_IFCHR, S_IFBLK, S_IFDIR };

	(void)state;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		for (size_t at = 0; at < sizeof(takes) / sizeof(takes[0]); at++) {
			file.mode = takes[at];
			assert_true(bears(numbers[i], 0, FD));
			assert_false(bears(numbers[i], 0, OTHER_FD));
		}
		for (size_t at = 0; at < sizeof(takes_not) / sizeof(takes_not[0]); at++) {
			file.mode = takes_not[at];
			assert_false(bears(numbers[i], 0, FD));
		}
	}
}

static bool gives(int64_t number, mode_t mode, uint64_t size)
{
	const uint64_t arguments[6] = { FD, 1, size };

	file.mode = mode;
	return call_bears_stop(PID, number, arguments);
}

static void who_gives_all_or_none_bears_a_stop(void **state)
{
	static const int numbers[] = { SYS_write, SYS_sendto };

	(void)state;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		assert_true(gives(numbers[i], S_IFIFO, PIPE_BUF));
		assert_false(gives(numbers[i], S_IFIFO, PIPE_BUF + 1));
		assert_true(gives(numbers[i], S_IFSOCK, 1));
		assert_false(gives(numbers[i], S_IFSOCK, 2));
		assert_true(gives(numbers[i], NO_TYPE, 8));
		assert_false(gives(numbers[i], S_IFREG, 1));
		assert_false(gives(numbers[i], S_IFCHR, 1));
		file.fd = OTHER_FD;
		assert_false(gives(numbers[i], S_IFIFO, 1));
		file.fd = FD;
	}
}

/*---- Stops ----*/

/* The arguments are all the size, but for one, which is the file. */
static bool is_cut(int64_t number, uint64_t size, int64_t result)
{
	const uint64_t arguments[6] = { size, size, size, size, size, size };

	return call_may_be_cut(number, arguments, result);
}

static void long_calls_that_start_over_may_be_cut(void **state)
{
	const uint64_t random[6] = { 0, PAGE + 1 }, read[6] = { 0, 0, PAGE + 1 };

	(void)state;
	for (int64_t result = -1; result <= 1; result++) {
		assert_true(is_cut(SYS_fallocate, 0, result));
		assert_true(is_cut(SYS_getrandom, PAGE + 1, result));
		assert_false(is_cut(SYS_getrandom, PAGE, result));
		assert_true(is_cut(SYS_read, PAGE + 1, result));
		assert_false(is_cut(SYS_read, PAGE, result));
	}
	assert_true(call_may_be_cut(SYS_getrandom, random, 0));
	assert_true(call_may_be_cut(SYS_read, read, 0));
	assert_false(is_cut(SYS_getpid, PAGE + 1, 1));
}

static void calls_that_have_transferred_a_part_may_be_cut(void **state)
{
	static const int any[] = { SYS_writev,   SYS_pwritev2, SYS_sendmsg, SYS_sendmmsg,
				   SYS_recvfrom, SYS_recvmsg,  SYS_recvmmsg },
			 more_than_a_page[] = { SYS_write, SYS_sendto },
			 less_than_all[] = { SYS_sendfile, SYS_splice, SYS_copy_file_range };

	(void)state;
	for (size_t i = 0; i < sizeof(any) / sizeof(any[0]); i++) {
		assert_true(is_cut(any[i], 0, 1));
		assert_false(is_cut(any[i], 0, 0));
		assert_false(is_cut(any[i], 0, -1));
	}
	for (size_t i = 0; i < sizeof(more_than_a_page) / sizeof(more_than_a_page[0]); i++) {
		assert_true(call_may_be_cut(more_than_a_page[i], (const uint64_t[6]){ 0, 0, PAGE + 1 }, 1));
		assert_true(is_cut(more_than_a_page[i], PAGE + 1, 1));
		assert_false(is_cut(more_than_a_page[i], PAGE, 1));
		assert_false(is_cut(more_than_a_page[i], PAGE + 1, 0));
		assert_false(is_cut(more_than_a_page[i], PAGE + 1, -1));
	}
	for (size_t i = 0; i < sizeof(less_than_all) / sizeof(less_than_all[0]); i++) {
		assert_true(is_cut(less_than_all[i], 5, 1));
		assert_true(is_cut(less_than_all[i], 5, 4));
		assert_false(is_cut(less_than_all[i], 5, 5));
		assert_false(is_cut(less_than_all[i], 5, 0));
		assert_false(is_cut(less_than_all[i], 5, -1));
	}
}

/* Of a call that may be cut; the file is this argument. */
static bool is_at_risk(int64_t number, unsigned int argument)
{
	uint64_t arguments[6];

	for (size_t i = 0; i < 6; i++)
		arguments[i] = PAGE + 100;
	arguments[argument] = FD;
	assert_true(call_may_be_cut(number, arguments, 7));
	return call_was_at_risk(PID, number, arguments, 7);
}

static void only_calls_on_files_that_block_are_at_risk(void **state)
{
	static const struct {
		int number;
		unsigned int argument;
		bool any_type; /* also regular files and block devices */
	} calls[] = {
		{ SYS_write, 0, false },          { SYS_sendto, 0, false },  { SYS_writev, 0, false },
		{ SYS_pwritev2, 0, false },       { SYS_sendmsg, 0, false }, { SYS_sendmmsg, 0, false },
		{ SYS_recvmmsg, 0, false },       { SYS_sendfile, 0, true }, { SYS_splice, 2, true },
		{ SYS_copy_file_range, 2, true },
	};
	static const mode_t regular[] = { S_IFREG, S_IFBLK };

	(void)state;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		begin(NULL);
		assert_true(is_at_risk(calls[i].number, calls[i].argument));
		file.flags = O_NONBLOCK;
		assert_false(is_at_risk(calls[i].number, calls[i].argument));
		file.flags = 0;
		for (size_t at = 0; at < 2; at++) {
			file.mode = regular[at];
			assert_int_equal(is_at_risk(calls[i].number, calls[i].argument), calls[i].any_type);
		}
		file.mode = S_IFSOCK;
		file.fd = OTHER_FD;
		assert_false(is_at_risk(calls[i].number, calls[i].argument));
	}
}

/* Where all bytes were asked for, a part is one too few. */
static void a_receipt_is_at_risk_if_it_waits_for_all(void **state)
{
	uint64_t arguments[6] = { FD, 1, 2, 0 };

	(void)state;
	assert_false(call_was_at_risk(PID, SYS_recvfrom, arguments, 1));
	arguments[3] = MSG_WAITALL;
	assert_true(call_was_at_risk(PID, SYS_recvfrom, arguments, 1));
	assert_false(call_was_at_risk(PID, SYS_recvfrom, arguments, 0));
	assert_false(call_was_at_risk(PID, SYS_recvmsg, arguments, 1));
	arguments[2] = MSG_WAITALL;
	assert_true(call_was_at_risk(PID, SYS_recvmsg, arguments, 1));
	file.flags = O_NONBLOCK;
	assert_false(call_was_at_risk(PID, SYS_recvmsg, arguments, 1));
}

static void devices_that_give_without_end_are_at_risk(void **state)
{
	const uint64_t arguments[6] = { FD, 0, PAGE + 1 }, others[6] = { OTHER_FD, 0, PAGE + 1 };

	(void)state;
	file.mode = S_IFCHR | 0666;
	assert_true(call_was_at_risk(PID, SYS_read, arguments, 1));
	assert_false(call_was_at_risk(PID, SYS_read, others, 1));
	file.mode = S_IFREG;
	assert_false(call_was_at_risk(PID, SYS_read, arguments, 1));
	file.mode = S_IFCHR;
	assert_true(call_was_at_risk(PID, SYS_getrandom, (const uint64_t[6]){ 0, PAGE + 1 }, 1));
	assert_true(call_was_at_risk(PID, SYS_fallocate, others, -1));
	assert_false(call_was_at_risk(PID, SYS_getrandom, (const uint64_t[6]){ 0, PAGE }, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(calls_that_begin_again_bear_a_stop, begin),
		cmocka_unit_test_setup(others_bear_one_by_their_arguments, begin),
		cmocka_unit_test_setup(who_takes_what_comes_bears_a_stop, begin),
		cmocka_unit_test_setup(who_gives_all_or_none_bears_a_stop, begin),
		cmocka_unit_test_setup(long_calls_that_start_over_may_be_cut, begin),
		cmocka_unit_test_setup(calls_that_have_transferred_a_part_may_be_cut, begin),
		cmocka_unit_test_setup(only_calls_on_files_that_block_are_at_risk, begin),
		cmocka_unit_test_setup(a_receipt_is_at_risk_if_it_waits_for_all, begin),
		cmocka_unit_test_setup(devices_that_give_without_end_are_at_risk, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

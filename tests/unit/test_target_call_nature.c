/* SPDX-License-Identifier: MIT */
/* Which system calls a stop leaves as they are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/linux/calls/call_nature.h"

struct files {
	int pipe[2], sockets[2], event, terminal, device, regular;
};

static int open_files(void **state)
{
	static struct files files;

	*state = &files;
	files.event = eventfd(0, EFD_CLOEXEC);
	files.terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	files.device = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	files.regular = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	return pipe2(files.pipe, O_CLOEXEC) ||
	       socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, files.sockets) || files.event < 0 ||
	       files.terminal < 0 || files.device < 0 || files.regular < 0;
}

static int close_files(void **state)
{
	const struct files *files = *state;

	close(files->pipe[0]);
	close(files->pipe[1]);
	close(files->sockets[0]);
	close(files->sockets[1]);
	close(files->event);
	close(files->terminal);
	close(files->device);
	close(files->regular);
	return 0;
}

static bool bears(int64_t number, uint64_t first, uint64_t second, uint64_t third, uint64_t fourth)
{
	const uint64_t arguments[6] = { first, second, third, fourth };

	return call_bears_stop(getpid(), number, arguments);
}

static bool at_risk(int64_t number, uint64_t first, uint64_t third, int64_t result)
{
	const uint64_t arguments[6] = { first, third, third, third };

	return call_was_at_risk(getpid(), number, arguments, result);
}

static void waits_for_one_thing_bear_it(void **state)
{
	(void)state;
	assert_true(bears(SYS_epoll_wait, 3, 0, 1, 1000));
	assert_true(bears(SYS_clock_nanosleep, 0, 0, 0, 0));
	assert_true(bears(SYS_restart_syscall, 0, 0, 0, 0));
	assert_true(bears(SYS_futex, 0, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, 0, 0));
	assert_true(bears(SYS_io_getevents, 0, 1, 8, 0));
	assert_true(bears(SYS_ioctl, 0, TCSBRK, 1, 0));
}

static void waits_for_several_do_not(void **state)
{
	(void)state;
	assert_false(bears(SYS_io_getevents, 0, 2, 8, 0));
	assert_false(bears(SYS_recvmmsg, 3, 0, 4, 0));
	assert_true(bears(SYS_recvmmsg, 3, 0, 1, 0));
	assert_false(bears(SYS_recvfrom, 3, 0, 64, MSG_WAITALL));
	assert_true(bears(SYS_recvfrom, 3, 0, 64, 0));
	assert_false(bears(SYS_recvmsg, 3, 0, MSG_WAITALL, 0));
	assert_false(bears(SYS_io_uring_enter, 3, 1, 1, 0));
	assert_false(bears(SYS_futex, 0, FUTEX_WAIT_REQUEUE_PI, 0, 0));
}

static void what_is_not_known_does_not(void **state)
{
	(void)state;
	assert_false(bears(SYS_connect, 3, 0, 0, 0));
	assert_false(bears(SYS_close, 3, 0, 0, 0));
	assert_false(bears(SYS_sendfile, 3, 4, 0, 1));
	assert_false(bears(SYS_ioctl, 0, 0, 0, 0));
	assert_false(bears(100000, 0, 0, 0, 0));
}

static void it_depends_on_the_file(void **state)
{
	const struct files *files = *state;

	assert_true(bears(SYS_read, (uint64_t)files->pipe[0], 0, 100, 0));
	assert_true(bears(SYS_read, (uint64_t)files->sockets[0], 0, 100, 0));
	assert_true(bears(SYS_read, (uint64_t)files->event, 0, 8, 0));
	assert_false(bears(SYS_read, (uint64_t)files->terminal, 0, 100, 0));
	assert_false(bears(SYS_read, (uint64_t)files->regular, 0, 100, 0));
	assert_false(bears(SYS_read, 10000, 0, 100, 0));
	assert_true(bears(SYS_write, (uint64_t)files->pipe[1], 0, 4096, 0));
	assert_false(bears(SYS_write, (uint64_t)files->pipe[1], 0, 4097, 0));
	assert_false(bears(SYS_write, (uint64_t)files->sockets[0], 0, 2, 0));
	assert_true(bears(SYS_write, (uint64_t)files->event, 0, 8, 0));
}

static void long_calls_are_at_risk_without_a_sleep(void **state)
{
	const struct files *files = *state;

	assert_true(at_risk(SYS_read, (uint64_t)files->device, 100000, 4096));
	assert_false(at_risk(SYS_read, (uint64_t)files->regular, 100000, 100000));
	assert_true(at_risk(SYS_getrandom, 0, 100000, 256));
	assert_false(at_risk(SYS_getrandom, 0, 32, 32));
	assert_true(at_risk(SYS_write, (uint64_t)files->pipe[1], 100000, 65536));
	assert_false(at_risk(SYS_write, (uint64_t)files->pipe[1], 4096, 4096));
	assert_false(at_risk(SYS_write, (uint64_t)files->regular, 100000, 100000));
	assert_true(at_risk(SYS_sendfile, (uint64_t)files->sockets[0], 100000, 4096));
	assert_false(at_risk(SYS_sendfile, (uint64_t)files->sockets[0], 100000, 100000));
	assert_false(at_risk(SYS_getpid, 0, 0, 1));
}

static void what_does_not_block_is_never_at_risk(void **state)
{
	const struct files *files = *state;

	assert_int_equal(fcntl(files->sockets[0], F_SETFL, O_NONBLOCK), 0);
	assert_false(at_risk(SYS_write, (uint64_t)files->sockets[0], 100000, 65536));
	assert_false(at_risk(SYS_sendfile, (uint64_t)files->sockets[0], 100000, 4096));
	assert_int_equal(fcntl(files->sockets[0], F_SETFL, 0), 0);
	assert_true(at_risk(SYS_write, (uint64_t)files->sockets[0], 100000, 65536));
}

static void a_file_that_is_not_there_puts_nothing_at_risk(void **state)
{
	const uint64_t closed = 999;

	(void)state;
	assert_int_equal(fcntl((int)closed, F_GETFD), -1);
	assert_false(at_risk(SYS_write, closed, 100000, 65536));
	assert_false(at_risk(SYS_writev, closed, 2, 144));
	assert_false(at_risk(SYS_sendfile, closed, 100000, 4096));
	assert_false(at_risk(SYS_recvfrom, closed, 100000, 4096));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_for_one_thing_bear_it),
		cmocka_unit_test(waits_for_several_do_not),
		cmocka_unit_test(what_is_not_known_does_not),
		cmocka_unit_test(it_depends_on_the_file),
		cmocka_unit_test(long_calls_are_at_risk_without_a_sleep),
		cmocka_unit_test(what_does_not_block_is_never_at_risk),
		cmocka_unit_test(a_file_that_is_not_there_puts_nothing_at_risk),
	};

	return cmocka_run_group_tests(tests, open_files, close_files);
}

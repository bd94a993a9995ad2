/* SPDX-License-Identifier: MIT */
/* Which system calls begin again after a stop, and which of them may have a time limit. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/linux/calls/interrupted_call.h"
#include "src/linux/proc/target_file.h"
#include "tests/unit/instead_of.h"

INSTEAD_OF(target_file_status);
INSTEAD_OF(ptrace);

enum { FD = 1000, MEM_MAJOR = 1, ZERO_MINOR = 5, FULL_MINOR = 7, RANDOM_MINOR = 8, URANDOM_MINOR = 9 };

/* The only file there is. */
static struct statx file;

bool __wrap_target_file_status(pid_t pid, uint64_t fd, struct statx *ret_status)
{
	assert_int_equal(pid, getpid());
	*ret_status = file;
	return fd == FD;
}

static long poked;

long __wrap_ptrace(enum __ptrace_request request, ...)
{
	va_list arguments;

	assert_int_equal(request, PTRACE_POKEUSER);
	va_start(arguments, request);
	assert_int_equal(va_arg(arguments, pid_t), getpid());
	assert_int_equal(va_arg(arguments, size_t), offsetof(struct user_regs_struct, rax));
	poked = va_arg(arguments, long);
	va_end(arguments);
	return 0;
}

/* All arguments but one say "no limit", in whichever way the call asks for it. */
static struct user_regs_struct call(unsigned long long number, unsigned long long others)
{
	return (struct user_regs_struct){
		.orig_rax = number,
		.rax = (unsigned long long)-EINTR,
		.rdi = others,
		.rsi = others,
		.rdx = others,
		.r10 = others,
		.r8 = others,
		.r9 = others,
	};
}

static bool is_limited(const struct user_regs_struct *regs)
{
	bool limited = false;

	assert_true(interrupted_call_find(getpid(), regs, &limited));
	return limited;
}

#define ARGUMENT(name) offsetof(struct user_regs_struct, name)

/* What the manual pages of these calls say of their time limit. */
static const struct {
	unsigned long long number;
	size_t limit;               /* where it is */
	unsigned long long without; /* its value if there is none */
} limited_calls[] = {
	{ SYS_epoll_wait, ARGUMENT(r10), (unsigned long long)-1 },
	{ SYS_epoll_pwait, ARGUMENT(r10), (unsigned long long)-1 },
	{ SYS_rt_sigtimedwait, ARGUMENT(rdx), 0 },
	{ SYS_semtimedop, ARGUMENT(r10), 0 },
	{ SYS_epoll_pwait2, ARGUMENT(r10), 0 },
	{ SYS_io_pgetevents, ARGUMENT(r8), 0 },
	{ SYS_io_getevents, ARGUMENT(r8), 0 },
};

static void limit_is_in_the_argument_that_has_it(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(limited_calls) / sizeof(limited_calls[0]); i++) {
		struct user_regs_struct with = call(limited_calls[i].number, limited_calls[i].without);
		struct user_regs_struct without = call(limited_calls[i].number, 1000);

		*(unsigned long long *)((char *)&with + limited_calls[i].limit) = 1000;
		*(unsigned long long *)((char *)&without + limited_calls[i].limit) = limited_calls[i].without;
		assert_true(is_limited(&with));
		assert_false(is_limited(&without));
	}
}

/* The kernel takes an int. */
static void limit_of_epoll_wait_has_32_bits(void **state)
{
	struct user_regs_struct regs = call(SYS_epoll_wait, 0);

	(void)state;
	regs.r10 = 0xffffffff;
	assert_false(is_limited(&regs));
	regs.r10 = 0x7fffffff;
	assert_true(is_limited(&regs));
}

static void calls_without_an_argument_for_it_may_have_one_or_not(void **state)
{
	const struct user_regs_struct semop = call(SYS_semop, 1000), read = call(SYS_recvfrom, 0);

	(void)state;
	assert_false(is_limited(&semop));
	assert_true(is_limited(&read));
}

static void only_calls_that_end_with_eintr_begin_again(void **state)
{
	struct user_regs_struct regs = call(SYS_epoll_wait, 0);
	bool limited = false;

	(void)state;
	assert_true(interrupted_call_find(getpid(), &regs, &limited));
	regs.rax = 0;
	assert_false(interrupted_call_find(getpid(), &regs, &limited));
	regs.rax = (unsigned long long)-EAGAIN;
	assert_false(interrupted_call_find(getpid(), &regs, &limited));
	regs = call(SYS_close, 0);
	assert_false(interrupted_call_find(getpid(), &regs, &limited));
	regs = call((unsigned long long)-1, 0);
	assert_false(interrupted_call_find(getpid(), &regs, &limited));
}

/* A part of what was asked for. */
static void random_bytes_are_fetched_anew(void **state)
{
	struct user_regs_struct regs = call(SYS_getrandom, 0);
	bool limited = false;

	(void)state;
	regs.rsi = 4096;
	regs.rax = 256;
	assert_true(interrupted_call_find(getpid(), &regs, &limited));
	assert_true(limited);
	regs.rax = 4096;
	assert_false(interrupted_call_find(getpid(), &regs, &limited));
}

static bool begins_again(const struct user_regs_struct *regs)
{
	bool limited = false, found = interrupted_call_find(getpid(), regs, &limited);

	assert_int_equal(limited, found); /* those below may all have a limit */
	return found;
}

/* A part of so many bytes of a file. */
static bool read_begins_again(mode_t mode, unsigned int device_major, unsigned int device_minor)
{
	struct user_regs_struct regs = call(SYS_read, FD);
	bool again;

	regs.rax = FD - 1;
	file = (struct statx){ .stx_mode = (uint16_t)mode,
			       .stx_rdev_major = device_major,
			       .stx_rdev_minor = device_minor };
	again = begins_again(&regs);
	/* All, nothing, and of a file that is not there. */
	regs.rax = FD;
	assert_false(begins_again(&regs));
	regs.rax = 0;
	assert_false(begins_again(&regs));
	regs.rax = FD - 1;
	regs.rdi++;
	assert_false(begins_again(&regs));
	return again;
}

static void zeroes_and_random_bytes_of_devices_are_read_anew(void **state)
{
	static const unsigned int minors[] = { ZERO_MINOR, FULL_MINOR, RANDOM_MINOR, URANDOM_MINOR };

	(void)state;
	for (size_t i = 0; i < sizeof(minors) / sizeof(minors[0]); i++) {
		assert_true(read_begins_again(S_IFCHR | 0666, MEM_MAJOR, minors[i]));
		assert_false(read_begins_again(S_IFCHR | 0666, MEM_MAJOR + 1, minors[i]));
		assert_false(read_begins_again(S_IFREG | 0666, MEM_MAJOR, minors[i]));
	}
	assert_false(read_begins_again(S_IFCHR | 0666, MEM_MAJOR, ZERO_MINOR + 1));
	assert_false(read_begins_again(S_IFCHR | 0666, MEM_MAJOR, URANDOM_MINOR + 1));
	/* Another call has taken those bytes. */
	file = (struct statx){ .stx_mode = S_IFCHR, .stx_rdev_major = MEM_MAJOR, .stx_rdev_minor = 5 };
	for (size_t i = 0; i < 2; i++) {
		struct user_regs_struct regs = call(i ? SYS_recvfrom : SYS_read, FD);

		regs.rax = 1;
		assert_int_equal(begins_again(&regs), i == 0);
	}
}

static void waits_for_a_terminal_begin_again(void **state)
{
	static const struct {
		unsigned long long number, request;
		bool again;
	} calls[] = {
		{ SYS_ioctl, TCSBRK, true },
		{ SYS_ioctl, TCSBRKP, true },
		{ SYS_ioctl, TCSBRK | 1ull << 32, true }, /* the kernel takes 32 bits */
		{ SYS_ioctl, TCGETS, false },
		{ SYS_close, TCSBRK, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		struct user_regs_struct regs = call(calls[i].number, 0);

		regs.rsi = calls[i].request;
		assert_int_equal(begins_again(&regs), calls[i].again);
		regs.rax = 0;
		assert_false(begins_again(&regs));
	}
}

/* On sockets with a limit, or with one in memory. */
static void other_calls_may_have_a_limit(void **state)
{
	static const unsigned int numbers[] = {
		SYS_io_uring_enter, SYS_select,   SYS_pselect6, SYS_ppoll,   SYS_fallocate, SYS_read,
		SYS_readv,          SYS_recvmsg,  SYS_recvmmsg, SYS_write,   SYS_writev,    SYS_sendto,
		SYS_sendmsg,        SYS_sendmmsg, SYS_accept,   SYS_accept4, SYS_connect,   SYS_preadv2,
		SYS_pwritev2,       SYS_splice,   SYS_sendfile,
	};

	(void)state;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		const struct user_regs_struct regs = call(numbers[i], 0);

		assert_true(begins_again(&regs));
	}
}

/* The kernel then starts it again, unless a handler runs: ERESTARTNOHAND. */
static void the_result_of_a_call_that_begins_again_says_so_to_the_kernel(void **state)
{
	const struct user_regs_struct regs = call(SYS_read, FD);
	struct restarted_call restarted = { .is_set = false };

	(void)state;
	interrupted_call_restart(getpid(), &regs, &restarted);
	assert_int_equal(poked, -514);
	/* It has decided when a signal comes. */
	poked = 0;
	interrupted_call_deliver(getpid(), 1, &restarted);
	assert_int_equal(poked, 0);
}

static void thread_on_its_way_out_of_a_call_is_known(void **state)
{
	struct registers registers = { .call_number = SYS_read };

	(void)state;
	registers.rax = (uint64_t)-EINTR;
	assert_true(interrupted_call_has_ended(&registers));
	registers.rax = (uint64_t)-512; /* ERESTARTSYS */
	assert_true(interrupted_call_has_ended(&registers));
	registers.rax = (uint64_t)-516; /* ERESTART_RESTARTBLOCK */
	assert_true(interrupted_call_has_ended(&registers));
	registers.rax = (uint64_t)-511;
	assert_false(interrupted_call_has_ended(&registers));
	registers.rax = (uint64_t)-517;
	assert_false(interrupted_call_has_ended(&registers));
	registers.rax = 1;
	assert_false(interrupted_call_has_ended(&registers));
	assert_true(interrupted_call_may_be(getpid(), &registers));
	registers = (struct registers){ .call_number = (uint64_t)-1 };
	registers.rax = (uint64_t)-EINTR;
	assert_false(interrupted_call_has_ended(&registers));
	assert_false(interrupted_call_may_be(getpid(), &registers));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(limit_is_in_the_argument_that_has_it),
		cmocka_unit_test(limit_of_epoll_wait_has_32_bits),
		cmocka_unit_test(calls_without_an_argument_for_it_may_have_one_or_not),
		cmocka_unit_test(only_calls_that_end_with_eintr_begin_again),
		cmocka_unit_test(random_bytes_are_fetched_anew),
		cmocka_unit_test(zeroes_and_random_bytes_of_devices_are_read_anew),
		cmocka_unit_test(waits_for_a_terminal_begin_again),
		cmocka_unit_test(other_calls_may_have_a_limit),
		cmocka_unit_test(the_result_of_a_call_that_begins_again_says_so_to_the_kernel),
		cmocka_unit_test(thread_on_its_way_out_of_a_call_is_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

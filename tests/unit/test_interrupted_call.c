/* SPDX-License-Identifier: MIT */
/* Which system calls begin again after a stop, and which of them may have a time limit. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/linux/calls/interrupted_call.h"

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
	registers.rax = (uint64_t)-517;
	assert_false(interrupted_call_has_ended(&registers));
	registers.rax = 1;
	assert_false(interrupted_call_has_ended(&registers));
	assert_true(interrupted_call_may_be(&registers));
	registers = (struct registers){ .call_number = (uint64_t)-1 };
	registers.rax = (uint64_t)-EINTR;
	assert_false(interrupted_call_has_ended(&registers));
	assert_false(interrupted_call_may_be(&registers));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(limit_is_in_the_argument_that_has_it),
		cmocka_unit_test(limit_of_epoll_wait_has_32_bits),
		cmocka_unit_test(calls_without_an_argument_for_it_may_have_one_or_not),
		cmocka_unit_test(only_calls_that_end_with_eintr_begin_again),
		cmocka_unit_test(random_bytes_are_fetched_anew),
		cmocka_unit_test(thread_on_its_way_out_of_a_call_is_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

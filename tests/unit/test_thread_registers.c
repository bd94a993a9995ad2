/* SPDX-License-Identifier: MIT */
/* The general registers of a stopped thread, by the request that old kernels have. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <elf.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/linux/tracer/thread_registers.h"

enum {
	PAGE = 4096,
	INT3 = 0xcc,
	CODE_SEGMENT_32 = 0x23,
};

/* A child that traces itself and then does this; returns when it has stopped by this signal. */
static pid_t stop_child(void (*run)(void), int signal)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		run();
		_exit(0);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (!WIFSTOPPED(status) || WSTOPSIG(status) != signal) {
		kill(pid, SIGKILL);
		fail_msg("it has not stopped, but has status %#x", (unsigned)status);
	}
	return pid;
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void stop(void)
{
	raise(SIGSTOP);
}

static void they_are_those_of_the_newer_request(void **state)
{
	struct user_regs_struct registers, old;
	struct iovec io = { &registers, sizeof(registers) };
	pid_t pid = stop_child(stop, SIGSTOP);

	(void)state;
	memset(&old, 0, sizeof(old));
	assert_int_equal(ptrace(PTRACE_GETREGSET, pid, NT_PRSTATUS, &io), 0);
	assert_true(thread_registers_read_old(pid, &old));
	assert_memory_equal(&old, &registers, sizeof(registers));
	end_child(pid);
	errno = 0;
	assert_false(thread_registers_read_old(pid, &old));
	assert_int_equal(errno, ESRCH);
	assert_memory_equal(&old, &registers, sizeof(registers));
}

/* An instruction of 32-bit code, which stops by itself. */
static void run_32_bit_code(void)
{
	uint8_t *code = mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);

	if (code == MAP_FAILED)
		_exit(1);
	memset(code, INT3, PAGE);
	__asm__ volatile("pushq %0\n\tpushq %1\n\tlretq" : : "i"(CODE_SEGMENT_32), "r"((uint64_t)code));
}

static void those_of_a_32_bit_program_are_not_taken(void **state)
{
	struct user_regs_struct old;
	pid_t pid = stop_child(run_32_bit_code, SIGTRAP);

	(void)state;
	errno = 0;
	assert_false(thread_registers_read_old(pid, &old));
	assert_int_equal(errno, ENOTSUP);
	end_child(pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(they_are_those_of_the_newer_request),
		cmocka_unit_test(those_of_a_32_bit_program_are_not_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * floor: how briefly a thread can be held at all, here and now.
 *
 * Does what no sampler that uses ptrace can leave out: interrupt the thread,
 * wait for it to stop, fetch its registers, copy 8 KiB of its stack, let it
 * go. What ljspy costs is told as multiples of this, taken in the same run.
 *
 *	floor PID ROUNDS HZ
 *
 * ends after so many rounds, or at SIGTERM, and prints "p50 p99 cpu rounds": the
 * pause from the interrupt to the continuation, and the CPU time that a round
 * takes here, both in microseconds, and how many rounds there were.
 */
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>

enum { STACK_BYTES = 8192, PAGE_BYTES = 4096, PAGES_MAX = STACK_BYTES / PAGE_BYTES + 1 };

static volatile sig_atomic_t told_to_end;

static void tell_to_end(int signal)
{
	(void)signal;
	told_to_end = 1;
}

static double time_us(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* A piece for each page: a copy past the stack's end is cut short, not refused. */
static void copy_stack(pid_t pid, uintptr_t sp)
{
	static char copy[STACK_BYTES];
	struct iovec local = { copy, STACK_BYTES }, remote[PAGES_MAX];
	uintptr_t end = sp + STACK_BYTES;
	unsigned long count = 0;

	while (sp < end && count < PAGES_MAX) {
		uintptr_t next = (sp / PAGE_BYTES + 1) * PAGE_BYTES;

		if (next > end)
			next = end;
		remote[count++] = (struct iovec){ (void *)sp, next - sp };
		sp = next;
	}
	process_vm_readv(pid, &local, 1, remote, count, 0);
}

/*
 * The signal that the thread has stopped for, or 0 as is due. A signal that ends
 * this program never leaves a thread that is about to stop.
 */
static int wait_for_stop(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, __WALL) < 0) {
		if (errno != EINTR) {
			perror("floor: wait");
			exit(1);
		}
	}
	if (!WIFSTOPPED(status))
		exit(1);
	return status >> 16 == PTRACE_EVENT_STOP ? 0 : WSTOPSIG(status);
}

static double hold_once(pid_t pid)
{
	struct user_regs_struct registers;
	struct iovec io = { &registers, sizeof(registers) };
	double begin = time_us(CLOCK_MONOTONIC);
	int signal;

	if (ptrace(PTRACE_INTERRUPT, pid, NULL, NULL)) {
		perror("floor: interrupt");
		exit(1);
	}
	signal = wait_for_stop(pid);
	if (ptrace(PTRACE_GETREGSET, pid, NT_PRSTATUS, &io)) {
		perror("floor: registers");
		exit(1);
	}
	copy_stack(pid, registers.rsp);
	ptrace(PTRACE_CONT, pid, NULL, (long)signal);
	return time_us(CLOCK_MONOTONIC) - begin;
}

int main(int argc, char **argv)
{
	pid_t pid = argc == 4 ? atoi(argv[1]) : 0;
	int most = argc == 4 ? atoi(argv[2]) : 0, rounds = 0;
	double period = argc == 4 ? 1e6 / atof(argv[3]) : 0, due, used;
	double *held = calloc((size_t)most + 1, sizeof(*held));

	sigaction(SIGTERM, &(struct sigaction){ .sa_handler = tell_to_end }, NULL);
	if (!held || most < 1 || ptrace(PTRACE_SEIZE, pid, NULL, NULL)) {
		perror("floor");
		return 1;
	}
	due = time_us(CLOCK_MONOTONIC);
	used = time_us(CLOCK_PROCESS_CPUTIME_ID);
	while (rounds < most && !told_to_end) {
		double wait;

		due += period;
		wait = due - time_us(CLOCK_MONOTONIC);
		if (wait > 0)
			nanosleep(&(struct timespec){ .tv_nsec = (long)(wait * 1e3) % 1000000000 }, NULL);
		held[rounds++] = hold_once(pid);
	}
	used = time_us(CLOCK_PROCESS_CPUTIME_ID) - used;
	qsort(held, (size_t)rounds, sizeof(*held), compare);
	printf("%.1f %.1f %.1f %d\n", held[rounds / 2], held[(long)rounds * 99 / 100], used / rounds, rounds);
	return 0;
}

/* SPDX-License-Identifier: MIT */
#include "tests/exactness/target.h"

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int target_start(struct target *target, char *const argv[])
{
	int output[2], input[2];

	if (pipe(output) || pipe(input))
		return -errno;
	target->pid = fork();
	if (target->pid < 0)
		return -errno;
	if (target->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(output[1], STDOUT_FILENO);
		dup2(input[0], STDIN_FILENO);
		close(output[0]);
		close(input[1]);
		execv(argv[0], argv);
		_exit(127);
	}
	close(output[1]);
	close(input[0]);
	target->output = fdopen(output[0], "r");
	target->input = input[1];
	return target->output ? 0 : -errno;
}

/* Until it stops for anything but a signal of its own, which is passed on. */
static int wait_stopped(struct target *target)
{
	for (;;) {
		int status;

		if (waitpid(target->pid, &status, 0) < 0)
			return -errno;
		if (!WIFSTOPPED(status))
			return -ESRCH;
		if (status >> 16 == PTRACE_EVENT_STOP || WSTOPSIG(status) == SIGTRAP)
			return 0;
		if (ptrace(PTRACE_CONT, target->pid, NULL, (void *)(long)WSTOPSIG(status)))
			return -errno;
	}
}

int target_hold(struct target *target)
{
	if (ptrace(PTRACE_SEIZE, target->pid, NULL, (void *)PTRACE_O_EXITKILL) ||
	    ptrace(PTRACE_INTERRUPT, target->pid, NULL, NULL))
		return -errno;
	return wait_stopped(target);
}

int target_step(struct target *target)
{
	if (ptrace(PTRACE_SINGLESTEP, target->pid, NULL, NULL))
		return -errno;
	return wait_stopped(target);
}

int target_step_into_handler(struct target *target, int signal)
{
	if (ptrace(PTRACE_SINGLESTEP, target->pid, NULL, (void *)(long)signal))
		return -errno;
	return wait_stopped(target);
}

int target_run(struct target *target, long nanoseconds)
{
	struct timespec pause = { 0, nanoseconds };

	if (ptrace(PTRACE_CONT, target->pid, NULL, NULL))
		return -errno;
	nanosleep(&pause, NULL);
	return 0;
}

int target_stop(struct target *target)
{
	if (ptrace(PTRACE_INTERRUPT, target->pid, NULL, NULL))
		return -errno;
	return wait_stopped(target);
}

void target_write_line(struct target *target)
{
	if (write(target->input, "\n", 1) != 1)
		target_end(target);
}

int target_registers(const struct target *target, struct registers *ret_registers)
{
	struct kernel_registers regs;
	struct iovec io = { &regs, sizeof(regs) };

	if (ptrace(PTRACE_GETREGSET, target->pid, NT_PRSTATUS, &io))
		return -errno;
	registers_take(&regs, ret_registers);
	return 0;
}

void target_end(struct target *target)
{
	kill(target->pid, SIGKILL);
	waitpid(target->pid, NULL, 0);
	fclose(target->output);
	close(target->input);
}

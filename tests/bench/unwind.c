/* SPDX-License-Identifier: MIT */
/*
 * unwind: what one sample costs ljspy in CPU time, the pause left aside.
 *
 * usage: unwind PID     a process with one thread that runs LuaJIT
 *
 * Holds the thread in some place, copies its stacks and unwinds them over and
 * over, and prints a line for the place: native and Lua frames, and in
 * microseconds the first (cold) unwinding, the mean of the others (warm), that
 * for each frame, and the mean of copying.
 */
#include <stdio.h>
#include <stdlib.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "src/inspect/lua_process.h"
#include "src/linux/tracer/tracer.h"

enum { PLACES = 3, ROUNDS = 1000 };

static double now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void measure(struct lua_process *process, const struct registers *registers)
{
	struct capture_hints hints = { 0 };
	const struct frame *frames = NULL;
	size_t count = 0, lua = 0;
	enum vm_state state;
	double copying = 0, warm = 0, cold = 0;

	for (int i = 0; i < ROUNDS; i++) {
		double begin = now_us(), copied;

		lua_process_capture(process, registers, &hints);
		copied = now_us();
		if (lua_process_unwind(process, &frames, &count, &state))
			exit(1);
		lua_process_note_unwound(process, &hints);
		copying += copied - begin;
		if (i == 0)
			cold = now_us() - copied;
		else
			warm += now_us() - copied;
	}
	for (size_t i = 0; i < count; i++)
		lua += frames[i].function->kind == FRAME_LUA || frames[i].function->kind == FRAME_BUILTIN;
	warm /= ROUNDS - 1;
	printf("%3zu native %5zu Lua  cold %8.1f  warm %7.1f  for each %5.2f  copying %7.1f\n", count - lua,
	       lua, cold, warm, warm / (double)count, copying / ROUNDS);
}

int main(int argc, char **argv)
{
	struct namer_options options = { .native = NATIVE_ALL };
	struct functions *functions = functions_new();
	pid_t pid = argc == 2 ? atoi(argv[1]) : 0;
	struct lua_process *process;
	struct tracer *tracer;
	struct tracee *tracee;
	sigset_t blocked;

	sigemptyset(&blocked);
	sigaddset(&blocked, SIGCHLD);
	sigprocmask(SIG_BLOCK, &blocked, NULL);
	tracer = tracer_new();
	if (!functions || !tracer || lua_process_open(pid, functions, NULL, &options, &process) ||
	    tracer_seize(tracer, pid, pid, &tracee) || lua_process_refresh(process, true)) {
		fprintf(stderr, "usage: unwind PID\n");
		return 1;
	}
	for (int i = 0; i < PLACES; i++) {
		struct registers registers;

		usleep(10000);
		if (tracer_stop(tracer, tracee, 1000000000) || tracer_registers(tracee, &registers))
			return 1;
		lua_process_confirm(process);
		measure(process, &registers);
		tracer_resume(tracer, tracee);
	}
	return 0;
}

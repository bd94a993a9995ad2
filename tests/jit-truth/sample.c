/* SPDX-License-Identifier: MIT */
/*
 * sample PID SECONDS RATE TRUTH: what ljspy sees of a process with one thread, for
 * comparison with the truth that an instrumented LuaJIT writes (lj_truth.h).
 *
 * One line for each sample: length of the TRUTH file at that time, machine
 * code pc, stack pointer, the Lua thread's C frame, the trace that the VM says
 * runs (0 for none), stack words; then, behind a tab, the frames, leaf first, as
 * kind:FIRSTLINE:LINE:certainty (kinds: L Lua, j Lua in compiled code, X lost,
 * T trace, N all else).
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "src/inspect/lua_process.h"
#include "src/linux/tracer/tracer.h"

enum { STACK_WORDS = 256, STOP_TIMEOUT_NS = 2000 * 1000 * 1000, COLOR_EVERY = 200 };

struct sampled {
	struct registers registers;
	off_t truth_length;
	uint64_t cframe;
	uint32_t trace;
	uint64_t words[STACK_WORDS];
	size_t word_count;
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Of the thread that runs at present: its C frame, and the trace by g->vmstate; 0 if there is none. */
static void read_vm(struct lua_process *process, struct sampled *sampled)
{
	struct memory *memory = lua_process_memory(process);
	const struct global_state *global;
	const struct layout *layout;
	uint64_t L = 0, cframe = 0;
	uint32_t vmstate;

	sampled->cframe = 0;
	sampled->trace = 0;
	if (lua_process_global_count(process) == 0)
		return;
	global = lua_process_global(process, 0);
	layout = &global->vm->layout;
	if (memory_read(memory, global->g + (uint64_t)layout->g_cur_L, &L, layout_ref_size(layout)) !=
		    MEMORY_OK ||
	    !memory_u64(memory, L + (uint64_t)layout->L_cframe, &cframe) ||
	    !memory_u32(memory, global->g + (uint64_t)layout->g_vmstate, &vmstate))
		return;
	sampled->cframe = cframe & ~(uint64_t)3;
	if ((int32_t)vmstate > 0)
		sampled->trace = vmstate;
}

static void take(struct lua_process *process, const char *truth, struct sampled *sampled)
{
	struct stat status;

	sampled->truth_length = stat(truth, &status) == 0 ? status.st_size : 0;
	read_vm(process, sampled);
	sampled->word_count = 0;
	/* What lies beyond its C frame is not the trace's, nor what that calls. */
	while (sampled->word_count < STACK_WORDS &&
	       (!sampled->cframe ||
		sampled->registers.sp + sampled->word_count * sizeof(uint64_t) < sampled->cframe) &&
	       memory_u64(lua_process_memory(process),
			  sampled->registers.sp + sampled->word_count * sizeof(uint64_t),
			  &sampled->words[sampled->word_count]))
		sampled->word_count++;
}

static char kind_letter(const struct frame *frame)
{
	switch (frame->function->kind) {
	case FRAME_LUA: return frame->compiled ? 'j' : 'L';
	case FRAME_TRACE: return 'T';
	case FRAME_LOST: return 'X';
	case FRAME_BUILTIN:
	case FRAME_C_FUNCTION:
	case FRAME_NATIVE:
	case FRAME_VM:
	case FRAME_VM_WORK:
	case FRAME_ALLOCATED:
	case FRAME_KIND_COUNT: break;
	}
	return 'N';
}

static void print(const struct sampled *sampled, const struct frame *frames, size_t count)
{
	printf("%jx %" PRIx64 " %" PRIx64 " %" PRIx64 " %" PRIx32, (intmax_t)sampled->truth_length,
	       sampled->registers.pc, sampled->registers.sp, sampled->cframe, sampled->trace);
	for (size_t i = 0; i < sampled->word_count; i++)
		printf(" %" PRIx64, sampled->words[i]);
	putchar('\t');
	for (size_t i = 0; i < count; i++)
		printf(" %c:%" PRIu32 ":%" PRIu32 ":%d", kind_letter(&frames[i]),
		       frames[i].function->firstline, frames[i].line, (int)frames[i].certainty);
	putchar('\n');
}

static bool sample(struct tracer *tracer, struct tracee *tracee, struct lua_process *process,
		   const char *truth, struct capture_hints *hints)
{
	struct sampled sampled;
	const struct frame *frames;
	enum vm_state state;
	size_t count;
	int error;

	if (tracer_stop(tracer, tracee, STOP_TIMEOUT_NS))
		return false;
	error = tracer_registers(tracee, &sampled.registers);
	if (!error) {
		lua_process_confirm(process);
		take(process, truth, &sampled);
		lua_process_capture(process, &sampled.registers, hints);
	}
	tracer_resume(tracer, tracee);
	if (error || lua_process_unwind(process, &frames, &count, &state))
		return false;
	lua_process_note_unwound(process, hints);
	print(&sampled, frames, count);
	return true;
}

int main(int argc, char **argv)
{
	const struct namer_options options = { .traces = true };
	struct capture_hints hints = { 0 };
	struct functions *functions = functions_new();
	struct tracer *tracer = tracer_new();
	struct lua_process *process;
	struct tracee *tracee;
	sigset_t signals;
	uint64_t end;
	pid_t pid;

	if (argc != 5 || !functions || !tracer)
		return EXIT_FAILURE;
	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	pid = atoi(argv[1]);
	if (lua_process_open(pid, functions, NULL, &options, &process) ||
	    lua_process_refresh(process, true) || tracer_seize(tracer, pid, pid, &tracee)) {
		fprintf(stderr, "cannot sample process %d\n", pid);
		return EXIT_FAILURE;
	}
	end = now_ns() + (uint64_t)(atof(argv[2]) * 1e9);
	for (unsigned i = 1; now_ns() < end; i++) {
		double interval = 2e6 / atof(argv[3]) * (double)random() / RAND_MAX;

		usleep((useconds_t)interval);
		if (i % COLOR_EVERY == 0)
			lua_process_refresh(process, false);
		if (!sample(tracer, tracee, process, argv[4], &hints))
			break;
	}
	lua_process_close(process);
	tracer_free(tracer);
	functions_free(functions);
	return EXIT_SUCCESS;
}

#include "src/commands.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "output/escape.h"
#include "output/frame_label.h"
#include "src/choose.h"
#include "src/message.h"
#include "src/target/lua_process.h"
#include "src/target/threads.h"
#include "src/target/tracer.h"

enum {
	STOP_TIMEOUT_NS = 200 * 1000 * 1000,
	SLEEPER_TRIES = 10,	/* to read a thread that wakes up now and then */
};

struct dump {
	const struct options *options;
	struct functions *functions;
	struct tracer *tracer;
	struct lua_process *process;
	struct threads *threads;
	enum exit_status status;
};

static void print_frames(const struct frame *frames, size_t count)
{
	char label[FRAME_LABEL_SIZE];

	for (size_t i = 0; i < count; i++) {
		frame_label(frames[i].function, frames[i].line, true, label);
		printf("    ");
		escape_write(ESCAPE_PLAIN, label, stdout);
		putchar('\n');
	}
}

static void print_lost(enum lost_reason reason)
{
	struct frame frame = { .function = functions_lost(reason) };

	print_frames(&frame, 1);
}

static void print_thread(struct dump *dump, const struct thread *thread, const char *state)
{
	const struct frame *frames;
	enum vm_state vm_state;
	size_t count;

	printf("Thread %d \"", thread->tid);
	escape_write(ESCAPE_PLAIN, thread->name, stdout);
	printf("\" (%s)\n", state);
	if (lua_process_unwind(dump->process, &frames, &count, &vm_state)) {
		print_lost(LOST_OUT_OF_MEMORY);
		dump->status = EXIT_WITH_ERRORS;
		return;
	}
	for (size_t i = 0; i < count; i++)
		if (frames[i].function->kind == FRAME_LOST)
			dump->status = EXIT_WITH_ERRORS;
	print_frames(frames, count);
}

/* A running thread is held for as long as it takes to copy its stacks. */
static bool dump_running(struct dump *dump, struct thread *thread)
{
	struct capture_hints hints = { 0 };
	struct registers registers;
	int error = tracer_stop(dump->tracer, thread->tracee, STOP_TIMEOUT_NS);

	if (error)
		return false;
	error = tracer_registers(thread->tracee, &registers);
	if (!error) {
		lua_process_settle(dump->process);
		lua_process_capture(dump->process, &registers, &hints);
	}
	tracer_resume(dump->tracer, thread->tracee);
	if (error)
		return false;
	print_thread(dump, thread,
		     thread->tracee->state == TRACEE_JOB_STOPPED ? "stopped" : "running");
	return true;
}

static bool is_same_call(const struct thread_call *a, const struct thread_call *b)
{
	return a->known == b->known && a->number == b->number && a->rsp == b->rsp &&
	       a->rip == b->rip && memcmp(a->arguments, b->arguments, sizeof(a->arguments)) == 0;
}

/*
 * A sleeping thread's stacks hold still: they are read without waking it, and
 * hold if it has not run and waits in the same call afterwards.
 */
static bool dump_sleeping(struct dump *dump, struct thread *thread)
{
	struct thread_call before, after;
	enum thread_state state;
	struct capture_hints hints = { 0 };
	struct registers registers;
	uint64_t used;

	if (thread_measure(dump->threads, thread, &used) ||
	    thread_look(dump->threads, thread, &state, &before) || state == THREAD_RUNNING ||
	    !before.known)
		return false;
	registers = (struct registers){
		.rip = before.rip,
		.rsp = before.rsp,
		.orig_rax = (uint64_t)before.number,
		.unknown = REGISTERS_ALL_BUT_PC_AND_SP,
	};
	lua_process_settle(dump->process);
	lua_process_capture(dump->process, &registers, &hints);
	if (thread_look(dump->threads, thread, &state, &after) || state == THREAD_RUNNING ||
	    !is_same_call(&before, &after) ||
	    thread_measure(dump->threads, thread, &used) || used != 0)
		return false;
	print_thread(dump, thread, state == THREAD_UNINTERRUPTIBLE ? "uninterruptible" : "asleep");
	return true;
}

/* A sleeping thread must not be held; one that SIGSTOP has stopped does not notice. */
static bool may_be_held(struct dump *dump, struct thread *thread)
{
	tracer_poll(dump->tracer);
	return thread->tracee->state == TRACEE_JOB_STOPPED ||
	       thread_is_running(dump->threads, thread);
}

static void dump_thread(struct dump *dump, struct thread *thread)
{
	for (unsigned i = 0; i < SLEEPER_TRIES; i++)
		if (may_be_held(dump, thread) ? dump_running(dump, thread)
					      : dump_sleeping(dump, thread))
			return;
	printf("Thread %d \"", thread->tid);
	escape_write(ESCAPE_PLAIN, thread->name, stdout);
	printf("\"\n");
	print_lost(LOST_RAN_MEANWHILE);
	dump->status = EXIT_WITH_ERRORS;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int dump_threads(struct dump *dump, pid_t pid)
{
	struct namer_options namer = { .native = dump->options->native,
				       .traces = dump->options->traces };
	int error = lua_process_open(pid, dump->functions, &namer, &dump->process);

	if (error)
		return error;
	if (dump->options->layout)
		lua_process_give_layout(dump->process, &dump->options->layout->layout,
					dump->options->layout->is_file);
	dump->threads = threads_new(dump->tracer, pid);
	if (!dump->threads)
		return -ENOMEM;
	error = threads_refresh(dump->threads, now_ns(), 0);
	if (!error)
		error = lua_process_refresh(dump->process, true);
	if (error)
		return error;
	if (lua_process_module_count(dump->process) == 0) {
		choose_explain_no_luajit(pid);
		dump->status = EXIT_NOTHING_DONE;
		return 0;
	}
	for (size_t i = 0; i < threads_count(dump->threads); i++)
		dump_thread(dump, threads_at(dump->threads, i));
	return 0;
}

static void dump_process(struct dump *dump, pid_t pid)
{
	int error = dump_threads(dump, pid);

	if (error) {
		choose_explain(pid, -error);
		dump->status = EXIT_NOTHING_DONE;
	}
	threads_free(dump->threads);
	lua_process_close(dump->process);
	dump->threads = NULL;
	dump->process = NULL;
}

/* In a thread of its own: that it ends frees the targets. */
static void *run(void *context)
{
	struct dump *dump = context;

	dump->tracer = tracer_new();
	dump->functions = functions_new();
	if (!dump->tracer || !dump->functions) {
		message_error_errno(ENOMEM, "dumping stacks");
		dump->status = EXIT_NOTHING_DONE;
	} else {
		for (size_t i = 0; i < dump->options->pid_count; i++)
			if (choose_check(dump->options->pids[i]) &&
			    choose_check_layout(dump->options->pids[i], dump->options->layout))
				dump_process(dump, dump->options->pids[i]);
			else
				dump->status = EXIT_NOTHING_DONE;
	}
	tracer_free(dump->tracer);
	functions_free(dump->functions);
	return NULL;
}

enum exit_status command_dump(const struct invocation *invocation)
{
	struct dump dump = { .options = invocation->options, .status = EXIT_ALL_GOOD };
	pthread_t thread;
	int error = pthread_create(&thread, NULL, run, &dump);

	if (error) {
		message_error_errno(error, "dumping stacks");
		return EXIT_NOTHING_DONE;
	}
	pthread_join(thread, NULL);
	if (fflush(stdout) && dump.status == EXIT_ALL_GOOD) {
		message_error_errno(errno, "standard output");
		return EXIT_WITH_ERRORS;
	}
	return dump.status;
}

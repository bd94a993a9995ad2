/* SPDX-License-Identifier: MIT */
/* ljspy dump: every stack, once. */
#include "src/commands/commands.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

#include <jansson.h>

#include "memory/core_file.h"
#include "output/labels/json_values.h"
#include "output/reports/dump_report.h"
#include "src/inspect/known_files.h"
#include "src/inspect/lua_process.h"
#include "src/linux/proc/process.h"
#include "src/linux/threads/may_stop.h"
#include "src/linux/tracer/tracer.h"
#include "src/program/message.h"
#include "src/program/standard_files.h"
#include "src/survey/asleep.h"
#include "src/survey/core_stacks.h"
#include "src/survey/dump_stacks.h"
#include "src/survey/traced_process.h"
#include "src/targets/choose.h"
#include "src/targets/command_apart.h"
#include "src/targets/core_look.h"

enum {
	STOP_TIMEOUT_NS = 200 * 1000 * 1000,
	/*
	 * A thread may wake up while ljspy reads it, or stop where its stack is unreadable,
	 * such as half-way through a call.
	 */
	TRIES = 10,
	/*
	 * A thread may have to run once more, on a CPU it shares, before ljspy may stop it, or finds it
	 * elsewhere.
	 */
	WAITS = 1000,
	BETWEEN_TRIES_NS = 1000 * 1000,
};

enum { SCHEMA_VERSION = 1 }; /* of the JSON document */

struct dump {
	const struct options *options;
	struct command_try try;
	struct functions *functions;
	struct known_files *files;
	struct lua_process *process;
	struct traced_process traced;
	uint64_t runs; /* how often the last thread that was stopped had got a CPU */
	struct dump_process *report;
	json_t *documents; /* of processes; NULL unless JSON is wanted */
	size_t written;    /* processes and cores */
	enum exit_status status;
};

static void out_of_memory(struct dump *dump)
{
	message_error_errno(ENOMEM, "dumping stacks");
	dump->status = EXIT_WITH_ERRORS;
}

static void note_lost(struct dump *dump, pid_t tid)
{
	message_warn("Part of the stack of thread %d could not be read.", (int)tid);
	dump->status = EXIT_WITH_ERRORS;
}

/* Add the captured thread to the report. False if only_whole is set and its stack is not whole. */
static bool add_thread(struct dump *dump, struct thread *thread, const char *state, bool only_whole)
{
	struct dump_thread found = { .tid = thread->tid, .name = thread->name, .state = state };
	bool whole = false;

	if (dump_thread(dump->process, &found, only_whole, dump->report, &whole)) {
		out_of_memory(dump);
		return true;
	}
	if (!whole && !only_whole)
		note_lost(dump, thread->tid);
	return whole || !only_whole;
}

/* Hold a running thread while copying its stacks. False to try again. */
static bool dump_running(struct dump *dump, struct thread *thread, bool only_whole)
{
	struct capture_hints hints = { .tid = thread->tid, .deep = true };
	struct registers registers;
	int error = tracer_stop(dump->traced.patience.tracer, thread->tracee, STOP_TIMEOUT_NS);

	if (error)
		return false;
	error = tracer_registers(thread->tracee, &registers);
	if (!error) {
		lua_process_confirm(dump->process);
		lua_process_capture(dump->process, &registers, &hints);
		thread_note_stop(thread, &registers);
		if (thread_count_runs(dump->traced.threads, thread, &dump->runs))
			dump->runs = 0;
	}
	tracer_resume(dump->traced.patience.tracer, thread->tracee);
	if (error)
		return false;
	thread_note_resumed(thread, &registers);
	if (thread->tracee->state == TRACEE_JOB_STOPPED)
		return add_thread(dump, thread, "stopped", false);
	return add_thread(dump, thread, "running", only_whole);
}

static bool dump_sleeping(struct dump *dump, struct thread *thread)
{
	struct capture_hints hints = { .deep = true };
	struct thread_call call;
	enum thread_state state;

	if (asleep_capture(dump->process, dump->traced.threads, thread, &hints, &state, &call) !=
	    ASLEEP_HOLDS)
		return false;
	return add_thread(dump, thread, state == THREAD_UNINTERRUPTIBLE ? "uninterruptible" : "asleep",
			  false);
}

static bool try_to_dump(struct dump *dump, struct thread *thread, bool only_whole, bool *ret_may_not)
{
	struct own_turn *turn = tracer_turn(dump->traced.patience.tracer);

	*ret_may_not = false;
	dump->runs = 0;
	tracer_poll(dump->traced.patience.tracer);
	if (own_turn_is_used_up(turn))
		own_turn_renew(turn);
	/* A thread that SIGSTOP has stopped notices nothing. */
	if (thread->tracee->state == TRACEE_JOB_STOPPED)
		return dump_running(dump, thread, only_whole);
	switch (thread_may_stop(dump->traced.threads, thread, turn)) {
	case MAY_STOP:
	case MAY_STOP_WAITING: return dump_running(dump, thread, only_whole);
	case MAY_NOT_SLEEPS: return dump_sleeping(dump, thread);
	case MAY_NOT_WAITS:
	case MAY_NOT_YET:
	case MAY_NOT_CALLS:
	case MAY_NOT_CALLS_WAITING: break;
	}
	*ret_may_not = true;
	return false;
}

static void rest(struct dump *dump)
{
	const struct timespec time = { .tv_nsec = BETWEEN_TRIES_NS };
	sigset_t none;

	sigemptyset(&none);
	own_turn_wait(tracer_turn(dump->traced.patience.tracer), &none, NULL, &time);
}

/* Has it run since it was stopped where its stack is unreadable? Until then it would be found there again. */
static bool has_run_on(const struct dump *dump, struct thread *thread)
{
	uint64_t runs;

	return thread_count_runs(dump->traced.threads, thread, &runs) || runs != dump->runs;
}

static void dump_one_thread(struct dump *dump, struct thread *thread)
{
	unsigned int tries = 0, waits = 0;
	bool may_not;

	while (tries < TRIES && waits < WAITS && command_try_may_go_on(&dump->try)) {
		if (try_to_dump(dump, thread, tries + 1 < TRIES, &may_not))
			return;
		waits += may_not;
		tries += !may_not;
		rest(dump);
		while (dump->runs && waits < WAITS && command_try_may_go_on(&dump->try) &&
		       !has_run_on(dump, thread)) {
			rest(dump);
			waits++;
		}
	}
	if (dump->try.given_up)
		return;
	note_lost(dump, thread->tid);
	if (dump_lost_thread(
		    &(struct dump_thread){ .tid = thread->tid, .name = thread->name, .state = "unknown" },
		    LOST_RAN_MEANWHILE, dump->report))
		out_of_memory(dump);
}

static struct namer_options namer_options(const struct options *options)
{
	return (struct namer_options){
		.native = options->native,
		.traces = options->traces,
		.details = options->details,
		.errors = options->details || options->locals ? ERRORS_VALUES : ERRORS_CAUGHT,
	};
}

static int open_process(struct dump *dump, pid_t pid)
{
	struct namer_options namer = namer_options(dump->options);
	struct process process;
	int error = process_read(pid, &process);

	if (error)
		return error;
	dump->report = dump_process_new(pid, process.name);
	process_clear(&process);
	if (!dump->report)
		return -ENOMEM;
	error = lua_process_open(pid, dump->functions, dump->files, &namer, &dump->process);
	if (error)
		return error;
	lua_process_give_layout(dump->process, dump->options->layout);
	if (dump->options->locals && lua_process_want_values(dump->process))
		return -ENOMEM;
	error = traced_process_begin(&dump->traced, pid, dump->files);
	return error ? error : lua_process_refresh(dump->process, true);
}

static void note_incomplete(struct dump *dump)
{
	for (size_t i = 0; i < dump->report->vm_count; i++)
		if (!dump->report->vms[i].complete) {
			message_warn("Not all coroutines of process %d could be read.",
				     (int)dump->report->pid);
			dump->status = EXIT_WITH_ERRORS;
		}
}

static int dump_parked(struct dump *dump)
{
	int error = dump_coroutines(dump->process, dump->traced.hold, dump->report);

	if (!dump->try.given_up)
		note_incomplete(dump);
	return error;
}

static int write_report(struct dump *dump)
{
	json_t *document;

	if (!dump->documents) {
		dump_process_print(stdout, dump->report);
	} else {
		document = dump_process_json(dump->report);
		if (!document || json_array_append_new(dump->documents, document))
			return -ENOMEM;
	}
	dump->written++;
	return 0;
}

static int read_stacks(struct dump *dump, pid_t pid)
{
	int error = open_process(dump, pid);

	if (!error)
		error = lua_process_lacks_luajit(dump->process);
	if (error)
		return error;
	for (size_t i = 0; i < threads_count(dump->traced.threads); i++)
		dump_one_thread(dump, threads_at(dump->traced.threads, i));
	return dump_parked(dump);
}

/* Everything that traces the process runs in a thread: when the thread ends, its tracees are free. */
struct reading {
	struct dump *dump;
	pid_t pid;
	bool has_tracer;
	int error;
};

static void end_process(struct dump *dump)
{
	lua_process_close(dump->process);
	dump_process_free(dump->report);
	dump->process = NULL;
	dump->report = NULL;
}

static void *read_process(void *context)
{
	struct reading *reading = context;
	struct dump *dump = reading->dump;
	struct tracer *tracer = tracer_new();

	end_process(dump); /* of an attempt that was given up */
	reading->has_tracer = tracer != NULL;
	if (!tracer) {
		reading->error = -errno;
		return NULL;
	}
	if (dump->options->allow_attach)
		tracer_allow_attach(tracer);
	dump->traced.patience = (struct patience){ tracer, command_try_may_go_on, &dump->try };
	reading->error = read_stacks(dump, reading->pid);
	traced_process_end(&dump->traced);
	tracer_free(tracer);
	return NULL;
}

static int dump_stacks(struct dump *dump, pid_t pid)
{
	struct reading reading = { .dump = dump, .pid = pid };
	int error = command_try_run(&dump->try, read_process, &reading);

	if (error)
		return error;
	if (!reading.has_tracer) {
		choose_explain_error(-reading.error, "dumping stacks");
		dump->status = EXIT_WITH_ERRORS;
		return 0;
	}
	if (reading.error)
		return reading.error;
	return write_report(dump);
}

static void dump_process(struct dump *dump, pid_t pid)
{
	int error = dump_stacks(dump, pid);

	if (error) {
		choose_explain_look(pid, -error);
		dump->status = EXIT_WITH_ERRORS;
	}
	end_process(dump);
}

static int dump_core_stacks(struct dump *dump, struct core_file *core, bool is_other)
{
	const struct core_stacks_options options = {
		.namer = namer_options(dump->options),
		.layout = dump->options->layout,
		.wants_values = dump->options->locals,
	};
	int error = (is_other ? core_stacks_read_other : core_stacks_read)(core, &options, dump->functions,
									   &dump->report);

	if (error)
		return error;
	if (dump->report->vm_count == 0) {
		message_warn("%s", core_unknown_layout);
		dump->status = EXIT_WITH_ERRORS;
	}
	for (size_t i = 0; i < dump->report->thread_count; i++) {
		const struct dump_thread *thread = &dump->report->threads[i];

		if (!dump_is_whole(thread->stack.frames, thread->stack.count))
			note_lost(dump, thread->tid);
	}
	note_incomplete(dump);
	return write_report(dump);
}

static void dump_core(struct dump *dump, const char *path)
{
	const char *problem = NULL;
	struct core_file *core = NULL;
	bool is_other = false;
	int error = core_open(path, &core, &is_other, &problem);

	if (!error)
		error = dump_core_stacks(dump, core, is_other);
	if (error) {
		core_explain(path, error, problem);
		dump->status = EXIT_WITH_ERRORS;
	}
	end_process(dump);
	core_file_close(core);
}

static void dump_processes(struct dump *dump)
{
	for (size_t i = 0; i < dump->options->pid_count; i++)
		if (choose_check(dump->options->pids[i]) &&
		    choose_check_layout(dump->options->pids[i], dump->options->layout))
			dump_process(dump, dump->options->pids[i]);
		else
			dump->status = EXIT_WITH_ERRORS;
}

static enum exit_status dump_all(struct apart *apart, const struct invocation *invocation)
{
	struct dump dump = {
		.options = invocation->options,
		.try = { .apart = apart },
		.functions = functions_new(),
		.files = known_files_new(),
		.documents = invocation->options->json ? json_array() : NULL,
		.status = EXIT_ALL_GOOD,
	};

	if (!dump.functions || !dump.files || (dump.options->json && !dump.documents)) {
		message_error_errno(ENOMEM, "dumping stacks");
	} else if (dump.options->core) {
		dump_core(&dump, dump.options->core);
	} else {
		dump_processes(&dump);
	}
	if (dump.written == 0)
		dump.status = EXIT_NOTHING_DONE;
	else if (dump.documents && !json_write_processes(stdout, SCHEMA_VERSION, dump.documents))
		out_of_memory(&dump);
	json_decref(dump.documents);
	known_files_free(dump.files);
	functions_free(dump.functions);
	if (!standard_output_flush() && dump.status == EXIT_ALL_GOOD)
		return EXIT_WITH_ERRORS;
	return dump.status;
}

enum exit_status command_dump(const struct invocation *invocation)
{
	/* A core file has no process to keep waiting: it needs no engine. */
	return invocation->options->core ? dump_all(NULL, invocation)
					 : command_run_apart(dump_all, invocation, false);
}

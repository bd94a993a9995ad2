/* SPDX-License-Identifier: MIT */
/* ljspy heap: show what holds the memory. */
#include "src/commands/commands.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/rendering/heap_output.h"
#include "src/heap/process_heaps.h"
#include "src/inspect/known_files.h"
#include "src/linux/clocks/clock.h"
#include "src/linux/proc/process.h"
#include "src/linux/threads/tracer.h"
#include "src/program/message.h"
#include "src/program/standard_files.h"
#include "src/survey/traced_lua.h"
#include "src/targets/choose.h"
#include "src/targets/command_apart.h"
#include "src/targets/core_look.h"

struct heap_command {
	const struct options *options;
	struct command_try try;
	struct functions *functions;
	struct known_files *files;
	struct process_heaps heaps; /* of the process or core that is read */
	struct heap_output output;
	bool is_unread; /* at this moment; another one may find the heap of a process, which is there still */
	enum exit_status status;
};

/*---- Reading ----*/

static struct heap_capture_options capture_options(const struct options *options)
{
	return (struct heap_capture_options){
		.read = { .strings = options->strings },
		.max_pause_ns = options->max_pause_ns,
	};
}

/* hold is NULL for a core file; name may be NULL. */
static int read_heaps(struct heap_command *command, struct lua_process *process, struct hold *hold, pid_t pid,
		      const char *name)
{
	const struct heap_capture_options options = capture_options(command->options);

	return process_heaps_read(process, hold, pid, name, &options, &command->heaps);
}

/* Everything that traces the process runs in a thread: when the thread ends, its tracees are free. */
struct reading {
	struct heap_command *command;
	pid_t pid;
	bool has_tracer;
	int error;
};

static int look(void *context, struct lua_process *process, struct hold *hold, const char *name)
{
	const struct reading *reading = context;

	return read_heaps(reading->command, process, hold, reading->pid, name);
}

static void *read_process(void *context)
{
	struct reading *reading = context;
	struct heap_command *command = reading->command;
	struct traced_lua traced = {
		.functions = command->functions,
		.files = command->files,
		.layout = command->options->layout,
		.patience = { tracer_new(), command_try_may_go_on, &command->try },
		.look = look,
		.context = reading,
	};

	process_heaps_clear(&command->heaps);
	reading->has_tracer = traced.patience.tracer != NULL;
	if (!reading->has_tracer) {
		reading->error = -errno;
		return NULL;
	}
	if (command->options->allow_attach)
		tracer_allow_attach(traced.patience.tracer);
	reading->error = traced_lua_look(&traced, reading->pid);
	tracer_free(traced.patience.tracer);
	return NULL;
}

/*---- What was read ----*/

/* Hand over the heaps. That not all was found is an error worth knowing. */
static void take_heaps(struct heap_command *command)
{
	int error = 0;

	for (size_t i = 0; i < command->heaps.count && !error; i++) {
		struct vm_heap *heap = &command->heaps.at[i];

		error = heap_output_add(&command->output, &heap->graph, &heap->account);
	}
	if (command->output.is_partial)
		command->status = EXIT_WITH_ERRORS;
	if (error) {
		message_error_errno(-error, "analysing a heap");
		command->status = EXIT_NOTHING_DONE;
	}
}

/*---- The command ----*/

static void explain_long_hold(const struct vm_heap *missing, pid_t pid)
{
	const uint64_t ms = missing->too_long_ns / 1000000;

	message_error("Process %d does not sleep, and copying its heap would hold it for some %" PRIu64
		      " ms.",
		      pid, ms);
	message_note("Allow that with --max-pause %" PRIu64 "ms, or read a core file with --core.",
		     ms + ms / 2);
}

static void explain_no_hold(pid_t pid)
{
	message_error(
		"The heap of process %d could not be copied in one moment: again and again, a thread of it woke"
		" meanwhile, or ran where it may not be stopped.",
		pid);
	message_note("Try again at another time, or read a core file with --core.");
}

static void tell_missing(const struct process_heaps *heaps, const char *of)
{
	const size_t missing = process_heaps_missing(heaps);

	message_error("Of %zu Lua states of %s, %zu %s missing.", heaps->count, of, missing,
		      missing == 1 ? "is" : "are");
}

/* Why heaps are missing, each reason once. error: of the whole; 0 if some heaps are there. */
static void explain(struct heap_command *command, pid_t pid, int error)
{
	const struct vm_heap *large = process_heaps_missing_by(&command->heaps, -EFBIG);
	const struct vm_heap *busy = process_heaps_missing_by(&command->heaps, -EBUSY);
	const struct vm_heap *closed = process_heaps_missing_by(&command->heaps, -EIO);

	command->status = EXIT_WITH_ERRORS;
	if (process_thread_with_memory(pid) == 0) {
		message_error("Process %d ended while its heap was read.", (int)pid);
		return;
	}
	if (large)
		explain_long_hold(large, pid);
	if (busy)
		explain_no_hold(pid);
	if (closed)
		message_error("VM %u of process %d could not be read: it may have been closed meanwhile.",
			      closed->account.vm, pid);
	if (large || busy || closed)
		command->is_unread = true;
	else
		choose_explain_look(pid, -error);
}

/* The others are there. */
static void explain_missing(struct heap_command *command, pid_t pid)
{
	char of[32];

	if (process_heaps_missing(&command->heaps) == 0)
		return;
	snprintf(of, sizeof(of), "process %d", (int)pid);
	tell_missing(&command->heaps, of);
	explain(command, pid, 0);
}

static void explain_no_states(struct heap_command *command, pid_t pid)
{
	message_error(
		"No Lua state is known in process %d: it has none, or not one that ljspy could confirm.",
		pid);
	message_note("`ljspy info -p %d` tells what was found.", pid);
	command->status = EXIT_WITH_ERRORS;
}

static void heap_of_process(struct heap_command *command, pid_t pid)
{
	struct reading reading = { .command = command, .pid = pid };
	int error = command_try_run(&command->try, read_process, &reading);

	if (!error && !command->try.given_up && !reading.has_tracer)
		error = reading.error;
	if (error) {
		choose_explain_error(-error, "reading a heap");
		command->status = EXIT_WITH_ERRORS;
		return;
	}
	if (command->try.given_up)
		command->status = EXIT_WITH_ERRORS;
	else if (reading.error)
		explain(command, pid, reading.error);
	else if (command->heaps.count == 0)
		explain_no_states(command, pid);
	else {
		explain_missing(command, pid);
		take_heaps(command);
	}
	process_heaps_clear(&command->heaps);
}

static int read_core(void *context, struct lua_process *process, const struct core_file *core)
{
	struct heap_command *command = context;

	if (lua_process_global_count(process) == 0) {
		message_error("%s", core_unknown_layout);
		command->status = EXIT_NOTHING_DONE;
	}
	return read_heaps(command, process, NULL, core_file_pid(core), core_file_name(core));
}

static void heap_of_core(struct heap_command *command, const char *path)
{
	const struct core_look look = {
		.functions = command->functions,
		.layout = command->options->layout,
		.look = read_core,
		.context = command,
	};

	if (core_look_at(&look, path)) {
		if (process_heaps_missing(&command->heaps) > 0)
			tell_missing(&command->heaps, path);
		take_heaps(command);
	} else {
		command->status = EXIT_NOTHING_DONE;
	}
	process_heaps_clear(&command->heaps);
}

/* Read all targets once. */
static bool read_moment(struct heap_command *command)
{
	const struct options *options = command->options;

	command->is_unread = false;
	if (heap_output_begin_moment(&command->output, NULL)) {
		message_error_errno(ENOMEM, "reading a heap");
		command->status = EXIT_NOTHING_DONE;
		return false;
	}
	if (options->core)
		heap_of_core(command, options->core);
	for (size_t i = 0; !options->core && i < options->pid_count; i++)
		if (choose_check(options->pids[i]) && choose_check_layout(options->pids[i], options->layout))
			heap_of_process(command, options->pids[i]);
		else
			command->status = EXIT_WITH_ERRORS;
	return heap_output_has_any(&command->output);
}

/* Wait while no thread is held. False if the user has ended the series. */
static bool wait_until(struct heap_command *command, uint64_t time_ns)
{
	sigset_t signals;
	uint64_t now_ns;

	sigemptyset(&signals);
	sigaddset(&signals, SIGHUP);
	sigaddset(&signals, SIGCHLD);
	while (apart_wish(command->try.apart) != APART_CONCLUDE &&
	       (now_ns = clock_now_ns(CLOCK_MONOTONIC)) < time_ns) {
		uint64_t left_ns = time_ns - now_ns;
		struct timespec left = { .tv_sec = (time_t)(left_ns / 1000000000),
					 .tv_nsec = (long)(left_ns % 1000000000) };

		sigtimedwait(&signals, NULL, &left);
	}
	return apart_wish(command->try.apart) != APART_CONCLUDE;
}

/* Read all targets again and again. If all are gone in the meantime, or have no heap at the beginning, the series ends. */
static void read_series(struct heap_command *command)
{
	const struct options *options = command->options;
	uint64_t begin_ns = clock_now_ns(CLOCK_MONOTONIC), next_ns = begin_ns;

	do {
		if (!read_moment(command)) {
			heap_output_drop_moment(&command->output);
			if (heap_output_moments(&command->output) == 0 || !command->is_unread)
				break;
		} else if (!heap_output_write_moment(&command->output)) {
			command->status = EXIT_WITH_ERRORS;
		}
		next_ns += options->every_ns;
	} while ((!options->for_ns || next_ns - begin_ns <= options->for_ns) && wait_until(command, next_ns));
	if (heap_output_moments(&command->output) < 2) {
		message_error("There was only one look at the heap: nothing to compare.");
		command->status = EXIT_NOTHING_DONE;
	} else if (!heap_output_write_series(&command->output)) {
		command->status = EXIT_NOTHING_DONE;
	}
}

static void read_and_show(struct heap_command *command)
{
	if (command->options->every_ns)
		read_series(command);
	else if (!read_moment(command) || !heap_output_write(&command->output))
		command->status = EXIT_NOTHING_DONE;
}

static enum exit_status show_heaps(struct apart *apart, const struct invocation *invocation)
{
	struct heap_command command = {
		.options = invocation->options,
		.try = { .apart = apart },
		.functions = functions_new(),
		.files = known_files_new(),
		.output = { .options = invocation->options, .command_line = invocation->command_line },
		.status = EXIT_ALL_GOOD,
	};

	if (!command.functions || !command.files) {
		message_error_errno(ENOMEM, "reading a heap");
		command.status = EXIT_NOTHING_DONE;
	} else {
		read_and_show(&command);
	}
	heap_output_clear(&command.output);
	known_files_free(command.files);
	functions_free(command.functions);
	if (command.status == EXIT_ALL_GOOD && !standard_output_flush())
		return EXIT_WITH_ERRORS;
	return command.status;
}

enum exit_status command_heap(const struct invocation *invocation)
{
	if (invocation->options->every_ns && !heap_output_check_series(invocation->options))
		return EXIT_USAGE;
	/* A core file has no process to keep waiting: it needs no engine. */
	return invocation->options->core
		       ? show_heaps(NULL, invocation)
		       : command_run_apart(show_heaps, invocation, invocation->options->every_ns != 0);
}

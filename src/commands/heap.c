/* SPDX-License-Identifier: MIT */
/* ljspy heap: show what holds the memory. */
#include "src/commands/commands.h"

#include <errno.h>
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
#include "src/linux/tracer/tracer.h"
#include "src/program/message.h"
#include "src/program/standard_files.h"
#include "src/survey/traced_lua.h"
#include "src/targets/choose.h"
#include "src/targets/command_apart.h"
#include "src/targets/core_look.h"
#include "src/targets/heap_unread.h"

/* A process that is read, in a series again and again. */
struct heap_target {
	pid_t pid;
	uint64_t start;          /* of the process, once it was looked at */
	struct heap_unread told; /* why it could not be read, what the user was told last */
	bool is_over;            /* it is gone, or cannot be read at all */
	bool was_read;           /* a heap of it was */
	bool may_pass;           /* why it could not be read the last time */
};

struct heap_command {
	const struct options *options;
	struct command_try try;
	struct functions *functions;
	struct known_files *files;
	struct heap_target *targets; /* as many as the options have processes */
	struct process_heaps heaps;  /* of the process or core that is read */
	struct heap_output output;
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

/* May another look at the process find a heap? */
static bool target_may_come(const struct heap_target *target)
{
	return (target->was_read || target->may_pass) && !target->is_over;
}

/* Tell why the process could not be read, and whether a series comes to it again. */
static void tell(struct heap_command *command, struct heap_target *target, const struct heap_unread *why)
{
	target->may_pass = heap_unread_may_pass(why);
	heap_unread_tell(&target->told, why, &command->heaps, target->pid,
			 command->options->every_ns && target_may_come(target));
}

/* Why heaps are missing. A process without memory is gone. */
static void explain(struct heap_command *command, struct heap_target *target, const struct heap_unread *why)
{
	command->status = EXIT_WITH_ERRORS;
	if (process_thread_with_memory(target->pid) == 0) {
		target->is_over = true;
		message_error("Process %d ended while its heap was read.", (int)target->pid);
		return;
	}
	tell(command, target, why);
}

/* The result of a look at the process; error is that of the look, and why heaps are missing. */
static void take_look(struct heap_command *command, struct heap_target *target, int error,
		      const struct heap_unread *why)
{
	const size_t missing = process_heaps_missing(&command->heaps);
	const bool has_all = error != -ENOMEM; /* of each state something is known */

	target->was_read |= missing < command->heaps.count && has_all;
	if (error || command->heaps.count == 0 || missing > 0)
		explain(command, target, why);
	if (has_all)
		take_heaps(command);
}

static struct heap_unread try_to_read(struct reading *reading)
{
	struct heap_command *command = reading->command;
	int error = command_try_run(&command->try, read_process, reading);

	if (!error && !command->try.given_up && !reading->has_tracer)
		error = reading->error;
	if (error)
		return (struct heap_unread){ .reason = HEAP_UNREAD_OWN, .error = error };
	if (command->try.given_up)
		return (struct heap_unread){ .reason = HEAP_UNREAD_NOT };
	return heap_unread_why(&command->heaps, reading->pid, reading->error);
}

static void heap_of_process(struct heap_command *command, struct heap_target *target)
{
	struct reading reading = { .command = command, .pid = target->pid };
	struct heap_unread why = try_to_read(&reading);

	if (why.reason == HEAP_UNREAD_OWN)
		explain(command, target, &why);
	else if (command->try.given_up)
		command->status = EXIT_WITH_ERRORS;
	else
		take_look(command, target, reading.error, &why);
	process_heaps_clear(&command->heaps);
}

/* Another process may have its number by now. */
static void read_target(struct heap_command *command, struct heap_target *target)
{
	uint64_t start = 0;
	int error = choose_can_look(target->pid, &start);

	if (!error && target->start && target->start != start)
		error = -ESRCH;
	if (error) {
		const struct heap_unread why = heap_unread_look(target->pid, error);

		command->status = EXIT_WITH_ERRORS;
		target->is_over = error == -ESRCH;
		tell(command, target, &why);
		return;
	}
	target->start = start;
	if (choose_check_layout(target->pid, command->options->layout)) {
		heap_of_process(command, target);
	} else {
		command->status = EXIT_WITH_ERRORS;
		target->is_over = true;
	}
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
			heap_unread_tell_count(&command->heaps, path);
		take_heaps(command);
	} else {
		command->status = EXIT_NOTHING_DONE;
	}
	process_heaps_clear(&command->heaps);
}

static bool begin_moment(struct heap_command *command)
{
	if (!heap_output_begin_moment(&command->output, NULL))
		return true;
	message_error_errno(ENOMEM, "reading a heap");
	command->status = EXIT_WITH_ERRORS; /* what a series has read before is shown */
	return false;
}

/* Read all targets once. False if no heap could be read. */
static bool read_moment(struct heap_command *command)
{
	const struct options *options = command->options;

	if (options->core)
		heap_of_core(command, options->core);
	for (size_t i = 0; !options->core && i < options->pid_count; i++)
		if (!command->targets[i].is_over)
			read_target(command, &command->targets[i]);
	return heap_output_has_any(&command->output);
}

/* May another moment find a heap? */
static bool may_come(const struct heap_command *command)
{
	bool any = false;

	for (size_t i = 0; !command->options->core && i < command->options->pid_count; i++)
		any |= target_may_come(&command->targets[i]);
	return any;
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

static void explain_no_series(const struct heap_output *output)
{
	const size_t moments = heap_output_moments(output), looks = moments + output->unread;

	if (moments == 0)
		message_error("No look at the heap succeeded: nothing to compare.");
	else if (output->unread > 0)
		message_error("Only one of %zu looks at the heap succeeded: nothing to compare.", looks);
	else
		message_error("There was only one look at the heap: nothing to compare.");
}

/* The first of begin, begin + every, ... that has not passed now. */
static uint64_t next_time(uint64_t begin_ns, uint64_t every_ns)
{
	return begin_ns + ((clock_now_ns(CLOCK_MONOTONIC) - begin_ns) / every_ns + 1) * every_ns;
}

/*
 * Read all targets again and again. If all are gone in the meantime, or at the beginning have no heap and
 * nothing promises one, the series ends. Where a look takes long, the next one is at the next time that has
 * not passed yet.
 */
static void read_series(struct heap_command *command)
{
	const struct options *options = command->options;
	const uint64_t begin_ns = clock_now_ns(CLOCK_MONOTONIC);
	uint64_t next_ns;

	do {
		if (!begin_moment(command))
			break;
		if (!read_moment(command)) {
			heap_output_drop_moment(&command->output);
			if (command->try.given_up || !may_come(command))
				break;
			command->output.unread++;
		} else if (!heap_output_write_moment(&command->output)) {
			command->status = EXIT_WITH_ERRORS;
		}
		apart_publish(command->try.apart, &command->status); /* the user reads the messages now */
		next_ns = next_time(begin_ns, options->every_ns);
	} while ((!options->for_ns || next_ns - begin_ns <= options->for_ns) && wait_until(command, next_ns));
	if (heap_output_moments(&command->output) < 2) {
		explain_no_series(&command->output);
		command->status = EXIT_NOTHING_DONE;
	} else if (!heap_output_write_series(&command->output)) {
		command->status = EXIT_NOTHING_DONE;
	}
}

static void read_and_show(struct heap_command *command)
{
	if (command->options->every_ns)
		read_series(command);
	else if (!begin_moment(command) || !read_moment(command) || !heap_output_write(&command->output))
		command->status = EXIT_NOTHING_DONE;
}

static enum exit_status show_heaps(struct apart *apart, const struct invocation *invocation)
{
	struct heap_command command = {
		.options = invocation->options,
		.try = { .apart = apart },
		.functions = functions_new(),
		.files = known_files_new(),
		.targets = calloc(invocation->options->pid_count + 1, sizeof(*command.targets)),
		.output = { .options = invocation->options, .command_line = invocation->command_line },
		.status = EXIT_ALL_GOOD,
	};

	for (size_t i = 0; command.targets && i < command.options->pid_count; i++)
		command.targets[i].pid = command.options->pids[i];
	if (!command.functions || !command.files || !command.targets) {
		message_error_errno(ENOMEM, "reading a heap");
		command.status = EXIT_NOTHING_DONE;
	} else {
		read_and_show(&command);
	}
	heap_output_clear(&command.output);
	known_files_free(command.files);
	functions_free(command.functions);
	free(command.targets);
	if (!standard_output_flush() && command.status == EXIT_ALL_GOOD)
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

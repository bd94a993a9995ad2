/* SPDX-License-Identifier: MIT */
/* ljspy memory: tell the resident set of processes apart. */
#include "src/commands/commands.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <jansson.h>

#include "output/labels/json_values.h"
#include "output/reports/footprint_report.h"
#include "src/footprint/footprint.h"
#include "src/inspect/known_files.h"
#include "src/inspect/lua_process.h"
#include "src/linux/proc/process.h"
#include "src/linux/pages/smaps.h"
#include "src/program/message.h"
#include "src/program/standard_files.h"
#include "src/survey/confirm_layout.h"
#include "src/targets/choose.h"
#include "src/targets/command_apart.h"

enum { SCHEMA_VERSION = 1 }; /* of the JSON document */

struct memory_command {
	const struct options *options;
	struct functions *functions;
	struct known_files *files;
	struct footprint **footprints; /* room for one for each process */
	size_t count;
	enum exit_status status;
};

static void out_of_memory(struct memory_command *command)
{
	message_error_errno(ENOMEM, "telling memory apart");
	command->status = EXIT_WITH_ERRORS;
}

/* 0 or a negative errno. */
static int take(struct memory_command *command, pid_t pid, struct footprint **ret_footprint)
{
	const struct namer_options namer = { .native = NATIVE_FOLD };
	struct footprint *footprint = NULL;
	struct lua_process *lua = NULL;
	struct smaps before = { .maps = NULL };
	struct process process;
	int error = process_read(pid, &process);

	if (error)
		return error;
	footprint = footprint_new(pid, process.name);
	process_clear(&process);
	error = footprint ? smaps_read(process_thread_with_memory(pid), &before) : -ENOMEM;
	if (!error)
		error = lua_process_open(pid, command->functions, command->files, &namer, &lua);
	if (!error)
		lua_process_give_layout(lua, command->options->layout);
	if (!error)
		error = confirm_while_it_runs(lua);
	if (!error)
		error = footprint_take(lua, &before, footprint);
	lua_process_close(lua);
	smaps_clear(&before);
	if (error)
		footprint_free(footprint);
	else
		*ret_footprint = footprint;
	return error;
}

static void take_all(struct memory_command *command)
{
	const struct options *options = command->options;

	for (size_t i = 0; i < options->pid_count; i++) {
		int error = take(command, options->pids[i], &command->footprints[command->count]);

		if (!error) {
			struct footprint *footprint = command->footprints[command->count++];

			if (footprint->unconfirmed)
				command->status = EXIT_WITH_ERRORS;
			continue;
		}
		choose_explain(options->pids[i], -error);
		if (command->status == EXIT_ALL_GOOD)
			command->status = EXIT_WITH_ERRORS;
	}
	if (command->count == 0)
		command->status = EXIT_NOTHING_DONE;
}

static void write_json(struct memory_command *command)
{
	json_t *documents = json_array();

	for (size_t i = 0; documents && i < command->count; i++)
		documents = json_value_append(documents, footprint_json(command->footprints[i]));
	if (!documents || !json_write_processes(stdout, SCHEMA_VERSION, documents))
		out_of_memory(command);
	json_decref(documents);
}

static void write_text(const struct memory_command *command)
{
	for (size_t i = 0; i < command->count; i++) {
		if (i)
			putchar('\n');
		footprint_print(stdout, command->footprints[i]);
	}
	if (command->count < 2)
		return;
	putchar('\n');
	footprint_print_sum(stdout, command->footprints, command->count);
}

static void run(struct memory_command *command)
{
	take_all(command);
	if (command->count == 0)
		return;
	if (command->options->json)
		write_json(command);
	else
		write_text(command);
}

static enum exit_status show_memory(struct apart *apart, const struct invocation *invocation)
{
	const struct options *options = invocation->options;
	struct memory_command command = { .options = options, .status = EXIT_ALL_GOOD };

	(void)apart;
	if (!choose_check_all(options) || !choose_check_layouts(options))
		return EXIT_NOTHING_DONE;
	command.functions = functions_new();
	command.files = known_files_new();
	command.footprints = calloc(options->pid_count, sizeof(struct footprint *));
	if (command.functions && command.files && command.footprints)
		run(&command);
	else
		out_of_memory(&command);
	for (size_t i = 0; i < command.count; i++)
		footprint_free(command.footprints[i]);
	free(command.footprints);
	known_files_free(command.files);
	functions_free(command.functions);
	if (!standard_output_flush() && command.status == EXIT_ALL_GOOD)
		return EXIT_WITH_ERRORS;
	return command.status;
}

enum exit_status command_memory(const struct invocation *invocation)
{
	return command_run_apart(show_memory, invocation, false);
}

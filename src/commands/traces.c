/* SPDX-License-Identifier: MIT */
/* ljspy traces: show what is compiled, and what is not; or list one trace or function. */
#include "src/commands/commands.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "output/labels/json_values.h"
#include "output/listing/listing_report.h"
#include "src/linux/tracer/tracer.h"
#include "src/program/message.h"
#include "src/program/standard_files.h"
#include "src/sampler/sampler_apart.h"
#include "src/survey/listing_survey.h"
#include "src/survey/trace_survey.h"
#include "src/survey/traced_lua.h"
#include "src/targets/choose.h"
#include "src/targets/command_apart.h"
#include "src/targets/core_look.h"
#include "src/targets/sampling.h"

enum { SCHEMA_VERSION = 1 }; /* of the JSON document */

static const uint64_t duration_default_ns = 3 * UINT64_C(1000000000);

struct traces_command {
	struct command_try try;
	const struct options *options;
	struct functions *functions;
	struct trace_survey *survey;
	struct code_samples *code; /* NULL unless one trace or function is wanted, or for a core file */
	size_t listed;             /* traces or functions */
	struct sampler_options sampler_options;
	struct sampler_result result;
	struct tracer *tracer;
	size_t next;       /* of the processes, to be reported */
	size_t reported;   /* how many were */
	json_t *documents; /* of processes; NULL unless JSON is wanted */
	enum exit_status status;
};

static void out_of_memory(struct traces_command *command)
{
	message_error_errno(ENOMEM, "looking at traces");
	command->status = EXIT_WITH_ERRORS;
}

/*---- Samples ----*/

static void take_sample(void *context, const struct sample *sample)
{
	struct traces_command *command = context;

	if (command->status != EXIT_ALL_GOOD)
		return;
	if (command->code ? code_samples_add(command->code, sample)
			  : trace_survey_add(command->survey, sample))
		out_of_memory(command);
}

static bool stay_away(void *context)
{
	const struct traces_command *command = context;

	return apart_stay_away(command->try.apart);
}

/*---- One trace or function ----*/

static bool wants_listing(const struct options *options)
{
	return options->show || options->bytecode;
}

static int write_listing(struct traces_command *command, const struct listing_process *report)
{
	json_t *document;

	if (!report->complete)
		command->status = EXIT_WITH_ERRORS;
	command->listed += report->count;
	if (!command->documents) {
		if (report->count || !report->complete)
			listing_process_print(stdout, report);
		return 0;
	}
	document = listing_process_json(report);
	return document && json_array_append_new(command->documents, document) == 0 ? 0 : -ENOMEM;
}

/* hold is NULL for a core file. 0 or a negative errno. */
static int list_opened(struct traces_command *command, struct lua_process *process, struct hold *hold,
		       pid_t pid, const char *name)
{
	const struct listing_wanted wanted = { command->options->show, command->options->bytecode };
	struct listing_process *report = listing_process_new(pid, name);
	int error = report ? 0 : -ENOMEM;

	if (error)
		return error;
	if (command->code) {
		report->has_samples = true;
		report->duration_ns = command->result.figures.duration_ns;
		code_samples_total(command->code, pid, &report->samples, &report->cpu_ns);
	}
	error = listing_survey(process, hold, &wanted, command->code, report);
	if (!error && hold && !command_try_may_go_on(&command->try))
		error = -ECANCELED;
	if (!error)
		error = write_listing(command, report);
	listing_process_free(report);
	return error;
}

static void tell_nothing_found(struct traces_command *command)
{
	if (command->listed || command->status != EXIT_ALL_GOOD)
		return;
	command->status = EXIT_WITH_ERRORS;
	if (command->options->show) {
		message_error("There is no trace %u.", (unsigned)command->options->show);
		message_note("LuaJIT may have flushed it: `ljspy traces` shows those that there are.");
		return;
	}
	message_error("There is no function \"%s\".", command->options->bytecode);
	message_note("FILE:LINE names one by a line in it, as in `ljspy traces` and flame graphs.");
}

/*---- Traces ----*/

static int write_report(struct traces_command *command, const struct trace_process *report)
{
	json_t *document;

	if (!command->documents) {
		trace_process_print(stdout, report);
		return 0;
	}
	document = trace_process_json(report);
	return document && json_array_append_new(command->documents, document) == 0 ? 0 : -ENOMEM;
}

/* All that is left of a state that the program closed is what was read before: that is no error. */
static void note_incomplete(struct traces_command *command, const struct trace_process *report)
{
	for (size_t i = 0; i < report->vm_count; i++)
		if (!report->vms[i].complete && !report->vms[i].closed)
			command->status = EXIT_WITH_ERRORS;
}

/* A process that is looked at. */
struct looking {
	struct traces_command *command;
	pid_t pid;
};

static int look(void *context, struct lua_process *lua, struct hold *hold, const char *name)
{
	const struct looking *looking = context;
	struct traces_command *command = looking->command;
	struct trace_process *report;
	int error = -ENOMEM;

	if (wants_listing(command->options))
		return list_opened(command, lua, hold, looking->pid, name);
	report = trace_process_new(looking->pid, name);
	if (!report)
		return error;
	report->duration_ns = command->result.figures.duration_ns;
	error = trace_survey_report(command->survey, lua, hold, report);
	if (!command_try_may_go_on(&command->try))
		error = -ECANCELED;
	if (!error) {
		note_incomplete(command, report);
		error = write_report(command, report);
	}
	trace_process_free(report);
	return error;
}

/* 0 or a negative errno. */
static int report_process(struct traces_command *command, pid_t pid)
{
	struct looking looking = { .command = command, .pid = pid };
	const struct traced_lua traced = {
		.functions = command->functions,
		.layout = command->options->layout,
		.patience = { command->tracer, command_try_may_go_on, &command->try },
		.look = look,
		.context = &looking,
	};

	return traced_lua_look(&traced, pid);
}

static void explain(struct traces_command *command, pid_t pid, int error)
{
	choose_explain_look(pid, error);
	command->status = EXIT_WITH_ERRORS;
}

/* Runs in a thread: when it ends, the targets are free. */
static void *run_reports(void *context)
{
	struct traces_command *command = context;

	command->tracer = tracer_new();
	if (!command->tracer) {
		choose_explain_error(errno, "looking at traces");
		command->status = EXIT_WITH_ERRORS;
		return NULL;
	}
	if (command->options->allow_attach)
		tracer_allow_attach(command->tracer);
	for (; command->next < command->options->pid_count && command_try_may_go_on(&command->try);
	     command->next++) {
		pid_t pid = command->options->pids[command->next];
		int error = report_process(command, pid);

		if (error == -ECANCELED)
			break;
		if (error)
			explain(command, pid, -error);
		else
			command->reported++;
	}
	tracer_free(command->tracer);
	return NULL;
}

static bool report_all(struct traces_command *command)
{
	int error = command_try_run(&command->try, run_reports, command);

	if (error) {
		message_error_errno(-error, "looking at traces");
		command->status = EXIT_NOTHING_DONE;
		return false;
	}
	if (command->try.given_up)
		command->status = EXIT_WITH_ERRORS;
	return true;
}

/*---- The command ----*/

static void run(struct traces_command *command)
{
	const struct options *options = command->options;

	command->sampler_options = sampling_options(options);
	if (!options->duration_ns)
		command->sampler_options.duration_ns = duration_default_ns;
	command->sampler_options.namer.native = NATIVE_NONE;
	command->sampler_options.functions = command->functions;
	command->sampler_options.take = take_sample;
	command->sampler_options.context = command;
	sampler_run_in_engine(command->try.apart, &command->sampler_options,
			      &(struct sampler_breaks){ .stay_away = stay_away, .context = command },
			      &command->result);
	if (choose_explain_failure(&command->result, NULL)) {
		command->status = EXIT_NOTHING_DONE;
		return;
	}
	if (!report_all(command))
		return;
	if (!command->reported) {
		command->status = EXIT_NOTHING_DONE;
		return;
	}
	if (wants_listing(options))
		tell_nothing_found(command);
	if (command->documents && !json_write_processes(stdout, SCHEMA_VERSION, command->documents))
		out_of_memory(command);
}

/*---- A core file ----*/

static int list_core(void *context, struct lua_process *lua, const struct core_file *core)
{
	struct traces_command *command = context;

	if (lua_process_global_count(lua) == 0) {
		message_warn("%s", core_unknown_layout);
		command->status = EXIT_WITH_ERRORS;
	}
	return list_opened(command, lua, NULL, core_file_pid(core), core_file_name(core));
}

static void run_on_core(struct traces_command *command, const char *path)
{
	const struct core_look look = {
		.functions = command->functions,
		.layout = command->options->layout,
		.look = list_core,
		.context = command,
	};

	if (!core_look_at(&look, path)) {
		command->status = EXIT_NOTHING_DONE;
		return;
	}
	tell_nothing_found(command);
	if (command->documents && !json_write_processes(stdout, SCHEMA_VERSION, command->documents))
		out_of_memory(command);
}

static bool check_targets(const struct options *options)
{
	return options->core || (choose_check_all(options) && choose_check_layouts(options));
}

static enum exit_status show_traces(struct apart *apart, const struct invocation *invocation)
{
	const struct options *options = invocation->options;
	struct traces_command command = { .try = { .apart = apart },
					  .options = options,
					  .status = EXIT_ALL_GOOD };

	if (!check_targets(options))
		return EXIT_NOTHING_DONE;
	command.functions = functions_new();
	command.survey = command.functions ? trace_survey_new(command.functions) : NULL;
	command.documents = options->json ? json_array() : NULL;
	if (wants_listing(options) && !options->core)
		command.code = code_samples_new();
	if (!command.survey || (options->json && !command.documents) ||
	    (wants_listing(options) && !options->core && !command.code))
		out_of_memory(&command);
	else if (options->core)
		run_on_core(&command, options->core);
	else
		run(&command);
	json_decref(command.documents);
	code_samples_free(command.code);
	trace_survey_free(command.survey);
	functions_free(command.functions);
	if (!standard_output_flush() && command.status == EXIT_ALL_GOOD)
		return EXIT_WITH_ERRORS;
	return command.status;
}

enum exit_status command_traces(const struct invocation *invocation)
{
	/* A core file has no process to keep waiting: it needs no engine. */
	return invocation->options->core ? show_traces(NULL, invocation)
					 : command_run_apart(show_traces, invocation, true);
}

/* SPDX-License-Identifier: MIT */
#include "src/targets/nginx_look.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include "output/labels/json_values.h"
#include "src/inspect/known_files.h"
#include "src/inspect/lua_process.h"
#include "src/linux/proc/process.h"
#include "src/program/message.h"
#include "src/program/standard_files.h"
#include "src/survey/confirm_layout.h"
#include "src/targets/choose.h"

enum { SCHEMA_VERSION = 1 }; /* of the JSON document */

/* A process that is looked at, once or again and again. */
struct subject {
	pid_t pid;
	struct lua_process *process; /* NULL: it could not be read, or is no nginx */
	void *report;
};

struct looking {
	const struct nginx_look *kind;
	const struct options *options;
	struct functions *functions;
	struct known_files *files;
	struct subject *subjects; /* one for each process */
	enum exit_status status;
};

static void out_of_memory(struct looking *looking)
{
	message_error_errno(ENOMEM, "%s", looking->kind->doing);
	looking->status = EXIT_WITH_ERRORS;
}

static int open_subject(const struct looking *looking, pid_t pid, struct subject *subject)
{
	const struct namer_options namer = { .native = NATIVE_FOLD, .details = looking->options->details };
	struct process process;
	int error = process_read(pid, &process);

	if (error)
		return error;
	subject->pid = pid;
	subject->report = looking->kind->new (pid, process.name, looking->options);
	process_clear(&process);
	if (!subject->report)
		return -ENOMEM;
	error = lua_process_open(pid, looking->functions, looking->files, &namer, &subject->process);
	if (error)
		return error;
	lua_process_give_layout(subject->process, looking->options->layout);
	return confirm_while_it_runs(subject->process);
}

static void drop(struct subject *subject)
{
	lua_process_close(subject->process);
	subject->process = NULL;
}

/* Tell why a process cannot be read, and leave it out from now on. A tree has others than workers. */
static void give_up(struct looking *looking, struct subject *subject, pid_t pid, int error)
{
	drop(subject);
	if (error == -ENOTSUP && looking->options->subprocesses)
		return;
	if (error == -ENOTSUP)
		message_error("Process %d has no %s of nginx that ljspy can read. The master of an "
			      "nginx may have none: take a worker, or --tree.",
			      (int)pid, looking->kind->what);
	else if (error == -ENOMEM)
		out_of_memory(looking);
	else
		choose_explain(pid, -error);
	looking->status = EXIT_WITH_ERRORS;
}

static size_t open_all(struct looking *looking)
{
	const struct options *options = looking->options;
	size_t count = 0;

	for (size_t i = 0; i < options->pid_count; i++) {
		int error = open_subject(looking, options->pids[i], &looking->subjects[i]);

		if (error)
			give_up(looking, &looking->subjects[i], options->pids[i], error);
		count += looking->subjects[i].process != NULL;
	}
	return count;
}

/* Read all processes once. Returns how many could be read. */
static size_t take_all(struct looking *looking)
{
	size_t count = 0;

	for (size_t i = 0; i < looking->options->pid_count; i++) {
		struct subject *subject = &looking->subjects[i];
		int error = subject->process ? looking->kind->take(subject->process, subject->report) : 0;

		if (subject->process && process_thread_with_memory(subject->pid) == 0)
			error = -ESRCH;
		if (error)
			give_up(looking, subject, subject->pid, error);
		count += subject->process != NULL;
	}
	return count;
}

/* The reports of all processes that could be read; returns how many. */
static size_t gather(const struct looking *looking, const void **ret_reports)
{
	size_t count = 0;

	for (size_t i = 0; i < looking->options->pid_count; i++)
		if (looking->subjects[i].process)
			ret_reports[count++] = looking->subjects[i].report;
	return count;
}

static void write_text(const struct looking *looking, const void *const *reports, size_t count)
{
	for (size_t i = 0; i < count; i++)
		looking->kind->print(stdout, reports[i]);
	if (looking->kind->print_together)
		looking->kind->print_together(stdout, reports, count);
}

/* False when memory is short. */
static bool write_json(const struct looking *looking, const void *const *reports, size_t count)
{
	json_t *processes = json_array(), *document;
	bool good;

	for (size_t i = 0; i < count && processes; i++)
		processes = json_value_append(processes, looking->kind->json(reports[i]));
	document = processes ? json_pack("{s:i, s:o}", "version", SCHEMA_VERSION, "processes", processes)
			     : NULL;
	good = document &&
	       (!looking->kind->json_together || looking->kind->json_together(document, reports, count)) &&
	       json_write_document(stdout, document);
	json_decref(document);
	return good;
}

static void write_all(struct looking *looking)
{
	const void **reports = calloc(looking->options->pid_count, sizeof(reports[0]));
	size_t count = reports ? gather(looking, reports) : 0;

	if (reports && !looking->options->json)
		write_text(looking, reports, count);
	else if (!reports || !write_json(looking, reports, count))
		out_of_memory(looking);
	free(reports);
}

/* Wait a second. False if the user or a closed terminal ends ljspy. */
static bool wait_for_next(void)
{
	const struct timespec second = { .tv_sec = 1 };
	sigset_t ends;

	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGHUP);
	return sigtimedwait(&ends, NULL, &second) < 0;
}

static void show(struct looking *looking)
{
	static const char clear_screen[] = "\033[H\033[J";
	bool is_terminal = isatty(STDOUT_FILENO) && !looking->options->json;

	do {
		size_t count = take_all(looking);

		if (count == 0) {
			if (looking->status != EXIT_WITH_ERRORS)
				message_error("None of these processes has %s of nginx that ljspy can read.",
					      looking->kind->what);
			looking->status = EXIT_NOTHING_DONE;
			return;
		}
		if (looking->options->watch && is_terminal)
			fputs(clear_screen, stdout);
		write_all(looking);
	} while (looking->options->watch && fflush(stdout) == 0 && wait_for_next());
}

static void close_all(struct looking *looking)
{
	for (size_t i = 0; looking->subjects && i < looking->options->pid_count; i++) {
		drop(&looking->subjects[i]);
		looking->kind->free(looking->subjects[i].report);
	}
	free(looking->subjects);
	known_files_free(looking->files);
	functions_free(looking->functions);
}

enum exit_status nginx_look(const struct invocation *invocation, const struct nginx_look *kind)
{
	const struct options *options = invocation->options;
	struct looking looking = { .kind = kind, .options = options, .status = EXIT_ALL_GOOD };

	if (!choose_check_all(options) || !choose_check_layout(options->pids[0], options->layout))
		return EXIT_NOTHING_DONE;
	looking.functions = functions_new();
	looking.files = known_files_new();
	looking.subjects = calloc(options->pid_count, sizeof(looking.subjects[0]));
	if (!looking.functions || !looking.files || !looking.subjects)
		out_of_memory(&looking);
	else if (open_all(&looking) == 0)
		looking.status = EXIT_NOTHING_DONE;
	else
		show(&looking);
	close_all(&looking);
	if (looking.status == EXIT_ALL_GOOD && !standard_output_flush())
		return EXIT_WITH_ERRORS;
	return looking.status;
}

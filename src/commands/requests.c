/* SPDX-License-Identifier: MIT */
/* ljspy requests: the requests in flight in nginx. */
#include "src/commands/commands.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include "output/labels/json_values.h"
#include "output/reports/request_report.h"
#include "src/inspect/known_files.h"
#include "src/inspect/lua_process.h"
#include "src/linux/proc/process.h"
#include "src/program/message.h"
#include "src/survey/request_survey.h"
#include "src/targets/choose.h"

enum {
	SCHEMA_VERSION = 1, /* of the JSON document */
	/* Nobody is held: the objects of a busy process confirm its layout only at a quiet moment. */
	TRIES = 20,
	BETWEEN_TRIES_NS = 5 * 1000 * 1000,
};

/* A process that is looked at, once or again and again. */
struct subject {
	struct lua_process *process; /* NULL: it could not be read, or is no nginx */
	struct request_report report;
};

struct requests {
	const struct options *options;
	struct functions *functions;
	struct known_files *files;
	struct subject *subjects; /* one for each process */
	enum exit_status status;
};

static void out_of_memory(struct requests *requests)
{
	message_error_errno(ENOMEM, "reading requests");
	requests->status = EXIT_WITH_ERRORS;
}

static int refresh(struct lua_process *process)
{
	const struct timespec pause = { .tv_nsec = BETWEEN_TRIES_NS };
	int error = lua_process_refresh(process, true);

	for (unsigned i = 1; i < TRIES && !error && lua_process_needs_confirming(process); i++) {
		nanosleep(&pause, NULL);
		error = lua_process_refresh(process, true);
	}
	return error;
}

static int open_subject(const struct requests *requests, pid_t pid, struct subject *subject)
{
	const struct namer_options namer = { .native = NATIVE_FOLD, .details = requests->options->details };
	struct process process;
	int error = process_read(pid, &process);

	if (error)
		return error;
	subject->report = (struct request_report){ .pid = pid,
						   .name = strdup(process.name),
						   .exact_paths = requests->options->exact_paths };
	process_clear(&process);
	if (!subject->report.name)
		return -ENOMEM;
	error = lua_process_open(pid, requests->functions, requests->files, &namer, &subject->process);
	if (error)
		return error;
	lua_process_give_layout(subject->process, requests->options->layout);
	return refresh(subject->process);
}

static void drop(struct subject *subject)
{
	lua_process_close(subject->process);
	subject->process = NULL;
}

/* Tell why a process cannot be read, and leave it out from now on. A tree has others than workers. */
static void give_up(struct requests *requests, struct subject *subject, pid_t pid, int error)
{
	drop(subject);
	if (error == -ENOTSUP && requests->options->subprocesses)
		return;
	if (error == -ENOTSUP)
		message_error("Process %d has no connections of nginx that ljspy can read. The master of an "
			      "nginx has none: take a worker, or --tree.",
			      (int)pid);
	else if (error == -ENOMEM)
		out_of_memory(requests);
	else
		choose_explain(pid, -error);
	requests->status = EXIT_WITH_ERRORS;
}

static size_t open_all(struct requests *requests)
{
	const struct options *options = requests->options;
	size_t count = 0;

	for (size_t i = 0; i < options->pid_count; i++) {
		int error = open_subject(requests, options->pids[i], &requests->subjects[i]);

		if (error)
			give_up(requests, &requests->subjects[i], options->pids[i], error);
		count += requests->subjects[i].process != NULL;
	}
	return count;
}

/* Read all processes once. Returns how many could be read. */
static size_t take_all(struct requests *requests)
{
	size_t count = 0;

	for (size_t i = 0; i < requests->options->pid_count; i++) {
		struct subject *subject = &requests->subjects[i];
		int error = subject->process ? request_survey_take(subject->process, &subject->report) : 0;

		if (subject->process && process_thread_with_memory(subject->report.pid) == 0)
			error = -ESRCH;
		if (error)
			give_up(requests, subject, subject->report.pid, error);
		count += subject->process != NULL;
	}
	return count;
}

static void write_all(struct requests *requests)
{
	json_t *documents = requests->options->json ? json_array() : NULL;

	for (size_t i = 0; i < requests->options->pid_count; i++) {
		const struct subject *subject = &requests->subjects[i];

		if (!subject->process)
			continue;
		if (requests->options->json)
			documents = documents ? json_value_append(documents,
								  request_report_json(&subject->report))
					      : NULL;
		else
			request_report_print(stdout, &subject->report);
	}
	if (requests->options->json &&
	    (!documents || !json_write_processes(stdout, SCHEMA_VERSION, documents)))
		out_of_memory(requests);
	json_decref(documents);
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

static void show(struct requests *requests)
{
	static const char clear_screen[] = "\033[H\033[J";
	bool is_terminal = isatty(STDOUT_FILENO) && !requests->options->json;

	do {
		size_t count = take_all(requests);

		if (count == 0) {
			if (requests->status != EXIT_WITH_ERRORS)
				message_error(
					"None of these processes has connections of nginx that ljspy can read.");
			requests->status = EXIT_NOTHING_DONE;
			return;
		}
		if (requests->options->watch && is_terminal)
			fputs(clear_screen, stdout);
		write_all(requests);
	} while (requests->options->watch && fflush(stdout) == 0 && wait_for_next());
}

static void close_all(struct requests *requests)
{
	for (size_t i = 0; requests->subjects && i < requests->options->pid_count; i++) {
		drop(&requests->subjects[i]);
		request_report_clear(&requests->subjects[i].report);
	}
	free(requests->subjects);
	known_files_free(requests->files);
	functions_free(requests->functions);
}

enum exit_status command_requests(const struct invocation *invocation)
{
	const struct options *options = invocation->options;
	struct requests requests = { .options = options, .status = EXIT_ALL_GOOD };

	if (!choose_check_all(options) || !choose_check_layout(options->pids[0], options->layout))
		return EXIT_NOTHING_DONE;
	requests.functions = functions_new();
	requests.files = known_files_new();
	requests.subjects = calloc(options->pid_count, sizeof(requests.subjects[0]));
	if (!requests.functions || !requests.files || !requests.subjects)
		out_of_memory(&requests);
	else if (open_all(&requests) == 0)
		requests.status = EXIT_NOTHING_DONE;
	else
		show(&requests);
	close_all(&requests);
	if (fflush(stdout) && requests.status == EXIT_ALL_GOOD) {
		message_error_stdout(errno);
		return EXIT_WITH_ERRORS;
	}
	return requests.status;
}

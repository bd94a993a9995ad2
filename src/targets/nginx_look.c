/* SPDX-License-Identifier: MIT */
#include "src/targets/nginx_look.h"

#include <errno.h>
#include <regex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include "memory/array.h"
#include "output/labels/json_values.h"
#include "src/inspect/known_files.h"
#include "src/inspect/lua_process.h"
#include "src/linux/clocks/clock.h"
#include "src/linux/proc/follow.h"
#include "src/linux/proc/process.h"
#include "src/program/message.h"
#include "src/program/standard_files.h"
#include "src/program/terminal.h"
#include "src/survey/confirm_layout.h"
#include "src/targets/choose.h"

enum {
	SCHEMA_VERSION = 1, /* of the JSON document */
	/* A worker that has just begun has nothing of nginx yet; a tree has others than workers, too. */
	NEW_TRIES = 5,
};

/* A process that is looked at, once or again and again. */
struct subject {
	pid_t pid;
	struct lua_process *process; /* NULL: it could not be read, or is no nginx */
	void *report;
	unsigned int tries; /* that are left for one that has come later */
};

struct looking {
	const struct nginx_look *kind;
	const struct options *options;
	struct functions *functions;
	struct known_files *files;
	struct subject *subjects; /* one for each process */
	size_t count, size;
	struct follow *follow; /* finds later ones; NULL: the user named them all, or wants one look */
	regex_t pattern;
	bool has_pattern, has_shown;
	enum exit_status status;
};

static void out_of_memory(struct looking *looking)
{
	message_error_errno(ENOMEM, "%s", looking->kind->doing);
	looking->status = EXIT_WITH_ERRORS;
}

static int open_subject(const struct looking *looking, struct subject *subject)
{
	const pid_t pid = subject->pid;
	const struct namer_options namer = { .native = NATIVE_FOLD, .details = looking->options->details };
	struct process process;
	int error = process_read(pid, &process);

	if (error)
		return error;
	if (!subject->report)
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
static void give_up(struct looking *looking, struct subject *subject, int error)
{
	drop(subject);
	if (error == -ENOTSUP && looking->options->subprocesses)
		return;
	/* Workers come and go. */
	if (looking->follow && error != -ENOMEM && (error == -ESRCH || subject->tries))
		return;
	if (error == -ENOTSUP)
		message_error("Process %d has no %s of nginx that ljspy can read. The master of an "
			      "nginx may have none: take a worker, or --tree.",
			      (int)subject->pid, looking->kind->what);
	else if (error == -ENOMEM)
		out_of_memory(looking);
	else if (error == -EXDEV)
		message_error(
			"Process %d is in another time namespace, and how far its clock is ahead of that of "
			"ljspy is not known: when its %s are due cannot be told.",
			(int)subject->pid, looking->kind->what);
	else
		choose_explain(subject->pid, -error);
	looking->status = EXIT_WITH_ERRORS;
}

static struct subject *add_subject(struct looking *looking, pid_t pid)
{
	struct subject *subjects = array_grow(looking->subjects, &looking->size, looking->count + 1,
					      sizeof(*subjects));

	if (!subjects) {
		out_of_memory(looking);
		return NULL;
	}
	looking->subjects = subjects;
	subjects[looking->count] = (struct subject){ .pid = pid };
	return &subjects[looking->count++];
}

static size_t open_all(struct looking *looking)
{
	const struct options *options = looking->options;
	size_t count = 0;

	for (size_t i = 0; i < options->pid_count; i++) {
		struct subject *subject = add_subject(looking, options->pids[i]);
		int error = subject ? open_subject(looking, subject) : 0;

		if (error)
			give_up(looking, subject, error);
		count += subject && subject->process;
	}
	return count;
}

/*---- Those that come later ----*/

static int begin_to_follow(struct looking *looking)
{
	const struct options *options = looking->options;
	struct follow_options follow = { .descendants = options->subprocesses };
	int error = 0;

	if (!options->watch || (!options->subprocesses && !options->name))
		return 0;
	/* The pattern is valid: it found the first processes. */
	if (options->name) {
		looking->has_pattern = process_pattern(options->name, &looking->pattern, NULL) == 0;
		if (!looking->has_pattern)
			return -ENOMEM;
		follow.pattern = &looking->pattern;
	}
	looking->follow = follow_new(&follow);
	if (!looking->follow)
		return -ENOMEM;
	for (size_t i = 0; i < options->pid_count && !error; i++)
		error = follow_add(looking->follow, options->pids[i]);
	return error;
}

static void note_found(void *context, pid_t pid)
{
	struct subject *subject = add_subject(context, pid);

	if (subject)
		subject->tries = NEW_TRIES;
}

static void open_found(struct looking *looking)
{
	follow_search(looking->follow, clock_now_ns(CLOCK_MONOTONIC), note_found, looking);
	for (size_t i = 0; i < looking->count; i++) {
		struct subject *subject = &looking->subjects[i];

		if (subject->process || !subject->tries)
			continue;
		subject->tries--;
		if (open_subject(looking, subject))
			drop(subject);
	}
}

static void forget(struct looking *looking, struct subject *subject)
{
	drop(subject);
	if (subject->report)
		looking->kind->free(subject->report);
	subject->report = NULL;
}

static void forget_gone(struct looking *looking)
{
	size_t kept = 0;

	for (size_t i = 0; i < looking->count; i++) {
		if (looking->subjects[i].process || looking->subjects[i].tries)
			looking->subjects[kept++] = looking->subjects[i];
		else
			forget(looking, &looking->subjects[i]);
	}
	looking->count = kept;
}

/* May any worker come yet? To a tree only while one of its processes lives. */
static bool may_come(const struct looking *looking)
{
	const struct options *options = looking->options;

	for (size_t i = 0; i < options->pid_count && looking->follow; i++)
		if (options->name || process_thread_with_memory(options->pids[i]) != 0)
			return true;
	return false;
}

/*---- Looks ----*/

/* Read all processes once. Returns how many could be read. */
static size_t take_all(struct looking *looking)
{
	size_t count = 0;

	for (size_t i = 0; i < looking->count; i++) {
		struct subject *subject = &looking->subjects[i];
		int error = subject->process ? looking->kind->take(subject->process, subject->report) : 0;

		if (subject->process && process_thread_with_memory(subject->pid) == 0)
			error = -ESRCH;
		if (error)
			give_up(looking, subject, error);
		count += subject->process != NULL;
	}
	return count;
}

/* The reports of all processes that could be read; returns how many. */
static size_t gather(const struct looking *looking, const void **ret_reports)
{
	size_t count = 0;

	for (size_t i = 0; i < looking->count; i++)
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
	const void **reports = calloc(looking->count + 1, sizeof(reports[0]));
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

static void tell_end(struct looking *looking)
{
	if (looking->has_shown && looking->follow)
		message_error("The last of these processes has ended.");
	else if (looking->status != EXIT_WITH_ERRORS)
		message_error("None of these processes has %s of nginx that ljspy can read.",
			      looking->kind->what);
	looking->status = looking->has_shown ? EXIT_WITH_ERRORS : EXIT_NOTHING_DONE;
}

static void show(struct looking *looking)
{
	static const char clear_screen[] = "\033[H\033[J";
	bool clears = looking->options->watch && !looking->options->json &&
		      terminal_can_rewrite(STDOUT_FILENO);

	do {
		size_t count;

		if (looking->follow)
			open_found(looking);
		count = take_all(looking);
		if (looking->follow)
			forget_gone(looking);
		if (count == 0 && looking->has_shown && may_come(looking))
			continue;
		if (count == 0) {
			tell_end(looking);
			return;
		}
		if (clears)
			fputs(clear_screen, stdout);
		write_all(looking);
		looking->has_shown = true;
	} while (looking->options->watch && fflush(stdout) == 0 && wait_for_next());
}

static void close_all(struct looking *looking)
{
	for (size_t i = 0; i < looking->count; i++)
		forget(looking, &looking->subjects[i]);
	free(looking->subjects);
	follow_free(looking->follow);
	if (looking->has_pattern)
		regfree(&looking->pattern);
	known_files_free(looking->files);
	functions_free(looking->functions);
}

enum exit_status nginx_look(const struct invocation *invocation, const struct nginx_look *kind)
{
	const struct options *options = invocation->options;
	struct looking looking = { .kind = kind, .options = options, .status = EXIT_ALL_GOOD };

	if (!choose_check_all(options) || !choose_check_layouts(options))
		return EXIT_NOTHING_DONE;
	looking.functions = functions_new();
	looking.files = known_files_new();
	if (!looking.functions || !looking.files || begin_to_follow(&looking))
		out_of_memory(&looking);
	else if (open_all(&looking) == 0)
		tell_end(&looking);
	else
		show(&looking);
	close_all(&looking);
	if (!standard_output_flush() && looking.status == EXIT_ALL_GOOD)
		return EXIT_WITH_ERRORS;
	return looking.status;
}

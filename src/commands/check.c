/* SPDX-License-Identifier: MIT */
/* ljspy check: look at CPU, waits, turns, heap and compiled code at once, and say what stands out. */
#include "src/commands/commands.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jansson.h>

#include "output/findings/evidence.h"
#include "output/findings/findings.h"
#include "output/findings/findings_report.h"
#include "output/findings/heap_looks.h"
#include "output/labels/json_values.h"
#include "output/reports/turns.h"
#include "src/heap/process_heaps.h"
#include "src/linux/clocks/clock.h"
#include "src/linux/files/home.h"
#include "src/linux/tracer/tracer.h"
#include "src/program/message.h"
#include "src/program/standard_files.h"
#include "src/rendering/sources.h"
#include "src/sampler/sampler_apart.h"
#include "src/survey/trace_survey.h"
#include "src/survey/traced_lua.h"
#include "src/targets/choose.h"
#include "src/targets/command_apart.h"
#include "src/targets/sampling.h"

enum { SCHEMA_VERSION = 1 }; /* of the JSON document */

static const uint64_t duration_default_ns = 10 * UINT64_C(1000000000);

/* Growth is looked at once more after this part of the duration, and at least that time. */
enum { ONCE_MORE_PART = 4 };
static const uint64_t once_more_least_ns = 500000000;

struct checked {
	pid_t pid;
	struct evidence *evidence;
	struct turns *turns;
	struct turn_report *turn_report;
	struct trace_process *traces;
	struct heap_looks heaps;
	struct unseen unseen;
	enum process_halt was_halted; /* in the beginning */
	int error;                    /* why it could not be looked at in the end; a negative errno */
};

struct check {
	struct command_try try;
	const struct options *options;
	struct functions *functions;
	struct known_files *files;
	struct trace_survey *survey;
	struct sampler_options sampler_options;
	struct sampler_result result;
	struct tracer *tracer;
	struct checked *processes;
	size_t count;
	size_t next;       /* of the processes, to be looked at */
	bool wants_traces; /* of the next look */
	json_t *documents; /* of processes; NULL unless JSON is wanted */
	bool out_of_memory;
	enum exit_status status;
};

static void out_of_memory(struct check *check)
{
	message_error_errno(ENOMEM, "checking");
	check->out_of_memory = true;
	check->status = EXIT_WITH_ERRORS;
}

/*---- Samples ----*/

static struct checked *find_checked(struct check *check, pid_t pid)
{
	for (size_t i = 0; i < check->count; i++)
		if (check->processes[i].pid == pid)
			return &check->processes[i];
	return NULL;
}

static void take_sample(void *context, const struct sample *sample)
{
	struct check *check = context;
	struct checked *checked = find_checked(check, sample->pid);
	int error;

	if (!checked || check->out_of_memory)
		return;
	error = evidence_add(checked->evidence, sample);
	if (!error)
		error = trace_survey_add(check->survey, sample);
	if (!error)
		error = turns_add(checked->turns, sample);
	if (error)
		out_of_memory(check);
}

static bool stay_away(void *context)
{
	const struct check *check = context;

	return apart_stay_away(check->try.apart);
}

static bool take_samples(struct check *check)
{
	check->sampler_options = sampling_options(check->options);
	if (!check->options->duration_ns)
		check->sampler_options.duration_ns = duration_default_ns;
	check->sampler_options.wall_clock = true;
	check->sampler_options.turns = true;
	check->sampler_options.functions = check->functions;
	check->sampler_options.take = take_sample;
	check->sampler_options.context = check;
	sampler_run_in_engine(check->try.apart, &check->sampler_options,
			      &(struct sampler_breaks){ .stay_away = stay_away, .context = check },
			      &check->result);
	return !choose_explain_failure(&check->result, NULL);
}

/*---- Looks at heaps and traces ----*/

/* Why heaps could not be read, with what of them: "the heap", "the heap of 1 of 6 VMs". */
static void note_missing(struct checked *checked, const struct process_heaps *heaps, const char *what)
{
	const struct vm_heap *large = process_heaps_missing_by(heaps, -EFBIG);

	if (large)
		unseen_add(&checked->unseen,
			   "%s: to copy it would hold the process for some %" PRIu64
			   " ms (ljspy heap --max-pause)",
			   what, large->too_long_ns / 1000000);
	else if (process_heaps_missing_by(heaps, -EBUSY))
		unseen_add(
			&checked->unseen,
			"%s: again and again, a thread woke while it was copied, or ran where it may not be stopped",
			what);
	else
		unseen_add(&checked->unseen, "%s: it could not be read, and may have been closed meanwhile",
			   what);
}

/* 0, -ENOMEM, or -ENODATA if none was read, or not all was found of one. */
static int add_heaps(struct checked *checked, const struct process_heaps *heaps)
{
	const size_t missing = process_heaps_missing(heaps);
	char what[80] = "the heap";
	int error = 0;

	for (size_t i = 0; i < heaps->count && !error; i++)
		error = heap_looks_add(&checked->heaps, &heaps->at[i].graph, &heaps->at[i].account);
	if (missing && missing < heaps->count)
		snprintf(what, sizeof(what), "the heap of %zu of %zu VMs", missing, heaps->count);
	if (missing)
		note_missing(checked, heaps, what);
	if (error == -ENODATA)
		unseen_add(&checked->unseen, "the heap: not all of it was found (ljspy heap)");
	return !error && missing && missing == heaps->count ? -ENODATA : error;
}

/* What could not be read is noted. 0 or -ENOMEM. */
static int look_at_heaps(struct checked *checked, struct lua_process *lua, struct hold *hold)
{
	const struct heap_capture_options options = { 0 };
	struct process_heaps heaps = { 0 };
	int error = heap_looks_begin(&checked->heaps, clock_now_ns(CLOCK_MONOTONIC),
				     lua_process_global_count(lua));

	if (error)
		return error;
	error = process_heaps_read(lua, hold, checked->pid, NULL, &options, &heaps);
	if (error != -ENOMEM)
		error = add_heaps(checked, &heaps);
	process_heaps_clear(&heaps);
	if (error)
		heap_looks_drop(&checked->heaps);
	return error == -ENOMEM ? error : 0;
}

/* A process that is looked at. */
struct looking {
	struct check *check;
	struct checked *checked;
};

static int look(void *context, struct lua_process *lua, struct hold *hold, const char *name)
{
	const struct looking *looking = context;
	struct check *check = looking->check;
	struct checked *checked = looking->checked;
	const size_t looks = checked->heaps.count;
	int error = 0;

	if (check->wants_traces) {
		trace_process_free(checked->traces);
		checked->traces = trace_process_new(checked->pid, name);
		error = checked->traces ? trace_survey_report(check->survey, lua, hold, checked->traces)
					: -ENOMEM;
	}
	if (!error && command_try_may_go_on(&check->try))
		error = look_at_heaps(checked, lua, hold);
	if (command_try_may_go_on(&check->try))
		return error;
	/* It begins anew. */
	if (checked->heaps.count > looks)
		heap_looks_drop(&checked->heaps);
	return -ECANCELED;
}

static int look_at(struct check *check, struct checked *checked)
{
	struct looking looking = { .check = check, .checked = checked };
	const struct traced_lua traced = {
		.functions = check->functions,
		.files = check->files,
		.layout = check->options->layout,
		.patience = { check->tracer, command_try_may_go_on, &check->try },
		.look = look,
		.context = &looking,
	};

	return traced_lua_look(&traced, checked->pid);
}

/* Runs in a thread: when it ends, the targets are free. */
static void *run_looks(void *context)
{
	struct check *check = context;

	check->tracer = tracer_new();
	if (!check->tracer) {
		choose_explain_error(errno, "checking");
		check->status = EXIT_WITH_ERRORS;
		return NULL;
	}
	if (check->options->allow_attach)
		tracer_allow_attach(check->tracer);
	for (; check->next < check->count && command_try_may_go_on(&check->try); check->next++) {
		struct checked *checked = &check->processes[check->next];
		int error = checked->error ? 0 : look_at(check, checked);

		if (error == -ECANCELED)
			break;
		if (error == -ENOMEM)
			out_of_memory(check);
		if (error && check->wants_traces)
			checked->error = error;
	}
	tracer_free(check->tracer);
	return NULL;
}

/*
 * Look at the heaps of all processes, and, after sampling, at their compiled code. False if that cannot be.
 */
static bool look_at_all(struct check *check, bool wants_traces)
{
	int error;

	check->next = 0;
	check->wants_traces = wants_traces;
	error = command_try_run(&check->try, run_looks, check);
	if (error)
		choose_explain_error(-error, "checking");
	if (error || check->try.given_up)
		check->status = EXIT_WITH_ERRORS;
	return !error;
}

/*---- Growth ----*/

/* Does anything look as if it grew? One more look tells. */
static bool seems_to_grow(struct check *check)
{
	bool grows = false;

	for (size_t i = 0; i < check->count; i++) {
		struct checked *checked = &check->processes[i];
		struct findings findings;

		if (checked->heaps.count < 2)
			continue;
		if (heap_looks_compare(&checked->heaps, &checked->evidence->heap) ||
		    findings_judge(checked->evidence, &findings)) {
			out_of_memory(check);
			return false;
		}
		for (size_t j = 0; j < findings.count; j++)
			grows |= findings.at[j].kind == FINDING_GROWTH;
	}
	return grows;
}

/* Wait while no thread is held. */
static void wait_for(const struct check *check, uint64_t length_ns)
{
	const uint64_t until_ns = clock_now_ns(CLOCK_MONOTONIC) + length_ns;
	uint64_t now_ns;
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGHUP);
	sigaddset(&signals, SIGCHLD);
	while (apart_wish(check->try.apart) != APART_CONCLUDE &&
	       (now_ns = clock_now_ns(CLOCK_MONOTONIC)) < until_ns) {
		const uint64_t left_ns = until_ns - now_ns;
		const struct timespec left = { .tv_sec = (time_t)(left_ns / NS_PER_SECOND),
					       .tv_nsec = (long)(left_ns % NS_PER_SECOND) };

		sigtimedwait(&signals, NULL, &left);
	}
}

static void look_once_more(struct check *check)
{
	const uint64_t part_ns = check->sampler_options.duration_ns / ONCE_MORE_PART;

	wait_for(check, part_ns > once_more_least_ns ? part_ns : once_more_least_ns);
	look_at_all(check, false);
}

/*---- Judging ----*/

/* The process has no tracer any more: waiting for its files holds nobody up. */
static int read_sources(struct checked *checked)
{
	struct home *home = calloc(1, sizeof(*home));
	struct session session = { .pid = checked->pid };
	struct source_reader *reader;
	int error = -ENOMEM;

	if (!home)
		return error;
	if (home_read(checked->pid, home) == 0)
		session.home = (struct session_home){
			.pid = home->pid,
			.start_ticks = home->start_ticks,
			.began_unix_ns = home->began_unix_ns,
			.boot = *home->boot ? home->boot : NULL,
			.root = *home->root ? home->root : NULL,
			.directory = *home->directory ? home->directory : NULL,
		};
	reader = sources_new(&session);
	if (reader)
		error = evidence_read_sources(checked->evidence, reader);
	sources_free(reader);
	free(home);
	return error;
}

static enum process_halt halt_of(const struct sampler_result *result, pid_t pid)
{
	for (size_t i = 0; i < result->halted.count; i++)
		if (result->halted.at[i].pid == pid)
			return (enum process_halt)result->halted.at[i].why;
	return result->halted.more ? process_halt(pid) : HALT_NONE;
}

static void note_halt(const struct check *check, struct checked *checked)
{
	static const char what[] = "what the process does when it runs";
	const enum process_halt halt = halt_of(&check->result, checked->pid);

	if (halt != checked->was_halted || evidence_is_busy(checked->evidence))
		return;
	if (halt == HALT_SIGNAL)
		unseen_add(&checked->unseen, "%s: it was stopped, as by SIGSTOP or Ctrl-Z (kill -CONT %d)",
			   what, checked->pid);
	else if (halt == HALT_FREEZER)
		unseen_add(&checked->unseen, "%s: its cgroup was frozen, as by `docker pause`", what);
}

static int gather(struct check *check, struct checked *checked)
{
	struct evidence *evidence = checked->evidence;
	uint64_t lost = 0;
	int error;

	/* Samples are refused for lack of memory only. Without them, turns would be told too short. */
	turns_finish(checked->turns, &lost);
	error = lost ? -ENOMEM : 0;
	evidence->duration_ns = check->result.figures.duration_ns;
	evidence->traces = checked->traces;
	evidence->turns = turn_report_sums(checked->turn_report);
	evidence->turn_lines = turn_report_lines(checked->turn_report, &evidence->turn_line_count);
	if (!error)
		error = evidence->turn_lines ? read_sources(checked) : -ENOMEM;
	note_halt(check, checked);
	if (check->result.figures.away_ns)
		unseen_add(&checked->unseen, "%.1f s in which ljspy itself was stopped",
			   (double)check->result.figures.away_ns / 1e9);
	if (!checked->traces)
		unseen_add(&checked->unseen, "compiled code: the process could not be looked at afterwards");
	if (checked->heaps.count == 1)
		unseen_add(&checked->unseen, "growth of the heap: there was one look at it only");
	return error;
}

static int report(struct check *check, struct checked *checked)
{
	struct findings findings;
	int error = heap_looks_compare(&checked->heaps, &checked->evidence->heap);
	json_t *document;

	if (!error)
		error = findings_judge(checked->evidence, &findings);
	if (error)
		return error;
	unseen_add_of(&checked->unseen, checked->evidence);
	if (!check->documents) {
		if (checked != check->processes)
			fputc('\n', stdout);
		findings_print(stdout, checked->evidence, &findings, &checked->unseen);
		return 0;
	}
	document = findings_json(checked->evidence, &findings, &checked->unseen);
	return document && json_array_append_new(check->documents, document) == 0 ? 0 : -ENOMEM;
}

static void judge_all(struct check *check)
{
	size_t reported = 0;
	int error = 0;

	for (size_t i = 0; i < check->count && !error; i++)
		error = gather(check, &check->processes[i]);
	if (!error && seems_to_grow(check))
		look_once_more(check);
	for (size_t i = 0; i < check->count && !error; i++) {
		struct checked *checked = &check->processes[i];

		if (checked->error) {
			choose_explain_look(checked->pid, -checked->error);
			check->status = EXIT_WITH_ERRORS;
		}
		/* Nothing is known of one that could not be sampled either. */
		if (checked->error && !checked->evidence->samples)
			continue;
		error = report(check, checked);
		reported++;
	}
	if (!error && !reported)
		check->status = EXIT_NOTHING_DONE;
	else if (error ||
		 (check->documents && !json_write_processes(stdout, SCHEMA_VERSION, check->documents)))
		out_of_memory(check);
}

/*---- The command ----*/

/* 0 or a negative errno. */
static int begin_process(struct checked *checked, pid_t pid, uint64_t threshold_ns)
{
	struct process process;
	int error = process_read(pid, &process);

	if (error)
		return error;
	checked->pid = pid;
	checked->was_halted = process_halt(pid);
	checked->evidence = evidence_new(pid, process.name);
	process_clear(&process);
	checked->turn_report = turn_report_new(threshold_ns);
	checked->turns = turns_new(&(struct turns_options){ .threshold_ns = threshold_ns,
							    .take = turn_report_add,
							    .close = turn_report_close,
							    .context = checked->turn_report });
	return checked->evidence && checked->turn_report && checked->turns ? 0 : -ENOMEM;
}

static bool begin(struct check *check)
{
	const struct options *options = check->options;

	check->functions = functions_new();
	check->files = known_files_new();
	check->survey = check->functions ? trace_survey_new(check->functions) : NULL;
	check->documents = options->json ? json_array() : NULL;
	check->processes = calloc(options->pid_count + 1, sizeof(*check->processes));
	if (!check->survey || !check->files || !check->processes || (options->json && !check->documents)) {
		out_of_memory(check);
		return false;
	}
	for (size_t i = 0; i < options->pid_count; i++) {
		const pid_t pid = options->pids[i];
		int error = begin_process(&check->processes[check->count], pid, options->blocked_ns);

		if (!error || error == -ENOMEM)
			check->count++; /* a part of it may be there */
		if (error == -ENOMEM) {
			out_of_memory(check);
			return false;
		}
		if (error) {
			choose_explain(pid, -error);
			check->status = EXIT_WITH_ERRORS;
		}
	}
	return check->count > 0;
}

static void end(struct check *check)
{
	for (size_t i = 0; i < check->count; i++) {
		struct checked *checked = &check->processes[i];

		turns_free(checked->turns);
		turn_report_free(checked->turn_report);
		trace_process_free(checked->traces);
		heap_looks_clear(&checked->heaps);
		evidence_free(checked->evidence);
	}
	free(check->processes);
	json_decref(check->documents);
	trace_survey_free(check->survey);
	known_files_free(check->files);
	functions_free(check->functions);
}

static enum exit_status show_findings(struct apart *apart, const struct invocation *invocation)
{
	const struct options *options = invocation->options;
	struct check check = { .try = { .apart = apart }, .options = options, .status = EXIT_ALL_GOOD };

	if (!choose_check_all(options) || !choose_check_layouts(options))
		return EXIT_NOTHING_DONE;
	if (begin(&check) && look_at_all(&check, false) && take_samples(&check) && look_at_all(&check, true))
		judge_all(&check);
	else
		check.status = EXIT_NOTHING_DONE;
	end(&check);
	if (!standard_output_flush() && check.status == EXIT_ALL_GOOD)
		return EXIT_WITH_ERRORS;
	return check.status;
}

enum exit_status command_check(const struct invocation *invocation)
{
	return command_run_apart(show_findings, invocation, true);
}

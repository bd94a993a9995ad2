/* SPDX-License-Identifier: MIT */
#include "src/commands/record_archive.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "output/sample/session.h"
#include "src/archive/archive.h"
#include "src/linux/clocks/clock.h"
#include "src/program/first_thread.h"
#include "src/program/message.h"
#include "src/program/progress.h"
#include "src/push/pusher.h"
#include "src/rotation/rotation.h"
#include "src/sampler/sampler_apart.h"
#include "src/targets/choose.h"
#include "src/targets/launched.h"
#include "src/targets/nothing_seen.h"
#include "src/targets/sampled.h"
#include "src/targets/sampling.h"
#include "src/watch/quota.h"
#include "src/watch/ring.h"
#include "src/watch/watch.h"

/* With --when: what led to a recording is so long, and the time that a condition is about. */
static const uint64_t before_ns = 60 * (uint64_t)NS_PER_SECOND;
static const uint64_t before_max_ns = 900 * (uint64_t)NS_PER_SECOND;
enum { BEFORE_BYTES = 32 << 20, CAUSE_SIZE = WATCH_WORDS_SIZE + 64 };

/*
 * One sampling run goes on while the recordings change: a sample goes into the recording
 * of its time. The first thread opens and deletes files, because the sampling thread may
 * have taken on another user's rights.
 */
struct archiving {
	const struct options *options;
	struct archive archive;
	struct first_thread first;
	struct functions *functions;
	struct sampler_options sampler_options;
	struct sampler_result result;
	struct permission_verdict left_out;
	struct progress progress;
	bool refused;
	bool begun; /* sampling has: until then there is no recording */
	struct pusher pusher;
	struct rotation rotation;

	/* With --when; else NULL. */
	struct watch *watch;
	struct ring *ring; /* of what was sampled since the last recording */
	struct quota quota;
	uint64_t ring_since_ns; /* when the rotation became idle: since then, samples go into the ring */
	uint64_t ring_missing;  /* samples that did not get into it */
	bool said_most;         /* the user knows that there are no more recordings for now */
	int ring_error; /* that the user has been told of; a negative errno, 0 if there is none any more */
	char cause[CAUSE_SIZE];
};

/*---- The sampler's calls ----*/

/* Whenever the rotation becomes idle, the ring begins anew. */
static void follow_rotation(struct archiving *archiving)
{
	const struct rotation *rotation = &archiving->rotation;

	if (!archiving->watch || !rotation->idle || archiving->ring_since_ns == rotation->idle_since_ns)
		return;
	archiving->ring_since_ns = rotation->idle_since_ns;
	ring_clear(archiving->ring);
	ring_advance(archiving->ring, rotation->idle_since_ns, &rotation->so_far);
}

/* A sample may come before progress() tells when sampling began. */
static void begin_first(struct archiving *archiving, uint64_t now_ns)
{
	if (archiving->begun)
		return;
	archiving->begun = true;
	rotation_begin_first(&archiving->rotation,
			     archiving->result.begin_ns ? archiving->result.begin_ns : now_ns);
	follow_rotation(archiving);
}

static void take_sample(void *context, const struct sample *sample)
{
	struct archiving *archiving = context;

	begin_first(archiving, sample->time_ns);
	rotation_advance(&archiving->rotation, sample->time_ns);
	follow_rotation(archiving);
	if (archiving->watch)
		watch_sample(archiving->watch, sample);
	if (!archiving->rotation.idle)
		rotation_take(&archiving->rotation, sample);
	else if (ring_add(archiving->ring, sample))
		archiving->ring_missing++;
}

static void keep_functions(void *context)
{
	struct archiving *archiving = context;

	rotation_forget_functions(&archiving->rotation);
	if (archiving->watch) {
		ring_forget_functions(archiving->ring);
		watch_keep(archiving->watch);
	}
}

/* error: a negative errno. */
static void warn_missing(int error, const char *where)
{
	if (error == -ENOMEM)
		message_warn("Memory is short; samples are missing in %s.", where);
	else
		message_warn("Samples are missing in %s: %s", where, strerror(-error));
	if (error == -EFBIG)
		message_note_file_limit();
}

/* With --when: begin a recording, with what led to it. */
static void wake(struct archiving *archiving, const char *words, uint64_t now_ns)
{
	struct rotation *rotation = &archiving->rotation;
	const uint64_t begin_ns = ring_begin_ns(archiving->ring);
	const struct figures before = *ring_before(archiving->ring);
	char name[ARCHIVE_NAME_SIZE] = "";
	bool is_open;
	int error;

	snprintf(archiving->cause, sizeof(archiving->cause), "%s, %.0f s after the beginning", words,
		 (double)(now_ns - begin_ns) / 1e9);
	rotation->session.cause = archiving->cause;
	is_open = rotation_begin(rotation, begin_ns, &before, now_ns);
	error = ring_pour(archiving->ring, rotation_take, rotation);
	if (error)
		warn_missing(error, "the recording");
	if (!is_open)
		return;
	rotation_forget_functions(rotation);
	archive_name(&archiving->archive.list.entries[archiving->archive.list.count - 1], name);
	message_note("%s: recording until %.0f s later, into %s", words,
		     (double)archiving->options->for_ns / 1e9, name);
}

static void say_most(struct archiving *archiving, const char *words, uint64_t now_ns)
{
	const unsigned int most = archiving->options->at_most;
	const uint64_t next_ns = quota_next_ns(&archiving->quota);

	if (archiving->said_most)
		return;
	archiving->said_most = true;
	message_warn(
		"%s: not recorded, for there %s %u recording%s within an hour (--at-most); the next one is "
		"possible in %.0f minutes.",
		words, most == 1 ? "is" : "are", most, most == 1 ? "" : "s",
		(double)(next_ns - now_ns) / 60e9);
}

static void watch_on(struct archiving *archiving, uint64_t now_ns)
{
	char words[WATCH_WORDS_SIZE];
	bool begins = watch_look(archiving->watch, now_ns, words);
	int error;

	if (!archiving->rotation.idle)
		return;
	error = ring_advance(archiving->ring, now_ns, &archiving->rotation.so_far);
	if (error && error != archiving->ring_error) /* the user reads it once */
		warn_missing(error, "what comes before a recording");
	archiving->ring_error = error;
	if (!begins)
		return;
	if (quota_take(&archiving->quota, now_ns)) {
		archiving->said_most = false;
		wake(archiving, words, now_ns);
	} else {
		say_most(archiving, words, now_ns);
	}
}

static bool progress(void *context, const struct figures *so_far)
{
	struct archiving *archiving = context;
	uint64_t now_ns = clock_now_ns(CLOCK_MONOTONIC);

	if (archiving->result.begin_ns)
		begin_first(archiving, now_ns);
	if (!archiving->begun)
		return true;
	archiving->rotation.so_far = *so_far;
	rotation_keep_up(&archiving->rotation, now_ns);
	follow_rotation(archiving);
	if (archiving->watch)
		watch_on(archiving, now_ns);
	rotation_write(&archiving->rotation);
	follow_rotation(archiving);
	progress_show(&archiving->progress, so_far);
	return true;
}

static bool sample(void *context)
{
	struct archiving *archiving = context;
	const struct options *options = archiving->options;

	archiving->refused = !options->launch && options->pid_count &&
			     !(choose_check_all(options) && choose_check_layouts(options));
	if (archiving->refused)
		return false;
	sampler_run_apart(&archiving->sampler_options, &archiving->result);
	if (archiving->result.left_out)
		permission_diagnose(archiving->result.left_out_pid, -archiving->result.left_out_error,
				    &archiving->left_out);
	if (*archiving->result.layout)
		archiving->rotation.session.layout = archiving->result.layout;
	rotation_end(&archiving->rotation, &archiving->result.figures);
	return true;
}

/*---- Before and after ----*/

static void set_sampler_options(struct archiving *archiving, const struct invocation *invocation)
{
	const struct options *options = archiving->options;
	struct sampler_options *sampler = &archiving->sampler_options;

	*sampler = sampling_options(options);
	sampler->launch = options->launch;
	sampler->launch_mask = &invocation->inherited_mask;
	sampler->wall_clock = weights[options->clock].is_elapsed;
	sampler->alloc = options->alloc;
	sampler->coroutines = options->coroutines;
	sampler->turns = conditions_blocked_ns(options->conditions, options->condition_count) > 0;
	sampler->requests = options->requests;
	sampler->namer.traces = options->traces;
	sampler->functions = archiving->functions;
	sampler->take = take_sample;
	sampler->progress = progress;
	sampler->tell_refused = sampled_tell_refused;
	sampler->keep = keep_functions;
	sampler->context = archiving;
}

/* Of a command without LuaJIT there is nothing. What is unknown, as the engine was ended, stays. */
static void drop_all(struct archiving *archiving)
{
	const enum sampler_end end = archiving->result.end;
	int error;

	if (end == SAMPLER_KILLED || end == SAMPLER_BLOCKED)
		return;
	error = archive_drop_own(&archiving->archive);
	if (error)
		message_error_errno(-error, "%s: recordings without samples stay",
				    archiving->options->output);
}

static enum exit_status conclude(struct archiving *archiving)
{
	const uint64_t missing = rotation_missing(&archiving->rotation) + archiving->ring_missing;
	const struct options *options = archiving->options;
	enum exit_status status = EXIT_ALL_GOOD;

	if (missing) {
		message_warn("%" PRIu64 " sample%s could not be written.", missing, missing == 1 ? "" : "s");
		status = EXIT_WITH_ERRORS;
	}
	if (choose_explain_failure(&archiving->result, options->launch ? options->launch[0] : NULL))
		return EXIT_NOTHING_DONE;
	if (options->launch && !archiving->result.saw_luajit &&
	    nothing_seen_explain(options, &archiving->result, &archiving->left_out)) {
		drop_all(archiving);
		return EXIT_NOTHING_DONE;
	}
	if (sampled_explain(options, &archiving->result, &archiving->left_out))
		status = EXIT_WITH_ERRORS;
	sampled_tell_figures(&archiving->result.figures);
	return status;
}

/* How much to keep before a condition holds. */
static uint64_t lead_ns(const struct options *options)
{
	uint64_t longest_ns = 0;

	for (unsigned int i = 0; i < options->condition_count; i++)
		if (options->conditions[i].span_ns > longest_ns)
			longest_ns = options->conditions[i].span_ns;
	return before_ns + longest_ns < before_max_ns ? before_ns + longest_ns : before_max_ns;
}

/* Get ready to wait for the conditions, if there are any. 0 or -ENOMEM. */
static int begin_watch(struct archiving *archiving)
{
	const struct options *options = archiving->options;
	const struct watch_options watch = {
		.conditions = options->conditions,
		.condition_count = options->condition_count,
		.sampler = &archiving->sampler_options,
	};
	const struct ring_options ring = {
		.span_ns = lead_ns(options),
		.bytes = BEFORE_BYTES,
		.clock = weights[options->clock].clock,
	};

	if (options->condition_count == 0)
		return 0;
	archiving->quota.most = options->at_most;
	archiving->ring = ring_new(&ring);
	archiving->watch = archiving->ring ? watch_new(&watch) : NULL;
	return archiving->watch ? 0 : -ENOMEM;
}

static enum exit_status run(struct archiving *archiving, const struct invocation *invocation)
{
	const struct options *options = archiving->options;
	enum exit_status status = EXIT_NOTHING_DONE;
	regex_t pattern;
	bool sampled;
	int error;

	set_sampler_options(archiving, invocation);
	error = sampling_follow(options, &pattern, &archiving->sampler_options);
	if (!error)
		error = begin_watch(archiving);
	if (!error) {
		progress_begin(&archiving->progress, options->duration_ns);
		error = first_thread_run(&archiving->first, sample, archiving, &sampled);
		progress_end(&archiving->progress);
		launched_pass_on(&archiving->result);
	}
	sampling_forget(&archiving->sampler_options, &pattern);
	if (error)
		choose_explain_error(-error, "starting to record");
	else if (!archiving->refused)
		status = conclude(archiving);
	if (options->launch) {
		launched_await(&archiving->result, options->launch[0]);
		status = (enum exit_status)launched_exit_status(&archiving->result, status);
	}
	return status;
}

static void explain_no_locks(const char *path)
{
	message_error("%s cannot be locked (flock()), and so not kept from another ljspy.", path);
	message_note(
		"Name a directory of a file system with locks: -o DIRECTORY, one on this machine's disk for"
		" example.");
}

static bool open_archive(struct archiving *archiving)
{
	const struct options *options = archiving->options;
	const struct archive_bounds bounds = {
		.keep_ns = options->keep_ns,
		.bytes = options->keep_bytes,
		.every_ns = options->every_ns ? options->every_ns : lead_ns(options) + options->for_ns,
	};
	int error = archive_open(options->output, &bounds, &archiving->archive);

	if (error == -EBUSY)
		message_error("Another ljspy records into %s.", options->output);
	else if (error == -ENOLCK)
		explain_no_locks(options->output);
	else if (error)
		message_error_errno(-error, "%s", options->output);
	return error == 0;
}

static struct pusher_options push_options(const struct archiving *archiving)
{
	const struct options *options = archiving->options;
	const struct archive_list *list = &archiving->archive.list;

	return (struct pusher_options){
		.url = options->push,
		.credentials = options->push_credentials,
		.ca = options->push_ca,
		.path = options->output,
		.newest = list->count ? list->entries[list->count - 1].number : 0,
	};
}

/* False after telling the user. */
static bool check_push(const struct archiving *archiving)
{
	const struct pusher_options options = push_options(archiving);

	return !options.url || pusher_check(&options);
}

/* False after telling the user. */
static bool start_pusher(struct archiving *archiving)
{
	const struct pusher_options options = push_options(archiving);
	int error;

	if (!options.url)
		return true;
	error = pusher_start(&options, &archiving->pusher);
	if (error)
		message_error_errno(-error, "starting to push");
	return !error;
}

static enum exit_status record_into(struct archiving *archiving, const struct invocation *invocation)
{
	const struct options *options = archiving->options;
	const struct rotation_options rotation = {
		.every_ns = options->every_ns,
		.for_ns = options->for_ns,
		.rate_hz = options->rate_hz,
		.archive = &archiving->archive,
		.first = &archiving->first,
		.pusher = &archiving->pusher,
		.roots = archiving->result.roots,
	};
	struct session *session = &archiving->rotation.session;
	char name[PROCESS_NAME_MAX], *title = NULL;
	enum exit_status status = EXIT_NOTHING_DONE;

	rotation_init(&archiving->rotation, &rotation);
	archiving->functions = functions_new();
	if (!options->name)
		title = sampling_title(options, name, &session->pid);
	session->target = options->name ? options->name : title;
	session->command_line = invocation->command_line;
	session->clock = weights[options->clock].clock;
	if (!archiving->functions)
		message_error_errno(ENOMEM, "starting to record");
	else
		status = run(archiving, invocation);
	watch_free(archiving->watch);
	ring_free(archiving->ring);
	functions_free(archiving->functions);
	rotation_free(&archiving->rotation);
	free(title);
	return status;
}

/* False if some profiles are lost or were refused. */
static bool close_archive(struct archiving *archiving)
{
	const bool is_empty = archiving->archive.list.count == 0;
	bool is_pushed;

	/* The next ljspy that records there need not wait until all is pushed. */
	if (!is_empty)
		archive_close(&archiving->archive);
	is_pushed = pusher_end(&archiving->pusher);
	/* An empty directory may go, which must not be while the pusher uses it. */
	if (is_empty)
		archive_close(&archiving->archive);
	return is_pushed;
}

enum exit_status record_archive(const struct invocation *invocation)
{
	struct archiving *archiving = calloc(1, sizeof(*archiving));
	enum exit_status status = EXIT_NOTHING_DONE;

	if (!archiving) {
		message_error_errno(ENOMEM, "starting to record");
		return status;
	}
	/* Who reads what ljspy says may stall; neither recording nor the end waits for that. */
	message_must_not_wait(true);
	archiving->options = invocation->options;
	if (!check_push(archiving))
		status = EXIT_USAGE;
	else if (open_archive(archiving)) {
		if (start_pusher(archiving))
			status = record_into(archiving, invocation);
		if (!close_archive(archiving) && status == EXIT_ALL_GOOD)
			status = EXIT_WITH_ERRORS;
	}
	free(archiving);
	return status;
}

/* SPDX-License-Identifier: MIT */
#include "src/commands/record_archive.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "memory/array.h"
#include "output/recording/recording_writer.h"
#include "output/sample/session.h"
#include "src/archive/archive.h"
#include "src/linux/clocks/clock.h"
#include "src/program/first_thread.h"
#include "src/program/message.h"
#include "src/program/progress.h"
#include "src/push/origin.h"
#include "src/push/pusher.h"
#include "src/sampler/sampler_apart.h"
#include "src/targets/choose.h"
#include "src/targets/launched.h"
#include "src/targets/nothing_seen.h"
#include "src/targets/sampled.h"
#include "src/targets/sampling.h"
#include "src/watch/quota.h"
#include "src/watch/ring.h"
#include "src/watch/watch.h"

/* Without samples, a recording ends so long after its time: some may still be on their way. */
static const uint64_t late_ns = 2 * (uint64_t)NS_PER_SECOND;
/* The clock was set if it moved by that much more than time did. */
static const uint64_t clock_moved_ns = NS_PER_SECOND;
/* A recording that takes that part of the bytes to keep ends early, so that there is one to keep. */
enum { PARTS_MIN = 4 };
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

	/* With --when; else NULL. */
	struct watch *watch;
	struct ring *ring; /* of what was sampled since the last recording */
	struct quota quota;
	bool asleep;    /* samples go into the ring */
	bool said_most; /* the user knows that there are no more recordings for now */
	int ring_error; /* that the user has been told of; a negative errno, 0 if there is none any more */
	char cause[CAUSE_SIZE];

	/* The current recording. */
	struct recording_writer *writer; /* NULL between two, if none could be opened */
	struct session session;
	struct figures figures;   /* of its samples */
	struct figures so_far;    /* of the run, at the last progress */
	struct figures before;    /* of the run, up to its beginning */
	uint64_t unwritten;       /* samples that could not be written, and that no recording tells of yet */
	uint64_t told;            /* so many of them the figures of this one have */
	uint64_t end_ns;          /* CLOCK_MONOTONIC */
	bool failed;              /* nothing can be written for now */
	bool ended;               /* its end is what could not be written */
	bool said_bounds;         /* the user knows that old recordings cannot be deleted */
	int error;                /* of the errand; a negative errno */
	uint64_t recorded_cpu_ns; /* CPU time in earlier recordings */
	uint64_t unflushed;       /* samples that are in the writer only */
	uint64_t missing;         /* samples since writing failed */
	uint64_t all_missing;
	int64_t clock_offset_ns; /* CLOCK_REALTIME against CLOCK_MONOTONIC */
	int64_t suspended_ns;    /* how long the machine was by then */
	struct noted {           /* the processes whose labels it has */
		pid_t *pids;     /* sorted */
		size_t count, size;
	} noted;
};

static int64_t clock_offset(clockid_t clock)
{
	return (int64_t)(clock_now_ns(clock) - clock_now_ns(CLOCK_MONOTONIC));
}

static void note_clock(struct archiving *archiving)
{
	archiving->clock_offset_ns = clock_offset(CLOCK_REALTIME);
	archiving->suspended_ns = clock_offset(CLOCK_BOOTTIME);
}

/*---- The first thread's errands ----*/

static void open_next(void *context)
{
	struct archiving *archiving = context;
	int error = archive_begin(&archiving->archive, archiving->session.start_unix_ns);

	if (!error)
		error = recording_writer_new(archiving->archive.stream, &archiving->session,
					     &archiving->writer);
	if (error)
		archive_end(&archiving->archive);
	archiving->error = error;
}

static void prune(void *context)
{
	struct archiving *archiving = context;

	archiving->error = archive_prune(&archiving->archive);
}

/*---- Recordings ----*/

/* The user reads it once: until writing works again, only the samples are counted. */
static void note_failure(struct archiving *archiving, int error)
{
	if (archiving->failed)
		return;
	archiving->failed = true;
	message_error_errno(error, "%s: what was written stays; recording goes on when it can",
			    archiving->options->output);
	if (error == ENOSPC || error == EDQUOT)
		message_note(
			"To make room, ljspy deletes no recording: delete old ones, or give a lower --keep-bytes.");
}

static void note_recovery(struct archiving *archiving)
{
	if (!archiving->failed)
		return;
	archiving->failed = false;
	message_warn("%s can be written to again; %" PRIu64 " samples are missing.",
		     archiving->options->output, archiving->missing);
	archiving->all_missing += archiving->missing;
	archiving->missing = 0;
}

static bool is_written(struct archiving *archiving, int error)
{
	if (error == -EIO)
		note_failure(archiving, errno ? errno : EIO);
	return error != -EIO;
}

/* When a recording ends that begins then: at a round time of the clock. */
static uint64_t end_of(const struct archiving *archiving, uint64_t start_ns, uint64_t start_unix_ns)
{
	const uint64_t every_ns = archiving->options->every_ns;

	if (archiving->watch)
		return start_ns + archiving->options->for_ns;
	return start_ns + every_ns - start_unix_ns % every_ns;
}

/* Begin a recording of what was sampled from start_ns on. */
static void begin_recording(struct archiving *archiving, uint64_t start_ns)
{
	struct session *session = &archiving->session;

	session->start_ns = start_ns;
	session->start_unix_ns = start_ns + (uint64_t)archiving->clock_offset_ns;
	session->duration_ns = 0;
	archiving->end_ns = end_of(archiving, start_ns, session->start_unix_ns);
	archiving->figures = (struct figures){ 0 };
	archiving->before = archiving->so_far;
	archiving->noted.count = 0;
	first_thread_ask(&archiving->first, open_next, archiving);
	if (archiving->error)
		note_failure(archiving, -archiving->error);
	pusher_note(&archiving->pusher);
}

/* What happened from the recording's beginning to its end; the sampler counts for its whole run. */
static void complete_figures(struct archiving *archiving, const struct figures *so_far, uint64_t end_ns)
{
	struct session *session = &archiving->session;
	struct figures *figures = &archiving->figures;

	figures_count_since(figures, so_far, &archiving->before);
	archiving->told = archiving->unwritten;
	figures->dropped += archiving->told;
	figures->rate_asked_hz = archiving->options->rate_hz;
	session->duration_ns = end_ns > session->start_ns ? end_ns - session->start_ns : 0;
	figures->duration_ns = session->duration_ns;
}

/* False if it could not be written to its end. */
static bool finish_writer(struct archiving *archiving)
{
	bool good;

	archiving->session.roots = *archiving->result.roots ? archiving->result.roots : NULL;
	good = is_written(archiving, recording_writer_finish(archiving->writer, &archiving->session,
							     &archiving->figures));

	archiving->ended = !good;
	if (good)
		archiving->unwritten -= archiving->told;
	return good;
}

/* Close the file, which has its end or never gets it, and delete what exceeds the bounds. */
static void close_recording(struct archiving *archiving)
{
	recording_writer_free(archiving->writer);
	archiving->writer = NULL;
	archiving->ended = false;
	archiving->unflushed = 0;
	archiving->recorded_cpu_ns += archiving->figures.target_cpu_ns;
	archive_end(&archiving->archive);
	first_thread_ask(&archiving->first, prune, archiving);
	if (archiving->error && !archiving->said_bounds)
		message_warn("%s: old recordings cannot be deleted: %s", archiving->options->output,
			     strerror(-archiving->error));
	archiving->said_bounds |= archiving->error != 0;
}

/* From now on, samples go into the ring. */
static void fall_asleep(struct archiving *archiving, uint64_t now_ns)
{
	archiving->asleep = true;
	archiving->end_ns = UINT64_MAX - late_ns;
	ring_clear(archiving->ring);
	ring_advance(archiving->ring, now_ns, &archiving->so_far);
}

/* What comes after a recording. */
static void begin_next(struct archiving *archiving, uint64_t now_ns)
{
	if (archiving->watch)
		fall_asleep(archiving, now_ns);
	else
		begin_recording(archiving, now_ns);
}

/* End the recording, and begin the next. If the end cannot be written, try_again() does it later. */
static void rotate(struct archiving *archiving, uint64_t at_ns)
{
	if (archiving->failed)
		return;
	complete_figures(archiving, &archiving->so_far, at_ns);
	if (archiving->writer && !finish_writer(archiving))
		return;
	close_recording(archiving);
	begin_next(archiving, at_ns);
}

/* End recordings whose time is over. Those of a time without ljspy, such as a suspended machine, are none. */
static void rotate_if_over(struct archiving *archiving, uint64_t now_ns)
{
	const uint64_t every_ns = archiving->options->every_ns;
	uint64_t end_ns = archiving->end_ns;

	if (now_ns < end_ns)
		return;
	if (every_ns && now_ns - end_ns >= every_ns)
		end_ns += (now_ns - end_ns) / every_ns * every_ns;
	rotate(archiving, end_ns);
}

/*
 * Give up a file that takes no more, once its time is over. A full disk may have room again; another cause,
 * such as a limit of sizes or a file server that has lost the file, may be the file's alone.
 */
static bool give_up(struct archiving *archiving, int error)
{
	if (error == ENOSPC || error == EDQUOT || clock_now_ns(CLOCK_MONOTONIC) < archiving->end_ns)
		return false;
	archiving->missing += archiving->unflushed;
	archiving->unwritten += archiving->unflushed;
	close_recording(archiving);
	return true;
}

/* After a failure: write what did not get into the file, and go on there, or in a new one. */
static bool try_again(struct archiving *archiving)
{
	bool over = archiving->ended;

	if (!archiving->failed)
		return true;
	if (archiving->writer && recording_writer_continue(archiving->writer, archiving->archive.stream)) {
		if (!give_up(archiving, errno))
			return false;
		over = true;
	} else if (over) {
		if (!finish_writer(archiving))
			return false;
		close_recording(archiving);
	}
	if (over)
		begin_next(archiving, clock_now_ns(CLOCK_MONOTONIC));
	else if (!archiving->writer)
		begin_recording(archiving, clock_now_ns(CLOCK_MONOTONIC));
	if (archiving->writer ? recording_writer_flush(archiving->writer) != 0 : !archiving->asleep)
		return false;
	note_recovery(archiving);
	return true;
}

/* Write what was added so far. */
static void flush(struct archiving *archiving)
{
	if (archiving->writer && is_written(archiving, recording_writer_flush(archiving->writer)))
		archiving->unflushed = 0;
}

/*---- Labels of processes, for pushing ----*/

/* Where the process is, or belongs, among those whose labels the recording has. */
static size_t find_noted(const struct noted *noted, pid_t pid)
{
	size_t low = 0, high = noted->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (noted->pids[middle] < pid)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Note at the first sample of a process what it is: later it may be gone. */
static int note_process(struct archiving *archiving, const struct sample *sample)
{
	struct noted *noted = &archiving->noted;
	size_t at = find_noted(noted, sample->pid);
	char text[LABELS_TEXT_SIZE];
	struct labels labels;
	pid_t *pids;

	if (!archiving->pusher.pid || (at < noted->count && noted->pids[at] == sample->pid))
		return 0;
	pids = array_grow(noted->pids, &noted->size, noted->count + 1, sizeof(*pids));
	if (!pids)
		return -ENOMEM;
	noted->pids = pids;
	memmove(pids + at + 1, pids + at, (noted->count - at) * sizeof(*pids));
	pids[at] = sample->pid;
	noted->count++;
	origin_read(sample->pid, sample->process_name, &labels);
	labels_write(&labels, text);
	return recording_writer_add_labels(archiving->writer, sample->pid, text);
}

/*---- The sampler's calls ----*/

/* Into the current recording. 0: what cannot be written is counted. */
static int record_sample(void *context, const struct sample *given)
{
	struct archiving *archiving = context;
	struct sample sample = *given;
	int error = -EIO;

	/* One that comes late goes into the recording that goes on. */
	if (sample.time_ns < archiving->session.start_ns)
		sample.time_ns = archiving->session.start_ns;
	figures_add_sample(&archiving->figures, &sample);
	archiving->figures.target_cpu_ns += sample.cpu_ns;
	if (archiving->writer && !archiving->failed)
		error = note_process(archiving, &sample);
	if (!error)
		error = recording_writer_add(archiving->writer, &sample);
	if (error) {
		archiving->missing++;
		archiving->unwritten++;
	} else {
		archiving->unflushed++;
	}
	if (archiving->writer && error)
		is_written(archiving, error);
	return 0;
}

/* A sample may come before progress() tells when sampling began. */
static void begin_first(struct archiving *archiving, uint64_t now_ns)
{
	if (archiving->begun)
		return;
	archiving->begun = true;
	begin_next(archiving, archiving->result.begin_ns ? archiving->result.begin_ns : now_ns);
}

static void take_sample(void *context, const struct sample *sample)
{
	struct archiving *archiving = context;

	begin_first(archiving, sample->time_ns);
	rotate_if_over(archiving, sample->time_ns);
	if (archiving->watch)
		watch_sample(archiving->watch, sample);
	if (!archiving->asleep)
		record_sample(archiving, sample);
	else if (ring_add(archiving->ring, sample))
		archiving->missing++;
}

static void keep_functions(void *context)
{
	struct archiving *archiving = context;

	if (archiving->writer)
		recording_writer_forget_functions(archiving->writer);
	if (archiving->watch) {
		ring_forget_functions(archiving->ring);
		watch_keep(archiving->watch);
	}
}

/* A recording's times hold for one setting of the clock. */
static void follow_clock(struct archiving *archiving, uint64_t now_ns)
{
	int64_t moved_ns = clock_offset(CLOCK_REALTIME) - archiving->clock_offset_ns;
	int64_t suspended_ns = clock_offset(CLOCK_BOOTTIME) - archiving->suspended_ns;
	const char *outcome = archiving->asleep ? "what was sampled before is dropped"
						: "a new recording begins";

	if ((uint64_t)llabs(moved_ns) < clock_moved_ns)
		return;
	if ((uint64_t)llabs(moved_ns - suspended_ns) < clock_moved_ns)
		message_note("The machine was suspended for %.0f s: %s.", (double)suspended_ns / 1e9,
			     outcome);
	else
		message_warn("The clock was set by %.0f s: %s.", (double)(moved_ns - suspended_ns) / 1e9,
			     outcome);
	note_clock(archiving);
	rotate(archiving, now_ns);
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
	const struct options *options = archiving->options;
	const uint64_t begin_ns = ring_begin_ns(archiving->ring);
	const struct figures before = *ring_before(archiving->ring);
	char name[ARCHIVE_NAME_SIZE] = "";
	int error;

	snprintf(archiving->cause, sizeof(archiving->cause), "%s, %.0f s after the beginning", words,
		 (double)(now_ns - begin_ns) / 1e9);
	archiving->session.cause = archiving->cause;
	archiving->asleep = false;
	begin_recording(archiving, begin_ns);
	archiving->before = before;
	archiving->end_ns = now_ns + options->for_ns;
	error = ring_pour(archiving->ring, record_sample, archiving);
	if (error)
		warn_missing(error, "the recording");
	if (!archiving->writer)
		return;
	recording_writer_forget_functions(archiving->writer);
	archive_name(&archiving->archive.list.entries[archiving->archive.list.count - 1], name);
	message_note("%s: recording until %.0f s later, into %s", words, (double)options->for_ns / 1e9, name);
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

	if (!archiving->asleep)
		return;
	error = ring_advance(archiving->ring, now_ns, &archiving->so_far);
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
	archiving->so_far = *so_far;
	follow_clock(archiving, now_ns);
	if (now_ns >= archiving->end_ns + late_ns)
		rotate_if_over(archiving, now_ns - late_ns);
	if (archive_written(&archiving->archive) > archiving->options->keep_bytes / PARTS_MIN)
		rotate(archiving, now_ns);
	if (archiving->watch)
		watch_on(archiving, now_ns);
	if (try_again(archiving))
		flush(archiving);
	progress_show(&archiving->progress, so_far);
	return true;
}

/* The run's CPU time is known at its end: what no sample stands for goes into the last recording. */
static void end_last(struct archiving *archiving)
{
	const struct figures *all = &archiving->result.figures;

	if (archiving->asleep || !archiving->begun)
		return;
	complete_figures(archiving, all, clock_now_ns(CLOCK_MONOTONIC));
	if (!archiving->watch && weight_is_time(archiving->session.clock) &&
	    all->target_cpu_ns > archiving->recorded_cpu_ns)
		archiving->figures.target_cpu_ns = all->target_cpu_ns - archiving->recorded_cpu_ns;
	if (!try_again(archiving) || !finish_writer(archiving))
		archiving->missing += archiving->unflushed;
	close_recording(archiving);
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
		archiving->session.layout = archiving->result.layout;
	end_last(archiving);
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
	const struct options *options = archiving->options;
	enum exit_status status = EXIT_ALL_GOOD;

	archiving->all_missing += archiving->missing;
	if (archiving->all_missing) {
		message_warn("%" PRIu64 " samples could not be written.", archiving->all_missing);
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
		note_clock(archiving);
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
	char name[PROCESS_NAME_MAX], *title = NULL;
	enum exit_status status = EXIT_NOTHING_DONE;

	archiving->functions = functions_new();
	if (!options->name)
		title = sampling_title(options, name, &archiving->session.pid);
	archiving->session.target = options->name ? options->name : title;
	archiving->session.command_line = invocation->command_line;
	archiving->session.clock = weights[options->clock].clock;
	if (!archiving->functions)
		message_error_errno(ENOMEM, "starting to record");
	else
		status = run(archiving, invocation);
	watch_free(archiving->watch);
	ring_free(archiving->ring);
	functions_free(archiving->functions);
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
	free(archiving->noted.pids);
	free(archiving);
	return status;
}

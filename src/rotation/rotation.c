/* SPDX-License-Identifier: MIT */
#include "src/rotation/rotation.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/linux/clocks/clock.h"
#include "src/program/message.h"

/* Without samples, a recording ends so long after its time: some may still be on their way. */
static const uint64_t late_ns = 2 * (uint64_t)NS_PER_SECOND;
/* The clock was set if it moved by that much more than time did. */
static const uint64_t clock_moved_ns = NS_PER_SECOND;
/* A recording that takes that part of the bytes to keep ends early, so that there is one to keep. */
enum { PARTS_MIN = 4 };

static int64_t clock_offset(clockid_t clock)
{
	return (int64_t)(clock_now_ns(clock) - clock_now_ns(CLOCK_MONOTONIC));
}

static void note_clock(struct rotation *rotation)
{
	rotation->clock_offset_ns = clock_offset(CLOCK_REALTIME);
	rotation->suspended_ns = clock_offset(CLOCK_BOOTTIME);
}

void rotation_init(struct rotation *rotation, const struct rotation_options *options)
{
	*rotation = (struct rotation){ .options = *options, .idle = true };
	note_clock(rotation);
}

void rotation_free(struct rotation *rotation)
{
	labelled_free(&rotation->labelled);
}

/*---- The first thread's errands ----*/

static void open_next(void *context)
{
	struct rotation *rotation = context;
	int error = archive_begin(rotation->options.archive, rotation->session.start_unix_ns);

	if (!error)
		error = recording_writer_new(rotation->options.archive->stream, &rotation->session,
					     &rotation->writer);
	if (error)
		archive_end(rotation->options.archive);
	rotation->error = error;
}

static void prune(void *context)
{
	struct rotation *rotation = context;

	rotation->error = archive_prune(rotation->options.archive);
}

/*---- Recordings ----*/

/* The user reads it once: until writing works again, only the samples are counted. */
static void note_failure(struct rotation *rotation, int error)
{
	if (rotation->failed)
		return;
	rotation->failed = true;
	message_error_errno(error, "%s: what was written stays; recording goes on when it can",
			    rotation->options.archive->path);
	if (error == ENOSPC || error == EDQUOT)
		message_note(
			"To make room, ljspy deletes no recording: delete old ones, or give a lower --keep-bytes.");
}

static void note_recovery(struct rotation *rotation)
{
	if (!rotation->failed)
		return;
	rotation->failed = false;
	message_warn("%s can be written to again; %" PRIu64 " sample%s missing.",
		     rotation->options.archive->path, rotation->missing,
		     rotation->missing == 1 ? " is" : "s are");
	rotation->all_missing += rotation->missing;
	rotation->missing = 0;
}

static bool is_written(struct rotation *rotation, int error)
{
	if (error == -EIO)
		note_failure(rotation, errno ? errno : EIO);
	return error != -EIO;
}

/* When a recording ends that begins then: one of many at a round time of the clock. */
static uint64_t end_of(const struct rotation *rotation, uint64_t now_ns)
{
	const uint64_t every_ns = rotation->options.every_ns;

	if (!every_ns)
		return now_ns + rotation->options.for_ns;
	return now_ns + every_ns - (now_ns + (uint64_t)rotation->clock_offset_ns) % every_ns;
}

/* Begin a recording of what was sampled from start_ns on. */
static void begin_recording(struct rotation *rotation, uint64_t start_ns)
{
	struct session *session = &rotation->session;

	rotation->idle = false;
	session->start_ns = start_ns;
	session->start_unix_ns = start_ns + (uint64_t)rotation->clock_offset_ns;
	session->duration_ns = 0;
	rotation->figures = (struct figures){ 0 };
	labelled_clear(&rotation->labelled);
	first_thread_ask(rotation->options.first, open_next, rotation);
	if (rotation->error)
		note_failure(rotation, -rotation->error);
	pusher_note(rotation->options.pusher);
}

/* Begin one of what comes from now on. */
static void begin_now(struct rotation *rotation, uint64_t now_ns)
{
	rotation->before = rotation->so_far;
	rotation->end_ns = end_of(rotation, now_ns);
	begin_recording(rotation, now_ns);
}

/* What happened from the recording's beginning to its end; the sampler counts for its whole run. */
static void complete_figures(struct rotation *rotation, const struct figures *so_far, uint64_t end_ns)
{
	struct session *session = &rotation->session;
	struct figures *figures = &rotation->figures;

	figures_count_since(figures, so_far, &rotation->before);
	rotation->told = rotation->unwritten;
	figures->dropped += rotation->told;
	figures->rate_asked_hz = rotation->options.rate_hz;
	session->duration_ns = end_ns > session->start_ns ? end_ns - session->start_ns : 0;
	figures->duration_ns = session->duration_ns;
}

/* False if it could not be written to its end. */
static bool finish_writer(struct rotation *rotation)
{
	bool good;

	rotation->session.roots = *rotation->options.roots ? rotation->options.roots : NULL;
	good = is_written(rotation,
			  recording_writer_finish(rotation->writer, &rotation->session, &rotation->figures));

	rotation->ended = !good;
	if (good)
		rotation->unwritten -= rotation->told;
	return good;
}

/* Close the file, which has its end or never gets it, and delete what exceeds the bounds. */
static void close_recording(struct rotation *rotation)
{
	recording_writer_free(rotation->writer);
	rotation->writer = NULL;
	rotation->ended = false;
	rotation->unflushed = 0;
	rotation->recorded_cpu_ns += rotation->figures.target_cpu_ns;
	archive_end(rotation->options.archive);
	first_thread_ask(rotation->options.first, prune, rotation);
	if (rotation->error && !rotation->said_bounds)
		message_warn("%s: old recordings cannot be deleted: %s", rotation->options.archive->path,
			     strerror(-rotation->error));
	rotation->said_bounds |= rotation->error != 0;
}

/* What comes after a recording. */
static void begin_next(struct rotation *rotation, uint64_t now_ns)
{
	if (rotation->options.every_ns) {
		begin_now(rotation, now_ns);
	} else {
		rotation->idle = true;
		rotation->idle_since_ns = now_ns;
	}
}

/* End the recording, and begin the next. If the end cannot be written, try_again() does it later. */
static void rotate(struct rotation *rotation, uint64_t at_ns)
{
	if (rotation->failed)
		return;
	if (rotation->idle) {
		begin_next(rotation, at_ns);
		return;
	}
	complete_figures(rotation, &rotation->so_far, at_ns);
	if (rotation->writer && !finish_writer(rotation))
		return;
	close_recording(rotation);
	begin_next(rotation, at_ns);
}

/* End recordings whose time is over. Those of a time without ljspy, such as a suspended machine, are none. */
void rotation_advance(struct rotation *rotation, uint64_t now_ns)
{
	const uint64_t every_ns = rotation->options.every_ns;
	uint64_t end_ns = rotation->end_ns;

	if (rotation->idle || now_ns < end_ns)
		return;
	if (every_ns && now_ns - end_ns >= every_ns)
		end_ns += (now_ns - end_ns) / every_ns * every_ns;
	rotate(rotation, end_ns);
}

/*
 * Give up a file that takes no more, once its time is over. A full disk may have room again; another cause,
 * such as a limit of sizes or a file server that has lost the file, may be the file's alone.
 */
static bool give_up(struct rotation *rotation, int error)
{
	if (error == ENOSPC || error == EDQUOT || clock_now_ns(CLOCK_MONOTONIC) < rotation->end_ns)
		return false;
	rotation->missing += rotation->unflushed;
	rotation->unwritten += rotation->unflushed;
	close_recording(rotation);
	return true;
}

/* After a failure: write what did not get into the file, and go on there, or in a new one. */
static bool try_again(struct rotation *rotation)
{
	bool over = rotation->ended;

	if (!rotation->failed)
		return true;
	if (rotation->writer &&
	    recording_writer_continue(rotation->writer, rotation->options.archive->stream)) {
		if (!give_up(rotation, errno))
			return false;
		over = true;
	} else if (over) {
		if (!finish_writer(rotation))
			return false;
		close_recording(rotation);
	}
	if (over)
		begin_next(rotation, clock_now_ns(CLOCK_MONOTONIC));
	else if (!rotation->writer)
		begin_now(rotation, clock_now_ns(CLOCK_MONOTONIC));
	if (rotation->writer ? recording_writer_flush(rotation->writer) != 0 : !rotation->idle)
		return false;
	note_recovery(rotation);
	return true;
}

/* Write what was added so far. */
static void flush(struct rotation *rotation)
{
	if (rotation->writer && is_written(rotation, recording_writer_flush(rotation->writer)))
		rotation->unflushed = 0;
}

/*---- The calls ----*/

static int add_labels(struct rotation *rotation, const struct sample *sample)
{
	if (!rotation->options.pusher->pid)
		return 0;
	return labelled_add(&rotation->labelled, sample, rotation->writer);
}

int rotation_take(void *context, const struct sample *given)
{
	struct rotation *rotation = context;
	struct sample sample = *given;
	int error = -EIO;

	/* One that comes late goes into the recording that goes on. */
	if (sample.time_ns < rotation->session.start_ns)
		sample.time_ns = rotation->session.start_ns;
	figures_add_sample(&rotation->figures, &sample);
	rotation->figures.target_cpu_ns += sample.cpu_ns;
	if (rotation->writer && !rotation->failed)
		error = add_labels(rotation, &sample);
	if (!error)
		error = recording_writer_add(rotation->writer, &sample);
	if (error) {
		rotation->missing++;
		rotation->unwritten++;
	} else {
		rotation->unflushed++;
	}
	if (rotation->writer && error)
		is_written(rotation, error);
	return 0;
}

/* A recording's times hold for one setting of the clock. */
static void follow_clock(struct rotation *rotation, uint64_t now_ns)
{
	int64_t moved_ns = clock_offset(CLOCK_REALTIME) - rotation->clock_offset_ns;
	int64_t suspended_ns = clock_offset(CLOCK_BOOTTIME) - rotation->suspended_ns;
	const char *outcome = rotation->idle ? "what was sampled before is dropped"
					     : "a new recording begins";

	if ((uint64_t)llabs(moved_ns) < clock_moved_ns)
		return;
	if ((uint64_t)llabs(moved_ns - suspended_ns) < clock_moved_ns)
		message_note("The machine was suspended for %.0f s: %s.", (double)suspended_ns / 1e9,
			     outcome);
	else
		message_warn("The clock was set by %.0f s: %s.", (double)(moved_ns - suspended_ns) / 1e9,
			     outcome);
	note_clock(rotation);
	rotate(rotation, now_ns);
}

void rotation_keep_up(struct rotation *rotation, uint64_t now_ns)
{
	follow_clock(rotation, now_ns);
	if (now_ns >= late_ns)
		rotation_advance(rotation, now_ns - late_ns);
	if (archive_written(rotation->options.archive) > rotation->options.archive->bounds.bytes / PARTS_MIN)
		rotate(rotation, now_ns);
}

void rotation_write(struct rotation *rotation)
{
	if (try_again(rotation))
		flush(rotation);
}

void rotation_forget_functions(struct rotation *rotation)
{
	if (rotation->writer)
		recording_writer_forget_functions(rotation->writer);
}

void rotation_begin_first(struct rotation *rotation, uint64_t now_ns)
{
	begin_next(rotation, now_ns);
}

bool rotation_begin(struct rotation *rotation, uint64_t start_ns, const struct figures *before,
		    uint64_t now_ns)
{
	rotation->before = *before;
	rotation->end_ns = end_of(rotation, now_ns);
	begin_recording(rotation, start_ns);
	return rotation->writer != NULL;
}

void rotation_end(struct rotation *rotation, const struct figures *all)
{
	bool good;

	if (rotation->idle)
		return;
	good = try_again(rotation);
	/* The last recording may be closed by now, or be another one, which tells what is missing. */
	if (rotation->idle)
		return;
	complete_figures(rotation, all, clock_now_ns(CLOCK_MONOTONIC));
	if (rotation->options.every_ns && weight_is_time(rotation->session.clock) &&
	    all->target_cpu_ns > rotation->recorded_cpu_ns)
		rotation->figures.target_cpu_ns = all->target_cpu_ns - rotation->recorded_cpu_ns;
	if (!good || !finish_writer(rotation))
		rotation->missing += rotation->unflushed;
	close_recording(rotation);
}

uint64_t rotation_missing(const struct rotation *rotation)
{
	return rotation->all_missing + rotation->missing;
}

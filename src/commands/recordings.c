/* SPDX-License-Identifier: MIT */
#include "src/commands/recordings.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "output/recording/recording_reader.h"
#include "output/views/sum.h"
#include "src/linux/files/same_file.h"
#include "src/program/kept_recording.h"
#include "src/program/message.h"
#include "src/program/output_file.h"

static const uint64_t second_ns = 1000000000u;
enum { LARGE_BYTES = 128 << 10 };

struct recording_input {
	const char *path;
	char *left; /* path, if open_what_was_left() replaced it; owned */
	FILE *stream;
	struct recording_reader *reader;
	struct filter *filter;
	uint64_t since_ns, until_ns; /* what is wanted of it, after its beginning; until_ns 0: to its end */
};

/*---- One file ----*/

static bool is_standard_input(const char *path)
{
	return strcmp(path, "-") == 0;
}

/* For the middle of a sentence. */
static const char *shown_path(const char *path)
{
	return is_standard_input(path) ? "standard input" : path;
}

/* For its beginning. */
static const char *leading_path(const char *path)
{
	return is_standard_input(path) ? "Standard input" : path;
}

/* Copy a pipe into a file: a pipe can be read only once. 0 or a negative errno. */
static int gather(FILE *pipe, FILE **ret_stream)
{
	char buffer[65536];
	FILE *stream;
	size_t length;
	int error = output_file_scratch(&stream);

	if (error)
		return error;
	errno = 0;
	while ((length = fread(buffer, 1, sizeof(buffer), pipe)) > 0)
		if (fwrite(buffer, 1, length, stream) != length)
			break;
	if (ferror(pipe) || ferror(stream) || fflush(stream)) {
		error = errno ? -errno : -EIO;
		fclose(stream);
		return error;
	}
	*ret_stream = stream;
	return 0;
}

static int open_stream(const char *path, FILE **ret_stream)
{
	FILE *stream = is_standard_input(path) ? fdopen(dup(STDIN_FILENO), "r") : fopen(path, "re");
	int error;

	if (!stream)
		return -errno;
	if (fseeko(stream, 0, SEEK_SET) == 0) {
		*ret_stream = stream;
		return 0;
	}
	error = gather(stream, ret_stream);
	fclose(stream);
	return error;
}

static void explain(const char *path, int error)
{
	if (error == -EILSEQ) {
		message_error("%s is not a recording of ljspy.", leading_path(path));
		message_note("`ljspy record -o FILE.ljspy` makes one.");
	} else if (error == -EPROTONOSUPPORT) {
		message_error("%s was recorded by a newer ljspy, and this one cannot read it.",
			      leading_path(path));
	} else if (error == -EIO && errno) {
		message_error_errno(errno, "%s", shown_path(path));
	} else {
		message_error_errno(-error, "%s", shown_path(path));
	}
}

/* Warn of what the file lacks or has too much; true if more is wrong than that its end is missing. */
static bool judge_extent(const struct recording_input *input)
{
	enum recording_extent extent = recording_reader_extent(input->reader);

	if (extent == RECORDING_UNFINISHED)
		message_warn("%s has no end: it is being written, or its writer was killed.",
			     leading_path(input->path));
	if (extent == RECORDING_DAMAGED)
		message_warn("%s is damaged: what follows the first %llu samples cannot be read.",
			     leading_path(input->path),
			     (unsigned long long)recording_reader_figures(input->reader)->samples);
	if (extent == RECORDING_FOLLOWED)
		message_warn("%s goes on after the end of its recording: what follows is not shown. "
			     "If that is another recording, name each of them.",
			     leading_path(input->path));
	return extent == RECORDING_DAMAGED || extent == RECORDING_FOLLOWED;
}

/* The clock by which to show a recording. */
static enum weight_kind shown_clock(const struct recording_input *input, const struct options *options)
{
	return options->clock_given ? options->clock : recording_reader_session(input->reader)->clock;
}

/* False, after telling the user, if the recording lacks what that clock counts. */
static bool check_clock(const struct recording_input *input, const struct options *options)
{
	const enum weight_kind shown = shown_clock(input, options),
			       recorded = recording_reader_session(input->reader)->clock;

	if (weight_is_in(shown, recorded))
		return true;
	if (!weight_is_time(recorded)) {
		message_error("%s has what was allocated: time is not in it.", leading_path(input->path));
	} else if (!weight_is_time(shown)) {
		message_error("%s has time: what was allocated is not in it.", leading_path(input->path));
		message_note("`ljspy record --alloc` records that.");
	} else {
		message_error("%s was recorded by the CPU clock: what slept is not in it.",
			      leading_path(input->path));
		message_note("`ljspy record --clock wall` records both.");
	}
	return false;
}

static struct filter *new_filter(const struct recording_input *input, const struct options *options,
				 struct functions *functions)
{
	uint64_t start_ns = recording_reader_session(input->reader)->start_ns;
	struct filter_options filter = options->filter;

	filter.since_ns = input->since_ns ? start_ns + input->since_ns : 0;
	filter.until_ns = input->until_ns ? start_ns + input->until_ns : 0;
	filter.pids = options->pids;
	filter.pid_count = options->pid_count;
	filter.tids = options->tids;
	filter.include = options->include;
	filter.include_request = options->include_request;
	filter.exclude = options->exclude;
	filter.time = filter_time_by(shown_clock(input, options),
				     recording_reader_session(input->reader)->clock);
	return filter_new(recording_reader_samples(input->reader), functions, &filter);
}

static int open_reader(struct recording_input *input, const char *path, struct functions *functions)
{
	int error = open_stream(path, &input->stream);

	if (!error)
		error = recording_reader_open(input->stream, functions, &input->reader);
	if (error && input->stream) {
		fclose(input->stream);
		input->stream = NULL;
	}
	return error;
}

/* If the path is that of an output that was never finished, open its kept recording. */
static bool open_what_was_left(struct recording_input *input, struct functions *functions)
{
	char *path = kept_recording_path(input->path);

	if (!path || open_reader(input, path, functions)) {
		free(path);
		return false;
	}
	message_warn("%s is no recording, but what was recorded for it is in %s.", input->path, path);
	input->path = input->left = path;
	return true;
}

static int open_input(struct recording_input *input, struct functions *functions)
{
	int error = open_reader(input, input->path, functions);
	const int cause = errno;

	if ((error == -ENOENT || error == -EILSEQ) && !is_standard_input(input->path) &&
	    open_what_was_left(input, functions))
		error = 0;
	errno = cause;
	return error;
}

/*---- All together ----*/

/* How much of a recording's duration passes the filter. */
static uint64_t filtered_duration(const struct recording_input *input)
{
	uint64_t end = recording_reader_session(input->reader)->duration_ns;

	if (input->until_ns && input->until_ns < end)
		end = input->until_ns;
	return end > input->since_ns ? end - input->since_ns : 0;
}

/* From a recording's beginning to a time in that second; at least that much. After 2262 all times are one. */
static uint64_t time_to(const struct session *session, const struct clock_time *time, int64_t unix_s,
			uint64_t least_ns)
{
	const uint64_t last_s = INT64_MAX / second_ns - 1, whole_s = unix_s < 0 ? 0 : (uint64_t)unix_s;
	const uint64_t unix_ns = (whole_s < last_s ? whole_s : last_s) * second_ns + time->fraction_ns;

	if (unix_ns < session->start_unix_ns || unix_ns - session->start_unix_ns < least_ns)
		return least_ns;
	return unix_ns - session->start_unix_ns;
}

static int64_t seconds(uint64_t ns)
{
	return (int64_t)(ns / second_ns);
}

/* Times of the clock are sought where the recordings are. */
static void find_clock_times(const struct recordings *recordings, const struct options *options)
{
	int64_t begin_s = INT64_MAX, end_s = 0, since_s, until_s;

	for (size_t i = 0; i < recordings->count; i++) {
		const struct session *session = recording_reader_session(recordings->inputs[i].reader);
		int64_t last_s = seconds(session->start_unix_ns) + seconds(session->duration_ns);

		begin_s = seconds(session->start_unix_ns) < begin_s ? seconds(session->start_unix_ns)
								    : begin_s;
		end_s = last_s > end_s ? last_s : end_s;
	}
	since_s = options->since.given ? clock_time_near(&options->since, begin_s, end_s) : begin_s;
	until_s = options->since.given
			  ? clock_time_after(&options->until, since_s, options->since.fraction_ns)
			  : clock_time_near(&options->until, begin_s, end_s);
	for (size_t i = 0; i < recordings->count; i++) {
		struct recording_input *input = &recordings->inputs[i];
		const struct session *session = recording_reader_session(input->reader);

		if (options->since.given)
			input->since_ns = time_to(session, &options->since, since_s, 0);
		if (options->until.given)
			input->until_ns = time_to(session, &options->until, until_s, 1);
	}
}

static int choose_samples(const struct recordings *recordings, const struct options *options,
			  struct functions *functions)
{
	for (size_t i = 0; i < recordings->count; i++) {
		recordings->inputs[i].since_ns = options->since_ns;
		recordings->inputs[i].until_ns = options->until_ns;
	}
	if (options->since.given || options->until.given)
		find_clock_times(recordings, options);
	for (size_t i = 0; i < recordings->count; i++) {
		struct recording_input *input = &recordings->inputs[i];

		input->filter = new_filter(input, options, functions);
		if (!input->filter)
			return -ENOMEM;
	}
	return 0;
}

/* False, after telling the user, if no recording goes on for that long. */
static bool check_since(const struct recordings *recordings, const struct options *options)
{
	uint64_t longest_ns = 0;
	bool is_within = false;

	for (size_t i = 0; i < recordings->count; i++) {
		const struct recording_input *input = &recordings->inputs[i];
		uint64_t duration_ns = recording_reader_session(input->reader)->duration_ns;

		is_within |= input->since_ns < duration_ns || input->since_ns == 0;
		if (duration_ns > longest_ns)
			longest_ns = duration_ns;
	}
	if (is_within)
		return true;
	if (options->since.given)
		message_error("--since is past the end of %s.",
			      recordings->count == 1 ? shown_path(recordings->inputs[0].path)
						     : "all recordings");
	else
		message_error("--since %.1fs is past the end: %s lasts %.1fs.",
			      (double)options->since_ns / 1e9,
			      recordings->count == 1 ? shown_path(recordings->inputs[0].path)
						     : "the longest recording",
			      (double)longest_ns / 1e9);
	return false;
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool join_sessions(struct recordings *recordings, const struct options *options)
{
	struct session *all = &recordings->session;

	for (size_t i = 0; i < recordings->count; i++) {
		const struct recording_input *input = &recordings->inputs[i];
		const struct session *session = recording_reader_session(input->reader);
		uint64_t duration_ns = all->duration_ns + filtered_duration(input);

		if (!check_clock(input, options))
			return false;
		if (i == 0) {
			*all = *session;
			all->clock = shown_clock(input, options);
		}
		if (shown_clock(input, options) != all->clock) {
			message_error("%s is by the clock %s, and %s by %s: they have no sum.",
				      leading_path(recordings->inputs[0].path), weights[all->clock].name,
				      shown_path(input->path), weights[shown_clock(input, options)].name);
			return false;
		}
		if (session->pid != all->pid)
			all->pid = 0;
		if (!same_text(session->target, all->target))
			all->target = "several targets";
		if (!same_text(session->layout, all->layout))
			all->layout = NULL;
		if (!same_text(session->cause, all->cause))
			all->cause = "several conditions: report each recording for its own";
		if (session->start_unix_ns < all->start_unix_ns) {
			all->start_unix_ns = session->start_unix_ns;
			all->start_ns = session->start_ns;
		}
		all->duration_ns = duration_ns;
	}
	return true;
}

/* The first recording's beginning is where times count from. */
static struct time_span join_spans(const struct recordings *recordings)
{
	struct time_span span = { .since_ns = UINT64_MAX };

	for (size_t i = 0; i < recordings->count; i++) {
		const struct recording_input *input = &recordings->inputs[i];
		const uint64_t start_unix_ns = recording_reader_session(input->reader)->start_unix_ns;
		const uint64_t since_ns = start_unix_ns - recordings->session.start_unix_ns + input->since_ns;
		const uint64_t duration_ns = filtered_duration(input);

		/* A recording that ends before the time may begin before it, too. */
		if (duration_ns == 0)
			continue;
		if (since_ns < span.since_ns)
			span.since_ns = since_ns;
		if (since_ns + duration_ns > span.until_ns)
			span.until_ns = since_ns + duration_ns;
	}
	return span.until_ns ? span : (struct time_span){ 0 };
}

static int join_sources(struct recordings *recordings)
{
	struct sum_part *parts = calloc(recordings->count, sizeof(*parts));

	if (!parts)
		return -ENOMEM;
	for (size_t i = 0; i < recordings->count; i++) {
		const struct recording_input *input = &recordings->inputs[i];
		const struct session *session = recording_reader_session(input->reader);

		parts[i].source = filter_samples(input->filter);
		parts[i].begin_ns = recording_reader_first_ns(input->reader);
		parts[i].shift_ns = session->start_unix_ns - recordings->session.start_unix_ns -
				    (session->start_ns - recordings->session.start_ns);
	}
	recordings->sum = sum_new(parts, recordings->count);
	free(parts);
	if (!recordings->sum)
		return -ENOMEM;
	recordings->source = sum_samples(recordings->sum);
	return 0;
}

struct count {
	struct figures figures;
	uint64_t cpu_ns, wall_ns;
};

static int count_sample(void *context, const struct sample *sample)
{
	struct count *count = context;

	figures_add_sample(&count->figures, sample);
	count->cpu_ns += sample->cpu_ns;
	count->wall_ns += sample->wall_ns;
	return 0;
}

/* Sum the figures of the recordings, for the samples that pass the filter. 0 or a negative errno. */
static int count_samples(struct recordings *recordings)
{
	struct figures *figures = &recordings->figures;
	struct count count = { 0 };
	const struct figures *counted = &count.figures;
	bool passes_all = true;
	uint64_t clocked_ns = 0;
	int error;

	for (size_t i = 0; i < recordings->count; i++) {
		const struct recording_input *input = &recordings->inputs[i];

		figures_add(figures, recording_reader_figures(input->reader));
		clocked_ns += recording_reader_clocked_ns(input->reader);
		passes_all &= filter_passes_all(input->filter);
	}
	figures->duration_ns = recordings->session.duration_ns;
	/* Opening the recordings has counted all samples. */
	if (passes_all) {
		figures_set_rate(figures, clocked_ns);
		return 0;
	}
	error = sample_source_each(recordings->source, count_sample, &count);
	if (counted->samples != figures->samples && recordings->session.clock != WEIGHT_OFF_CPU_TIME &&
	    weight_is_time(recordings->session.clock))
		figures->target_cpu_ns = count.cpu_ns;
	figures->is_part |= counted->samples != figures->samples;
	figures_take_samples(figures, counted);
	figures_set_rate(figures,
			 weight_clocked_ns(recordings->session.clock, figures->target_cpu_ns, count.wall_ns));
	return error;
}

/* Was the file found in a directory that the user named? */
static bool is_found(const char *path, const struct options *options)
{
	char **named = options->named;

	while (named && *named && strcmp(*named, path) != 0)
		named++;
	return named && !*named;
}

/*
 * Open the files in turn. What is no recording in an archive, as a crash may leave it, is left out; a file
 * that the user named is not.
 */
static int open_all(struct recordings *recordings, char *const *paths, size_t count,
		    const struct options *options, struct functions *functions)
{
	int error = 0;

	for (size_t i = 0; i < count && !error; i++) {
		struct recording_input *input = &recordings->inputs[recordings->count];

		input->path = paths[i];
		error = open_input(input, functions);
		if (error == -EILSEQ && is_found(paths[i], options) &&
		    (i + 1 < count || recordings->count > 0)) {
			message_warn("%s is not a recording of ljspy: it is left out.", paths[i]);
			recordings->damaged = true;
			error = 0;
			continue;
		}
		recordings->count++;
		if (error)
			explain(paths[i], error);
		else
			recordings->damaged |= judge_extent(input);
	}
	return error;
}

static void explain_reading(const char *path, int error)
{
	message_error_errno(-error, "reading %s", path);
}

/* False after telling the user. */
static bool join_all(struct recordings *recordings, const struct options *options,
		     struct functions *functions)
{
	int error = choose_samples(recordings, options, functions);

	if (!error && (!check_since(recordings, options) || !join_sessions(recordings, options)))
		return false;
	if (!error) {
		recordings->span = join_spans(recordings);
		error = join_sources(recordings);
	}
	if (!error)
		error = count_samples(recordings);
	if (error)
		explain_reading(recordings->inputs[0].path, error);
	return !error;
}

bool recordings_open(char *const *paths, size_t count, const struct options *options,
		     struct functions *functions, struct recordings *ret_recordings)
{
	struct recordings recordings = { .inputs = calloc(count, sizeof(struct recording_input)) };

	if (!recordings.inputs) {
		explain_reading(paths[0], -ENOMEM);
		return false;
	}
	if (open_all(&recordings, paths, count, options, functions) ||
	    !join_all(&recordings, options, functions)) {
		recordings_close(&recordings);
		return false;
	}
	*ret_recordings = recordings;
	return true;
}

void recordings_close(struct recordings *recordings)
{
	sum_free(recordings->sum);
	for (size_t i = 0; i < recordings->count; i++) {
		struct recording_input *input = &recordings->inputs[i];

		filter_free(input->filter);
		recording_reader_close(input->reader);
		if (input->stream)
			fclose(input->stream);
		free(input->left);
	}
	free(recordings->inputs);
}

enum exit_status recordings_run(const struct invocation *invocation, recordings_command *command)
{
	struct functions *functions;
	enum exit_status status;

	if (!options_check_kind(invocation->options, false))
		return EXIT_USAGE;
	if (!invocation->options->format) {
		message_error("The format %s is for heaps: %s is none.",
			      invocation->options->heap_format->name, invocation->options->recordings[0]);
		return EXIT_USAGE;
	}
#ifdef M_MMAP_THRESHOLD /* not musl's */
	/*
	 * What reading a recording took goes back to the kernel: else malloc() learns to keep large pieces.
	 */
	mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
#endif
	/* An interrupt leaves nothing to clean up: let it end ljspy. */
	pthread_sigmask(SIG_SETMASK, &invocation->inherited_mask, NULL);
	functions = functions_new();
	if (!functions) {
		message_error_errno(ENOMEM, "reading recordings");
		return EXIT_NOTHING_DONE;
	}
	status = command(invocation->options, functions);
	functions_free(functions);
	return status;
}

bool recordings_are_kept(const struct options *options, bool has_samples)
{
	struct stat output, input;

	if (!options->output || (has_samples && options->format && options->format->recording) ||
	    stat(options->output, &output) || !S_ISREG(output.st_mode))
		return true;
	for (char *const *path = options->recordings; *path; path++) {
		if (stat(*path, &input) || !same_file(&input, &output))
			continue;
		message_error("-o %s would replace what is to be read.", options->output);
		message_note("Name another file, as what was recorded cannot be had from it.");
		return false;
	}
	return true;
}

/* SPDX-License-Identifier: MIT */
/* ljspy record: write samples to a file of any format. */
#include "src/commands/commands.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "output/labels/json_values.h"
#include "output/recording/recording_reader.h"
#include "output/recording/recording_writer.h"
#include "output/reports/turn_report.h"
#include "output/reports/turns.h"
#include "output/sample/session.h"
#include "output/views/filter.h"
#include "output/views/view.h"
#include "src/commands/record_archive.h"
#include "src/rendering/render.h"
#include "src/commands/report_command.h"
#include "src/linux/clocks/clock.h"
#include "src/linux/files/home.h"
#include "src/program/command_line.h"
#include "src/program/interruption.h"
#include "src/program/kept_recording.h"
#include "src/program/message.h"
#include "src/program/output_file.h"
#include "src/program/progress.h"
#include "src/sampler/sampler_apart.h"
#include "src/targets/choose.h"
#include "src/targets/launched.h"
#include "src/targets/nothing_seen.h"
#include "src/targets/sampled.h"
#include "src/targets/sampling.h"

/*
 * Samples always go into a recording at once. If the output's format is a recording, that
 * is the output itself; else it is a kept recording, from which ljspy renders the output
 * at the end.
 *
 * The sampling thread may have taken on another user's rights, so the first thread opens
 * and names files.
 */
struct recording {
	const struct options *options;
	char name[PROCESS_NAME_MAX]; /* of the target */
	struct functions *functions;
	struct session session;
	struct home home; /* the session's strings are here */
	struct sampler_options sampler_options;
	struct sampler_result result;
	struct output_file output, stats;
	struct kept_recording kept; /* not open if the output is a recording */
	struct recording_writer *writer;
	struct errands {
		sem_t asked, done;
		atomic_bool over;       /* no more errands follow */
		atomic_bool name, move; /* the errands asked for: see do_errands() */
		atomic_bool moved;
		atomic_int naming_error; /* a negative errno */
	} errands;
	bool is_to_have_name, told_other_lua;
	bool published;                     /* the output has its name already */
	bool refused;                       /* nothing could be sampled; the user has been told */
	struct permission_verdict left_out; /* on result.left_out_pid, if result.left_out is not 0 */
	struct progress progress;
	struct interruption interruption; /* after sampling */
	char *words;                      /* of the interruption */
	int error;                        /* the negative errno that ended writing; 0 if none */
	uint64_t missing;                 /* samples that could not be recorded */

	/* With --blocked; else NULL. */
	struct turns *turns;
	struct turn_report *turn_report;
	json_t *members;         /* of the figures' JSON: turns, command; NULL if memory was short */
	struct figures recorded; /* of the samples in the recording */
};

static bool is_good(struct recording *recording, int error)
{
	if (error == -EIO && !recording->error)
		recording->error = errno ? -errno : -EIO;
	return recording->error == 0;
}

/*
 * A message: where the recording is, and the command that renders it. NULL if it has no name or memory is
 * short.
 */
static char *how_to_recover(const struct recording *recording)
{
	const char *path = recording->kept.path;
	char *command = path ? report_command(recording->options, path, recording->output.path) : NULL;
	char *words = NULL;

	if (command && asprintf(&words, "What was recorded is in %s: %s", path, command) < 0)
		words = NULL;
	free(command);
	return words;
}

/* Tell who interrupts ljspy from now on where the recording is now. */
static void set_words(struct recording *recording)
{
	char *before = recording->words;

	recording->words = how_to_recover(recording);
	interruption_set_words(&recording->interruption, recording->words);
	free(before);
}

static bool move(struct recording *recording)
{
	struct kept_recording behind;

	if (!kept_recording_move(&recording->kept, &behind))
		return false;
	set_words(recording);
	kept_recording_remove(&behind);
	return true;
}

/* Ask the first thread, and wait until it has tried. */
static void ask_to_move(struct errands *errands)
{
	errands->move = true;
	sem_post(&errands->asked);
	while (sem_wait(&errands->done))
		;
}

/* If the kept recording's file system is full, move it and go on. False if that fails or error is another. */
static bool go_on_elsewhere(struct recording *recording, int error)
{
	const int cause = errno;

	if (error != -EIO || recording->error || !recording->kept.stream ||
	    (errno != ENOSPC && errno != EDQUOT))
		return false;
	if (recording->errands.over)
		recording->errands.moved = move(recording);
	else
		ask_to_move(&recording->errands);
	errno = cause;
	return recording->errands.moved &&
	       is_good(recording, recording_writer_continue(recording->writer, recording->kept.stream));
}

static int add_sample(struct recording *recording, const struct sample *sample)
{
	int error = recording_writer_add(recording->writer, sample);

	return go_on_elsewhere(recording, error) ? recording_writer_add(recording->writer, sample) : error;
}

/* A sample of a long turn. */
static int keep_sample(void *context, const struct turn *turn, const struct sample *sample)
{
	struct recording *recording = context;
	int error = turn_report_add(recording->turn_report, turn, sample);

	figures_add_sample(&recording->recorded, sample);
	return error ? error : add_sample(recording, sample);
}

static void close_turn(void *context, const struct turn *turn, bool is_long)
{
	struct recording *recording = context;

	turn_report_close(recording->turn_report, turn, is_long);
}

static bool begin_turns(struct recording *recording)
{
	const struct turns_options options = {
		.threshold_ns = recording->options->blocked_ns,
		.take = keep_sample,
		.close = close_turn,
		.context = recording,
	};

	if (!options.threshold_ns)
		return true;
	recording->turns = turns_new(&options);
	recording->turn_report = turn_report_new(options.threshold_ns);
	return recording->turns && recording->turn_report;
}

static void take_sample(void *context, const struct sample *sample)
{
	struct recording *recording = context;
	int error = recording->turns ? turns_add(recording->turns, sample) : add_sample(recording, sample);

	if (is_good(recording, error) && error)
		recording->missing++;
}

/* The recording contains all functions so far; it defines dropped ones again when they return. */
static void keep_functions(void *context)
{
	struct recording *recording = context;

	recording_writer_forget_functions(recording->writer);
	if (!recording->turns)
		return;
	turns_keep_functions(recording->turns);
	turn_report_keep_functions(recording->turn_report);
}

/* Tell it while the command runs, if it runs for long: LuaJIT may still come. */
static void tell_other_lua(struct recording *recording, const struct figures *so_far)
{
	const struct sampler_result *result = &recording->result;

	if (recording->told_other_lua || !*result->other_lua || result->saw_luajit ||
	    so_far->duration_ns < NS_PER_SECOND)
		return;
	recording->told_other_lua = true;
	message_warn("So far there is no LuaJIT: %s runs PUC Lua %s, which ljspy does not know.",
		     recording->options->launch[0], result->other_lua);
}

/* Is there something to lose? */
static bool has_samples(const struct recording *recording, const struct figures *so_far)
{
	return so_far->samples && recording->result.saw_luajit;
}

/* Flush, so that the samples can be read even if ljspy is killed. */
static bool progress(void *context, const struct figures *so_far)
{
	struct recording *recording = context;
	int error = recording_writer_flush(recording->writer);

	if (!go_on_elsewhere(recording, error) && !is_good(recording, error))
		return false;
	if (!recording->is_to_have_name && has_samples(recording, so_far)) {
		recording->is_to_have_name = true;
		recording->errands.name = true;
		sem_post(&recording->errands.asked);
	}
	tell_other_lua(recording, so_far);
	progress_show(&recording->progress, so_far);
	if (!recording->error)
		recording->error = recording->errands.naming_error;
	return recording->error == 0;
}

static void *run_sampler(void *context)
{
	struct recording *recording = context;
	const struct options *options = recording->options;

	recording->refused = !options->launch &&
			     !(choose_check_all(options) && choose_check_layouts(options));
	if (!recording->refused) {
		sampler_run_apart(&recording->sampler_options, &recording->result);
		recording->refused = choose_explain_failure(&recording->result,
							    options->launch ? options->launch[0] : NULL);
	}
	/* Diagnose here: the reason depends on this thread's user. */
	if (recording->result.left_out)
		permission_diagnose(recording->result.left_out_pid, -recording->result.left_out_error,
				    &recording->left_out);
	recording->errands.over = true;
	sem_post(&recording->errands.asked);
	return NULL;
}

/* Do in the first thread what the sampling thread may have no right to, until sampling ends. */
static void do_errands(struct recording *recording)
{
	struct errands *errands = &recording->errands;

	while (!errands->over) {
		if (sem_wait(&errands->asked))
			continue;
		if (atomic_exchange(&errands->move, false)) {
			errands->moved = move(recording);
			sem_post(&errands->done);
		}
		if (!atomic_exchange(&errands->name, false))
			continue;
		if (recording->kept.stream)
			kept_recording_name(&recording->kept);
		else
			errands->naming_error = output_file_publish(&recording->output);
		recording->published = !recording->kept.stream && !errands->naming_error;
	}
}

/* Sample, and write the samples, in a new thread; do its errands here. 0 or a negative errno. */
static int sample(struct recording *recording)
{
	pthread_t thread;
	int error;

	sem_init(&recording->errands.asked, 0, 0);
	sem_init(&recording->errands.done, 0, 0);
	error = pthread_create(&thread, NULL, run_sampler, recording);
	if (error)
		return -error;
	do_errands(recording);
	return -pthread_join(thread, NULL);
}

/* Note where the target's files are. A command that ljspy starts begins where ljspy is. */
static void note_home(struct recording *recording)
{
	const struct options *options = recording->options;
	struct home *home = &recording->home;

	if (home_read(options->launch ? getpid() : options->pids[0], home))
		return;
	recording->session.home = (struct session_home){
		.pid = options->launch ? 0 : home->pid,
		.start_ticks = options->launch ? 0 : home->start_ticks,
		.began_unix_ns = options->launch ? clock_now_ns(CLOCK_REALTIME) : home->began_unix_ns,
		.boot = *home->boot ? home->boot : NULL,
		.root = *home->root ? home->root : NULL,
		.directory = *home->directory ? home->directory : NULL,
	};
}

/*---- After ----*/

/* The output is the recording itself: commit it. */
static bool finish_recording(struct recording *recording)
{
	bool good = render_finish(&recording->output, recording->error);

	if (!good && recording->published)
		message_note("%s can be read up to there.", recording->output.path);
	return good;
}

/* With --blocked, count only samples of long turns. */
static struct figures figures_to_show(const struct recording *recording)
{
	struct figures figures = recording->result.figures;

	if (recording->turns)
		figures_take_samples(&figures, &recording->recorded);
	return figures;
}

/* Render the output from the kept recording. */
static bool render_recording(struct recording *recording)
{
	struct recording_reader *reader = NULL;
	struct filter_options filter_options = recording->options->filter;
	struct session session = recording->session;
	struct filter *filter = NULL;
	struct figures figures = figures_to_show(recording);
	bool good = false;
	int error;

	session.clock = recording->options->clock;
	filter_options.time = filter_time_by(session.clock, recording->session.clock);
	figures.is_part |= filter_options.time != TIME_ALL;
	/* The recording contains all functions: read them from there. */
	functions_free(recording->functions);
	recording->functions = functions_new();
	error = recording->functions
			? recording_reader_open(recording->kept.stream, recording->functions, &reader)
			: -ENOMEM;
	if (error)
		return render_finish(&recording->output, error);
	filter = filter_new(recording_reader_samples(reader), recording->functions, &filter_options);
	good = filter ? render(&recording->output, recording->options, filter_samples(filter), &session,
			       &figures, (struct time_span){ .until_ns = session.duration_ns })
		      : render_finish(&recording->output, -ENOMEM);
	filter_free(filter);
	recording_reader_close(reader);
	return good;
}

/* Render the output. Remove the kept recording only if that works; else tell where it is. */
static bool render_safely(struct recording *recording)
{
	char *words;

	if (render_recording(recording)) {
		interruption_set_words(&recording->interruption, NULL);
		kept_recording_remove(&recording->kept);
		return true;
	}
	if (!kept_recording_name(&recording->kept) &&
	    !(move(recording) && kept_recording_name(&recording->kept)))
		return false;
	words = how_to_recover(recording);
	if (words)
		message_note("%s", words);
	free(words);
	return false;
}

static int print_turns(FILE *out, const void *context)
{
	const struct recording *recording = context;

	return turn_report_print(out, recording->turn_report, recording->result.figures.duration_ns);
}

/* Report the turns. This needs the functions of their samples, so it comes before rendering. */
static void finish_turns(struct recording *recording)
{
	if (!recording->turns)
		return;
	is_good(recording, turns_finish(recording->turns, &recording->missing));
	message_print(print_turns, recording);
	recording->members = json_value_set(recording->members, "blocked",
					    turn_report_json(recording->turn_report));
}

static bool write_stats(struct recording *recording)
{
	if (!recording->stats.stream)
		return true;
	if (recording->result.launched)
		recording->members = json_value_set(recording->members, "command",
						    launched_json(&recording->result));
	errno = 0;
	return render_finish(&recording->stats,
			     recording->members
				     ? figures_write_json(recording->stats.stream, &recording->result.figures,
							  recording->members)
				     : -ENOMEM);
}

static void explain_early_end(int error)
{
	message_error_errno(-error, "The recording ended early");
	if (error == -EFBIG)
		message_note_file_limit();
}

/* Without its end, a recording may lack samples, too. */
static bool finish_writing(struct recording *recording)
{
	const struct figures *figures = &recording->result.figures;
	int error = recording_writer_finish(recording->writer, &recording->session, figures);

	if (go_on_elsewhere(recording, error))
		error = recording_writer_finish(recording->writer, &recording->session, figures);
	if (is_good(recording, error))
		recording->error = error;
	recording_writer_free(recording->writer);
	recording->writer = NULL;
	return recording->error == 0;
}

/* There is nothing to render, now or later. */
static void give_up(struct recording *recording)
{
	message_error("Nothing that was recorded could be written, so there is no output.");
	interruption_set_words(&recording->interruption, NULL);
	kept_recording_remove(&recording->kept);
	render_end(&recording->output, recording->error);
}

static enum exit_status write_results(struct recording *recording)
{
	const char *path = recording->output.path;
	bool good, is_empty = false;

	finish_turns(recording);
	recording->result.figures.dropped += recording->missing;
	good = finish_writing(recording);
	if (recording->kept.stream && !good) {
		explain_early_end(recording->error);
		is_empty = kept_recording_is_empty(&recording->kept);
	}
	if (is_empty)
		give_up(recording);
	else if (recording->kept.stream)
		good &= render_safely(recording);
	else
		good = finish_recording(recording);
	good &= write_stats(recording);
	sampled_tell_figures(&recording->result.figures);
	if (good)
		render_tell(path, recording->options->format->picture);
	return good ? EXIT_ALL_GOOD : is_empty ? EXIT_NOTHING_DONE : EXIT_WITH_ERRORS;
}

static enum exit_status conclude(struct recording *recording)
{
	enum exit_status status;
	bool is_missing;

	if (nothing_seen_explain(recording->options, &recording->result, &recording->left_out)) {
		write_stats(recording);
		return EXIT_NOTHING_DONE;
	}
	recording->session.duration_ns = recording->result.figures.duration_ns;
	recording->result.figures.is_part = recording->turns != NULL;
	if (recording->result.launched)
		recording->session.pid = recording->result.pid;
	if (*recording->result.layout)
		recording->session.layout = recording->result.layout;
	if (*recording->result.roots)
		recording->session.roots = recording->result.roots;
	status = write_results(recording);
	if (recording->missing)
		message_warn("%" PRIu64 " sample%s could not be written.", recording->missing,
			     recording->missing == 1 ? "" : "s");
	is_missing = sampled_explain(recording->options, &recording->result, &recording->left_out);
	return status == EXIT_ALL_GOOD && (recording->missing || is_missing) ? EXIT_WITH_ERRORS : status;
}

/* The targets are free: from here on, an interrupt ends ljspy at once. */
static enum exit_status conclude_at_ease(struct recording *recording)
{
	struct sampler_result *result = &recording->result;
	enum exit_status status;
	bool is_watched;

	/* One that took less than a second has no name yet, and rendering may take long. */
	if (recording->kept.stream && has_samples(recording, &result->figures))
		kept_recording_name(&recording->kept);
	set_words(recording);
	/* Sampling may have ended with the command before ljspy was told how that did. */
	launched_look(result);
	recording->interruption.command = result->launched && !result->exit_known ? result->pid : 0;
	recording->interruption.signal = result->interrupted_by;
	is_watched = interruption_begin(&recording->interruption);
	status = conclude(recording);
	if (is_watched)
		interruption_end(&recording->interruption);
	return status;
}

/* 0 or a negative errno. */
static int open_kept(struct recording *recording)
{
	char *base = options_default_output(recording->name, recording->session.pid,
					    recording->options->format);
	int error = base ? kept_recording_open(&recording->output, base, &recording->kept) : -ENOMEM;

	free(base);
	return error;
}

/* 0 or a negative errno. */
static int begin(struct recording *recording)
{
	int error = 0;

	recording->functions = functions_new();
	if (!recording->functions)
		return -ENOMEM;
	if (!recording->options->format->recording)
		error = open_kept(recording);
	if (error)
		return error;
	recording->session.start_unix_ns = clock_now_ns(CLOCK_REALTIME);
	recording->session.start_ns = clock_now_ns(CLOCK_MONOTONIC);
	recording->session.clock = weights[recording->options->clock].clock;
	progress_begin(&recording->progress, recording->options->duration_ns);
	return recording_writer_new(recording->kept.stream ? recording->kept.stream
							   : recording->output.stream,
				    &recording->session, &recording->writer);
}

static void set_sampler_options(struct recording *recording, const struct invocation *invocation)
{
	const struct options *options = recording->options;
	struct sampler_options *sampler = &recording->sampler_options;

	*sampler = sampling_options(options);
	sampler->launch = options->launch;
	sampler->launch_mask = &invocation->inherited_mask;
	sampler->wall_clock = weights[options->clock].is_elapsed;
	sampler->alloc = options->alloc;
	sampler->coroutines = options->coroutines;
	sampler->requests = options->requests;
	sampler->turns = options->blocked_ns > 0;
	sampler->namer.traces = options->traces;
	sampler->namer.details = options->details;
	sampler->namer.errors = options->details ? ERRORS_CAUGHT : ERRORS_HIDDEN;
	sampler->functions = recording->functions;
	sampler->take = take_sample;
	sampler->progress = progress;
	sampler->tell_refused = sampled_tell_refused;
	sampler->keep = keep_functions;
	sampler->context = recording;
}

static enum exit_status record(struct recording *recording, const struct invocation *invocation)
{
	const struct options *options = recording->options;
	regex_t pattern;
	int error;

	recording->session.command_line = invocation->command_line;
	error = begin_turns(recording) ? begin(recording) : -ENOMEM;
	if (error) {
		choose_explain_error(-error, "starting to record");
		return EXIT_NOTHING_DONE;
	}
	set_sampler_options(recording, invocation);
	if (sampling_follow(options, &pattern, &recording->sampler_options)) {
		message_error_errno(ENOMEM, "starting to record");
		return EXIT_NOTHING_DONE;
	}
	error = sample(recording);
	sampling_forget(&recording->sampler_options, &pattern);
	launched_pass_on(&recording->result);
	progress_end(&recording->progress);
	if (error) {
		choose_explain_error(-error, "starting to record");
		return EXIT_NOTHING_DONE;
	}
	return recording->refused ? EXIT_NOTHING_DONE : conclude_at_ease(recording);
}

static bool open_outputs(struct recording *recording, const char *path, enum exit_status *ret_status)
{
	const char *stats = recording->options->stats;

	*ret_status = EXIT_NOTHING_DONE;
	if (!render_open(&recording->output, path, "-o") ||
	    (stats && !render_open(&recording->stats, stats, "--stats")))
		return false;
	if (!stats || !output_file_is_same(&recording->output, &recording->stats))
		return true;
	message_error("-o and --stats are to write the same file, %s.", path);
	message_note("Name two: -o %s --stats %s", path, "stats.json");
	*ret_status = EXIT_USAGE;
	return false;
}

enum exit_status command_record(const struct invocation *invocation)
{
	struct options *options = invocation->options;
	struct recording *recording = calloc(1, sizeof(*recording));
	char *default_path = NULL, *target;
	enum exit_status status = EXIT_NOTHING_DONE;
	const char *path = options->output;

	if (options_want_archive(options)) {
		free(recording);
		return record_archive(invocation);
	}
	if (!recording) {
		message_error_errno(ENOMEM, "starting to record");
		return EXIT_NOTHING_DONE;
	}
	if (!options->launch && !choose_check_presence(options)) {
		free(recording);
		return EXIT_NOTHING_DONE;
	}
	/* Who reads what ljspy says may stall; neither recording nor the output waits for that. */
	message_must_not_wait(true);
	recording->options = options;
	recording->members = json_object();
	recording->interruption.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	target = sampling_title(options, recording->name, &recording->session.pid);
	recording->session.target = target;
	note_home(recording);
	if (!path)
		path = default_path = options_default_output(recording->name, recording->session.pid,
							     options->format);
	if (path && open_outputs(recording, path, &status))
		status = record(recording, invocation);
	output_file_abandon(&recording->output);
	output_file_abandon(&recording->stats);
	kept_recording_close(&recording->kept);
	recording_writer_free(recording->writer);
	free(recording->words);
	if (options->launch) {
		launched_await(&recording->result, options->launch[0]);
		status = (enum exit_status)launched_exit_status(&recording->result, status);
	}
	turns_free(recording->turns);
	turn_report_free(recording->turn_report);
	json_decref(recording->members);
	functions_free(recording->functions);
	free(target);
	free(default_path);
	free(recording);
	return status;
}

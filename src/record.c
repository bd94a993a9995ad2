#include "src/commands.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "output/filter.h"
#include "output/recording_reader.h"
#include "output/recording_writer.h"
#include "output/session.h"
#include "output/turn_report.h"
#include "output/turns.h"
#include "src/choose.h"
#include "src/clock.h"
#include "src/message.h"
#include "src/output_file.h"
#include "src/progress.h"
#include "src/render.h"
#include "src/sampler_apart.h"

/*
 * Samples go into a recording at once, whatever is asked for: into the output
 * itself if that is to be one, else into a file without a name, from which
 * the output is rendered at the end.
 */
struct recording {
	const struct options *options;
	struct functions *functions;
	struct session session;
	struct sampler_options sampler_options;
	struct sampler_result result;
	struct output_file output, stats;
	FILE *scratch;		/* NULL if the output is a recording */
	struct recording_writer *writer;
	bool published;		/* the output has its name already */
	struct progress progress;
	int error;		/* that ended the writing, a positive errno; 0 if none */
	uint64_t missing;	/* samples for which memory was short */

	/* Where only long turns of event loops are wanted; else NULL. */
	struct turns *turns;
	struct turn_report *turn_report;
	json_t *others;		/* of the figures as JSON: what there is to tell of turns */
	struct figures kept;	/* of the samples in the recording */
};

static bool is_good(struct recording *recording, int error)
{
	if (error == -EIO && !recording->error)
		recording->error = errno ? errno : EIO;
	return recording->error == 0;
}

/* A sample of a long turn. */
static int keep_sample(void *context, const struct turn *turn, const struct sample *sample)
{
	struct recording *recording = context;
	int error = turn_report_add(recording->turn_report, turn, sample);

	figures_add_sample(&recording->kept, sample);
	return error ? error : recording_writer_add(recording->writer, sample);
}

static int close_turn(void *context, const struct turn *turn, bool is_long)
{
	struct recording *recording = context;

	return turn_report_close(recording->turn_report, turn, is_long);
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
	int error = recording->turns ? turns_add(recording->turns, sample)
				     : recording_writer_add(recording->writer, sample);

	if (is_good(recording, error) && error)
		recording->missing++;
}

/* What has been sampled can be read, should ljspy be killed. */
static bool pulse(void *context, const struct figures *so_far)
{
	struct recording *recording = context;

	if (!is_good(recording, recording_writer_flush(recording->writer)))
		return false;
	if (!recording->scratch && !recording->published && so_far->samples &&
	    recording->result.saw_luajit) {
		recording->error = -output_file_publish(&recording->output);
		recording->published = recording->error == 0;
	}
	progress_show(&recording->progress, so_far);
	return recording->error == 0;
}

static void *run_sampler(void *context)
{
	struct recording *recording = context;

	sampler_run_apart(&recording->sampler_options, &recording->result);
	return NULL;
}

/* What has been sampled is written by a thread of its own. */
static int sample(struct recording *recording)
{
	pthread_t thread;
	int error = pthread_create(&thread, NULL, run_sampler, recording);

	if (error)
		return -error;
	return -pthread_join(thread, NULL);
}

/*---- Before ----*/

/* What the target is called in the picture and in the name of the file. */
static char *describe_target(const struct options *options, char ret_name[static PROCESS_NAME_MAX],
			     pid_t *ret_pid)
{
	struct process process;
	char *title;

	if (options->launch) {
		const char *slash = strrchr(options->launch[0], '/');

		strncpy(ret_name, slash ? slash + 1 : options->launch[0], PROCESS_NAME_MAX - 1);
		*ret_pid = 0;
		return strdup(options->launch[0]);
	}
	if (process_read(options->pids[0], &process) != 0)
		return NULL;
	memcpy(ret_name, process.name, PROCESS_NAME_MAX);
	*ret_pid = options->pid_count == 1 ? process.pid : 0;
	title = process_title(&process);
	process_clear(&process);
	return title;
}

/*---- After ----*/

/* The recording is in the output: it ends here. */
static bool finish_recording(struct recording *recording)
{
	bool good = render_finish(&recording->output, -recording->error);

	if (!good && recording->published)
		message_note("%s can be read up to there.", recording->output.path);
	return good;
}

/* Of long turns only, what was seen elsewhere does not count. */
static struct figures figures_to_show(const struct recording *recording)
{
	struct figures figures = recording->result.figures;

	if (recording->turns) {
		figures.samples = recording->kept.samples;
		memcpy(figures.lost, recording->kept.lost, sizeof(figures.lost));
		memcpy(figures.frames, recording->kept.frames, sizeof(figures.frames));
	}
	return figures;
}

/* From what has been recorded. */
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
	/* All functions are in the recording. */
	functions_free(recording->functions);
	recording->functions = functions_new();
	error = recording->functions
		? recording_reader_open(recording->scratch, recording->functions, &reader) : -ENOMEM;
	if (error)
		return render_finish(&recording->output, error);
	filter = filter_new(recording_reader_samples(reader), recording->functions,
			    &filter_options);
	good = filter ? render(&recording->output, recording->options, filter_samples(filter),
			       &session, &figures)
		      : render_finish(&recording->output, -ENOMEM);
	filter_free(filter);
	recording_reader_close(reader);
	return good;
}

/* Tell of the turns, which needs the functions of their samples: before anything is rendered. */
static bool finish_turns(struct recording *recording)
{
	bool good;

	if (!recording->turns)
		return true;
	good = is_good(recording, turns_finish(recording->turns));
	turn_report_print(stderr, recording->turn_report, recording->result.figures.duration_ns);
	recording->others = json_pack("{s:o}", "blocked", turn_report_json(recording->turn_report));
	return good && recording->others;
}

static bool write_results(struct recording *recording)
{
	const char *path = recording->output.path;
	const struct figures *figures = &recording->result.figures;
	bool good = finish_turns(recording);
	int error = recording_writer_finish(recording->writer, &recording->session, figures);

	good &= is_good(recording, error);
	recording_writer_free(recording->writer);
	recording->writer = NULL;
	if (recording->scratch && !good)
		message_error_errno(recording->error, "The recording ended early");
	if (recording->scratch)
		good &= render_recording(recording);
	else
		good = finish_recording(recording);
	if (recording->stats.stream) {
		errno = 0;
		good &= render_finish(&recording->stats, figures_write_json(recording->stats.stream, figures,
									    recording->others));
	}
	figures_print(stderr, figures);
	if (good)
		render_tell(path, recording->options->format);
	return good;
}

/* Why there is nothing to write; false if there is. */
static bool explain_failure(const struct recording *recording)
{
	const struct sampler_result *result = &recording->result;
	const struct options *options = recording->options;

	if (choose_explain_failure(result, options->launch ? options->launch[0] : NULL))
		return true;
	if (options->launch && !result->saw_luajit) {
		message_error("%s did not run LuaJIT.", options->launch[0]);
		return true;
	}
	return false;
}

/* Wait for the command that was started, as a shell does. */
static void await_command(const struct recording *recording)
{
	const struct sampler_result *result = &recording->result;

	if (!result->launched || result->exit_known ||
	    (result->end != SAMPLER_DURATION_OVER && result->end != SAMPLER_TOLD_TO_END))
		return;
	message_note("The recording is written; %s (%d) goes on until it ends or is interrupted.",
		     recording->options->launch[0], result->pid);
	waitpid(result->pid, NULL, 0);
}

static enum exit_status conclude(struct recording *recording)
{
	enum exit_status status = EXIT_ALL_GOOD;

	if (explain_failure(recording))
		return EXIT_NOTHING_DONE;
	recording->session.duration_ns = recording->result.figures.duration_ns;
	if (*recording->result.layout)
		recording->session.layout = recording->result.layout;
	if (recording->missing) {
		message_warn("Memory ran short; %" PRIu64 " samples are missing.", recording->missing);
		status = EXIT_WITH_ERRORS;
	}
	if (!write_results(recording))
		status = EXIT_WITH_ERRORS;
	if (choose_explain_early_end(&recording->result))
		status = EXIT_WITH_ERRORS;
	if (recording->result.unknown_pid) {
		message_warn("LuaJIT in process %d is laid out in a way that is not known, so its Lua is not shown: %s.",
			     recording->result.unknown_pid, recording->result.unknown_reason);
		status = EXIT_WITH_ERRORS;
	}
	if (recording->result.left_out) {
		choose_explain(recording->result.left_out_pid, recording->result.left_out_error);
		message_warn("%zu processes were left out, this one among them.",
			     recording->result.left_out);
		status = EXIT_WITH_ERRORS;
	}
	if (recording->result.end == SAMPLER_TARGETS_ENDED && !recording->options->launch)
		message_note("The recording ended early, with %s.",
			     recording->options->pid_count > 1 || recording->options->subprocesses
				     ? "the last of its targets" : "its target");
	return status;
}

/* 0 or a negative errno. */
static int begin(struct recording *recording)
{
	int error = 0;

	recording->functions = functions_new();
	if (!recording->functions)
		return -ENOMEM;
	if (!recording->options->format->recording)
		error = output_file_scratch(&recording->output, &recording->scratch);
	if (error)
		return error;
	recording->session.start_unix_ns = clock_now_ns(CLOCK_REALTIME);
	recording->session.start_ns = clock_now_ns(CLOCK_MONOTONIC);
	recording->session.clock = recording->options->clock == PROFILE_CPU_TIME ? PROFILE_CPU_TIME
										  : PROFILE_WALL_TIME;
	progress_begin(&recording->progress, recording->options->duration_ns);
	return recording_writer_new(recording->scratch ? recording->scratch : recording->output.stream,
				    &recording->session, &recording->writer);
}

static enum exit_status record(struct recording *recording, const struct invocation *invocation)
{
	const struct options *options = recording->options;
	regex_t pattern;
	int error;

	recording->session.command_line = invocation->command_line;
	error = begin_turns(recording) ? begin(recording) : -ENOMEM;
	if (error) {
		message_error_errno(-error, "starting to record");
		return EXIT_NOTHING_DONE;
	}
	recording->sampler_options = (struct sampler_options){
		.pids = options->pids,
		.pid_count = options->pid_count,
		.launch = options->launch,
		.launch_mask = &invocation->inherited_mask,
		.subprocesses = options->subprocesses,
		.pattern = options->name ? &pattern : NULL,
		.no_stop = options->no_stop,
		.allow_attach = options->allow_attach,
		.rate_hz = options->rate_hz,
		.wall_clock = options->clock != PROFILE_CPU_TIME,
		.coroutines = options->coroutines,
		.turns = options->blocked_ns > 0,
		.duration_ns = options->duration_ns,
		.namer = { .native = options->native, .traces = options->traces },
		.layout = options->layout,
		.functions = recording->functions,
		.take = take_sample,
		.pulse = pulse,
		.context = recording,
	};
	/* It has served before, to find the first ones. */
	if (options->name && process_pattern(options->name, &pattern, NULL)) {
		message_error_errno(ENOMEM, "starting to record");
		return EXIT_NOTHING_DONE;
	}
	error = sample(recording);
	if (options->name)
		regfree(&pattern);
	/* The targets are free. From here on an interrupt ends ljspy at once. */
	pthread_sigmask(SIG_SETMASK, &invocation->inherited_mask, NULL);
	progress_end(&recording->progress);
	if (error) {
		message_error_errno(-error, "starting to record");
		return EXIT_NOTHING_DONE;
	}
	return conclude(recording);
}

enum exit_status command_record(const struct invocation *invocation)
{
	struct options *options = invocation->options;
	struct recording *recording = calloc(1, sizeof(*recording));
	char name[PROCESS_NAME_MAX] = "", *default_path = NULL, *target;
	enum exit_status status = EXIT_NOTHING_DONE;
	const char *path = options->output;

	if (!recording) {
		message_error_errno(ENOMEM, "starting to record");
		return EXIT_NOTHING_DONE;
	}
	recording->options = options;
	target = describe_target(options, name, &recording->session.pid);
	recording->session.target = target;
	if (!path)
		path = default_path = options_default_output(name, recording->session.pid,
							     options->format);
	if (path && render_open(&recording->output, path) &&
	    (!options->stats || render_open(&recording->stats, options->stats)) &&
	    (options->launch || (choose_check_all(options) &&
				 choose_check_layout(options->pids[0], options->layout)))) {
		status = record(recording, invocation);
		if (status != EXIT_NOTHING_DONE)
			await_command(recording);
	}
	output_file_abandon(&recording->output);
	output_file_abandon(&recording->stats);
	if (recording->scratch)
		fclose(recording->scratch);
	recording_writer_free(recording->writer);
	turns_free(recording->turns);
	turn_report_free(recording->turn_report);
	json_decref(recording->others);
	functions_free(recording->functions);
	free(target);
	free(default_path);
	free(recording);
	return status;
}

#include "src/commands.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "output/flamegraph.h"
#include "output/folded.h"
#include "output/profile.h"
#include "output/session.h"
#include "src/choose.h"
#include "src/message.h"
#include "src/output_file.h"
#include "src/sampler.h"

struct recording {
	const struct options *options;
	struct functions *functions;
	struct profile *profile;
	struct session session;
	struct sampler_options sampler_options;
	struct sampler_result result;
	struct output_file output, stats;
	bool out_of_memory;
};

static void take_sample(void *context, const struct sample *sample)
{
	struct recording *recording = context;

	if (profile_add(recording->profile, sample))
		recording->out_of_memory = true;
}

static void *run_sampler(void *context)
{
	struct recording *recording = context;

	sampler_run(&recording->sampler_options, &recording->result);
	return NULL;
}

/* The thread must end for the targets to be free, so it is one of its own. */
static int sample(struct recording *recording)
{
	pthread_t thread;
	int error = pthread_create(&thread, NULL, run_sampler, recording);

	if (error)
		return -error;
	return -pthread_join(thread, NULL);
}

/*---- Before ----*/

static bool open_output(struct output_file *file, const char *path)
{
	int error = output_file_open(path, file);

	if (error)
		message_error_errno(-error, "%s", path);
	return error == 0;
}

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

static int write_profile(struct recording *recording)
{
	struct folded_options folded = { .annotate = recording->options->annotate };
	struct flamegraph_options flamegraph = { .inverted = false };

	if (recording->options->format == OUTPUT_FOLDED)
		return folded_write(recording->output.stream, recording->profile, &folded);
	return flamegraph_write(recording->output.stream, recording->profile, &recording->session,
				&recording->result.figures, &flamegraph);
}

/* Write one file; false if the user had to be told that it failed. */
static bool finish(struct output_file *file, int error)
{
	/* The stream's own error is in errno. */
	if (error == -EIO && errno)
		error = -errno;
	if (error)
		output_file_abandon(file);
	else
		error = output_file_commit(file);
	if (error)
		message_error_errno(-error, "%s", strcmp(file->path, "-") ? file->path
									 : "standard output");
	return error == 0;
}

static bool write_results(struct recording *recording)
{
	const char *path = recording->output.path;
	bool good;

	errno = 0;
	good = finish(&recording->output, write_profile(recording));
	if (recording->stats.stream) {
		errno = 0;
		good &= finish(&recording->stats, figures_write_json(recording->stats.stream,
								     &recording->result.figures));
	}
	figures_print(stderr, &recording->result.figures);
	if (good && strcmp(path, "-") != 0)
		message_note("Wrote %s%s", path, recording->options->format == OUTPUT_SVG
						      ? "; open it in a browser" : "");
	return good;
}

/* Why there is nothing to write; false if there is. */
static bool explain_failure(const struct recording *recording)
{
	const struct sampler_result *result = &recording->result;
	const struct options *options = recording->options;

	if (result->end == SAMPLER_NO_LUAJIT) {
		choose_explain_no_luajit(result->pid);
		return true;
	}
	if (result->end == SAMPLER_FAILED) {
		if (result->error == EAGAIN) {
			message_error("No timer can be had.");
			message_note("As many signals as you may have pending are in use; allow more: ulimit -i");
		} else if (result->pid == 0 && !options->launch) {
			message_error_errno(result->error, "starting to record");
		} else if (options->launch)
			message_error_errno(result->error, "%s", options->launch[0]);
		else
			choose_explain(result->pid, result->error);
		return true;
	}
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

	if (!result->launched || result->exit_known || result->end != SAMPLER_DURATION_OVER)
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
	if (recording->out_of_memory) {
		message_warn("Memory ran short; some samples are missing.");
		status = EXIT_WITH_ERRORS;
	}
	if (!write_results(recording))
		status = EXIT_WITH_ERRORS;
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

static enum exit_status record(struct recording *recording, const struct invocation *invocation)
{
	const struct options *options = recording->options;
	struct profile_options profile_options = {
		.weight = PROFILE_CPU_TIME,
		.by_line = options->lines,
		.by_compiled = options->annotate,
	};
	regex_t pattern;
	struct timespec now;
	int error;

	recording->functions = functions_new();
	recording->profile = profile_new(&profile_options);
	if (!recording->functions || !recording->profile) {
		message_error_errno(ENOMEM, "starting to record");
		return EXIT_NOTHING_DONE;
	}
	clock_gettime(CLOCK_REALTIME, &now);
	recording->session.command_line = invocation->command_line;
	recording->session.start_unix_ns = (uint64_t)now.tv_sec * 1000000000u +
					   (uint64_t)now.tv_nsec;
	recording->session.clock = PROFILE_CPU_TIME;
	recording->sampler_options = (struct sampler_options){
		.pids = options->pids,
		.pid_count = options->pid_count,
		.launch = options->launch,
		.launch_mask = &invocation->inherited_mask,
		.subprocesses = options->subprocesses,
		.pattern = options->name ? &pattern : NULL,
		.rate_hz = options->rate_hz,
		.duration_ns = options->duration_ns,
		.namer = { .native = options->native },
		.layout = options->layout,
		.functions = recording->functions,
		.take = take_sample,
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
	if (path && open_output(&recording->output, path) &&
	    (!options->stats || open_output(&recording->stats, options->stats)) &&
	    (options->launch || (choose_check_all(options) &&
				 choose_check_layout(options->pids[0], options->layout)))) {
		status = record(recording, invocation);
		if (status != EXIT_NOTHING_DONE)
			await_command(recording);
	}
	output_file_abandon(&recording->output);
	output_file_abandon(&recording->stats);
	profile_free(recording->profile);
	functions_free(recording->functions);
	free(target);
	free(default_path);
	free(recording);
	return status;
}

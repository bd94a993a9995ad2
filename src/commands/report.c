/* SPDX-License-Identifier: MIT */
/* ljspy report: show recordings in any format. */
#include "src/commands/commands.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "output/reports/request_life.h"
#include "src/archive/archive_files.h"
#include "src/commands/heap_files.h"
#include "src/commands/recordings.h"
#include "src/rendering/render.h"
#include "src/program/message.h"

/* One request's life in place of a profile, in the formats that have words for it. 0 or a negative errno. */
static int write_life(FILE *out, const struct options *options, const struct recordings *recordings)
{
	struct request_life life = {
		.connection = options->filter.connection,
		.number = options->filter.number,
	};
	int error = request_life_read(recordings->source, &recordings->session, &recordings->figures, &life);

	if (!error && life.is_ambiguous)
		message_warn(
			"Several processes have a request of that number. This is the one of process %d; "
			"-p chooses another one.",
			(int)life.pid);
	if (!error)
		error = strcmp(options->format->name, "json") == 0
				? request_life_write_json(out, &life, &recordings->session)
				: request_life_print(out, &life, &recordings->session);
	request_life_clear(&life);
	return error;
}

static bool wants_life(const struct options *options)
{
	return options->filter.number &&
	       (strcmp(options->format->name, "json") == 0 || strcmp(options->format->name, "text") == 0);
}

static bool write_report(struct output_file *output, const struct options *options,
			 const struct recordings *recordings)
{
	if (wants_life(options))
		return render_finish(output, write_life(output->stream, options, recordings));
	return render(output, options, recordings->source, &recordings->session, &recordings->figures,
		      recordings->span);
}

static enum exit_status report(struct options *options, struct functions *functions)
{
	const char *path = options->output ? options->output : "-";
	enum exit_status status = EXIT_NOTHING_DONE;
	struct output_file output = { 0 };
	struct recordings recordings;
	size_t count = 0;

	if (!archive_files_find(options))
		return EXIT_NOTHING_DONE;
	while (options->recordings[count])
		count++;
	if (!recordings_open(options->recordings, count, options, functions, &recordings))
		return EXIT_NOTHING_DONE;
	if (recordings.figures.samples == 0 && options->filter.number) {
		message_error("No sample has request %" PRIu64 ".%" PRIu64 ".", options->filter.connection,
			      options->filter.number);
		message_note("`ljspy report` lists the slowest requests with their numbers, if they were "
			     "recorded by `ljspy record --requests`.");
		recordings_close(&recordings);
		return EXIT_NOTHING_DONE;
	}
	if (!recordings_are_kept(options, recordings.figures.samples > 0)) {
		recordings_close(&recordings);
		return EXIT_USAGE;
	}
	if (!render_open(&output, path, "-o")) {
		recordings_close(&recordings);
		return EXIT_NOTHING_DONE;
	}
	if (recordings.figures.samples == 0)
		message_warn("There are no such samples.");
	if (write_report(&output, options, &recordings)) {
		render_tell(path, options->format->picture);
		status = recordings.damaged ? EXIT_WITH_ERRORS : EXIT_ALL_GOOD;
	}
	recordings_close(&recordings);
	return status;
}

enum exit_status command_report(const struct invocation *invocation)
{
	if (!recordings_are_kept(invocation->options, true))
		return EXIT_USAGE;
	if (heap_files_are_given(invocation->options))
		return heap_files_run(invocation);
	return recordings_run(invocation, report);
}

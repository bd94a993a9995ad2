/* SPDX-License-Identifier: MIT */
/* ljspy report: show recordings in any format. */
#include "src/commands/commands.h"

#include <errno.h>

#include "src/archive/archive_files.h"
#include "src/commands/heap_files.h"
#include "src/commands/recordings.h"
#include "src/rendering/render.h"
#include "src/program/message.h"

static enum exit_status report(struct options *options, struct functions *functions)
{
	const char *path = options->output ? options->output : "-";
	enum exit_status status = EXIT_WITH_ERRORS;
	struct output_file output = { 0 };
	struct recordings recordings;
	size_t count = 0;

	if (!archive_files_find(options))
		return EXIT_NOTHING_DONE;
	while (options->recordings[count])
		count++;
	if (!recordings_open(options->recordings, count, options, functions, &recordings))
		return EXIT_NOTHING_DONE;
	if (!render_open(&output, path, "-o")) {
		recordings_close(&recordings);
		return EXIT_NOTHING_DONE;
	}
	if (recordings.figures.samples == 0)
		message_warn("There are no such samples.");
	if (render(&output, options, recordings.source, &recordings.session, &recordings.figures)) {
		render_tell(path, options->format);
		status = recordings.damaged ? EXIT_WITH_ERRORS : EXIT_ALL_GOOD;
	}
	recordings_close(&recordings);
	return status;
}

enum exit_status command_report(const struct invocation *invocation)
{
	if (heap_files_are_given(invocation->options))
		return heap_files_run(invocation);
	return recordings_run(invocation, report);
}

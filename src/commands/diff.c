/* SPDX-License-Identifier: MIT */
/* ljspy diff: how two recordings differ. */
#include "src/commands/commands.h"

#include <errno.h>

#include "src/commands/heap_files.h"
#include "src/commands/recordings.h"
#include "src/rendering/render.h"
#include "src/program/message.h"

static struct side side_of(const char *name, const struct recordings *recordings)
{
	return (struct side){
		.name = name,
		.source = recordings->source,
		.session = &recordings->session,
		.figures = &recordings->figures,
	};
}

/* One recording is compared with itself: its slow requests with its other ones. */
static bool is_by_slowness(const struct options *options)
{
	return !options->recordings[1];
}

static bool write_difference(const struct options *options, const struct recordings *before,
			     const struct recordings *after)
{
	const bool by_slowness = is_by_slowness(options);
	struct side sides[2] = {
		side_of(by_slowness ? "the other requests" : options->recordings[0], before),
		side_of(by_slowness ? "the slow requests" : options->recordings[1], after),
	};
	struct view view = render_view(options, &before->session, before->span);
	const char *path = options->output ? options->output : "-";
	struct output_file output = { 0 };

	if (before->session.clock != after->session.clock) {
		message_error("One of them is by the clock %s, and the other by %s: they cannot be compared.",
			      weights[before->session.clock].name, weights[after->session.clock].name);
		return false;
	}
	if (!render_open(&output, path, "-o"))
		return false;
	errno = 0;
	if (!render_finish(&output, options->format->compare(output.stream, &sides[0], &sides[1], &view)))
		return false;
	render_tell(path, options->format->picture);
	return true;
}

static enum exit_status diff(struct options *options, struct functions *functions)
{
	enum exit_status status = EXIT_NOTHING_DONE;
	struct recordings before, after;

	if (!options->format->compare) {
		options_explain_no_comparison(options->format->name);
		return EXIT_USAGE;
	}
	/* An edit above a function moves it; it is still the same function. */
	options->filter.without_line = !options->lines;
	/* So is one whose files a deploy has moved to another directory. */
	options->filter.without_root = true;
	options->filter.is_faster = is_by_slowness(options);
	if (!recordings_open(options->recordings, 1, options, functions, &before))
		return status;
	options->filter.is_faster = false;
	if (recordings_open(options->recordings + (is_by_slowness(options) ? 0 : 1), 1, options, functions,
			    &after)) {
		if (after.figures.samples == 0 && is_by_slowness(options))
			message_error("No request was seen to take that long.");
		else if (write_difference(options, &before, &after))
			status = before.damaged || after.damaged ? EXIT_WITH_ERRORS : EXIT_ALL_GOOD;
		recordings_close(&after);
	}
	recordings_close(&before);
	return status;
}

enum exit_status command_diff(const struct invocation *invocation)
{
	if (!recordings_are_kept(invocation->options, true))
		return EXIT_USAGE;
	if (heap_files_are_given(invocation->options))
		return heap_files_run(invocation);
	return recordings_run(invocation, diff);
}

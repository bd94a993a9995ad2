#include "src/render.h"

#include <errno.h>
#include <string.h>

#include "src/filter_arguments.h"
#include "src/message.h"

bool render_open(struct output_file *file, const char *path)
{
	int error = output_file_open(path, file);

	if (error)
		message_error_errno(-error, "%s", path);
	return error == 0;
}

bool render_finish(struct output_file *file, int error)
{
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

struct view render_view(const struct options *options, const struct session *session)
{
	bool several = options->recordings && options->recordings[0] && options->recordings[1];

	return (struct view){
		.weight = session->clock,
		.by_line = options->lines,
		.annotate = options->annotate,
		.inverted = options->inverted,
		.heatmap = options->heatmap,
		.span = {
			.since_ns = options->since_ns,
			.until_ns = several ? 0 : options->since_ns + session->duration_ns,
		},
		.min_percent = options->min_percent,
		.group = filter_arguments_group_name(options->filter.group),
	};
}

bool render(struct output_file *file, const struct options *options, struct sample_source *source,
	    const struct session *session, const struct figures *figures)
{
	struct view view = render_view(options, session);

	errno = 0;
	return render_finish(file, options->format->write(file->stream, source, session, figures, &view));
}

void render_tell(const char *path, const struct format *format)
{
	if (strcmp(path, "-") != 0)
		message_note("Wrote %s%s", path, format->picture ? "; open it in a browser" : "");
}

/* SPDX-License-Identifier: MIT */
#include "src/rendering/render.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/rendering/sources.h"
#include "src/options/filter_arguments.h"
#include "src/program/message.h"
#include "src/targets/choose.h"

/* What ljspy is short of is not the file's fault. error is a positive errno. */
static void explain_shortage(const char *path, int error)
{
	message_error("%s cannot be written.", strcmp(path, "-") ? path : "Standard output");
	choose_explain_error(error, path);
}

/* Tell why the file cannot be written, and what to do about it. error is a positive errno. */
static void explain(const char *path, const char *directory, const char *option, int error)
{
	const bool is_here = strcmp(directory, ".") == 0;
	char here[PATH_MAX];

	if (is_here && getcwd(here, sizeof(here)))
		directory = here;
	if (error == EMFILE || error == ENFILE || error == ENOMEM) {
		explain_shortage(path, error);
	} else if (error == EISDIR) {
		message_error("%s is a directory, not a file to write to.", path);
		message_note("Name a file in it: %s %s%sNAME", option, path,
			     path[strlen(path) - 1] == '/' ? "" : "/");
	} else if (error == ENOENT && is_here && directory != here) { /* getcwd() has failed */
		message_error("%s cannot be written: the current directory has been removed.", path);
		message_note("Change to another one, or name a file elsewhere with %s FILE.", option);
	} else if ((error == ENOENT && !is_here) || error == ENOTDIR) {
		message_error("%s cannot be written: there is no directory %s.", path, directory);
		message_note("Make it, or name a file elsewhere with %s FILE.", option);
	} else if (access(path, F_OK) == 0 && access(path, W_OK)) {
		message_error_errno(error, "%s cannot be written", path);
		message_note("Name another file with %s FILE.", option);
	} else if (error == EPERM && !output_file_may_replace(path, directory)) {
		message_error(
			"%s cannot be written: it belongs to another user, and %s lets nobody else replace it.",
			path, directory);
		message_note("Name another file with %s FILE.", option);
	} else if (error == EACCES || error == EPERM || error == EROFS || error == ENOENT) {
		message_error("%s cannot be written: the %sdirectory %s may not be written to (%s).", path,
			      is_here ? "current " : "", directory, strerror(error));
		if (access("/tmp", W_OK))
			message_note("Name a file elsewhere with %s FILE; - is standard output.", option);
		else
			message_note("Name a file elsewhere, such as %s /tmp/%s", option,
				     strrchr(path, '/') ? strrchr(path, '/') + 1 : path);
	} else {
		message_error_errno(error, "%s", strcmp(path, "-") ? path : "standard output");
	}
}

void render_explain_open(const char *path, const char *option, int error)
{
	char *directory = output_file_directory(path);

	explain(path, directory ? directory : "?", option, -error);
	free(directory);
}

bool render_open(struct output_file *file, const char *path, const char *option)
{
	int error = output_file_open(path, file);

	if (error)
		render_explain_open(path, option, error);
	return error == 0;
}

int render_end(struct output_file *file, int error)
{
	error = output_file_error(error);
	if (!error)
		return output_file_commit(file);
	output_file_abandon(file);
	return error;
}

void render_explain_write(const char *path, int error)
{
	if (error == -ENOMEM)
		explain_shortage(path, ENOMEM);
	else if (strcmp(path, "-") == 0)
		message_error_stdout(-error);
	else
		message_error_errno(-error, "%s", path);
}

bool render_finish(struct output_file *file, int error)
{
	error = render_end(file, error);
	if (error)
		render_explain_write(file->path, error);
	return error == 0;
}

struct view render_view(const struct options *options, const struct session *session, struct time_span span)
{
	bool several = options->recordings && options->recordings[0] && options->recordings[1];

	return (struct view){
		.weight = session->clock,
		.by_line = options->lines,
		.annotate = options->annotate,
		.inverted = options->inverted,
		.heatmap = options->heatmap,
		.span = span,
		.by_clock = several || options->archived,
		.min_percent = options->min_percent,
		.group = filter_arguments_group_name(options->filter.group),
	};
}

bool render(struct output_file *file, const struct options *options, struct sample_source *source,
	    const struct session *session, const struct figures *figures, struct time_span span)
{
	struct view view = render_view(options, session, span);
	int error = 0;

	if (options->source) {
		view.source = sources_new(session);
		error = view.source ? 0 : -ENOMEM;
	}
	errno = 0;
	if (!error)
		error = options->format->write(file->stream, source, session, figures, &view);
	sources_free(view.source);
	return render_finish(file, error);
}

void render_tell(const char *path, bool is_picture)
{
	if (strcmp(path, "-") != 0)
		message_note("Wrote %s%s", path, is_picture ? "; open it in a browser" : "");
}

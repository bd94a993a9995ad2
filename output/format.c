#include "output/format.h"

#include <errno.h>
#include <string.h>

#include "output/flamegraph.h"
#include "output/folded.h"
#include "output/recording_writer.h"

/* All samples in one tree. 0 or a negative errno. */
static int read_profile(struct sample_source *source, const struct view *view,
			struct profile **ret_profile)
{
	struct profile *profile = profile_new(&(struct profile_options){
		.weight = view->weight,
		.by_line = view->by_line,
		.by_compiled = view->annotate,
	});
	struct sample sample;
	int error;

	if (!profile)
		return -ENOMEM;
	error = source->rewind(source);
	while (error == 0) {
		error = source->next(source, &sample);
		if (error <= 0)
			break;
		error = profile_add(profile, &sample);
	}
	if (error) {
		profile_free(profile);
		return error;
	}
	*ret_profile = profile;
	return 0;
}

static int write_folded(FILE *out, struct sample_source *source, const struct session *session,
			const struct figures *figures, const struct view *view)
{
	struct profile *profile;
	int error = read_profile(source, view, &profile);

	(void)session;
	(void)figures;
	if (error)
		return error;
	error = folded_write(out, profile, &(struct folded_options){ .annotate = view->annotate });
	profile_free(profile);
	return error;
}

static int write_svg(FILE *out, struct sample_source *source, const struct session *session,
		     const struct figures *figures, const struct view *view)
{
	struct profile *profile;
	int error = read_profile(source, view, &profile);

	if (error)
		return error;
	error = flamegraph_write(out, profile, session, figures,
				 &(struct flamegraph_options){ .inverted = view->inverted });
	profile_free(profile);
	return error;
}

static int write_samples(struct recording_writer *writer, struct sample_source *source)
{
	struct sample sample;
	int error = source->rewind(source);

	while (error == 0) {
		error = source->next(source, &sample);
		if (error <= 0)
			return error;
		error = recording_writer_add(writer, &sample);
	}
	return error;
}

static int write_recording(FILE *out, struct sample_source *source, const struct session *session,
			   const struct figures *figures, const struct view *view)
{
	struct recording_writer *writer;
	int error = recording_writer_new(out, session, &writer);

	(void)view;
	if (error)
		return error;
	error = write_samples(writer, source);
	if (!error)
		error = recording_writer_finish(writer, session, figures);
	recording_writer_free(writer);
	return error;
}

const struct format formats[] = {
	{
		.name = "svg", .suffix = "svg",
		.summary = "an interactive flame graph, for any browser",
		.picture = true, .write = write_svg,
	},
	{
		.name = "folded", .suffix = "folded",
		.summary = "one line a stack, for flame graph tools and grep",
		.write = write_folded,
	},
	{
		.name = "ljspy", .suffix = "ljspy",
		.summary = "a recording, for `ljspy report`",
		.recording = true, .write = write_recording,
	},
};

const size_t format_count = sizeof(formats) / sizeof(formats[0]);

const struct format *format_by_name(const char *name)
{
	for (size_t i = 0; i < format_count; i++)
		if (strcmp(formats[i].name, name) == 0)
			return &formats[i];
	return NULL;
}

const struct format *format_by_path(const char *path)
{
	const char *dot = strrchr(path, '.');

	for (size_t i = 0; dot && i < format_count; i++)
		if (strcmp(formats[i].suffix, dot + 1) == 0)
			return &formats[i];
	return NULL;
}

#include "output/format.h"

#include <errno.h>
#include <string.h>

#include "output/callgrind.h"
#include "output/firefox.h"
#include "output/flamegraph.h"
#include "output/folded.h"
#include "output/json.h"
#include "output/perf_script.h"
#include "output/pprof.h"
#include "output/speedscope.h"

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

const struct format formats[] = {
	{ "svg", "svg", "an interactive flame graph, for any browser", true, write_svg },
	{ "folded", "folded", "one line a stack, for flame graph tools and grep", false, write_folded },
	{ "speedscope", "speedscope.json", "for speedscope.app: in time order, and merged", false, speedscope_write },
	{ "pprof", "pb.gz", "for go tool pprof and continuous profiling", false, pprof_write },
	{ "firefox", "firefox.json", "for profiler.firefox.com", false, firefox_write },
	{ "callgrind", "callgrind", "for KCachegrind and callgrind_annotate", false, callgrind_write },
	{ "perf", "perf", "the text of perf script, for its many readers", false, perf_script_write },
	{ "json", "json", "all that is known, for scripts", false, json_write },
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
	const struct format *found = NULL;
	size_t length = strlen(path);

	/* The longest one: ".speedscope.json" is one of speedscope's, not of json's. */
	for (size_t i = 0; i < format_count; i++) {
		size_t suffix = strlen(formats[i].suffix);

		if (length > suffix && path[length - suffix - 1] == '.' &&
		    strcmp(path + length - suffix, formats[i].suffix) == 0 &&
		    (!found || suffix > strlen(found->suffix)))
			found = &formats[i];
	}
	return found;
}

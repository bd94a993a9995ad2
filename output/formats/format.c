/* SPDX-License-Identifier: MIT */
#include "output/formats/format.h"

#include <errno.h>
#include <string.h>

#include "output/flamegraph/flamegraph.h"
#include "output/formats/callgrind.h"
#include "output/formats/firefox.h"
#include "output/formats/folded.h"
#include "output/formats/json.h"
#include "output/formats/perf_script.h"
#include "output/formats/pprof.h"
#include "output/formats/speedscope.h"
#include "output/formats/text_report.h"
#include "output/recording/recording_writer.h"
#include "output/sample/text_ends.h"
#include "output/views/comparison.h"
#include "output/views/heeds.h"
#include "output/views/profile_read.h"

/* Merge all samples into a new profile, which the caller frees. 0 or a negative errno. */
static int new_profile(struct sample_source *source, const struct profile_options *options,
		       struct profile **ret_profile)
{
	struct profile *profile = profile_new(options);
	int error;

	if (!profile)
		return -ENOMEM;
	error = profile_read(profile, source, false);
	if (error) {
		profile_free(profile);
		return error;
	}
	*ret_profile = profile;
	return 0;
}

static struct profile_options folded_profile_options(const struct view *view)
{
	return (struct profile_options){
		.weight = view->weight,
		.by_line = view->by_line,
		.by_compiled = view->annotate,
		.inverted = view->inverted,
	};
}

static int write_folded(FILE *out, struct sample_source *source, const struct session *session,
			const struct figures *figures, const struct view *view)
{
	struct profile_options options = folded_profile_options(view);
	struct profile *profile;
	int error = new_profile(source, &options, &profile);

	(void)session;
	(void)figures;
	if (error)
		return error;
	error = folded_write(out, profile, &(struct folded_options){ .annotate = view->annotate });
	profile_free(profile);
	return error;
}

/* Both profiles hold the stacks of both sides, so that they have the same nodes. */
static int compare_folded(FILE *out, const struct side *before, const struct side *after,
			  const struct view *view)
{
	struct profile_options options = folded_profile_options(view);
	struct profile *baseline = profile_new(&options), *profile = profile_new(&options);
	int error = baseline && profile ? 0 : -ENOMEM;

	if (!error)
		error = profile_read(baseline, before->source, false);
	if (!error)
		error = profile_read(baseline, after->source, true);
	if (!error)
		error = profile_read(profile, before->source, true);
	if (!error)
		error = profile_read(profile, after->source, false);
	if (!error)
		error = folded_write(out, profile,
				     &(struct folded_options){
					     .annotate = view->annotate,
					     .baseline = baseline,
				     });
	profile_free(baseline);
	profile_free(profile);
	return error;
}

static struct flamegraph_options flamegraph_options(const struct view *view, bool page)
{
	return (struct flamegraph_options){
		.by_line = view->by_line,
		.inverted = view->inverted,
		.min_percent = view->min_percent,
		.page = page,
	};
}

static int write_flamegraph(FILE *out, struct sample_source *source, const struct session *session,
			    const struct figures *figures, const struct view *view, bool page)
{
	struct profile_options profile_options = flamegraph_profile_options(view->weight);
	struct flamegraph_options options = flamegraph_options(view, page);
	struct profile *profile = profile_new(&profile_options);
	const struct flamegraph_samples_options samples_options = {
		.start_ns = session->start_ns,
		.span = view->span,
		.rate_hz = figures->rate_asked_hz,
		.all_moments = view->heatmap,
	};
	struct flamegraph_samples *samples = NULL;
	int error = profile ? 0 : -ENOMEM;

	if (!error)
		error = flamegraph_samples_read(source, profile, &samples_options, &samples);
	options.samples = samples;
	options.begin_unix_ns = view->by_clock ? session->start_unix_ns : 0;
	options.heatmap = view->heatmap;
	options.source = view->source;
	if (!error)
		error = flamegraph_write(out, profile, session, figures, &options);
	flamegraph_samples_free(samples);
	profile_free(profile);
	return error;
}

static int compare_flamegraphs(FILE *out, const struct side *before, const struct side *after,
			       const struct view *view, bool page)
{
	struct profile_options profile_options = flamegraph_profile_options(view->weight);
	struct flamegraph_options options = flamegraph_options(view, page);
	struct profile *baseline = NULL, *profile = NULL;
	struct changed changed = { 0 };
	int error = new_profile(before->source, &profile_options, &baseline);

	if (!error)
		error = new_profile(after->source, &profile_options, &profile);
	/* Picture and table agree about what has changed. */
	if (!error)
		error = comparison_changed(before, after, view, &changed);
	if (!error) {
		options.baseline = baseline;
		options.changed = &changed;
		options.baseline_name = before->name;
		error = flamegraph_write(out, profile, after->session, after->figures, &options);
	}
	changed_clear(&changed);
	profile_free(baseline);
	profile_free(profile);
	return error;
}

static int write_svg(FILE *out, struct sample_source *source, const struct session *session,
		     const struct figures *figures, const struct view *view)
{
	return write_flamegraph(out, source, session, figures, view, false);
}

static int compare_svg(FILE *out, const struct side *before, const struct side *after,
		       const struct view *view)
{
	return compare_flamegraphs(out, before, after, view, false);
}

static int write_html(FILE *out, struct sample_source *source, const struct session *session,
		      const struct figures *figures, const struct view *view)
{
	return write_flamegraph(out, source, session, figures, view, true);
}

static int compare_html(FILE *out, const struct side *before, const struct side *after,
			const struct view *view)
{
	return compare_flamegraphs(out, before, after, view, true);
}

static int record_sample(void *context, const struct sample *sample)
{
	return recording_writer_add(context, sample);
}

static int write_recording(FILE *out, struct sample_source *source, const struct session *session,
			   const struct figures *figures, const struct view *view)
{
	struct recording_writer *writer;
	int error = recording_writer_new(out, session, &writer);

	(void)view;
	if (error)
		return error;
	error = sample_source_each(source, record_sample, writer);
	if (!error)
		error = recording_writer_finish(writer, session, figures);
	recording_writer_free(writer);
	return error;
}

const struct format formats[] = {
	{
		.name = "svg",
		.suffix = "svg",
		.summary = "an interactive flame graph, for any browser",
		.picture = true,
		.heeds = HEEDS_INVERTED | HEEDS_MIN_PERCENT | HEEDS_SOURCE,
		.write = write_svg,
		.compare = compare_svg,
	},
	{
		.name = "html",
		.suffix = "html",
		.summary = "the same as a page, which phones show better",
		.picture = true,
		.heeds = HEEDS_INVERTED | HEEDS_MIN_PERCENT | HEEDS_SOURCE,
		.write = write_html,
		.compare = compare_html,
	},
	{
		.name = "folded",
		.suffix = "folded",
		.summary = "one line a stack, for flame graph tools and grep",
		.heeds = HEEDS_INVERTED | HEEDS_ANNOTATE,
		.write = write_folded,
		.compare = compare_folded,
	},
	{
		.name = "text",
		.suffix = "txt",
		.summary = "functions by time, with callers, callees and sampling errors",
		.heeds = HEEDS_MIN_PERCENT | HEEDS_SOURCE,
		.write = text_report_write,
		.compare = comparison_write,
	},
	{
		.name = "speedscope",
		.suffix = "speedscope.json",
		.summary = "for speedscope.app: merged, and each thread in time order",
		.write = speedscope_write,
	},
	{
		.name = "pprof",
		.suffix = "pb.gz",
		.summary = "for go tool pprof and continuous profiling",
		.write = pprof_write,
	},
	{
		.name = "firefox",
		.suffix = "firefox.json",
		.summary = "for profiler.firefox.com",
		.write = firefox_write,
	},
	{
		.name = "callgrind",
		.suffix = "callgrind",
		.summary = "for KCachegrind and callgrind_annotate",
		.write = callgrind_write,
	},
	{
		.name = "perf",
		.suffix = "perf",
		.summary = "the text of perf script, for its many readers",
		.write = perf_script_write,
	},
	{
		.name = "json",
		.suffix = "json",
		.summary = "all that is known, for scripts",
		.write = json_write,
	},
	{
		.name = "ljspy",
		.suffix = "ljspy",
		.summary = "a recording, for `ljspy report`",
		.recording = true,
		.write = write_recording,
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
	const struct format *found = NULL;

	/* The longest suffix wins: ".speedscope.json" is for speedscope, not for json. */
	for (size_t i = 0; i < format_count; i++)
		if (text_has_suffix(path, formats[i].suffix) &&
		    (!found || strlen(formats[i].suffix) > strlen(found->suffix)))
			found = &formats[i];
	return found;
}

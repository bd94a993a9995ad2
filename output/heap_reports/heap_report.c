/* SPDX-License-Identifier: MIT */
#include "output/heap_reports/heap_report.h"

#include <string.h>

#include "output/heap/heap_file.h"
#include "output/heap_reports/heap_devtools.h"
#include "output/heap_reports/heap_diff_text.h"
#include "output/heap_reports/heap_json.h"
#include "output/heap_reports/heap_pictures.h"
#include "output/heap_reports/heap_pprof.h"
#include "output/heap_reports/heap_text.h"
#include "output/sample/text_ends.h"
#include "output/views/heeds.h"

static int write_svg(FILE *out, const struct heap_side *side, const struct heap_view *view)
{
	return heap_flamegraph_write(out, NULL, side, view, false);
}

static int compare_svg(FILE *out, const struct heap_side *before, const struct heap_side *after,
		       const struct heap_view *view)
{
	return heap_flamegraph_write(out, before, after, view, false);
}

static int write_html(FILE *out, const struct heap_side *side, const struct heap_view *view)
{
	return heap_flamegraph_write(out, NULL, side, view, true);
}

static int compare_html(FILE *out, const struct heap_side *before, const struct heap_side *after,
			const struct heap_view *view)
{
	return heap_flamegraph_write(out, before, after, view, true);
}

static int write_folded(FILE *out, const struct heap_side *side, const struct heap_view *view)
{
	return heap_folded_write(out, NULL, side, view);
}

static int write_file(FILE *out, const struct heap_side *side, const struct heap_view *view)
{
	struct heap_file_writer *writer;
	int error = heap_file_writer_new(out, &writer);

	(void)view;
	if (error)
		return error;
	for (size_t i = 0; i < side->count && !error; i++)
		error = heap_file_writer_add(writer, &side->subjects[i].graph,
					     &side->subjects[i].summary.account);
	if (!error)
		error = heap_file_writer_end(writer);
	heap_file_writer_free(writer);
	return error;
}

const struct heap_format heap_formats[] = {
	{
		.name = "text",
		.suffix = "txt",
		.summary = "tables for people",
		.says_uncertain = true,
		.write = heap_text_write,
		.compare = heap_diff_text_write,
	},
	{
		.name = "json",
		.suffix = "json",
		.summary = "all that is known, for scripts",
		.write = heap_json_write,
	},
	{
		.name = "svg",
		.suffix = "svg",
		.summary = "an interactive flame graph of who holds what, for any browser",
		.picture = true,
		.heeds = HEEDS_INVERTED | HEEDS_MIN_PERCENT | HEEDS_COUNT | HEEDS_RETAINED | HEEDS_GROUP,
		.write = write_svg,
		.compare = compare_svg,
	},
	{
		.name = "html",
		.suffix = "html",
		.summary = "the same as a page, which phones show better",
		.picture = true,
		.heeds = HEEDS_INVERTED | HEEDS_MIN_PERCENT | HEEDS_COUNT | HEEDS_RETAINED | HEEDS_GROUP,
		.write = write_html,
		.compare = compare_html,
	},
	{
		.name = "folded",
		.suffix = "folded",
		.summary = "one line a path, for flame graph tools and grep",
		.heeds = HEEDS_INVERTED | HEEDS_COUNT | HEEDS_RETAINED | HEEDS_GROUP,
		.write = write_folded,
		.compare = heap_folded_write,
	},
	{
		.name = "pprof",
		.suffix = "pb.gz",
		.summary = "for go tool pprof: inuse_space and inuse_objects",
		.heeds = HEEDS_COUNT | HEEDS_GROUP,
		.write = heap_pprof_write,
	},
	{
		.name = "heapsnapshot",
		.suffix = "heapsnapshot",
		.summary = "for the Memory panel of Chrome's DevTools",
		.needs_graph = true,
		.write = heap_devtools_write,
	},
	{
		.name = "heap",
		.suffix = "heap",
		.summary = "all of it, for `ljspy diff` and later looks",
		.needs_graph = true,
		.write = write_file,
	},
};

const size_t heap_format_count = sizeof(heap_formats) / sizeof(heap_formats[0]);

const struct heap_format *heap_format_by_name(const char *name)
{
	for (size_t i = 0; i < heap_format_count; i++)
		if (strcmp(heap_formats[i].name, name) == 0)
			return &heap_formats[i];
	return NULL;
}

const struct heap_format *heap_format_by_path(const char *path)
{
	for (size_t i = 0; i < heap_format_count; i++)
		if (text_has_suffix(path, heap_formats[i].suffix))
			return &heap_formats[i];
	return NULL;
}

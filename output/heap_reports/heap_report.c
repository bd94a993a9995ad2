/* SPDX-License-Identifier: MIT */
#include "output/heap_reports/heap_report.h"

#include <errno.h>
#include <string.h>

#include "output/heap/heap_builder.h"
#include "output/heap/heap_file.h"
#include "output/heap_reports/heap_devtools.h"
#include "output/heap_reports/heap_diff_text.h"
#include "output/heap_reports/heap_json.h"
#include "output/heap_reports/heap_pictures.h"
#include "output/heap_reports/heap_pprof.h"
#include "output/heap_reports/heap_text.h"

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
		.write = write_svg,
		.compare = compare_svg,
	},
	{
		.name = "html",
		.suffix = "html",
		.summary = "the same as a page, which phones show better",
		.picture = true,
		.write = write_html,
		.compare = compare_html,
	},
	{
		.name = "folded",
		.suffix = "folded",
		.summary = "one line a path, for flame graph tools and grep",
		.write = write_folded,
		.compare = heap_folded_write,
	},
	{
		.name = "pprof",
		.suffix = "pb.gz",
		.summary = "for go tool pprof: inuse_space and inuse_objects",
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
	size_t length = strlen(path);

	for (size_t i = 0; i < heap_format_count; i++) {
		size_t suffix = strlen(heap_formats[i].suffix);

		if (length > suffix && path[length - suffix - 1] == '.' &&
		    strcmp(path + length - suffix, heap_formats[i].suffix) == 0)
			return &heap_formats[i];
	}
	return NULL;
}

bool heap_measure_by_name(const char *name, enum heap_measure *ret_measure)
{
	static const char *const names[HEAP_MEASURE_COUNT] = {
		[HEAP_BY_OWN] = "own",
		[HEAP_BY_RETAINED] = "retained",
		[HEAP_BY_COUNT] = "count",
	};

	for (int i = 0; i < HEAP_MEASURE_COUNT; i++)
		if (strcmp(names[i], name) == 0) {
			*ret_measure = (enum heap_measure)i;
			return true;
		}
	return false;
}

bool heap_grouping_by_name(const char *name, enum heap_grouping *ret_group)
{
	static const char *const names[HEAP_GROUPING_COUNT] = {
		[HEAP_GROUP_NONE] = "path",
		[HEAP_GROUP_MODULE] = "module",
		[HEAP_GROUP_TYPE] = "type",
		[HEAP_GROUP_COROUTINE] = "coroutine",
	};

	for (int i = 0; i < HEAP_GROUPING_COUNT; i++)
		if (strcmp(names[i], name) == 0) {
			*ret_group = (enum heap_grouping)i;
			return true;
		}
	return false;
}

int heap_subject_make(struct heap_graph *graph, const struct heap_account *account, bool keep_graph,
		      struct heap_subject *ret_subject)
{
	struct heap_subject subject = { 0 };
	int error = heap_summary_make(graph, account, &subject.summary);

	if (error || !keep_graph)
		heap_graph_free(graph);
	else
		subject.graph = *graph;
	*graph = (struct heap_graph){ 0 };
	if (!error)
		*ret_subject = subject;
	return error;
}

void heap_subject_clear(struct heap_subject *subject)
{
	heap_graph_free(&subject->graph);
	heap_summary_clear(&subject->summary);
}

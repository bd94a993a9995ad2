/* SPDX-License-Identifier: MIT */
#include "output/heap_reports/heap_subject.h"

#include <string.h>

#include "output/heap/heap_builder.h"

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

/* Every VM has functions in C, but one that could not be read. */
struct heap_unlike heap_sides_unlike(const struct heap_side *sides, size_t count)
{
	bool has_functions = false, has_places = false, has_named = false, has_unnamed = false;

	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < sides[i].count; k++) {
			const struct heap_summary *summary = &sides[i].subjects[k].summary;

			has_functions |= summary->has_functions;
			has_places |= summary->has_places;
			if (summary->kinds[HEAP_KIND_FUNCTION].sum.count == 0)
				continue;
			has_named |= !summary->account.c_unnamed;
			has_unnamed |= summary->account.c_unnamed;
		}
	return (struct heap_unlike){ .coroutines = has_functions && has_places,
				     .functions_in_c = has_named && has_unnamed };
}

/* SPDX-License-Identifier: MIT */
#include "output/flamegraph/heatmap.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "memory/array.h"
#include "output/views/color.h"
#include "output/views/profile_read.h"

struct entry {
	const struct profile_node *leaf;
	uint64_t time_us;
	uint64_t weight_ns : 56;
	uint64_t state : 8;
};

struct heatmap {
	struct profile *profile;
	uint64_t start_ns; /* of the session, in CLOCK_MONOTONIC */
	struct time_span span;
	struct entry *entries;
	size_t count, room;
};

/*---- Reading ----*/

static int add_sample(void *context, const struct sample *sample, const struct profile_node *leaf)
{
	struct heatmap *heatmap = context;
	uint64_t weight_ns = weight_of(profile_options(heatmap->profile)->weight, sample);
	struct entry *entries = array_grow(heatmap->entries, &heatmap->room, heatmap->count + 1,
					   sizeof(*entries));

	if (!entries)
		return -ENOMEM;
	heatmap->entries = entries;
	heatmap->entries[heatmap->count++] = (struct entry){
		.leaf = leaf,
		.time_us = sample->time_ns > heatmap->start_ns ? (sample->time_ns - heatmap->start_ns) / 1000
							       : 0,
		.weight_ns = weight_ns & ((UINT64_C(1) << 56) - 1),
		.state = sample->vm_state,
	};
	return 0;
}

int heatmap_read(struct sample_source *source, struct profile *profile, const struct session *session,
		 const struct time_span *span, struct heatmap **ret_heatmap)
{
	struct heatmap *heatmap = calloc(1, sizeof(*heatmap));
	int error;

	if (!heatmap)
		return -ENOMEM;
	heatmap->profile = profile;
	heatmap->start_ns = session->start_ns;
	heatmap->span = *span;
	error = profile_read_each(profile, source, add_sample, heatmap);
	if (error) {
		heatmap_free(heatmap);
		return error;
	}
	*ret_heatmap = heatmap;
	return 0;
}

void heatmap_free(struct heatmap *heatmap)
{
	if (!heatmap)
		return;
	free(heatmap->entries);
	free(heatmap);
}

/*---- Writing ----*/

/* The index of a node in the list. */
struct place {
	const struct profile_node *node;
	size_t index;
};

static int compare_places(const void *a, const void *b)
{
	uintptr_t one = (uintptr_t)((const struct place *)a)->node;
	uintptr_t other = (uintptr_t)((const struct place *)b)->node;

	return (one > other) - (one < other);
}

static int sort_places(const struct profile_node *const *listed, size_t count, struct place **ret_places)
{
	struct place *places = calloc(count ? count : 1, sizeof(*places));

	if (!places)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		places[i] = (struct place){ .node = listed[i], .index = i };
	qsort(places, count, sizeof(*places), compare_places);
	*ret_places = places;
	return 0;
}

static void write_entry(FILE *out, const struct entry *entry, uint64_t before_us, const struct place *places,
			size_t count)
{
	const struct profile_node *node = entry->leaf;
	const struct place *place = NULL;

	for (; node && !place; node = node->parent)
		place = bsearch(&(struct place){ .node = node }, places, count, sizeof(*places),
				compare_places);
	if (place)
		fprintf(out, "%" PRId64 " %s%zu %c %" PRIu64 "\n", (int64_t)(entry->time_us - before_us),
			place->node == entry->leaf ? "" : "-", place->index,
			color_state_letter((enum vm_state)entry->state), (uint64_t)entry->weight_ns);
}

int heatmap_write(FILE *out, const struct heatmap *heatmap, const struct profile_node *const *listed,
		  size_t listed_count)
{
	uint64_t until_us = heatmap->span.until_ns / 1000, before_us = 0;
	struct place *places;
	int error = sort_places(listed, listed_count, &places);

	if (error)
		return error;
	if (heatmap->count > 0 && heatmap->entries[heatmap->count - 1].time_us >= until_us)
		until_us = heatmap->entries[heatmap->count - 1].time_us + 1;
	fprintf(out, "<metadata id=\"heat\">%" PRIu64 " %" PRIu64 "\n", heatmap->span.since_ns / 1000,
		until_us);
	for (size_t i = 0; i < heatmap->count; i++) {
		write_entry(out, &heatmap->entries[i], before_us, places, listed_count);
		before_us = heatmap->entries[i].time_us;
	}
	fputs("</metadata>\n", out);
	free(places);
	return 0;
}

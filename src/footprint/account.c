/* SPDX-License-Identifier: MIT */
/* Give the pages of each mapping to the rows of the report. */
#include "src/footprint/taking.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "memory/array.h"

/* A part of a mapping that belongs to one row. */
struct part {
	size_t row;
	struct page_sum here;
};

struct parts {
	struct part *list;
	size_t count, room;
};

static int add_part(struct parts *parts, size_t row, struct page_sum here)
{
	struct part *moved = array_grow(parts->list, &parts->room, parts->count + 1, sizeof(*moved));

	if (!moved)
		return -ENOMEM;
	parts->list = moved;
	parts->list[parts->count++] = (struct part){ row, here };
	return 0;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* What a claim has within [begin, end): what is free and what is not. */
static int add_claim(struct taking *taking, struct parts *parts, struct claim *claim, uint64_t begin,
		     uint64_t end)
{
	struct page_sum here = page_runs_sum(&taking->runs, begin, end), free;
	int error;

	free.exclusive = smaller(here.exclusive, claim->free.exclusive);
	free.shared = smaller(here.shared, claim->free.shared);
	/* A claim may go on in the next mapping. */
	claim->free.exclusive -= free.exclusive;
	claim->free.shared -= free.shared;
	here.exclusive -= free.exclusive;
	here.shared -= free.shared;
	error = add_part(parts, claim->free_row, free);
	return error ? error : add_part(parts, claim->row, here);
}

static int add_rest(struct taking *taking, struct parts *parts, size_t row, uint64_t begin, uint64_t end)
{
	if (begin >= end)
		return 0;
	taking->report->rows[row].size += end - begin;
	taking->report->rows[row].count++;
	return add_part(parts, row, page_runs_sum(&taking->runs, begin, end));
}

/* The first part is the mapping's own row, which is no claim's. */
static int cut(struct taking *taking, struct parts *parts, const struct mapping *mapping, size_t row)
{
	uint64_t at = mapping->begin;
	int error;

	parts->count = 0;
	error = add_part(parts, row, (struct page_sum){ 0, 0 });
	for (size_t i = claims_from(&taking->claims, at);
	     !error && i < taking->claims.count && taking->claims.list[i].begin < mapping->end; i++) {
		struct claim *claim = &taking->claims.list[i];
		uint64_t begin = claim->begin > at ? claim->begin : at;

		error = add_rest(taking, parts, row, at, begin);
		at = smaller(claim->end, mapping->end);
		if (!error)
			error = add_claim(taking, parts, claim, begin, at);
	}
	return error ? error : add_rest(taking, parts, row, at, mapping->end);
}

static uint64_t total(const struct parts *parts)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < parts->count; i++)
		sum += parts->list[i].here.exclusive + parts->list[i].here.shared;
	return sum;
}

static void take_away(uint64_t *figure, uint64_t *surplus)
{
	uint64_t part = smaller(*figure, *surplus);

	*figure -= part;
	*surplus -= part;
}

/*
 * Make the parts' sum the mapping's RSS. The pagemap was read a moment later, and has
 * pages of zeros among those that may be shared: those do not count. What is missing
 * goes to the mapping's own row.
 */
static void reconcile(struct parts *parts, uint64_t rss)
{
	uint64_t sum = total(parts), surplus = sum > rss ? sum - rss : 0;

	if (sum < rss)
		parts->list[0].here.exclusive += rss - sum;
	for (size_t i = 0; i < parts->count && surplus; i++)
		take_away(&parts->list[i].here.shared, &surplus);
	for (size_t i = 0; i < parts->count && surplus; i++)
		take_away(&parts->list[i].here.exclusive, &surplus);
}

/* PSS: of pages that the process has alone, all; of the others, what the mapping's figure leaves. */
static void give(struct taking *taking, const struct parts *parts, uint64_t pss)
{
	uint64_t exclusive = 0, shared = 0, given = 0;
	double share;

	for (size_t i = 0; i < parts->count; i++) {
		exclusive += parts->list[i].here.exclusive;
		shared += parts->list[i].here.shared;
	}
	share = shared && pss > exclusive ? (double)(pss - exclusive) / (double)shared : 0;
	for (size_t i = 0; i < parts->count; i++) {
		const struct part *part = &parts->list[i];
		struct footprint_row *row = &taking->report->rows[part->row];
		uint64_t alone = exclusive > pss ? (uint64_t)((double)part->here.exclusive * (double)pss /
							      (double)exclusive)
						 : part->here.exclusive;
		uint64_t own = alone + (uint64_t)((double)part->here.shared * share);

		row->rss += part->here.exclusive + part->here.shared;
		row->pss += own;
		given += own;
	}
	/* What is lost in rounding. */
	if (parts->count && given < pss && total(parts))
		taking->report->rows[parts->list[parts->count - 1].row].pss += pss - given;
}

/*---- What a mapping is ----*/

static bool begins_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* What a private mapping of such a file has written is its own. */
static bool is_shared_memory(const struct mapping *mapping)
{
	static const char *const prefixes[] = { "/dev/zero", "/dev/shm/", "/SYSV", "/memfd:", "[anon_shmem" };

	if (!(mapping->access & MAPPING_SHARED))
		return false;
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (begins_with(mapping->path, prefixes[i]))
			return true;
	return mapping->access & MAPPING_WRITE;
}

/*
 * Without a name, with one that prctl() gave it, or a private mapping of /dev/zero, which has no pages of a
 * file.
 */
static bool is_anonymous(const struct mapping *mapping)
{
	return !*mapping->path || begins_with(mapping->path, "[anon") ||
	       strcmp(mapping->path, "/dev/zero") == 0;
}

static enum footprint_kind kind_of(const struct mapping *mapping)
{
	if (strcmp(mapping->path, "[stack]") == 0)
		return FOOTPRINT_STACK;
	if (strcmp(mapping->path, "[heap]") == 0)
		return FOOTPRINT_MALLOC;
	if (is_shared_memory(mapping))
		return FOOTPRINT_SHARED;
	if (is_anonymous(mapping))
		return FOOTPRINT_ANONYMOUS;
	if (mapping->inode == 0)
		return FOOTPRINT_KERNEL;
	if (mapping->access & MAPPING_EXECUTE)
		return FOOTPRINT_CODE;
	return mapping->access & MAPPING_WRITE ? FOOTPRINT_DATA : FOOTPRINT_FILE;
}

/* The mapping's own row, or -ENOMEM. */
static int own_row(struct taking *taking, const struct mapping *mapping, size_t *ret_row)
{
	enum footprint_kind kind = kind_of(mapping);
	const char *name = *mapping->path ? mapping->path : NULL;

	if (kind == FOOTPRINT_MALLOC)
		name = NULL;
	else if (kind == FOOTPRINT_STACK)
		name = "of the first thread";
	return footprint_row(taking->report, kind, name, 0, ret_row);
}

int taking_account(struct taking *taking)
{
	struct parts parts = { .count = 0 };
	int error = 0;

	for (size_t i = 0; i < maps_count(taking->smaps.maps) && !error; i++) {
		const struct mapping *mapping = maps_at(taking->smaps.maps, i);
		const struct smaps_figures *figures = &taking->smaps.figures[i];
		size_t row;

		if (figures->rss == 0)
			continue;
		error = own_row(taking, mapping, &row);
		if (!error)
			error = cut(taking, &parts, mapping, row);
		if (error)
			break;
		reconcile(&parts, figures->rss);
		give(taking, &parts, figures->pss);
		taking->report->rss += figures->rss;
		taking->report->pss += figures->pss;
	}
	free(parts.list);
	taking->report->swap = taking->smaps.total.swap;
	taking->report->hugetlb = taking->smaps.total.hugetlb;
	return error;
}

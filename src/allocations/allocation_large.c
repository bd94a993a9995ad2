/* SPDX-License-Identifier: MIT */
#include "src/allocations/allocation_shares_parts.h"

#include <math.h>

enum {
	HASH_NODE = 24,   /* bytes */
	MERGED_MAX = 8,   /* allocations that one look of a watch sees together */
	WATCHED_MIN = 16, /* fewer that watches have seen do not tell how many bytes are in large ones */
};

/* The samples of large allocations count, all together, as if watches had seen so many of these in addition. */
static const double seen_by_samples = 2;

/* Small allocations that a watch sees together with large ones have so much of their bytes at most. */
static const double merged_off = 0.02;

bool shares_is_large(const struct class *class)
{
	return class->key.part == PART_LARGE || class->key.part == PART_LARGE_CDATA;
}

/* Of one class are those of about the same size: small allocations come between two looks of a watch, too. */
static bool is_near(double bytes, double others)
{
	return fabs(bytes - others) <= others / 8;
}

static size_t find_large_class(struct allocation_shares *shares, uint64_t bytes, bool is_cdata, bool create)
{
	const struct class_key key = { .kind = ALLOCATION_OTHER,
				       .bytes = bytes,
				       .part = is_cdata ? PART_LARGE_CDATA : PART_LARGE };
	size_t nearest = CLASS_LARGE;
	double distance = INFINITY;

	for (size_t i = CLASSES_FIXED; i < shares->class_count; i++) {
		const struct class_key *other = &shares->classes[i].key;
		const double away = fabs((double)bytes - (double)other->bytes);

		if (other->part != key.part || away >= distance ||
		    !is_near((double)bytes, (double)other->bytes))
			continue;
		nearest = i;
		distance = away;
	}
	if (nearest != CLASS_LARGE || !create || shares->class_count == ALLOCATION_CLASSES_MAX)
		return nearest;
	shares->classes[shares->class_count].key = key;
	return shares->class_count++;
}

size_t shares_large_class_of(struct allocation_shares *shares, const struct allocation *allocation)
{
	const bool is_whole = allocation->kind == ALLOCATION_HASH && allocation->is_first_part;

	return find_large_class(shares, allocation->bytes / (is_whole ? 2 : 1),
				allocation->kind == ALLOCATION_CDATA, true);
}

/* What a hash part of about that size has; 0 if none has. */
static uint64_t hash_bytes(uint64_t bytes)
{
	uint64_t hash = HASH_NODE;

	while (hash <= bytes / 2)
		hash *= 2;
	return bytes - hash <= hash / 64 ? hash : 0;
}

bool allocation_shares_has_large(const struct allocation_shares *shares)
{
	return shares->large.mean > 0;
}

static void add_seen(struct allocation_shares *shares, size_t class, double bytes, uint64_t count)
{
	shares->classes[class].counted += (double)count;
	shares->classes[class].counted_bytes += bytes;
	shares->watched += (double)count;
}

/* The class of which so many bytes are one or a few, and samples have met some; CLASS_LARGE if there is none. */
static size_t class_of_several(struct allocation_shares *shares, double bytes, bool is_cdata,
			       uint64_t *ret_count)
{
	for (uint64_t count = 1; count <= MERGED_MAX; count++) {
		const double one = bytes / (double)count;
		const size_t class = find_large_class(shares, (uint64_t)one, is_cdata, false);

		if (class == CLASS_LARGE || shares->classes[class].mean <= 0 ||
		    fabs(one - shares->classes[class].mean) > merged_off * one)
			continue;
		*ret_count = count;
		return class;
	}
	return CLASS_LARGE;
}

void allocation_shares_add_watched(struct allocation_shares *shares, uint64_t bytes, bool is_merged,
				   bool is_cdata)
{
	const uint64_t hash = is_cdata ? 0 : hash_bytes(bytes);
	uint64_t count = 1;
	size_t class;

	if (hash)
		bytes = hash / 2;
	shares->watched_bytes += (double)bytes;
	if (bytes < ALLOCATION_LARGE_MIN)
		return;
	shares->watched_large_bytes += (double)bytes;
	/* C arrays may follow each other as fast as looks do. So may steps of a table, but it doubles by each. */
	class = is_merged || is_cdata ? class_of_several(shares, (double)bytes, is_cdata, &count)
				      : CLASS_LARGE;
	if (class == CLASS_LARGE && !is_merged)
		class = find_large_class(shares, bytes, is_cdata, true);
	/* Several of different sizes stay untold, or there are too many classes. */
	if (class != CLASS_LARGE)
		add_seen(shares, class, (double)bytes, count);
}

uint64_t allocation_shares_large(const struct allocation_shares *shares)
{
	return shares->large_bytes > 0 ? (uint64_t)shares->large_bytes : 0;
}

void shares_add_up_large(struct allocation_shares *shares)
{
	struct large_samples *large = &shares->large;

	large->samples = large->sample_bytes = 0;
	for (size_t i = 0; i < shares->class_count; i++) {
		struct class *class = &shares->classes[i];

		if (!shares_is_large(class))
			continue;
		class->met += class->samples;
		large->samples += class->samples;
		large->sample_bytes += class->sample_bytes;
	}
	if (large->samples > 0)
		large->mean = large->sample_bytes / large->samples;
}

double shares_large_bytes(const struct allocation_shares *shares, double bytes, double unexplained,
			  bool is_all)
{
	const struct large_samples *large = &shares->large;
	const struct class *parts = &shares->classes[CLASS_PARTS];

	if (unexplained <= 0 || large->mean <= 0)
		return 0;
	if (large->samples <= 0)
		return !is_all && unexplained >= unexplained_min * bytes ? unexplained : 0;
	return is_all ? unexplained * large->sample_bytes / (large->sample_bytes + parts->sample_bytes)
		      : unexplained;
}

double shares_small_parts(const struct allocation_shares *shares, double all, double bytes)
{
	const double filmed = shares->film_large_bytes + shares->film_part_bytes;

	if (shares->large.mean <= 0)
		return bytes;
	if (shares->watched >= WATCHED_MIN)
		return fmax(0, bytes - all * shares->watched_large_bytes / shares->watched_bytes);
	return filmed > 0 ? bytes * shares->film_part_bytes / filmed : bytes;
}

double shares_take_unmet(struct allocation_shares *shares, double unmet)
{
	const double waiting = shares->unmet_bytes;

	if (shares->large.samples > 0) {
		shares->unmet_bytes = 0;
		return waiting + unmet;
	}
	shares->unmet_bytes = fading * waiting + unmet;
	shares->lost_bytes += (1 - fading) * waiting;
	return 0;
}

/* How many of a class there were for each other one, as watches have seen them and, of few, samples. */
static double large_count(const struct class *class, double met)
{
	return class->counted + (met > 0 ? seen_by_samples * class->met / met : 0);
}

static double large_size(const struct class *class)
{
	return class->mean > 0 || class->counted <= 0 ? class->mean : class->counted_bytes / class->counted;
}

void shares_add_large_by_watches(struct allocation_shares *shares, double bytes)
{
	double met = 0, sum = 0;

	for (size_t i = 0; i < shares->class_count; i++)
		met += shares->classes[i].met;
	for (size_t i = 0; i < shares->class_count; i++)
		if (shares_is_large(&shares->classes[i]))
			sum += large_count(&shares->classes[i], met) * large_size(&shares->classes[i]);
	for (size_t i = 0; sum > 0 && i < shares->class_count; i++) {
		struct class *class = &shares->classes[i];

		if (shares_is_large(class))
			class->bytes += bytes * large_count(class, met) * large_size(class) / sum;
	}
}

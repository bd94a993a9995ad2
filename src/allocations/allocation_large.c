/* SPDX-License-Identifier: MIT */
#include "src/allocations/allocation_shares_parts.h"

#include <math.h>

enum {
	HASH_NODE = 24,     /* bytes */
	DOUBLINGS_MAX = 16, /* of a hash part, from ALLOCATION_LARGE_MIN on */
	MERGED_MAX = 8,     /* allocations that one look of a series sees together */
	SERIES_MIN = 16,    /* fewer that series have seen do not tell how many bytes are in large ones */
};

/*
 * The samples of large allocations count, all together, as if series had seen so many of these in addition.
 */
static const double seen_by_samples = 2;

/* Small allocations that a series sees together with large ones have so much of their bytes at most. */
static const double merged_off = 0.02;

/* If of more than this part of the bytes it is unknown whether they are in large ones, series do not tell. */
static const double untold_max = 0.25;

bool shares_is_large(const struct class *class)
{
	return class->key.part == PART_LARGE || class->key.part == PART_LARGE_CDATA;
}

bool shares_is_near(double bytes, double others)
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
		    !shares_is_near((double)bytes, (double)other->bytes))
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
	return find_large_class(shares, allocation->bytes, allocation->kind == ALLOCATION_CDATA, true);
}

/* What a hash part of about that size has; 0 if none has. */
static uint64_t hash_bytes(uint64_t bytes)
{
	uint64_t hash = HASH_NODE;

	while (hash <= bytes / 2)
		hash *= 2;
	return bytes - hash <= hash / 64 ? hash : 0;
}

/* Have most hash parts of that size doubled? One that is larger had that size before. */
static bool has_doubled(struct allocation_shares *shares, uint64_t hash)
{
	for (unsigned int i = 0; i < DOUBLINGS_MAX; i++, hash *= 2)
		if (shares_find_grown_size(shares, ALLOCATION_HASH, hash, false))
			return 2 * shares_grown_part(shares, ALLOCATION_HASH, hash) > 1;
	return false;
}

/*
 * By how much the sum of all bytes grows. While a hash part doubles, its old one is there, too, and freed
 * only then. A string, or a hash part that came at once, may be as large as one that has doubled: samples
 * tell.
 */
static uint64_t added_bytes(struct allocation_shares *shares, const struct allocation_pair *pair)
{
	const bool may_be_hash = pair->bytes >= ALLOCATION_LARGE_MIN && !pair->has_string &&
				 pair->cdata == PAIR_NO_CDATA;
	const uint64_t hash = may_be_hash ? hash_bytes(pair->bytes) : 0;

	return hash && has_doubled(shares, hash) ? hash / 2 : pair->bytes;
}

bool allocation_shares_has_large(const struct allocation_shares *shares)
{
	return shares->large.mean > 0;
}

static void add_seen(struct allocation_shares *shares, size_t class, double bytes, uint64_t count)
{
	shares->classes[class].counted += (double)count;
	shares->classes[class].counted_bytes += bytes;
	shares->series_large += (double)count;
}

/*
 * The class of which so many bytes are one or a few, and samples have met some; CLASS_LARGE if there is none.
 */
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

/* CLASS_LARGE if it is unknown, or there are too many classes. */
static size_t class_of_pair(struct allocation_shares *shares, const struct allocation_pair *pair,
			    uint64_t bytes, uint64_t *ret_count)
{
	const bool is_cdata = pair->cdata == PAIR_CDATA;
	size_t class = CLASS_LARGE;

	*ret_count = 1;
	if (pair->cdata == PAIR_UNKNOWN)
		return CLASS_LARGE;
	/*
	 * C arrays may follow each other as fast as looks do. So may steps of a table, but it doubles by
	 * each.
	 */
	if (pair->is_merged || is_cdata)
		class = class_of_several(shares, (double)bytes, is_cdata, ret_count);
	return class == CLASS_LARGE && !pair->is_merged ? find_large_class(shares, bytes, is_cdata, true)
							: class;
}

void allocation_shares_add_pair(struct allocation_shares *shares, const struct allocation_pair *pair)
{
	const uint64_t bytes = added_bytes(shares, pair);
	uint64_t count;
	size_t class;

	if (bytes < ALLOCATION_LARGE_MIN) {
		shares->series_bytes += (double)bytes;
		return;
	}
	class = class_of_pair(shares, pair, bytes, &count);
	/* Several of different sizes, or many small ones. */
	if (pair->is_merged && class == CLASS_LARGE) {
		shares->series_untold_bytes += (double)bytes;
		return;
	}
	shares->series_bytes += (double)bytes;
	shares->series_large_bytes += (double)bytes;
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
	/* Parts without a class have it where samples of this division have met such. */
	const bool may_wait = (!is_all || parts->samples <= 0) && unexplained >= unexplained_min * bytes;

	if (unexplained <= 0 || large->mean <= 0)
		return 0;
	if (large->samples <= 0)
		return may_wait ? unexplained : 0;
	return is_all ? unexplained * large->sample_bytes / (large->sample_bytes + parts->sample_bytes)
		      : unexplained;
}

double shares_small_parts(const struct allocation_shares *shares, double all, double bytes)
{
	const double filmed = shares->film_large_bytes + shares->film_part_bytes;

	if (shares->large.mean <= 0)
		return bytes;
	if (shares->series_large >= SERIES_MIN &&
	    shares->series_untold_bytes <= untold_max * (shares->series_bytes + shares->series_untold_bytes))
		return fmax(0, bytes - all * shares->series_large_bytes / shares->series_bytes);
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

/* How many of a class there were for each other one, as series have seen them and, of few, samples. */
static double large_count(const struct class *class, double met)
{
	return class->counted + (met > 0 ? seen_by_samples * class->met / met : 0);
}

static double large_size(const struct class *class)
{
	return class->mean > 0 || class->counted <= 0 ? class->mean : class->counted_bytes / class->counted;
}

void shares_add_large_by_series(struct allocation_shares *shares, double bytes)
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

/* SPDX-License-Identifier: MIT */
#include "output/sample/histogram.h"

/*
 * Each value below HISTOGRAM_STEPS has its own bucket. Above, the highest
 * HISTOGRAM_STEP_BITS + 1 bits of a value select the bucket.
 */
static unsigned bucket_of(uint64_t value)
{
	unsigned shift;

	if (value < HISTOGRAM_STEPS)
		return (unsigned)value;
	shift = 63 - (unsigned)__builtin_clzll(value) - HISTOGRAM_STEP_BITS;
	return shift * HISTOGRAM_STEPS + (unsigned)(value >> shift);
}

/* The value in the middle of a bucket. */
static uint64_t value_of(unsigned bucket)
{
	unsigned shift;
	uint64_t lowest;

	if (bucket < HISTOGRAM_STEPS)
		return bucket;
	shift = bucket / HISTOGRAM_STEPS - 1;
	lowest = (uint64_t)(bucket - shift * HISTOGRAM_STEPS) << shift;
	return lowest + ((UINT64_C(1) << shift) >> 1);
}

void histogram_add(struct histogram *histogram, uint64_t value)
{
	histogram->count++;
	histogram->sum += value;
	if (value > histogram->max)
		histogram->max = value;
	histogram->buckets[bucket_of(value)]++;
}

void histogram_merge(struct histogram *histogram, const struct histogram *other)
{
	histogram->count += other->count;
	histogram->sum += other->sum;
	if (other->max > histogram->max)
		histogram->max = other->max;
	for (unsigned bucket = 0; bucket < HISTOGRAM_BUCKETS; bucket++)
		histogram->buckets[bucket] += other->buckets[bucket];
}

/* The largest value as far as the buckets tell. */
static uint64_t largest_known(const struct histogram *histogram)
{
	uint64_t value;

	for (unsigned bucket = HISTOGRAM_BUCKETS; bucket-- > 0;)
		if (histogram->buckets[bucket] > 0) {
			value = value_of(bucket);
			return value < histogram->max ? value : histogram->max;
		}
	return 0;
}

void histogram_subtract(struct histogram *histogram, const struct histogram *earlier)
{
	histogram->count -= earlier->count;
	histogram->sum -= earlier->sum;
	for (int i = 0; i < HISTOGRAM_BUCKETS; i++)
		histogram->buckets[i] -= earlier->buckets[i];
	/* It may be one of those that were taken off. */
	if (histogram->max == earlier->max)
		histogram->max = largest_known(histogram);
}

uint64_t histogram_percentile(const struct histogram *histogram, unsigned per_mille)
{
	/* Round up. No count overflows. */
	uint64_t rank = histogram->count / 1000 * per_mille +
			(histogram->count % 1000 * per_mille + 999) / 1000;
	uint64_t seen = 0;

	if (rank == 0)
		rank = 1;
	for (unsigned bucket = 0; bucket < HISTOGRAM_BUCKETS; bucket++) {
		seen += histogram->buckets[bucket];
		if (seen >= rank) {
			uint64_t value = value_of(bucket);

			return value < histogram->max ? value : histogram->max;
		}
	}
	return histogram->max;
}

/* SPDX-License-Identifier: MIT */
/*
 * allocation_sums: how many bytes a VM has allocated, from intervals between looks, and where cycles of the
 * collector are shorter than these, from spans. Both belong to a division, of half a second.
 */
#ifndef LJSPY_ALLOCATION_SUMS_H
#define LJSPY_ALLOCATION_SUMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/allocation/allocated.h"

/* How the sum of all bytes is known. */
enum allocation_sum {
	ALLOCATION_SUM_COUNTED,
	/* from spans, as cycles are shorter than intervals, or from other intervals */
	ALLOCATION_SUM_ESTIMATED,
	ALLOCATION_SUM_LEAST, /* likewise, but these were too few, or tell too little */
};

/* A part of a span. */
struct span_piece {
	struct allocated allocated;
	uint64_t ns;
};

enum { SPAN_PIECES_MAX = 3 };

struct span_sum {
	double count, ns;
	double slowed;               /* so many, see allocation_shares_add_span() */
	double marked, marked_ns;    /* those in which a marking ended; pieces are parts of spans */
	double marked_bytes;         /* ... as far as they are known */
	double busy, busy_ns, bytes; /* of the others in which something was allocated */
	double most_bytes;           /* ... in one of their pieces */
};

/*
 * Intervals in which something was allocated; whole: of which all bytes are known, without an end of marking.
 */
struct interval_sum {
	double count, ns;
	double whole_count, whole_ns, whole_bytes;
};

/* One of those that are whole, as it seems. */
struct long_interval {
	double ns, bytes;
};

enum { LONG_INTERVALS_MAX = 4 };

/* Of one VM; zero at the beginning. */
struct allocation_sums {
	/* Of the intervals since the last division. */
	struct interval_sum intervals;
	struct long_interval longest[LONG_INTERVALS_MAX];
	struct span_sum spans;
	struct interval_sum left_out; /* see leave_out_long() */
	double seen_ns;               /* see allocation_shares_add_look() */
	double look_ns;               /* of the last one of those */
	double marked_bytes;          /* of those that are not whole, as far as they are known */
	double markings;              /* how many of those had an end of marking */
	double heap_bytes;            /* at the end of each, added up */
	double freed_bytes;           /* not by a sweep, as it seems */
	/* Of the last division. */
	double sum_bytes;
	enum allocation_sum sum;
	/* seen_ns of divisions with short cycles and too few spans so far, and what was counted then. */
	double owed_ns, owed_bytes;
	/* Time before the first look, and what came since then. */
	double before_ns, after_ns, after_bytes;
	double after_counted_bytes; /* of divisions whose sum was counted */
	bool after_is_least;        /* there may be any more */
	/* Of earlier divisions; they fade. */
	struct interval_sum past_intervals;
	struct span_sum past_spans;
};

static inline bool allocation_sums_has_freed(const struct allocated *allocated)
{
	return allocated->bytes < -ALLOCATED_FREED_MAX;
}

/* See allocation_shares.h. */
void allocation_sums_add_interval(struct allocation_sums *sums, const struct allocated *allocated,
				  uint64_t cpu_ns);
void allocation_sums_add_span(struct allocation_sums *sums, const struct span_piece *pieces, size_t count,
			      bool is_slowed);

/* All bytes since the last division: sum_bytes and sum. */
void allocation_sums_add_up(struct allocation_sums *sums);

/* What was allocated before the first look. */
struct allocation_before {
	double part; /* of all that came after it */
	/* Bytes that are less certain for that, those included; how is told by sum. */
	double uncertain_bytes;
	enum allocation_sum sum;
};

/* So far: the part is 0 where it makes no difference, or cannot be told. */
struct allocation_before allocation_sums_before(const struct allocation_sums *sums);

/* Begin the next division. This one still counts for it, but less, by fading. */
void allocation_sums_end(struct allocation_sums *sums, double fading);

#endif

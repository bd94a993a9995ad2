/* SPDX-License-Identifier: MIT */
#include "src/allocations/allocation_sums.h"

#include <math.h>
#include <string.h>

enum {
	SPANS_MIN = 16,     /* fewer may tell half of the speed, or twice as much */
	BUSY_SPANS_MIN = 4, /* of them, that tell a speed */
	INTERVALS_MIN = 32, /* in a division, to judge it by its own */
	SHORT_MIN = 8,      /* intervals, besides the longest, to judge these by */
};

/* If spans tell so many times as much as intervals, these lack whole cycles. */
static const double spans_max = 1.5;

/* A cycle allocates at least so much of the heap's size; shorter ones, by gc.pause, end in most intervals. */
static const double cycle_min = 0.5;

/*
 * If at least so much of the intervals had a marking, and their cycles need so many times as much as was
 * counted, whole ones are lacking. A program that asks for cycles now and then has few of them.
 */
static const double marked_min = 0.1, needed_max = 4;

/* Less time than this part, before the first look, makes no difference. */
static const double before_min = 0.05;

/* An interval that takes so many times as long as others do came late. */
static const double long_min = 4;

/* If less of the time than this was without an end of marking, intervals do not tell. */
static const double intervals_min = 0.7;

/*
 * A sweep that frees large objects takes them off gc.total first, and off gc.estimate at its step's end: the
 * next interval has them too much. What is freed otherwise, all that a VM has when it is closed, was not
 * allocated less.
 */
static double counted_bytes(struct allocation_sums *sums, const struct allocated *allocated)
{
	double bytes = (double)allocated->bytes;

	if (allocation_sums_has_freed(allocated)) {
		sums->freed_bytes -= bytes;
		return 0;
	}
	if (bytes > ALLOCATED_FREED_MAX) {
		bytes -= bytes < sums->freed_bytes ? bytes : sums->freed_bytes;
		sums->freed_bytes = 0;
	}
	return bytes;
}

static void note_long(struct allocation_sums *sums, double ns, double bytes)
{
	struct long_interval *shortest = sums->longest;

	for (size_t i = 1; i < LONG_INTERVALS_MAX; i++)
		if (sums->longest[i].ns < shortest->ns)
			shortest = &sums->longest[i];
	if (ns > shortest->ns)
		*shortest = (struct long_interval){ ns, bytes };
}

void allocation_sums_add_interval(struct allocation_sums *sums, const struct allocated *allocated,
				  uint64_t cpu_ns)
{
	struct interval_sum *intervals = &sums->intervals;
	double bytes;

	/* Others may have had the time. It tells nothing of cycles. */
	if (allocated->bytes == 0 && !allocated->is_least)
		return;
	intervals->count++;
	intervals->ns += (double)cpu_ns;
	sums->heap_bytes += (double)allocated->heap_bytes;
	if (allocated->is_least) {
		/* A marking sets gc.estimate anew: only what was freed since then is still to come off it. */
		if (allocated->has_marked)
			sums->freed_bytes = 0;
		sums->marked_bytes += allocated->has_marked ? counted_bytes(sums, allocated)
							    : (double)allocated->bytes;
		sums->markings += allocated->has_marked;
		return;
	}
	intervals->whole_count++;
	intervals->whole_ns += (double)cpu_ns;
	bytes = counted_bytes(sums, allocated);
	intervals->whole_bytes += bytes;
	/* Where looks in between did not meet the VM, it did nothing. */
	if ((double)cpu_ns <= sums->look_ns)
		note_long(sums, (double)cpu_ns, bytes);
}

static void add_piece(struct span_sum *spans, const struct span_piece *piece, double part)
{
	spans->ns += (double)piece->ns;
	if (piece->allocated.is_least) {
		spans->marked += part;
		spans->marked_ns += (double)piece->ns;
		spans->marked_bytes += (double)piece->allocated.bytes;
	} else if (piece->allocated.bytes != 0) {
		/*
		 * What a sweep frees is too little in one span, and too much in another one: at random
		 * moments, both cancel.
		 */
		spans->busy += part;
		spans->busy_ns += (double)piece->ns;
		spans->bytes += (double)piece->allocated.bytes;
		spans->most_bytes = fmax(spans->most_bytes, (double)piece->allocated.bytes);
	}
}

void allocation_sums_add_span(struct allocation_sums *sums, const struct span_piece *pieces, size_t count,
			      bool is_slowed)
{
	struct span_sum *spans = &sums->spans;

	for (size_t i = 0; i < count; i++)
		if (pieces[i].allocated.may_have_resized)
			return;
	spans->count++;
	spans->slowed += is_slowed;
	for (size_t i = 0; i < count; i++)
		add_piece(spans, &pieces[i], 1 / (double)count);
}

/* Both; of the others only this part. */
static struct span_sum spans_with(const struct span_sum *some, const struct span_sum *others, double part)
{
	return (struct span_sum){
		some->count + part * others->count,         some->ns + part * others->ns,
		some->slowed + part * others->slowed,       some->marked + part * others->marked,
		some->marked_ns + part * others->marked_ns, some->marked_bytes + part * others->marked_bytes,
		some->busy + part * others->busy,           some->busy_ns + part * others->busy_ns,
		some->bytes + part * others->bytes,         fmax(some->most_bytes, others->most_bytes)
	};
}

/* Do most of those in which something was allocated have a marking? */
static bool are_marked(const struct span_sum *spans)
{
	return spans->marked > spans->busy;
}

/*
 * How fast the VM allocates, if spans have so many bytes. Spans in which a marking ended have as much as
 * others in which something was allocated: cycles of some 40 us, of a heap of 80 KB, end in most spans of a
 * program while it allocates, and in none while it does something else. But where most have one, the
 * collector has most of that time.
 */
static double rate_of(const struct span_sum *spans, double bytes)
{
	if (are_marked(spans))
		return (bytes + spans->marked_bytes) / spans->ns;
	return spans->busy > 0 ? bytes / spans->busy_ns * (spans->busy_ns + spans->marked_ns) / spans->ns : 0;
}

/* Are there enough to settle how fast it is? */
static bool are_enough(const struct span_sum *spans)
{
	return spans->count >= SPANS_MIN;
}

/* 0 if it is unknown. */
static double rate_by(const struct span_sum *spans)
{
	return are_enough(spans) && spans->busy >= BUSY_SPANS_MIN ? rate_of(spans, spans->bytes) : 0;
}

/*
 * What few spans tell at least: the lower end of Wilson's interval, two standard errors wide, for the part of
 * them that were busy. The piece with most, maybe of a large object, or one that a sweep has too much, counts
 * for nothing.
 */
static double least_rate_by(const struct span_sum *spans)
{
	const double width = 2, count = spans->count, square = width * width;
	double part, least;

	if (spans->busy <= 0)
		return 0;
	part = (spans->busy + spans->marked) / count;
	least = (part + square / (2 * count) -
		 width * sqrt(part * (1 - part) / count + square / (4 * count * count))) /
		(1 + square / count);
	return least / part * (spans->bytes - spans->most_bytes) / spans->ns;
}

/*
 * Was it faster than that? Most of the spans with a marking is unknown, or there were two in one, which hide
 * each other.
 */
static bool may_be_faster(const struct span_sum *spans)
{
	return 2 * spans->slowed > spans->count || are_marked(spans);
}

static struct interval_sum intervals_with(const struct interval_sum *some, const struct interval_sum *others,
					  double part)
{
	return (struct interval_sum){ some->count + part * others->count, some->ns + part * others->ns,
				      some->whole_count + part * others->whole_count,
				      some->whole_ns + part * others->whole_ns,
				      some->whole_bytes + part * others->whole_bytes };
}

/*
 * Those that judge a division: its own, as programs work in bursts. Beside others that want the same CPUs,
 * these are few, and earlier ones count, too.
 */
static struct span_sum spans_to_judge(const struct allocation_sums *sums)
{
	return sums->spans.count >= SPANS_MIN ? sums->spans : spans_with(&sums->spans, &sums->past_spans, 1);
}

static struct interval_sum intervals_to_judge(const struct allocation_sums *sums)
{
	return sums->intervals.count >= INTERVALS_MIN
		       ? sums->intervals
		       : intervals_with(&sums->intervals, &sums->past_intervals, 1);
}

/* An interval in which a marking ended counts as much as the others: what these and the whole ones have. */
static double bytes_by_intervals(const struct allocation_sums *sums, const struct interval_sum *judging)
{
	const struct interval_sum *own = &sums->intervals;
	const double marked_ns = own->ns - own->whole_ns;

	return own->whole_bytes + (marked_ns > 0 ? marked_ns * judging->whole_bytes / judging->whole_ns : 0);
}

/* Is there more than intervals tell, as many a marking ended in them, or many a one was not even noticed? */
static bool lacks_cycles(const struct allocation_sums *sums, const struct interval_sum *judging)
{
	const double count = sums->intervals.count;

	/*
	 * Nothing was allocated; or the division's own spans would have met short cycles. What was before
	 * does not matter.
	 */
	if (count <= 0 ||
	    (sums->spans.count >= SPANS_MIN && sums->spans.marked_ns <= 0 && sums->markings <= 0))
		return false;
	/*
	 * Long intervals have more markings: so it is their time that counts. But two markings that leave as
	 * much alive as there was hide each other, in half of the intervals: some long ones of these hide
	 * most of the time.
	 */
	if (judging->whole_ns < intervals_min * judging->ns ||
	    judging->whole_count < intervals_min * judging->count)
		return true;
	/*
	 * Where only a part of the time has short cycles, what these need tells. The first one may have begun
	 * before.
	 */
	return sums->markings > 1 && sums->markings >= marked_min * count &&
	       (sums->markings - 1) * cycle_min * sums->heap_bytes / count >
		       needed_max * bytes_by_intervals(sums, judging);
}

/*
 * Two markings in one interval may hide each other. Where looks come late, as on a full machine, some are so
 * long that at the speed of the others a whole cycle more fits. Such an interval counts as one in which a
 * marking ended; but the VM may have done nothing in that time.
 */
static void leave_out_long(struct allocation_sums *sums)
{
	struct interval_sum *own = &sums->intervals;
	double short_ns = own->whole_ns, short_bytes = own->whole_bytes;
	const double short_count = own->whole_count - LONG_INTERVALS_MAX;
	const double cycle = own->count > 0 ? cycle_min * sums->heap_bytes / own->count : 0;

	for (size_t i = 0; i < LONG_INTERVALS_MAX; i++) {
		short_ns -= sums->longest[i].ns;
		short_bytes -= sums->longest[i].bytes;
	}
	if (short_count < SHORT_MIN || short_ns <= 0)
		return;
	for (size_t i = 0; i < LONG_INTERVALS_MAX; i++) {
		const struct long_interval *interval = &sums->longest[i];

		if (interval->ns <= long_min * short_ns / short_count ||
		    interval->ns * short_bytes / short_ns - interval->bytes <= cycle)
			continue;
		own->whole_count--;
		own->whole_ns -= interval->ns;
		own->whole_bytes -= interval->bytes;
		sums->left_out.count++;
		sums->left_out.ns += interval->ns;
		sums->left_out.whole_bytes += interval->bytes;
	}
}

/*
 * Most of the time is not for the rest to tell: what was counted in it is a lower bound, and the rest is
 * judged without it. Spans do not tell of it either, as these come right after looks.
 */
static bool set_left_out_aside(struct allocation_sums *sums)
{
	struct interval_sum *own = &sums->intervals;
	const struct interval_sum *left_out = &sums->left_out;

	if (left_out->ns <= (1 - intervals_min) * own->ns)
		return false;
	sums->heap_bytes *= 1 - left_out->count / own->count;
	own->count -= left_out->count;
	own->ns -= left_out->ns;
	sums->seen_ns = fmax(sums->seen_ns - left_out->ns, 0);
	return true;
}

/*
 * What the time that is owed has at that speed, besides what was counted. All VMs of a process have the same
 * spans, and those that take turns divide them: so each is paid as soon as these are enough, even if few of
 * them have met it. Later on, others would tell its speed, and all could have more than there was.
 */
static double pay_owed(struct allocation_sums *sums, double rate)
{
	const double bytes = fmax(rate * sums->owed_ns - sums->owed_bytes, 0);

	sums->owed_ns = sums->owed_bytes = 0;
	return bytes;
}

/* There are more bytes than intervals tell, and few spans, or few of them, have met the VM. */
static void add_least(struct allocation_sums *sums, const struct span_sum *spans)
{
	double rate;

	sums->sum = ALLOCATION_SUM_LEAST;
	if (are_enough(spans) && !are_marked(spans)) {
		rate = rate_of(spans, spans->bytes - spans->most_bytes);
		sums->sum_bytes = fmax(sums->sum_bytes, rate * sums->seen_ns) + pay_owed(sums, rate);
	} else {
		sums->sum_bytes = fmax(sums->sum_bytes, least_rate_by(spans) * sums->seen_ns);
		sums->owed_ns += sums->seen_ns;
		sums->owed_bytes += sums->sum_bytes;
	}
}

/* Where cycles are much shorter than intervals, spans see much more than these. */
static void add_up_looks(struct allocation_sums *sums)
{
	const struct span_sum spans = spans_to_judge(sums);
	const struct interval_sum judging = intervals_to_judge(sums);
	const double rate = rate_by(&spans);
	const bool lacks = lacks_cycles(sums, &judging);
	double spans_bytes;

	sums->sum = ALLOCATION_SUM_COUNTED;
	sums->sum_bytes = lacks ? sums->intervals.whole_bytes + sums->marked_bytes
				: bytes_by_intervals(sums, &judging);
	if (rate > 0 && (lacks || (sums->spans.count >= SPANS_MIN &&
				   rate * sums->seen_ns > cycle_min * sums->heap_bytes &&
				   rate * sums->seen_ns > spans_max * sums->sum_bytes))) {
		sums->sum = may_be_faster(&spans) ? ALLOCATION_SUM_LEAST : ALLOCATION_SUM_ESTIMATED;
		spans_bytes = rate * sums->seen_ns + pay_owed(sums, rate);
		sums->sum_bytes = sums->sum == ALLOCATION_SUM_LEAST ? fmax(spans_bytes, sums->sum_bytes)
								    : spans_bytes;
	} else if (lacks) {
		add_least(sums, &spans);
	}
}

/* What comes after the first look tells of the time before. */
static void note_after(struct allocation_sums *sums)
{
	sums->after_ns += sums->seen_ns;
	sums->after_bytes += sums->sum_bytes;
	if (sums->sum == ALLOCATION_SUM_COUNTED)
		sums->after_counted_bytes += sums->sum_bytes;
	sums->after_is_least |= sums->sum == ALLOCATION_SUM_LEAST;
}

void allocation_sums_add_up(struct allocation_sums *sums)
{
	bool is_late;

	leave_out_long(sums);
	is_late = set_left_out_aside(sums);
	if (!is_late)
		sums->marked_bytes += sums->left_out.whole_bytes;
	add_up_looks(sums);
	if (is_late) {
		sums->sum = ALLOCATION_SUM_LEAST;
		sums->sum_bytes += sums->left_out.whole_bytes;
	} else if (sums->left_out.count > 0 && sums->sum == ALLOCATION_SUM_COUNTED) {
		sums->sum = ALLOCATION_SUM_ESTIMATED;
	}
	note_after(sums);
}

/* No counter tells what was allocated before the first look, which comes late on a full machine. */
struct allocation_before allocation_sums_before(const struct allocation_sums *sums)
{
	struct allocation_before before = { .sum = ALLOCATION_SUM_COUNTED };

	if (sums->before_ns <= 0 || sums->before_ns < before_min * sums->after_ns)
		return before;
	if (sums->after_ns < sums->before_ns) {
		before.sum = ALLOCATION_SUM_LEAST;
		before.uncertain_bytes = sums->after_counted_bytes;
		return before;
	}
	before.sum = sums->after_is_least ? ALLOCATION_SUM_LEAST : ALLOCATION_SUM_ESTIMATED;
	before.part = sums->before_ns / sums->after_ns;
	before.uncertain_bytes = before.part * sums->after_bytes;
	return before;
}

void allocation_sums_end(struct allocation_sums *sums, double fading)
{
	const struct span_sum spans = spans_to_judge(sums), no_span = { 0 };
	const struct interval_sum intervals = intervals_to_judge(sums), no_interval = { 0 };
	/* Where spans are rare, even old ones are better than too few. */
	const double spans_fading = spans.count * fading >= SPANS_MIN ? fading : 1;

	sums->intervals = sums->left_out = no_interval;
	memset(sums->longest, 0, sizeof(sums->longest));
	sums->spans = no_span;
	sums->past_intervals = intervals_with(&no_interval, &intervals, fading);
	sums->past_spans = spans_with(&no_span, &spans, spans_fading);
	sums->seen_ns = sums->marked_bytes = sums->markings = sums->heap_bytes = 0;
}

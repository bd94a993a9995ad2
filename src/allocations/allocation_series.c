/* SPDX-License-Identifier: MIT */
#include "src/allocations/allocation_series.h"

#include <signal.h>
#include <stddef.h>

#include "src/allocations/allocation_shares_parts.h"
#include "src/linux/clocks/clock.h"
#include "unwind/values/live_ctypes.h"

enum {
	SERIES_NS = 150 * 1000,
	LOOK_NS = 1000, /* shorter than to fill a large allocation; a look more costs the thread time */
	LOOKS_MAX = 2 + SERIES_NS / LOOK_NS,
	IDLE_NS = 50 * 1000,     /* so long the kernel may take for an allocation; or others have the CPU */
	GAP_NS = 10 * 1000,      /* in a longer one, there may be several allocations */
	GAP_NS_MAX = 100 * 1000, /* ljspy waits while the kernel maps memory; or has lost its CPU */
	CDATA_MAX = 16,          /* among the new objects of one pair; of more, each takes too long to read */
};

struct series_look {
	struct allocation_counters counters;
	uint64_t ns;
	enum pair_cdata cdata; /* of the pair that ends with it */
};

/*---- Looks ----*/

static bool signal_waits(void)
{
	static const int signals[] = { SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	sigset_t pending;

	sigemptyset(&pending);
	sigpending(&pending);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		if (sigismember(&pending, signals[i]))
			return true;
	return sigismember(&pending, SIGRTMIN);
}

/* Are so many bytes a C object, or some, of these that are new? */
static enum pair_cdata cdata_among(const struct series *series, size_t count, uint64_t bytes)
{
	struct live_ctypes types = { .memory = series->memory,
				     .layout = &series->global->vm->layout,
				     .g = series->global->g };
	uint64_t large = 0;
	size_t seen = 0;

	for (size_t i = 0; i < count; i++) {
		uint64_t size;

		if (series->objects[i].kind != ALLOCATION_CDATA)
			continue;
		if (++seen > CDATA_MAX || (seen == 1 && !live_ctypes_load(&types)))
			return PAIR_UNKNOWN;
		size = live_ctypes_object_bytes(&types, series->objects[i].address, series->objects[i].ctype);
		if (size == 0)
			return PAIR_UNKNOWN;
		if (shares_is_near((double)size, (double)bytes))
			return PAIR_CDATA;
		large += size >= ALLOCATION_LARGE_MIN ? size : 0;
	}
	if (large == 0)
		return PAIR_NO_CDATA;
	return shares_is_near((double)large, (double)bytes) ? PAIR_CDATA : PAIR_UNKNOWN;
}

/* LuaJIT may put a C object on its list a moment after counting it: the next look tells. */
static enum pair_cdata cdata_of(const struct series *series, const struct series_look *before,
				const struct series_look *now, const struct series_look *next)
{
	const uint64_t bytes = allocated_in_film(&before->counters, &now->counters);
	size_t count;

	if (bytes < ALLOCATION_LARGE_MIN || next->counters.root == before->counters.root)
		return PAIR_NO_CDATA;
	if (!allocated_objects(series->memory, series->global, next->counters.root, before->counters.root,
			       series->objects, &count))
		return PAIR_UNKNOWN;
	return cdata_among(series, count, bytes);
}

static bool look(const struct series *series, struct series_look *ret_look)
{
	const bool is_read = allocation_counters_read(series->memory, series->global, &ret_look->counters);

	ret_look->ns = clock_now_ns(CLOCK_MONOTONIC);
	return is_read;
}

/*
 * Look until a pair crosses the end: what the kernel takes long for must not be left out. Returns how many
 * looks there are; the last one only tells of the pair before it.
 */
static size_t take_looks(const struct series *series, struct series_look *looks)
{
	uint64_t end_ns = 0, idle_ns = 0;
	size_t count;

	for (count = 0; count < LOOKS_MAX && look(series, &looks[count]); count++) {
		const struct series_look *next = &looks[count];

		if (count == 0) {
			end_ns = next->ns + SERIES_NS;
			idle_ns = next->ns + IDLE_NS;
		} else if (next->counters.total != next[-1].counters.total) {
			idle_ns = next->ns + IDLE_NS;
		} else if (next->ns >= idle_ns) {
			if (!series->has_kept_cpu(series->context))
				return count + 1;
			idle_ns = next->ns + IDLE_NS;
		}
		if (count >= 2) {
			looks[count - 1].cdata = cdata_of(series, &next[-2], &next[-1], next);
			if (next[-1].ns >= end_ns)
				return count + 1;
		}
		if (signal_waits())
			return count + 1;
		clock_spin_until(CLOCK_MONOTONIC, next->ns + LOOK_NS);
	}
	return count;
}

/*---- Pairs ----*/

/* LuaJIT counts a new string only when it has been copied, which takes several looks if it is large. */
static bool has_new_string(const struct series_look *looks, size_t now, size_t count)
{
	const struct allocation_counters *before = &looks[now - 1].counters;

	for (size_t i = now; i < count; i++) {
		if (looks[i].counters.strings != before->strings)
			return looks[i].counters.strings > before->strings;
		if (looks[i].counters.total != looks[now].counters.total)
			return false;
	}
	return false;
}

void allocation_series_take(const struct series *series)
{
	struct series_look looks[LOOKS_MAX];
	const size_t count = take_looks(series, looks);

	for (size_t i = 1; i + 1 < count; i++) {
		const uint64_t gap_ns = looks[i].ns - looks[i - 1].ns;
		const struct allocation_pair pair = {
			.bytes = allocated_in_film(&looks[i - 1].counters, &looks[i].counters),
			.is_merged = gap_ns > GAP_NS,
			.has_string = has_new_string(looks, i, count),
			.cdata = looks[i].cdata,
		};

		if (gap_ns <= GAP_NS_MAX)
			allocation_shares_add_pair(series->shares, &pair);
	}
}

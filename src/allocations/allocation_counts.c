/* SPDX-License-Identifier: MIT */
#include "src/allocations/allocation_shares_parts.h"

static void add_part(struct allocation_shares *shares, uint64_t bytes, enum part part, double count)
{
	if (bytes >= ALLOCATION_LARGE_MIN)
		return;
	shares->classes[shares_part_class(shares, bytes, part)].part_bytes += count * (double)bytes;
}

/* Count the hash part of a new table. It has doubled until then, or not, as those that samples have met. */
static void add_hash_part(struct allocation_shares *shares, uint64_t bytes)
{
	double part = 1;

	for (; bytes > 0; bytes /= 2) {
		const double grown = bytes % 2 == 0 ? part * shares_grown_part(shares, ALLOCATION_HASH, bytes)
						    : 0;
		const uint64_t old = bytes / 2;

		add_part(shares, bytes, PART_FIRST, part - grown);
		if (grown <= 0)
			return;
		add_part(shares, old, PART_GROWN, grown);
		part = grown;
	}
}

/*
 * The same of its array part: one more slot than a power of two, of which half was added (lj_tab.c:
 * bestasize).
 */
static void add_array_part(struct allocation_shares *shares, uint64_t bytes)
{
	double part = 1;

	for (; bytes > 0; bytes -= (bytes - ARRAY_SLOT) / 2) {
		const double grown = part * shares_grown_part(shares, ALLOCATION_ARRAY, bytes);

		add_part(shares, bytes, PART_ANY, part - grown);
		if (grown <= 0)
			return;
		add_part(shares, (bytes - ARRAY_SLOT) / 2, PART_ANY, grown);
		part = grown;
	}
}

/* By what a stack of so many bytes grows if it doubles (lj_state.c: lj_state_growstack, resizestack). */
static uint64_t stack_growth(uint64_t bytes, uint64_t least)
{
	return bytes + least - STACK_START + STACK_SLOT;
}

/* What a stack began with that has only doubled: each build's sizes are others. 0 if it has done more. */
static uint64_t doubled_from(uint64_t bytes)
{
	for (uint64_t least = STACK_START; shares_is_first_stack(least); least += STACK_SLOT) {
		uint64_t now = least;

		while (now < bytes && now < ALLOCATION_LARGE_MIN)
			now += stack_growth(now, least);
		if (now == bytes)
			return least;
	}
	return 0;
}

/* The least of those that coroutines began with; have_grown: by what they have grown to. 0: none. */
static uint64_t find_least_stack(const struct listed_object *objects, size_t count, bool have_grown)
{
	uint64_t least = 0;

	for (size_t i = 0; i < count; i++) {
		const uint64_t bytes = have_grown ? doubled_from(objects[i].stack_bytes)
						  : objects[i].stack_bytes;

		if (shares_is_first_stack(bytes) && (least == 0 || bytes < least))
			least = bytes;
	}
	return least;
}

/*
 * All coroutines begin with stacks of one size: the least that two windows agree on, if no sample tells. In
 * one, it may be read before it is filled in. Until one has met a coroutine whose stack has not grown, others
 * tell.
 */
static void note_least_stack(struct allocation_shares *shares, const struct listed_object *objects,
			     size_t count)
{
	const uint64_t least = find_least_stack(objects, count, false);

	if (shares->least_stack == 0) {
		shares->least_stack = least ? least : find_least_stack(objects, count, true);
		return;
	}
	if (least == 0 || shares->has_sampled_stack)
		return;
	if (least == shares->least_stack) {
		shares->knows_least_stack = true;
	} else if (least < shares->least_stack || !shares->knows_least_stack) {
		if (least == shares->other_stack) {
			shares_set_least_stack(shares, least);
			shares->knows_least_stack = true;
		}
		shares->other_stack = least;
	}
}

/*
 * Which part of the stacks of so many bytes have grown to them at once, from now on: others have doubled, and
 * then maybe grown at once. Samples tell, by what each of both has grown by at last.
 */
static double grown_at_once(const struct allocation_shares *shares, uint64_t now, uint64_t bytes)
{
	const double at_once = shares_grown_stacks(shares, bytes - now);
	double doubled = 0;

	if (at_once <= 0)
		return 0;
	for (now += stack_growth(now, shares->least_stack); now < bytes && doubled <= 0;
	     now += stack_growth(now, shares->least_stack))
		doubled = shares_grown_stacks(shares, bytes - now);
	return at_once / (at_once + doubled);
}

/*
 * Count the stack of a new coroutine. Only its last size is seen, but what it has grown by adds up to that:
 * it doubles, or grows at once by what samples have met.
 */
static void add_stack(struct allocation_shares *shares, uint64_t bytes)
{
	uint64_t now = shares->least_stack;
	double part = 1;

	if (now == 0 || bytes < STACK_START || bytes >= ALLOCATION_LARGE_MIN)
		return;
	add_part(shares, now, PART_STACK, 1);
	while (now < bytes && part > 0) {
		const uint64_t rest = bytes - now;
		const uint64_t doubled = stack_growth(now, shares->least_stack);
		const double at_once = doubled < rest ? part * grown_at_once(shares, now, bytes) : part;

		if (at_once > 0)
			add_part(shares, rest, PART_STACK_GROWN, at_once);
		part -= at_once;
		if (part > 0)
			add_part(shares, doubled, PART_STACK_GROWN, part);
		now += doubled;
	}
}

/*
 * Can a window with so many bytes have these objects? LuaJIT puts an object on the list before it fills it in
 * (lj_gc.c: lj_mem_newgco()). Where the thread loses its CPU right then, there is still what was freed there,
 * which may seem to be a table of gigabytes.
 */
static bool has_room_for(const struct allocated *allocated, const struct listed_object *objects, size_t count)
{
	double left = (double)allocated->bytes + ALLOCATED_FREED_MAX;

	for (size_t i = 0; i < count; i++)
		left -= (double)objects[i].bytes + (double)listed_part_bytes(&objects[i]);
	return left >= 0;
}

void allocation_shares_add_window(struct allocation_shares *shares, const struct allocated *allocated,
				  const struct listed_object *objects, size_t count)
{
	/* C objects that were finalized are not new. */
	if (!shares_is_sound(allocated) || allocated->may_have_finalized || !objects ||
	    !has_room_for(allocated, objects, count))
		return;
	if (allocated->knows_strings) {
		shares->string_window_bytes += (double)allocated->bytes;
		shares->strings += allocated->strings;
	}
	shares->listed_bytes += (double)allocated->bytes;
	note_least_stack(shares, objects, count);
	for (size_t i = 0; i < count; i++) {
		const struct class_key key = shares_object_key(objects[i].kind, objects[i].bytes,
							       objects[i].ctype);
		/* What is large has a class of its own. */
		const size_t class = objects[i].bytes < ALLOCATION_LARGE_MIN
					     ? shares_find_class(shares, &key, true, CLASS_PARTS)
					     : CLASS_LARGE;

		if (class >= CLASSES_FIXED) {
			shares->classes[class].counted++;
			shares->classes[class].counted_bytes += (double)objects[i].bytes;
		}
		if (objects[i].hash_bytes)
			add_hash_part(shares, objects[i].hash_bytes);
		if (objects[i].array_bytes)
			add_array_part(shares, objects[i].array_bytes);
		if (objects[i].stack_bytes)
			add_stack(shares, objects[i].stack_bytes);
	}
}

/* Count a string or a part. */
static void add_filmed(struct allocation_shares *shares, uint64_t bytes, bool is_string)
{
	const struct class_key key = { .kind = is_string ? ALLOCATION_STRING : ALLOCATION_OTHER,
				       .bytes = shares_size_step(bytes) };
	struct class *class = &shares->classes[shares_find_class(shares, &key, true,
								 is_string ? CLASS_STRINGS : CLASS_PARTS)];

	class->counted++;
	class->counted_bytes += (double)bytes;
}

/*
 * Count the parts, one or two, of sizes that samples have had. One of an unknown size counts if it came
 * alone.
 */
static void add_parts(struct allocation_shares *shares, const struct allocated_besides *besides)
{
	if (shares_is_part_size(shares, besides->bytes) || besides->objects < 2) {
		add_filmed(shares, besides->bytes, false);
		return;
	}
	for (size_t i = 0; i < shares->part_size_count; i++)
		if (shares->part_sizes[i] < besides->bytes &&
		    shares_is_part_size(shares, besides->bytes - shares->part_sizes[i])) {
			add_filmed(shares, shares->part_sizes[i], false);
			add_filmed(shares, besides->bytes - shares->part_sizes[i], false);
			return;
		}
}

/*
 * LuaJIT counts a new string only when it has been copied: maybe at the next look, at which nothing else is
 * new.
 */
static bool will_be_string(const struct allocation_counters *film, size_t i)
{
	const struct allocation_counters *now = &film[i], *next = now + 1;

	return i + 1 < ALLOCATION_FILM_LOOKS && next->strings == now->strings + 1 &&
	       next->total == now->total && next->root == now->root;
}

/* Count two strings of sizes that samples have met. False if no two fit. */
static bool add_two_strings(struct allocation_shares *shares, uint64_t bytes)
{
	for (size_t i = CLASSES_FIXED; i < shares->class_count; i++) {
		const uint64_t one = (uint64_t)(shares->classes[i].mean + 0.5);

		if (shares->classes[i].key.kind != ALLOCATION_STRING || one == 0 || one >= bytes ||
		    !shares_is_string_size(shares, bytes - one))
			continue;
		add_filmed(shares, one, true);
		add_filmed(shares, bytes - one, true);
		return true;
	}
	return false;
}

/*
 * Count the strings, one or two, that are new between two looks. Parts of objects that are new, too, are
 * subtracted. Of two, LuaJIT may have counted one only (will_be_string()).
 */
static void add_strings(struct allocation_shares *shares, const struct allocated_besides *besides)
{
	const uint64_t bytes = besides->bytes - besides->part_bytes;
	const bool is_one = besides->strings == 1;

	if (besides->bytes <= besides->part_bytes || besides->strings > 2)
		return;
	if ((is_one && shares_is_string_size(shares, bytes)) ||
	    (!add_two_strings(shares, bytes) && is_one && besides->objects == 0))
		add_filmed(shares, bytes, true);
}

static void add_besides(struct allocation_shares *shares, const struct allocation_counters *film, size_t i,
			const struct allocated_besides *besides)
{
	if (besides->strings > 0) {
		add_strings(shares, besides);
	} else if (will_be_string(film, i)) {
		add_filmed(shares, besides->bytes, true);
	} else {
		shares->film_part_bytes += (double)besides->bytes;
		add_parts(shares, besides);
	}
}

void allocation_shares_add_film(struct allocation_shares *shares,
				const struct allocation_counters film[static ALLOCATION_FILM_LOOKS],
				const struct listed_object *objects, size_t count)
{
	const bool knows_objects = count > 0 || film[ALLOCATION_FILM_LOOKS - 1].root == film[0].root;

	for (size_t i = 1; i < ALLOCATION_FILM_LOOKS; i++) {
		const uint64_t bytes = allocated_in_film(&film[i - 1], &film[i]);
		struct allocated_besides besides;

		/* So much at once is one allocation. */
		if (bytes >= ALLOCATION_LARGE_MIN) {
			shares->film_large_bytes += knows_objects ? (double)bytes : 0;
			continue;
		}
		shares->film_bytes += (double)bytes;
		if (allocated_besides_objects(&film[i - 1], &film[i], objects, count, &besides) &&
		    besides.bytes > 0)
			add_besides(shares, film, i, &besides);
	}
}

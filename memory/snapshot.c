/* SPDX-License-Identifier: MIT */
#include "memory/snapshot.h"

#include <stdlib.h>
#include <string.h>

#include "memory/array.h"

enum {
	PAGE_SIZE = 4096,
	/* Guesses merge up to this length; without a limit they would grow without end. */
	MERGED_GUESS_BYTES_MAX = 2 * PAGE_SIZE,
	/*
	 * Keep a guess, or a part, so many times in vain: a program with several tasks returns to earlier
	 * ones.
	 */
	VAIN_GUESSES_MAX = 4,
	/* So many items are sorted by insertion: most are in order already. */
	FEW = 24,
};

/* Why bytes were captured. */
enum purpose {
	CAPTURED_FIRST,
	CAPTURED_GUESSED,
	CAPTURED_LATER,
	CAPTURED_AROUND, /* the pages of what a reader is about to ask for */
};

/*
 * Captured bytes, at arena + offset. Readers asked for [asked_begin, asked_end) of them; 0 and 0: for none.
 */
struct region {
	uint64_t address;
	size_t length;
	size_t offset;
	size_t asked_begin, asked_end;
	enum purpose purpose;
	uint16_t vain, partly; /* of its guess: see struct snapshot_guesses */
};

/*
 * A range to read: a guess, or the caller's range at index. piece is the number of the piece that holds it.
 */
struct wanted {
	uint64_t address;
	size_t length;
	size_t index, piece;
	bool is_guess;
	uint16_t vain, partly;
};

struct snapshot {
	struct memory memory; /* must be first: snapshot_memory() returns it */
	struct memory *live;
	uint8_t *arena;
	size_t used, size;
	struct region *regions; /* by address; they may overlap */
	size_t region_count, region_size;
	struct wanted *wanted; /* scratch for one capture */
	struct memory_range *pieces;
	size_t wanted_size, piece_size;
	uint64_t longest; /* length of the longest region */
	size_t read_count;
	bool sealed;
	/* Where the two reads before hit; such as the native stack and Lua's. */
	struct region *last, *before_last;
};

static bool grow(void **array, size_t *size, size_t wanted, size_t item)
{
	void *moved;

	if (wanted <= *size)
		return true;
	moved = array_grow(*array, size, wanted, item);
	if (!moved)
		return false;
	*array = moved;
	return true;
}

static int compare_regions(const void *a, const void *b)
{
	const struct region *left = a, *right = b;

	if (left->address != right->address)
		return left->address < right->address ? -1 : 1;
	return (left->length < right->length) - (left->length > right->length);
}

static void note_asked(struct region *region, size_t begin, size_t end)
{
	if (region->asked_end == 0 || begin < region->asked_begin)
		region->asked_begin = begin;
	if (end > region->asked_end)
		region->asked_end = end;
}

static bool contains(const struct region *region, uint64_t address, size_t length)
{
	uint64_t offset = address - region->address;

	return address >= region->address && offset <= region->length && length <= region->length - offset;
}

static void note_last(struct snapshot *snapshot, struct region *region)
{
	if (snapshot->last == region)
		return;
	snapshot->before_last = snapshot->last;
	snapshot->last = region;
}

static void forget_last(struct snapshot *snapshot)
{
	snapshot->last = snapshot->before_last = NULL;
}

/* How many regions begin at address or before it. Most reads are near one of the two before. */
static size_t count_up_to(const struct snapshot *snapshot, uint64_t address)
{
	const struct region *regions = snapshot->regions, *const near[] = { snapshot->last,
									    snapshot->before_last };
	size_t low = 0, high = snapshot->region_count;

	for (size_t i = 0; i < sizeof(near) / sizeof(near[0]); i++)
		if (near[i] && near[i]->address <= address &&
		    (near[i] + 1 == regions + high || near[i][1].address > address))
			return (size_t)(near[i] - regions) + 1;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (regions[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/*
 * The captured region that holds all of [address, address + length), or NULL.
 * Regions may overlap, so try those that start before address for as long as
 * the longest one could reach it.
 */
static struct region *find_unasked(const struct snapshot *snapshot, uint64_t address, size_t length)
{
	size_t low = count_up_to(snapshot, address);

	while (low-- > 0) {
		struct region *region = &snapshot->regions[low];

		if (address - region->address >= snapshot->longest)
			return NULL;
		if (contains(region, address, length))
			return region;
	}
	return NULL;
}

/* The same for a reader, who asks for these bytes. */
static struct region *find(struct snapshot *snapshot, uint64_t address, size_t length)
{
	struct region *region = snapshot->last;

	if (snapshot->sealed && region && contains(region, address, length))
		return region;
	region = snapshot->before_last;
	if (!snapshot->sealed || !region || !contains(region, address, length))
		region = find_unasked(snapshot, address, length);
	if (!region)
		return NULL;
	note_asked(region, (size_t)(address - region->address), (size_t)(address - region->address) + length);
	note_last(snapshot, region);
	return region;
}

/*---- Capturing ----*/

static int compare_wanted(const void *a, const void *b)
{
	const struct wanted *left = a, *right = b;

	return (left->address > right->address) - (left->address < right->address);
}

static void sort_wanted(struct wanted *wanted, size_t count)
{
	if (count > FEW) {
		qsort(wanted, count, sizeof(*wanted), compare_wanted);
		return;
	}
	for (size_t i = 1; i < count; i++) {
		struct wanted one = wanted[i];
		size_t at = i;

		for (; at > 0 && wanted[at - 1].address > one.address; at--)
			wanted[at] = wanted[at - 1];
		wanted[at] = one;
	}
}

/*
 * Should the piece extend to this address? A gap of up to a page costs less to copy than another
 * piece. Each page must hold wanted bytes, since a page is mapped whole or not at all: so the gap
 * is less than a page.
 */
static bool touches(const struct memory_range *piece, uint64_t address)
{
	uint64_t end = piece->address + piece->length;

	return address <= end || address - end < PAGE_SIZE;
}

/*
 * Join wanted ranges of neighbouring pages into one piece: each piece costs the
 * kernel as much as copying some KiB. Returns the number of pieces.
 */
static size_t join(struct snapshot *snapshot, size_t wanted_count)
{
	struct memory_range *pieces = snapshot->pieces;
	size_t count = 0;

	for (size_t i = 0; i < wanted_count; i++) {
		struct wanted *wanted = &snapshot->wanted[i];
		uint64_t end = wanted->address + wanted->length;

		if (count == 0 || !touches(&pieces[count - 1], wanted->address))
			pieces[count++] = (struct memory_range){ .address = wanted->address };
		wanted->piece = count - 1;
		if (end > pieces[count - 1].address + pieces[count - 1].length)
			pieces[count - 1].length = (size_t)(end - pieces[count - 1].address);
	}
	return count;
}

/* Make each wanted range a piece. Returns the number of pieces. */
static size_t take_apart(struct snapshot *snapshot, size_t wanted_count)
{
	for (size_t i = 0; i < wanted_count; i++) {
		struct wanted *wanted = &snapshot->wanted[i];

		wanted->piece = i;
		snapshot->pieces[i] = (struct memory_range){ .address = wanted->address,
							     .length = wanted->length };
	}
	return wanted_count;
}

/* The regions before old_count are in order. */
static void put_in_order(struct region *regions, size_t old_count, size_t count)
{
	if (count - old_count > FEW) {
		qsort(regions, count, sizeof(*regions), compare_regions);
		return;
	}
	for (size_t i = old_count; i < count; i++) {
		struct region region = regions[i];
		size_t at = i;

		for (; at > 0 && compare_regions(&regions[at - 1], &region) > 0; at--)
			regions[at] = regions[at - 1];
		regions[at] = region;
	}
}

static void add_region(struct snapshot *snapshot, const struct region *region)
{
	snapshot->regions[snapshot->region_count++] = *region;
	if (region->length > snapshot->longest)
		snapshot->longest = region->length;
}

/* Add a region for each guess, which notes whether that guess was right. */
static void add_guesses(struct snapshot *snapshot, const struct memory_range *piece,
			const struct wanted *wanted, size_t count, size_t offset)
{
	for (size_t i = 0; i < count; i++)
		if (wanted[i].is_guess)
			add_region(snapshot, &(struct region){ .address = wanted[i].address,
							       .length = wanted[i].length,
							       .offset = offset + (size_t)(wanted[i].address -
											   piece->address),
							       .purpose = CAPTURED_GUESSED,
							       .vain = wanted[i].vain,
							       .partly = wanted[i].partly });
}

/* Add the pieces that were read as regions. The wanted ranges are in the order of the pieces. */
static void keep_pieces(struct snapshot *snapshot, size_t count, size_t wanted_count, enum purpose purpose)
{
	size_t old_count = snapshot->region_count, next = 0;
	const struct region *regions = snapshot->regions;

	forget_last(snapshot); /* regions move */
	for (size_t i = 0; i < count; i++) {
		const struct memory_range *piece = &snapshot->pieces[i];
		size_t offset = (size_t)((uint8_t *)piece->copy - snapshot->arena), first = next;

		while (next < wanted_count && snapshot->wanted[next].piece == i)
			next++;
		if (piece->status != MEMORY_OK)
			continue;
		add_region(snapshot, &(struct region){ .address = piece->address,
						       .length = piece->length,
						       .offset = offset,
						       .purpose = purpose });
		add_guesses(snapshot, piece, &snapshot->wanted[first], next - first, offset);
	}
	if (old_count && old_count < snapshot->region_count &&
	    regions[old_count].address < regions[old_count - 1].address)
		put_in_order(snapshot->regions, old_count, snapshot->region_count);
}

/* Read the pieces, which hold the wanted ranges. False if they are too large or memory is short. */
static bool read_pieces(struct snapshot *snapshot, size_t count, size_t wanted_count, enum purpose purpose)
{
	struct memory_range *pieces = snapshot->pieces;
	size_t total = snapshot->used, offset = snapshot->used;

	for (size_t i = 0; i < count; i++) {
		if (pieces[i].length > SNAPSHOT_BYTES_MAX - total)
			return false;
		total += pieces[i].length;
	}
	/* Copies point into the arena, so it must exist even for no bytes. */
	if (!grow((void **)&snapshot->arena, &snapshot->size, total ? total : 1, 1) ||
	    !grow((void **)&snapshot->regions, &snapshot->region_size,
		  snapshot->region_count + count + wanted_count, sizeof(*snapshot->regions)))
		return false;
	for (size_t i = 0; i < count; i++) {
		pieces[i].copy = snapshot->arena + offset;
		offset += pieces[i].length;
	}
	memory_read_ranges(snapshot->live, pieces, count);
	snapshot->read_count++;
	snapshot->used = total;
	keep_pieces(snapshot, count, wanted_count, purpose);
	return true;
}

static bool make_scratch(struct snapshot *snapshot, size_t count)
{
	return grow((void **)&snapshot->wanted, &snapshot->wanted_size, count, sizeof(*snapshot->wanted)) &&
	       grow((void **)&snapshot->pieces, &snapshot->piece_size, count, sizeof(*snapshot->pieces));
}

static const struct region *find_range(struct snapshot *snapshot, const struct memory_range *range,
				       enum purpose purpose)
{
	return purpose == CAPTURED_AROUND ? find_unasked(snapshot, range->address, range->length)
					  : find(snapshot, range->address, range->length);
}

/* The range's bytes are in the region. */
static void note_held(const struct snapshot *snapshot, const struct region *region,
		      struct memory_range *range)
{
	range->copy = snapshot->arena + region->offset + (range->address - region->address);
	range->status = MEMORY_OK;
}

/* List by address the ranges that are not held yet, and the guesses. Returns their number. */
static size_t list_wanted(struct snapshot *snapshot, struct memory_range *ranges, size_t count,
			  const struct snapshot_guesses *guesses, enum purpose purpose)
{
	size_t wanted = 0, total = snapshot->used;

	for (size_t i = 0; i < count; i++) {
		struct memory_range *range = &ranges[i];
		const struct region *region;

		range->status = MEMORY_NOT_CAPTURED;
		if (range->length == 0)
			continue;
		region = find_range(snapshot, range, purpose);
		if (region)
			note_held(snapshot, region, range);
		if (region || range->length > SNAPSHOT_BYTES_MAX - total ||
		    range->address > UINT64_MAX - range->length)
			continue;
		total += range->length;
		snapshot->wanted[wanted++] = (struct wanted){ .address = range->address,
							      .length = range->length,
							      .index = i };
	}
	for (size_t i = 0; i < guesses->count; i++)
		snapshot->wanted[wanted++] = (struct wanted){ .address = guesses->pieces[i].address,
							      .length = guesses->pieces[i].length,
							      .is_guess = true,
							      .vain = guesses->pieces[i].vain,
							      .partly = guesses->pieces[i].partly };
	sort_wanted(snapshot->wanted, wanted);
	return wanted;
}

/*
 * Set the status of ranges whose piece failed. List those smaller than their
 * piece, which may be readable alone, and return their number.
 */
static size_t list_doubtful(struct snapshot *snapshot, struct memory_range *ranges, size_t count)
{
	size_t doubtful = 0;

	for (size_t i = 0; i < count; i++) {
		const struct wanted *wanted = &snapshot->wanted[i];
		const struct memory_range *piece = &snapshot->pieces[wanted->piece];

		if (piece->status == MEMORY_OK || wanted->is_guess)
			continue;
		ranges[wanted->index].status = piece->status;
		if (piece->length > wanted->length)
			snapshot->wanted[doubtful++] = *wanted;
	}
	return doubtful;
}

static void capture(struct snapshot *snapshot, struct memory_range *ranges, size_t count,
		    const struct snapshot_guesses *guesses, enum purpose purpose)
{
	const uintptr_t arena = (uintptr_t)snapshot->arena;
	size_t wanted;

	if (!make_scratch(snapshot, count + guesses->count)) {
		for (size_t i = 0; i < count; i++)
			ranges[i].status = MEMORY_NOT_CAPTURED;
		return;
	}
	wanted = list_wanted(snapshot, ranges, count, guesses, purpose);
	if (!wanted)
		return;
	if (read_pieces(snapshot, join(snapshot, wanted), wanted, purpose))
		wanted = list_doubtful(snapshot, ranges, wanted);
	if (wanted && read_pieces(snapshot, take_apart(snapshot, wanted), wanted, purpose))
		list_doubtful(snapshot, ranges, wanted);
	for (size_t i = 0; i < count; i++) {
		const struct region *region;

		/* Unless the arena has moved, those that were there stay where they are. */
		if (ranges[i].length == 0 ||
		    (ranges[i].status == MEMORY_OK && (uintptr_t)snapshot->arena == arena))
			continue;
		region = find_range(snapshot, &ranges[i], purpose);
		if (region)
			note_held(snapshot, region, &ranges[i]);
	}
}

static void capture_later(struct snapshot *snapshot, struct memory_range *ranges, size_t count,
			  enum purpose purpose)
{
	capture(snapshot, ranges, count, &(struct snapshot_guesses){ .count = 0 }, purpose);
}

void snapshot_capture(struct snapshot *snapshot, struct memory_range *ranges, size_t count)
{
	capture_later(snapshot, ranges, count, CAPTURED_LATER);
}

void snapshot_capture_first(struct snapshot *snapshot, struct memory_range *ranges, size_t count,
			    const struct snapshot_guesses *guesses)
{
	capture(snapshot, ranges, count, guesses, CAPTURED_FIRST);
}

/* Reading a page costs hardly more than a word of it, and readers often ask for more of it. */
static struct memory_range whole_pages(const struct memory_range *range)
{
	uint64_t begin = range->address & ~(uint64_t)(PAGE_SIZE - 1);
	uint64_t end = (range->address + range->length + PAGE_SIZE - 1) & ~(uint64_t)(PAGE_SIZE - 1);

	if (end <= begin)
		return *range;
	return (struct memory_range){ .address = begin, .length = (size_t)(end - begin) };
}

/*
 * The part of a guess to keep: what was asked for, and for a few times more what else it has of the same
 * pages. Other pages would be copied for nothing in each hold, and are soon asked for again if they are
 * wanted.
 */
static uint16_t cut_guess(const struct region *region, bool is_trial, size_t *begin, size_t *end)
{
	const struct memory_range asked = { .address = region->address + *begin, .length = *end - *begin };
	const struct memory_range pages = whole_pages(&asked);
	const uint64_t before = asked.address - pages.address;
	const uint16_t partly = (uint16_t)(region->partly + !is_trial);

	if (asked.length == region->length || partly > VAIN_GUESSES_MAX)
		return 0;
	*begin -= before < *begin ? (size_t)before : *begin;
	*end = pages.address + pages.length - region->address;
	if (*end > region->length)
		*end = region->length;
	return partly;
}

/* The part of a region that readers will most likely ask for again; false if none. */
static bool is_worth_guessing(const struct region *region, bool is_trial, struct snapshot_guess *ret_guess)
{
	const bool is_guess = region->purpose == CAPTURED_GUESSED;
	size_t begin = region->asked_begin, end = region->asked_end;
	uint16_t vain = 0, partly = 0;

	if (is_guess && end == 0) {
		vain = (uint16_t)(region->vain + !is_trial);
		partly = region->partly;
		end = region->length;
	} else if (is_guess) {
		partly = cut_guess(region, is_trial, &begin, &end);
	}
	if (region->purpose == CAPTURED_FIRST || end == 0 || vain > VAIN_GUESSES_MAX ||
	    end - begin > SNAPSHOT_GUESS_BYTES_MAX)
		return false;
	*ret_guess = (struct snapshot_guess){ .address = region->address + begin,
					      .length = (uint32_t)(end - begin),
					      .vain = vain,
					      .partly = partly };
	return true;
}

/* Let guess include other, if other begins within its pages and the two are not too long; false if not. */
static bool merge_guess(struct snapshot_guess *guess, const struct snapshot_guess *other)
{
	uint64_t end = guess->address + guess->length, other_end = other->address + other->length;

	if (other->address < guess->address || other->address / PAGE_SIZE > (end - 1) / PAGE_SIZE)
		return false;
	if (other_end <= end)
		return true;
	if (other_end - guess->address > MERGED_GUESS_BYTES_MAX)
		return false;
	guess->length = (uint32_t)(other_end - guess->address);
	if (other->vain < guess->vain)
		guess->vain = other->vain;
	if (other->partly < guess->partly)
		guess->partly = other->partly;
	return true;
}

void snapshot_note_guesses(struct snapshot *snapshot, uint64_t skip_begin, uint64_t skip_end, bool is_trial,
			   struct snapshot_guesses *ret_guesses)
{
	struct snapshot_guess *last = NULL, guess;

	ret_guesses->count = 0;
	for (size_t i = 0; i < snapshot->region_count; i++) {
		if (!is_worth_guessing(&snapshot->regions[i], is_trial, &guess) ||
		    (guess.address >= skip_begin && guess.address < skip_end) ||
		    (last && merge_guess(last, &guess)))
			continue;
		if (ret_guesses->count == SNAPSHOT_GUESSES_MAX)
			return;
		last = &ret_guesses->pieces[ret_guesses->count++];
		*last = guess;
	}
}

/* Regions may overlap, so this changes each that holds some of the bytes. Bytes that none holds stay out. */
void snapshot_overlay(struct snapshot *snapshot, uint64_t address, const void *bytes, size_t length)
{
	for (size_t i = 0; i < snapshot->region_count; i++) {
		const struct region *region = &snapshot->regions[i];
		uint64_t begin = address > region->address ? address : region->address;
		uint64_t end = region->address + region->length;

		if (end > address + length)
			end = address + length;
		if (begin < end)
			memcpy(snapshot->arena + region->offset + (begin - region->address),
			       (const uint8_t *)bytes + (begin - address), (size_t)(end - begin));
	}
}

/* Capture the pages of the ranges that the snapshot lacks, in one go for so many of them. */
static void capture_missing(struct snapshot *snapshot, const struct memory_range *ranges, size_t count)
{
	enum { MISSING_MAX = 32 };
	struct memory_range wanted[MISSING_MAX];
	size_t missing = 0;

	for (size_t i = 0; i < count && missing < MISSING_MAX; i++)
		if (ranges[i].length && !find_unasked(snapshot, ranges[i].address, ranges[i].length))
			wanted[missing++] = whole_pages(&ranges[i]);
	if (missing > 1)
		capture_later(snapshot, wanted, missing, CAPTURED_AROUND);
}

static void read_one(struct snapshot *snapshot, struct memory_range *range)
{
	const struct region *region;

	if (range->length == 0) {
		range->status = MEMORY_OK;
		return;
	}
	region = find(snapshot, range->address, range->length);
	if (!region && !snapshot->sealed) {
		struct memory_range wanted = whole_pages(range);

		capture_later(snapshot, &wanted, 1, CAPTURED_AROUND);
		if (wanted.status != MEMORY_OK) {
			range->status = wanted.status;
			return;
		}
		region = find(snapshot, range->address, range->length);
	}
	if (!region) {
		range->status = MEMORY_NOT_CAPTURED;
		return;
	}
	memcpy(range->copy, snapshot->arena + region->offset + (range->address - region->address),
	       range->length);
	range->status = MEMORY_OK;
}

static void snapshot_read_ranges(struct memory *memory, struct memory_range *ranges, size_t count)
{
	struct snapshot *snapshot = (struct snapshot *)memory;

	if (count > 1 && !snapshot->sealed)
		capture_missing(snapshot, ranges, count);
	for (size_t i = 0; i < count; i++)
		read_one(snapshot, &ranges[i]);
}

const void *snapshot_view(struct snapshot *snapshot, uint64_t address, size_t length)
{
	const struct region *region = find(snapshot, address, length);

	return region ? snapshot->arena + region->offset + (address - region->address) : NULL;
}

static const void *view(struct memory *memory, uint64_t address, size_t length)
{
	return snapshot_view((struct snapshot *)memory, address, length);
}

struct snapshot *snapshot_new(struct memory *live)
{
	struct snapshot *snapshot = calloc(1, sizeof(*snapshot));

	if (!snapshot)
		return NULL;
	snapshot->memory.read_ranges = snapshot_read_ranges;
	snapshot->memory.view = view;
	snapshot->live = live;
	return snapshot;
}

void snapshot_free(struct snapshot *snapshot)
{
	if (!snapshot)
		return;
	free(snapshot->arena);
	free(snapshot->regions);
	free(snapshot->wanted);
	free(snapshot->pieces);
	free(snapshot);
}

void snapshot_clear(struct snapshot *snapshot)
{
	snapshot->used = 0;
	snapshot->region_count = 0;
	snapshot->longest = 0;
	snapshot->read_count = 0;
	snapshot->sealed = false;
	forget_last(snapshot);
}

size_t snapshot_read_count(const struct snapshot *snapshot)
{
	return snapshot->read_count;
}

void snapshot_seal(struct snapshot *snapshot)
{
	snapshot->sealed = true;
	forget_last(snapshot);
}

struct memory *snapshot_memory(struct snapshot *snapshot)
{
	return &snapshot->memory;
}

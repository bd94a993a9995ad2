/* SPDX-License-Identifier: MIT */
#include "src/allocations/allocation_shares_parts.h"

/*
 * Sizes of strings and parts are put together: up to FINE_MAX bytes in steps of GRANULE, and from there on in
 * four steps to each doubling.
 */
enum { GRANULE = 16, FINE_MAX = 512 };

uint64_t shares_size_step(uint64_t bytes)
{
	uint64_t step = GRANULE;

	if (bytes <= FINE_MAX)
		return (bytes + GRANULE - 1) / GRANULE * GRANULE;
	for (step = FINE_MAX; step < bytes - step && step < UINT64_MAX / 4; step *= 2)
		continue;
	return step + (bytes - step + step / 4 - 1) / (step / 4) * (step / 4);
}

size_t shares_find_class(struct allocation_shares *shares, const struct class_key *key, bool create,
			 size_t fallback)
{
	for (size_t i = CLASSES_FIXED; i < shares->class_count; i++) {
		const struct class_key *other = &shares->classes[i].key;

		if (other->kind == key->kind && other->ctype == key->ctype && other->part == key->part &&
		    (other->bytes == key->bytes || other->bytes == 0))
			return i;
	}
	if (!create || shares->class_count == ALLOCATION_CLASSES_MAX)
		return fallback;
	shares->classes[shares->class_count].key = *key;
	return shares->class_count++;
}

struct class_key shares_object_key(enum allocation_kind kind, uint64_t bytes, uint32_t ctype)
{
	const bool has_steps = kind == ALLOCATION_USERDATA || kind == ALLOCATION_PROTO;

	return (struct class_key){ kind, has_steps ? shares_size_step(bytes) : bytes, ctype, PART_ANY };
}

size_t shares_part_class(struct allocation_shares *shares, uint64_t bytes, enum part part)
{
	const struct class_key key = { .kind = ALLOCATION_OTHER,
				       .bytes = shares_size_step(bytes),
				       .part = part };

	return shares_find_class(shares, &key, true, CLASS_PARTS);
}

struct class *shares_find_stacks(struct allocation_shares *shares)
{
	for (size_t i = CLASSES_FIXED; i < shares->class_count; i++)
		if (shares->classes[i].key.part == PART_STACK)
			return &shares->classes[i];
	return NULL;
}

bool shares_is_first_stack(uint64_t bytes)
{
	return bytes >= STACK_START && bytes <= STACK_START + STACK_EXTRA_MAX;
}

void shares_set_least_stack(struct allocation_shares *shares, uint64_t bytes)
{
	struct class *stacks = shares_find_stacks(shares);

	if (stacks) {
		stacks->key.bytes = shares_size_step(bytes);
		stacks->part_bytes *= (double)bytes / (double)shares->least_stack;
	}
	shares->least_stack = bytes;
}

struct grown_size *shares_find_grown_size(struct allocation_shares *shares, enum allocation_kind kind,
					  uint64_t bytes, bool create)
{
	for (size_t i = 0; i < shares->grown_size_count; i++)
		if (shares->grown_sizes[i].kind == kind && shares->grown_sizes[i].bytes == bytes)
			return &shares->grown_sizes[i];
	if (!create ||
	    shares->grown_size_count == sizeof(shares->grown_sizes) / sizeof(shares->grown_sizes[0]))
		return NULL;
	shares->grown_sizes[shares->grown_size_count] = (struct grown_size){ .kind = kind, .bytes = bytes };
	return &shares->grown_sizes[shares->grown_size_count++];
}

double shares_grown_part(struct allocation_shares *shares, enum allocation_kind kind, uint64_t bytes)
{
	const struct grown_size *size = shares_find_grown_size(shares, kind, bytes, false);

	return size ? size->grown / (size->first + size->grown) : 0;
}

double shares_grown_stacks(const struct allocation_shares *shares, uint64_t bytes)
{
	for (size_t i = 0; i < shares->grown_stack_count; i++)
		if (shares->grown_stacks[i].bytes == bytes)
			return shares->grown_stacks[i].samples;
	return 0;
}

bool shares_is_part_size(const struct allocation_shares *shares, uint64_t bytes)
{
	for (size_t i = 0; i < shares->part_size_count; i++)
		if (shares->part_sizes[i] == bytes)
			return true;
	return false;
}

bool shares_is_string_size(const struct allocation_shares *shares, uint64_t bytes)
{
	for (size_t i = 0; i < shares->string_step_count; i++)
		if (shares->string_steps[i] == shares_size_step(bytes))
			return true;
	return false;
}

/*
 * The size that a part has got, and whether it has grown to it: as much as there was is added, or subtracted
 * before.
 */
static void note_grown_size(struct allocation_shares *shares, const struct allocation *allocation)
{
	const bool is_hash = allocation->kind == ALLOCATION_HASH;
	const uint64_t bytes = allocation->bytes;
	const bool is_first = allocation->is_first_part ||
			      (!is_hash && (bytes < 2 * ARRAY_SLOT || (bytes & (bytes - 1))));
	struct grown_size *size = shares_find_grown_size(
		shares, allocation->kind, is_first ? bytes : 2 * bytes + (is_hash ? 0 : ARRAY_SLOT), true);

	if (size)
		*(is_first ? &size->first : &size->grown) += 1;
}

/*
 * By what a stack has grown. A program may have any number of these: a new one takes the place of the one
 * with the fewest samples.
 */
static void note_grown_stack(struct allocation_shares *shares, uint64_t bytes)
{
	struct grown_stack *fewest = shares->grown_stacks;

	for (size_t i = 0; i < shares->grown_stack_count; i++) {
		struct grown_stack *stack = &shares->grown_stacks[i];

		if (stack->bytes == bytes) {
			stack->samples++;
			return;
		}
		if (stack->samples < fewest->samples)
			fewest = stack;
	}
	if (shares->grown_stack_count < STACK_GROWTHS_MAX)
		fewest = &shares->grown_stacks[shares->grown_stack_count++];
	*fewest = (struct grown_stack){ .bytes = bytes, .samples = 1 };
}

/* What films see of its size may be other parts: only windows tell how many there are. */
static size_t class_of_first_stack(struct allocation_shares *shares, uint64_t bytes)
{
	const struct class *stacks;

	if (bytes != shares->least_stack)
		shares_set_least_stack(shares, bytes);
	shares->has_sampled_stack = true;
	stacks = shares_find_stacks(shares);
	return stacks ? (size_t)(stacks - shares->classes) : CLASS_PARTS;
}

size_t shares_class_of(struct allocation_shares *shares, const struct allocation *allocation)
{
	struct class_key key = shares_object_key(allocation->kind, allocation->bytes, allocation->ctype);
	size_t any;

	if (allocation->bytes >= ALLOCATION_LARGE_MIN) {
		if (allocation->kind == ALLOCATION_HASH)
			note_grown_size(shares, allocation);
		return shares_large_class_of(shares, allocation);
	}
	if (allocation->kind == ALLOCATION_STRING) {
		key.bytes = shares_size_step(allocation->bytes);
		if (!shares_is_string_size(shares, key.bytes) && shares->string_step_count < STRING_STEPS_MAX)
			shares->string_steps[shares->string_step_count++] = key.bytes;
		return shares_find_class(shares, &key, false, CLASS_STRINGS);
	}
	if (allocation_is_listed(allocation->kind))
		return shares_find_class(shares, &key, false, CLASS_PARTS);
	if (allocation->kind == ALLOCATION_HASH || allocation->kind == ALLOCATION_ARRAY)
		note_grown_size(shares, allocation);
	if (allocation->kind == ALLOCATION_STACK && !shares_is_first_stack(allocation->bytes))
		note_grown_stack(shares, allocation->bytes);
	if (shares->part_size_count < PART_SIZES_MAX && !shares_is_part_size(shares, allocation->bytes))
		shares->part_sizes[shares->part_size_count++] = allocation->bytes;
	key = (struct class_key){ .kind = ALLOCATION_OTHER, .bytes = shares_size_step(allocation->bytes) };
	any = shares_find_class(shares, &key, false, CLASS_PARTS);
	if (allocation->kind == ALLOCATION_STACK && shares_is_first_stack(allocation->bytes))
		return class_of_first_stack(shares, allocation->bytes);
	if (allocation->kind == ALLOCATION_STACK)
		key.part = PART_STACK_GROWN;
	else if (allocation->kind == ALLOCATION_HASH)
		key.part = allocation->is_first_part ? PART_FIRST : PART_GROWN;
	else
		return any;
	return shares_find_class(shares, &key, false, any);
}

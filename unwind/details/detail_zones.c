/* SPDX-License-Identifier: MIT */
/* Shared dictionaries, and who holds their locks. */
#include "unwind/details/detail_parts.h"

#include <inttypes.h>
#include <stdio.h>

#include "luajit-layouts/field.h"
#include "unwind/lua/luajit.h"

enum {
	TAG_CDATA = ~10,
	CDATA_HEADER = 16, /* GCcdata with GC64; else half of it */
	KEY_SLOT = 2, /* of an FFI call: the function, the zone, then the key, or what to do and the key */
	KEY_SLOT_LAST = 3,
	YIELD_FRAMES = 1, /* sched_yield() changes no register that its caller needs */
};

static const struct zone *zone_of_index(const struct detail_source *source, size_t index)
{
	return index < source->zones->count ? &source->zones->list[index] : NULL;
}

/* The only zone whose lock this process holds. */
static const struct zone *zone_held(const struct detail_source *source)
{
	size_t found = SIZE_MAX;

	for (size_t i = 0; source->holders && source->own_pid && i < source->zones->count; i++) {
		if (source->holders[i] != source->own_pid)
			continue;
		if (found != SIZE_MAX)
			return NULL;
		found = i;
	}
	return zone_of_index(source, found);
}

/*
 * The zone whose lock the thread waits for. Where it sleeps, the system call has the address of the
 * mutex's semaphore. While ngx_shmtx_lock() itself runs, or the sched_yield() that it calls, a register has
 * that of the mutex: it needs it until its end. If only one zone's mutex is in a register, it is that one.
 */
static const struct zone *zone_waited_for(const struct detail_source *source, size_t index)
{
	struct registers registers = source->capture->registers;
	const struct zone *found = NULL;

	if (source->sleeps_at)
		return zones_of_mutex(source->zones, source->sleeps_at);
	for (int number = 0; index <= YIELD_FRAMES && number < REGISTER_NUMBERS; number++) {
		const uint64_t *value = registers_locate(&registers, number);
		const struct zone *zone = value && registers.unknown == 0
						  ? zones_of_mutex(source->zones, *value)
						  : NULL;

		if (found && zone && zone != found)
			return NULL;
		found = zone ? zone : found;
	}
	return found;
}

/* The zone that the first argument of an FFI call refers to; the interpreter has it in Lua's stack. */
static const struct zone *zone_of_argument(const struct detail_source *source,
					   const struct merged_frame *call)
{
	struct memory *memory = snapshot_memory(source->capture->snapshot);
	const bool gc64 = call->global->vm->layout.gc64;
	uint64_t value, pointer;
	uint8_t gct;

	if (!details_slot(call, 1, &value) || tvalue_tag(gc64, value) != TAG_CDATA ||
	    !field_gct(memory, &call->global->vm->layout, tvalue_object(gc64, value), &gct) ||
	    gct != GCT_CDATA ||
	    !memory_u64(memory, tvalue_object(gc64, value) + (gc64 ? CDATA_HEADER : CDATA_HEADER / 2),
			&pointer))
		return NULL;
	return zones_at(source->live, source->zones, pointer);
}

/* The frame of ngx_shmtx_lock() that the frame at index has called, or index itself if there is none. */
static size_t find_lock(const struct detail_source *source, size_t index)
{
	for (size_t i = index; i-- > 0 && source->stack->frames[i].kind == MERGED_NATIVE;)
		if (details_is_lock(source, i))
			return i;
	return index;
}

void details_add_dict(struct details *details, size_t index, const char *operation)
{
	const struct detail_source *source = details->source;
	const struct merged_stack *stack = source->stack;
	size_t outwards = stack->frames[index].kind == MERGED_NATIVE ? details_outwards(stack, index)
								     : stack->count;
	const struct merged_frame *call = outwards < stack->count &&
							  stack->frames[outwards].kind == MERGED_C_FUNCTION
						  ? &stack->frames[outwards]
						  : NULL;
	const struct zone *zone = call ? zone_of_argument(source, call) : NULL;
	size_t lock = find_lock(source, index);
	char key[DETAIL_STRING_BYTES];
	bool has_key = false;

	for (unsigned slot = KEY_SLOT; zone && !has_key && slot <= KEY_SLOT_LAST; slot++)
		has_key = details_slot_string(source, call, slot, key);
	if (!zone)
		zone = lock < index ? zone_waited_for(source, lock) : zone_held(source);
	if (!zone)
		details_add(details, index, "[dict unknown: %s]", operation);
	else if (has_key)
		details_add(details, index, "[dict %s: %s \"%s\"]", zone->name, operation, key);
	else
		details_add(details, index, "[dict %s: %s]", zone->name, operation);
}

void details_add_lock(struct details *details, size_t index)
{
	const struct detail_source *source = details->source;
	const struct zone *zone = zone_waited_for(source, index);
	char process[DETAIL_PROCESS_BYTES];
	uint64_t holder;

	if (!zone) {
		details_add(details, index, "[lock unknown]");
		return;
	}
	holder = source->holders ? source->holders[zone - source->zones->list] : 0;
	if (holder == 0)
		details_add(details, index, "[lock of %s]", zone->name);
	else if (holder == source->own_pid)
		details_add(details, index, "[lock of %s: taken]", zone->name);
	else if (source->describe_process(source->context, holder, process))
		details_add(details, index, "[lock of %s: held by %" PRIu64 ", %s]", zone->name, holder,
			    process);
	else
		details_add(details, index, "[lock of %s: held by %" PRIu64 "]", zone->name, holder);
}

const struct zone *details_find_lock(const struct detail_source *source)
{
	for (size_t i = 0; i < source->stack->count && source->stack->frames[i].kind == MERGED_NATIVE; i++)
		if (details_is_lock(source, i))
			return zone_waited_for(source, i);
	return NULL;
}

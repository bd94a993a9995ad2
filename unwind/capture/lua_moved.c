/* SPDX-License-Identifier: MIT */
/* Repairs of Lua stacks that LuaJIT is moving. */
#include "unwind/capture/lua_moved.h"

#include <string.h>

#include "unwind/lua/lua_walk.h"
#include "unwind/lua/luajit.h"

enum {
	NATIVE_BYTES_MAX = 1024, /* of native stack to look through */
	FRAMES_MAX = 1 << 16,
	WORDS_MAX = REGISTER_NUMBERS + NATIVE_BYTES_MAX / 8,
	/* Links and a foot, by which the allocators of LuaJIT and glibc find free memory. */
	FREED_HEAD_BYTES = 6 * 8,
	FREED_FOOT_BYTES = 2 * 8,
};

/*---- The old stack is being freed ----*/

/* List registers and words of the innermost native frames, where LuaJIT may keep an address. */
static size_t list_words(struct snapshot *snapshot, const struct registers *r,
			 const struct lua_thread *thread, uint64_t words[static WORDS_MAX])
{
	uint64_t end = r->sp + NATIVE_BYTES_MAX;
	size_t count = 0;

	for (int number = 0; number < REGISTER_NUMBERS; number++)
		if (registers_set_of(number) && registers_get(r, number, &words[count]))
			count++;
	for (uint64_t at = r->sp; at < end && at < thread->cframe && count < WORDS_MAX; at += sizeof(at))
		if (memory_u64(snapshot_memory(snapshot), at, &words[count]))
			count++;
	return count;
}

/* Every stack begins with its own thread (stack_init() in lj_state.c). */
static bool begins_stack(const struct lua_thread *thread, uint64_t slot)
{
	return tvalue_object(thread->layout->gc64, slot) == thread->address;
}

/* The copy of the thread's stack, if it is there: equal but for both ends of freed memory; else NULL. */
static const uint8_t *view_copy(struct snapshot *snapshot, const struct lua_thread *thread, uint64_t address)
{
	size_t length = (size_t)(thread->stack_end - thread->stack);
	struct memory_range range = { .address = address, .length = length };
	const uint8_t *old, *copy;

	if (length <= FREED_HEAD_BYTES + FREED_FOOT_BYTES)
		return NULL;
	snapshot_capture(snapshot, &range, 1);
	old = snapshot_view(snapshot, thread->stack, length);
	copy = snapshot_view(snapshot, address, length);
	return old && copy &&
			       memcmp(old + FREED_HEAD_BYTES, copy + FREED_HEAD_BYTES,
				      length - FREED_HEAD_BYTES - FREED_FOOT_BYTES) == 0
		       ? copy
		       : NULL;
}

/* Find the new stack, and take the head of the old one from it. */
static void restore(struct snapshot *snapshot, const struct registers *r, const struct lua_thread *thread)
{
	uint64_t words[WORDS_MAX], firsts[WORDS_MAX];
	struct memory_range ranges[WORDS_MAX];
	size_t count = list_words(snapshot, r, thread, words);

	for (size_t i = 0; i < count; i++)
		ranges[i] = (struct memory_range){ .address = words[i], .length = SLOT_SIZE };
	snapshot_capture(snapshot, ranges, count);
	for (size_t i = 0; i < count; i++) /* the next capture moves the copies */
		firsts[i] = ranges[i].status == MEMORY_OK ? load_bytes(ranges[i].copy, 0, SLOT_SIZE) : 0;
	for (size_t i = 0; i < count; i++) {
		const uint8_t *copy;

		if (words[i] == thread->stack || words[i] % SLOT_SIZE || !begins_stack(thread, firsts[i]))
			continue;
		copy = view_copy(snapshot, thread, words[i]);
		if (!copy)
			continue;
		snapshot_overlay(snapshot, thread->stack, copy, FREED_HEAD_BYTES);
		return;
	}
}

/*
 * Are there links of free memory in the stack's first slots? A larger piece first gets
 * links to its children, which are none, and then those that replace the thread.
 */
static bool may_be_freed(const struct lua_thread *thread)
{
	uint64_t slots[4];

	for (unsigned i = 0; i < 4; i++)
		if (!lua_thread_slot(thread, thread->stack + i * SLOT_SIZE, &slots[i]))
			return false;
	return !begins_stack(thread, slots[0]) || (slots[2] == 0 && slots[3] == 0);
}

void lua_moved_capture(struct snapshot *snapshot, const struct registers *registers,
		       struct lua_thread *thread)
{
	lua_thread_view(thread, snapshot);
	if (thread->cframe && may_be_freed(thread))
		restore(snapshot, registers, thread);
}

/*---- The thread's fields are not adjusted yet ----*/

/* Do the frames from this base lead down to the stack's bottom? */
static bool is_base(const struct lua_thread *thread, struct lua_objects *objects, uint64_t base)
{
	struct lua_walk walk = { .thread = thread, .objects = objects, .base = base };

	if (!lua_thread_contains_base(thread, base))
		return false;
	for (unsigned i = 0; i < FRAMES_MAX && !lua_walk_is_done(&walk); i++) {
		struct lua_activation activation;

		if (!lua_walk_activation(&walk, &activation))
			return false;
		if (lua_walk_step(&walk) == LUA_STEP_BROKEN)
			return false;
	}
	return lua_walk_is_done(&walk) && walk.base == lua_thread_bottom(thread);
}

/* The search for the new L->base: a word may be the old stack's address, or the distance of the two. */
struct search {
	const struct lua_thread *thread;
	struct lua_objects *objects;
	uint64_t base; /* 0: none found yet */
	bool is_ambiguous;
};

static void consider(struct search *search, uint64_t word)
{
	const uint64_t distances[] = { search->thread->stack - word, word };

	for (unsigned i = 0; i < 2; i++) {
		uint64_t base = search->thread->base + distances[i];

		if (base == search->base || !is_base(search->thread, search->objects, base))
			continue;
		search->is_ambiguous = search->base != 0;
		search->base = base;
	}
}

static void adjust(struct snapshot *snapshot, const struct registers *r, struct lua_objects *objects,
		   struct lua_thread *thread)
{
	struct search search = { .thread = thread, .objects = objects };
	uint64_t end = r->sp + NATIVE_BYTES_MAX, word;

	for (int number = 0; number < REGISTER_NUMBERS; number++)
		if (registers_are_kept(number) && registers_get(r, number, &word))
			consider(&search, word);
	for (uint64_t at = r->sp; at < end && at < thread->cframe; at += sizeof(word))
		if (memory_u64(snapshot_memory(snapshot), at, &word))
			consider(&search, word);
	if (!search.base || search.is_ambiguous)
		return;
	thread->top += search.base - thread->base;
	thread->base = search.base;
}

void lua_moved_adjust(struct snapshot *snapshot, const struct registers *registers,
		      struct lua_objects *objects, struct lua_thread *thread)
{
	if (thread->cframe && !lua_thread_contains_base(thread, thread->base))
		adjust(snapshot, registers, objects, thread);
}

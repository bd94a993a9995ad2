#include "unwind/lua_moved.h"

#include "unwind/lua_walk.h"
#include "unwind/luajit.h"

enum {
	NATIVE_BYTES_MAX = 1024,	/* of native stack that is looked through */
	FRAMES_MAX = 1 << 16,
};

/* Do the frames from this base lead down to the stack's bottom? */
static bool is_base(const struct lua_thread *thread, struct lua_objects *objects, uint64_t base)
{
	struct lua_walk walk = { .thread = thread, .objects = objects, .base = base };

	if (!lua_thread_holds_base(thread, base))
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

/* Where L->base is to be, if a word is the old stack's address or the distance of the two. */
struct search {
	const struct lua_thread *thread;
	struct lua_objects *objects;
	uint64_t base;		/* 0: none was found yet */
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

static void adjust(const struct capture *capture, struct lua_objects *objects,
		   struct lua_thread *thread)
{
	const struct registers *r = &capture->registers;
	const uint64_t kept[] = { r->rbx, r->rbp, r->r12, r->r13, r->r14, r->r15 };
	struct search search = { .thread = thread, .objects = objects };
	uint64_t end = r->rsp + NATIVE_BYTES_MAX, word;

	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		consider(&search, kept[i]);
	for (uint64_t at = r->rsp; at < end && at < thread->cframe; at += sizeof(word))
		if (memory_u64(snapshot_memory(capture->snapshot), at, &word))
			consider(&search, word);
	if (!search.base || search.is_ambiguous)
		return;
	thread->top += search.base - thread->base;
	thread->base = search.base;
}

void lua_moved_adjust(struct capture *capture, struct lua_objects *objects)
{
	for (size_t i = 0; i < capture->thread_count; i++) {
		struct lua_thread *thread = &capture->threads[i];

		if (thread->cframe && !lua_thread_holds_base(thread, thread->base))
			adjust(capture, objects, thread);
	}
}

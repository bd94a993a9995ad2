/* SPDX-License-Identifier: MIT */
#include "unwind/lua/lua_walk.h"

#include "luajit-layouts/bytecode.h"
#include "unwind/lua/luajit.h"

bool lua_walk_activation(const struct lua_walk *walk, struct lua_activation *ret_activation)
{
	const struct function_object *function;
	uint64_t object;

	if (!lua_thread_function(walk->thread, walk->base, &object))
		return false;
	if (object == walk->thread->address) {
		*ret_activation = (struct lua_activation){ 0 };
		return true;
	}
	function = lua_objects_function(walk->objects, object);
	if (!function || (function->ffid == FF_LUA && !function->proto))
		return false;
	*ret_activation = (struct lua_activation){
		.function = function,
		.pc = function->proto && proto_contains_pc(function->proto, walk->pc) ? walk->pc : 0,
	};
	return true;
}

/* The frame of the Lua function that called with the instruction before link. */
static bool find_lua_caller(const struct lua_walk *walk, uint64_t link, struct lua_walk *ret_caller,
			    struct lua_activation *ret_activation)
{
	const struct proto *proto = lua_objects_proto_of_pc(walk->objects, link - BYTECODE_SIZE);
	struct lua_walk caller = *walk;
	struct lua_activation activation;
	uint32_t call;

	if (!proto || !proto_instruction(proto, link - BYTECODE_SIZE, &call))
		return false;
	caller.base -= (frame_slots(walk->thread->layout->gc64) + bytecode_a(call)) * SLOT_SIZE;
	caller.pc = link - BYTECODE_SIZE;
	if (!lua_thread_contains_base(walk->thread, caller.base) ||
	    !lua_walk_activation(&caller, &activation) || !activation.function ||
	    activation.function->proto != proto)
		return false;
	*ret_caller = caller;
	*ret_activation = activation;
	return true;
}

/* The pc at which a continuation frame resumes (frame_contpc), and its continuation. */
static bool load_contpc(const struct lua_walk *walk, uint64_t *ret_contpc, uint64_t *ret_continuation)
{
	unsigned fr2 = walk->thread->layout->gc64 ? 1 : 0;
	uint64_t frame = walk->base - SLOT_SIZE, value;

	if (!lua_thread_slot(walk->thread, frame - (1 + fr2) * SLOT_SIZE, &value))
		return false;
	if (!fr2) {
		*ret_contpc = value >> 32;
		*ret_continuation = value & UINT32_MAX;
		return true;
	}
	*ret_contpc = value;
	return lua_thread_slot(walk->thread, frame - 3 * SLOT_SIZE, ret_continuation);
}

bool lua_walk_is_callback(const struct lua_walk *walk)
{
	uint64_t link, contpc, continuation;

	return lua_thread_link(walk->thread, walk->base, &link) && (link & FRAME_TYPE_P) == FRAME_CONT &&
	       load_contpc(walk, &contpc, &continuation) && continuation == CONT_FFI_CALLBACK;
}

static bool move_down(struct lua_walk *walk, uint64_t link, uint64_t pc)
{
	uint64_t delta = link & ~(uint64_t)FRAME_TYPE_P;

	if (delta == 0 || delta > walk->base || !lua_thread_contains_base(walk->thread, walk->base - delta))
		return false;
	walk->base -= delta;
	walk->pc = pc;
	return true;
}

/* Move to the frame that receives a continuation frame's result. After a tail call or in C code pc is 0. */
static bool move_to_continuation(struct lua_walk *walk, uint64_t link, uint64_t *ret_continuation)
{
	uint64_t contpc;

	if (!load_contpc(walk, &contpc, ret_continuation))
		return false;
	if (*ret_continuation == CONT_TAILCALL || *ret_continuation == CONT_FFI_CALLBACK)
		contpc = BYTECODE_SIZE;
	return move_down(walk, link, contpc - BYTECODE_SIZE);
}

enum lua_step lua_walk_step(struct lua_walk *walk)
{
	struct lua_activation caller;

	return lua_walk_step_to(walk, &caller);
}

enum lua_step lua_walk_step_to(struct lua_walk *walk, struct lua_activation *ret_caller)
{
	uint64_t link, continuation;

	if (lua_walk_is_done(walk))
		return LUA_STEP_BOTTOM;
	if (!lua_thread_link(walk->thread, walk->base, &link))
		return LUA_STEP_BROKEN;
	/* A vararg function runs in a copy of its frame. The call is one frame further down. */
	if ((link & FRAME_TYPE_P) == FRAME_VARG) {
		struct lua_walk below = *walk;

		if (!move_down(&below, link, walk->pc) || lua_walk_is_done(&below) ||
		    !lua_thread_link(walk->thread, below.base, &link) || (link & FRAME_TYPE_P) == FRAME_VARG)
			return LUA_STEP_BROKEN;
		*walk = below;
	}
	if ((link & FRAME_LUA_MASK) == 0)
		return find_lua_caller(walk, link, walk, ret_caller) ? LUA_STEP_CALL : LUA_STEP_BROKEN;

	switch (link & FRAME_TYPE_P) {
	case FRAME_C:
	case FRAME_CP: return move_down(walk, link, 0) ? LUA_STEP_FROM_C : LUA_STEP_BROKEN;
	case FRAME_PCALL:
	case FRAME_PCALLH: return move_down(walk, link, 0) ? LUA_STEP_PROTECTED : LUA_STEP_BROKEN;
	case FRAME_CONT:
		if (!move_to_continuation(walk, link, &continuation))
			return LUA_STEP_BROKEN;
		return continuation == CONT_FFI_CALLBACK ? LUA_STEP_FROM_C : LUA_STEP_METAMETHOD;
	default: return LUA_STEP_BROKEN;
	}
}

bool lua_walk_find_caller(const struct lua_thread *thread, struct lua_objects *objects, uint64_t base,
			  uint64_t pc, struct lua_walk *ret_walk)
{
	struct lua_walk walk = { .thread = thread, .objects = objects, .base = base };
	struct lua_activation caller;
	uint64_t link, continuation;

	if ((pc & FRAME_LUA_MASK) == 0)
		return find_lua_caller(&walk, pc, ret_walk, &caller);
	/* vm_return has flipped the lowest type bit (FRAME_C); memory still holds the link. */
	if (lua_thread_link(thread, base, &link) &&
	    (link & ~(uint64_t)FRAME_TYPE_P) == (pc & ~(uint64_t)FRAME_TYPE_P))
		pc = link;
	if ((pc & FRAME_TYPE_P) == FRAME_CONT ? !move_to_continuation(&walk, pc, &continuation)
					      : !move_down(&walk, pc, 0))
		return false;
	if ((pc & FRAME_TYPE_P) == FRAME_VARG) {
		if (!lua_thread_link(thread, walk.base, &link) || (link & FRAME_LUA_MASK) != 0)
			return false;
		return find_lua_caller(&walk, link, ret_walk, &caller);
	}
	walk.is_below_c = (pc & FRAME_TYPE_P) == FRAME_C || (pc & FRAME_TYPE_P) == FRAME_CP;
	*ret_walk = walk;
	return true;
}

/* SPDX-License-Identifier: MIT */
#include "unwind/lua/lua_thread.h"

bool lua_thread_parse(struct lua_thread *thread, const struct layout *layout, uint64_t address,
		      const uint8_t *bytes, uint64_t *ret_g)
{
	unsigned ref = layout_ref_size(layout);
	uint64_t maxstack, stacksize;
	struct lua_thread found;

	if (load_bytes(bytes, layout->GChead_gct, 1) != GCT_THREAD)
		return false;
	found = (struct lua_thread){
		.address = address,
		.layout = layout,
		.base = load_bytes(bytes, layout->L_base, ref),
		.top = load_bytes(bytes, layout->L_top, ref),
		.stack = load_bytes(bytes, layout->L_stack, ref),
		.cframe = load_bytes(bytes, layout->L_cframe, sizeof(uint64_t)) & ~(uint64_t)CFRAME_FLAGS,
		.status = (uint8_t)load_bytes(bytes, layout->L_status, 1),
	};
	if (layout->L_exdata >= 0)
		found.exdata = load_bytes(bytes, layout->L_exdata, sizeof(uint64_t));
	if (layout->L_exdata2 >= 0)
		found.exdata2 = load_bytes(bytes, layout->L_exdata2, sizeof(uint64_t));
	maxstack = load_bytes(bytes, layout->L_maxstack, ref);
	stacksize = load_bytes(bytes, layout->L_stacksize, 4) * SLOT_SIZE;
	if (found.stack % SLOT_SIZE || found.stack == 0 || maxstack < found.stack ||
	    stacksize > LUA_STACK_BYTES_MAX || maxstack - found.stack > LUA_STACK_BYTES_MAX)
		return false;
	/* resizestack() stores the size last when it grows the stack. */
	if (stacksize < maxstack - found.stack)
		stacksize = maxstack - found.stack;
	found.stack_end = found.stack + stacksize;
	*thread = found;
	*ret_g = load_bytes(bytes, layout->L_glref, ref);
	return true;
}

bool lua_thread_load(struct lua_thread *thread, struct global_state *global, uint64_t address,
		     const uint8_t *bytes)
{
	struct lua_thread found;
	uint64_t g;

	if (!lua_thread_parse(&found, &global->vm->layout, address, bytes, &g) || g != global->g)
		return false;
	found.global = global;
	*thread = found;
	return true;
}

enum coroutine_state lua_thread_state(const struct lua_thread *thread, uint64_t cur_L)
{
	if (thread->cframe && cur_L)
		return thread->address == cur_L ? COROUTINE_RUNNING : COROUTINE_NORMAL;
	if (thread->cframe)
		return COROUTINE_ACTIVE;
	if (thread->status == LUA_YIELD)
		return COROUTINE_SUSPENDED;
	if (thread->status != 0 || thread->base > lua_thread_bottom(thread) || thread->top == thread->base)
		return COROUTINE_DEAD;
	return COROUTINE_NOT_STARTED;
}

void lua_thread_view(struct lua_thread *thread, struct snapshot *snapshot)
{
	thread->slots = snapshot_view(snapshot, thread->stack, (size_t)(thread->stack_end - thread->stack));
}

bool lua_thread_function(const struct lua_thread *thread, uint64_t base, uint64_t *ret_object)
{
	uint64_t value;
	int32_t tag;

	if (!thread->layout->gc64) {
		if (!lua_thread_slot(thread, base - SLOT_SIZE, &value))
			return false;
		*ret_object = value & UINT32_MAX;
		return true;
	}
	if (!lua_thread_slot(thread, base - 2 * SLOT_SIZE, &value))
		return false;
	tag = tvalue_tag(true, value);
	if (tag != TAG_FUNC && tag != TAG_THREAD)
		return false;
	*ret_object = tvalue_object(true, value);
	return true;
}

/* SPDX-License-Identifier: MIT */
/* Capture a thread that runs on meanwhile: valid if it is the same before and after. */
#include "unwind/capture/capture_parts.h"

#include "unwind/lua/luajit.h"

/* Read a global_State and its running thread as they are now; false if there is none. */
static bool load_running(struct memory *live, struct global_state *global, struct global_view *ret_view,
			 struct lua_thread *ret_thread)
{
	uint8_t bytes[LUA_STATE_BYTES_MAX];

	return capture_load_view(live, global, ret_view) && ret_view->cur_L % SLOT_SIZE == 0 &&
	       ret_view->cur_L != 0 &&
	       memory_read(live, ret_view->cur_L, bytes, (size_t)global->vm->layout.L_size) == MEMORY_OK &&
	       lua_thread_load(ret_thread, global, ret_view->cur_L, bytes);
}

static bool is_same(const struct global_view *view, const struct lua_thread *thread,
		    const struct global_view *later_view, const struct lua_thread *later)
{
	return view->vmstate == later_view->vmstate && view->cur_L == later_view->cur_L &&
	       view->jit_base == later_view->jit_base && thread->base == later->base &&
	       thread->cframe == later->cframe && thread->stack == later->stack &&
	       thread->status == later->status;
}

static bool is_in(uint64_t address, const struct memory_range *range)
{
	return address - range->address < range->length;
}

/* Where is the global_State's innermost C frame? 0 if nothing runs it. */
static uint64_t innermost_cframe(struct global_state *global, struct memory *live)
{
	struct global_view view;
	struct lua_thread thread;

	return load_running(live, global, &view, &thread) ? thread.cframe : 0;
}

/* What runs on a native stack: of so many global_States with C frames there, the one with the lowest. */
struct running {
	struct global_state *global;
	uint64_t cframe;
	size_t count;
};

/* Look at all of them: the one that ran last time may have called another since. */
static enum capture_verdict find_running(const struct lua_image *lua, struct memory *live,
					 const struct native_stack *native_stack, struct running *ret_running)
{
	struct running running = { .global = NULL };
	bool is_sure = true;

	for (size_t i = 0; i < lua_image_count(lua); i++) {
		struct global_state *global = lua_image_global(lua, i);
		const uint64_t cframe = innermost_cframe(global, live);

		if (cframe == 0 || !is_in(cframe, &native_stack->range))
			continue;
		is_sure &= is_in(cframe, &native_stack->sure);
		running.count++;
		if (!running.global || cframe < running.cframe) {
			running.global = global;
			running.cframe = cframe;
		}
	}
	if (!running.global)
		return CAPTURE_NO_LUA;
	if (running.count > 1 && !is_sure)
		return CAPTURE_UNSURE;
	*ret_running = running;
	return CAPTURE_WHOLE;
}

/* What has called another global_State is the same before and after, too. */
static bool still_runs(const struct lua_image *lua, struct memory *live,
		       const struct native_stack *native_stack, const struct running *running)
{
	struct running later;

	return find_running(lua, live, native_stack, &later) == CAPTURE_WHOLE &&
	       later.global == running->global && later.cframe == running->cframe &&
	       later.count == running->count;
}

enum capture_verdict capture_running(struct capture *capture, const struct capture_process *process,
				     struct memory *live, const struct native_stack *native_stack,
				     struct capture_hints *hints)
{
	struct registers registers = { .unknown = REGISTERS_ALL_BUT_PC_AND_SP };
	const struct lua_thread *thread = NULL;
	struct running running;
	struct global_view later_view;
	struct lua_thread later;
	enum capture_verdict verdict = find_running(process->lua, live, native_stack, &running);

	if (verdict != CAPTURE_WHOLE)
		return verdict;
	hints->g = running.global->g;
	/* Pretend that the interpreter runs: then its C frame is the top of the stack. */
	registers.pc = running.global->vm->begin;
	registers.sp = running.cframe;
	lua_objects_begin(process->objects, true);
	capture_stacks(capture, process, &registers, hints);
	capture->running = capture_find_global(capture, running.global);
	capture->running_was_called = running.count > 1;
	if (capture->running)
		thread = capture_find_thread(capture, capture->running->cur_L);
	if (!thread || !load_running(live, running.global, &later_view, &later) ||
	    !is_same(capture->running, thread, &later_view, &later) ||
	    !still_runs(process->lua, live, native_stack, &running)) {
		snapshot_seal(process->snapshot);
		return CAPTURE_TORN;
	}
	capture_functions(capture, process->objects);
	capture_finish(capture, hints);
	return CAPTURE_WHOLE;
}

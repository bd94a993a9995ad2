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

/* Does the global_State's innermost C frame lie on the native stack? ret_cframe says where. */
static bool runs_on(struct global_state *global, struct memory *live, const struct memory_range *native_stack,
		    uint64_t *ret_cframe)
{
	struct global_view view;
	struct lua_thread thread;

	if (!load_running(live, global, &view, &thread) || thread.cframe == 0 ||
	    thread.cframe - native_stack->address >= native_stack->length)
		return false;
	*ret_cframe = thread.cframe;
	return true;
}

/* The global_State that runs on the native stack, most likely the same as last time; NULL if none does. */
static struct global_state *find_running(const struct lua_image *lua, struct memory *live,
					 const struct memory_range *native_stack,
					 const struct capture_hints *hints, uint64_t *ret_cframe)
{
	struct global_state *last = lua_image_find(lua, hints->g);

	if (last && runs_on(last, live, native_stack, ret_cframe))
		return last;
	for (size_t i = 0; i < lua_image_count(lua); i++)
		if (runs_on(lua_image_global(lua, i), live, native_stack, ret_cframe))
			return lua_image_global(lua, i);
	return NULL;
}

enum capture_verdict capture_running(struct capture *capture, const struct capture_process *process,
				     struct memory *live, const struct memory_range *native_stack,
				     struct capture_hints *hints)
{
	struct registers registers = { .unknown = REGISTERS_ALL_BUT_PC_AND_SP };
	struct global_state *global = find_running(process->lua, live, native_stack, hints, &registers.sp);
	const struct lua_thread *thread = NULL;
	struct global_view later_view;
	struct lua_thread later;

	if (!global)
		return CAPTURE_NO_LUA;
	hints->g = global->g;
	/* Pretend that the interpreter runs: then its C frame is the top of the stack. */
	registers.pc = global->vm->begin;
	lua_objects_begin(process->objects, true);
	capture_stacks(capture, process, &registers, hints);
	capture->running = capture_find_global(capture, global);
	if (capture->running)
		thread = capture_find_thread(capture, capture->running->cur_L);
	if (!thread || !load_running(live, global, &later_view, &later) ||
	    !is_same(capture->running, thread, &later_view, &later)) {
		snapshot_seal(process->snapshot);
		return CAPTURE_TORN;
	}
	capture_functions(capture, process->objects);
	capture_finish(capture, hints);
	return CAPTURE_WHOLE;
}

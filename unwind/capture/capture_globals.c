/* SPDX-License-Identifier: MIT */
/* Capture of each LuaJIT state which thread it runs, and its list of traces. */
#include "unwind/capture/capture_parts.h"

#include "luajit-layouts/vmstate.h"
#include "unwind/capture/cframe_search.h"
#include "unwind/lua/luajit.h"
#include "unwind/vm/vm_frame.h"

/* gc.currentwhite comes just before gc.state (lj_obj.h: GCState). */
static void load_collector(struct memory *memory, struct global_view *view)
{
	const struct layout *layout = &view->global->vm->layout;
	const uint64_t g = view->global->g;

	memory_read(memory, g + (uint64_t)layout->g_gc_total, &view->gc_total, layout_ref_size(layout));
	memory_read(memory, g + (uint64_t)layout->g_gc_state, &view->gc_state, sizeof(view->gc_state));
	memory_read(memory, g + (uint64_t)layout->g_gc_state - 1, &view->gc_currentwhite,
		    sizeof(view->gc_currentwhite));
	memory_read(memory, g + (uint64_t)layout->g_hookmask, &view->hookmask, sizeof(view->hookmask));
}

bool capture_load_view(struct memory *memory, struct global_state *global, struct global_view *ret_view)
{
	const struct layout *layout = &global->vm->layout;
	struct global_view view = { .global = global };
	uint32_t vmstate;
	unsigned ref = layout_ref_size(layout);

	if (!memory_u32(memory, global->g + (uint64_t)layout->g_vmstate, &vmstate))
		return false;
	view.vmstate = vmstate_of(layout, (int32_t)vmstate);
	if (layout->g_cur_L != LAYOUT_ABSENT)
		memory_read(memory, global->g + (uint64_t)layout->g_cur_L, &view.cur_L, ref);
	if (layout->g_jit_base != LAYOUT_ABSENT)
		memory_read(memory, global->g + (uint64_t)layout->g_jit_base, &view.jit_base, ref);
	load_collector(memory, &view);
	/* Before LuaJIT had cur_L, jit_L said whether a trace runs, and for which thread. */
	if (layout->g_jit_L != LAYOUT_ABSENT) {
		memory_read(memory, global->g + (uint64_t)layout->g_jit_L, &view.cur_L, ref);
		if (view.cur_L == 0 && view.vmstate != VMST_EXIT)
			view.jit_base = 0;
	}
	*ret_view = view;
	return true;
}

void capture_view_global(struct capture *capture, struct global_state *global)
{
	struct global_view view;

	if (capture->global_count < CAPTURE_GLOBALS_MAX &&
	    capture_load_view(snapshot_memory(capture->snapshot), global, &view))
		capture->globals[capture->global_count++] = view;
}

struct memory_range capture_global_range(const struct global_state *global)
{
	const struct layout *layout = &global->vm->layout;
	const int32_t fields[] = {
		layout->g_gc_total, layout->g_gc_state, (int32_t)gc_estimate_offset(layout),
		layout->g_strnum,   layout->g_strmask,  layout->g_hookmask,
		layout->g_jit_base, layout->g_cur_L,
	};
	int32_t begin = layout->g_vmstate, end = begin;

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		if (fields[i] == LAYOUT_ABSENT)
			continue;
		begin = fields[i] < begin ? fields[i] : begin;
		end = fields[i] > end ? fields[i] : end;
	}
	return (struct memory_range){ .address = global->g + (uint64_t)begin,
				      .length = (size_t)(end - begin) + sizeof(uint64_t) };
}

bool capture_wants_global(const struct capture *capture, const struct global_state *global,
			  const struct capture_hints *hints)
{
	if (lua_image_count(capture->lua) <= CAPTURE_GLOBALS_MAX)
		return true;
	return global->g == hints->g ||
	       global->g == vm_global_of_registers(&global->vm->layout, &capture->registers);
}

/* The known state that a lua_State belongs to, or NULL. */
static struct global_state *global_of_thread(const struct capture *capture, const struct layout *layout,
					     uint64_t thread)
{
	uint64_t g = 0;

	if (memory_read(snapshot_memory(capture->snapshot), thread + (uint64_t)layout->L_glref, &g,
			layout_ref_size(layout)) != MEMORY_OK)
		return NULL;
	return lua_image_find(capture->lua, g);
}

/* Add the VM's states whose C frames lie on the copied stack. */
static void view_globals_on_stack(struct capture *capture, const struct vm_code *vm)
{
	struct cframe_search search = cframe_search(capture->snapshot, lua_image_code(capture->lua),
						    &vm->layout, capture->registers.sp, capture->stack_end);
	uint64_t cframe, thread, last = 0;

	while (cframe_search_next(&search, &cframe, &thread)) {
		struct global_state *global;

		if (thread == last)
			continue;
		last = thread;
		global = global_of_thread(capture, &vm->layout, thread);
		if (global && !capture_find_global(capture, global))
			capture_view_global(capture, global);
	}
}

void capture_other_globals(struct capture *capture)
{
	const struct image *image = lua_image_code(capture->lua);

	if (lua_image_count(capture->lua) <= CAPTURE_GLOBALS_MAX ||
	    !capture_has_copied(capture, capture->registers.sp))
		return;
	for (size_t i = 0; i < image_module_count(image); i++) {
		const struct vm_code *vm = image_module(image, i)->vm;

		if (vm)
			view_globals_on_stack(capture, vm);
	}
}

struct memory_range capture_traces_range(const struct global_state *global)
{
	const struct layout *layout = &global->vm->layout;

	if (!global->traces)
		return (struct memory_range){ 0 };
	return (struct memory_range){
		.address = global->g + (uint64_t)(layout->GG_J + layout->J_trace),
		.length = (size_t)(layout->J_sizetrace - layout->J_trace) + sizeof(uint32_t),
	};
}

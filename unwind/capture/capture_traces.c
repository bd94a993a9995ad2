/* SPDX-License-Identifier: MIT */
/* Capture compiled code: the traces that run or are left, and code that is in no module. */
#include "unwind/capture/capture_parts.h"

#include "luajit-layouts/vmstate.h"
#include "unwind/trace/trace_block.h"
#include "unwind/jit/traces.h"
#include "unwind/lua/luajit.h"
#include "unwind/vm/vm_frame.h"

enum {
	CONSTANTS_MAX = 1024,
	/* Code made at run time: pages before and after the one that runs. */
	CODE_PAGES_BEFORE = 4,
	CODE_PAGES_AFTER = 8,
	CODE_PAGES_MAX = CODE_PAGES_BEFORE + 1 + CODE_PAGES_AFTER,
	/* A trace's part of the stack: spadjust is a multiple of 16 in 16 bits, mostly under 100. */
	TRACE_FRAME_BYTES_MAX = 4096,
};

static void capture_trace_constants(struct capture *capture, struct lua_objects *objects,
				    const struct global_view *view, const struct trace *trace)
{
	const struct layout *layout = &view->global->vm->layout;
	uint64_t constants[CONSTANTS_MAX + 1];
	size_t count = trace_constants(trace, layout, TRACE_FUNCTIONS, constants, CONSTANTS_MAX);
	const uint64_t *protos;
	size_t proto_count = 0;

	lua_objects_capture(objects, capture->snapshot, layout, constants, count);
	/* A trace does not check what it calls by an upvalue that never changes. */
	if (!traces_protos(view->global->traces, trace, &protos, &proto_count))
		lua_objects_capture_upvalues(objects, capture->snapshot, layout, constants, count);
	count = trace_constants(trace, layout, TRACE_PROTOS, constants, CONSTANTS_MAX);
	constants[count++] = trace->startpt;
	for (size_t i = 0; i < proto_count && count < CONSTANTS_MAX + 1; i++)
		if (!lua_objects_proto(objects, protos[i]))
			constants[count++] = protos[i];
	lua_objects_capture_protos(objects, capture->snapshot, layout, constants, count);
}

/*
 * Capture the constants of the trace that a call may return to. at: just above where that was found. False
 * if it is none.
 */
static bool capture_caller(struct capture *capture, struct lua_objects *objects,
			   const struct global_view *view, const struct lua_thread *thread,
			   uint64_t return_address, uint64_t at)
{
	const struct trace *trace = traces_capture_pc(view->global->traces, capture->snapshot,
						      &view->global->vm->layout, return_address - 1);

	/* The trace's spilled values may include the return address of an older call. */
	if (!trace || !vm_may_return_to_trace(at, vm_trace_sp(thread->cframe, trace->spadjust)))
		return false;
	capture_trace_constants(capture, objects, view, trace);
	return true;
}

/*
 * Find the trace that called the running native code: a return address between the
 * stack pointer and the thread's C frame leads to it, or a leaf's.
 */
static bool capture_calling_trace(struct capture *capture, struct lua_objects *objects,
				  const struct global_view *view)
{
	const struct lua_thread *thread = capture_find_thread(capture, view->cur_L);
	struct registers caller;
	bool found = false;
	uint64_t word;

	if (!thread)
		return false;
	if (registers_returned(&capture->registers, snapshot_memory(capture->snapshot), &caller))
		found = capture_caller(capture, objects, view, thread, caller.pc, caller.sp);
	for (uint64_t at = thread->cframe - sizeof(word);
	     at >= capture->registers.sp && thread->cframe - at < TRACE_FRAME_BYTES_MAX; at -= sizeof(word)) {
		if (!capture_stack_word(capture, at, &word))
			break;
		found |= capture_caller(capture, objects, view, thread, word, at + sizeof(word));
	}
	return found;
}

/* Find the trace that runs, that is being left, or that called what runs. False if there is none. */
static bool capture_running_trace(struct capture *capture, struct lua_objects *objects,
				  const struct global_view *view)
{
	const struct layout *layout = &view->global->vm->layout;
	struct traces *traces = view->global->traces;
	const struct trace *trace;

	trace = traces_capture_pc(traces, capture->snapshot, layout, capture->registers.pc);
	if (trace) {
		capture_trace_constants(capture, objects, view, trace);
		trace = traces_capture_link(traces, capture->snapshot, layout, trace);
		if (trace)
			capture_trace_constants(capture, objects, view, trace);
		return true;
	}
	trace = traces_capture_exit(traces, capture->snapshot, layout, capture->registers.pc);
	if (!trace)
		return capture_calling_trace(capture, objects, view);
	capture_trace_constants(capture, objects, view, trace);
	return true;
}

/* The exit of a trace may start the collector or the recorder, with all that follows. */
static bool may_be_exiting(int32_t vmstate)
{
	return vmstate == VMST_EXIT || vmstate == VMST_GC || vmstate == VMST_RECORD || vmstate == VMST_OPT ||
	       vmstate == VMST_ASM;
}

void capture_traces(struct capture *capture, struct lua_objects *objects, const struct global_view *view)
{
	const struct layout *layout = &view->global->vm->layout;
	struct traces_wanted wanted = { .J = view->global->g + (uint64_t)layout->GG_J };
	uint64_t J = wanted.J;
	/* The trace that runs, and the one that an exit restores from (J->parent). */
	uint32_t *executing = wanted.executing;
	uint32_t exitno, state;
	uint64_t recorded;
	struct memory *memory = snapshot_memory(capture->snapshot);
	const struct trace *trace;
	enum code_kind code = image_classify(lua_image_code(capture->lua), capture->registers.pc, NULL);

	executing[0] = view->vmstate > 0 ? (uint32_t)view->vmstate : 0;
	/* Until the layout of traces is confirmed, they cannot be read. */
	if (!view->global->traces || view->global->vm->traces_open)
		return;
	if (!executing[0] && view->jit_base == 0 && !may_be_exiting(view->vmstate) && code != CODE_UNKNOWN)
		return;
	if (memory_read(memory, J + (uint64_t)layout->J_trace, &wanted.J_trace, layout_ref_size(layout)) !=
		    MEMORY_OK ||
	    !memory_u32(memory, J + (uint64_t)layout->J_sizetrace, &wanted.sizetrace))
		return;
	/* Copy also what changes in the copy when an exit under way is run on. */
	memory_u32(memory, J + (uint64_t)layout->J_parent, &executing[1]);
	memory_u32(memory, J + (uint64_t)layout->J_exitno, &exitno);
	memory_u32(memory, J + (uint64_t)layout->J_state, &state);
	memory_read(memory, J + (uint64_t)layout->J_pc, &recorded, layout_ref_size(layout));
	if (code == CODE_VM)
		executing[2] = vm_exit_trace(capture->snapshot, &capture->registers);
	traces_capture(view->global->traces, capture->snapshot, layout, &wanted);
	/*
	 * Without the number of the trace that runs, a new one in an old one's place is found only by its
	 * code.
	 */
	if (!capture_running_trace(capture, objects, view) && view->jit_base && view->vmstate == 0) {
		traces_capture_again(view->global->traces, capture->snapshot, layout);
		capture_running_trace(capture, objects, view);
	}
	for (size_t i = 0; i < TRACES_EXECUTING_MAX; i++) {
		trace = traces_by_number(view->global->traces, executing[i]);
		if (trace)
			capture_trace_constants(capture, objects, view, trace);
	}
}

void capture_made_code(struct capture *capture)
{
	uint64_t page = capture->registers.pc & ~(uint64_t)(PAGE_SIZE - 1);
	struct memory_range ranges[CODE_PAGES_MAX];

	if (image_classify(lua_image_code(capture->lua), capture->registers.pc, NULL) != CODE_UNKNOWN)
		return;
	for (size_t i = 0; i < capture->global_count; i++) {
		const struct traces *traces = capture->globals[i].global->traces;

		if (traces && traces_find(traces, capture->registers.pc))
			return;
	}
	for (uint64_t i = 0; i < CODE_PAGES_MAX; i++)
		ranges[i] = (struct memory_range){ .address = page + (i - CODE_PAGES_BEFORE) * PAGE_SIZE,
						   .length = PAGE_SIZE };
	snapshot_capture(capture->snapshot, ranges, CODE_PAGES_MAX);
}

#include "unwind/merge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/lua_moved.h"
#include "unwind/lua_top.h"
#include "unwind/luajit.h"
#include "unwind/vm_frame.h"
#include "unwind/vm_settle.h"

/* Where the walk of one Lua thread has come to. */
struct section {
	bool started;
	bool ended;		/* at its bottom, or lost */
	struct lua_walk walk;
};

struct merge {
	struct capture *capture;
	struct image *image;
	struct lua_objects *objects;
	struct native_unwinder *native;
	struct vm_decoder *decoder;
	struct memory *memory;		/* the snapshot */
	struct merged_stack *stack;
	struct section sections[CAPTURE_THREADS_MAX];
	bool is_half_done;	/* the VM's frame at hand is not in one piece, and cannot be brought into it */
	bool out_of_memory;
};

/*---- Emitting frames ----*/

static struct merged_frame *emit(struct merge *merge, enum merged_kind kind)
{
	struct merged_stack *stack = merge->stack;
	struct merged_frame *frame;

	if (stack->count == stack->size) {
		size_t size = stack->size ? stack->size * 2 : 128;
		struct merged_frame *larger = realloc(stack->frames, size * sizeof(*larger));

		if (!larger) {
			merge->out_of_memory = true;
			return NULL;
		}
		stack->frames = larger;
		stack->size = size;
	}
	frame = &stack->frames[stack->count++];
	*frame = (struct merged_frame){ .kind = kind };
	return frame;
}

static void emit_lost(struct merge *merge, enum lost_reason reason)
{
	struct merged_frame *frame = emit(merge, MERGED_LOST);

	if (frame)
		frame->lost = reason;
}

static void emit_code(struct merge *merge, enum merged_kind kind, struct lua_universe *universe,
		      const struct trace *trace)
{
	const struct native_frame *native = native_current(merge->native);
	struct merged_frame *frame = emit(merge, kind);

	if (!frame)
		return;
	frame->universe = universe;
	frame->pc = native->registers.rip;
	frame->is_return_address = native->is_return_address;
	if (merge->stack->count == 1) {	/* the leaf, wherever it was run on to */
		frame->pc = merge->capture->registers.rip;
		frame->is_return_address = false;
	}
	frame->trace = trace;
	frame->proto = trace ? lua_objects_proto(merge->objects, trace->startpt) : NULL;
}

static struct merged_frame *emit_activation(struct merge *merge, struct lua_universe *universe,
					    const struct lua_activation *activation)
{
	const struct function_object *function = activation->function;
	struct merged_frame *frame = emit(merge, function->proto ? MERGED_LUA : MERGED_C_FUNCTION);

	if (!frame)
		return NULL;
	frame->universe = universe;
	frame->function = function;
	frame->proto = function->proto;
	frame->pc = activation->pc;
	return frame;
}

/*---- Lua sections ----*/

static struct section *section_of(struct merge *merge, const struct lua_thread *thread)
{
	return &merge->sections[thread - merge->capture->threads];
}

/* Move to the frame below and note on the frame just emitted (NULL if none) who called it. */
static enum lua_step step_down(struct section *section, struct merged_frame *callee)
{
	enum lua_step step = lua_walk_step(&section->walk);
	struct lua_activation caller;

	if (callee && (step == LUA_STEP_CALL || step == LUA_STEP_METAMETHOD) &&
	    lua_walk_activation(&section->walk, &caller) && caller.pc) {
		callee->caller = caller.function->proto;
		callee->caller_pc = caller.pc;
		callee->called_by_metamethod = step == LUA_STEP_METAMETHOD;
	}
	return step;
}

/* Act on a step; true if the frames of this section go on. */
static bool goes_on(struct merge *merge, struct section *section, enum lua_step step)
{
	switch (step) {
	case LUA_STEP_CALL:
	case LUA_STEP_METAMETHOD:
	case LUA_STEP_PROTECTED:
		return true;
	case LUA_STEP_FROM_C:
		return false;
	case LUA_STEP_BOTTOM:
		section->ended = true;
		return false;
	case LUA_STEP_BROKEN:
		emit_lost(merge, LOST_BROKEN_CHAIN);
		section->ended = true;
		return false;
	}
	return false;
}

/* Emit Lua frames down to and including the one that native code called. */
static void emit_own_frames(struct merge *merge, struct section *section)
{
	if (section->walk.is_below_c) {
		section->walk.is_below_c = false;
		return;
	}
	while (!section->ended && merge->stack->count < MERGE_FRAMES_MAX) {
		struct lua_activation activation;
		struct merged_frame *frame = NULL;

		if (lua_walk_is_done(&section->walk)) {
			section->ended = true;
			return;
		}
		if (!lua_walk_activation(&section->walk, &activation)) {
			emit_lost(merge, LOST_BROKEN_CHAIN);
			section->ended = true;
			return;
		}
		if (activation.function)
			frame = emit_activation(merge, section->walk.thread->universe, &activation);
		if (!goes_on(merge, section, step_down(section, frame)))
			return;
	}
}

/* The parked thread that this one runs for, if its frames are not shown yet. */
static struct section *parent_section(struct merge *merge, const struct section *child)
{
	uint64_t address = child->walk.thread->parent;
	const struct lua_thread *parent = address ? capture_find_thread(merge->capture, address)
						  : NULL;
	struct section *section = parent ? section_of(merge, parent) : NULL;

	if (!section || section->started)
		return NULL;
	section->started = true;
	section->walk = (struct lua_walk){ .thread = parent, .objects = merge->objects,
					   .base = parent->base };
	return section;
}

/* What a thread runs for, and what that runs for: all of their frames. */
static void emit_parents(struct merge *merge, const struct section *child)
{
	struct section *parent;

	while ((parent = parent_section(merge, child)) && !merge->out_of_memory) {
		emit(merge, MERGED_CHILD);
		while (!parent->ended && !merge->out_of_memory &&
		       merge->stack->count < MERGE_FRAMES_MAX)
			emit_own_frames(merge, parent);
		child = parent;
	}
}

static void emit_section(struct merge *merge, struct section *section)
{
	emit_own_frames(merge, section);
	if (lua_walk_is_done(&section->walk))
		emit_parents(merge, section);
}

/* The C frames of one thread, from its innermost outwards: does one of them lie here? */
static bool is_linked(const struct merge *merge, const struct lua_thread *thread, uint64_t cframe)
{
	uint64_t at = thread->cframe;

	for (unsigned i = 0; i < CFRAMES_MAX && at && at <= cframe; i++) {
		uint64_t previous;

		if (at == cframe)
			return true;
		if (!vm_frame_previous(thread->layout, merge->memory, at, &previous) ||
		    previous <= at)
			return false;
		at = previous;
	}
	return false;
}

/* The thread whose C frame lies here, or NULL. */
static const struct lua_thread *linked_thread(const struct merge *merge,
					      const struct layout *layout, uint64_t cframe)
{
	const struct lua_thread *thread;
	uint64_t address;

	if (!vm_frame_thread(layout, merge->memory, cframe, &address))
		return NULL;
	thread = capture_find_thread(merge->capture, address);
	return thread && is_linked(merge, thread, cframe) ? thread : NULL;
}

/* How many C frames run Lua frames, from this one outwards? See enter_section(). */
static unsigned count_cframes(const struct merge *merge, const struct lua_thread *thread,
			      uint64_t cframe)
{
	unsigned count = 0;

	for (unsigned i = 0; i < CFRAMES_MAX && cframe; i++) {
		uint64_t previous;
		int32_t nresults;

		if (vm_frame_nresults(thread->layout, merge->memory, cframe, &nresults) && nresults >= 0)
			count++;
		if (!vm_frame_previous(thread->layout, merge->memory, cframe, &previous) ||
		    previous <= cframe)
			break;
		cframe = previous;
	}
	return count;
}

/*
 * In the first and last instructions of a call from C, L->base is that of the C
 * function that calls. Each C frame has a Lua frame that C has called: here one
 * is missing.
 */
static bool is_call_missing(const struct merge *merge, const struct lua_walk *top, uint64_t cframe)
{
	struct lua_walk walk = *top;
	struct lua_activation activation;
	enum lua_step step = LUA_STEP_CALL;
	unsigned calls = 0;

	if (!lua_walk_activation(top, &activation) || !activation.function ||
	    activation.function->proto)
		return false;
	for (unsigned i = 0; i < MERGE_FRAMES_MAX && step != LUA_STEP_BOTTOM; i++) {
		step = lua_walk_step(&walk);
		if (step == LUA_STEP_BROKEN)
			return false;
		calls += step == LUA_STEP_FROM_C;
	}
	return calls + 1 == count_cframes(merge, top->thread, cframe);
}

static bool start_section(struct merge *merge, struct section *section,
			  const struct lua_thread *thread, uint64_t cframe)
{
	const struct native_frame *native = native_current(merge->native);

	if (merge->is_half_done)
		return merge->is_half_done = false;
	if (native->is_return_address)
		return lua_top_below_native(merge->image, merge->objects, merge->memory, thread,
					    cframe, &native->registers, &section->walk);
	if (!lua_top_in_vm(merge->image, merge->objects, merge->memory, thread, cframe,
			   &native->registers, &section->walk))
		return false;
	if (!section->walk.is_below_c)
		section->walk.is_below_c = is_call_missing(merge, &section->walk, cframe);
	return true;
}

/*
 * Is an FFI callback through, all but its result? Then its C frame runs no
 * Lua frames any more, and the walk begins at those of the one below.
 */
static bool has_called_back(const struct merge *merge, const struct lua_thread *thread,
			    struct lua_walk *ret_walk)
{
	const struct native_frame *native = native_current(merge->native);
	const struct module *module;
	struct lua_walk walk = { .thread = thread, .objects = merge->objects, .base = thread->base };

	if (!native->is_return_address ||
	    image_classify(merge->image, native->registers.rip - 1, &module) != CODE_VM ||
	    !vm_is_leaving_callback(thread->layout, image_text(merge->image), module->vm,
				    native->registers.rip))
		return false;
	*ret_walk = walk;
	/* lj_ccallback_leave() sets L->base to the frame that it converts the result from. */
	if (lua_walk_is_callback(&walk) && lua_walk_step(&walk) == LUA_STEP_FROM_C)
		*ret_walk = walk;
	return true;
}

/*
 * Put the Lua frames that run in the VM's C frame into the stack. A frame of
 * lua_cpcall's kind, marked by a negative count of results, runs none.
 */
static void enter_section(struct merge *merge, const struct lua_thread *thread, uint64_t cframe)
{
	struct section *section = section_of(merge, thread);
	int32_t nresults;

	if (!vm_frame_nresults(thread->layout, merge->memory, cframe, &nresults) || nresults < 0)
		return;
	if (section->ended)
		return;
	if (!section->started && has_called_back(merge, thread, &section->walk)) {
		section->started = true;
		return;
	}
	if (section->started) {
		lua_top_resume(&section->walk, merge->memory, cframe);
	} else {
		section->started = true;
		if (!start_section(merge, section, thread, cframe)) {
			emit_lost(merge, LOST_HALF_DONE);
			section->ended = true;
			return;
		}
	}
	emit_section(merge, section);
}

/*---- Compiled code ----*/

/* The universe and verified trace that a pc belongs to. */
static const struct trace *find_trace(const struct merge *merge, uint64_t pc,
				      const struct universe_view **ret_view)
{
	for (size_t i = 0; i < merge->capture->universe_count; i++) {
		const struct universe_view *view = &merge->capture->universes[i];
		const struct trace *trace = view->universe->traces
			? traces_find(view->universe->traces, pc) : NULL;

		if (trace) {
			*ret_view = view;
			return trace;
		}
	}
	return NULL;
}

/* The innermost of a thread's C frames at or above a stack pointer; 0 if there is none. */
static uint64_t cframe_above(const struct merge *merge, const struct lua_thread *thread, uint64_t sp)
{
	uint64_t at = thread->cframe;

	for (unsigned i = 0; i < CFRAMES_MAX && at && at < sp; i++) {
		uint64_t previous;

		if (!vm_frame_previous(thread->layout, merge->memory, at, &previous) ||
		    previous <= at)
			return 0;
		at = previous;
	}
	return at < sp ? 0 : at;
}

/*
 * The thread that runs compiled code, and its C frame, which lies just above
 * the trace's. What the trace calls may have linked C frames further in.
 */
static const struct lua_thread *thread_on_trace(const struct merge *merge,
						const struct universe_view *view, uint64_t sp,
						uint64_t *ret_cframe)
{
	for (size_t i = 0; i < merge->capture->thread_count; i++) {
		const struct lua_thread *thread = &merge->capture->threads[i];
		uint64_t cframe;

		if (thread->universe != view->universe)
			continue;
		cframe = cframe_above(merge, thread, sp);
		if (cframe == 0)
			continue;
		if (view->cur_L == 0 || view->cur_L == thread->address) {
			*ret_cframe = cframe;
			return thread;
		}
	}
	return NULL;
}

/* One inlined frame as a trace tells it, from the function constant or by the bytecode's owner. */
static struct merged_frame *emit_trace_frame(struct merge *merge,
					     struct lua_universe *universe,
					     const struct trace_frame *inlined)
{
	const struct function_object *function = inlined->function
		? lua_objects_function(merge->objects, inlined->function) : NULL;
	const struct proto *proto = inlined->pc
		? lua_objects_proto_of_pc(merge->objects, inlined->pc) : NULL;
	struct merged_frame *frame;

	if (function && function->ffid != FF_LUA)
		frame = emit(merge, MERGED_C_FUNCTION);
	else if (proto)
		frame = emit(merge, MERGED_LUA);
	else
		frame = NULL;
	if (!frame) {
		emit_lost(merge, LOST_IN_TRACE);
		return NULL;
	}
	frame->universe = universe;
	frame->compiled = true;
	if (frame->kind == MERGED_LUA) {
		frame->proto = proto;
		frame->pc = inlined->pc;
		frame->function = function && function->proto == proto ? function : NULL;
	} else {
		frame->function = function;
	}
	return frame;
}

/*
 * Emit the frames that the trace has inlined and its start frame, and leave
 * the section's walk at the frame below that.
 */
static void emit_trace(struct merge *merge, struct section *section,
		       const struct trace_frame *inlined, size_t count)
{
	struct merged_frame *callee = NULL;
	size_t callee_at = 0;

	for (size_t i = 0; i < count; i++) {
		struct merged_frame *frame = emit_trace_frame(merge, section->walk.thread->universe,
							      &inlined[i]);

		if (callee && frame && frame->kind == MERGED_LUA) {
			callee = &merge->stack->frames[callee_at];
			callee->caller = frame->proto;
			callee->caller_pc = frame->pc;
			callee->called_by_metamethod = inlined[i].is_continuation;
		}
		if (frame && frame->kind == MERGED_LUA)
			frame->pc_is_near = inlined[i].is_near;
		callee = frame;
		callee_at = merge->stack->count - 1;
	}
	if (count == 0)
		emit_lost(merge, LOST_IN_TRACE);
	if (goes_on(merge, section, step_down(section, callee)))
		emit_section(merge, section);
	else if (lua_walk_is_done(&section->walk))
		emit_parents(merge, section);
}

/*
 * Does the frame at jit_base belong to this trace? Around the jump from one
 * trace to another it may be the other's. In memory it has the function that
 * the trace started in, or for a side trace its root, or the one that the
 * trace says; the latter two differ after a tail call.
 */
static bool is_start_frame(const struct merge *merge, const struct section *section,
			   const struct universe_view *view, const struct trace *trace,
			   const struct trace_frame *start)
{
	const struct trace *root = trace->root
		? traces_by_number(view->universe->traces, trace->root) : trace;
	struct lua_activation activation;

	if (!lua_walk_activation(&section->walk, &activation) || !activation.function ||
	    !activation.function->proto)
		return false;
	return activation.function->proto->address == trace->startpt || !root ||
	       activation.function->proto->address == root->startpt ||
	       activation.function->proto == lua_objects_proto_of_pc(merge->objects, start->pc);
}

static bool is_known_frame(const struct merge *merge, const struct trace_frame *inlined)
{
	return (inlined->function && lua_objects_function(merge->objects, inlined->function)) ||
	       (inlined->pc && lua_objects_proto_of_pc(merge->objects, inlined->pc));
}

static void enter_trace(struct merge *merge, const struct lua_thread *thread,
			const struct universe_view *view, const struct trace *trace,
			const struct trace_frame *inlined, size_t count)
{
	struct section *section = section_of(merge, thread);

	if (!section->started) {
		section->started = true;
		section->walk = (struct lua_walk){
			.thread = thread,
			.objects = merge->objects,
			.base = view->jit_base,
		};
	}
	if (section->ended)
		return;
	if (section->walk.base != view->jit_base ||
	    !lua_thread_holds_base(thread, view->jit_base)) {
		emit_lost(merge, LOST_IN_TRACE);
		section->ended = true;
		return;
	}
	if (count && !is_start_frame(merge, section, view, trace, &inlined[count - 1]))
		count = 0;
	/* A trace that ends in a call of a builtin which it does not know is as good as there. */
	if (count > 1 && !is_known_frame(merge, &inlined[0])) {
		inlined++;
		count--;
	}
	emit_trace(merge, section, inlined, count);
}

/*---- One native frame at a time ----*/

/* The walk ends here, or goes on at the registers that were set. */
enum passed { PASSED_ON, PASSED_END, PASSED_LOST };

/* Go on at the caller of a VM frame. */
static enum passed leave_frame(struct merge *merge, const struct layout *layout, uint64_t cframe,
			       bool on_trace)
{
	struct registers caller;

	if (!vm_frame_caller(layout, merge->memory, cframe,
			     &native_current(merge->native)->registers, on_trace, &caller))
		return PASSED_LOST;
	native_continue(merge->native, &caller);
	return PASSED_ON;
}

static enum passed pass_trace(struct merge *merge, const struct trace *trace,
			      const struct universe_view *view)
{
	const struct native_frame *native = native_current(merge->native);
	const struct layout *layout = &view->universe->vm->layout;
	uint64_t pc = native->registers.rip - (native->is_return_address ? 1 : 0), cframe;
	const struct lua_thread *thread = thread_on_trace(merge, view, native->registers.rsp, &cframe);
	struct trace_frame inlined[TRACE_FRAMES_MAX];

	emit_code(merge, MERGED_TRACE, view->universe, trace);
	/* The first and last instructions of a trace run with another stack pointer. */
	if (!thread || (native->is_return_address &&
			vm_trace_cframe(&native->registers, trace->spadjust) != cframe)) {
		emit_lost(merge, LOST_IN_TRACE);
		return PASSED_LOST;
	}
	enter_trace(merge, thread, view, trace, inlined,
		    traces_frames(view->universe->traces, trace, layout, merge->objects, pc,
				  inlined, TRACE_FRAMES_MAX));
	return leave_frame(merge, layout, cframe, true);
}

/*
 * Native unwinding has failed. The C frames of the Lua threads are linked
 * whatever the native frames between them are: go on at the next one.
 */
static bool resynchronise(struct merge *merge)
{
	const struct native_frame *native = native_current(merge->native);
	struct registers registers = native->registers;
	const struct lua_thread *next = NULL;
	uint64_t cframe = UINT64_MAX;

	for (size_t i = 0; i < merge->capture->thread_count; i++) {
		const struct lua_thread *thread = &merge->capture->threads[i];
		uint64_t at = thread->cframe;

		for (unsigned n = 0; n < CFRAMES_MAX && at && at < registers.rsp; n++)
			if (!vm_frame_previous(thread->layout, merge->memory, at, &at))
				at = 0;
		if (at >= registers.rsp && at < cframe) {
			next = thread;
			cframe = at;
		}
	}
	if (!next || !memory_u64(merge->memory, cframe - sizeof(uint64_t), &registers.rip))
		return false;
	registers.rsp = cframe;
	registers.unknown = REGISTERS_ALL_BUT_PC_AND_SP;
	native_continue(merge->native, &registers);
	enter_section(merge, next, cframe);
	return leave_frame(merge, next->layout, cframe, false) == PASSED_ON;
}

/*
 * A leaf in the VM, but not in an interpreter frame that is linked: a leaf
 * routine called from C or from a trace, or the way out of a trace.
 */
static enum passed pass_vm_routine(struct merge *merge, const struct vm_code *vm)
{
	const struct native_frame *native = native_current(merge->native);
	struct registers caller = native->registers;
	const struct universe_view *view = NULL;
	const struct lua_thread *thread = NULL;
	struct section *section;
	uint64_t cframe;

	for (size_t i = 0; i < merge->capture->universe_count && !thread; i++) {
		view = &merge->capture->universes[i];
		if (view->universe->vm == vm && view->jit_base != 0)
			thread = thread_on_trace(merge, view, native->registers.rsp, &cframe);
	}
	if (memory_u64(merge->memory, caller.rsp, &caller.rip)) {
		const struct universe_view *trace_view;
		const struct trace *trace = find_trace(merge, caller.rip - 1, &trace_view);

		caller.rsp += sizeof(uint64_t);
		if (trace && thread &&
		    vm_trace_cframe(&caller, trace->spadjust) == cframe) {
			native_continue(merge->native, &caller);
			return PASSED_ON;
		}
		if (!thread && image_classify(merge->image, caller.rip - 1, NULL) == CODE_NATIVE) {
			native_continue(merge->native, &caller);
			return PASSED_ON;
		}
	}
	if (!thread)
		return PASSED_LOST;

	section = section_of(merge, thread);
	if (!section->started) {
		section->started = true;
		if (!lua_top_leaving_trace(merge->objects, thread, &native->registers,
					   &section->walk)) {
			section->walk = (struct lua_walk){ .thread = thread,
							   .objects = merge->objects,
							   .base = view->jit_base };
			emit_lost(merge, LOST_IN_TRACE);
			if (!lua_thread_holds_base(thread, view->jit_base) ||
			    !goes_on(merge, section, step_down(section, NULL)))
				return leave_frame(merge, &vm->layout, cframe, true);
		}
	}
	emit_section(merge, section);
	return leave_frame(merge, &vm->layout, cframe, true);
}

/* The thread in whose C frame the VM's leaf stands, or NULL. */
static const struct lua_thread *thread_of_leaf(const struct merge *merge, const struct vm_code *vm,
					       uint64_t *ret_cframe)
{
	const struct native_frame *native = native_current(merge->native);
	uint64_t candidates[VM_FRAME_CANDIDATES_MAX];
	size_t count = vm_frame_candidates(&vm->layout, &native->registers, candidates);

	for (size_t i = 0; i < count; i++) {
		const struct lua_thread *thread = linked_thread(merge, &vm->layout, candidates[i]);

		if (thread && thread->cframe == candidates[i]) {
			*ret_cframe = candidates[i];
			return thread;
		}
	}
	return NULL;
}

static enum passed pass_vm_leaf(struct merge *merge, const struct vm_code *vm)
{
	const struct native_frame *native = native_current(merge->native);
	const struct lua_thread *thread;
	struct registers caller;
	uint64_t cframe;

	if (vm_is_entering_or_leaving(&vm->layout, image_text(merge->image), merge->memory,
				      &native->registers, &caller)) {
		native_continue(merge->native, &caller);
		return PASSED_ON;
	}
	thread = thread_of_leaf(merge, vm, &cframe);
	if (thread) {
		enter_section(merge, thread, cframe);
		return leave_frame(merge, &vm->layout, cframe, false);
	}
	if (vm_is_linking(image_text(merge->image), vm, native->registers.rip))
		return leave_frame(merge, &vm->layout, native->registers.rsp, false);
	return pass_vm_routine(merge, vm);
}

/*
 * Is the leaf one of the VM's own routines that C has called, such as
 * lj_vm_floor() below lj_vm_foldarith()? It has nothing of the interpreter's
 * half done, whatever is in the interpreter's registers meanwhile.
 */
static bool is_routine_of_c(const struct merge *merge, const struct vm_code *vm)
{
	const struct native_frame *native = native_current(merge->native);
	struct memory *text = image_text(merge->image);
	struct registers caller;
	uint64_t address;

	return native->code == CODE_VM && !thread_of_leaf(merge, vm, &address) &&
	       !vm_is_entering_or_leaving(&vm->layout, text, merge->memory, &native->registers, &caller) &&
	       !vm_is_linking(text, vm, native->registers.rip) &&
	       memory_u64(merge->memory, native->registers.rsp, &address) &&
	       image_classify(merge->image, address - 1, NULL) == CODE_NATIVE;
}

/* The trace that is being left, and the frames of the snapshot that its exit restores. */
static const struct trace *exiting_trace(struct merge *merge, const struct universe_view *view,
					 struct trace_frame *ret_frames, size_t *ret_count)
{
	const struct layout *layout = &view->universe->vm->layout;
	uint64_t J = view->universe->g + (uint64_t)layout->GG_J;
	const struct trace *trace;
	uint32_t parent, exitno;

	if (!memory_u32(merge->memory, J + (uint64_t)layout->J_parent, &parent) ||
	    !memory_u32(merge->memory, J + (uint64_t)layout->J_exitno, &exitno))
		return NULL;
	trace = traces_by_number(view->universe->traces, parent);
	*ret_count = trace ? trace_exit_frames(trace, layout, exitno, ret_frames, TRACE_FRAMES_MAX) : 0;
	return *ret_count ? trace : NULL;
}

/* What lj_trace_exit() does last, once the stack is restored: a step of the collector, or of the recorder. */
static bool has_exited(const struct merge *merge, const struct universe_view *view)
{
	const struct layout *layout = &view->universe->vm->layout;
	uint32_t state;

	switch (view->vmstate) {
	case VMST_GC:
	case VMST_RECORD:
	case VMST_OPT:
	case VMST_ASM:
		return true;
	default:	/* J->state is LJ_TRACE_IDLE until then */
		return memory_u32(merge->memory, view->universe->g + (uint64_t)layout->GG_J +
				  (uint64_t)layout->J_state, &state) && state != 0;
	}
}

/* Are the frames from base downwards these, and the last of them the start frame at start? */
static bool are_restored(const struct merge *merge, const struct lua_thread *thread,
			 uint64_t base, uint64_t start, const struct trace_frame *frames, size_t count)
{
	struct lua_walk walk = { .thread = thread, .objects = merge->objects, .base = base };
	uint64_t link;

	for (size_t i = 0; i + 1 < count; i++) {
		struct lua_activation activation;

		if (!lua_walk_activation(&walk, &activation) || !activation.function)
			return false;
		if (frames[i].pc && activation.function->proto !=
				    lua_objects_proto_of_pc(merge->objects, frames[i].pc))
			return false;
		switch (lua_walk_step(&walk)) {
		case LUA_STEP_CALL:
		case LUA_STEP_METAMETHOD:
		case LUA_STEP_PROTECTED:
			break;
		case LUA_STEP_FROM_C:
		case LUA_STEP_BOTTOM:
		case LUA_STEP_BROKEN:
			return false;
		}
		if (frames[i + 1].pc && walk.pc != frames[i + 1].pc)
			return false;
	}
	/* A trace may begin below a vararg function's copy of its frame. */
	if (walk.base != start && lua_thread_link(thread, walk.base, &link) &&
	    (link & FRAME_TYPE_P) == FRAME_VARG)
		walk.base -= link & ~(uint64_t)FRAME_TYPE_P;
	return walk.base == start;
}

/*
 * An exit restores a snapshot's frames from the outermost on, and L->base goes
 * along, from the start frame to the innermost. Where is the start frame? When
 * functions call themselves that may be ambiguous: then the lowest is given.
 */
static uint64_t find_exit_start(const struct merge *merge, const struct section *section,
				const struct universe_view *view, const struct trace *trace,
				const struct trace_frame *frames, size_t count, bool *ret_is_sure)
{
	unsigned start_slot = frame_slots(section->walk.thread->layout->gc64);
	struct section start = *section;
	uint64_t found = 0;

	*ret_is_sure = true;
	for (size_t i = count + 1; i-- > 0;) {
		unsigned slots = i < count ? frames[i].base_slot - start_slot : 0;

		start.walk.base = section->walk.base - slots * (uint64_t)SLOT_SIZE;
		if (start.walk.base == found ||
		    !lua_thread_holds_base(section->walk.thread, start.walk.base) ||
		    !is_start_frame(merge, &start, view, trace, &frames[count - 1]) ||
		    (i < count && !are_restored(merge, section->walk.thread, section->walk.base,
						start.walk.base, frames + i, count - i)))
			continue;
		*ret_is_sure = found == 0;
		found = start.walk.base;
	}
	return found;
}

/* Called from lj_trace_exit(): the stack is that of the exit's snapshot, or is about to be. */
static enum passed pass_trace_exit(struct merge *merge, const struct vm_code *vm)
{
	const struct native_frame *native = native_current(merge->native);

	for (size_t i = 0; i < merge->capture->universe_count; i++) {
		const struct universe_view *view = &merge->capture->universes[i];
		struct trace_frame inlined[TRACE_FRAMES_MAX];
		const struct lua_thread *thread;
		const struct trace *trace;
		struct section *section;
		uint64_t cframe, start = 0;
		bool is_sure = true;
		size_t count;

		if (view->universe->vm != vm || !view->universe->traces)
			continue;
		thread = thread_on_trace(merge, view, native->registers.rsp, &cframe);
		if (!thread)
			continue;
		section = section_of(merge, thread);
		if (!section->started)
			section->walk = (struct lua_walk){ .thread = thread,
							   .objects = merge->objects,
							   .base = thread->base };
		trace = section->ended || has_exited(merge, view)
			? NULL : exiting_trace(merge, view, inlined, &count);
		if (trace)
			start = find_exit_start(merge, section, view, trace, inlined, count, &is_sure);
		if (start) {
			section->started = true;
			section->walk.base = start;
			section->walk.pc = 0;
			emit_trace(merge, section, inlined, is_sure ? count : 0);
		} else {
			/* SAVE_PC is then the instruction to come. */
			if (!section->started)
				vm_frame_pc(&vm->layout, merge->memory, cframe, &section->walk.pc);
			section->started = true;
			emit_section(merge, section);
		}
		return leave_frame(merge, &vm->layout, cframe, true);
	}
	return PASSED_LOST;
}

/*
 * Has an error unwound this frame already, while the native code that raised
 * it still stands on it (lj_err.c: err_unwind)? Then its Lua frames are gone:
 * the thread has ended with the error or goes on in a C frame further out.
 */
static bool is_unwound(const struct merge *merge, const struct vm_code *vm, uint64_t cframe)
{
	const struct universe_view *view;
	const struct lua_thread *thread;
	uint64_t address;

	if (!vm_frame_is_plausible(merge->image, &vm->layout, merge->memory, cframe, &address))
		return false;
	thread = capture_find_thread(merge->capture, address);
	if (!thread)
		return false;
	view = capture_find_universe(merge->capture, thread->universe);
	if (!view || view->vmstate == VMST_EXIT)
		return false;
	if (thread->cframe == 0 ? thread->status <= LUA_YIELD : thread->cframe <= cframe)
		return false;
	/* Its own link must lead to where the thread goes on; anything may stand on the stack. */
	for (unsigned i = 0; i < CFRAMES_MAX && cframe && cframe != thread->cframe; i++) {
		uint64_t previous;

		if (!vm_frame_previous(&vm->layout, merge->memory, cframe, &previous) ||
		    (previous && previous <= cframe))
			return false;
		cframe = previous;
	}
	return cframe == thread->cframe;
}

/*
 * An error has been caught, and libgcc is about to go on at the VM's landing
 * pad, whose registers its own frame already holds, but for the stack pointer.
 * The thread's fields are what will be found there; if the error has ended a
 * coroutine, the next frame is that of the resumer.
 */
static enum passed pass_landing(struct merge *merge, const struct universe_view *view,
				const struct lua_thread *thread)
{
	const struct native_frame *native = native_current(merge->native);
	struct section *section = section_of(merge, thread);
	uint64_t cframe = cframe_above(merge, thread, native->registers.rsp);

	if (!cframe)
		return resynchronise(merge) ? PASSED_ON : PASSED_LOST;
	if (!lua_top_as_stored(merge->objects, merge->memory, thread, cframe, &section->walk))
		return PASSED_LOST;
	section->started = true;
	emit_section(merge, section);
	return leave_frame(merge, &view->universe->vm->layout, cframe, false);
}

/* The thread that runs outside of traces and of what compiles them, if nothing of it was seen yet. */
static const struct lua_thread *interpreting_thread(struct merge *merge, const struct vm_code *vm,
						    const struct universe_view **ret_view)
{
	for (size_t i = 0; i < merge->capture->universe_count; i++) {
		const struct universe_view *view = &merge->capture->universes[i];
		const struct lua_thread *thread = view->universe->vm == vm
			? capture_find_thread(merge->capture, view->cur_L) : NULL;

		if (!thread || (view->vmstate != VMST_INTERP && view->vmstate != VMST_C) ||
		    section_of(merge, thread)->started)
			continue;
		*ret_view = view;
		return thread;
	}
	return NULL;
}

static enum passed pass_vm_caller(struct merge *merge, const struct vm_code *vm)
{
	const struct native_frame *native = native_current(merge->native);
	struct memory *text = image_text(merge->image);
	const struct universe_view *view;
	const struct lua_thread *interpreting;
	uint64_t sp = native->registers.rsp;

	/* The second is for calls from a subroutine of the VM's own. */
	for (unsigned i = 0; i < 2; i++) {
		uint64_t cframe = sp + i * sizeof(uint64_t);
		const struct lua_thread *thread = linked_thread(merge, &vm->layout, cframe);

		if (!thread)
			continue;
		enter_section(merge, thread, cframe);
		return leave_frame(merge, &vm->layout, cframe, false);
	}
	if (vm_is_exiting(&vm->layout, text, native->registers.rip))
		return pass_trace_exit(merge, vm);
	if (vm_is_linking(text, vm, native->registers.rip) ||
	    vm_is_leaving_callback(&vm->layout, text, vm, native->registers.rip) ||
	    is_unwound(merge, vm, sp))
		return leave_frame(merge, &vm->layout, sp, false);
	interpreting = interpreting_thread(merge, vm, &view);
	return interpreting ? pass_landing(merge, view, interpreting) : pass_trace_exit(merge, vm);
}

/* The VM whose code runs here: of a trace or stub, that of the universe it belongs to. */
static const struct vm_code *running_vm(const struct merge *merge)
{
	const struct native_frame *native = native_current(merge->native);
	const struct universe_view *view;

	if (native->code == CODE_VM)
		return native->module->vm;
	if (native->code != CODE_UNKNOWN)
		return NULL;
	if (find_trace(merge, native->registers.rip, &view))
		return view->universe->vm;
	/* Of several VMs' stubs none is run on. */
	return merge->capture->universe_count == 1 ? merge->capture->universes[0].universe->vm : NULL;
}

/* Have done what the VM has half done where it was stopped or interrupted, and go on there. */
static void settle(struct merge *merge)
{
	const struct native_frame *native = native_current(merge->native);
	struct memory *text = image_text(merge->image);
	const struct vm_code *vm;
	struct registers registers;

	if (native->code == CODE_NATIVE && vm_is_about_to_land(text, &native->registers, &registers) &&
	    image_classify(merge->image, registers.rip, NULL) == CODE_VM)
		native_begin(merge->native, merge->memory, &registers);
	vm = running_vm(merge);
	if (!vm)
		return;
	switch (vm_settle(merge->capture, &native->registers, text, merge->objects, merge->decoder, vm,
			  &registers)) {
	case VM_SETTLED_STAYS:
		break;
	case VM_SETTLED_UNKNOWN:
		merge->is_half_done = !is_routine_of_c(merge, vm);
		break;
	case VM_SETTLED_DISPATCHES:
		native_begin(merge->native, merge->memory, &registers);
		break;
	case VM_SETTLED_RETURNED:
		emit_code(merge, MERGED_VM, NULL, NULL);
		native_continue(merge->native, &registers);
		break;
	case VM_SETTLED_CALLS:
		native_continue(merge->native, &registers);
		break;
	}
}

static enum passed pass_native(struct merge *merge)
{
	switch (native_step(merge->native)) {
	case NATIVE_FRAME:
		/* Not called: interrupted by a signal. */
		if (!native_current(merge->native)->is_return_address)
			settle(merge);
		return PASSED_ON;
	case NATIVE_END:
		return PASSED_END;
	case NATIVE_LOST:
		break;
	}
	return PASSED_LOST;
}

static enum passed pass_ffi_call(struct merge *merge, const struct vm_code *vm)
{
	const struct native_frame *native = native_current(merge->native);
	struct memory *text = image_text(merge->image);
	struct registers caller;
	enum passed passed;

	if (native->is_return_address ||
	    !vm_is_entering_or_leaving_ffi_call(vm, text, merge->memory, &native->registers, &caller)) {
		passed = pass_native(merge);
		if (passed != PASSED_LOST || !native->is_return_address ||
		    !vm_find_ffi_caller(vm, text, merge->memory, &native->registers, &caller))
			return passed;
	}
	native_continue(merge->native, &caller);
	return PASSED_ON;
}

/* Code in no module and in no trace that is known: most likely a trace whose layout is not settled. */
static enum passed pass_unknown_code(struct merge *merge)
{
	for (size_t i = 0; i < merge->capture->universe_count; i++) {
		const struct universe_view *view = &merge->capture->universes[i];

		if (view->universe->vm->traces_open && view->jit_base != 0) {
			emit_lost(merge, LOST_IN_TRACE);
			break;
		}
	}
	return PASSED_LOST;
}

static enum passed pass(struct merge *merge)
{
	const struct native_frame *native = native_current(merge->native);
	const struct universe_view *view;
	const struct trace *trace;

	switch (native->code) {
	case CODE_NATIVE:
		emit_code(merge, MERGED_NATIVE, NULL, NULL);
		return pass_native(merge);
	case CODE_VM_FFI_CALL:
		emit_code(merge, MERGED_VM, NULL, NULL);
		return pass_ffi_call(merge, native->module->vm);
	case CODE_VM:
		emit_code(merge, MERGED_VM, NULL, NULL);
		return native->is_return_address ? pass_vm_caller(merge, native->module->vm)
						  : pass_vm_leaf(merge, native->module->vm);
	case CODE_UNKNOWN:
		break;
	}
	trace = find_trace(merge, native->registers.rip - (native->is_return_address ? 1 : 0), &view);
	return trace ? pass_trace(merge, trace, view) : pass_unknown_code(merge);
}

/* Of code in no module: is it a trace's, or on the way out of one? */
static enum vm_state state_in_unknown_code(const struct merge *merge, const struct universe_view *view,
					   uint64_t pc)
{
	const struct universe_view *owner;

	if (find_trace(merge, pc, &owner))
		return VM_STATE_COMPILED;
	if (!view)
		return VM_STATE_UNKNOWN;
	if (view->universe->traces && traces_is_exit(view->universe->traces, pc))
		return VM_STATE_EXIT;
	return view->jit_base ? VM_STATE_COMPILED : VM_STATE_UNKNOWN;
}

/*
 * Of the VM's own code: as long as g->vmstate names a trace, that has called a
 * leaf routine, or has been left for code that has not said so yet.
 */
static enum vm_state state_in_vm(const struct merge *merge, const struct universe_view *view)
{
	const struct merged_stack *stack = merge->stack;

	if (!view || (view->vmstate < 0 && view->vmstate != VMST_EXIT))
		return VM_STATE_INTERPRETED;
	return view->vmstate >= 0 && stack->count > 1 && stack->frames[1].kind == MERGED_TRACE
		? VM_STATE_COMPILED : VM_STATE_EXIT;
}

/* VM state of the sample, by the leaf's pc first and g->vmstate where that leaves it open. */
static enum vm_state find_vm_state(const struct merge *merge)
{
	const struct capture *capture = merge->capture;
	const struct universe_view *view = NULL;
	const struct module *module;
	bool has_lua = false;

	for (size_t i = 0; i < merge->stack->count && !has_lua; i++)
		has_lua = merge->stack->frames[i].kind == MERGED_LUA ||
			  merge->stack->frames[i].kind == MERGED_C_FUNCTION;
	if (!has_lua)
		return VM_STATE_NONE;
	if (capture->thread_count)
		view = capture_find_universe(capture, capture->threads[0].universe);
	switch (image_classify(merge->image, capture->registers.rip, &module)) {
	case CODE_UNKNOWN:
		return state_in_unknown_code(merge, view, capture->registers.rip);
	case CODE_VM:
		return state_in_vm(merge, view);
	case CODE_VM_FFI_CALL:
	case CODE_NATIVE:
		break;
	}
	if (!view)
		return VM_STATE_UNKNOWN;
	switch (view->vmstate) {
	case VMST_GC:
		return VM_STATE_GC;
	case VMST_RECORD:
		return VM_STATE_RECORDING;
	case VMST_OPT:
		return VM_STATE_OPTIMISING;
	case VMST_ASM:
		return VM_STATE_ASSEMBLING;
	case VMST_EXIT:
		return VM_STATE_EXIT;
	default:
		return VM_STATE_C;
	}
}

static bool has_universe(const struct capture *capture, const struct vm_code *vm)
{
	for (size_t i = 0; i < capture->universe_count; i++) {
		if (capture->universes[i].universe->vm == vm)
			return true;
	}
	return false;
}

/* Why there is no way on from the frame at hand. */
static enum lost_reason why_lost(const struct merge *merge)
{
	const struct native_frame *native = native_current(merge->native);

	if ((native->code == CODE_VM || native->code == CODE_VM_FFI_CALL) &&
	    !has_universe(merge->capture, native->module->vm))
		return LOST_UNCONFIRMED;
	return native_lacks_register(merge->native) ? LOST_REGISTER_UNKNOWN : LOST_NATIVE_UNWIND;
}

int merge_stacks(struct capture *capture, struct image *image,
		 struct lua_objects *objects, struct native_unwinder *native,
		 struct vm_decoder *decoder, struct merged_stack *stack)
{
	struct merge merge = {
		.capture = capture,
		.image = image,
		.objects = objects,
		.native = native,
		.decoder = decoder,
		.memory = snapshot_memory(capture->snapshot),
		.stack = stack,
	};
	enum passed passed = PASSED_ON;

	stack->count = 0;
	lua_moved_adjust(capture, objects);
	native_begin(native, merge.memory, &capture->registers);
	settle(&merge);
	while (passed == PASSED_ON && !merge.out_of_memory) {
		if (stack->count >= MERGE_FRAMES_MAX) {
			emit_lost(&merge, LOST_TOO_DEEP);
			break;
		}
		passed = pass(&merge);
		if (passed != PASSED_LOST)
			continue;
		emit_lost(&merge, why_lost(&merge));
		if (resynchronise(&merge))
			passed = PASSED_ON;
	}
	stack->vm_state = find_vm_state(&merge);
	return merge.out_of_memory ? -ENOMEM : 0;
}

/*
 * The function that a coroutine is to begin with, which lies where its base will
 * be. C code may have put values there that are no function: there is no frame then.
 */
static void emit_start(struct merge *merge, const struct lua_thread *thread)
{
	bool gc64 = thread->layout->gc64;
	const struct function_object *function;
	uint64_t value;

	if (!lua_thread_slot(thread, thread->base, &value) || tvalue_tag(gc64, value) != TAG_FUNC)
		return;
	function = lua_objects_function(merge->objects, tvalue_object(gc64, value));
	if (!function || (function->ffid == FF_LUA && !function->proto)) {
		emit_lost(merge, LOST_BROKEN_CHAIN);
		return;
	}
	emit_activation(merge, thread->universe,
			&(struct lua_activation){ .function = function,
						  .pc = function->proto ? function->proto->bc : 0 });
}

int merge_coroutine(struct capture *capture, size_t index, struct lua_objects *objects,
		    struct merged_stack *stack)
{
	const struct lua_thread *thread = &capture->threads[index];
	struct merge merge = {
		.capture = capture,
		.objects = objects,
		.memory = snapshot_memory(capture->snapshot),
		.stack = stack,
	};
	struct section *section = &merge.sections[index];

	stack->count = 0;
	stack->vm_state = VM_STATE_NONE;
	if (!thread->slots) {
		emit_lost(&merge, LOST_NOT_CAPTURED);
		return merge.out_of_memory ? -ENOMEM : 0;
	}
	section->walk = (struct lua_walk){ .thread = thread, .objects = objects,
					   .base = thread->base };
	if (lua_walk_is_done(&section->walk) && lua_thread_state(thread, 0) == COROUTINE_NOT_STARTED)
		emit_start(&merge, thread);
	/* It ends at the bottom; a frame that C had called does not end it. */
	while (!section->ended && !merge.out_of_memory && stack->count < MERGE_FRAMES_MAX)
		emit_own_frames(&merge, section);
	return merge.out_of_memory ? -ENOMEM : 0;
}

/* False if the thread's innermost frame is not known; why is in the stack then. */
static bool find_top(struct merge *merge, struct section *section, const struct merge_top *top)
{
	const struct lua_thread *thread = section->walk.thread;

	switch (top->kind) {
	case MERGE_TOP_REGISTERS:
		if (lua_top_by_registers(merge->objects, merge->memory, thread, thread->cframe,
					 &top->registers, &section->walk))
			return true;
		emit_lost(merge, LOST_HALF_DONE);
		return false;
	case MERGE_TOP_STORED:
		if (lua_top_as_stored(merge->objects, merge->memory, thread, thread->cframe,
				      &section->walk))
			return true;
		emit_lost(merge, LOST_BROKEN_CHAIN);
		return false;
	case MERGE_TOP_TRACE:
		emit_lost(merge, LOST_IN_TRACE);
		section->walk.base = top->registers.base;
		return lua_thread_holds_base(thread, section->walk.base);
	case MERGE_TOP_UNKNOWN:
		break;
	}
	return false;
}

/* What is lost of native code is told between Lua frames only: it is at the bottom of every stack. */
static void emit_frames_below_native(struct merge *merge, struct section *section)
{
	struct merged_stack *stack = merge->stack;

	while (!section->ended && !merge->out_of_memory && stack->count < MERGE_FRAMES_MAX) {
		size_t told = stack->count;

		emit_lost(merge, LOST_NATIVE_UNWIND);
		emit_own_frames(merge, section);
		if (stack->count == told + 1)
			stack->count = told;
	}
}

int merge_lua_threads(struct capture *capture, struct memory *memory, struct lua_objects *objects,
		      const struct merge_top *top, struct merged_stack *stack)
{
	struct merge merge = {
		.capture = capture,
		.objects = objects,
		.memory = memory,
		.stack = stack,
	};
	struct merged_frame *leaf;

	stack->count = 0;
	stack->vm_state = VM_STATE_UNKNOWN;
	if (top->native_pc) {
		leaf = emit(&merge, MERGED_NATIVE);
		if (leaf)
			leaf->pc = top->native_pc;
		emit_lost(&merge, LOST_NATIVE_UNWIND);
	}
	for (size_t i = 0; i < capture->thread_count; i++) {
		struct section *section = &merge.sections[i];
		const struct lua_thread *thread = &capture->threads[i];

		section->walk = (struct lua_walk){ .thread = thread, .objects = objects,
						   .base = thread->base };
		if (!thread->slots || (i == 0 && !find_top(&merge, section, top)))
			continue;
		emit_own_frames(&merge, section);
		emit_frames_below_native(&merge, section);
	}
	if (stack->count == 0)
		emit_lost(&merge, LOST_NO_VM_FRAME);
	return merge.out_of_memory ? -ENOMEM : 0;
}

/*---- A thread that was not stopped ----*/

/* How much is sure of what a running thread's fields say. */
enum position {
	POSITION_SAVED,		/* the VM has stored it all before it went on to what it does now */
	POSITION_IN_TRACE,	/* down from where the trace began */
	POSITION_OLD,		/* it may have called and returned since it was stored */
};

static enum position position_of(const struct universe_view *view, enum vm_state *ret_state)
{
	if (view->vmstate >= 0 && view->jit_base) {
		*ret_state = VM_STATE_COMPILED;
		return POSITION_IN_TRACE;
	}
	switch (view->vmstate) {
	case VMST_C:
		*ret_state = VM_STATE_C;
		return POSITION_SAVED;
	case VMST_GC:
		*ret_state = VM_STATE_GC;
		return POSITION_SAVED;
	/* Instructions that are recorded run without a change of the state. */
	case VMST_RECORD:
		*ret_state = VM_STATE_RECORDING;
		return POSITION_OLD;
	case VMST_OPT:
		*ret_state = VM_STATE_OPTIMISING;
		return POSITION_OLD;
	case VMST_ASM:
		*ret_state = VM_STATE_ASSEMBLING;
		return POSITION_OLD;
	case VMST_INTERP:
		*ret_state = VM_STATE_INTERPRETED;
		return POSITION_OLD;
	default:
		*ret_state = VM_STATE_EXIT;
		return POSITION_OLD;
	}
}

/* The thread that resumed this one: the next one up the native stack. */
static const struct lua_thread *resumer_of(struct merge *merge, const struct lua_thread *thread)
{
	const struct lua_thread *next = NULL;

	for (size_t i = 0; i < merge->capture->thread_count; i++) {
		const struct lua_thread *other = &merge->capture->threads[i];

		if (other->universe == thread->universe && other->cframe > thread->cframe &&
		    (!next || other->cframe < next->cframe))
			next = other;
	}
	return next;
}

/* All frames of the thread, down from where it stands. */
static void emit_thread(struct merge *merge, const struct lua_thread *thread, enum position position,
			uint64_t jit_base)
{
	struct section *section = section_of(merge, thread);
	size_t first = merge->stack->count;

	section->started = true;
	if (position == POSITION_IN_TRACE) {
		section->walk = (struct lua_walk){ .thread = thread, .objects = merge->objects,
						   .base = jit_base };
		emit_lost(merge, LOST_NOT_STOPPED);
		first++;
	} else if (!lua_top_as_stored(merge->objects, merge->memory, thread, thread->cframe,
				      &section->walk)) {
		emit_lost(merge, LOST_BROKEN_CHAIN);
		return;
	}
	emit_own_frames(merge, section);
	if (position == POSITION_IN_TRACE && first < merge->stack->count)
		merge->stack->frames[first].compiled = true;
	if (position == POSITION_OLD)
		emit_lost(merge, LOST_MAY_HAVE_MOVED_ON);
	while (!section->ended && !merge->out_of_memory && merge->stack->count < MERGE_FRAMES_MAX)
		emit_own_frames(merge, section);
	emit_parents(merge, section);
}

int merge_running(struct capture *capture, struct lua_objects *objects, struct merged_stack *stack)
{
	const struct universe_view *view = capture->running;
	const struct lua_thread *thread = capture_find_thread(capture, view->cur_L);
	enum position position = position_of(view, &stack->vm_state);
	struct merge merge = {
		.capture = capture,
		.objects = objects,
		.memory = snapshot_memory(capture->snapshot),
		.stack = stack,
	};

	stack->count = 0;
	for (; thread && !section_of(&merge, thread)->started; thread = resumer_of(&merge, thread)) {
		emit_thread(&merge, thread, position, view->jit_base);
		position = POSITION_SAVED;
	}
	return merge.out_of_memory ? -ENOMEM : 0;
}

void merged_stack_clear(struct merged_stack *stack)
{
	free(stack->frames);
	*stack = (struct merged_stack){ 0 };
}

/* SPDX-License-Identifier: MIT */
/* What the stacks of threads hold, by the names of locals. */
#include "unwind/heap/heap_reading.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory/array.h"
#include "memory/snapshot.h"
#include "unwind/capture/capture.h"
#include "unwind/lua/lua_names.h"
#include "unwind/lua/lua_walk.h"

enum { FRAMES_MAX = 32768 }; /* of one thread; LuaJIT's stacks have no room for more */

struct stack_frame {
	uint64_t base, pc;
	uint64_t function;
	const struct proto *proto;     /* NULL for C functions */
	char name[LUA_NAME_SIZE];      /* by which it was called; "" if unknown */
	bool is_compiled;              /* a trace runs for it: names are those of compiled */
	struct heap_compiled compiled; /* all 0: none is sure */
};

struct heap_stacks {
	struct global_state global;
	struct lua_objects *objects;
	struct snapshot *snapshot;
	uint64_t *functions;
	size_t function_count, function_size;
	struct stack_frame *frames; /* the top first */
	size_t frame_count, frame_size;
	bool are_all; /* the frames reach down to the thread's first */
	struct global_view view;
};

/* Where a thread's innermost frame is. */
struct top {
	uint64_t base, pc;
	bool runs; /* the thread */
	bool is_compiled;
	uint64_t trace; /* the GCtrace that runs; 0 if unknown */
};

struct heap_stacks *heap_stacks_new(struct heap_reading *reading)
{
	struct heap_stacks *stacks = calloc(1, sizeof(*stacks));

	if (!stacks)
		return NULL;
	stacks->global = (struct global_state){ .g = reading->g, .vm = reading->vm };
	stacks->objects = lua_objects_new();
	stacks->snapshot = snapshot_new(heap_copy_memory(reading->copy));
	capture_load_view(heap_copy_memory(reading->copy), &stacks->global, &stacks->view);
	if (stacks->objects && stacks->snapshot)
		return stacks;
	heap_stacks_free(stacks);
	return NULL;
}

void heap_stacks_free(struct heap_stacks *stacks)
{
	if (!stacks)
		return;
	lua_objects_free(stacks->objects);
	snapshot_free(stacks->snapshot);
	free(stacks->functions);
	free(stacks->frames);
	free(stacks);
}

/*---- Frames ----*/

/* The functions on the stack: in GC64 they have tags, else any slot may be a frame's. */
static void list_functions(struct heap_reading *reading, const struct lua_thread *thread, uint64_t end)
{
	struct heap_stacks *stacks = reading->stacks;

	stacks->function_count = 0;
	for (uint64_t at = thread->stack; at < end; at += SLOT_SIZE) {
		uint64_t value = load_bytes(thread->slots, (int32_t)(at - thread->stack), SLOT_SIZE), *larger;
		uint64_t object = tvalue_object(reading->gc64, value);
		uint32_t node;

		if (reading->gc64 && tvalue_tag(true, value) != TAG_FUNC)
			continue;
		node = heap_builder_find(reading->builder, object);
		if (node == HEAP_ROOT ||
		    heap_builder_node(reading->builder, node)->kind != HEAP_KIND_FUNCTION)
			continue;
		larger = array_grow(stacks->functions, &stacks->function_size, stacks->function_count + 1,
				    sizeof(*stacks->functions));
		if (!larger)
			return;
		stacks->functions = larger;
		stacks->functions[stacks->function_count++] = object;
	}
}

static struct stack_frame *add_frame(struct heap_stacks *stacks)
{
	struct stack_frame *larger;

	if (stacks->frame_count == FRAMES_MAX)
		return NULL;
	larger = array_grow(stacks->frames, &stacks->frame_size, stacks->frame_count + 1,
			    sizeof(*stacks->frames));
	if (!larger)
		return NULL;
	stacks->frames = larger;
	return &stacks->frames[stacks->frame_count++];
}

/*---- The innermost frame ----*/

/*
 * Do the frames from lua_State.base on lead to this one, at the same instruction? Then C functions are above
 * it.
 */
static bool leads_to(const struct heap_reading *reading, const struct lua_thread *thread,
		     const struct heap_running_frame *frame)
{
	struct lua_walk walk = { .thread = thread,
				 .objects = reading->stacks->objects,
				 .base = thread->base };
	enum lua_step step = LUA_STEP_FROM_C;

	for (unsigned int i = 0; i < FRAMES_MAX && walk.base > frame->base && step != LUA_STEP_BROKEN; i++)
		step = lua_walk_step(&walk);
	return walk.base == frame->base && walk.pc == frame->pc;
}

/*
 * Compiled code whose place is not known by registers: the trace that g->vmstate names runs at g->jit_base.
 */
static bool find_jit_base(struct heap_reading *reading, const struct lua_thread *thread,
			  const struct heap_running_frame *frame, struct top *top)
{
	const struct global_view *view = &reading->stacks->view;

	if (view->jit_base == 0 || view->cur_L != thread->address ||
	    !lua_thread_contains_base(thread, view->jit_base) ||
	    (frame && (view->jit_base < frame->base || (view->jit_base == frame->base && frame->trace))))
		return false;
	*top = (struct top){
		.base = view->jit_base,
		.runs = true,
		.is_compiled = true,
		.trace = view->vmstate > 0 ? heap_trace_address(reading, (uint32_t)view->vmstate) : 0,
	};
	return true;
}

static struct top find_top(struct heap_reading *reading, const struct lua_thread *thread)
{
	const struct heap_running_frame *frame = heap_running_top(reading->options->running, thread->address);
	/* Of a coroutine that waits, L->cframe is 0; one that has resumed another does not. */
	struct top top = { .base = thread->base, .runs = thread->cframe != 0 };

	if (frame)
		top = (struct top){ .base = frame->base,
				    .pc = frame->pc,
				    .runs = true,
				    .is_compiled = frame->trace != 0,
				    .trace = frame->trace };
	if (!find_jit_base(reading, thread, frame, &top) && frame && !frame->trace &&
	    leads_to(reading, thread, frame))
		top = (struct top){ .base = thread->base, .runs = true };
	return top;
}

/*---- Walk ----*/

/* What is known of the innermost frame besides. */
static void set_top(struct heap_reading *reading, const struct top *top, struct stack_frame *frame)
{
	frame->is_compiled = top->is_compiled;
	if (top->is_compiled && frame->proto && top->trace)
		heap_compiled_find(reading, top->trace, frame->proto, &frame->compiled);
}

static void walk_frames(struct heap_reading *reading, const struct lua_thread *thread, const struct top *top)
{
	struct heap_stacks *stacks = reading->stacks;
	struct lua_walk walk = {
		.thread = thread, .objects = stacks->objects, .base = top->base, .pc = top->pc
	};
	enum lua_step step = LUA_STEP_FROM_C;

	stacks->frame_count = 0;
	stacks->are_all = false;
	while (!lua_walk_is_done(&walk) && step != LUA_STEP_BROKEN && step != LUA_STEP_BOTTOM) {
		struct lua_activation activation;
		struct stack_frame *frame;

		if (!lua_walk_activation(&walk, &activation) || !activation.function)
			return;
		frame = add_frame(stacks);
		if (!frame)
			return;
		*frame = (struct stack_frame){ .base = walk.base,
					       .pc = activation.pc,
					       .function = activation.function->address,
					       .proto = activation.function->proto };
		if (stacks->frame_count == 1)
			set_top(reading, top, frame);
		step = lua_walk_step(&walk);
		if (step == LUA_STEP_CALL && lua_walk_activation(&walk, &activation) && activation.function &&
		    activation.function->proto &&
		    !lua_call_name(heap_copy_memory(reading->copy), reading->layout,
				   activation.function->proto, walk.pc, frame->name))
			frame->name[0] = '\0';
	}
	stacks->are_all = lua_walk_is_done(&walk) || step == LUA_STEP_BOTTOM;
}

/*---- Slots ----*/

/* By its definition: the line where it stands is another one at each look. */
static uint32_t frame_text(struct heap_reading *reading, const struct stack_frame *frame, bool by_line)
{
	const char *name = frame->name[0] ? frame->name : NULL;
	struct proto proto;

	if (!frame->proto)
		return name ? heap_builder_text(reading->builder, name, strlen(name)) : HEAP_TEXT_NONE;
	if (!heap_proto(reading, frame->proto->address, &proto))
		return HEAP_TEXT_NONE;
	return heap_proto_text(reading, &proto, name, by_line ? frame->pc : 0, by_line && frame->pc);
}

static bool local_name(struct heap_reading *reading, const struct stack_frame *frame, uint64_t at,
		       const char **ret_name)
{
	const uint32_t slot = (uint32_t)((at - frame->base) / SLOT_SIZE);

	if (!frame->proto || at < frame->base)
		return false;
	if (frame->is_compiled)
		return frame->compiled.proto && heap_compiled_name(reading, &frame->compiled, slot, ret_name);
	return frame->pc && lua_local_name(reading->layout, frame->proto, frame->pc, slot, ret_name);
}

/* The slots in [begin, end), of a frame or of none. */
static void refer_slots(struct heap_reading *reading, const struct lua_thread *thread,
			const struct stack_frame *frame, uint32_t detail, uint64_t begin, uint64_t end)
{
	for (uint64_t at = begin; at < end; at += SLOT_SIZE) {
		uint64_t value = load_bytes(thread->slots, (int32_t)(at - thread->stack), SLOT_SIZE);
		struct heap_edge edge = { .hold = HEAP_HOLDS_SLOT, .detail = detail };
		const char *name;

		if (frame && local_name(reading, frame, at, &name)) {
			edge.hold = HEAP_HOLDS_LOCAL;
			edge.text = heap_builder_text(reading->builder, name, strlen(name));
		}
		heap_refer_value(reading, value, edge);
	}
}

/*
 * The end of what the collector marks; a Lua function that runs may use its whole frame (lj_obj.h:
 * curr_topL).
 */
static uint64_t used_end(const struct heap_stacks *stacks, const struct lua_thread *thread)
{
	const struct stack_frame *top = stacks->frame_count ? &stacks->frames[0] : NULL;
	uint64_t end = thread->top;

	if (top && top->proto && thread->cframe && top->base + top->proto->framesize * SLOT_SIZE > end)
		end = top->base + top->proto->framesize * SLOT_SIZE;
	return end < thread->stack_end ? end : thread->stack_end;
}

/*
 * The outermost frame first: if several hold an object, its path is by the first, and that one stays longest.
 * end is where the innermost one's slots end.
 */
static void refer_frames(struct heap_reading *reading, const struct lua_thread *thread, uint64_t end)
{
	const struct heap_stacks *stacks = reading->stacks;
	const uint64_t frame_bytes = frame_slots(reading->gc64) * SLOT_SIZE;
	const size_t count = stacks->frame_count;

	refer_slots(reading, thread, NULL, HEAP_TEXT_NONE, lua_thread_bottom(thread),
		    count ? stacks->frames[count - 1].base - frame_bytes : end);
	for (size_t i = count; i-- > 0;) {
		const struct stack_frame *frame = &stacks->frames[i];
		const uint32_t detail = frame_text(reading, frame, false);

		heap_refer(reading, frame->function,
			   (struct heap_edge){ .hold = HEAP_HOLDS_SLOT, .detail = detail });
		refer_slots(reading, thread, frame, detail, frame->base,
			    i ? stacks->frames[i - 1].base - frame_bytes : end);
	}
}

/*---- The thread ----*/

/* The function that a coroutine is made for is its first value, until it ends or makes a tail call. */
static bool first_proto(struct heap_reading *reading, const struct lua_thread *thread,
			struct proto *ret_proto)
{
	const struct layout *layout = reading->layout;
	const uint8_t *function;
	uint64_t value, object;
	uint32_t node;

	if (lua_thread_state(thread, 0) == COROUTINE_DEAD ||
	    !lua_thread_slot(thread, lua_thread_bottom(thread), &value) ||
	    (reading->gc64 && tvalue_tag(true, value) != TAG_FUNC))
		return false;
	object = tvalue_object(reading->gc64, value);
	node = heap_builder_find(reading->builder, object);
	if (node == HEAP_ROOT || heap_builder_node(reading->builder, node)->kind != HEAP_KIND_FUNCTION)
		return false;
	function = heap_object(reading, object, layout->GCfuncL_uvptr);
	return function && heap_field(function, layout->GCfunc_ffid, 1) == FF_LUA &&
	       heap_proto(reading,
			  heap_ref(reading, function, layout->GCfunc_pc) - (uint64_t)layout->GCproto_size,
			  ret_proto);
}

/* Of the frames that are known. NULL if no Lua function is. */
static const struct stack_frame *innermost(const struct heap_stacks *stacks)
{
	for (size_t i = 0; i < stacks->frame_count; i++)
		if (stacks->frames[i].proto)
			return &stacks->frames[i];
	return NULL;
}

static const struct stack_frame *outermost(const struct heap_stacks *stacks)
{
	for (size_t i = stacks->frame_count; i-- > 0;)
		if (stacks->frames[i].proto)
			return &stacks->frames[i];
	return NULL;
}

/*
 * The function that a coroutine is made for, but for tail calls. False if that is in C or not sure, and
 * of the main thread: hosts call one function of it after another.
 */
static bool find_first(struct heap_reading *reading, const struct lua_thread *thread, struct proto *ret_proto)
{
	const struct heap_stacks *stacks = reading->stacks;
	const struct proto *proto;

	if (thread->address == reading->mainthread)
		return false;
	if (!stacks->are_all || stacks->frame_count == 0)
		return first_proto(reading, thread, ret_proto);
	proto = stacks->frames[stacks->frame_count - 1].proto;
	return proto && heap_proto(reading, proto->address, ret_proto);
}

/*
 * Set what a thread is, and where it stands: of one that waits the line, of one that runs the function
 * only, as the line is another one at each look.
 */
static void note_thread(struct heap_reading *reading, const struct lua_thread *thread, bool runs,
			struct heap_node *node)
{
	const struct heap_stacks *stacks = reading->stacks;
	const struct stack_frame *frame = runs ? outermost(stacks) : innermost(stacks);
	const char *how = runs ? "running " : "";
	char text[HEAP_TEXT_MAX + 1];
	struct proto proto;

	if (find_first(reading, thread, &proto)) {
		node->text = heap_proto_text(reading, &proto, NULL, 0, false);
		node->module = heap_proto_file(reading, &proto);
	} else if (frame && heap_proto(reading, frame->proto->address, &proto)) {
		node->module = heap_proto_file(reading, &proto);
	}
	if (frame)
		node->place = frame_text(reading, frame, !runs);
	else if (lua_thread_state(thread, 0) == COROUTINE_NOT_STARTED)
		how = "start of ";
	if (!node->place)
		node->place = node->text;
	if (!node->place || !*how)
		return;
	snprintf(text, sizeof(text), "%s%s", how, heap_builder_string(reading->builder, node->place));
	node->place = heap_builder_text(reading->builder, text, strlen(text));
}

void heap_refer_stack(struct heap_reading *reading, uint32_t number)
{
	struct heap_stacks *stacks = reading->stacks;
	const struct layout *layout = reading->layout;
	struct heap_node *node = heap_builder_node(reading->builder, number);
	const uint8_t *object = heap_object(reading, node->address, layout->L_size);
	struct lua_thread thread;
	struct top top;

	if (!object || !lua_thread_load(&thread, &stacks->global, node->address, object))
		return;
	thread.slots = heap_object(reading, thread.stack, (int64_t)(thread.stack_end - thread.stack));
	if (!thread.slots) {
		reading->account->uncertain.unread_bytes += thread.stack_end - thread.stack;
		return;
	}
	list_functions(reading, &thread, thread.stack_end);
	snapshot_clear(stacks->snapshot);
	lua_objects_begin(stacks->objects, true);
	lua_objects_capture(stacks->objects, stacks->snapshot, layout, stacks->functions,
			    stacks->function_count);
	top = find_top(reading, &thread);
	walk_frames(reading, &thread, &top);
	note_thread(reading, &thread, top.runs, node);
	refer_frames(reading, &thread, used_end(stacks, &thread));
}

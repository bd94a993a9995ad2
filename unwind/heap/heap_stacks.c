/* SPDX-License-Identifier: MIT */
/* What the stacks of threads hold, by the names of locals. */
#include "unwind/heap/heap_reading.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory/array.h"
#include "memory/snapshot.h"
#include "unwind/lua/lua_names.h"
#include "unwind/lua/lua_walk.h"

enum { FRAMES_MAX = 32768 }; /* of one thread; LuaJIT's stacks have no room for more */

struct stack_frame {
	uint64_t base, pc;
	uint64_t function;
	const struct proto *proto; /* NULL for C functions */
	char name[LUA_NAME_SIZE];  /* by which it was called; "" if unknown */
};

struct heap_stacks {
	struct global_state global;
	struct lua_objects *objects;
	struct snapshot *snapshot;
	uint64_t *functions;
	size_t function_count, function_size;
	struct stack_frame *frames; /* the top first */
	size_t frame_count, frame_size;
};

struct heap_stacks *heap_stacks_new(struct heap_reading *reading)
{
	struct heap_stacks *stacks = calloc(1, sizeof(*stacks));

	if (!stacks)
		return NULL;
	stacks->global = (struct global_state){ .g = reading->g, .vm = reading->vm };
	stacks->objects = lua_objects_new();
	stacks->snapshot = snapshot_new(heap_copy_memory(reading->copy));
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

static void walk_frames(struct heap_reading *reading, const struct lua_thread *thread)
{
	struct heap_stacks *stacks = reading->stacks;
	struct lua_walk walk = { .thread = thread, .objects = stacks->objects, .base = thread->base };
	enum lua_step step = LUA_STEP_FROM_C;

	stacks->frame_count = 0;
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
		step = lua_walk_step(&walk);
		if (step == LUA_STEP_CALL && lua_walk_activation(&walk, &activation) && activation.function &&
		    activation.function->proto &&
		    !lua_call_name(heap_copy_memory(reading->copy), reading->layout,
				   activation.function->proto, walk.pc, frame->name))
			frame->name[0] = '\0';
	}
}

/*---- Slots ----*/

static uint32_t frame_text(struct heap_reading *reading, const struct stack_frame *frame)
{
	const char *name = frame->name[0] ? frame->name : NULL;
	struct proto proto;

	if (!frame->proto)
		return name ? heap_builder_text(reading->builder, name, strlen(name)) : HEAP_TEXT_NONE;
	if (!heap_proto(reading, frame->proto->address, &proto))
		return HEAP_TEXT_NONE;
	return heap_proto_text(reading, &proto, name, frame->pc, frame->pc != 0);
}

/* The slots in [begin, end), of a frame or of none. */
static void refer_slots(struct heap_reading *reading, const struct lua_thread *thread,
			const struct stack_frame *frame, uint32_t detail, uint64_t begin, uint64_t end)
{
	for (uint64_t at = begin; at < end; at += SLOT_SIZE) {
		uint64_t value = load_bytes(thread->slots, (int32_t)(at - thread->stack), SLOT_SIZE);
		struct heap_edge edge = { .hold = HEAP_HOLDS_SLOT, .detail = detail };
		const char *name;

		if (frame && frame->proto && frame->pc && at >= frame->base &&
		    lua_local_name(reading->layout, frame->proto, frame->pc,
				   (uint32_t)((at - frame->base) / SLOT_SIZE), &name)) {
			edge.hold = HEAP_HOLDS_LOCAL;
			edge.text = heap_builder_text(reading->builder, name, strlen(name));
		}
		heap_refer_value(reading, value, edge);
	}
}

/* The end of what the collector marks; a Lua function that runs may use its whole frame (lj_obj.h: curr_topL). */
static uint64_t used_end(const struct heap_stacks *stacks, const struct lua_thread *thread)
{
	const struct stack_frame *top = stacks->frame_count ? &stacks->frames[0] : NULL;
	uint64_t end = thread->top;

	if (top && top->proto && thread->cframe && top->base + top->proto->framesize * SLOT_SIZE > end)
		end = top->base + top->proto->framesize * SLOT_SIZE;
	return end < thread->stack_end ? end : thread->stack_end;
}

/* Where a coroutine will start that has never been resumed: its function is its first value. */
static void note_start(struct heap_reading *reading, const struct lua_thread *thread, struct heap_node *node)
{
	const struct layout *layout = reading->layout;
	char text[HEAP_TEXT_MAX + 1];
	const uint8_t *function;
	struct proto proto;
	uint64_t value;

	if (node->text != HEAP_TEXT_NONE || node->address == reading->mainthread ||
	    lua_thread_state(thread, 0) != COROUTINE_NOT_STARTED ||
	    !lua_thread_slot(thread, thread->base, &value) || tvalue_tag(reading->gc64, value) != TAG_FUNC)
		return;
	function = heap_object(reading, tvalue_object(reading->gc64, value), layout->GCfuncL_uvptr);
	if (!function || heap_field(function, layout->GCfunc_ffid, 1) != FF_LUA ||
	    !heap_proto(reading,
			heap_ref(reading, function, layout->GCfunc_pc) - (uint64_t)layout->GCproto_size,
			&proto))
		return;
	snprintf(text, sizeof(text), "start of %s",
		 heap_builder_string(reading->builder, heap_proto_text(reading, &proto, NULL, 0, false)));
	node->text = heap_builder_text(reading->builder, text, strlen(text));
	node->module = heap_proto_file(reading, &proto);
}

void heap_refer_stack(struct heap_reading *reading, uint32_t number)
{
	struct heap_stacks *stacks = reading->stacks;
	const struct layout *layout = reading->layout;
	struct heap_node *node = heap_builder_node(reading->builder, number);
	const uint8_t *object = heap_object(reading, node->address, layout->L_size);
	struct lua_thread thread;
	uint64_t end;

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
	walk_frames(reading, &thread);
	end = used_end(stacks, &thread);
	for (size_t i = 0; i < stacks->frame_count; i++) {
		const struct stack_frame *frame = &stacks->frames[i];
		uint32_t detail = frame_text(reading, frame);

		if (node->text == HEAP_TEXT_NONE && frame->proto) {
			struct proto proto;

			node->text = detail;
			if (heap_proto(reading, frame->proto->address, &proto))
				node->module = heap_proto_file(reading, &proto);
		}
		heap_refer(reading, frame->function,
			   (struct heap_edge){ .hold = HEAP_HOLDS_SLOT, .detail = detail });
		refer_slots(reading, &thread, frame, detail, frame->base, end);
		end = frame->base - frame_slots(reading->gc64) * SLOT_SIZE;
	}
	note_start(reading, &thread, node);
	refer_slots(reading, &thread, NULL, HEAP_TEXT_NONE, lua_thread_bottom(&thread), end);
}

/* SPDX-License-Identifier: MIT */
#include "unwind/values/frame_values.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "luajit-layouts/bytecode.h"
#include "memory/array.h"
#include "unwind/lua/global_state.h"
#include "unwind/lua/lua_names.h"
#include "unwind/lua/luajit.h"
#include "unwind/lua/value_capture.h"
#include "unwind/values/trace_values.h"
#include "unwind/values/value_text.h"

enum { VARARGS_MAX = 32 };

static const char not_copied[] = "not copied: there is too much, or it was being changed";
static const char half_done[] = "unknown: the call is being made";
static const char being_assigned[] = "being assigned";

struct reading {
	const struct value_source *source;
	const struct merged_stack *stack;
	const struct merged_frame *frame;
	size_t index; /* of the frame */
	const struct layout *layout;
	struct value_reader reader;
	struct variables *variables;
	bool out_of_memory;
};

const char *variable_kind_name(enum variable_kind kind)
{
	static const char *const names[VARIABLE_KIND_COUNT] = {
		[VARIABLE_ARGUMENT] = "argument", [VARIABLE_LOCAL] = "local",
		[VARIABLE_VARARG] = "vararg",     [VARIABLE_SLOT] = "slot",
		[VARIABLE_UPVALUE] = "upvalue",
	};

	return names[kind];
}

void variables_clear(struct variables *variables)
{
	for (size_t i = 0; i < variables->count; i++) {
		free(variables->list[i].name);
		free(variables->list[i].text);
	}
	free(variables->list);
	*variables = (struct variables){ 0 };
}

static bool name_function(void *context, uint64_t address, char ret_name[static VALUE_FUNCTION_SIZE])
{
	const struct reading *reading = context;
	const struct layout *layout = reading->layout;
	struct function_object object = { .address = address };
	struct memory *memory = reading->reader.memory;
	const struct function *function;

	if (!memory_u8(memory, address + (uint64_t)layout->GCfunc_ffid, &object.ffid) ||
	    !memory_u64(memory, address + (uint64_t)layout->GCfuncC_f, &object.f))
		return false;
	function = namer_function(reading->source->namer, reading->frame->global, &object);
	if (!function || !function->name)
		return false;
	snprintf(ret_name, VALUE_FUNCTION_SIZE, "%s [%s]", function->name,
		 function->kind == FRAME_BUILTIN ? "builtin"
		 : function->module              ? function->module
						 : "C");
	return true;
}

/*---- Variables ----*/

/* Add a variable with this text; type is NULL if the text is a reason. */
static void add_text(struct reading *reading, const struct variable *variable, const char *type,
		     const char *text)
{
	struct variables *variables = reading->variables;
	struct variable *list = array_grow(variables->list, &variables->size, variables->count + 1,
					   sizeof(*list));
	struct variable copy = *variable;

	reading->out_of_memory |= !list;
	if (!list)
		return;
	variables->list = list;
	copy.type = type;
	copy.text = strdup(text);
	copy.name = variable->name ? strdup(variable->name) : NULL;
	if (!copy.text || (variable->name && !copy.name)) {
		reading->out_of_memory = true;
		free(copy.text);
		free(copy.name);
		return;
	}
	variables->list[variables->count++] = copy;
}

static void add_value(struct reading *reading, const struct variable *variable, uint64_t value)
{
	char text[VALUE_TEXT_SIZE];
	const char *type = value_text(&reading->reader, value, text);

	add_text(reading, variable, type, type ? text : not_copied);
}

/*---- Slots ----*/

/*
 * Without GC64, the interpreter stores a value in two halves. Does the instruction that it is
 * at store one into the slot, or upvalue?
 */
static bool is_being_assigned(const struct reading *reading, enum variable_kind kind, uint32_t index)
{
	const struct merged_frame *frame = reading->frame;
	uint32_t instruction;
	uint8_t number;

	if (reading->layout->gc64 || reading->index == 0 || frame->compiled)
		return false;
	for (size_t i = 0; i < reading->index; i++)
		if (reading->stack->frames[i].kind != MERGED_VM)
			return false;
	if (!proto_instruction(frame->proto, frame->pc, &instruction))
		return true;
	number = (uint8_t)instruction;
	if (kind == VARIABLE_UPVALUE)
		return bytecode_mode_a(reading->layout, number) == BCMuv && bytecode_a(instruction) == index;
	return (bytecode_mode_a(reading->layout, number) == BCMdst && bytecode_a(instruction) == index) ||
	       (bytecode_mode_a(reading->layout, number) == BCMbase && bytecode_a(instruction) <= index);
}

static void add_slot(struct reading *reading, struct variable *variable, const struct lua_local *local)
{
	const struct merged_frame *frame = reading->frame;
	struct trace_value known = { .is_known = true };
	uint64_t value;

	if (is_being_assigned(reading, variable->kind, variable->index)) {
		add_text(reading, variable, NULL, being_assigned);
		return;
	}
	if (frame->compiled)
		trace_value(frame, local, variable->index, &known);
	variable->of_snapshot = known.of_snapshot;
	if (!known.is_known)
		add_text(reading, variable, NULL, known.reason);
	else if (known.is_constant)
		add_value(reading, variable, known.value);
	else if (frame->thread &&
		 lua_thread_slot(frame->thread, frame->base + (uint64_t)variable->index * SLOT_SIZE, &value))
		add_value(reading, variable, value);
	else
		add_text(reading, variable, NULL, not_copied);
}

/* Before a function's first instruction is done, arguments that were not passed are not there yet. */
static bool is_being_called(const struct reading *reading)
{
	const struct merged_frame *frame = reading->frame;

	return !frame->compiled && frame->pc == frame->proto->bc;
}

static void add_locals(struct reading *reading)
{
	const struct merged_frame *frame = reading->frame;
	const struct proto *proto = frame->proto;
	struct lua_local locals[LUA_LOCALS_MAX];
	/* Where it is not known which instruction runs, only the arguments are sure to be in scope. */
	size_t count = lua_locals(reading->layout, proto, frame->pc ? frame->pc : proto->bc, locals);

	for (size_t i = 0; i < count; i++) {
		struct variable variable = {
			.kind = i < proto->numparams ? VARIABLE_ARGUMENT : VARIABLE_LOCAL,
			.index = (uint32_t)i,
			.name = (char *)(uintptr_t)locals[i].name,
		};

		if (is_being_called(reading))
			add_text(reading, &variable, NULL, half_done);
		else
			add_slot(reading, &variable, &locals[i]);
	}
}

/* Does a frame above end this one's slots? Their number; at most those that the function uses. */
static uint32_t slot_count(const struct reading *reading)
{
	const struct merged_frame *frame = reading->frame;
	uint32_t count = frame->proto->framesize;

	for (size_t i = 0; i < reading->index; i++) {
		const struct merged_frame *above = &reading->stack->frames[i];
		uint64_t slots = (above->base - frame->base) / SLOT_SIZE;

		if (above->thread == frame->thread && above->base > frame->base && slots < count)
			count = (uint32_t)slots;
	}
	return count;
}

static void add_numbered(struct reading *reading)
{
	const struct merged_frame *frame = reading->frame;
	uint32_t count = frame->pc && !frame->compiled ? slot_count(reading) : frame->proto->numparams;
	uint32_t fr2 = frame_slots(reading->layout->gc64);

	/* The slots just below a called function's base are the call's. */
	if (count < frame->proto->framesize && count >= fr2)
		count -= fr2;
	for (uint32_t i = 0; i < count; i++) {
		struct variable variable = {
			.kind = i < frame->proto->numparams ? VARIABLE_ARGUMENT : VARIABLE_SLOT,
			.index = i,
		};

		if (is_being_called(reading))
			add_text(reading, &variable, NULL, half_done);
		else
			add_slot(reading, &variable, NULL);
	}
}

/* They lie between the frame that was called and its copy, which runs (lj_frame.h: FRAME_VARG). */
static void add_varargs(struct reading *reading)
{
	const struct merged_frame *frame = reading->frame;
	struct variable variable = { .kind = VARIABLE_VARARG };
	uint64_t link, slots, first;

	if (!(frame->proto->flags & PROTO_VARARG))
		return;
	if (is_being_called(reading) || !frame->thread || trace_has_inlined(frame) ||
	    !lua_thread_link(frame->thread, frame->base, &link) || (link & FRAME_TYPE_P) != FRAME_VARG) {
		add_text(reading, &variable, NULL, frame->compiled ? trace_value_unknown : half_done);
		return;
	}
	slots = (link & ~(uint64_t)FRAME_TYPE_P) / SLOT_SIZE;
	first = frame->proto->numparams;
	if (slots > frame->base / SLOT_SIZE || slots < frame_slots(reading->layout->gc64) + first)
		return;
	slots -= frame_slots(reading->layout->gc64) + first;
	for (uint64_t i = 0; i < slots && i < VARARGS_MAX; i++) {
		uint64_t below = (link & ~(uint64_t)FRAME_TYPE_P) - (first + i) * SLOT_SIZE, value;

		variable.index = (uint32_t)i + 1;
		if (lua_thread_slot(frame->thread, frame->base - below, &value))
			add_value(reading, &variable, value);
		else
			add_text(reading, &variable, NULL, not_copied);
	}
	if (slots > VARARGS_MAX) {
		char text[64];

		variable.index = VARARGS_MAX + 1;
		snprintf(text, sizeof(text), "and %llu more", (unsigned long long)slots - VARARGS_MAX);
		add_text(reading, &variable, NULL, text);
	}
}

/*---- Upvalues ----*/

/* The captured thread with this slot; NULL if it is none: the upvalue is closed. */
static const struct lua_thread *thread_of_slot(const struct reading *reading, uint64_t place)
{
	const struct capture *capture = reading->source->capture;

	for (size_t i = 0; i < capture->thread_count; i++)
		if (place >= capture->threads[i].stack && place < capture->threads[i].stack_end)
			return &capture->threads[i];
	return NULL;
}

/* May the slot be one of a compiled frame, whose values may be in registers? */
static bool is_in_trace(const struct reading *reading, uint64_t place)
{
	const struct lua_thread *thread = thread_of_slot(reading, place);
	const struct global_view *view = capture_find_global(reading->source->capture,
							     reading->frame->global);
	bool runs_trace = !view || view->jit_base != 0;

	for (size_t i = 0; thread && i < reading->stack->count; i++) {
		const struct merged_frame *frame = &reading->stack->frames[i];

		if ((frame->kind == MERGED_LOST && runs_trace) ||
		    (frame->compiled &&
		     (!frame->thread || (frame->thread == thread && place >= frame->base))))
			return true;
	}
	return false;
}

static bool load_upvalue(const struct reading *reading, uint64_t function, uint32_t index,
			 uint64_t *ret_place, uint64_t *ret_value)
{
	const struct layout *layout = reading->layout;
	struct memory *memory = reading->reader.memory;
	uint64_t upvalue;

	return field_reference(memory, layout,
			       function + (uint64_t)layout->GCfuncL_uvptr +
				       (uint64_t)index * layout_ref_size(layout),
			       &upvalue) &&
	       field_reference(memory, layout, upvalue + (uint64_t)layout->GCupval_v, ret_place) &&
	       memory_u64(memory, *ret_place, ret_value);
}

static void add_upvalue(struct reading *reading, uint64_t function, uint32_t index)
{
	struct variable variable = { .kind = VARIABLE_UPVALUE, .index = index };
	uint64_t place, value;
	const char *name;

	if (lua_upvalue_name(reading->layout, reading->frame->proto, index, &name))
		variable.name = (char *)(uintptr_t)name;
	if (is_being_assigned(reading, VARIABLE_UPVALUE, index))
		add_text(reading, &variable, NULL, being_assigned);
	else if (function && !load_upvalue(reading, function, index, &place, &value))
		add_text(reading, &variable, NULL, not_copied);
	else if (!function || is_in_trace(reading, place))
		add_text(reading, &variable, NULL, trace_value_unknown);
	else
		add_value(reading, &variable, value);
}

/* The closure that runs; 0 if only its prototype is known. */
static uint64_t closure_of(const struct reading *reading)
{
	const struct merged_frame *frame = reading->frame;
	uint64_t function;

	if (frame->function)
		return frame->function->address;
	if (!frame->thread || trace_has_inlined(frame) ||
	    !lua_thread_function(frame->thread, frame->base, &function))
		return 0;
	return function;
}

static void add_upvalues(struct reading *reading)
{
	uint8_t count = trace_upvalue_count(reading->layout, reading->frame->proto);
	uint64_t function = count ? closure_of(reading) : 0;

	for (uint32_t i = 0; i < count && i < VALUE_UPVALUES_MAX; i++)
		add_upvalue(reading, function, i);
}

int frame_values(const struct value_source *source, const struct merged_stack *stack, size_t index,
		 struct variables *variables)
{
	const struct merged_frame *frame = &stack->frames[index];
	struct reading reading = {
		.source = source, .stack = stack, .frame = frame, .index = index, .variables = variables
	};

	if (frame->kind != MERGED_LUA || !frame->proto)
		return 0;
	reading.layout = &frame->global->vm->layout;
	reading.reader = (struct value_reader){
		.memory = snapshot_memory(source->capture->snapshot),
		.live = source->live,
		.layout = reading.layout,
		.g = frame->global->g,
		.name_function = name_function,
		.context = &reading,
	};
	if (frame->base || frame->compiled) {
		if (lua_has_locals(reading.layout, frame->proto))
			add_locals(&reading);
		else
			add_numbered(&reading);
		add_varargs(&reading);
	}
	add_upvalues(&reading);
	return reading.out_of_memory ? -ENOMEM : 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * Which variables a Lua frame has, and where their values are: by a made-up stack, whose values are numbers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/instead_of.h"
#include "tests/unit/made_up_memory.h"
#include "tests/unit/made_up_proto.h"
#include "unwind/lua/global_state.h"
#include "unwind/lua/lua_names.h"
#include "unwind/lua/luajit.h"
#include "unwind/values/frame_values.h"
#include "unwind/values/trace_values.h"
#include "unwind/values/value_text.h"

enum {
	STACK = 0x8000, /* Lua's */
	SLOTS = 128,
	BASE_SLOT = 60,
	BASE = STACK + BASE_SLOT * SLOT_SIZE,
	PROTO = 0x3000,
	BYTECODES = 0x40,
	CLOSURE = MADE_UP_AT + 0x100,
	UPVALUE = MADE_UP_AT + 0x200, /* each 0x20 further */
	PLACE = MADE_UP_AT + 0x400,   /* where closed ones have their values */
	C_FUNCTION = MADE_UP_AT + 0x500,
	MISSING = 0xdead,  /* a value whose object was not copied */
	FUNCTION = 0xf00d, /* a value that is the C function */
	CONSTANT = 777,
	LOCALS = 3,
};

static struct vm_code vm;
static struct layout *const layout = &vm.layout;
static struct global_state global = { .g = 0x100, .vm = &vm };
static uint64_t slots[SLOTS];
static struct lua_thread thread;
static struct proto proto;
static uint8_t proto_bytes[BYTECODES + 4 * BYTECODE_SIZE];
static struct function_object closure;
static struct merged_frame frames[3]; /* the last one is that of interest, but for tests that say so */
static struct merged_stack stack;
static struct capture capture;
static struct global_view view;
static struct value_source source;
static struct variables variables;

static bool has_locals, has_inlined, is_unknown_function, has_view;
static uint8_t upvalue_count;
static size_t local_count;
static uint64_t asked_pc;
static struct trace_value known;
static struct function named;

INSTEAD_OF(value_text);
const char *__wrap_value_text(const struct value_reader *reader, uint64_t value,
			      char ret_text[static VALUE_TEXT_SIZE])
{
	char name[VALUE_FUNCTION_SIZE] = "no name";

	assert_ptr_equal(reader->memory, &made_up_memory.memory);
	assert_ptr_equal(reader->layout, layout);
	assert_int_equal(reader->g, global.g);
	snprintf(ret_text, VALUE_TEXT_SIZE, "%llu", (unsigned long long)value);
	if (value == FUNCTION) {
		reader->name_function(reader->context, C_FUNCTION, name);
		snprintf(ret_text, VALUE_TEXT_SIZE, "%s", name);
	}
	return value == MISSING ? NULL : "number";
}

INSTEAD_OF(lua_locals);
size_t __wrap_lua_locals(const struct layout *of, const struct proto *in, uint64_t pc,
			 struct lua_local ret_locals[static LUA_LOCALS_MAX])
{
	static const char *const names[LOCALS] = { "a", "b", "c" };

	(void)of;
	assert_ptr_equal(in, &proto);
	asked_pc = pc;
	for (size_t i = 0; i < local_count; i++)
		ret_locals[i] = (struct lua_local){ .name = names[i] };
	return local_count;
}

INSTEAD_OF(lua_has_locals);
bool __wrap_lua_has_locals(const struct layout *of, const struct proto *in)
{
	(void)of;
	(void)in;
	return has_locals;
}

INSTEAD_OF(lua_upvalue_name);
bool __wrap_lua_upvalue_name(const struct layout *of, const struct proto *in, uint32_t index,
			     const char **ret_name)
{
	(void)of;
	(void)in;
	*ret_name = "up";
	return index == 0;
}

INSTEAD_OF(trace_value);
void __wrap_trace_value(const struct merged_frame *frame, const struct lua_local *local, uint32_t slot,
			struct trace_value *ret_value)
{
	(void)slot;
	assert_true(frame->compiled);
	assert_true((local != NULL) == has_locals);
	*ret_value = known;
}

INSTEAD_OF(trace_has_inlined);
bool __wrap_trace_has_inlined(const struct merged_frame *frame)
{
	(void)frame;
	return has_inlined;
}

INSTEAD_OF(trace_upvalue_count);
uint8_t __wrap_trace_upvalue_count(const struct layout *of, const struct proto *in)
{
	(void)of;
	(void)in;
	return upvalue_count;
}

INSTEAD_OF(snapshot_memory);
struct memory *__wrap_snapshot_memory(struct snapshot *snapshot)
{
	(void)snapshot;
	return &made_up_memory.memory;
}

INSTEAD_OF(capture_find_global);
const struct global_view *__wrap_capture_find_global(const struct capture *of,
						     const struct global_state *wanted)
{
	(void)of;
	assert_ptr_equal(wanted, &global);
	return has_view ? &view : NULL;
}

INSTEAD_OF(namer_function);
const struct function *__wrap_namer_function(struct namer *namer, struct global_state *of,
					     const struct function_object *function)
{
	(void)namer;
	assert_ptr_equal(of, &global);
	assert_int_equal(function->address, C_FUNCTION);
	assert_int_equal(function->ffid, 4);
	assert_int_equal(function->f, 0x1234);
	return is_unknown_function ? NULL : &named;
}

/* A function with three slots, at its second instruction. The value of a slot is its number from the base. */
static int begin(void **state)
{
	static const struct bytecode bytecodes[] = {
		{ BC_FUNCF, 0, 0, 0 }, { BC_MOV, 1, 0, 0 }, { BC_CALL, 1, 0, 0 }, { BC_USETV, 1, 0, 0 }
	};

	(void)state;
	made_up_memory_begin();
	vm.layout = (struct layout){ .gc64 = true,
				     .bytecode = BYTECODE_V21,
				     .GCfunc_ffid = 10,
				     .GCfuncC_f = 32,
				     .GCfuncL_uvptr = 40,
				     .GCupval_v = 16 };
	for (int i = 0; i < SLOTS; i++)
		slots[i] = (uint64_t)(i >= BASE_SLOT ? i - BASE_SLOT : 1000 + i);
	thread = (struct lua_thread){ .layout = layout,
				      .stack = STACK,
				      .stack_end = STACK + sizeof(slots),
				      .slots = (const uint8_t *)slots };
	make_bytecodes(&proto, layout, PROTO, proto_bytes, BYTECODES, bytecodes, 4);
	proto.framesize = 5;
	proto.numparams = 1;
	closure = (struct function_object){ .address = CLOSURE, .proto = &proto };
	frames[0] = (struct merged_frame){ .kind = MERGED_LUA,
					   .global = &global,
					   .proto = &proto,
					   .function = &closure,
					   .pc = proto.bc + BYTECODE_SIZE,
					   .thread = &thread,
					   .base = BASE };
	stack = (struct merged_stack){ .frames = frames, .count = 1 };
	capture = (struct capture){ .threads = { thread }, .thread_count = 1 };
	view = (struct global_view){ .global = &global };
	source = (struct value_source){ .capture = &capture };
	has_locals = has_view = true;
	has_inlined = is_unknown_function = false;
	upvalue_count = 0;
	local_count = LOCALS;
	known = (struct trace_value){ .is_known = true };
	named = (struct function){ .kind = FRAME_BUILTIN, .name = "print" };
	return 0;
}

static int end(void **state)
{
	(void)state;
	variables_clear(&variables);
	assert_int_equal(variables.count, 0);
	return 0;
}

static void read_frame(size_t index)
{
	variables_clear(&variables);
	assert_int_equal(frame_values(&source, &stack, index, &variables), 0);
}

static const struct variable *variable_at(size_t i)
{
	assert_in_range(i, 0, variables.count - 1);
	return &variables.list[i];
}

static void expect(size_t i, enum variable_kind kind, uint32_t index, const char *name, const char *text)
{
	const struct variable *variable = variable_at(i);

	assert_int_equal(variable->kind, kind);
	assert_int_equal(variable->index, index);
	assert_string_equal(variable->name ? variable->name : "none", name ? name : "none");
	assert_string_equal(variable->text, text);
	assert_string_equal(variable->type ? variable->type : "unknown", "number");
}

/* A reason stands in the place of the value. */
static void expect_reason(size_t i, enum variable_kind kind, const char *reason)
{
	assert_int_equal(variable_at(i)->kind, kind);
	assert_null(variable_at(i)->type);
	assert_non_null(strstr(variable_at(i)->text, reason));
}

/* An upvalue, whose value is at a place. */
static void put_upvalue(uint32_t index, uint64_t place)
{
	const size_t ref = layout_ref_size(layout);

	put(CLOSURE + (uint64_t)layout->GCfuncL_uvptr + index * ref, UPVALUE + index * 0x20, ref);
	put(UPVALUE + index * 0x20 + (uint64_t)layout->GCupval_v, place, ref);
}

/*---- Locals ----*/

static void arguments_and_locals_have_their_slots(void **state)
{
	(void)state;
	read_frame(0);
	assert_int_equal(variables.count, LOCALS);
	expect(0, VARIABLE_ARGUMENT, 0, "a", "0");
	expect(1, VARIABLE_LOCAL, 1, "b", "1");
	expect(2, VARIABLE_LOCAL, 2, "c", "2");
	assert_int_equal(asked_pc, proto.bc + BYTECODE_SIZE);
	assert_false(variable_at(0)->of_snapshot);
	/* Only the arguments are sure to be in scope. */
	frames[0].pc = 0;
	read_frame(0);
	assert_int_equal(asked_pc, proto.bc);
	expect(0, VARIABLE_ARGUMENT, 0, "a", "0");
}

static void only_lua_functions_have_variables(void **state)
{
	(void)state;
	upvalue_count = 1;
	frames[0].kind = MERGED_C_FUNCTION;
	read_frame(0);
	assert_int_equal(variables.count, 0);
	frames[0].kind = MERGED_LUA;
	frames[0].proto = NULL;
	read_frame(0);
	assert_int_equal(variables.count, 0);
}

static void slots_of_a_frame_that_is_being_made_are_not_there_yet(void **state)
{
	(void)state;
	frames[0].pc = proto.bc;
	read_frame(0);
	assert_int_equal(variables.count, LOCALS);
	for (size_t i = 0; i < LOCALS; i++)
		expect_reason(i, i ? VARIABLE_LOCAL : VARIABLE_ARGUMENT, "call is being made");
	has_locals = false;
	read_frame(0);
	expect_reason(0, VARIABLE_ARGUMENT, "call is being made");
	/* A trace is past that. */
	frames[0].compiled = true;
	read_frame(0);
	expect(0, VARIABLE_ARGUMENT, 0, NULL, "0");
}

static void a_frame_without_a_place_has_upvalues_only(void **state)
{
	(void)state;
	upvalue_count = 1;
	put_upvalue(0, PLACE);
	frames[0].base = 0;
	frames[0].thread = NULL;
	read_frame(0);
	assert_int_equal(variables.count, 1);
	expect(0, VARIABLE_UPVALUE, 0, "up", "0");
	/* What a trace keeps in registers may be known all the same. */
	frames[0].compiled = true;
	known = (struct trace_value){ .is_known = true, .is_constant = true, .value = CONSTANT };
	read_frame(0);
	assert_int_equal(variables.count, LOCALS + 1);
	expect(0, VARIABLE_ARGUMENT, 0, "a", "777");
}

static void what_was_not_copied_says_so(void **state)
{
	(void)state;
	slots[BASE_SLOT] = MISSING;
	thread.stack_end = BASE + SLOT_SIZE;
	read_frame(0);
	expect_reason(0, VARIABLE_ARGUMENT, "not copied");
	expect_reason(1, VARIABLE_LOCAL, "not copied");
	frames[0].thread = NULL;
	read_frame(0);
	expect_reason(2, VARIABLE_LOCAL, "not copied");
}

static void compiled_code_tells_values_or_why_not(void **state)
{
	(void)state;
	frames[0].compiled = true;
	known = (struct trace_value){ .reason = "in a register" };
	read_frame(0);
	expect_reason(1, VARIABLE_LOCAL, "in a register");
	known = (struct trace_value){
		.is_known = true, .is_constant = true, .of_snapshot = true, .value = CONSTANT
	};
	read_frame(0);
	expect(1, VARIABLE_LOCAL, 1, "b", "777");
	assert_true(variable_at(1)->of_snapshot);
	known = (struct trace_value){ .is_known = true };
	read_frame(0);
	expect(1, VARIABLE_LOCAL, 1, "b", "1");
}

/*---- Without debug information ----*/

/* The called function's frame begins behind the slots in use and two of its own. */
static void without_names_there_are_the_slots_in_use(void **state)
{
	(void)state;
	has_locals = false;
	read_frame(0);
	assert_int_equal(variables.count, 5);
	expect(0, VARIABLE_ARGUMENT, 0, NULL, "0");
	expect(4, VARIABLE_SLOT, 4, NULL, "4");
	frames[1] = frames[0];
	stack.count = 2;
	frames[0].base = BASE + 4 * SLOT_SIZE;
	read_frame(1);
	assert_int_equal(variables.count, 2);
	layout->gc64 = false;
	read_frame(1);
	assert_int_equal(variables.count, 3);
	layout->gc64 = true;
	/* Another thread's frame says nothing of this one's slots, nor does one below. */
	frames[0].thread = NULL;
	read_frame(1);
	assert_int_equal(variables.count, 5);
	frames[0].thread = &thread;
	frames[0].base = BASE - SLOT_SIZE;
	read_frame(1);
	assert_int_equal(variables.count, 5);
	frames[0].base = BASE + 9 * SLOT_SIZE;
	read_frame(1);
	assert_int_equal(variables.count, 5);
	frames[0].base = BASE + SLOT_SIZE; /* fewer than the call's own */
	read_frame(1);
	assert_int_equal(variables.count, 1);
	/* The nearest one of several ends them. */
	frames[2] = frames[1];
	frames[1].base = BASE + 4 * SLOT_SIZE;
	frames[0].base = BASE + 5 * SLOT_SIZE;
	stack.count = 3;
	read_frame(2);
	assert_int_equal(variables.count, 2);
	frames[2].pc = 0; /* it is unknown which are in use */
	read_frame(2);
	assert_int_equal(variables.count, 1);
}

/*---- Half-done assignments ----*/

static void without_gc64_a_value_may_be_half_assigned(void **state)
{
	(void)state;
	layout->gc64 = false;
	frames[1] = frames[0];
	frames[0] = (struct merged_frame){ .kind = MERGED_VM };
	stack.count = 2;
	read_frame(1); /* MOV 1 */
	expect(0, VARIABLE_ARGUMENT, 0, "a", "0");
	expect_reason(1, VARIABLE_LOCAL, "being assigned");
	expect(2, VARIABLE_LOCAL, 2, "c", "2");
	frames[1].pc += BYTECODE_SIZE; /* CALL 1 */
	read_frame(1);
	expect(0, VARIABLE_ARGUMENT, 0, "a", "0");
	expect_reason(1, VARIABLE_LOCAL, "being assigned");
	expect_reason(2, VARIABLE_LOCAL, "being assigned");
	upvalue_count = 2;
	put_upvalue(0, PLACE);
	put_upvalue(1, PLACE + 8);
	frames[1].pc += BYTECODE_SIZE; /* USETV 1 */
	read_frame(1);
	expect(1, VARIABLE_LOCAL, 1, "b", "1");
	expect(3, VARIABLE_UPVALUE, 0, "up", "0");
	expect_reason(4, VARIABLE_UPVALUE, "being assigned");
	/* The interpreter is not at it. */
	frames[0].kind = MERGED_C_FUNCTION;
	read_frame(1);
	expect(4, VARIABLE_UPVALUE, 1, NULL, "0");
	frames[0].kind = MERGED_VM;
	layout->gc64 = true;
	read_frame(1);
	expect(1, VARIABLE_LOCAL, 1, "b", "1");
	layout->gc64 = false;
	frames[1].pc = 0; /* it may be at any */
	read_frame(1);
	for (size_t i = 0; i < variables.count; i++)
		expect_reason(i, variable_at(i)->kind, "being assigned");
	/* Nothing runs above it. */
	frames[0] = frames[1];
	frames[0].pc = proto.bc + BYTECODE_SIZE;
	read_frame(0);
	expect(1, VARIABLE_LOCAL, 1, "b", "1");
}

/*---- Arguments beyond the named ones ----*/

/* The frame is a copy behind its arguments: so many of them, and the one that is named. */
static void put_varargs(uint64_t count)
{
	proto.flags = PROTO_VARARG;
	slots[BASE_SLOT - 1] = (frame_slots(true) + proto.numparams + count) * SLOT_SIZE | FRAME_VARG;
}

static void varargs_lie_below_the_frame(void **state)
{
	char text[16];

	(void)state;
	local_count = 0;
	put_varargs(3);
	read_frame(0);
	assert_int_equal(variables.count, 3);
	for (uint32_t i = 0; i < 3; i++) {
		/* Behind them are the two slots of the frame. */
		snprintf(text, sizeof(text), "%d", 1000 + BASE_SLOT - 2 - 3 + (int)i);
		expect(i, VARIABLE_VARARG, i + 1, NULL, text);
	}
	put_varargs(0);
	read_frame(0);
	assert_int_equal(variables.count, 0);
	put_varargs(32);
	read_frame(0);
	assert_int_equal(variables.count, 32);
	put_varargs(34);
	read_frame(0);
	assert_int_equal(variables.count, 33);
	expect_reason(32, VARIABLE_VARARG, "and 2 more");
	assert_int_equal(variable_at(32)->index, 33);
	proto.flags = 0;
	read_frame(0);
	assert_int_equal(variables.count, 0);
}

static void varargs_that_cannot_be_found_say_why(void **state)
{
	(void)state;
	local_count = 0;
	put_varargs(3);
	slots[BASE_SLOT - 1] ^= 1; /* another kind of frame */
	read_frame(0);
	assert_int_equal(variables.count, 1);
	expect_reason(0, VARIABLE_VARARG, "call is being made");
	put_varargs(3);
	frames[0].pc = proto.bc;
	read_frame(0);
	expect_reason(0, VARIABLE_VARARG, "call is being made");
	frames[0].pc += BYTECODE_SIZE;
	frames[0].compiled = has_inlined = true;
	read_frame(0);
	expect_reason(0, VARIABLE_VARARG, trace_value_unknown);
	has_inlined = false;
	read_frame(0);
	assert_int_equal(variables.count, 3);
	frames[0].thread = NULL;
	read_frame(0);
	expect_reason(0, VARIABLE_VARARG, trace_value_unknown);
	/* A link that cannot be right. */
	frames[0].thread = &thread;
	slots[BASE_SLOT - 1] = 2 * SLOT_SIZE | FRAME_VARG;
	read_frame(0);
	assert_int_equal(variables.count, 0);
	slots[BASE_SLOT - 1] = (BASE / SLOT_SIZE + 1) * SLOT_SIZE | FRAME_VARG;
	read_frame(0);
	assert_int_equal(variables.count, 0);
	/* Some lie below what was copied. */
	put_varargs(3);
	thread.stack = BASE - 4 * SLOT_SIZE;
	thread.slots = (const uint8_t *)&slots[BASE_SLOT - 4];
	read_frame(0);
	expect_reason(0, VARIABLE_VARARG, "not copied");
	expect(1, VARIABLE_VARARG, 2, NULL, "1056");
}

/*---- Upvalues ----*/

static void upvalues_are_where_their_closure_leads(void **state)
{
	(void)state;
	local_count = 0;
	upvalue_count = 2;
	put_upvalue(0, PLACE);
	put_upvalue(1, PLACE + 8);
	put(PLACE, 5, 8);
	put(PLACE + 8, 6, 8);
	read_frame(0);
	assert_int_equal(variables.count, 2);
	expect(0, VARIABLE_UPVALUE, 0, "up", "5");
	expect(1, VARIABLE_UPVALUE, 1, NULL, "6");
	/* The frame's slot has it, too. */
	frames[0].function = NULL;
	slots[BASE_SLOT - 2] = (uint64_t)(int64_t)TAG_FUNC << 47 | CLOSURE;
	read_frame(0);
	expect(1, VARIABLE_UPVALUE, 1, NULL, "6");
	has_inlined = true;
	read_frame(0);
	expect_reason(1, VARIABLE_UPVALUE, trace_value_unknown);
	has_inlined = false;
	frames[0].thread = NULL;
	read_frame(0);
	expect_reason(1, VARIABLE_UPVALUE, trace_value_unknown);
	frames[0].function = &closure;
	put_upvalue(1, 0x10);
	read_frame(0);
	expect_reason(1, VARIABLE_UPVALUE, "not copied");
	upvalue_count = 61; /* no function has more than 60 */
	read_frame(0);
	assert_int_equal(variables.count, 60);
}

/* An open one is a slot, whose value a trace may keep in a register. */
static void upvalues_in_a_compiled_frame_are_unknown(void **state)
{
	(void)state;
	local_count = 0;
	upvalue_count = 1;
	/* The slot is in memory that was copied, as the thread is. */
	capture.threads[0].stack = PLACE;
	capture.threads[0].stack_end = PLACE + 64;
	put_upvalue(0, PLACE + 8);
	put(PLACE + 8, 5, 8);
	frames[1] = (struct merged_frame){
		.kind = MERGED_LUA, .compiled = true, .thread = &capture.threads[0], .base = PLACE + 8
	};
	stack.count = 2;
	read_frame(0);
	expect_reason(0, VARIABLE_UPVALUE, trace_value_unknown);
	frames[1].base = PLACE + 16; /* it is below that frame */
	read_frame(0);
	expect(0, VARIABLE_UPVALUE, 0, "up", "5");
	frames[1].thread = &thread;
	frames[1].base = 0;
	read_frame(0);
	expect(0, VARIABLE_UPVALUE, 0, "up", "5");
	frames[1].thread = NULL; /* it may be any thread's */
	read_frame(0);
	expect_reason(0, VARIABLE_UPVALUE, trace_value_unknown);
	frames[1].compiled = false;
	read_frame(0);
	expect(0, VARIABLE_UPVALUE, 0, "up", "5");
	/* The part that is lost may be compiled, if a trace runs or that is unknown. */
	frames[1].kind = MERGED_LOST;
	read_frame(0);
	expect(0, VARIABLE_UPVALUE, 0, "up", "5");
	view.jit_base = 1;
	read_frame(0);
	expect_reason(0, VARIABLE_UPVALUE, trace_value_unknown);
	has_view = false;
	view.jit_base = 0;
	read_frame(0);
	expect_reason(0, VARIABLE_UPVALUE, trace_value_unknown);
	/* A closed one is in no frame. */
	capture.threads[0].stack = PLACE + 16;
	read_frame(0);
	expect(0, VARIABLE_UPVALUE, 0, "up", "5");
	capture.threads[0].stack = PLACE;
	capture.threads[0].stack_end = PLACE + 8;
	read_frame(0);
	expect(0, VARIABLE_UPVALUE, 0, "up", "5");
}

static void c_functions_have_the_names_of_frames(void **state)
{
	(void)state;
	local_count = 1;
	slots[BASE_SLOT] = FUNCTION;
	put(C_FUNCTION + 10, 4, 1);
	put(C_FUNCTION + 32, 0x1234, 8);
	read_frame(0);
	expect(0, VARIABLE_ARGUMENT, 0, "a", "print [builtin]");
	named.kind = FRAME_C_FUNCTION;
	read_frame(0);
	expect(0, VARIABLE_ARGUMENT, 0, "a", "print [C]");
	named.module = "lpeg.so";
	read_frame(0);
	expect(0, VARIABLE_ARGUMENT, 0, "a", "print [lpeg.so]");
	named.name = NULL;
	read_frame(0);
	expect(0, VARIABLE_ARGUMENT, 0, "a", "no name");
	is_unknown_function = true;
	read_frame(0);
	expect(0, VARIABLE_ARGUMENT, 0, "a", "no name");
}

static void kinds_have_names(void **state)
{
	(void)state;
	assert_string_equal(variable_kind_name(VARIABLE_ARGUMENT), "argument");
	assert_string_equal(variable_kind_name(VARIABLE_LOCAL), "local");
	assert_string_equal(variable_kind_name(VARIABLE_VARARG), "vararg");
	assert_string_equal(variable_kind_name(VARIABLE_SLOT), "slot");
	assert_string_equal(variable_kind_name(VARIABLE_UPVALUE), "upvalue");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(arguments_and_locals_have_their_slots),
		TEST(only_lua_functions_have_variables),
		TEST(slots_of_a_frame_that_is_being_made_are_not_there_yet),
		TEST(a_frame_without_a_place_has_upvalues_only),
		TEST(what_was_not_copied_says_so),
		TEST(compiled_code_tells_values_or_why_not),
		TEST(without_names_there_are_the_slots_in_use),
		TEST(without_gc64_a_value_may_be_half_assigned),
		TEST(varargs_lie_below_the_frame),
		TEST(varargs_that_cannot_be_found_say_why),
		TEST(upvalues_are_where_their_closure_leads),
		TEST(upvalues_in_a_compiled_frame_are_unknown),
		TEST(c_functions_have_the_names_of_frames),
		TEST(kinds_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* Which Lua frames a trace stands for where it runs, has called native code, or is left. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "luajit-layouts/vmstate.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/made_up_calls.h"
#include "tests/unit/made_up_native.h"
#include "unwind/stack/merge_trace.h"
#include "unwind/trace/trace_block.h"
#include "unwind/vm/vm_frame.h"

enum {
	FRAME = C_STACK_AT + 0x800,
	START_SLOT = 2, /* of the trace, for the base of its start frame */
	INNER_SLOT = START_SLOT + INNER - MIDDLE,
	RUNS = 8,
	BUILTIN = 3,
	OTHER = 4,  /* a Lua function that is on no stack */
	TRACES = 4, /* 1 to 3 */
	CODE_AT = FREE_AT,
	CODE_BYTES = 0x80,
	SPADJUST = 32,
	FRAMES = 4,
};

static struct trace made[TRACES];
static struct trace_frame inlined[FRAMES];
static size_t inlined_count;
static uint32_t exit_taken;

/*---- The traces, and the native walk ----*/

INSTEAD_OF(traces_find);
const struct trace *__wrap_traces_find(const struct traces *traces, uint64_t pc)
{
	(void)traces;
	for (size_t i = 1; i < TRACES; i++)
		if (pc - made[i].mcode < made[i].szmcode)
			return &made[i];
	return NULL;
}

INSTEAD_OF(traces_by_number);
const struct trace *__wrap_traces_by_number(const struct traces *traces, uint32_t number)
{
	(void)traces;
	return number > 0 && number < TRACES ? &made[number] : NULL;
}

INSTEAD_OF(traces_frames);
size_t __wrap_traces_frames(struct traces *traces, const struct trace *trace, const struct layout *layout,
			    struct lua_objects *objects, uint64_t pc,
			    struct trace_frame ret_frames[static TRACE_FRAMES_MAX])
{
	(void)traces;
	(void)layout;
	(void)objects;
	assert_true(pc - trace->mcode < trace->szmcode);
	memcpy(ret_frames, inlined, inlined_count * sizeof(*inlined));
	return inlined_count;
}

INSTEAD_OF(trace_exit_frames);
size_t __wrap_trace_exit_frames(const struct trace *trace, const struct layout *layout, uint32_t exitno,
				struct trace_frame *ret_frames, size_t max)
{
	(void)layout;
	(void)max;
	assert_ptr_equal(trace, &made[1]);
	exit_taken = exitno;
	memcpy(ret_frames, inlined, inlined_count * sizeof(*inlined));
	return inlined_count;
}

/*---- The thread ----*/

static struct merge merge;
static struct merged_stack stack;

static struct global_view *view(void)
{
	return &states.capture.globals[0];
}

/* Trace 1 began in function 1, and has inlined function 2, which runs. */
static int begin(void **state)
{
	const int status = states_begin(state);
	struct global_state *global = lua_image_global(states.lua, 0);

	for (uint32_t i = 1; i < TRACES; i++)
		made[i] = (struct trace){ .number = i,
					  .mcode = CODE_AT + i * CODE_BYTES,
					  .szmcode = CODE_BYTES,
					  .spadjust = SPADJUST,
					  .startpt = proto_at(1) };
	put_g(0, put_thread(0, 0, FRAME));
	put_cframe(FRAME, thread_at(0), 0, NATIVE_CODE);
	put_three_frames(0, put_function(2));
	put_slot(0, SLOTS - 1, tagged(TAG_FUNC, put_c_function(BUILTIN)));
	put_slot(0, SLOTS - 2, tagged(TAG_FUNC, put_function(OTHER)));
	put_base(0, MIDDLE, INNER + 4);
	put_word(g_at(0) + (uint64_t)states.vm.layout.g_jit_base, base_of(0, MIDDLE));
	put(g_at(0) + (uint64_t)states.vm.layout.g_vmstate, 1, 4);
	global->traces = traces_new();
	inlined[0] = (struct trace_frame){ .function = function_at(2),
					   .pc = bytecode_at(2, RUNS),
					   .base_slot = INNER_SLOT };
	inlined[1] = (struct trace_frame){ .function = function_at(1),
					   .pc = bytecode_at(1, IN_MIDDLE),
					   .base_slot = START_SLOT };
	inlined_count = 2;
	return global->traces ? status : -1;
}

static int end(void **state)
{
	merged_stack_clear(&stack);
	return states_end(state);
}

/* Copy the thread, and stand where it is in trace 1. */
static void stand(void)
{
	states.vm.traces_open = true; /* the traces are made up, not read */
	states_capture();
	assert_int_equal(states.capture.thread_count, 1);
	merged_stack_begin(&stack, VM_STATE_NONE);
	merge = (struct merge){ .capture = &states.capture,
				.image = states.image,
				.memory = snapshot_memory(states.process.snapshot) };
	lua_sections_begin(&merge.lua, &states.capture, states.process.objects, &stack);
	native = (struct native_frame){ .registers = { .pc = made[1].mcode + 0x10,
						       .sp = vm_trace_sp(FRAME, SPADJUST) } };
}

static enum passed pass(void)
{
	stand();
	return merge_pass_trace(&merge, &made[1], view());
}

static void check_lua(size_t index, size_t function, uint64_t pc, bool compiled)
{
	assert_in_range(index, 0, stack.count - 1);
	assert_int_equal(stack.frames[index].kind, MERGED_LUA);
	assert_non_null(stack.frames[index].proto);
	assert_int_equal(stack.frames[index].proto->address, proto_at(function));
	assert_int_equal(stack.frames[index].pc, pc);
	assert_int_equal(stack.frames[index].compiled, compiled);
	assert_ptr_equal(stack.frames[index].global, view()->global);
}

static void check_lost(size_t index, enum lost_reason reason)
{
	assert_in_range(index, 0, stack.count - 1);
	assert_int_equal(stack.frames[index].kind, MERGED_LOST);
	assert_int_equal(stack.frames[index].lost, reason);
}

static void check_caller(size_t index, size_t function, size_t instruction)
{
	assert_non_null(stack.frames[index].caller);
	assert_int_equal(stack.frames[index].caller->address, proto_at(function));
	assert_int_equal(stack.frames[index].caller_pc, bytecode_at(function, instruction));
}

static void check_slots(size_t index, size_t slot, uint8_t trace_slot)
{
	assert_ptr_equal(stack.frames[index].thread, slot ? &states.capture.threads[0] : NULL);
	assert_int_equal(stack.frames[index].base, slot ? base_of(0, slot) : 0);
	assert_int_equal(stack.frames[index].trace_slot, trace_slot);
}

/* The walk goes on at the caller of the VM. */
static void check_left(void)
{
	assert_int_equal(native.registers.pc, NATIVE_CODE);
	assert_int_equal(native.registers.sp, FRAME + (uint64_t)states.vm.layout.CFRAME_size);
}

/*---- A trace that runs ----*/

static void a_trace_stands_for_the_frames_that_it_has_inlined(void **state)
{
	(void)state;
	assert_int_equal(pass(), PASSED_ON);
	assert_int_equal(stack.count, 3);
	check_lua(0, 2, bytecode_at(2, RUNS), true);
	check_caller(0, 1, IN_MIDDLE);
	check_slots(0, INNER, INNER_SLOT);
	assert_ptr_equal(stack.frames[0].function,
			 lua_objects_function(states.process.objects, function_at(2)));
	assert_ptr_equal(stack.frames[0].trace, &made[1]);
	assert_int_equal(stack.frames[0].trace_pc, made[1].mcode + 0x10);
	assert_false(stack.frames[0].pc_is_near || stack.frames[0].called_by_metamethod);
	check_lua(1, 1, bytecode_at(1, IN_MIDDLE), true);
	check_caller(1, 0, IN_OUTER);
	check_slots(1, MIDDLE, START_SLOT);
	check_lua(2, 0, bytecode_at(0, IN_OUTER), false);
	assert_null(stack.frames[2].trace);
	check_left();
}

static void a_position_that_is_near_says_so_and_has_only_the_start_frames_slots(void **state)
{
	(void)state;
	inlined[0].is_near = inlined[1].is_near = true;
	inlined[1].is_continuation = true;
	assert_int_equal(pass(), PASSED_ON);
	assert_true(stack.frames[0].pc_is_near && stack.frames[1].pc_is_near);
	assert_true(stack.frames[0].called_by_metamethod);
	check_slots(0, 0, 0);
	check_slots(1, MIDDLE, START_SLOT);
	inlined[1].base_slot = START_SLOT - 1; /* unknown */
	inlined[0].is_near = false;
	pass();
	check_slots(0, INNER, INNER_SLOT);
	check_slots(1, 0, 0);
}

static void builtins_and_unknown_functions_are_inlined_too(void **state)
{
	(void)state;
	inlined[0] = (struct trace_frame){ .function = function_at(BUILTIN), .base_slot = INNER_SLOT };
	pass();
	assert_int_equal(stack.count, 3);
	assert_int_equal(stack.frames[0].kind, MERGED_C_FUNCTION);
	assert_int_equal(stack.frames[0].function->address, function_at(BUILTIN));
	assert_true(stack.frames[0].compiled);
	assert_ptr_equal(stack.frames[0].global, view()->global);
	check_caller(0, 1, IN_MIDDLE);
	/* By its bytecode alone, or with a function of other bytecode. */
	inlined[0] = (struct trace_frame){ .pc = bytecode_at(2, RUNS), .base_slot = INNER_SLOT };
	pass();
	check_lua(0, 2, bytecode_at(2, RUNS), true);
	assert_null(stack.frames[0].function);
	inlined[0].function = function_at(1);
	pass();
	check_lua(0, 2, bytecode_at(2, RUNS), true);
	assert_null(stack.frames[0].function);
	/* A call that is not made yet. */
	inlined[0] = (struct trace_frame){ .function = FREE_AT, .base_slot = INNER_SLOT };
	pass();
	assert_int_equal(stack.count, 2);
	check_lua(0, 1, bytecode_at(1, IN_MIDDLE), true);
	inlined[0].pc = FREE_AT; /* nor does its bytecode tell */
	pass();
	assert_int_equal(stack.count, 2);
	check_lua(0, 1, bytecode_at(1, IN_MIDDLE), true);
	inlined[0].pc = 0;
	/* Further out it would be a frame. */
	inlined[2] = inlined[1];
	inlined[1] = inlined[0];
	inlined[0] = (struct trace_frame){ .pc = bytecode_at(2, RUNS), .base_slot = INNER_SLOT };
	inlined_count = 3;
	pass();
	assert_int_equal(stack.count, 4);
	check_lost(1, LOST_IN_TRACE);
	assert_null(stack.frames[0].caller);
	check_lua(2, 1, bytecode_at(1, IN_MIDDLE), true);
}

static void without_frames_what_lies_below_the_trace_is_known(void **state)
{
	(void)state;
	inlined_count = 0;
	assert_int_equal(pass(), PASSED_ON);
	assert_int_equal(stack.count, 2);
	check_lost(0, LOST_IN_TRACE);
	check_lua(1, 0, bytecode_at(0, IN_OUTER), false);
	check_left();
}

static void the_start_frame_must_be_that_of_the_trace(void **state)
{
	(void)state;
	made[1].startpt = proto_at(OTHER);
	inlined[1].pc = bytecode_at(OTHER, RUNS);
	made[1].root = 2;
	made[2].startpt = proto_at(OTHER);
	pass();
	assert_int_equal(stack.count, 2);
	check_lost(0, LOST_IN_TRACE);
	/* It is the root's, or that which the trace states, or nobody knows the root. */
	made[2].startpt = proto_at(1);
	pass();
	assert_int_equal(stack.count, 3);
	made[2].startpt = proto_at(OTHER);
	inlined[1].pc = bytecode_at(1, IN_MIDDLE);
	pass();
	assert_int_equal(stack.count, 3);
	inlined[1].pc = bytecode_at(OTHER, RUNS);
	made[1].root = TRACES;
	pass();
	assert_int_equal(stack.count, 3);
	made[1].root = 0;
	pass();
	assert_int_equal(stack.count, 2);
	put_slot(0, MIDDLE - 2, tagged(TAG_FUNC, function_at(BUILTIN))); /* a trace begins in none */
	made[1].startpt = proto_at(1);
	pass();
	check_lost(0, LOST_IN_TRACE);
}

static void a_base_outside_of_the_stack_is_lost(void **state)
{
	(void)state;
	put_word(g_at(0) + (uint64_t)states.vm.layout.g_jit_base, base_of(0, SLOTS + 1));
	assert_int_equal(pass(), PASSED_ON);
	assert_int_equal(stack.count, 1);
	check_lost(0, LOST_IN_TRACE);
	assert_true(lua_section_of(&merge.lua, &states.capture.threads[0])->ended);
	/* The walk has come to another frame. */
	put_word(g_at(0) + (uint64_t)states.vm.layout.g_jit_base, base_of(0, MIDDLE));
	stand();
	lua_section_start(&merge.lua, &states.capture.threads[0], base_of(0, OUTER));
	assert_int_equal(merge_pass_trace(&merge, &made[1], view()), PASSED_ON);
	assert_int_equal(stack.count, 1);
	check_lost(0, LOST_IN_TRACE);
	/* It has ended there: nothing is added. */
	native.registers = (struct registers){ .pc = made[1].mcode, .sp = vm_trace_sp(FRAME, SPADJUST) };
	native.is_return_address = false;
	assert_int_equal(merge_pass_trace(&merge, &made[1], view()), PASSED_ON);
	assert_int_equal(stack.count, 1);
}

static void the_stack_pointer_must_be_the_traces(void **state)
{
	(void)state;
	stand();
	native.is_return_address = true;
	assert_int_equal(merge_pass_trace(&merge, &made[1], view()), PASSED_ON);
	assert_int_equal(stack.count, 3);
	stand();
	native.is_return_address = true;
	native.registers.sp -= 16;
	assert_int_equal(merge_pass_trace(&merge, &made[1], view()), PASSED_LOST);
	assert_int_equal(stack.count, 1);
	check_lost(0, LOST_IN_TRACE);
	stand(); /* a leaf may be in its first or last instructions */
	native.registers.sp -= 16;
	assert_int_equal(merge_pass_trace(&merge, &made[1], view()), PASSED_ON);
	assert_int_equal(stack.count, 3);
	stand(); /* no thread runs there */
	native.registers.sp = FRAME + 8;
	assert_int_equal(merge_pass_trace(&merge, &made[1], view()), PASSED_LOST);
	check_lost(0, LOST_IN_TRACE);
}

/*---- Which trace, and whose ----*/

static void a_trace_is_best_that_of_a_state_that_runs_one(void **state)
{
	const struct global_view *found = NULL;

	(void)state;
	stand();
	states.capture.globals[1] = states.capture.globals[0];
	states.capture.global_count = 2;
	assert_ptr_equal(merge_find_trace(&states.capture, made[2].mcode, &found), &made[2]);
	assert_ptr_equal(found, &states.capture.globals[0]);
	states.capture.globals[0].jit_base = 0;
	merge_find_trace(&states.capture, made[2].mcode, &found);
	assert_ptr_equal(found, &states.capture.globals[1]);
	states.capture.globals[1].jit_base = 0;
	merge_find_trace(&states.capture, made[2].mcode, &found);
	assert_ptr_equal(found, &states.capture.globals[0]);
	found = NULL;
	assert_null(merge_find_trace(&states.capture, made[1].mcode - 1, &found));
	assert_null(found);
}

static void a_trace_runs_for_the_current_thread(void **state)
{
	struct lua_thread *thread = &states.capture.threads[0];
	uint64_t cframe = 0;

	(void)state;
	stand();
	assert_ptr_equal(merge_thread_on_trace(&merge, view(), FRAME, &cframe), thread);
	assert_int_equal(cframe, FRAME);
	assert_null(merge_thread_on_trace(&merge, view(), FRAME + 1, &cframe));
	view()->cur_L = thread_at(1);
	assert_null(merge_thread_on_trace(&merge, view(), FRAME, &cframe));
	view()->cur_L = 0; /* the build does not tell */
	assert_ptr_equal(merge_thread_on_trace(&merge, view(), FRAME, &cframe), thread);
	thread->global = NULL;
	assert_null(merge_thread_on_trace(&merge, view(), FRAME, &cframe));
}

/* LuaJIT 2.0 does not say whose trace is left; a thread that has resumed another has a C frame, too. */
static void a_trace_that_is_left_is_of_the_innermost_thread(void **state)
{
	struct lua_thread *threads = states.capture.threads;
	const uint64_t inner = FRAME - 0x100;
	uint64_t cframe = 0;

	(void)state;
	stand();
	view()->cur_L = 0;
	threads[1] = threads[0];
	threads[1].cframe = inner;
	states.capture.thread_count = 2;
	assert_ptr_equal(merge_thread_on_trace(&merge, view(), inner - 0x80, &cframe), &threads[1]);
	assert_int_equal(cframe, inner);
	threads[0].cframe = inner;
	threads[1].cframe = FRAME;
	assert_ptr_equal(merge_thread_on_trace(&merge, view(), inner - 0x80, &cframe), &threads[0]);
	assert_int_equal(cframe, inner);
}

/*---- Native code that a trace called, and that cannot be unwound ----*/

static bool resynchronise(void)
{
	return merge_resynchronise_in_trace(&merge, &states.capture.threads[0], FRAME);
}

static void the_walk_goes_on_where_the_trace_made_the_call(void **state)
{
	const uint64_t sp = vm_trace_sp(FRAME, SPADJUST);

	(void)state;
	put_word(sp - 8, made[1].mcode + 0x21);
	stand();
	native.registers.sp = sp - 0x100;
	assert_true(resynchronise());
	assert_int_equal(native.registers.pc, made[1].mcode + 0x21);
	assert_int_equal(native.registers.sp, sp);
	assert_int_equal(stack.count, 0);
	/* It stands there already: go on below the trace. */
	assert_true(resynchronise());
	assert_int_equal(stack.count, 2);
	check_lost(0, LOST_IN_TRACE);
	check_lua(1, 0, bytecode_at(0, IN_OUTER), false);
	check_left();
	/* The word is of another trace, or of none. */
	put_word(sp - 8, made[2].mcode + 0x21);
	stand();
	native.registers.sp = sp - 0x100;
	assert_true(resynchronise());
	assert_int_equal(stack.count, 2);
	check_left();
	put_word(sp - 8, NATIVE_CODE);
	stand();
	native.registers.sp = sp - 0x100;
	assert_true(resynchronise());
	assert_int_equal(stack.count, 2);
}

static void where_no_trace_has_called_it_is_not_resynchronised(void **state)
{
	(void)state;
	stand();
	view()->vmstate = VMST_C;
	assert_false(resynchronise());
	view()->vmstate = 1;
	view()->jit_base = 0;
	assert_false(resynchronise());
	view()->jit_base = base_of(0, MIDDLE);
	assert_false(merge_resynchronise_in_trace(&merge, &states.capture.threads[0], FRAME + 0x100));
	view()->cur_L = thread_at(1);
	assert_false(resynchronise());
	view()->cur_L = thread_at(0);
	lua_section_of(&merge.lua, &states.capture.threads[0])->started = true;
	assert_false(resynchronise());
	lua_section_of(&merge.lua, &states.capture.threads[0])->started = false;
	states.capture.global_count = 0;
	assert_false(resynchronise());
	assert_int_equal(stack.count, 0);
	states.capture.global_count = 1;
	view()->vmstate = 0; /* the number is not known, and nothing tells */
	assert_true(resynchronise());
	view()->cur_L = 0;
	stand();
	view()->cur_L = 0;
	assert_true(resynchronise());
	check_left();
}

static void below_a_lost_trace_the_frames_are_known(void **state)
{
	(void)state;
	stand();
	assert_int_equal(merge_pass_lost_trace(&merge, &states.capture.threads[0], view(), FRAME), PASSED_ON);
	assert_int_equal(stack.count, 2);
	check_lost(0, LOST_IN_TRACE);
	check_lua(1, 0, bytecode_at(0, IN_OUTER), false);
	stand();
	view()->jit_base = base_of(0, SLOTS + 1);
	assert_int_equal(merge_pass_lost_trace(&merge, &states.capture.threads[0], view(), FRAME), PASSED_ON);
	assert_int_equal(stack.count, 1);
}

/*---- Traces that are left ----*/

enum { EXIT = 6 };

/* lj_trace_exit() runs, with this in J->state. */
static enum passed leave(int32_t vmstate, uint32_t recorder)
{
	const struct layout *layout = &states.vm.layout;
	const uint64_t J = g_at(0) + (uint64_t)layout->GG_J;

	put(J + (uint64_t)layout->J_parent, 1, 4);
	put(J + (uint64_t)layout->J_exitno, EXIT, 4);
	put(J + (uint64_t)layout->J_state, recorder, 4);
	put(g_at(0) + (uint64_t)layout->g_vmstate, (uint32_t)vmstate, 4);
	exit_taken = 0;
	stand();
	merge.memory = &states.memory; /* a capture without traces lacks J */
	return merge_pass_trace_exit(&merge, &states.vm);
}

static void an_exit_has_the_frames_of_its_snapshot(void **state)
{
	(void)state;
	assert_int_equal(leave(VMST_EXIT, 0), PASSED_ON);
	assert_int_equal(exit_taken, EXIT);
	assert_int_equal(stack.count, 3);
	check_lua(0, 2, bytecode_at(2, RUNS), true);
	check_lua(1, 1, bytecode_at(1, IN_MIDDLE), true);
	check_lua(2, 0, bytecode_at(0, IN_OUTER), false);
	assert_int_equal(stack.frames[0].trace_pc, 0);
	check_left();
	/* L->base has moved up to the inner frame already. */
	put_base(0, INNER, INNER + 4);
	leave(VMST_EXIT, 0);
	assert_int_equal(stack.count, 3);
	check_lua(0, 2, bytecode_at(2, RUNS), true);
	check_slots(0, INNER, INNER_SLOT);
}

static void a_stack_that_is_restored_is_as_it_is(void **state)
{
	static const int32_t restored[] = { VMST_GC, VMST_RECORD, VMST_OPT, VMST_ASM };

	(void)state;
	put_base(0, INNER, INNER + 4);
	put_word(FRAME + (uint64_t)states.vm.layout.CFRAME_PC, bytecode_at(2, RUNS + 1));
	for (size_t i = 0; i <= sizeof(restored) / sizeof(restored[0]); i++) {
		const bool is_last = i == sizeof(restored) / sizeof(restored[0]);

		assert_int_equal(leave(is_last ? VMST_EXIT : restored[i], is_last), PASSED_ON);
		assert_int_equal(exit_taken, 0);
		assert_int_equal(stack.count, 3);
		check_lua(0, 2, bytecode_at(2, RUNS + 1), false);
		check_lua(1, 1, bytecode_at(1, IN_MIDDLE), false);
		check_left();
	}
}

static void an_exit_whose_start_is_nowhere_leaves_the_stack_as_it_is(void **state)
{
	(void)state;
	put_base(0, OUTER, OUTER + 4);
	leave(VMST_EXIT, 0);
	assert_int_equal(exit_taken, EXIT);
	assert_int_equal(stack.count, 1);
	check_lua(0, 0, 0, false);
	put_base(0, MIDDLE, INNER);
	inlined_count = 0;
	leave(VMST_EXIT, 0);
	assert_int_equal(stack.count, 2);
	check_lua(0, 1, 0, false);
}

static void an_exit_of_another_vm_or_no_thread_is_lost(void **state)
{
	const struct vm_code other = states.vm;

	(void)state;
	stand();
	assert_int_equal(merge_pass_trace_exit(&merge, &other), PASSED_LOST);
	native.registers.sp = FRAME + 8;
	assert_int_equal(merge_pass_trace_exit(&merge, &states.vm), PASSED_LOST);
	assert_int_equal(stack.count, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_trace_stands_for_the_frames_that_it_has_inlined),
		TEST(a_position_that_is_near_says_so_and_has_only_the_start_frames_slots),
		TEST(builtins_and_unknown_functions_are_inlined_too),
		TEST(without_frames_what_lies_below_the_trace_is_known),
		TEST(the_start_frame_must_be_that_of_the_trace),
		TEST(a_base_outside_of_the_stack_is_lost),
		TEST(the_stack_pointer_must_be_the_traces),
		TEST(a_trace_is_best_that_of_a_state_that_runs_one),
		TEST(a_trace_runs_for_the_current_thread),
		TEST(a_trace_that_is_left_is_of_the_innermost_thread),
		TEST(the_walk_goes_on_where_the_trace_made_the_call),
		TEST(where_no_trace_has_called_it_is_not_resynchronised),
		TEST(below_a_lost_trace_the_frames_are_known),
		TEST(an_exit_has_the_frames_of_its_snapshot),
		TEST(a_stack_that_is_restored_is_as_it_is),
		TEST(an_exit_whose_start_is_nowhere_leaves_the_stack_as_it_is),
		TEST(an_exit_of_another_vm_or_no_thread_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

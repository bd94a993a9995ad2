/* SPDX-License-Identifier: MIT */
/* The innermost Lua frame, by what the VM has stored and by its registers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/made_up_calls.h"
#include "unwind/stack/lua_top.h"

enum {
	FRAME = C_STACK_AT + 0x200,
	RUNS = 8,                /* the instruction that runs in the function at the top */
	SAVED = 9,               /* ... that was saved last */
	CALL_AT = VM_AT + 0x100, /* where a call by the VM returns to */
};

static struct lua_running running;
static struct lua_walk top;

/* Thread 0 runs function 0, that has called function 1, and that function 2, with this as L->base. */
static void capture_calls(size_t base_slot, bool is_c)
{
	put_g(0, put_thread(0, 0, FRAME));
	put_cframe(FRAME, thread_at(0), 0, NATIVE_CODE);
	put_word(FRAME + (uint64_t)states.vm.layout.CFRAME_PC, pc_in(1, SAVED));
	put_three_frames(0, is_c ? put_c_function(2) : put_function(2));
	put_base(0, base_slot, base_slot + 4);
	states_capture();
	assert_int_equal(states.capture.thread_count, 1);
	running = (struct lua_running){ .thread = &states.capture.threads[0],
					.cframe = FRAME,
					.objects = states.process.objects,
					.stack = snapshot_memory(states.process.snapshot) };
	top = (struct lua_walk){ 0 };
}

static void check_top(size_t slot, uint64_t pc, bool is_below_c)
{
	assert_ptr_equal(top.thread, running.thread);
	assert_int_equal(top.base, base_of(0, slot));
	assert_int_equal(top.pc, pc);
	assert_int_equal(top.is_below_c, is_below_c);
}

/*---- What is stored ----*/

static void the_stored_base_has_the_saved_position(void **state)
{
	(void)state;
	capture_calls(MIDDLE, true);
	assert_true(lua_top_as_stored(&running, &top));
	check_top(MIDDLE, bytecode_at(1, SAVED), false);
	/* The position is none of that function: unknown. */
	capture_calls(OUTER, true);
	assert_true(lua_top_as_stored(&running, &top));
	check_top(OUTER, 0, false);
	/* C functions have none. */
	capture_calls(INNER, true);
	assert_true(lua_top_as_stored(&running, &top));
	check_top(INNER, 0, false);
}

static void a_callback_begins_at_its_first_instruction(void **state)
{
	(void)state;
	capture_calls(OUTER, true);
	put_frame(0, OUTER + 5, put_function(3), 5 * SLOT_SIZE | FRAME_CONT);
	put_slot(0, OUTER + 5 - 3, 0);
	put_slot(0, OUTER + 5 - 4, CONT_FFI_CALLBACK);
	put_base(0, OUTER + 5, OUTER + 6);
	states_capture();
	assert_true(lua_top_as_stored(&running, &top));
	check_top(OUTER + 5, bytecode_at(3, 0), false);
}

static void where_no_function_is_the_link_leads_to_the_caller(void **state)
{
	(void)state;
	capture_calls(INNER, true);
	put_slot(0, INNER - 2, UINT64_MAX);
	states_capture();
	assert_true(lua_top_as_stored(&running, &top));
	check_top(MIDDLE, bytecode_at(1, IN_MIDDLE), false);
	put_slot(0, INNER - 1, 6 * SLOT_SIZE | FRAME_VARG);
	states_capture();
	assert_false(lua_top_as_stored(&running, &top));
	put_base(0, SLOTS + 2, SLOTS + 2);
	states_capture();
	assert_false(lua_top_as_stored(&running, &top));
}

/*---- The interpreter's registers ----*/

static bool by_registers(uint64_t base, uint64_t pc, uint64_t kept_base)
{
	const struct vm_registers vm = { .base = base, .pc = pc, .kept_base = kept_base };

	top = (struct lua_walk){ 0 };
	return lua_top_by_registers(&running, &vm, &top);
}

static void base_and_pc_are_those_of_the_function_that_runs(void **state)
{
	(void)state;
	capture_calls(OUTER, false);
	assert_true(by_registers(base_of(0, INNER), pc_in(2, RUNS), 0));
	check_top(INNER, bytecode_at(2, RUNS), false);
	/* A call is half done: PC is the caller's already, or still. */
	assert_true(by_registers(base_of(0, INNER), pc_in(1, IN_MIDDLE), 0));
	check_top(MIDDLE, bytecode_at(1, IN_MIDDLE), false);
	capture_calls(OUTER, true);
	assert_true(by_registers(base_of(0, INNER), 0, 0)); /* a C function has no position */
	check_top(INNER, 0, false);
	/* A result lies over its link: PC is that. If that leads nowhere, only the builtin is known. */
	put_slot(0, INNER - 1, UINT64_MAX);
	states_capture();
	assert_true(by_registers(base_of(0, INNER), pc_in(1, IN_MIDDLE), 0));
	check_top(MIDDLE, bytecode_at(1, IN_MIDDLE), false);
	assert_true(by_registers(base_of(0, INNER), 0, 0));
	check_top(INNER, 0, false);
}

static void on_a_return_to_c_pc_is_a_link_or_the_base_before(void **state)
{
	(void)state;
	capture_calls(OUTER, false);
	assert_true(by_registers(base_of(0, OUTER), (OUTER - BOTTOM) * SLOT_SIZE | FRAME_C, 0));
	check_top(BOTTOM, 0, true);
	assert_true(by_registers(0, base_of(0, MIDDLE), 0));
	check_top(MIDDLE, 0, true);
}

static void the_base_that_was_kept_is_about_to_be_restored(void **state)
{
	(void)state;
	capture_calls(OUTER, false);
	assert_true(by_registers(0, pc_in(1, RUNS), base_of(0, MIDDLE)));
	check_top(MIDDLE, bytecode_at(1, RUNS), false);
	assert_true(by_registers(0, 4, base_of(0, MIDDLE)));
	check_top(MIDDLE, 0, false);
	/* Nothing else is left than what was stored, with PC if that fits. */
	assert_true(by_registers(0, pc_in(0, RUNS), 0));
	check_top(OUTER, bytecode_at(0, RUNS), false);
	assert_true(by_registers(0, 4, base_of(0, BOTTOM)));
	check_top(OUTER, 0, false);
}

static void a_leaf_of_the_vm_has_them(void **state)
{
	(void)state;
	capture_calls(OUTER, false);
	states.registers.pc = VM_AT + 8;
	states.registers.rdx = base_of(0, INNER);
	states.registers.rbx = pc_in(2, RUNS);
	assert_true(lua_top_in_vm(&running, states.image, &states.registers, &top));
	check_top(INNER, bytecode_at(2, RUNS), false);
}

/* The end of ins_call: BASE and PC are the new function's, and the link is not there yet. */
static void before_the_link_is_stored_its_value_leads_to_the_caller(void **state)
{
	static const uint8_t store[] = { 0x48, 0x89, 0x5a, 0xf8 }; /* mov [BASE-8], PC */

	(void)state;
	memcpy(states.bytes + (CALL_AT - STATES_AT), store, sizeof(store));
	capture_calls(OUTER, true);
	put_slot(0, INNER - 1, 0);
	states.registers.pc = CALL_AT;
	states.registers.rdx = base_of(0, INNER);
	states.registers.rbx = pc_in(1, IN_MIDDLE);
	assert_true(lua_top_in_vm(&running, states.image, &states.registers, &top));
	check_top(MIDDLE, bytecode_at(1, IN_MIDDLE), false);
	states.registers.rbx = pc_in(2, IN_MIDDLE);
	assert_false(lua_top_in_vm(&running, states.image, &states.registers, &top));
}

static void before_the_fetch_pc_is_that_of_the_next_instruction(void **state)
{
	static const uint8_t fetch[] = { 0x8b, 0x03, 0x0f, 0xb6, 0xcc, 0x0f,
					 0xb6, 0xe8, 0x48, 0x83, 0xc3, 0x04 };

	(void)state;
	memcpy(states.bytes + (CALL_AT - STATES_AT), fetch, sizeof(fetch));
	capture_calls(OUTER, false);
	states.registers.pc = CALL_AT;
	states.registers.rdx = base_of(0, INNER);
	states.registers.rbx = bytecode_at(2, RUNS);
	assert_true(lua_top_in_vm(&running, states.image, &states.registers, &top));
	check_top(INNER, bytecode_at(2, RUNS), false);
}

/*---- Native code that the VM called ----*/

/* The VM's registers below that code, which returns to CALL_AT. */
static bool below_native(uint64_t kept_base, uint64_t pc, unsigned int unknown)
{
	const struct registers frame = { .pc = CALL_AT, .rbp = kept_base, .rbx = pc, .unknown = unknown };

	top = (struct lua_walk){ 0 };
	return lua_top_below_native(&running, states.image, &frame, &top);
}

static void below_native_code_the_kept_base_counts(void **state)
{
	(void)state;
	capture_calls(OUTER, false);
	assert_true(below_native(base_of(0, INNER), pc_in(2, RUNS), 0));
	check_top(INNER, bytecode_at(2, RUNS), false);
	/* The position does not fit: L->base is stored. */
	assert_true(below_native(base_of(0, INNER), pc_in(0, RUNS), 0));
	check_top(OUTER, bytecode_at(0, RUNS), false);
	assert_true(below_native(thread_at(0), pc_in(0, RUNS), 0));
	check_top(OUTER, bytecode_at(0, RUNS), false);
	assert_true(below_native(base_of(0, SLOTS + 1), pc_in(0, RUNS), 0));
	check_top(OUTER, bytecode_at(0, RUNS), false);
	/* At the bottom no function runs. */
	assert_true(below_native(base_of(0, BOTTOM), pc_in(0, RUNS), 0));
	check_top(OUTER, bytecode_at(0, RUNS), false);
	capture_calls(OUTER, true);
	assert_true(below_native(base_of(0, INNER), 0, 0));
	check_top(INNER, 0, false);
}

static void a_kept_base_without_a_function_leads_to_the_caller(void **state)
{
	(void)state;
	capture_calls(OUTER, false);
	put_slot(0, INNER - 2, UINT64_MAX);
	states_capture();
	assert_true(below_native(base_of(0, INNER), 0, 0));
	check_top(MIDDLE, bytecode_at(1, IN_MIDDLE), false);
	put_slot(0, INNER - 1, 6 * SLOT_SIZE | FRAME_VARG);
	states_capture();
	assert_true(below_native(base_of(0, INNER), 0, 0));
	check_top(OUTER, 0, false);
}

static void native_code_that_the_vm_did_not_call_says_nothing(void **state)
{
	const struct registers first = { .pc = VM_AT, .rbp = base_of(0, INNER), .rbx = pc_in(2, RUNS) };
	const struct registers last = { .pc = VM_END, .rbp = base_of(0, INNER), .rbx = pc_in(2, RUNS) };

	(void)state;
	capture_calls(OUTER, false);
	assert_false(lua_top_below_native(&running, states.image, &first, &top));
	assert_true(lua_top_below_native(&running, states.image, &last, &top));
	check_top(INNER, bytecode_at(2, RUNS), false);
}

/* mov [L+L_base], BASE: with it the call has stored what the registers have lost. */
static void without_registers_a_call_must_have_stored_the_base(void **state)
{
	const uint64_t store = CALL_AT - 16;

	(void)state;
	capture_calls(OUTER, false);
	assert_false(below_native(base_of(0, INNER), pc_in(2, RUNS), REGISTER_RBP));
	put(store, 0x48 | 0x89 << 8 | 0x55 << 16 | (uint64_t)states.vm.layout.L_base << 24, 4);
	states_set_module(); /* its text is read again */
	assert_true(below_native(base_of(0, INNER), pc_in(2, RUNS), REGISTER_RBP));
	check_top(OUTER, 0, false);
	assert_true(below_native(base_of(0, INNER), pc_in(0, RUNS), REGISTER_RBX));
	check_top(OUTER, 0, false);
}

/*---- Traces, and frames that are resumed ----*/

static bool leaving(uint64_t base, uint64_t pc)
{
	const struct registers registers = { .rdx = base, .rbx = pc };

	top = (struct lua_walk){ 0 };
	return lua_top_leaving_trace(&running, &registers, &top);
}

static void on_the_way_out_of_a_trace_pc_is_at_the_instruction(void **state)
{
	(void)state;
	capture_calls(OUTER, true);
	assert_true(leaving(base_of(0, MIDDLE), bytecode_at(1, RUNS)));
	check_top(MIDDLE, bytecode_at(1, RUNS), false);
	assert_true(leaving(base_of(0, MIDDLE), bytecode_at(1, 0)));
	assert_false(leaving(base_of(0, MIDDLE), bytecode_at(1, INSTRUCTIONS)));
	assert_false(leaving(base_of(0, MIDDLE), bytecode_at(0, RUNS)));
	assert_false(leaving(base_of(0, INNER), bytecode_at(1, RUNS)));
	assert_false(leaving(base_of(0, BOTTOM), bytecode_at(1, RUNS)));
	assert_false(leaving(base_of(0, SLOTS + 1), bytecode_at(1, RUNS)));
}

static void what_was_interrupted_goes_on_at_the_saved_position(void **state)
{
	(void)state;
	capture_calls(OUTER, true);
	top = (struct lua_walk){ .thread = running.thread,
				 .objects = running.objects,
				 .base = base_of(0, MIDDLE) };
	lua_top_resume(&top, running.stack, FRAME);
	check_top(MIDDLE, bytecode_at(1, SAVED), false);
	top.pc = bytecode_at(1, RUNS); /* it is known already */
	lua_top_resume(&top, running.stack, FRAME);
	check_top(MIDDLE, bytecode_at(1, RUNS), false);
	top.pc = 0;
	top.base = base_of(0, OUTER); /* the position is none of this function's */
	lua_top_resume(&top, running.stack, FRAME);
	check_top(OUTER, 0, false);
	top.base = base_of(0, INNER);
	lua_top_resume(&top, running.stack, FRAME);
	check_top(INNER, 0, false);
	top.base = base_of(0, MIDDLE);
	lua_top_resume(&top, running.stack, C_STACK_END);
	check_top(MIDDLE, 0, false);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, states_begin, states_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_stored_base_has_the_saved_position),
		TEST(a_callback_begins_at_its_first_instruction),
		TEST(where_no_function_is_the_link_leads_to_the_caller),
		TEST(base_and_pc_are_those_of_the_function_that_runs),
		TEST(on_a_return_to_c_pc_is_a_link_or_the_base_before),
		TEST(the_base_that_was_kept_is_about_to_be_restored),
		TEST(a_leaf_of_the_vm_has_them),
		TEST(before_the_link_is_stored_its_value_leads_to_the_caller),
		TEST(before_the_fetch_pc_is_that_of_the_next_instruction),
		TEST(below_native_code_the_kept_base_counts),
		TEST(a_kept_base_without_a_function_leads_to_the_caller),
		TEST(native_code_that_the_vm_did_not_call_says_nothing),
		TEST(without_registers_a_call_must_have_stored_the_base),
		TEST(on_the_way_out_of_a_trace_pc_is_at_the_instruction),
		TEST(what_was_interrupted_goes_on_at_the_saved_position),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

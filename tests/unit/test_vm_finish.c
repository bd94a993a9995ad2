/* SPDX-License-Identifier: MIT */
/* Where what the interpreter has half done leads, for code that is written as a list of what its steps do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "luajit-layouts/vmstate.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/made_up_calls.h"
#include "tests/unit/same_registers.h"
#include "unwind/stack/vm_finish.h"
#include "unwind/vm/vm_machine.h"

enum {
	FRAME = C_STACK_AT + 0x200,
	IN_VM = VM_AT + 8,
	IN_TRACE = FREE_AT + 0x10,
	RUNS = 8,
	STEPS_MAX = 8,
};

/* What a step of the code changes; what is 0 stays. */
struct step {
	enum vm_progress progress;
	uint64_t pc, base, bytecode, sp;
	struct vm_store store;
	bool unknown_base, unknown_bytecode, guesses, leaves_trace;
};

static struct step code[STEPS_MAX];
static struct vm_machine began; /* as it was before the first step */

INSTEAD_OF(vm_machine_step);
enum vm_progress __wrap_vm_machine_step(struct vm_machine *machine)
{
	const struct step *step = &code[machine->steps];

	assert_in_range(machine->steps, 0, STEPS_MAX - 1);
	if (machine->steps == 0)
		began = *machine;
	machine->steps++;
	if (step->pc)
		machine->pc = step->pc;
	if (step->base)
		machine->registers[VM_BASE].bits = step->base;
	if (step->sp)
		machine->registers[VM_SP].bits = step->sp;
	if (step->bytecode) {
		machine->registers[VM_PC].bits = step->bytecode;
		machine->pc_set_at = machine->steps;
	}
	if (step->unknown_base)
		machine->registers[VM_BASE].known = false;
	if (step->unknown_bytecode)
		machine->registers[VM_PC].known = false;
	if (step->guesses)
		machine->guessed = true;
	if (step->leaves_trace) {
		machine->interpreted_at = machine->steps;
		machine->interpreted_base = machine->registers[VM_BASE];
	}
	if (step->store.size) {
		machine->stores[machine->store_count] = step->store;
		machine->stores[machine->store_count++].step = machine->steps;
	}
	return step->progress;
}

INSTEAD_OF(vm_machine_run);
enum vm_progress __wrap_vm_machine_run(struct vm_machine *machine)
{
	enum vm_progress progress;

	do
		progress = __wrap_vm_machine_step(machine);
	while (progress == VM_PROGRESS_ON);
	return progress;
}

static const struct trace trace = { .number = 1 };

INSTEAD_OF(traces_find);
const struct trace *__wrap_traces_find(const struct traces *traces, uint64_t pc)
{
	(void)traces;
	return pc == IN_TRACE ? &trace : NULL;
}

/*---- The thread ----*/

static struct registers registers;

/*
 * The interpreter works for function 1, that function 0 has called, and that function 2, a C function, was
 * called by.
 */
static int begin(void **state)
{
	const int status = states_begin(state);

	memset(code, 0, sizeof(code));
	memset(&began, 0, sizeof(began));
	put_g(0, put_thread(0, 0, FRAME));
	put_cframe(FRAME, thread_at(0), 0, NATIVE_CODE);
	put_three_frames(0, put_c_function(2));
	put_base(0, OUTER, INNER + 4);
	states.registers.pc = IN_VM;
	states.registers.sp = FRAME;
	states.registers.rdx = base_of(0, MIDDLE);
	states.registers.rbx = pc_in(1, RUNS);
	states.registers.r14 = g_at(0) + DISPATCH_AT;
	lua_image_global(states.lua, 0)->traces = traces_new();
	return status;
}

static enum vm_finished finish(void)
{
	states_capture();
	assert_int_equal(states.capture.thread_count, 1);
	registers = states.registers;
	return vm_finish(&states.capture, &states.vm, &states.memory, states.process.objects, NULL,
			 &registers);
}

static void check_unchanged(void)
{
	assert_same_registers(&registers, &states.registers);
	assert_int_equal(states.capture.threads[0].base, base_of(0, OUTER));
}

/* A store of L->base, the captured thread's. */
static struct vm_store store_base(size_t slot)
{
	return (struct vm_store){ .address = thread_at(0) + (uint64_t)states.vm.layout.L_base,
				  .size = 8,
				  .value = { base_of(0, slot), true } };
}

/* A store into a slot of the Lua stack. */
static struct vm_store store_slot(size_t slot, uint64_t value)
{
	return (struct vm_store){ .address = base_of(0, slot), .size = 8, .value = { value, true } };
}

/*---- Ends of the run ----*/

static void between_two_instructions_nothing_is_half_done(void **state)
{
	(void)state;
	code[0].pc = IN_VM + 4;
	code[1].progress = VM_PROGRESS_DISPATCH;
	assert_int_equal(finish(), VM_FINISHD_STAYS);
	check_unchanged();
	/* The frame's link and function are stored, which a Lua function does not do for itself. */
	code[0].store = store_slot(MIDDLE - 2, tagged(TAG_FUNC, function_at(1)));
	assert_int_equal(finish(), VM_FINISHD_DISPATCHES);
	code[0].store = store_slot(MIDDLE - 1, pc_in(0, IN_OUTER));
	assert_int_equal(finish(), VM_FINISHD_DISPATCHES);
	code[0].store = store_slot(MIDDLE, 1); /* its own slots, and those of the frame below */
	assert_int_equal(finish(), VM_FINISHD_STAYS);
	code[0].store = store_slot(MIDDLE - 3, 1);
	assert_int_equal(finish(), VM_FINISHD_STAYS);
}

static void a_call_is_finished_as_soon_as_its_frame_is_whole(void **state)
{
	(void)state;
	code[0].base = base_of(0, OUTER);
	code[1].store = store_base(MIDDLE);
	code[2].bytecode = pc_in(0, IN_OUTER);
	code[3].pc = IN_VM + 0x20;
	code[3].store = store_base(INNER);
	code[4].progress = VM_PROGRESS_DISPATCH;
	assert_int_equal(finish(), VM_FINISHD_DISPATCHES);
	assert_int_equal(registers.rdx, base_of(0, OUTER));
	assert_int_equal(registers.rbx, pc_in(0, IN_OUTER));
	assert_int_equal(registers.pc, IN_VM); /* as it was after the third step */
	assert_int_equal(states.capture.threads[0].base, base_of(0, MIDDLE));
}

static void without_a_known_frame_at_its_end_all_stays(void **state)
{
	(void)state;
	code[0].base = base_of(0, OUTER);
	code[1].bytecode = pc_in(0, IN_OUTER);
	code[1].unknown_base = true;
	code[2].progress = VM_PROGRESS_DISPATCH;
	assert_int_equal(finish(), VM_FINISHD_STAYS);
	check_unchanged();
	code[1].unknown_base = false;
	code[1].unknown_bytecode = true;
	assert_int_equal(finish(), VM_FINISHD_STAYS);
	check_unchanged();
	code[1].unknown_bytecode = false;
	assert_int_equal(finish(), VM_FINISHD_DISPATCHES);
}

static void a_way_out_of_the_vm_is_run_to_its_end(void **state)
{
	(void)state;
	code[0].store = store_base(INNER);
	code[1].pc = NATIVE_CODE + 5;
	code[1].sp = FRAME + 0x50;
	code[1].progress = VM_PROGRESS_RETURNED;
	assert_int_equal(finish(), VM_FINISHD_RETURNED);
	assert_int_equal(registers.pc, NATIVE_CODE + 5);
	assert_int_equal(registers.sp, FRAME + 0x50);
	assert_int_equal(states.capture.threads[0].base, base_of(0, INNER));
	code[1].progress = VM_PROGRESS_CALL_OUT;
	assert_int_equal(finish(), VM_FINISHD_CALLS);
	assert_int_equal(registers.pc, NATIVE_CODE + 5);
	code[1].progress = VM_PROGRESS_LINKED;
	assert_int_equal(finish(), VM_FINISHD_DISPATCHES);
	assert_int_equal(registers.pc, NATIVE_CODE + 5);
	assert_int_equal(states.capture.threads[0].base, base_of(0, INNER));
}

static void code_that_cannot_be_followed_is_unknown_only_on_a_return(void **state)
{
	(void)state;
	code[0].store = store_base(INNER);
	code[1].progress = VM_PROGRESS_STUCK;
	assert_int_equal(finish(), VM_FINISHD_STAYS);
	check_unchanged();
	/* PC holds a frame's type and size. */
	states.registers.rbx = (OUTER - BOTTOM) * SLOT_SIZE | FRAME_CP;
	assert_int_equal(finish(), VM_FINISHD_UNKNOWN);
	check_unchanged();
	code[1].progress = VM_PROGRESS_DISPATCH; /* by a branch that depends on what is unknown */
	code[1].guesses = true;
	assert_int_equal(finish(), VM_FINISHD_UNKNOWN);
	/* A builtin's PC says nothing. */
	states.registers.rdx = base_of(0, INNER);
	assert_int_equal(finish(), VM_FINISHD_STAYS);
	put_slot(0, INNER - 1, pc_in(1, INSTRUCTIONS + 4)); /* its link leads nowhere */
	assert_int_equal(finish(), VM_FINISHD_UNKNOWN);
	put_slot(0, INNER - 1, (INNER - MIDDLE) * SLOT_SIZE | FRAME_C);
	assert_int_equal(finish(), VM_FINISHD_STAYS);
	put_slot(0, INNER - 1, tagged(TAG_TAB, FREE_AT) | FRAME_C);
	assert_int_equal(finish(), VM_FINISHD_UNKNOWN);
	/* Outside of the VM nothing returns by it. */
	states.registers.pc = IN_TRACE + 0x100;
	assert_int_equal(finish(), VM_FINISHD_STAYS);
}

static void a_return_has_ended_where_a_trace_goes_on(void **state)
{
	(void)state;
	states.registers.rbx = (OUTER - BOTTOM) * SLOT_SIZE | FRAME_CP;
	code[0].store = store_base(INNER);
	code[1].bytecode = pc_in(1, IN_MIDDLE);
	code[1].pc = IN_VM + 0x20;
	code[2].progress = VM_PROGRESS_JUMP_OUT;
	assert_int_equal(finish(), VM_FINISHD_DISPATCHES);
	assert_int_equal(registers.pc, IN_VM + 0x20);
	assert_int_equal(registers.rbx, pc_in(1, IN_MIDDLE));
	assert_int_equal(states.capture.threads[0].base, base_of(0, INNER));
	/* Not by a guess, and not where PC is another function's, or BASE a builtin's. */
	code[1].guesses = true;
	assert_int_equal(finish(), VM_FINISHD_UNKNOWN);
	code[1].guesses = false;
	code[1].bytecode = pc_in(0, IN_OUTER);
	assert_int_equal(finish(), VM_FINISHD_UNKNOWN);
	check_unchanged();
	code[1].bytecode = pc_in(1, IN_MIDDLE);
	code[1].base = base_of(0, INNER);
	assert_int_equal(finish(), VM_FINISHD_UNKNOWN);
	code[1].base = 0;
	code[2].progress = VM_PROGRESS_STUCK;
	assert_int_equal(finish(), VM_FINISHD_UNKNOWN);
	check_unchanged();
	/* What is no return stays as it is. */
	states.registers.rbx = pc_in(1, RUNS);
	code[2].progress = VM_PROGRESS_JUMP_OUT;
	assert_int_equal(finish(), VM_FINISHD_STAYS);
}

static void a_coroutine_is_left_though_its_resumer_cannot_be_followed(void **state)
{
	(void)state;
	states.registers.sp = FRAME - 0x58; /* the coroutine's C frame */
	code[0].store = store_base(INNER);
	code[1].sp = FRAME - 8;
	code[2].pc = IN_VM + 0x40;
	code[2].sp = FRAME;
	code[3].store = store_base(OUTER);
	code[4].progress = VM_PROGRESS_STUCK;
	assert_int_equal(finish(), VM_FINISHD_RETURNED);
	assert_int_equal(registers.pc, IN_VM + 0x40);
	assert_int_equal(registers.sp, FRAME);
	assert_int_equal(states.capture.threads[0].base, base_of(0, INNER));
	code[4].progress = VM_PROGRESS_DISPATCH;
	code[4].guesses = true;
	assert_int_equal(finish(), VM_FINISHD_RETURNED);
	assert_int_equal(registers.sp, FRAME);
	/* What comes before must not be guessed, and all of it is the VM's. */
	code[1].guesses = true;
	assert_int_equal(finish(), VM_FINISHD_STAYS);
	check_unchanged();
	code[1].guesses = false;
	code[2].pc = NATIVE_CODE;
	assert_int_equal(finish(), VM_FINISHD_STAYS);
	code[2].pc = IN_VM + 0x40;
	code[2].sp = FRAME + 8; /* no thread's C frame */
	assert_int_equal(finish(), VM_FINISHD_STAYS);
	code[2].sp = FRAME;
	states.registers.sp = FRAME;
	assert_int_equal(finish(), VM_FINISHD_STAYS);
	check_unchanged();
}

static void a_coroutine_that_was_not_copied_is_not_resumed(void **state)
{
	enum { ITS_FRAME = FRAME - 0x60 };
	const struct vm_store save_L = {
		.address = ITS_FRAME + (uint64_t)states.vm.layout.CFRAME_L,
		.size = 8,
		.value = { thread_at(1), true },
	};

	(void)state;
	states.registers.rdx = base_of(0, MIDDLE + 1); /* above the thread that is resumed */
	code[0].sp = ITS_FRAME;
	code[0].store = save_L;
	code[1].base = base_of(0, INNER);
	code[2].progress = VM_PROGRESS_DISPATCH;
	assert_int_equal(finish(), VM_FINISHD_STAYS);
	check_unchanged();
	/* Nor where its frame is whole before. */
	code[2].progress = VM_PROGRESS_ON;
	code[3].progress = VM_PROGRESS_DISPATCH;
	assert_int_equal(finish(), VM_FINISHD_STAYS);
	check_unchanged();
	code[0].store.value.bits = thread_at(0);
	assert_int_equal(finish(), VM_FINISHD_DISPATCHES);
	assert_int_equal(registers.sp, ITS_FRAME);
}

/*---- Builtins ----*/

static void a_builtin_is_whole_until_its_result_lies_over_it(void **state)
{
	(void)state;
	states.registers.rdx = base_of(0, INNER);
	code[0].pc = IN_VM + 4;
	code[1].store = store_slot(INNER - 2, 0);
	code[2].base = base_of(0, MIDDLE);
	code[3].progress = VM_PROGRESS_DISPATCH;
	assert_int_equal(finish(), VM_FINISHD_STAYS);
	check_unchanged();
	/* The result is there: on to the caller, whose frame is whole then. */
	put_slot(0, INNER - 2, 0);
	code[1].store.size = 0;
	code[2].bytecode = pc_in(1, IN_MIDDLE);
	assert_int_equal(finish(), VM_FINISHD_DISPATCHES);
	assert_int_equal(registers.rdx, base_of(0, MIDDLE));
	assert_int_equal(registers.rbx, pc_in(1, IN_MIDDLE));
}

static void a_builtin_that_calls_on_is_whole(void **state)
{
	(void)state;
	states.registers.rdx = base_of(0, INNER);
	code[0].pc = IN_VM + 4;
	code[1].base = base_of(0, INNER + 8); /* higher on the Lua stack */
	code[1].bytecode = pc_in(1, 0);
	code[2].progress = VM_PROGRESS_DISPATCH;
	assert_int_equal(finish(), VM_FINISHD_STAYS);
	code[1].base = base_of(0, MIDDLE);
	code[2].sp = FRAME - 0x50; /* on another thread's */
	assert_int_equal(finish(), VM_FINISHD_STAYS);
	code[2].sp = 0;
	code[1].bytecode = pc_in(1, IN_MIDDLE);
	assert_int_equal(finish(), VM_FINISHD_DISPATCHES);
	assert_int_equal(registers.rdx, base_of(0, MIDDLE));
}

/*---- Traces ----*/

static void a_trace_is_finished_only_where_it_leads_to(void **state)
{
	(void)state;
	states.registers.pc = IN_TRACE;
	code[0].base = base_of(0, OUTER);
	code[1].pc = IN_VM;
	code[1].bytecode = pc_in(0, IN_OUTER);
	code[2].store = store_base(INNER);
	code[3].progress = VM_PROGRESS_DISPATCH;
	assert_int_equal(finish(), VM_FINISHD_DISPATCHES);
	assert_ptr_equal(began.trace, &trace);
	assert_int_equal(registers.pc, IN_VM);
	assert_int_equal(registers.rbx, pc_in(0, IN_OUTER));
	assert_int_equal(states.capture.threads[0].base, base_of(0, INNER));
	/* It has stored what nobody knows. */
	code[2].store.value.known = false;
	assert_int_equal(finish(), VM_FINISHD_STAYS);
	check_unchanged();
	code[2].store.value.known = true;
	code[2].unknown_base = true;
	assert_int_equal(finish(), VM_FINISHD_STAYS);
	code[2].unknown_base = false;
	code[2].unknown_bytecode = true;
	assert_int_equal(finish(), VM_FINISHD_STAYS);
}

static void a_routine_that_a_trace_has_called_returns_there_whatever_it_finds(void **state)
{
	(void)state;
	states.registers.sp = FRAME - 0x20;
	put_word(FRAME - 0x20, IN_TRACE + 1);
	code[0].guesses = true;
	code[0].store = store_base(INNER);
	code[1].progress = VM_PROGRESS_RETURNED;
	code[1].pc = IN_TRACE + 1;
	assert_int_equal(finish(), VM_FINISHD_RETURNED);
	assert_int_equal(registers.pc, IN_TRACE + 1);
	assert_int_equal(registers.sp, FRAME - 0x18);
	/* What it may have stored is not known. */
	assert_int_equal(states.capture.threads[0].base, base_of(0, OUTER));
	/* Something else than the caller's, or no trace. */
	put_word(FRAME - 0x20, IN_TRACE + 2);
	assert_int_equal(finish(), VM_FINISHD_STAYS);
	check_unchanged();
	put_word(FRAME - 0x20, NATIVE_CODE + 5);
	code[1].pc = NATIVE_CODE + 5;
	assert_int_equal(finish(), VM_FINISHD_STAYS);
	check_unchanged();
}

/* vm_exit_interp: the interpreter goes on at the next instruction, with the same BASE. */
static void the_way_from_a_trace_to_the_interpreter_is_run_to_its_end(void **state)
{
	(void)state;
	code[0].base = base_of(0, OUTER);
	code[0].bytecode = pc_in(0, IN_OUTER);
	code[1].leaves_trace = true;
	code[2].pc = IN_VM + 0x40;
	code[3].pc = IN_VM + 0x60;
	code[3].progress = VM_PROGRESS_DISPATCH;
	assert_int_equal(finish(), VM_FINISHD_DISPATCHES);
	assert_int_equal(registers.pc, IN_VM + 0x60);
	code[2].base = base_of(0, MIDDLE); /* a call or return has followed */
	code[2].bytecode = pc_in(1, IN_MIDDLE);
	assert_int_equal(finish(), VM_FINISHD_DISPATCHES);
	assert_int_equal(registers.pc, IN_VM + 0x40);
	assert_int_equal(registers.rdx, base_of(0, MIDDLE));
}

/*---- Whose code it is ----*/

static void the_state_is_that_of_the_vms_register(void **state)
{
	(void)state;
	code[0].progress = VM_PROGRESS_STUCK;
	states.registers.r14 = 0; /* there is only one */
	finish();
	assert_int_equal(began.vmstate, g_at(0) + (uint64_t)states.vm.layout.g_vmstate);
	assert_ptr_equal(began.traces, lua_image_global(states.lua, 0)->traces);
	assert_null(began.trace);
	lua_image_add(states.lua, g_at(1), &states.vm);
	put_g(1, 0);
	finish();
	assert_int_equal(began.vmstate, 0);
	assert_null(began.traces);
	states.registers.r14 = g_at(1) + DISPATCH_AT;
	finish();
	assert_int_equal(began.vmstate, g_at(1) + (uint64_t)states.vm.layout.g_vmstate);
	/* A trace uses the register for itself; the first state has that. */
	states.registers.r14 = 0;
	states.registers.pc = IN_TRACE;
	finish();
	assert_int_equal(began.vmstate, g_at(0) + (uint64_t)states.vm.layout.g_vmstate);
	assert_ptr_equal(began.trace, &trace);
	assert_ptr_equal(began.vm, &states.vm);
	assert_ptr_equal(began.text, &states.memory);
	assert_int_equal(began.pc, IN_TRACE);
}

static void another_vms_state_is_not_its_own(void **state)
{
	const struct vm_code other = states.vm;

	(void)state;
	code[0].progress = VM_PROGRESS_STUCK;
	states_capture();
	registers = states.registers;
	assert_int_equal(
		vm_finish(&states.capture, &other, &states.memory, states.process.objects, NULL, &registers),
		VM_FINISHD_STAYS);
	assert_int_equal(began.vmstate, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, states_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(between_two_instructions_nothing_is_half_done),
		TEST(a_call_is_finished_as_soon_as_its_frame_is_whole),
		TEST(without_a_known_frame_at_its_end_all_stays),
		TEST(a_way_out_of_the_vm_is_run_to_its_end),
		TEST(code_that_cannot_be_followed_is_unknown_only_on_a_return),
		TEST(a_return_has_ended_where_a_trace_goes_on),
		TEST(a_coroutine_is_left_though_its_resumer_cannot_be_followed),
		TEST(a_coroutine_that_was_not_copied_is_not_resumed),
		TEST(a_builtin_is_whole_until_its_result_lies_over_it),
		TEST(a_builtin_that_calls_on_is_whole),
		TEST(a_trace_is_finished_only_where_it_leads_to),
		TEST(a_routine_that_a_trace_has_called_returns_there_whatever_it_finds),
		TEST(the_way_from_a_trace_to_the_interpreter_is_run_to_its_end),
		TEST(the_state_is_that_of_the_vms_register),
		TEST(another_vms_state_is_not_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* Clues in registers and on stacks to states that ljspy does not know. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/made_up_states.h"
#include "unwind/capture/unknown_states.h"

enum {
	FRAME = C_STACK_AT + 0x200,
	NEXT = 0x100, /* from one C frame to another one */
	FRAME_SIZE = 80,
	IN_VM = VM_AT + 8,
	UNKNOWN = 1, /* the first state that the image does not know; it knows only state 0 */
	READS = 16,  /* of live memory for one VM, at most */
};

static struct state_clue clues[STATE_CLUES_MAX];
static bool complete; /* the last search on the stack */

static size_t in_registers(void)
{
	return unknown_states_in_registers(&states.capture, states.image, clues);
}

static size_t on_stack(void)
{
	return unknown_states_on_stack(&states.capture, states.image, &states.memory, clues, &complete);
}

static bool is_above(uint64_t sp)
{
	return unknown_state_above(&states.capture, states.image, sp);
}

/* The thread is held in code at pc, with a state in the register that the VM has for it. */
static void capture_at(uint64_t pc, uint64_t g)
{
	states.registers.pc = pc;
	states.registers.r14 = g + DISPATCH_AT;
	states_capture();
}

/* Thread i of a state has a C frame on the stack, its innermost one. */
static uint64_t put_running(size_t i, size_t g)
{
	const uint64_t cframe = FRAME + i * NEXT;

	put_cframe(cframe, put_thread(i, g, cframe), 0, NATIVE_CODE);
	return cframe;
}

/* The process has another module, too. */
static void add_module(const struct vm_code *vm)
{
	struct module *modules = calloc(2, sizeof(*modules));

	assert_non_null(modules);
	modules[0] = (struct module){
		.begin = MODULE_AT, .end = MODULE_END, .base = MODULE_AT, .vm = &states.vm
	};
	modules[1] = (struct module){
		.begin = MODULE_END, .end = MODULE_END + 0x1000, .base = MODULE_END, .vm = vm
	};
	image_set_modules(states.image, modules, 2);
}

static struct vm_code other;

static void add_other_vm(void)
{
	other = states.vm;
	other.begin = other.end = 0;
	add_module(&other);
}

/*---- In registers ----*/

static void the_vms_register_leads_to_a_state(void **state)
{
	(void)state;
	capture_at(IN_VM, g_at(UNKNOWN));
	assert_int_equal(in_registers(), 1);
	assert_int_equal(clues[0].g, g_at(UNKNOWN));
	assert_ptr_equal(clues[0].vm, &states.vm);
	/* It is known. */
	capture_at(IN_VM, g_at(0));
	assert_int_equal(in_registers(), 0);
	lua_image_add(states.lua, g_at(UNKNOWN), &states.vm);
	unmap(g_at(UNKNOWN)); /* and not even captured */
	capture_at(IN_VM, g_at(UNKNOWN));
	assert_int_equal(states.capture.global_count, 1);
	assert_int_equal(in_registers(), 0);
	/* No object can be there. */
	capture_at(IN_VM, g_at(2) + 4);
	assert_int_equal(in_registers(), 0);
	capture_at(IN_VM, g_at(2));
	states.capture.registers.unknown = REGISTER_R14;
	assert_int_equal(in_registers(), 0);
}

static void elsewhere_the_register_says_nothing(void **state)
{
	(void)state;
	capture_at(NATIVE_CODE, g_at(UNKNOWN));
	assert_int_equal(in_registers(), 0);
	states.vm.ffi_call = NATIVE_CODE;
	states.vm.ffi_call_end = NATIVE_CODE + 16;
	assert_int_equal(in_registers(), 0);
}

static void code_in_no_module_may_be_any_vms_trace(void **state)
{
	(void)state;
	capture_at(FREE_AT, g_at(UNKNOWN));
	assert_int_equal(in_registers(), 1);
	add_other_vm();
	assert_int_equal(in_registers(), 2);
	assert_int_equal(clues[1].g, g_at(UNKNOWN));
	assert_ptr_equal(clues[0].vm, &states.vm);
	assert_ptr_equal(clues[1].vm, &other);
	/* There a trace uses the register for its own values. */
	states.vm.layout.gc64 = false;
	assert_int_equal(in_registers(), 1);
	assert_ptr_equal(clues[0].vm, &other);
}

static void a_trace_of_a_known_state_is_not_made_by_another(void **state)
{
	(void)state;
	capture_at(FREE_AT, g_at(0));
	assert_int_equal(in_registers(), 0);
	assert_true(unknown_states_may_compile(&states.capture, states.image));
	capture_at(NATIVE_CODE, g_at(UNKNOWN));
	assert_false(unknown_states_may_compile(&states.capture, states.image));
	capture_at(IN_VM, g_at(UNKNOWN));
	assert_false(unknown_states_may_compile(&states.capture, states.image));
}

/*---- On the stack ----*/

static void frames_lead_to_states(void **state)
{
	(void)state;
	put_running(0, UNKNOWN);
	put_running(1, UNKNOWN + 1);
	put_running(2, UNKNOWN);
	put_cframe(FRAME + 3 * NEXT, C_STACK_END, 0, NATIVE_CODE); /* nothing is there */
	states_capture();
	assert_int_equal(on_stack(), 2);
	assert_int_equal(clues[0].g, g_at(UNKNOWN));
	assert_int_equal(clues[1].g, g_at(UNKNOWN + 1));
	assert_ptr_equal(clues[1].vm, &states.vm);
	/* The innermost is at the stack pointer. */
	states.registers.sp = FRAME;
	states_capture();
	assert_int_equal(on_stack(), 2);
	states.registers.sp = FRAME + NEXT;
	states_capture();
	assert_int_equal(on_stack(), 2);
	states.registers.sp = FRAME + NEXT + 1;
	states_capture();
	assert_int_equal(on_stack(), 1);
	assert_int_equal(clues[0].g, g_at(UNKNOWN));
}

static void only_frames_within_those_of_known_states_are_of_interest(void **state)
{
	(void)state;
	put_running(0, UNKNOWN);
	put_g(0, put_thread(1, 0, FRAME + NEXT));
	put_running(1, 0);
	put_running(2, UNKNOWN + 1);
	states_capture();
	assert_int_equal(states.capture.thread_count, 1);
	assert_int_equal(on_stack(), 1);
	assert_int_equal(clues[0].g, g_at(UNKNOWN));
	states.registers.sp = FRAME + NEXT; /* the known one is innermost */
	states_capture();
	assert_int_equal(on_stack(), 0);
	/* Its frame is passed. */
	states.registers.sp = FRAME + NEXT + FRAME_SIZE;
	put_g(0, thread_at(1));
	states_capture();
	assert_int_equal(on_stack(), 1);
	assert_int_equal(clues[0].g, g_at(UNKNOWN + 1));
}

static void threads_of_an_earlier_capture_are_forgotten(void **state)
{
	(void)state;
	put_g(0, put_thread(0, 0, FRAME));
	put_running(0, 0);
	states_capture();
	assert_int_equal(states.capture.thread_count, 1);
	put_g(0, 0);
	put_cframe(FRAME, 0, 0, 0);
	put_running(1, UNKNOWN);
	states_capture();
	assert_int_equal(states.capture.thread_count, 0);
	assert_int_equal(on_stack(), 1);
	assert_int_equal(clues[0].g, g_at(UNKNOWN));
}

static void so_many_clues_and_no_more(void **state)
{
	(void)state;
	for (size_t i = 0; i < STATE_CLUES_MAX; i++)
		put_running(i, UNKNOWN + i);
	put_running(STATE_CLUES_MAX, UNKNOWN); /* is there */
	put_running(STATE_CLUES_MAX + 1, 0);   /* is known */
	states_capture();
	assert_int_equal(on_stack(), STATE_CLUES_MAX);
	assert_true(complete);
	put_running(STATE_CLUES_MAX, UNKNOWN + STATE_CLUES_MAX);
	states_capture();
	assert_int_equal(on_stack(), STATE_CLUES_MAX);
	assert_false(complete);
	assert_int_equal(clues[STATE_CLUES_MAX - 1].g, g_at(STATE_CLUES_MAX));
}

static void so_many_threads_are_read_and_no_more(void **state)
{
	(void)state;
	/* Threads of the known state that ended long ago, two frames of each. */
	for (size_t i = 0; i < 2 * READS; i++)
		put_cframe(FRAME + i * NEXT, put_thread(i / 2, 0, 0), 0, NATIVE_CODE);
	put_cframe(FRAME + (2 * READS - 1) * NEXT, put_thread(READS, UNKNOWN, 0), 0, NATIVE_CODE);
	put_cframe(FRAME + (2 * READS - 2) * NEXT, thread_at(READS - 2), 0, NATIVE_CODE);
	states_capture();
	assert_int_equal(on_stack(), 1);
	assert_true(complete);
	put_cframe(FRAME + (2 * READS - 2) * NEXT, thread_at(READS - 1), 0, NATIVE_CODE);
	states_capture();
	assert_int_equal(on_stack(), 0);
	assert_false(complete);
}

static void refuse(struct memory *memory, struct memory_range *ranges, size_t count)
{
	(void)memory;
	for (size_t i = 0; i < count; i++)
		ranges[i].status = MEMORY_REFUSED;
}

static void a_thread_that_cannot_be_read_may_be_any(void **state)
{
	struct memory refusing = { .read_ranges = refuse };

	(void)state;
	put_running(0, UNKNOWN);
	states_capture();
	assert_int_equal(unknown_states_on_stack(&states.capture, states.image, &refusing, clues, &complete),
			 0);
	assert_false(complete);
	/* Where nothing is mapped, none is. */
	put_cframe(FRAME, C_STACK_END, 0, NATIVE_CODE);
	states_capture();
	assert_int_equal(on_stack(), 0);
	assert_true(complete);
}

static void a_stack_that_is_not_copied_has_none(void **state)
{
	(void)state;
	put_running(0, UNKNOWN);
	unmap(C_STACK_AT);
	states_capture();
	assert_int_equal(on_stack(), 0);
	assert_false(is_above(FRAME));
}

/*---- Frames that are linked now ----*/

static size_t linked(uint64_t begin, uint64_t end, size_t count)
{
	const struct memory_range stack = { .address = begin, .length = (size_t)(end - begin) };

	return unknown_states_linked(states.process.snapshot, states.lua, &states.memory, &stack, clues,
				     count);
}

static void frames_that_their_threads_have_left_are_no_clues(void **state)
{
	const uint64_t cframe = put_running(0, UNKNOWN);

	(void)state;
	put_running(1, UNKNOWN + 1);
	put_word(thread_at(0) + (uint64_t)states.vm.layout.L_cframe, cframe | 1); /* a flag */
	put_cframe(FRAME + 2 * NEXT, put_thread(2, UNKNOWN + 2, FRAME), 0, NATIVE_CODE);
	put_running(3, 0);
	states_capture();
	assert_int_equal(linked(FRAME, FRAME + 4 * NEXT, 0), 2);
	assert_int_equal(clues[0].g, g_at(UNKNOWN));
	assert_int_equal(clues[1].g, g_at(UNKNOWN + 1));
	assert_int_equal(linked(FRAME, FRAME + NEXT, 0), 1);
	assert_int_equal(linked(FRAME + 1, FRAME + 4 * NEXT, 0), 1);
	/* They are added to those there are. */
	clues[0].g = g_at(5);
	assert_int_equal(linked(FRAME, FRAME + 4 * NEXT, 1), 3);
	assert_int_equal(clues[0].g, g_at(5));
	assert_int_equal(clues[1].g, g_at(UNKNOWN));
	assert_int_equal(linked(FRAME, FRAME + 4 * NEXT, 3), 3); /* no new ones */
}

static void modules_without_a_vm_have_no_states(void **state)
{
	(void)state;
	put_running(0, UNKNOWN);
	add_module(NULL);
	capture_at(FREE_AT, g_at(UNKNOWN + 1));
	assert_int_equal(in_registers(), 1);
	assert_int_equal(on_stack(), 1);
	assert_int_equal(linked(FRAME, FRAME + NEXT, 0), 1);
	assert_true(is_above(FRAME));
	assert_false(is_above(FRAME + 1));
}

/*---- Is a frame one of an unknown state? ----*/

static void an_unknown_state_may_lie_above(void **state)
{
	(void)state;
	put_running(0, UNKNOWN);
	put_running(2, 0);
	put_g(0, thread_at(2));
	states_capture();
	assert_int_equal(states.capture.thread_count, 1);
	assert_true(is_above(FRAME - 8));
	assert_true(is_above(FRAME));
	assert_false(is_above(FRAME + 1)); /* the next one is the known state's */
	assert_false(is_above(FRAME + 2 * NEXT + 1));
	assert_false(is_above(C_STACK_AT - 8));
	/* All that are like it were looked at, and led to none; which holds for this capture. */
	states.capture.no_unknown_state = true;
	assert_false(is_above(FRAME));
	states_capture();
	assert_true(is_above(FRAME));
	/* A thread of the known one whose stack is being moved cannot be captured, but is none of these. */
	put_thread(0, 0, FRAME);
	put(thread_at(0) + (uint64_t)states.vm.layout.L_stack, 4, 8);
	states_capture();
	assert_null(capture_find_thread(&states.capture, thread_at(0)));
	assert_false(is_above(FRAME));
}

static bool is_at(uint64_t sp, bool is_leaf)
{
	struct registers registers = states.capture.registers;

	registers.sp = sp;
	return unknown_state_at(&states.capture, states.image, &states.vm, &registers, is_leaf);
}

static void a_frame_is_of_an_unknown_state_by_its_thread(void **state)
{
	(void)state;
	put_running(0, UNKNOWN);
	put_running(1, 0);
	put_g(0, thread_at(1));
	states_capture();
	assert_true(is_at(FRAME, false));
	assert_false(is_at(FRAME + NEXT, false));
	assert_false(is_at(FRAME + 0x20, false)); /* no frame is there */
}

static void a_leaf_is_of_an_unknown_state_by_its_register(void **state)
{
	(void)state;
	put_running(0, UNKNOWN);
	capture_at(IN_VM, g_at(0));
	assert_false(is_at(FRAME, true));
	capture_at(IN_VM, g_at(UNKNOWN));
	assert_true(is_at(FRAME + 0x20, true));
	/* Without the register its frame tells. */
	states.capture.registers.unknown = REGISTER_R14;
	assert_true(is_at(FRAME, true));
	assert_false(is_at(FRAME + 0x20, true));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, states_begin, states_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_vms_register_leads_to_a_state),
		TEST(elsewhere_the_register_says_nothing),
		TEST(code_in_no_module_may_be_any_vms_trace),
		TEST(a_trace_of_a_known_state_is_not_made_by_another),
		TEST(frames_lead_to_states),
		TEST(only_frames_within_those_of_known_states_are_of_interest),
		TEST(threads_of_an_earlier_capture_are_forgotten),
		TEST(so_many_clues_and_no_more),
		TEST(so_many_threads_are_read_and_no_more),
		TEST(a_thread_that_cannot_be_read_may_be_any),
		TEST(a_stack_that_is_not_copied_has_none),
		TEST(frames_that_their_threads_have_left_are_no_clues),
		TEST(modules_without_a_vm_have_no_states),
		TEST(an_unknown_state_may_lie_above),
		TEST(a_frame_is_of_an_unknown_state_by_its_thread),
		TEST(a_leaf_is_of_an_unknown_state_by_its_register),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* Which Lua threads are captured with a native thread, by the C frames on its stack and by its registers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/made_up_states.h"

enum {
	FRAME = C_STACK_AT + 0x200, /* of the innermost C frame */
	FRAME_SIZE = 80,
	BEGIN = C_STACK_AT + 0x80, /* of the copied native stack */
	FIRST_COPY = CAPTURE_STACK_BYTES,
	OUTSIDE = 8 << 10,       /* what is copied outside of all Lua */
	FAR_OUTSIDE = 128 << 10, /* the same if that was too little */
	SEEK = 64 << 10,
	IN_VM = VM_AT + 8,
};

static bool has(size_t thread)
{
	return capture_find_thread(&states.capture, thread_at(thread));
}

/* The innermost C frame of the thread that the state runs. */
static void put_running(size_t thread, uint64_t cframe, uint64_t previous, uint64_t return_address)
{
	put_g(0, put_thread(thread, 0, cframe));
	put_cframe(cframe, thread_at(thread), previous, return_address);
}

/*---- By the C frames' links ----*/

static void the_thread_that_runs_is_captured(void **state)
{
	(void)state;
	put_running(0, FRAME, 0, NATIVE_CODE);
	put_thread(1, 0, 0);
	states_capture();
	assert_int_equal(states.capture.thread_count, 1);
	assert_true(has(0));
	assert_int_equal(states.capture.threads[0].cframe, FRAME);
	assert_int_equal(states.capture.stack_begin, BEGIN);
	assert_int_equal(states.capture.stack_end, BEGIN + FIRST_COPY);
	assert_true(is_copied(BEGIN, FIRST_COPY));
	assert_false(is_copied(BEGIN, FIRST_COPY + 1));
	assert_true(is_copied(thread_at(0), THREAD_BYTES));
	assert_true(is_copied(slots_at(0), SLOTS * SLOT_SIZE));
}

static void nothing_is_captured_where_no_lua_runs(void **state)
{
	(void)state;
	put_thread(0, 0, 0);
	states_capture();
	assert_int_equal(states.capture.thread_count, 0);
	assert_int_equal(states.capture.global_count, 1);
	assert_int_equal(states.capture.stack_end, BEGIN + FIRST_COPY);
}

/* A coroutine's outermost C frame returns to the VM, just below that of the thread that resumed it. */
static void resumers_are_captured_too(void **state)
{
	(void)state;
	put_running(0, FRAME, 0, IN_VM);
	put_thread(1, 0, FRAME + FRAME_SIZE);
	put_cframe(FRAME + FRAME_SIZE, thread_at(1), 0, IN_VM);
	put_thread(2, 0, FRAME + 2 * FRAME_SIZE);
	put_cframe(FRAME + 2 * FRAME_SIZE, thread_at(2), 0, NATIVE_CODE);
	states_capture();
	assert_int_equal(states.capture.thread_count, 3);
	assert_true(has(0) && has(1) && has(2));
}

static void links_of_one_thread_lead_to_its_resumer(void **state)
{
	const uint64_t outer = FRAME + 0x800;

	(void)state;
	put_running(0, FRAME, outer | 1, IN_VM); /* a flag */
	put_cframe(outer, thread_at(0), 0, IN_VM);
	put_thread(1, 0, outer + FRAME_SIZE);
	put_cframe(outer + FRAME_SIZE, thread_at(1), 0, NATIVE_CODE);
	/* The word that is behind the inner one is no resumer. */
	put_thread(2, 0, 0);
	put_cframe(FRAME + FRAME_SIZE, thread_at(2), 0, NATIVE_CODE);
	states_capture();
	assert_int_equal(states.capture.thread_count, 2);
	assert_true(has(0) && has(1));
}

static void a_resumer_beyond_the_first_copy_is_captured_too(void **state)
{
	const uint64_t outer = C_STACK_AT + 0x8000;

	(void)state;
	put_running(0, FRAME, outer, IN_VM);
	put_cframe(outer, thread_at(0), 0, IN_VM);
	put_thread(1, 0, outer + FRAME_SIZE);
	put_cframe(outer + FRAME_SIZE, thread_at(1), 0, NATIVE_CODE);
	states_capture();
	assert_int_equal(states.capture.thread_count, 2);
	assert_true(has(1));
}

/* C code has resumed it: no link leads to the thread that called that code. */
static void a_thread_beyond_native_frames_is_found_by_its_frame(void **state)
{
	const uint64_t outer = FRAME + FRAME_SIZE + 0x400;

	(void)state;
	put_running(0, FRAME, 0, NATIVE_CODE);
	put_thread(1, 0, outer);
	put_cframe(outer, thread_at(1), 0, NATIVE_CODE);
	states_capture();
	assert_int_equal(states.capture.thread_count, 2);
	assert_true(has(1));
}

static void a_link_inwards_is_broken(void **state)
{
	const uint64_t outer = FRAME + FRAME_SIZE + 0x400;

	(void)state;
	put_running(0, FRAME, FRAME - 0x40, NATIVE_CODE);
	put_thread(1, 0, outer);
	put_cframe(outer, thread_at(1), 0, NATIVE_CODE);
	states_capture();
	assert_int_equal(states.capture.thread_count, 1);
	put_cframe(FRAME, thread_at(0), FRAME, NATIVE_CODE); /* to itself */
	states_capture();
	assert_int_equal(states.capture.thread_count, 1);
}

static void a_frame_that_names_another_thread_is_no_resumer(void **state)
{
	(void)state;
	put_running(0, FRAME, 0, IN_VM);
	put_cframe(FRAME + FRAME_SIZE, FREE_AT, 0, NATIVE_CODE); /* no thread is there */
	states_capture();
	assert_int_equal(states.capture.thread_count, 1);
}

static void a_thread_whose_frame_is_elsewhere_does_not_run_here(void **state)
{
	(void)state;
	put_g(0, put_thread(0, 0, C_STACK_AT - 0x1000));
	states_capture();
	assert_int_equal(states.capture.thread_count, 0);
	put_thread(0, 0, C_STACK_END - FRAME_SIZE + 8); /* it would end beyond the stack */
	states_capture();
	assert_int_equal(states.capture.thread_count, 0);
}

static void what_is_no_thread_is_left_out(void **state)
{
	static const uint64_t addresses[] = {
		8, STATES_PAGE - 8, THREADS_AT + 4, FREE_AT, (uint64_t)1 << 47 | THREADS_AT, C_STACK_END
	};

	(void)state;
	put_thread(0, 0, 0);
	for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
		put_g(0, addresses[i]);
		states_capture();
		assert_int_equal(states.capture.thread_count, 0);
	}
	/* A thread of another state. */
	put_g(0, put_thread(0, 1, 0));
	states_capture();
	assert_int_equal(states.capture.thread_count, 0);
	put_thread(0, 0, 0);
	states_capture();
	assert_int_equal(states.capture.thread_count, 1);
}

static void so_many_threads_and_no_more(void **state)
{
	enum { MANY = CAPTURE_THREADS_MAX + 20 };

	(void)state;
	for (size_t i = 0; i < MANY; i++) {
		const uint64_t cframe = FRAME + i * FRAME_SIZE;

		put_thread(i, 0, cframe);
		put_cframe(cframe, thread_at(i), 0, IN_VM);
	}
	put_g(0, thread_at(0));
	states_capture();
	assert_int_equal(states.capture.thread_count, CAPTURE_THREADS_MAX);
	assert_true(has(CAPTURE_THREADS_MAX - 1));
	assert_false(has(CAPTURE_THREADS_MAX));
}

/*---- How much of the native stack ----*/

static void the_stack_is_copied_as_far_as_lua_needs_it(void **state)
{
	const uint64_t far = C_STACK_AT + 0x21230;

	(void)state;
	put_running(0, FRAME, far, NATIVE_CODE);
	put_cframe(far, thread_at(0), 0, NATIVE_CODE);
	states_capture();
	assert_int_equal(states.hints.stack_bytes, far + FRAME_SIZE - BEGIN + OUTSIDE);
	assert_in_range(states.capture.stack_end, BEGIN + states.hints.stack_bytes,
			BEGIN + states.hints.stack_bytes + STATES_PAGE);
	assert_true(is_copied(far, FRAME_SIZE));
	/* The next time it is copied at once. */
	states_capture();
	assert_int_equal(states.capture.stack_end, BEGIN + states.hints.stack_bytes);
	/* And then less again. */
	put_cframe(FRAME, thread_at(0), 0, NATIVE_CODE);
	states_capture();
	assert_int_equal(states.hints.stack_bytes, FIRST_COPY);
}

static void no_less_than_the_usual_is_copied_of_a_deep_stack(void **state)
{
	const uint64_t outer = BEGIN + FIRST_COPY - OUTSIDE;

	(void)state;
	put_running(0, FRAME, outer - FRAME_SIZE, NATIVE_CODE);
	put_cframe(outer - FRAME_SIZE, thread_at(0), 0, NATIVE_CODE);
	states_capture();
	assert_int_equal(states.hints.stack_bytes, FIRST_COPY);
	put_running(0, FRAME, outer, NATIVE_CODE);
	put_cframe(outer, thread_at(0), 0, NATIVE_CODE);
	states_capture();
	assert_int_equal(states.hints.stack_bytes, FIRST_COPY + FRAME_SIZE);
}

static void more_is_copied_where_code_outside_of_lua_takes_much_of_it(void **state)
{
	const uint64_t end = BEGIN + 0x9000;

	(void)state;
	put_running(0, FRAME, 0, NATIVE_CODE);
	states.hints.reaches_far = true;
	states_capture();
	assert_int_equal(states.hints.stack_bytes, FRAME + FRAME_SIZE - BEGIN + FAR_OUTSIDE);
	assert_int_equal(states.capture.stack_end, BEGIN + states.hints.stack_bytes);
	/* But nothing from where the last frame ended. */
	states.hints.frames_end = end;
	states_capture();
	assert_int_equal(states.capture.stack_end, end);
}

/* Copy the thread's stack; unwinding passes the copy. Does the next one reach further for that? */
static bool passes(void)
{
	states_capture();
	capture_note_frames_end(&states.capture, 0, &states.hints);
	return capture_note_passing(&states.capture, true, &states.hints);
}

static bool is_copied_far(void)
{
	states_capture();
	return states.hints.stack_bytes == FRAME + FRAME_SIZE - BEGIN + FAR_OUTSIDE;
}

static void where_more_does_not_help_it_is_copied_now_and_then(void **state)
{
	unsigned int far = 0;

	(void)state;
	put_running(0, FRAME, 0, NATIVE_CODE);
	assert_false(is_copied_far());
	assert_true(passes());
	assert_true(is_copied_far());
	for (unsigned int i = 1; i < 256; i++) {
		assert_false(passes());
		far += is_copied_far();
	}
	assert_in_range(far, 1, 16);
	assert_false(is_copied_far());
	assert_true(passes());
	assert_true(is_copied_far());
}

static void where_more_helps_at_times_it_is_always_copied(void **state)
{
	(void)state;
	put_running(0, FRAME, 0, NATIVE_CODE);
	assert_true(passes());
	for (unsigned int i = 0; i < 256; i++) {
		assert_true(is_copied_far());
		if (i % 3) {
			passes();
			continue;
		}
		capture_note_frames_end(&states.capture, BEGIN + 0x9000, &states.hints);
		capture_note_passing(&states.capture, false, &states.hints);
	}
	/* What the usual copy has as well is no help. */
	for (unsigned int i = 0; i < 16; i++) {
		passes();
		states_capture();
		capture_note_frames_end(&states.capture, BEGIN + FIRST_COPY, &states.hints);
		capture_note_passing(&states.capture, false, &states.hints);
	}
	assert_false(is_copied_far());
}

static void a_stack_ends_where_nothing_is_mapped(void **state)
{
	const uint64_t gap = C_STACK_AT + 0x2000;

	(void)state;
	put_running(0, FRAME, 0, NATIVE_CODE);
	unmap(gap);
	states_capture();
	assert_int_equal(states.capture.stack_end, gap);
	assert_int_equal(states.hints.stack_end, gap);
	assert_true(has(0));
	assert_false(is_copied(gap, 8));
}

static void a_single_look_takes_all_of_it(void **state)
{
	(void)state;
	put_running(0, FRAME, 0, NATIVE_CODE);
	states.hints.deep = true;
	states_capture();
	assert_int_equal(states.capture.stack_end, C_STACK_END);
}

/*---- LuaJIT 2.0 does not say which thread runs ----*/

static int begin_without_cur_L(void **state)
{
	const int status = states_begin(state);

	states.vm.layout.g_cur_L = LAYOUT_ABSENT;
	return status;
}

static void without_cur_L_the_innermost_frame_tells(void **state)
{
	(void)state;
	/* The stack pointer itself is not below a frame: native code has saved what is between. */
	put_thread(0, 0, BEGIN);
	put_cframe(BEGIN, thread_at(0), 0, NATIVE_CODE);
	states_capture();
	assert_int_equal(states.capture.thread_count, 1);
	assert_true(has(0));
}

static void what_earlier_calls_left_is_passed(void **state)
{
	(void)state;
	put_thread(0, 0, FRAME + 0x200);
	put_cframe(FRAME, thread_at(0), 0, NATIVE_CODE); /* not its frame any more */
	put_cframe(FRAME + 0x100, FREE_AT, 0, NATIVE_CODE);
	put_cframe(FRAME + 0x200, thread_at(0), 0, NATIVE_CODE);
	put_thread(1, 0, FRAME + 0x400);
	put_cframe(FRAME + 0x400, thread_at(1), 0, NATIVE_CODE);
	states_capture();
	assert_int_equal(states.capture.thread_count, 2);
	assert_int_equal(states.capture.threads[0].address, thread_at(0));
}

static void a_frame_below_much_native_code_is_sought(void **state)
{
	const uint64_t deep = BEGIN + SEEK - 0x400, deeper = BEGIN + SEEK + 0x8000;
	const uint64_t elsewhere[] = { C_STACK_AT - 0x800, BEGIN, BEGIN + CAPTURE_STACK_BYTES_MAX };
	uint64_t copied_end = 0;

	(void)state;
	put_thread(0, 0, deep);
	put_cframe(deep, thread_at(0), 0, NATIVE_CODE);
	states_capture();
	assert_true(has(0));
	/* It may be too deep to seek for, unless it is the main thread's. */
	put_thread(0, 0, deeper);
	put_cframe(deep, 0, 0, 0);
	put_cframe(deeper, thread_at(0), 0, NATIVE_CODE);
	states.hints = (struct capture_hints){ 0 };
	states_capture();
	assert_int_equal(states.capture.thread_count, 0);
	put_word(g_at(0) + (uint64_t)states.vm.layout.g_mainthref, thread_at(0));
	states.hints = (struct capture_hints){ 0 };
	states_capture();
	assert_true(has(0));
	/* What is the main thread's on another stack does not lead there. */
	for (size_t i = 0; i < sizeof(elsewhere) / sizeof(elsewhere[0]); i++) {
		put_thread(0, 0, elsewhere[i]);
		put_thread(1, 0, deep);
		put_cframe(deep, thread_at(1), 0, NATIVE_CODE);
		states.hints = (struct capture_hints){ 0 };
		states_capture();
		assert_true(has(1));
		copied_end = i ? copied_end : states.capture.stack_end;
		assert_int_equal(states.capture.stack_end, copied_end);
	}
}

/*---- Where the interpreter itself runs ----*/

static void the_interpreters_frame_is_at_its_stack_pointer(void **state)
{
	static const int distances[] = { 0, 8, 16, -40, -48, -72 };

	(void)state;
	states.registers.pc = IN_VM;
	put_thread(0, 0, FRAME);
	put_cframe(FRAME, thread_at(0), 0, NATIVE_CODE);
	for (size_t i = 0; i < sizeof(distances) / sizeof(distances[0]); i++) {
		states.hints = (struct capture_hints){ 0 };
		states.registers.sp = (uint64_t)(FRAME - distances[i]);
		states_capture();
		assert_true(has(0));
	}
	/* Only the VM's own code has it there. */
	states.registers.sp = FRAME;
	states.registers.pc = NATIVE_CODE;
	states_capture();
	assert_int_equal(states.capture.thread_count, 0);
}

/* It is no frame of its thread any more; its resumer's is the next one. */
static void a_coroutine_that_is_about_to_end_has_its_resumer_captured(void **state)
{
	(void)state;
	states.registers.pc = IN_VM;
	states.registers.sp = FRAME;
	put_thread(0, 0, 0);
	put_cframe(FRAME, thread_at(0), 0, IN_VM);
	put_thread(1, 0, FRAME + FRAME_SIZE);
	put_cframe(FRAME + FRAME_SIZE, thread_at(1), 0, NATIVE_CODE);
	states_capture();
	assert_int_equal(states.capture.thread_count, 2);
	assert_true(has(0) && has(1));
}

/* The word of SAVE_PC would be the thread's in a frame that begins a word further out. */
static void no_other_frame_is_read_if_the_likeliest_one_is_linked(void **state)
{
	(void)state;
	states.registers.pc = IN_VM;
	states.registers.sp = FRAME;
	put_thread(0, 0, FRAME);
	put_thread(1, 0, 0);
	put_cframe(FRAME, thread_at(0), 0, NATIVE_CODE);
	put_word(FRAME + 24, thread_at(1));
	states_capture();
	assert_int_equal(states.capture.thread_count, 2);
	assert_int_equal(states.hints.lua_thread.address, thread_at(0));
	states_capture(); /* now it is known which thread is copied with the first reads */
	assert_int_equal(states.capture.thread_count, 1);
	assert_true(has(0));
	/* It is not linked to that frame. */
	put_thread(0, 0, FRAME + 0x400);
	put_cframe(FRAME + 0x400, thread_at(0), 0, NATIVE_CODE);
	states_capture();
	assert_true(has(1));
}

static void threads_that_are_being_switched_are_in_registers(void **state)
{
	(void)state;
	states.registers.rbx = put_thread(0, 0, 0);
	states.registers.rdi = put_thread(1, 0, 0);
	states_capture();
	assert_int_equal(states.capture.thread_count, 0);
	states.registers.pc = IN_VM;
	states_capture();
	assert_int_equal(states.capture.thread_count, 2);
	assert_true(has(0) && has(1));
}

static void an_error_that_ended_a_thread_leads_to_the_next_one(void **state)
{
	(void)state;
	put_g(0, put_thread(0, 0, 0));
	put_thread(1, 0, FRAME);
	put_cframe(FRAME, thread_at(1), 0, NATIVE_CODE);
	states_capture();
	assert_int_equal(states.capture.thread_count, 1);
	put(thread_at(0) + (uint64_t)states.vm.layout.L_status, LUA_YIELD, 1);
	states_capture();
	assert_int_equal(states.capture.thread_count, 1);
	put(thread_at(0) + (uint64_t)states.vm.layout.L_status, LUA_YIELD + 1, 1);
	states_capture();
	assert_int_equal(states.capture.thread_count, 2);
	assert_true(has(1));
}

/*---- The thread works on another stack than its own ----*/

enum {
	OWN = C_STACK_AT + 0x20000,
	OWN_BYTES = 0x30000,
	OWN_FRAME = OWN + 0x8010,
};

static void put_own_stack(void)
{
	states.hints.own_stack = (struct memory_range){ .address = OWN, .length = OWN_BYTES };
}

static void the_threads_own_stack_is_copied_around_its_innermost_frame(void **state)
{
	(void)state;
	put_running(0, OWN_FRAME, 0, NATIVE_CODE);
	put_own_stack();
	states_capture();
	assert_int_equal(states.capture.own_begin, OWN_FRAME - CAPTURE_STACK_BYTES);
	assert_int_equal(states.capture.own_end, OWN_FRAME + SEEK);
	assert_true(is_copied(states.capture.own_begin, SEEK + CAPTURE_STACK_BYTES));
	assert_true(has(0));
	/* The copy of the other stack is only what it always is. */
	assert_int_equal(states.hints.stack_bytes, FIRST_COPY);
	assert_in_range(states.capture.stack_end, BEGIN, OWN);
}

static void no_more_of_it_is_copied_than_is_mapped(void **state)
{
	(void)state;
	put_running(0, OWN + 0x40, 0, NATIVE_CODE);
	put_own_stack();
	states_capture();
	assert_int_equal(states.capture.own_begin, OWN);
	put_running(0, OWN + OWN_BYTES - FRAME_SIZE, 0, NATIVE_CODE);
	put_own_stack();
	states_capture();
	assert_int_equal(states.capture.own_end, OWN + OWN_BYTES);
	assert_true(has(0));
	unmap(OWN + OWN_BYTES - STATES_PAGE);
	put_running(0, OWN_FRAME + 0x18000, 0, NATIVE_CODE);
	states_capture();
	assert_int_equal(states.capture.own_end, OWN + OWN_BYTES - STATES_PAGE);
}

static void the_innermost_frame_on_it_is_that_of_any_thread(void **state)
{
	(void)state;
	put_running(0, OWN_FRAME + 0x4000, 0, NATIVE_CODE);
	put_word(g_at(0) + (uint64_t)states.vm.layout.g_mainthref, put_thread(1, 0, OWN_FRAME));
	put_cframe(OWN_FRAME, thread_at(1), 0, NATIVE_CODE);
	put_own_stack();
	states_capture();
	assert_int_equal(states.capture.own_begin, OWN_FRAME - CAPTURE_STACK_BYTES);
	assert_true(has(0) && has(1));
}

static void a_link_leads_from_the_other_stack_to_its_own(void **state)
{
	(void)state;
	put_running(0, FRAME, OWN_FRAME, NATIVE_CODE);
	put_cframe(OWN_FRAME, thread_at(0), 0, NATIVE_CODE);
	put_own_stack();
	states_capture();
	assert_int_equal(states.capture.own_begin, OWN_FRAME - CAPTURE_STACK_BYTES);
	assert_true(has(0));
}

static void an_own_stack_without_lua_is_not_copied(void **state)
{
	(void)state;
	put_running(0, FRAME, 0, NATIVE_CODE);
	put_own_stack();
	states_capture();
	assert_int_equal(states.capture.own_end, 0);
	/* A link that leads to nothing. */
	put_cframe(FRAME, thread_at(0), OWN + OWN_BYTES, NATIVE_CODE);
	states_capture();
	assert_int_equal(states.capture.own_end, 0);
}

static void links_that_lead_round_do_not_reach_the_own_stack(void **state)
{
	(void)state;
	put_g(0, put_thread(0, 0, FREE_AT));
	put_cframe(FREE_AT, thread_at(0), FREE_AT + FRAME_SIZE, NATIVE_CODE);
	put_cframe(FREE_AT + FRAME_SIZE, thread_at(0), FREE_AT, NATIVE_CODE);
	put_own_stack();
	states_capture();
	assert_int_equal(states.capture.own_end, 0);
	assert_int_equal(states.capture.thread_count, 0);
}

/*---- A process with several states ----*/

static int begin_with_two(void **state)
{
	const int status = states_begin(state);

	lua_image_add(states.lua, g_at(1), &states.vm);
	put_g(1, 0);
	return status;
}

static void each_state_has_a_thread_that_runs(void **state)
{
	(void)state;
	put_running(0, FRAME, 0, NATIVE_CODE);
	put_g(1, put_thread(1, 1, FRAME + 0x400));
	put_cframe(FRAME + 0x400, thread_at(1), 0, NATIVE_CODE);
	states_capture();
	assert_int_equal(states.capture.thread_count, 2);
	assert_true(has(0) && has(1));
}

static void the_interpreters_frame_is_that_of_any_state(void **state)
{
	(void)state;
	states.registers.pc = IN_VM;
	states.registers.sp = FRAME;
	put_thread(0, 1, FRAME);
	put_cframe(FRAME, thread_at(0), 0, NATIVE_CODE);
	states_capture();
	assert_int_equal(states.capture.thread_count, 1);
	assert_true(has(0));
	/* It is copied with the first reads. */
	put_word(FRAME + 24, put_thread(1, 0, 0));
	states_capture();
	assert_int_equal(states.capture.thread_count, 1);
	assert_true(has(0));
}

static void threads_that_are_being_switched_are_those_of_any_state(void **state)
{
	(void)state;
	states.registers.pc = IN_VM;
	states.registers.rbx = put_thread(0, 1, 0);
	states.registers.rdi = put_thread(1, 1, 0);
	states_capture();
	assert_int_equal(states.capture.thread_count, 2);
	assert_true(has(0) && has(1));
}

static void the_innermost_frame_on_the_own_stack_is_that_of_any_state(void **state)
{
	(void)state;
	put_running(0, OWN_FRAME + 0x4000, 0, NATIVE_CODE);
	put_g(1, put_thread(1, 1, OWN_FRAME));
	put_cframe(OWN_FRAME, thread_at(1), 0, NATIVE_CODE);
	put_own_stack();
	states_capture();
	assert_int_equal(states.capture.own_begin, OWN_FRAME - CAPTURE_STACK_BYTES);
	assert_true(has(0) && has(1));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, states_begin, states_end)
#define TEST_WITHOUT_CUR_L(name) cmocka_unit_test_setup_teardown(name, begin_without_cur_L, states_end)
#define TEST_WITH_TWO(name) cmocka_unit_test_setup_teardown(name, begin_with_two, states_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_thread_that_runs_is_captured),
		TEST(nothing_is_captured_where_no_lua_runs),
		TEST(resumers_are_captured_too),
		TEST(links_of_one_thread_lead_to_its_resumer),
		TEST(a_resumer_beyond_the_first_copy_is_captured_too),
		TEST(a_thread_beyond_native_frames_is_found_by_its_frame),
		TEST(a_link_inwards_is_broken),
		TEST(a_frame_that_names_another_thread_is_no_resumer),
		TEST(a_thread_whose_frame_is_elsewhere_does_not_run_here),
		TEST(what_is_no_thread_is_left_out),
		TEST(so_many_threads_and_no_more),
		TEST(the_stack_is_copied_as_far_as_lua_needs_it),
		TEST(no_less_than_the_usual_is_copied_of_a_deep_stack),
		TEST(more_is_copied_where_code_outside_of_lua_takes_much_of_it),
		TEST(where_more_does_not_help_it_is_copied_now_and_then),
		TEST(where_more_helps_at_times_it_is_always_copied),
		TEST(a_stack_ends_where_nothing_is_mapped),
		TEST(a_single_look_takes_all_of_it),
		TEST_WITHOUT_CUR_L(without_cur_L_the_innermost_frame_tells),
		TEST_WITHOUT_CUR_L(what_earlier_calls_left_is_passed),
		TEST_WITHOUT_CUR_L(a_frame_below_much_native_code_is_sought),
		TEST(the_interpreters_frame_is_at_its_stack_pointer),
		TEST(a_coroutine_that_is_about_to_end_has_its_resumer_captured),
		TEST(no_other_frame_is_read_if_the_likeliest_one_is_linked),
		TEST(threads_that_are_being_switched_are_in_registers),
		TEST(an_error_that_ended_a_thread_leads_to_the_next_one),
		TEST(the_threads_own_stack_is_copied_around_its_innermost_frame),
		TEST(no_more_of_it_is_copied_than_is_mapped),
		TEST(the_innermost_frame_on_it_is_that_of_any_thread),
		TEST(a_link_leads_from_the_other_stack_to_its_own),
		TEST(an_own_stack_without_lua_is_not_copied),
		TEST(links_that_lead_round_do_not_reach_the_own_stack),
		TEST_WITH_TWO(each_state_has_a_thread_that_runs),
		TEST_WITH_TWO(the_interpreters_frame_is_that_of_any_state),
		TEST_WITH_TWO(threads_that_are_being_switched_are_those_of_any_state),
		TEST_WITH_TWO(the_innermost_frame_on_the_own_stack_is_that_of_any_state),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

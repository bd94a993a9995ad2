/* SPDX-License-Identifier: MIT */
/* What is captured of LuaJIT's states with a thread, and what the next capture knows of this one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "luajit-layouts/vmstate.h"
#include "tests/unit/made_up_states.h"
#include "unwind/capture/capture_parts.h"
#include "unwind/jit/traces.h"

enum {
	FRAME = C_STACK_AT + 0x200,
	MANY = CAPTURE_GLOBALS_MAX + 4,
	GC_TOTAL = 0x123456,
	JIT_BASE = 0x51110,
};

static uint64_t field(size_t g, int32_t offset)
{
	return g_at(g) + (uint64_t)offset;
}

static bool has(size_t g)
{
	return capture_find_global(&states.capture, lua_image_find(states.lua, g_at(g)));
}

static void add_states(size_t count)
{
	for (size_t i = 0; i < count; i++) {
		lua_image_add(states.lua, g_at(i), &states.vm);
		put_g(i, 0);
	}
}

/* Thread i, of state g, has its C frame here. */
static void put_running(size_t i, size_t g, uint64_t cframe)
{
	put_g(g, put_thread(i, g, cframe));
	put_cframe(cframe, thread_at(i), 0, NATIVE_CODE);
}

/*---- Their fields ----*/

static void a_states_fields_are_as_they_were(void **state)
{
	const struct layout *layout = &states.vm.layout;
	const struct global_view *view;

	(void)state;
	put_word(field(0, layout->g_gc_total), GC_TOTAL);
	put(field(0, layout->g_gc_state), GCSsweep, 1);
	put(field(0, layout->g_gc_state - 1), 2, 1);
	put(field(0, layout->g_hookmask), HOOK_GC, 1);
	put(field(0, layout->g_vmstate), (uint32_t)VMST_GC, 4);
	put_word(field(0, layout->g_cur_L), thread_at(3));
	put_word(field(0, layout->g_jit_base), JIT_BASE);
	states_capture();
	assert_int_equal(states.capture.global_count, 1);
	view = capture_find_global(&states.capture, lua_image_global(states.lua, 0));
	assert_ptr_equal(view, &states.capture.globals[0]);
	assert_int_equal(view->gc_total, GC_TOTAL);
	assert_int_equal(view->gc_state, GCSsweep);
	assert_int_equal(view->gc_currentwhite, 2);
	assert_int_equal(view->hookmask, HOOK_GC);
	assert_int_equal(view->vmstate, VMST_GC);
	assert_int_equal(view->cur_L, thread_at(3));
	assert_int_equal(view->jit_base, JIT_BASE);
	assert_null(capture_find_global(&states.capture, NULL));
}

static void a_state_that_is_unmapped_is_left_out(void **state)
{
	(void)state;
	add_states(3);
	unmap(g_at(1));
	states_capture();
	assert_int_equal(states.capture.global_count, 2);
	assert_true(has(0) && has(2));
	assert_false(has(1));
}

static void all_fields_of_a_state_are_copied_in_one_go(void **state)
{
	const struct global_state *global = lua_image_global(states.lua, 0);
	struct layout *layout = &states.vm.layout;
	struct memory_range range = capture_global_range(global);

	(void)state;
	assert_int_equal(range.address, field(0, layout->g_gc_total));
	assert_int_equal(range.address + range.length, field(0, layout->g_jit_base) + 8);
	layout->g_strnum = 0x100;
	layout->g_strmask = 8;
	layout->g_jit_base = LAYOUT_ABSENT;
	range = capture_global_range(global);
	assert_int_equal(range.address, g_at(0) + 8);
	assert_int_equal(range.address + range.length, g_at(0) + 0x108);
}

static void the_array_of_traces_has_an_address_and_a_size(void **state)
{
	const struct layout *layout = &states.vm.layout;
	struct global_state *global = lua_image_global(states.lua, 0);

	(void)state;
	assert_int_equal(capture_traces_range(global).length, 0);
	global->traces = traces_new();
	assert_non_null(global->traces);
	assert_int_equal(capture_traces_range(global).address, field(0, layout->GG_J + layout->J_trace));
	assert_int_equal(capture_traces_range(global).length,
			 layout->J_sizetrace - layout->J_trace + (int32_t)sizeof(uint32_t));
	states_capture();
	assert_true(is_copied(field(0, layout->GG_J + layout->J_trace), 12));
}

/*---- Which of many ----*/

static void so_many_are_read_in_any_case(void **state)
{
	(void)state;
	add_states(CAPTURE_GLOBALS_MAX);
	states_capture();
	assert_int_equal(states.capture.global_count, CAPTURE_GLOBALS_MAX);
	for (size_t i = 0; i < CAPTURE_GLOBALS_MAX; i++)
		assert_true(has(i));
}

static void of_more_those_that_ran_last_or_run_now_are_read(void **state)
{
	(void)state;
	add_states(MANY);
	states_capture();
	assert_int_equal(states.capture.global_count, 0);
	states.hints.g = g_at(17);
	states_capture();
	assert_int_equal(states.capture.global_count, 1);
	assert_true(has(17));
	states.registers.r14 = g_at(3) + DISPATCH_AT;
	states_capture();
	assert_int_equal(states.capture.global_count, 2);
	assert_true(has(17) && has(3));
}

static void of_more_those_with_frames_on_the_stack_are_read(void **state)
{
	(void)state;
	add_states(MANY);
	put_running(0, 5, FRAME);
	put_running(1, 19, FRAME + 0x400);
	put_cframe(FRAME + 0x800, thread_at(0), 0, NATIVE_CODE);           /* the same again */
	put_cframe(FRAME + 0xc00, put_thread(2, MANY, 0), 0, NATIVE_CODE); /* of a state that nobody knows */
	put_cframe(FRAME + 0x1000, C_STACK_END, 0, NATIVE_CODE);           /* nothing is there */
	states_capture();
	assert_int_equal(states.capture.global_count, 2);
	assert_true(has(5) && has(19));
	assert_int_equal(states.capture.thread_count, 2);
	/* Of few, none is searched for: they are all there. */
	for (size_t i = CAPTURE_GLOBALS_MAX; i < MANY; i++)
		lua_image_forget(states.lua, g_at(i));
	states_capture();
	assert_int_equal(states.capture.global_count, CAPTURE_GLOBALS_MAX);
}

static void frames_beyond_the_stack_pointer_are_none(void **state)
{
	(void)state;
	add_states(MANY);
	put_running(0, 5, FRAME);
	states.registers.sp = FRAME + 0x10;
	states_capture();
	assert_int_equal(states.capture.global_count, 0);
	/* No stack is there. */
	states.registers.sp = FRAME - 0x10;
	unmap(C_STACK_AT);
	states_capture();
	assert_int_equal(states.capture.global_count, 0);
}

static void no_more_than_so_many_of_a_stack_are_read(void **state)
{
	(void)state;
	add_states(MANY);
	for (size_t i = 0; i < MANY; i++)
		put_running(i, i, FRAME + i * 0x100);
	states_capture();
	assert_int_equal(states.capture.global_count, CAPTURE_GLOBALS_MAX);
	assert_true(has(0) && has(CAPTURE_GLOBALS_MAX - 1));
	assert_false(has(MANY - 1));
}

/*---- What the next capture knows ----*/

static void the_next_capture_knows_what_ran(void **state)
{
	size_t reads;

	(void)state;
	put_running(0, 0, FRAME);
	put_running(1, 0, FRAME + 0x400);
	put_g(0, thread_at(0));
	states_capture();
	assert_int_equal(states.hints.sp, states.registers.sp);
	assert_int_equal(states.hints.g, g_at(0));
	assert_int_equal(states.hints.lua_thread.address, thread_at(0));
	assert_int_equal(states.hints.lua_thread.length, THREAD_BYTES);
	assert_int_equal(states.hints.lua_stack.address, slots_at(0));
	assert_int_equal(states.hints.lua_stack.length, SLOTS * SLOT_SIZE);
	assert_int_not_equal(states.hints.guesses.count, 0);
	reads = states.hints.reads;
	assert_int_not_equal(reads, 0);
	states_capture();
	assert_in_range(states.hints.reads, 1, reads - 1);
}

static void hints_stay_while_no_lua_runs(void **state)
{
	struct capture_hints before;

	(void)state;
	put_running(0, 0, FRAME);
	states_capture();
	before = states.hints;
	put_g(0, 0);
	put_thread(0, 0, 0);
	states.registers.sp += 0x40;
	states_capture();
	assert_int_equal(states.capture.thread_count, 0);
	assert_int_equal(states.hints.sp, states.registers.sp);
	assert_int_equal(states.hints.g, before.g);
	assert_int_equal(states.hints.lua_thread.address, before.lua_thread.address);
	assert_int_equal(states.hints.reads, before.reads);
	assert_int_equal(states.hints.guesses.count, before.guesses.count);
}

static void nothing_is_read_after_a_capture(void **state)
{
	uint8_t byte;

	(void)state;
	put_running(0, 0, FRAME);
	states_capture();
	assert_int_equal(memory_read(snapshot_memory(states.process.snapshot), FREE_AT, &byte, 1),
			 MEMORY_NOT_CAPTURED);
	assert_non_null(states.capture.threads[0].slots);
}

static void rehearse(uint64_t sp)
{
	states.hints.sp = sp;
	snapshot_clear(states.process.snapshot);
	capture_rehearse(&states.capture, &states.process, &states.hints);
}

static void a_rehearsal_brings_the_hints_up_to_date(void **state)
{
	const uint64_t sp = states.registers.sp;

	(void)state;
	put_running(0, 0, FRAME);
	states.hints.stack_bytes = 0x8000;
	states.hints.reads = 77;
	rehearse(sp);
	assert_int_equal(states.hints.g, g_at(0));
	assert_int_equal(states.hints.lua_thread.address, thread_at(0));
	assert_int_equal(states.hints.lua_stack.address, slots_at(0));
	assert_int_equal(states.hints.stack_bytes, 0x8000);
	assert_int_equal(states.hints.reads, 77);
	assert_int_equal(states.hints.sp, sp);
}

/* The thread runs on: its stack pointer may be anywhere in the page. */
static void a_rehearsal_begins_at_the_page_of_the_last_stack_pointer(void **state)
{
	(void)state;
	rehearse(FRAME + 0x3210);
	assert_int_equal(states.capture.stack_begin, (FRAME + 0x3210) / STATES_PAGE * STATES_PAGE);
	rehearse(C_STACK_AT + 0x1000 + BELOW_STACK_BYTES);
	assert_int_equal(states.capture.stack_begin, C_STACK_AT + 0x1000);
	rehearse(C_STACK_AT + 0x1000 + 8);
	assert_int_equal(states.capture.stack_begin, C_STACK_AT + 0x1000 + 8 - BELOW_STACK_BYTES);
	unmap(C_STACK_AT + 0x3000);
	rehearse(FRAME);
	assert_int_equal(states.hints.stack_end, C_STACK_AT + 0x3000);
}

/*---- A thread that runs on ----*/

static const struct native_stack native_stack = {
	.range = { .address = C_STACK_AT, .length = (size_t)(C_STACK_END - C_STACK_AT) },
	.sure = { .address = C_STACK_AT, .length = (size_t)(C_STACK_END - C_STACK_AT) },
};

/* Live memory has another base of thread 0 than the copy. */
static void read_moved(struct memory *memory, struct memory_range *ranges, size_t count)
{
	(void)memory;
	states_read(&states.memory, ranges, count);
	for (size_t i = 0; i < count; i++)
		if (ranges[i].address == thread_at(0) && ranges[i].status == MEMORY_OK)
			((uint8_t *)ranges[i].copy)[states.vm.layout.L_base] += SLOT_SIZE;
}

static enum capture_verdict capture_live(struct memory *live)
{
	snapshot_clear(states.process.snapshot);
	return capture_running(&states.capture, &states.process, live, &native_stack, &states.hints);
}

static bool is_sealed(void)
{
	uint8_t byte;

	return memory_read(snapshot_memory(states.process.snapshot), FREE_AT, &byte, 1) ==
	       MEMORY_NOT_CAPTURED;
}

static void a_thread_that_runs_on_is_captured_from_its_c_frame(void **state)
{
	(void)state;
	add_states(3);
	put_g(0, put_thread(1, 0, 0)); /* runs on no native stack */
	put_running(0, 1, FRAME);
	put_running(2, 2, FRAME + 0x400);
	put_slot(0, 5, tagged(TAG_FUNC, put_function(0)));
	put_slot(2, 5, tagged(TAG_FUNC, put_function(1)));
	assert_int_equal(capture_live(&states.memory), CAPTURE_WHOLE);
	assert_ptr_equal(states.capture.running,
			 capture_find_global(&states.capture, lua_image_find(states.lua, g_at(1))));
	assert_non_null(capture_find_thread(&states.capture, thread_at(0)));
	assert_non_null(lua_objects_function(states.process.objects, function_at(0)));
	assert_int_equal(states.capture.registers.sp, FRAME);
	assert_int_equal(states.hints.g, g_at(1));
	assert_int_equal(states.hints.sp, FRAME);
	assert_true(is_sealed());
	/* It is the innermost one, whichever ran last. */
	states.hints.g = g_at(2);
	assert_int_equal(capture_live(&states.memory), CAPTURE_WHOLE);
	assert_int_equal(states.capture.registers.sp, FRAME);
	put_running(0, 1, FRAME + 0x800);
	put_slot(2, 5, UINT64_MAX);
	assert_int_equal(capture_live(&states.memory), CAPTURE_WHOLE);
	assert_int_equal(states.capture.registers.sp, FRAME + 0x400);
	assert_null(lua_objects_function(states.process.objects, function_at(1)));
}

static void a_thread_that_ran_on_too_far_is_torn(void **state)
{
	struct memory moved = { .read_ranges = read_moved };

	(void)state;
	put_running(0, 0, FRAME);
	assert_int_equal(capture_live(&moved), CAPTURE_TORN);
	assert_true(is_sealed());
	put_running(0, 0, C_STACK_AT - 0x100);
	assert_int_equal(capture_live(&moved), CAPTURE_NO_LUA);
	assert_false(is_sealed());
}

static void a_thread_that_cannot_be_read_does_not_run(void **state)
{
	(void)state;
	put_running(0, 0, FRAME);
	put_g(0, thread_at(0) + 4);
	assert_int_equal(capture_live(&states.memory), CAPTURE_NO_LUA);
	put_g(0, C_STACK_END);
	assert_int_equal(capture_live(&states.memory), CAPTURE_NO_LUA);
	put_g(0, thread_at(0));
	assert_int_equal(capture_live(&states.memory), CAPTURE_WHOLE);
	put_running(0, 0, C_STACK_AT); /* the first address of the stack, and the one behind it */
	assert_int_equal(capture_live(&states.memory), CAPTURE_WHOLE);
	put_thread(0, 0, C_STACK_END);
	assert_int_equal(capture_live(&states.memory), CAPTURE_NO_LUA);
}

/*---- The copy has changed ----*/

static void overlay(uint64_t address, uint64_t value, size_t size)
{
	snapshot_overlay(states.process.snapshot, address, &value, size);
}

static void a_changed_copy_is_loaded_again(void **state)
{
	const struct layout *layout = &states.vm.layout;
	struct lua_thread *thread = &states.capture.threads[0];

	(void)state;
	put_running(0, 0, FRAME);
	states_capture();
	assert_int_equal(states.capture.thread_count, 1);
	thread->parent = thread_at(9);
	overlay(field(0, layout->g_vmstate), (uint32_t)VMST_EXIT, 4);
	overlay(thread_at(0) + (uint64_t)layout->L_base, slots_at(0) + 0x80, 8);
	capture_reload(&states.capture);
	assert_int_equal(states.capture.globals[0].vmstate, VMST_EXIT);
	assert_int_equal(thread->base, slots_at(0) + 0x80);
	assert_int_equal(thread->parent, thread_at(9));
	assert_non_null(thread->slots);
	/* It is no thread any more: the last one stays. */
	overlay(thread_at(0) + (uint64_t)layout->GChead_gct, 0, 1);
	overlay(thread_at(0) + (uint64_t)layout->L_base, 0, 8);
	capture_reload(&states.capture);
	assert_int_equal(thread->base, slots_at(0) + 0x80);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, states_begin, states_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_states_fields_are_as_they_were),
		TEST(a_state_that_is_unmapped_is_left_out),
		TEST(all_fields_of_a_state_are_copied_in_one_go),
		TEST(the_array_of_traces_has_an_address_and_a_size),
		TEST(so_many_are_read_in_any_case),
		TEST(of_more_those_that_ran_last_or_run_now_are_read),
		TEST(of_more_those_with_frames_on_the_stack_are_read),
		TEST(frames_beyond_the_stack_pointer_are_none),
		TEST(no_more_than_so_many_of_a_stack_are_read),
		TEST(the_next_capture_knows_what_ran),
		TEST(hints_stay_while_no_lua_runs),
		TEST(nothing_is_read_after_a_capture),
		TEST(a_rehearsal_brings_the_hints_up_to_date),
		TEST(a_rehearsal_begins_at_the_page_of_the_last_stack_pointer),
		TEST(a_thread_that_runs_on_is_captured_from_its_c_frame),
		TEST(a_thread_that_ran_on_too_far_is_torn),
		TEST(a_thread_that_cannot_be_read_does_not_run),
		TEST(a_changed_copy_is_loaded_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

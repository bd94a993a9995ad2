/* SPDX-License-Identifier: MIT */
/* What is copied of a thread that runs on holds only if the thread has not moved meanwhile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "luajit-layouts/vmstate.h"
#include "tests/unit/instead_of.h"
#include "unwind/capture/capture_parts.h"
#include "unwind/lua/lua_objects.h"
#include "unwind/lua/luajit.h"

enum {
	G = 0x10000,
	L = 0x20000,
	OTHER_G = 0x50000, /* of a second state */
	OTHER_L = 0x60000,
	C_STACK = 0x70000000,
	C_STACK_BYTES = 0x10000,
	LUA_STACK = 0x30000,
};

/* The global_State and the thread as they are now, and as they are after the copy. */
static struct state {
	int32_t vmstate;
	uint64_t cur_L, jit_base, jit_L;
	uint64_t base, cframe, stack;
	uint8_t status;
} now, later;

static uint64_t other_cframe, later_other_cframe; /* of the second state; 0: nothing runs it */

static struct vm_code vm;
static struct global_state global, other;
static size_t state_count;

static void put(struct memory_range *range, uint64_t address, const void *value, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (address + i - range->address < range->length)
			((uint8_t *)range->copy)[address + i - range->address] = ((const uint8_t *)value)[i];
}

static void read_ranges(struct memory *memory, struct memory_range *ranges, size_t count)
{
	(void)memory;
	for (size_t i = 0; i < count; i++) {
		const uint8_t gct = GCT_THREAD;
		const uint64_t g = G, other_g = OTHER_G, other_L = OTHER_L, slots = 0x200,
			       top = now.base + 16, end = LUA_STACK + 0x1000;

		memset(ranges[i].copy, 0, ranges[i].length);
		put(&ranges[i], G + 0x10, &now.vmstate, 4);
		put(&ranges[i], G + 0x18, &now.cur_L, 8);
		put(&ranges[i], G + 0x20, &now.jit_base, 8);
		put(&ranges[i], G + 0x28, &now.jit_L, 8);
		put(&ranges[i], L + 0x10, &g, 8);
		put(&ranges[i], L + 0x18, &now.base, 8);
		put(&ranges[i], L + 0x20, &top, 8);
		put(&ranges[i], L + 0x28, &end, 8);
		put(&ranges[i], L + 0x30, &now.stack, 8);
		put(&ranges[i], L + 0x38, &now.cframe, 8);
		put(&ranges[i], L + 0x40, &now.status, 1);
		put(&ranges[i], L + 0x48, &slots, 4);
		put(&ranges[i], L + 0x9, &gct, 1);
		put(&ranges[i], OTHER_G + 0x18, &other_L, 8);
		put(&ranges[i], OTHER_L + 0x10, &other_g, 8);
		put(&ranges[i], OTHER_L + 0x18, &now.base, 8);
		put(&ranges[i], OTHER_L + 0x20, &top, 8);
		put(&ranges[i], OTHER_L + 0x28, &end, 8);
		put(&ranges[i], OTHER_L + 0x30, &now.stack, 8);
		put(&ranges[i], OTHER_L + 0x38, &other_cframe, 8);
		put(&ranges[i], OTHER_L + 0x48, &slots, 4);
		put(&ranges[i], OTHER_L + 0x9, &gct, 1);
		ranges[i].status = MEMORY_OK;
	}
}

static struct memory memory = { .read_ranges = read_ranges };

/*---- What is copied is what there is now; then the thread moves on ----*/

INSTEAD_OF(capture_stacks);
void __wrap_capture_stacks(struct capture *capture, const struct capture_process *process,
			   const struct registers *registers, struct capture_hints *hints)
{
	uint8_t bytes[0x80];

	(void)process;
	assert_int_equal(registers->sp, hints->g == G ? now.cframe : other_cframe);
	memset(capture, 0, sizeof(*capture));
	assert_true(capture_load_view(&memory, hints->g == G ? &global : &other, &capture->globals[0]));
	capture->global_count = 1;
	assert_int_equal(memory_read(&memory, hints->g == G ? L : OTHER_L, bytes, sizeof(bytes)), MEMORY_OK);
	assert_true(lua_thread_load(&capture->threads[0], hints->g == G ? &global : &other,
				    hints->g == G ? L : OTHER_L, bytes));
	capture->thread_count = 1;
	now = later;
	other_cframe = later_other_cframe;
}

INSTEAD_OF(capture_functions);
void __wrap_capture_functions(struct capture *capture, struct lua_objects *objects)
{
	(void)capture;
	(void)objects;
}

INSTEAD_OF(capture_finish);
void __wrap_capture_finish(struct capture *capture, struct capture_hints *hints)
{
	(void)capture;
	(void)hints;
}

INSTEAD_OF(lua_objects_begin);
void __wrap_lua_objects_begin(struct lua_objects *objects, bool rehearsal)
{
	(void)objects;
	(void)rehearsal;
}

INSTEAD_OF(snapshot_seal);
void __wrap_snapshot_seal(struct snapshot *snapshot)
{
	(void)snapshot;
}

INSTEAD_OF(lua_image_count);
size_t __wrap_lua_image_count(const struct lua_image *lua)
{
	(void)lua;
	return state_count;
}

INSTEAD_OF(lua_image_global);
struct global_state *__wrap_lua_image_global(const struct lua_image *lua, size_t index)
{
	(void)lua;
	return index == 0 ? &global : &other;
}

static struct native_stack native_stack;
static struct capture captured;
static struct capture_hints hints;

static enum capture_verdict capture(void)
{
	const struct capture_process process = { .lua = NULL };

	return capture_running(&captured, &process, &memory, &native_stack, &hints);
}

static int make_up(void **state)
{
	(void)state;
	for (size_t i = 0; i < layout_field_count; i++)
		*layout_offset_in(&vm.layout, &layout_fields[i]) = LAYOUT_ABSENT;
	vm.layout.gc64 = true;
	vm.layout.g_vmstate = 0x10;
	vm.layout.g_cur_L = 0x18;
	vm.layout.g_jit_base = 0x20;
	vm.layout.L_size = 0x80;
	vm.layout.L_glref = 0x10;
	vm.layout.L_base = 0x18;
	vm.layout.L_top = 0x20;
	vm.layout.L_maxstack = 0x28;
	vm.layout.L_stack = 0x30;
	vm.layout.L_cframe = 0x38;
	vm.layout.L_status = 0x40;
	vm.layout.L_stacksize = 0x48;
	vm.layout.GChead_gct = 0x9;
	global = (struct global_state){ .g = G, .vm = &vm };
	now = (struct state){
		.vmstate = ~0,
		.cur_L = L,
		.base = LUA_STACK + 0x100,
		.cframe = C_STACK + 0x800,
		.stack = LUA_STACK,
	};
	later = now;
	state_count = 1;
	other = (struct global_state){ .g = OTHER_G, .vm = &vm };
	other_cframe = later_other_cframe = 0;
	hints = (struct capture_hints){ 0 };
	native_stack.range = (struct memory_range){ .address = C_STACK, .length = C_STACK_BYTES };
	native_stack.sure = native_stack.range;
	return 0;
}

static void thread_that_has_not_moved_holds(void **state)
{
	(void)state;
	assert_int_equal(capture(), CAPTURE_WHOLE);
}

static void thread_that_has_moved_is_torn(void **state)
{
	(void)state;
	later.base += 0x20;
	assert_int_equal(capture(), CAPTURE_TORN);
	make_up(NULL);
	later.cframe += 0x40;
	assert_int_equal(capture(), CAPTURE_TORN);
	make_up(NULL);
	later.stack += 0x40;
	assert_int_equal(capture(), CAPTURE_TORN);
	make_up(NULL);
	later.vmstate = 3;
	assert_int_equal(capture(), CAPTURE_TORN);
	make_up(NULL);
	later.jit_base = LUA_STACK + 0x80;
	assert_int_equal(capture(), CAPTURE_TORN);
	make_up(NULL);
	later.status = 1;
	assert_int_equal(capture(), CAPTURE_TORN);
	make_up(NULL);
	later.cur_L = 0;
	assert_int_equal(capture(), CAPTURE_TORN);
}

static void thread_on_another_stack_is_none_of_its(void **state)
{
	(void)state;
	now.cframe = later.cframe = C_STACK + C_STACK_BYTES;
	assert_int_equal(capture(), CAPTURE_NO_LUA);
	now.cframe = later.cframe = 0;
	assert_int_equal(capture(), CAPTURE_NO_LUA);
}

/* Two states have frames: the first one at C_STACK + 0x800. */
static enum capture_verdict capture_beside(uint64_t cframe)
{
	state_count = 2;
	other_cframe = later_other_cframe = cframe;
	return capture();
}

static void the_innermost_state_of_a_stack_runs(void **state)
{
	(void)state;
	/* Whichever ran last time. */
	for (int last = 0; last < 3; last++) {
		hints.g = last == 0 ? 0 : last == 1 ? G : OTHER_G;
		assert_int_equal(capture_beside(C_STACK + 0x700), CAPTURE_WHOLE);
		assert_int_equal(hints.g, OTHER_G);
		assert_ptr_equal(captured.running->global, &other);
		assert_true(captured.running_was_called);
		assert_int_equal(capture_beside(C_STACK + 0x900), CAPTURE_WHOLE);
		assert_int_equal(hints.g, G);
		assert_ptr_equal(captured.running->global, &global);
		assert_true(captured.running_was_called);
	}
}

static void a_state_on_another_stack_does_not_matter(void **state)
{
	(void)state;
	hints.g = OTHER_G;
	assert_int_equal(capture_beside(C_STACK - 0x100), CAPTURE_WHOLE);
	assert_int_equal(hints.g, G);
	assert_false(captured.running_was_called);
	assert_int_equal(capture_beside(0), CAPTURE_WHOLE);
	assert_int_equal(hints.g, G);
	now.cframe = later.cframe = C_STACK + C_STACK_BYTES;
	assert_int_equal(capture_beside(C_STACK + 0x900), CAPTURE_WHOLE);
	assert_int_equal(hints.g, OTHER_G);
}

static void which_of_several_states_runs_may_be_unknown(void **state)
{
	(void)state;
	native_stack.sure = (struct memory_range){ .address = C_STACK, .length = 0x850 };
	assert_int_equal(capture_beside(C_STACK + 0x900), CAPTURE_UNSURE);
	assert_int_equal(capture_beside(C_STACK + 0x700), CAPTURE_WHOLE);
	native_stack.sure.length = 0;
	assert_int_equal(capture_beside(C_STACK + 0x700), CAPTURE_UNSURE);
	/* One alone is most likely the thread's. */
	assert_int_equal(capture_beside(0), CAPTURE_WHOLE);
}

static void a_state_that_is_called_meanwhile_tears_the_copy(void **state)
{
	(void)state;
	state_count = 2;
	later_other_cframe = C_STACK + 0x700;
	assert_int_equal(capture(), CAPTURE_TORN);
	other_cframe = C_STACK + 0x900;
	later_other_cframe = 0;
	assert_int_equal(capture(), CAPTURE_TORN);
}

/*---- LuaJIT 2.0 has jit_L, and no cur_L ----*/

static void jit_L_says_which_thread_a_trace_runs_for(void **state)
{
	struct global_view view;

	(void)state;
	vm.layout.g_cur_L = LAYOUT_ABSENT;
	vm.layout.g_jit_L = 0x28;
	now.jit_L = L;
	now.jit_base = LUA_STACK + 0x80;
	assert_true(capture_load_view(&memory, &global, &view));
	assert_int_equal(view.cur_L, L);
	assert_int_equal(view.jit_base, LUA_STACK + 0x80);
}

/* Nothing clears jit_base; it is of a trace that has ended, except while a trace is being left. */
static void jit_base_without_jit_L_is_left_over(void **state)
{
	struct global_view view;

	(void)state;
	vm.layout.g_cur_L = LAYOUT_ABSENT;
	vm.layout.g_jit_L = 0x28;
	now.jit_base = LUA_STACK + 0x80;
	assert_true(capture_load_view(&memory, &global, &view));
	assert_int_equal(view.cur_L, 0);
	assert_int_equal(view.jit_base, 0);
	now.vmstate = VMST_EXIT;
	assert_true(capture_load_view(&memory, &global, &view));
	assert_int_equal(view.jit_base, LUA_STACK + 0x80);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(thread_that_has_not_moved_holds, make_up),
		cmocka_unit_test_setup(thread_that_has_moved_is_torn, make_up),
		cmocka_unit_test_setup(thread_on_another_stack_is_none_of_its, make_up),
		cmocka_unit_test_setup(the_innermost_state_of_a_stack_runs, make_up),
		cmocka_unit_test_setup(a_state_on_another_stack_does_not_matter, make_up),
		cmocka_unit_test_setup(which_of_several_states_runs_may_be_unknown, make_up),
		cmocka_unit_test_setup(a_state_that_is_called_meanwhile_tears_the_copy, make_up),
		cmocka_unit_test_setup(jit_L_says_which_thread_a_trace_runs_for, make_up),
		cmocka_unit_test_setup(jit_base_without_jit_L_is_left_over, make_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

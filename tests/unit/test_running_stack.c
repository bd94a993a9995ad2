/* SPDX-License-Identifier: MIT */
/* Whose stack tells where the Lua of a VM stands. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "luajit-layouts/vmstate.h"
#include "src/heap/running_stack.h"
#include "tests/unit/instead_of.h"
#include "unwind/capture/capture.h"

enum {
	G = 0x1000,
	THREAD = 0x2000,
	CFRAME_AT = 8,
	STACK = 0x7000,
	CFRAME = 0x7800,
	STACK_END = 0x8000,
	TID = 5
};

static struct global_view view;
static uint64_t sp;
static unsigned int captures;

/* All words of the copy are the C frame; the process itself cannot be read. */
static void read_copy(struct memory *memory, struct memory_range *ranges, size_t count)
{
	(void)memory;
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(ranges[i].address, THREAD + CFRAME_AT);
		*(uint64_t *)ranges[i].copy = CFRAME;
		ranges[i].status = MEMORY_OK;
	}
}

static struct memory copy = { .read_ranges = read_copy };

INSTEAD_OF(capture_load_view);
bool __wrap_capture_load_view(struct memory *memory, struct global_state *global,
			      struct global_view *ret_view)
{
	assert_ptr_equal(memory, &copy);
	*ret_view = view;
	ret_view->global = global;
	return true;
}

INSTEAD_OF(hold_find_on_stack);
bool __wrap_hold_find_on_stack(const struct hold *hold, uint64_t address, pid_t *ret_tid,
			       struct registers *ret_registers)
{
	(void)hold;
	assert_int_equal(address, CFRAME);
	*ret_tid = TID;
	*ret_registers = (struct registers){ .sp = sp };
	return sp != 0;
}

INSTEAD_OF(lua_process_maps);
const struct maps *__wrap_lua_process_maps(const struct lua_process *process)
{
	(void)process;
	return NULL;
}

INSTEAD_OF(maps_find);
const struct mapping *__wrap_maps_find(const struct maps *maps, uint64_t address)
{
	static const struct mapping stack = { .begin = STACK, .end = STACK_END };

	(void)maps;
	return address >= STACK && address < STACK_END ? &stack : NULL;
}

INSTEAD_OF(lua_process_capture);
void __wrap_lua_process_capture(struct lua_process *process, const struct registers *registers,
				struct capture_hints *hints)
{
	(void)process;
	assert_int_equal(registers->sp, sp);
	assert_int_equal(hints->tid, TID);
	captures++;
}

static bool is_captured(void)
{
	static const struct vm_code vm = { .layout = { .gc64 = true, .L_cframe = CFRAME_AT } };
	const struct global_state global = { .g = G, .vm = &vm };
	struct running_stack stack = { .is_captured = true };

	captures = 0;
	running_stack_capture(&stack, NULL, &copy, &global, NULL);
	assert_int_equal(captures, stack.is_captured);
	return stack.is_captured;
}

static int begin(void **state)
{
	(void)state;
	view = (struct global_view){ .cur_L = THREAD, .vmstate = VMST_INTERP };
	sp = CFRAME - 0x100;
	return 0;
}

static void the_thread_on_the_stack_of_the_c_frame_is_captured(void **state)
{
	(void)state;
	assert_true(is_captured());
	sp = CFRAME;
	assert_true(is_captured());
	sp = STACK;
	assert_true(is_captured());
	sp = 0;
	assert_false(is_captured());
}

/* The VM's own thread is not known then. */
static void the_nearest_thread_may_be_on_another_stack(void **state)
{
	(void)state;
	sp = STACK - 8;
	assert_false(is_captured());
}

static void the_copy_tells_which_trace_runs(void **state)
{
	(void)state;
	view.jit_base = 0x9000;
	view.vmstate = 1;
	assert_false(is_captured());
	view.vmstate = VMST_EXIT;
	assert_true(is_captured());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(the_thread_on_the_stack_of_the_c_frame_is_captured, begin),
		cmocka_unit_test_setup(the_nearest_thread_may_be_on_another_stack, begin),
		cmocka_unit_test_setup(the_copy_tells_which_trace_runs, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* What the VM and its collector did, by where a thread was stopped, its frames, and g->vmstate. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "luajit-layouts/vmstate.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/made_up_states.h"
#include "unwind/stack/merge_state.h"

enum {
	IN_VM = VM_AT + 8,
	IN_TRACE = FREE_AT + 0x10,
	IN_STUB = FREE_AT + 0x110,
	IN_OTHER = FREE_AT + 0x210, /* code that anybody may have made */
	JIT_BASE = SLOTS_AT + 0x40,
	HEAP_BYTES = 123456,
};

static const struct trace trace = { .number = 1, .mcode = IN_TRACE - 8, .szmcode = 16 };

INSTEAD_OF(traces_find);
const struct trace *__wrap_traces_find(const struct traces *traces, uint64_t pc)
{
	(void)traces;
	return pc == IN_TRACE ? &trace : NULL;
}

INSTEAD_OF(traces_is_exit);
bool __wrap_traces_is_exit(const struct traces *traces, const struct layout *layout, uint64_t pc)
{
	(void)traces;
	(void)layout;
	return pc == IN_STUB;
}

static struct merged_stack stack;

static struct global_view *view(void)
{
	return &states.capture.globals[0];
}

/* State 0 has a thread, and was stopped here. */
static int begin(void **state)
{
	const int status = states_begin(state);
	struct global_state *global = lua_image_global(states.lua, 0);

	global->traces = traces_new();
	states.capture.global_count = 1;
	*view() = (struct global_view){ .global = global, .vmstate = VMST_C, .gc_total = HEAP_BYTES };
	states.capture.thread_count = 1;
	states.capture.threads[0].global = global;
	return global->traces ? status : -1;
}

static int end(void **state)
{
	merged_stack_clear(&stack);
	return states_end(state);
}

/* The stack has these frames, the leaf first. */
static void set_frames(const enum merged_kind *kinds, size_t count)
{
	merged_stack_begin(&stack, VM_STATE_NONE);
	for (size_t i = 0; i < count; i++)
		assert_non_null(merged_stack_add(&stack, kinds[i]));
}

#define FRAMES(...) \
	set_frames((const enum merged_kind[]){ __VA_ARGS__ }, \
		   sizeof((const enum merged_kind[]){ __VA_ARGS__ }) / sizeof(enum merged_kind))

static enum vm_state state_at(uint64_t pc, int32_t vmstate)
{
	states.capture.registers.pc = pc;
	view()->vmstate = vmstate;
	return merge_vm_state(&states.capture, states.image, &stack);
}

static void a_stack_without_lua_has_no_state(void **state)
{
	(void)state;
	FRAMES(MERGED_NATIVE, MERGED_VM, MERGED_TRACE);
	assert_int_equal(state_at(NATIVE_CODE, VMST_GC), VM_STATE_NONE);
	merged_stack_add_lost(&stack, LOST_NATIVE_UNWIND);
	assert_int_equal(state_at(NATIVE_CODE, VMST_GC), VM_STATE_NONE);
	merged_stack_add_lost(&stack, LOST_STATE_UNKNOWN);
	assert_int_equal(state_at(NATIVE_CODE, VMST_GC), VM_STATE_UNKNOWN);
	/* Of the stack before, nothing counts. */
	FRAMES(MERGED_NATIVE, MERGED_VM, MERGED_TRACE, MERGED_NATIVE);
	assert_int_equal(state_at(NATIVE_CODE, VMST_GC), VM_STATE_NONE);
	merged_stack_begin(&stack, VM_STATE_NONE);
	assert_int_equal(state_at(NATIVE_CODE, VMST_GC), VM_STATE_NONE);
	FRAMES(MERGED_NATIVE, MERGED_LUA);
	assert_int_equal(state_at(NATIVE_CODE, VMST_GC), VM_STATE_GC);
	FRAMES(MERGED_C_FUNCTION);
	assert_int_equal(state_at(NATIVE_CODE, VMST_GC), VM_STATE_GC);
}

static void in_native_code_the_vm_says_what_it_does(void **state)
{
	static const struct {
		int32_t vmstate;
		enum vm_state expected;
	} cases[] = {
		{ VMST_C, VM_STATE_C },
		{ VMST_INTERP, VM_STATE_C },
		{ VMST_GC, VM_STATE_GC },
		{ VMST_RECORD, VM_STATE_RECORDING },
		{ VMST_EXIT, VM_STATE_EXIT },
		{ VMST_OPT, VM_STATE_OPTIMISING },
		{ 1, VM_STATE_C },
		{ VMST_ASM, VM_STATE_ASSEMBLING },
	};

	(void)state;
	FRAMES(MERGED_NATIVE, MERGED_LUA);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(state_at(NATIVE_CODE, cases[i].vmstate), cases[i].expected);
	/* Code that was made at run time, and is known to have been called. */
	assert_int_equal(state_at(IN_OTHER, VMST_GC), VM_STATE_GC);
	states.capture.global_count = 0;
	assert_int_equal(state_at(NATIVE_CODE, VMST_GC), VM_STATE_UNKNOWN);
}

static void in_the_vms_code_it_interprets_or_leaves_a_trace(void **state)
{
	(void)state;
	FRAMES(MERGED_VM, MERGED_LUA, MERGED_TRACE);
	assert_int_equal(state_at(IN_VM, VMST_INTERP), VM_STATE_INTERPRETED);
	assert_int_equal(state_at(IN_VM, VMST_C), VM_STATE_INTERPRETED);
	assert_int_equal(state_at(IN_VM, VMST_GC), VM_STATE_INTERPRETED);
	assert_int_equal(state_at(IN_VM, VMST_EXIT), VM_STATE_EXIT);
	assert_int_equal(state_at(IN_VM, 0), VM_STATE_EXIT);
	assert_int_equal(state_at(IN_VM, 1), VM_STATE_EXIT);
	/* A trace has called a routine of the VM. */
	FRAMES(MERGED_VM, MERGED_TRACE, MERGED_LUA);
	assert_int_equal(state_at(IN_VM, 0), VM_STATE_COMPILED);
	assert_int_equal(state_at(IN_VM, 1), VM_STATE_COMPILED);
	assert_int_equal(state_at(IN_VM, VMST_EXIT), VM_STATE_EXIT);
	FRAMES(MERGED_LUA);
	assert_int_equal(state_at(IN_VM, 1), VM_STATE_EXIT);
	states.capture.global_count = 0;
	assert_int_equal(state_at(IN_VM, 1), VM_STATE_INTERPRETED);
}

static void code_in_no_module_may_be_a_trace(void **state)
{
	(void)state;
	FRAMES(MERGED_TRACE, MERGED_LUA);
	assert_int_equal(state_at(IN_TRACE, VMST_C), VM_STATE_COMPILED);
	assert_int_equal(state_at(IN_STUB, VMST_C), VM_STATE_EXIT);
	assert_int_equal(state_at(IN_OTHER, VMST_C), VM_STATE_UNKNOWN);
	view()->jit_base = JIT_BASE;
	assert_int_equal(state_at(IN_OTHER, VMST_C), VM_STATE_COMPILED);
	/* Native code whose caller is lost, or that is all there is, might be one as well. */
	FRAMES(MERGED_NATIVE, MERGED_LOST, MERGED_LUA);
	assert_int_equal(state_at(IN_OTHER, VMST_GC), VM_STATE_COMPILED);
	FRAMES(MERGED_LUA, MERGED_NATIVE);
	assert_int_equal(state_at(IN_OTHER, VMST_GC), VM_STATE_COMPILED);
	states.capture.thread_count = 0;
	assert_int_equal(state_at(IN_STUB, VMST_C), VM_STATE_UNKNOWN);
}

static void the_innermost_view_is_that_of_what_runs(void **state)
{
	(void)state;
	assert_ptr_equal(merge_innermost_view(&states.capture), view());
	states.capture.thread_count = 0;
	assert_null(merge_innermost_view(&states.capture));
	states.capture.running = &states.capture.globals[1];
	assert_ptr_equal(merge_innermost_view(&states.capture), &states.capture.globals[1]);
	states.capture.thread_count = 1;
	assert_ptr_equal(merge_innermost_view(&states.capture), &states.capture.globals[1]);
}

static enum gc_phase phase_at(uint8_t gc_state)
{
	view()->gc_state = gc_state;
	return merge_gc(&states.capture, VM_STATE_GC).phase;
}

static void the_collector_says_what_it_does(void **state)
{
	struct sample_gc gc;

	(void)state;
	assert_int_equal(phase_at(GCSpause), GC_PHASE_MARK);
	assert_int_equal(phase_at(GCSpropagate), GC_PHASE_MARK);
	assert_int_equal(phase_at(GCSatomic), GC_PHASE_ATOMIC);
	assert_int_equal(phase_at(GCSsweepstring), GC_PHASE_SWEEP_STRINGS);
	assert_int_equal(phase_at(GCSsweep), GC_PHASE_SWEEP);
	assert_int_equal(phase_at(GCSfinalize), GC_PHASE_FINALIZE);
	assert_int_equal(phase_at(GCSfinalize + 1), GC_PHASE_UNKNOWN);
	gc = merge_gc(&states.capture, VM_STATE_C);
	assert_int_equal(gc.phase, GC_PHASE_NONE);
	assert_int_equal(gc.heap_bytes, HEAP_BYTES);
	view()->hookmask = (uint8_t)~HOOK_GC;
	assert_int_equal(merge_gc(&states.capture, VM_STATE_C).phase, GC_PHASE_NONE);
	view()->hookmask = HOOK_GC; /* a finalizer runs, whatever the VM does for it */
	assert_int_equal(merge_gc(&states.capture, VM_STATE_C).phase, GC_PHASE_FINALIZE);
	gc = merge_gc(&states.capture, VM_STATE_NONE);
	assert_int_equal(gc.phase, GC_PHASE_NONE);
	assert_int_equal(gc.heap_bytes, 0);
	states.capture.thread_count = 0;
	assert_int_equal(merge_gc(&states.capture, VM_STATE_GC).heap_bytes, 0);
}

static bool has_marked(uint8_t white)
{
	view()->gc_currentwhite = white;
	return merge_gc(&states.capture, VM_STATE_C).has_marked;
}

static void another_white_says_that_a_marking_has_ended(void **state)
{
	(void)state;
	assert_false(has_marked(1)); /* the first look */
	assert_false(has_marked(1));
	assert_true(has_marked(2));
	assert_false(has_marked(2));
	assert_true(has_marked(1));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_stack_without_lua_has_no_state),
		TEST(in_native_code_the_vm_says_what_it_does),
		TEST(in_the_vms_code_it_interprets_or_leaves_a_trace),
		TEST(code_in_no_module_may_be_a_trace),
		TEST(the_innermost_view_is_that_of_what_runs),
		TEST(the_collector_says_what_it_does),
		TEST(another_white_says_that_a_marking_has_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* What the interpreter's native frames stand for, and where the walk goes on from them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "luajit-layouts/vmstate.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/made_up_calls.h"
#include "tests/unit/made_up_native.h"
#include "unwind/lua/luajit.h"
#include "unwind/stack/merge_trace.h"
#include "unwind/stack/merge_vm.h"
#include "unwind/vm/vm_frame.h"

enum {
	FRAME = C_STACK_AT + 0x400,
	FRAME_SIZE = 80,
	FURTHER = FRAME + 0x400, /* of another C frame */
	IN_VM = VM_AT + 8,
	CALL_AT = VM_AT + 0x100, /* where a call by the VM returns to */
	RUNS = 8,
	SAVED = 9,
	CALLER = NATIVE_CODE + 0x40, /* code that called the VM */
	TRACE_AT = FREE_AT,
	SPADJUST = 32,
};

static const struct trace trace = { .number = 1, .mcode = TRACE_AT, .szmcode = 0x80, .spadjust = SPADJUST };

/*---- What the code at a pc does ----*/

static struct {
	bool entering, linking, exiting, calling_to_link, leaving_callback, called, has_exited, in_trace;
} code;

INSTEAD_OF(vm_is_entering_or_leaving);
bool __wrap_vm_is_entering_or_leaving(const struct layout *layout, struct memory *text, struct memory *memory,
				      const struct registers *registers, struct registers *ret_caller)
{
	(void)layout;
	(void)text;
	(void)memory;
	if (code.entering)
		*ret_caller = (struct registers){ .pc = CALLER, .sp = registers->sp + 8 };
	return code.entering;
}

INSTEAD_OF(vm_is_linking);
bool __wrap_vm_is_linking(struct memory *text, const struct vm_code *vm, uint64_t pc)
{
	(void)text;
	(void)vm;
	(void)pc;
	return code.linking;
}

INSTEAD_OF(vm_is_exiting);
bool __wrap_vm_is_exiting(const struct layout *layout, struct memory *text, uint64_t return_address)
{
	(void)layout;
	(void)text;
	(void)return_address;
	return code.exiting;
}

INSTEAD_OF(vm_calls_to_link);
bool __wrap_vm_calls_to_link(struct memory *text, const struct vm_code *vm, uint64_t return_address)
{
	(void)text;
	(void)vm;
	(void)return_address;
	return code.calling_to_link;
}

INSTEAD_OF(vm_is_leaving_callback);
bool __wrap_vm_is_leaving_callback(const struct layout *layout, struct memory *text, const struct vm_code *vm,
				   uint64_t return_address)
{
	(void)layout;
	(void)text;
	(void)vm;
	(void)return_address;
	return code.leaving_callback;
}

INSTEAD_OF(vm_is_called);
bool __wrap_vm_is_called(struct memory *text, const struct vm_code *vm, uint64_t return_address)
{
	(void)text;
	(void)vm;
	(void)return_address;
	return code.called;
}

INSTEAD_OF(merge_pass_trace_exit);
enum passed __wrap_merge_pass_trace_exit(struct merge *merge, const struct vm_code *vm)
{
	(void)merge;
	(void)vm;
	code.has_exited = true;
	return PASSED_ON;
}

INSTEAD_OF(traces_find);
const struct trace *__wrap_traces_find(const struct traces *traces, uint64_t pc)
{
	(void)traces;
	return code.in_trace && pc - trace.mcode < trace.szmcode ? &trace : NULL;
}

/*---- The thread ----*/

static struct merge merge;
static struct merged_stack stack;

static struct global_view *view(void)
{
	return &states.capture.globals[0];
}

/* C code has called function 0, that function 1, and that function 2, a C function. */
static void put_calls(size_t thread, uint64_t cframe, uint64_t return_address)
{
	put_thread(thread, 0, cframe);
	if (cframe) {
		put_cframe(cframe, thread_at(thread), 0, return_address);
		put_word(cframe + (uint64_t)states.vm.layout.CFRAME_PC, pc_in(1, SAVED));
	}
	put_three_frames(thread, put_c_function(2));
	put_base(thread, MIDDLE, INNER + 4);
}

static int begin(void **state)
{
	const int status = states_begin(state);
	struct global_state *global = lua_image_global(states.lua, 0);

	memset(&code, 0, sizeof(code));
	put_calls(0, FRAME, CALLER);
	put_g(0, thread_at(0));
	global->traces = traces_new();
	states.vm.traces_open = true; /* there are none to read */
	return global->traces ? status : -1;
}

static int end(void **state)
{
	merged_stack_clear(&stack);
	return states_end(state);
}

/* Copy the thread, and stand in the VM's code: at its leaf, or where a call by it returns to. */
static void stand(bool is_leaf)
{
	states_capture();
	merged_stack_begin(&stack, VM_STATE_NONE);
	merge = (struct merge){ .capture = &states.capture,
				.image = states.image,
				.memory = snapshot_memory(states.process.snapshot) };
	lua_sections_begin(&merge.lua, &states.capture, states.process.objects, &stack);
	native = (struct native_frame){ .registers = { .pc = is_leaf ? IN_VM : CALL_AT, .sp = FRAME },
					.is_return_address = !is_leaf,
					.code = CODE_VM };
	native.registers.rdx = native.registers.rbp = base_of(0, INNER);
	native.registers.rbx = pc_in(1, IN_MIDDLE);
	native.registers.r14 = g_at(0) + DISPATCH_AT;
}

static enum passed pass_leaf(void)
{
	return merge_pass_vm_leaf(&merge, &states.vm);
}

static enum passed pass_caller(void)
{
	return merge_pass_vm_caller(&merge, &states.vm);
}

/* The walk goes on at the code that called the VM in this frame. */
static void check_left(uint64_t cframe)
{
	assert_int_equal(native.registers.pc, CALLER);
	assert_int_equal(native.registers.sp, cframe + FRAME_SIZE);
	assert_true(native.is_return_address);
}

/* The frames of put_calls() from function 1 on, which is at this instruction. */
static void check_two(size_t index, uint64_t pc)
{
	assert_int_equal(stack.count, index + 2);
	assert_int_equal(stack.frames[index].kind, MERGED_LUA);
	assert_int_equal(stack.frames[index].function->address, function_at(1));
	assert_int_equal(stack.frames[index].pc, pc);
	assert_int_equal(stack.frames[index + 1].function->address, function_at(0));
	assert_int_equal(stack.frames[index + 1].pc, bytecode_at(0, IN_OUTER));
}

static void check_three(void)
{
	assert_true(stack.count > 0);
	assert_int_equal(stack.frames[0].kind, MERGED_C_FUNCTION);
	assert_int_equal(stack.frames[0].function->address, function_at(2));
	check_two(1, bytecode_at(1, IN_MIDDLE));
}

static void check_lost(size_t index, enum lost_reason reason)
{
	assert_in_range(index, 0, stack.count - 1);
	assert_int_equal(stack.frames[index].kind, MERGED_LOST);
	assert_int_equal(stack.frames[index].lost, reason);
}

/*---- Leaves ----*/

static void a_leaf_stands_for_the_frames_that_run_in_it(void **state)
{
	(void)state;
	stand(true);
	assert_int_equal(pass_leaf(), PASSED_ON);
	check_three();
	check_left(FRAME);
	stand(true); /* in a subroutine of the VM */
	native.registers.sp = FRAME - 8;
	assert_int_equal(pass_leaf(), PASSED_ON);
	check_three();
	check_left(FRAME);
}

static void a_frame_under_construction_has_no_lua(void **state)
{
	(void)state;
	stand(true);
	code.entering = true;
	assert_int_equal(pass_leaf(), PASSED_ON);
	assert_int_equal(stack.count, 0);
	assert_int_equal(native.registers.pc, CALLER);
	code.entering = false;
	code.linking = true;
	put_cframe(FURTHER, FREE_AT, 0, CALLER);
	stand(true);
	native.registers.sp = FURTHER;
	assert_int_equal(pass_leaf(), PASSED_ON);
	assert_int_equal(stack.count, 0);
	check_left(FURTHER);
	code.linking = false;
	stand(true);
	native.registers.sp = FURTHER;
	assert_int_equal(pass_leaf(), PASSED_LOST);
}

static void what_cannot_be_finished_is_half_done(void **state)
{
	(void)state;
	stand(true);
	merge.is_half_done = true;
	assert_int_equal(pass_leaf(), PASSED_ON);
	assert_int_equal(stack.count, 1);
	check_lost(0, LOST_HALF_DONE);
	assert_false(merge.is_half_done);
	assert_true(lua_section_of(&merge.lua, &states.capture.threads[0])->ended);
	check_left(FRAME);
}

static void a_frame_of_lua_cpcall_runs_no_lua(void **state)
{
	(void)state;
	put(FRAME + (uint64_t)states.vm.layout.CFRAME_NRES, (uint32_t)-1, 4);
	stand(true);
	assert_int_equal(pass_leaf(), PASSED_ON);
	assert_int_equal(stack.count, 0);
	assert_false(lua_section_of(&merge.lua, &states.capture.threads[0])->started);
	check_left(FRAME);
}

/* Its call has no Lua frame yet, or no longer: the C function that called it comes behind native frames. */
static void a_call_from_c_that_has_no_frame_lies_below_native_code(void **state)
{
	(void)state;
	put_base(0, INNER, INNER + 4);
	put_cframe(FRAME, thread_at(0), FURTHER, CALLER);
	put_cframe(FURTHER, thread_at(0), 0, CALLER);
	stand(true);
	assert_int_equal(pass_leaf(), PASSED_ON);
	assert_int_equal(stack.count, 0);
	stand(false);
	native.registers.sp = FURTHER;
	merge.lua.section[0].started = true;
	merge.lua.section[0].walk = (struct lua_walk){ .thread = &states.capture.threads[0],
						       .objects = states.process.objects,
						       .base = base_of(0, INNER) };
	assert_int_equal(pass_caller(), PASSED_ON);
	check_three();
	/* Each C frame has a call: none is missing. */
	put_cframe(FRAME, thread_at(0), 0, CALLER);
	stand(true);
	pass_leaf();
	check_three();
}

/* The C frame outwards has a call that is no longer on the stack; what runs has one of its own. */
/* How many calls there are is not known: the frames up to the break are those that run here. */
static void below_a_break_no_call_is_missing(void **state)
{
	(void)state;
	put_base(0, INNER, INNER + 4);
	put_slot(0, OUTER - 1, UINT64_MAX); /* where function 0 was called from */
	put_cframe(FRAME, thread_at(0), FURTHER, CALLER);
	put_cframe(FURTHER, thread_at(0), 0, CALLER);
	stand(true);
	assert_int_equal(pass_leaf(), PASSED_ON);
	assert_int_equal(stack.count, 4);
	assert_int_equal(stack.frames[0].function->address, function_at(2));
	assert_int_equal(stack.frames[2].function->address, function_at(0));
	check_lost(3, LOST_BROKEN_CHAIN);
}

static void a_lua_function_on_top_is_what_c_has_called(void **state)
{
	(void)state;
	put_cframe(FRAME, thread_at(0), FURTHER, CALLER);
	put_cframe(FURTHER, thread_at(0), 0, CALLER);
	stand(true);
	native.registers.rdx = native.registers.rbp = base_of(0, MIDDLE);
	assert_int_equal(pass_leaf(), PASSED_ON);
	check_two(0, bytecode_at(1, IN_MIDDLE));
}

/*---- Routines of the VM ----*/

static void a_routine_that_c_has_called_has_no_lua(void **state)
{
	const uint64_t sp = FRAME - 0x100;

	(void)state;
	put_word(sp, CALLER);
	stand(true);
	native.registers.sp = sp;
	assert_true(merge_is_routine_of_c(&merge, &states.vm));
	assert_int_equal(pass_leaf(), PASSED_ON);
	assert_int_equal(stack.count, 0);
	assert_int_equal(native.registers.pc, CALLER);
	assert_int_equal(native.registers.sp, sp + 8);
	/* It is none that was called by C, or it is no routine. */
	put_word(sp, TRACE_AT + 8);
	stand(true);
	native.registers.sp = sp;
	assert_false(merge_is_routine_of_c(&merge, &states.vm));
	assert_int_equal(pass_leaf(), PASSED_LOST);
	put_word(sp, CALLER);
	stand(true);
	assert_false(merge_is_routine_of_c(&merge, &states.vm)); /* the interpreter */
	native.registers.sp = sp;
	native.code = CODE_NATIVE;
	assert_false(merge_is_routine_of_c(&merge, &states.vm));
	native.code = CODE_VM;
	code.linking = true;
	assert_false(merge_is_routine_of_c(&merge, &states.vm));
	code.linking = false;
	code.entering = true;
	assert_false(merge_is_routine_of_c(&merge, &states.vm));
	code.entering = false;
	assert_true(merge_is_routine_of_c(&merge, &states.vm));
}

static void a_routine_that_a_trace_has_called_leads_to_the_trace(void **state)
{
	const uint64_t sp = vm_trace_sp(FRAME, SPADJUST) - 8;

	(void)state;
	code.in_trace = true;
	put_word(g_at(0) + (uint64_t)states.vm.layout.g_jit_base, base_of(0, MIDDLE));
	put_word(sp, TRACE_AT + 0x21);
	stand(true);
	native.registers.sp = sp;
	assert_int_equal(pass_leaf(), PASSED_ON);
	assert_int_equal(native.registers.pc, TRACE_AT + 0x21);
	assert_int_equal(native.registers.sp, sp + 8);
	assert_int_equal(stack.count, 0);
	/* Another stack pointer is not the trace's: the trace is left, and lost. */
	put_word(sp - 8, TRACE_AT + 0x21);
	stand(true);
	native.registers.sp = sp - 8;
	native.registers.rdx = 0;
	assert_int_equal(pass_leaf(), PASSED_ON);
	assert_int_equal(stack.count, 2);
	check_lost(0, LOST_IN_TRACE);
	assert_int_equal(stack.frames[1].function->address, function_at(0));
	/* C code that a trace called, only if it called the routine. */
	put_word(sp - 8, CALLER);
	code.called = true;
	stand(true);
	native.registers.sp = sp - 8;
	assert_int_equal(pass_leaf(), PASSED_ON);
	assert_int_equal(stack.count, 0);
	assert_int_equal(native.registers.pc, CALLER);
	assert_int_equal(native.registers.sp, sp);
}

static void on_the_way_out_of_a_trace_the_registers_have_the_frame(void **state)
{
	(void)state;
	put_word(g_at(0) + (uint64_t)states.vm.layout.g_jit_base, base_of(0, MIDDLE));
	stand(true);
	native.registers.sp = FRAME - 0x100;
	native.registers.rdx = base_of(0, MIDDLE);
	native.registers.rbx = bytecode_at(1, RUNS);
	assert_int_equal(pass_leaf(), PASSED_ON);
	check_two(0, bytecode_at(1, RUNS));
	check_left(FRAME);
}

/*---- Callers ----*/

static void code_that_the_vm_has_called_stands_on_its_frames(void **state)
{
	(void)state;
	stand(false);
	assert_int_equal(pass_caller(), PASSED_ON);
	check_three();
	check_left(FRAME);
	stand(false); /* a subroutine has called it */
	native.registers.sp = FRAME - 8;
	assert_int_equal(pass_caller(), PASSED_ON);
	check_three();
	check_left(FRAME);
	stand(false);
	native.registers.sp = FRAME - 16;
	view()->vmstate = VMST_GC; /* no error lands there */
	assert_int_equal(pass_caller(), PASSED_LOST);
}

/* A hook or the like has interrupted function 1; its position is in the C frame. */
static void a_frame_that_was_interrupted_goes_on_at_its_saved_position(void **state)
{
	(void)state;
	stand(false);
	lua_section_start(&merge.lua, &states.capture.threads[0], base_of(0, MIDDLE));
	assert_int_equal(pass_caller(), PASSED_ON);
	check_two(0, bytecode_at(1, SAVED));
	stand(false);
	lua_section_start(&merge.lua, &states.capture.threads[0], base_of(0, MIDDLE))->ended = true;
	assert_int_equal(pass_caller(), PASSED_ON);
	assert_int_equal(stack.count, 0);
	check_left(FRAME);
}

static void frames_that_are_not_linked_have_no_lua(void **state)
{
	(void)state;
	put_cframe(FURTHER, FREE_AT, 0, CALLER);
	stand(false);
	native.registers.sp = FURTHER;
	code.exiting = true;
	assert_int_equal(pass_caller(), PASSED_ON);
	assert_true(code.has_exited);
	code.exiting = false;
	code.calling_to_link = true;
	assert_int_equal(pass_caller(), PASSED_ON);
	check_left(FURTHER);
	code.calling_to_link = false;
	code.leaving_callback = true;
	stand(false);
	native.registers.sp = FURTHER;
	assert_int_equal(pass_caller(), PASSED_ON);
	check_left(FURTHER);
	assert_int_equal(stack.count, 0);
	/* Nothing tells what it is: a state that nobody knows may run there. */
	code.leaving_callback = false;
	stand(false);
	native.registers.sp = FURTHER;
	assert_int_equal(pass_caller(), PASSED_LOST);
}

/* The Lua frames that have called C code, and not those of the callback, go on in the C frame outwards. */
static void a_callback_that_returns_runs_no_lua_any_more(void **state)
{
	const struct lua_section *section = &merge.lua.section[0];

	(void)state;
	put_cframe(FRAME, thread_at(0), FURTHER, CALLER);
	put_cframe(FURTHER, thread_at(0), 0, CALLER);
	code.leaving_callback = true;
	stand(false);
	assert_int_equal(pass_caller(), PASSED_ON);
	assert_int_equal(stack.count, 0);
	check_left(FRAME);
	assert_true(section->started);
	assert_int_equal(section->walk.base, base_of(0, MIDDLE));
	/* Its frame is there while its result is converted. */
	put_frame(0, INNER, function_at(2), (INNER - MIDDLE) * SLOT_SIZE | FRAME_CONT);
	put_slot(0, INNER - 3, 0);
	put_slot(0, INNER - 4, CONT_FFI_CALLBACK);
	put_base(0, INNER, INNER + 4);
	stand(false);
	assert_int_equal(pass_caller(), PASSED_ON);
	assert_int_equal(stack.count, 0);
	assert_true(section->started);
	assert_int_equal(section->walk.base, base_of(0, MIDDLE));
	/* A frame that other C code has called is of those that go on. */
	put_frame(0, INNER, function_at(2), (INNER - MIDDLE) * SLOT_SIZE | FRAME_C);
	stand(false);
	assert_int_equal(pass_caller(), PASSED_ON);
	assert_int_equal(section->walk.base, base_of(0, INNER));
}

static void only_the_innermost_caller_returns_from_a_callback(void **state)
{
	(void)state;
	code.leaving_callback = true;
	stand(true);
	assert_int_equal(pass_leaf(), PASSED_ON);
	check_three();
	/* Nor does what has frames further in: those below are its own. */
	stand(false);
	merge.lua.section[0].started = true;
	merge.lua.section[0].walk = (struct lua_walk){ .thread = &states.capture.threads[0],
						       .objects = states.process.objects,
						       .base = base_of(0, INNER) };
	assert_int_equal(pass_caller(), PASSED_ON);
	check_three();
}

/* The thread goes on further out; the code that raised the error is still above. */
static void a_frame_that_an_error_has_unwound_has_no_lua(void **state)
{
	(void)state;
	put_calls(0, FURTHER, CALLER);
	put_cframe(FRAME, thread_at(0), FURTHER, CALLER);
	stand(false);
	assert_int_equal(states.capture.thread_count, 1);
	assert_int_equal(pass_caller(), PASSED_ON);
	assert_int_equal(stack.count, 0);
	check_left(FRAME);
	/* It links to elsewhere. */
	put_cframe(FRAME, thread_at(0), FURTHER + 0x100, CALLER);
	put_cframe(FURTHER + 0x100, thread_at(0), 0, CALLER);
	stand(false);
	view()->vmstate = VMST_GC; /* nor may it land */
	assert_int_equal(pass_caller(), PASSED_LOST);
	/* On an exit of a trace, the frame is a trace's. */
	put_cframe(FRAME, thread_at(0), FURTHER, CALLER);
	stand(false);
	view()->vmstate = VMST_EXIT;
	assert_int_equal(pass_caller(), PASSED_LOST);
	stand(false); /* the thread is not captured, or its state not */
	states.capture.global_count = 0;
	assert_int_equal(pass_caller(), PASSED_LOST);
	/* It has no C frame left: C gets the error. */
	put_calls(0, 0, CALLER);
	put_cframe(FRAME, thread_at(0), 0, CALLER);
	stand(false);
	assert_int_equal(states.capture.thread_count, 1);
	assert_int_equal(pass_caller(), PASSED_ON);
	check_left(FRAME);
}

/* The stack pointer of the landing is not the frame's. */
static enum passed land(void)
{
	stand(false);
	native.registers.sp = FRAME - 0x80;
	return pass_caller();
}

static void where_an_error_lands_the_stored_frame_counts(void **state)
{
	static const int32_t landing[] = { VMST_INTERP, VMST_C };
	static const int32_t others[] = { VMST_GC, VMST_EXIT, 1 };

	(void)state;
	for (size_t i = 0; i < sizeof(landing) / sizeof(landing[0]); i++) {
		put(g_at(0) + (uint64_t)states.vm.layout.g_vmstate, (uint32_t)landing[i], 4);
		assert_int_equal(land(), PASSED_ON);
		check_two(0, bytecode_at(1, SAVED));
		check_left(FRAME);
		native.registers.sp = FRAME - 0x80; /* its section has begun: it does not land again */
		assert_int_equal(pass_caller(), PASSED_LOST);
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		put(g_at(0) + (uint64_t)states.vm.layout.g_vmstate, (uint32_t)others[i], 4);
		assert_int_equal(land(), PASSED_LOST);
		assert_int_equal(stack.count, 0);
	}
	put_g(0, thread_at(0));
	put_base(0, SLOTS - 1, SLOTS); /* no frame is there */
	assert_int_equal(land(), PASSED_LOST);
}

static void while_it_compiles_the_recorded_instruction_counts(void **state)
{
	static const int32_t compiling[] = { VMST_RECORD, VMST_OPT, VMST_ASM };
	const struct layout *layout = &states.vm.layout;

	(void)state;
	put_word(g_at(0) + (uint64_t)(layout->GG_J + layout->J_pc), bytecode_at(1, RUNS));
	for (size_t i = 0; i < sizeof(compiling) / sizeof(compiling[0]); i++) {
		put(g_at(0) + (uint64_t)layout->g_vmstate, (uint32_t)compiling[i], 4);
		states_capture();
		assert_int_equal(land(), PASSED_ON);
		check_two(0, bytecode_at(1, RUNS));
	}
	put_word(g_at(0) + (uint64_t)(layout->GG_J + layout->J_pc), bytecode_at(0, RUNS));
	assert_int_equal(land(), PASSED_LOST);
}

/* The recorder gives up at a builtin that it does not compile: J->pc is the builtin's only instruction. */
static void the_recorded_instruction_may_be_a_builtins(void **state)
{
	enum { BUILTIN_BYTECODE = 0x7700 };
	const struct layout *layout = &states.vm.layout;

	(void)state;
	put_base(0, INNER, INNER + 4);
	put_word(function_at(2) + (uint64_t)layout->GCfunc_pc, BUILTIN_BYTECODE);
	put(g_at(0) + (uint64_t)layout->g_vmstate, (uint32_t)VMST_RECORD, 4);
	put_word(g_at(0) + (uint64_t)(layout->GG_J + layout->J_pc), BUILTIN_BYTECODE);
	assert_int_equal(land(), PASSED_ON);
	check_three();
	put_word(g_at(0) + (uint64_t)(layout->GG_J + layout->J_pc), BUILTIN_BYTECODE + 4);
	assert_int_equal(land(), PASSED_LOST);
	assert_int_equal(stack.count, 0);
}

/* Only the native stack still has the frame by which C gets the error. */
static void an_error_that_leaves_no_c_frame_lands_at_the_outermost_one(void **state)
{
	(void)state;
	put_calls(0, 0, CALLER);
	put_cframe(FRAME, thread_at(0), FURTHER, CALLER); /* not the outermost */
	put_cframe(FRAME + 0x100, thread_at(1), 0, CALLER);
	put_cframe(FRAME + 0x200, thread_at(0), 0, IN_VM);
	put_cframe(FURTHER, thread_at(0), 0, CALLER);
	assert_int_equal(land(), PASSED_ON);
	assert_int_equal(stack.count, 0);
	check_left(FURTHER);
	put_cframe(FURTHER, thread_at(0), 0, IN_VM);
	assert_int_equal(land(), PASSED_LOST);
}

/* The resumer's C frame, which is linked, lies right above it. */
static void an_error_that_ends_a_coroutine_lands_at_its_resumer(void **state)
{
	const uint64_t status = thread_at(0) + (uint64_t)states.vm.layout.L_status;

	(void)state;
	put_calls(0, 0, CALLER);
	put(status, LUA_YIELD + 1, 1);
	put_cframe(FRAME, thread_at(0), 0, IN_VM); /* of an earlier resumer */
	put_cframe(FURTHER - FRAME_SIZE, thread_at(0), 0, IN_VM);
	put_calls(1, FURTHER, CALLER);
	code.called = true;
	assert_int_equal(land(), PASSED_ON);
	assert_int_equal(states.capture.thread_count, 2);
	assert_int_equal(stack.count, 0);
	assert_int_equal(native.registers.pc, IN_VM);
	assert_int_equal(native.registers.sp, FURTHER);
	code.called = false; /* whatever is in the VM there, it is no resumer */
	land();
	check_lost(0, LOST_HALF_DONE);
}

/* LuaJIT 2.0 does not say which thread runs. */
static void without_cur_L_the_thread_with_the_next_frame_lands(void **state)
{
	(void)state;
	put_calls(1, FURTHER, CALLER);
	put_base(1, OUTER, INNER);
	put_cframe(FRAME, thread_at(0), 0, NATIVE_CODE);
	states.vm.layout.g_cur_L = LAYOUT_ABSENT;
	assert_int_equal(land(), PASSED_ON);
	assert_int_equal(states.capture.thread_count, 2);
	assert_true(lua_section_of(&merge.lua, capture_find_thread(&states.capture, thread_at(0)))->started);
	assert_false(lua_section_of(&merge.lua, capture_find_thread(&states.capture, thread_at(1)))->started);
	assert_int_equal(native.registers.sp, FRAME + FRAME_SIZE);
}

/*---- Native frames that are lost ----*/

static void a_lost_walk_goes_on_at_the_next_frame(void **state)
{
	(void)state;
	put_word(FRAME - 8, CALL_AT); /* where what the VM called returns to */
	stand(false);
	native.registers = (struct registers){ .pc = NATIVE_CODE, .sp = FRAME - 0x200 };
	assert_true(merge_resynchronise(&merge));
	check_left(FRAME);
	assert_int_not_equal(stack.count, 0);
	stand(false);
	native.registers.sp = FRAME + 8;
	assert_false(merge_resynchronise(&merge));
	assert_int_equal(stack.count, 0);
}

static void it_goes_on_at_the_threads_own_stack(void **state)
{
	(void)state;
	put_word(FRAME - 8, CALL_AT);
	stand(false);
	native.registers.sp = FURTHER;
	assert_false(merge_has_switched_stack(&merge));
	states.capture.own_begin = FRAME - 0x100;
	states.capture.own_end = FRAME + 0x100;
	assert_true(merge_has_switched_stack(&merge));
	assert_true(merge_resynchronise(&merge));
	check_left(FRAME);
	/* It is there. */
	native.registers.sp = FRAME;
	assert_false(merge_has_switched_stack(&merge));
	native.registers.sp = FURTHER;
	states.capture.own_begin = FRAME + 8; /* no C frame is left there */
	assert_false(merge_has_switched_stack(&merge));
	assert_false(merge_resynchronise(&merge));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_leaf_stands_for_the_frames_that_run_in_it),
		TEST(a_frame_under_construction_has_no_lua),
		TEST(what_cannot_be_finished_is_half_done),
		TEST(a_frame_of_lua_cpcall_runs_no_lua),
		TEST(a_call_from_c_that_has_no_frame_lies_below_native_code),
		TEST(below_a_break_no_call_is_missing),
		TEST(a_lua_function_on_top_is_what_c_has_called),
		TEST(a_routine_that_c_has_called_has_no_lua),
		TEST(a_routine_that_a_trace_has_called_leads_to_the_trace),
		TEST(on_the_way_out_of_a_trace_the_registers_have_the_frame),
		TEST(code_that_the_vm_has_called_stands_on_its_frames),
		TEST(a_frame_that_was_interrupted_goes_on_at_its_saved_position),
		TEST(frames_that_are_not_linked_have_no_lua),
		TEST(a_callback_that_returns_runs_no_lua_any_more),
		TEST(only_the_innermost_caller_returns_from_a_callback),
		TEST(a_frame_that_an_error_has_unwound_has_no_lua),
		TEST(where_an_error_lands_the_stored_frame_counts),
		TEST(while_it_compiles_the_recorded_instruction_counts),
		TEST(the_recorded_instruction_may_be_a_builtins),
		TEST(an_error_that_leaves_no_c_frame_lands_at_the_outermost_one),
		TEST(an_error_that_ends_a_coroutine_lands_at_its_resumer),
		TEST(without_cur_L_the_thread_with_the_next_frame_lands),
		TEST(a_lost_walk_goes_on_at_the_next_frame),
		TEST(it_goes_on_at_the_threads_own_stack),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

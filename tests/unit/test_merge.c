/* SPDX-License-Identifier: MIT */
/*
 * What merged stacks say of machine code: where the VM had something half done, of each kind, and where it is
 * lost.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/instead_of.h"
#include "unwind/capture/lua_moved.h"
#include "unwind/capture/unknown_states.h"
#include "unwind/stack/merge.h"
#include "unwind/stack/merge_trace.h"
#include "unwind/stack/merge_vm.h"
#include "unwind/stack/vm_finish.h"
#include "unwind/vm/vm_frame.h"

/* Machine code is the VM's below NATIVE_AT, and from each of the others on of another kind. */
enum {
	STOPPED_AT = 0x1004,
	FINISHED_AT = 0x1ff0,
	CALLER_AT = 0x2345,
	NATIVE_AT = 0x3000,
	FFI_AT = 0x8000,
	MADE_AT = 0x9000,
	TRACE_AT = 0xa000,
	WALK_MAX = 4,
};

/* The walk is along these frames. */
static struct native_unwinder {
	struct native_frame frames[WALK_MAX];
	size_t count, at;
	size_t lost_at; /* no table covers this one, if it is not the first; by its code it may be left */
	enum native_status by_code, by_depth;
	bool lacks_register, is_endless;
	uint64_t caller_sp; /* of the last caller, which the walk does not get to */
} native;

static struct vm_code vm;
static struct module module = { .vm = &vm };
static enum vm_finished finished;
static uint64_t finished_at;

static enum code_kind kind_of(uint64_t pc)
{
	return pc < NATIVE_AT ? CODE_VM
	       : pc < FFI_AT  ? CODE_NATIVE
	       : pc < MADE_AT ? CODE_VM_FFI_CALL
			      : CODE_UNKNOWN;
}

static struct native_frame frame_at(const struct registers *registers, bool is_return_address)
{
	return (struct native_frame){
		.registers = *registers,
		.is_return_address = is_return_address,
		.code = kind_of(registers->pc),
		.module = &module,
	};
}

INSTEAD_OF(native_begin);
void __wrap_native_begin(struct native_unwinder *unwinder, struct memory *stack, const struct registers *leaf)
{
	(void)stack;
	unwinder->frames[unwinder->at] = frame_at(leaf, false);
}

INSTEAD_OF(native_continue);
void __wrap_native_continue(struct native_unwinder *unwinder, const struct registers *caller)
{
	unwinder->frames[unwinder->at] = frame_at(caller, true);
}

INSTEAD_OF(native_current);
const struct native_frame *__wrap_native_current(const struct native_unwinder *unwinder)
{
	return &unwinder->frames[unwinder->at];
}

INSTEAD_OF(native_step);
enum native_status __wrap_native_step(struct native_unwinder *unwinder)
{
	if (unwinder->is_endless)
		return NATIVE_FRAME;
	if (unwinder->lost_at && unwinder->at == unwinder->lost_at)
		return NATIVE_LOST;
	return ++unwinder->at < unwinder->count ? NATIVE_FRAME : NATIVE_END;
}

INSTEAD_OF(native_step_by_code);
enum native_status __wrap_native_step_by_code(struct native_unwinder *unwinder, uint64_t linked)
{
	assert_int_equal(linked, 0);
	unwinder->at += unwinder->by_code == NATIVE_FRAME;
	return unwinder->by_code;
}

INSTEAD_OF(native_step_by_depth);
enum native_status __wrap_native_step_by_depth(struct native_unwinder *unwinder, uint64_t linked)
{
	assert_int_equal(linked, 0);
	unwinder->at += unwinder->by_depth == NATIVE_FRAME;
	return unwinder->by_depth;
}

INSTEAD_OF(native_lacks_register);
bool __wrap_native_lacks_register(const struct native_unwinder *unwinder)
{
	return unwinder->lacks_register;
}

INSTEAD_OF(native_caller_sp);
uint64_t __wrap_native_caller_sp(const struct native_unwinder *unwinder)
{
	return unwinder->caller_sp;
}

INSTEAD_OF(native_end);
uint64_t __wrap_native_end(const struct native_unwinder *unwinder)
{
	return unwinder->frames[unwinder->count - 1].registers.sp;
}

INSTEAD_OF(image_classify);
enum code_kind __wrap_image_classify(const struct image *image, uint64_t pc, const struct module **ret_module)
{
	(void)image;
	if (ret_module)
		*ret_module = &module;
	return kind_of(pc);
}

INSTEAD_OF(image_is_made);
bool __wrap_image_is_made(const struct image *image, uint64_t pc)
{
	(void)image;
	return kind_of(pc) == CODE_UNKNOWN;
}

static uint64_t lands_at; /* 0: nothing is about to land */

INSTEAD_OF(vm_is_about_to_land);
bool __wrap_vm_is_about_to_land(struct memory *text, const struct registers *registers,
				struct registers *ret_registers)
{
	(void)text;
	*ret_registers = *registers;
	ret_registers->pc = lands_at;
	return lands_at != 0;
}

static unsigned finishes;

INSTEAD_OF(vm_finish);
enum vm_finished __wrap_vm_finish(struct capture *of, const struct vm_code *which, struct memory *text,
				  struct lua_objects *objects, struct vm_decoder *decoder,
				  struct registers *registers)
{
	(void)of;
	(void)which;
	(void)text;
	(void)objects;
	(void)decoder;
	finishes++;
	if (finished != VM_FINISHD_STAYS)
		registers->pc = finished_at;
	return finished;
}

/* The VM's frames are the outermost, or are lost. */
static enum passed vm_passed;
static bool was_half_done;

INSTEAD_OF(merge_pass_vm_leaf);
enum passed __wrap_merge_pass_vm_leaf(struct merge *merge, const struct vm_code *which)
{
	assert_ptr_equal(which, &vm);
	was_half_done = merge->is_half_done;
	return vm_passed;
}

INSTEAD_OF(merge_pass_vm_caller);
enum passed __wrap_merge_pass_vm_caller(struct merge *merge, const struct vm_code *which)
{
	(void)merge;
	assert_ptr_equal(which, &vm);
	return vm_passed;
}

static bool is_routine_of_c;

INSTEAD_OF(merge_is_routine_of_c);
bool __wrap_merge_is_routine_of_c(const struct merge *merge, const struct vm_code *which)
{
	(void)merge;
	(void)which;
	return is_routine_of_c;
}

static unsigned adjusted;

INSTEAD_OF(lua_moved_adjust);
void __wrap_lua_moved_adjust(struct snapshot *snapshot, const struct registers *registers,
			     struct lua_objects *objects, struct lua_thread *thread)
{
	(void)objects;
	assert_non_null(snapshot);
	assert_non_null(registers);
	assert_ptr_equal(thread->global->vm, &vm);
	assert_int_equal(finishes, 0); /* the VM's code is run on with the right base */
	adjusted++;
}

static bool has_switched;

INSTEAD_OF(merge_has_switched_stack);
bool __wrap_merge_has_switched_stack(const struct merge *merge)
{
	(void)merge;
	return has_switched;
}

static size_t resynchronised_at; /* the frame where a lost walk goes on; 0: nowhere */

INSTEAD_OF(merge_resynchronise);
bool __wrap_merge_resynchronise(struct merge *merge)
{
	if (resynchronised_at == 0)
		return false;
	merge->native->at = resynchronised_at;
	resynchronised_at = 0;
	return true;
}

static const struct trace trace = { .number = 1 };
static struct global_view *trace_view;

INSTEAD_OF(merge_find_trace);
const struct trace *__wrap_merge_find_trace(const struct capture *of, uint64_t pc,
					    const struct global_view **ret_view)
{
	(void)of;
	if (pc < TRACE_AT)
		return NULL;
	*ret_view = trace_view;
	return &trace;
}

INSTEAD_OF(merge_pass_trace);
enum passed __wrap_merge_pass_trace(struct merge *merge, const struct trace *which,
				    const struct global_view *view)
{
	(void)merge;
	assert_ptr_equal(which, &trace);
	assert_ptr_equal(view, trace_view);
	return PASSED_END;
}

INSTEAD_OF(lua_objects_proto);
const struct proto *__wrap_lua_objects_proto(const struct lua_objects *objects, uint64_t address)
{
	static const struct proto proto;

	(void)objects;
	assert_int_equal(address, trace.startpt);
	return &proto;
}

static bool is_of_unknown_state, has_unknown_state_above;

INSTEAD_OF(unknown_state_at);
bool __wrap_unknown_state_at(const struct capture *of, const struct image *image, const struct vm_code *which,
			     const struct registers *registers, bool is_leaf)
{
	(void)of;
	(void)image;
	(void)which;
	assert_int_equal(is_leaf, registers->pc == STOPPED_AT);
	return is_of_unknown_state;
}

INSTEAD_OF(unknown_state_above);
bool __wrap_unknown_state_above(const struct capture *of, const struct image *image, uint64_t sp)
{
	(void)of;
	(void)image;
	(void)sp;
	return has_unknown_state_above;
}

static bool enters_ffi_call, finds_ffi_caller;

INSTEAD_OF(vm_is_entering_or_leaving_ffi_call);
bool __wrap_vm_is_entering_or_leaving_ffi_call(const struct vm_code *which, struct memory *text,
					       struct memory *memory, const struct registers *registers,
					       struct registers *ret_caller)
{
	(void)which;
	(void)text;
	(void)memory;
	(void)registers;
	*ret_caller = (struct registers){ .pc = CALLER_AT };
	return enters_ffi_call;
}

INSTEAD_OF(vm_find_ffi_caller);
bool __wrap_vm_find_ffi_caller(const struct vm_code *which, struct memory *text, struct memory *memory,
			       const struct registers *registers, struct registers *ret_caller)
{
	(void)which;
	(void)text;
	(void)memory;
	(void)registers;
	*ret_caller = (struct registers){ .pc = CALLER_AT };
	return finds_ffi_caller;
}

INSTEAD_OF(image_text);
struct memory *__wrap_image_text(struct image *image)
{
	(void)image;
	return NULL;
}

static uint64_t unknown_vm_at; /* its code */

INSTEAD_OF(image_in_unknown_vm);
bool __wrap_image_in_unknown_vm(const struct image *image, uint64_t address)
{
	(void)image;
	return unknown_vm_at && address == unknown_vm_at;
}

static bool has_unknown_vm;

INSTEAD_OF(image_has_unknown_vm);
bool __wrap_image_has_unknown_vm(const struct image *image)
{
	(void)image;
	return has_unknown_vm;
}

static struct merged_stack stack;
static struct capture capture;
static struct global_state global = { .vm = &vm };

/* Merge the stack of a thread that was stopped here. */
static void merge(uint64_t pc, enum vm_finished what, uint64_t where)
{
	struct memory none = { .read_ranges = NULL };

	capture.registers.pc = pc;
	capture.snapshot = snapshot_new(&none);
	assert_non_null(capture.snapshot);
	finishes = adjusted = 0;
	native.at = 0;
	finished = what;
	finished_at = where;
	assert_int_equal(merge_stacks(&capture, NULL, NULL, &native, NULL, &stack), 0);
	snapshot_free(capture.snapshot);
}

static int begin(void **state)
{
	(void)state;
	native = (struct native_unwinder){ .count = 1 };
	capture = (struct capture){ .globals = { { .global = &global } }, .global_count = 1 };
	trace_view = &capture.globals[0];
	vm = (struct vm_code){ .confirmed = true };
	has_unknown_vm = has_switched = is_routine_of_c = was_half_done = false;
	is_of_unknown_state = has_unknown_state_above = enters_ffi_call = finds_ffi_caller = false;
	lands_at = unknown_vm_at = 0;
	resynchronised_at = 0;
	vm_passed = PASSED_END;
	return 0;
}

static int end(void **state)
{
	(void)state;
	merged_stack_clear(&stack);
	return 0;
}

static void check(size_t index, enum merged_kind kind, uint64_t pc, bool is_return_address)
{
	assert_true(index < stack.count);
	assert_int_equal(stack.frames[index].kind, kind);
	assert_int_equal(stack.frames[index].pc, pc);
	assert_int_equal(stack.frames[index].is_return_address, is_return_address);
}

/* The copy is run on, for Lua's frames; the thread itself was where it was stopped. */
static void the_leaf_is_where_the_thread_was_stopped(void **state)
{
	(void)state;
	merge(STOPPED_AT, VM_FINISHD_STAYS, 0);
	check(0, MERGED_VM, STOPPED_AT, false);
	merge(STOPPED_AT, VM_FINISHD_DISPATCHES, FINISHED_AT);
	assert_int_equal(stack.count, 1);
	check(0, MERGED_VM, STOPPED_AT, false);
	merge(STOPPED_AT, VM_FINISHD_CALLS, FINISHED_AT);
	assert_int_equal(stack.count, 1);
	check(0, MERGED_VM, STOPPED_AT, false);
}

/* What returns to its caller was on the stack, and is the leaf. */
static void what_has_nearly_returned_is_the_leaf(void **state)
{
	(void)state;
	merge(STOPPED_AT, VM_FINISHD_RETURNED, NATIVE_AT + CALLER_AT);
	assert_int_equal(stack.count, 2);
	check(0, MERGED_VM, STOPPED_AT, false);
	check(1, MERGED_NATIVE, NATIVE_AT + CALLER_AT, true);
}

/* A signal's handler is the leaf; what it has interrupted is run on, and is no leaf. */
static void what_a_signal_has_interrupted_is_not_the_leaf(void **state)
{
	(void)state;
	native.count = 2;
	native.frames[1] = frame_at(&(const struct registers){ .pc = STOPPED_AT }, false);
	merge(NATIVE_AT, VM_FINISHD_DISPATCHES, FINISHED_AT);
	assert_int_equal(stack.count, 2);
	check(0, MERGED_NATIVE, NATIVE_AT, false);
	check(1, MERGED_VM, FINISHED_AT, false);
}

/* Nobody knows what Lua does for a thread that shows native code alone. */
static void beside_an_unknown_vm_every_stack_is_marked(void **state)
{
	(void)state;
	merge(NATIVE_AT, VM_FINISHD_STAYS, 0);
	assert_int_equal(stack.count, 1);
	has_unknown_vm = true;
	merge(NATIVE_AT, VM_FINISHD_STAYS, 0);
	assert_int_equal(stack.count, 2);
	check(0, MERGED_NATIVE, NATIVE_AT, false);
	assert_int_equal(stack.frames[1].kind, MERGED_LOST);
	assert_int_equal(stack.frames[1].lost, LOST_UNKNOWN_LAYOUT);
}

/*---- Before the walk ----*/

static void what_is_about_to_land_in_the_vm_is_there(void **state)
{
	(void)state;
	lands_at = FINISHED_AT;
	merge(NATIVE_AT, VM_FINISHD_STAYS, 0);
	assert_int_equal(stack.count, 1);
	check(0, MERGED_VM, NATIVE_AT, false);
	lands_at = NATIVE_AT + 8;
	merge(NATIVE_AT, VM_FINISHD_STAYS, 0);
	check(0, MERGED_NATIVE, NATIVE_AT, false);
	lands_at = FINISHED_AT; /* only native code lands */
	merge(MADE_AT, VM_FINISHD_STAYS, 0);
	check(0, MERGED_NATIVE, MADE_AT, false);
}

static void only_the_vms_code_and_what_it_made_is_finished(void **state)
{
	(void)state;
	merge(STOPPED_AT, VM_FINISHD_STAYS, 0);
	assert_int_equal(finishes, 1);
	merge(NATIVE_AT, VM_FINISHD_STAYS, 0);
	assert_int_equal(finishes, 0);
	merge(FFI_AT, VM_FINISHD_STAYS, 0);
	assert_int_equal(finishes, 0);
	merge(TRACE_AT, VM_FINISHD_STAYS, 0);
	assert_int_equal(finishes, 1);
	merge(MADE_AT, VM_FINISHD_STAYS, 0);
	assert_int_equal(finishes, 1);
	/* With several states, whose it is is unknown. */
	capture.globals[1] = capture.globals[0];
	capture.global_count = 2;
	merge(MADE_AT, VM_FINISHD_STAYS, 0);
	assert_int_equal(finishes, 0);
	merge(TRACE_AT, VM_FINISHD_STAYS, 0);
	assert_int_equal(finishes, 1);
}

static void what_cannot_be_finished_is_half_done_but_for_routines_of_c(void **state)
{
	(void)state;
	merge(STOPPED_AT, VM_FINISHD_STAYS, 0);
	assert_false(was_half_done);
	merge(STOPPED_AT, VM_FINISHD_UNKNOWN, STOPPED_AT);
	assert_true(was_half_done);
	is_routine_of_c = true;
	merge(STOPPED_AT, VM_FINISHD_UNKNOWN, STOPPED_AT);
	assert_false(was_half_done);
}

static void threads_whose_stacks_move_are_adjusted_first(void **state)
{
	(void)state;
	for (capture.thread_count = 0; capture.thread_count < 3; capture.thread_count++) {
		capture.threads[capture.thread_count] = (struct lua_thread){ .global = &global };
		merge(STOPPED_AT, VM_FINISHD_STAYS, 0);
		assert_int_equal(adjusted, capture.thread_count);
		assert_int_equal(finishes, 1);
	}
}

/*---- Kinds of code ----*/

/* Frame i of the walk: a return address at this pc. */
static void put_caller(size_t i, uint64_t pc)
{
	const struct registers registers = { .pc = pc, .sp = 0x70000 + i * 0x100 };

	native.frames[i] = frame_at(&registers, true);
	native.count = i + 1;
}

static void check_lost(size_t index, enum lost_reason reason)
{
	assert_int_equal(stack.count, index + 1);
	assert_int_equal(stack.frames[index].kind, MERGED_LOST);
	assert_int_equal(stack.frames[index].lost, reason);
}

static void a_call_by_ffi_is_left_by_its_code_or_its_frame(void **state)
{
	(void)state;
	enters_ffi_call = true;
	merge(FFI_AT, VM_FINISHD_STAYS, 0);
	assert_int_equal(stack.count, 2);
	check(0, MERGED_VM, FFI_AT, false);
	check(1, MERGED_VM, CALLER_AT, true);
	enters_ffi_call = false;
	put_caller(1, NATIVE_AT);
	merge(FFI_AT, VM_FINISHD_STAYS, 0);
	assert_int_equal(stack.count, 2);
	check(1, MERGED_NATIVE, NATIVE_AT, true);
	/* It has called C, without a frame pointer. */
	put_caller(1, FFI_AT);
	native.lost_at = 1;
	native.by_code = NATIVE_LOST;
	enters_ffi_call = true; /* only a leaf is there */
	finds_ffi_caller = true;
	merge(NATIVE_AT, VM_FINISHD_STAYS, 0);
	assert_int_equal(stack.count, 3);
	check(1, MERGED_VM, FFI_AT, true);
	check(2, MERGED_VM, CALLER_AT, true);
	put_caller(1, FFI_AT);
	finds_ffi_caller = false;
	merge(NATIVE_AT, VM_FINISHD_STAYS, 0);
	check_lost(2, LOST_NATIVE_UNWIND);
}

static void code_without_a_table_is_left_by_what_it_does(void **state)
{
	(void)state;
	put_caller(1, NATIVE_AT + 1);
	put_caller(2, NATIVE_AT + 2);
	native.lost_at = 1;
	native.by_code = NATIVE_FRAME;
	merge(NATIVE_AT, VM_FINISHD_STAYS, 0);
	assert_int_equal(stack.count, 3);
	check(2, MERGED_NATIVE, NATIVE_AT + 2, true);
	assert_int_equal(stack.native_end, native.frames[2].registers.sp);
	/* What lacks a register would need it there, too, but its function's code may tell. */
	native.lacks_register = true;
	native.by_depth = NATIVE_FRAME;
	merge(NATIVE_AT, VM_FINISHD_STAYS, 0);
	assert_int_equal(stack.count, 3);
	check(2, MERGED_NATIVE, NATIVE_AT + 2, true);
	native.by_depth = NATIVE_LOST;
	merge(NATIVE_AT, VM_FINISHD_STAYS, 0);
	check_lost(2, LOST_REGISTER_UNKNOWN);
	assert_int_equal(stack.native_end, 0);
}

static void successive_callers_in_made_code_are_one_frame(void **state)
{
	(void)state;
	put_caller(1, MADE_AT + 1);
	put_caller(2, MADE_AT + 2);
	put_caller(3, NATIVE_AT);
	merge(MADE_AT, VM_FINISHD_STAYS, 0);
	assert_int_equal(stack.count, 2);
	check(0, MERGED_NATIVE, MADE_AT, false);
	check(1, MERGED_NATIVE, NATIVE_AT, true);
	put_caller(1, NATIVE_AT);
	put_caller(2, MADE_AT + 2);
	put_caller(3, NATIVE_AT + 1);
	merge(MADE_AT, VM_FINISHD_STAYS, 0);
	assert_int_equal(stack.count, 4);
	check(2, MERGED_NATIVE, MADE_AT + 2, true);
}

/* A return address that leads nowhere need not be code at all. */
static void made_code_that_does_not_return_may_be_a_trace(void **state)
{
	(void)state;
	put_caller(1, MADE_AT + 1);
	native.lost_at = 1;
	native.by_code = NATIVE_LOST;
	merge(NATIVE_AT, VM_FINISHD_STAYS, 0);
	check_lost(1, LOST_NATIVE_UNWIND);
	vm.traces_open = true;
	merge(NATIVE_AT, VM_FINISHD_STAYS, 0);
	check_lost(1, LOST_NATIVE_UNWIND);
	capture.globals[0].jit_base = 8;
	merge(NATIVE_AT, VM_FINISHD_STAYS, 0);
	check_lost(2, LOST_NATIVE_UNWIND);
	assert_int_equal(stack.frames[1].lost, LOST_IN_TRACE);
	vm.traces_open = false;
	merge(NATIVE_AT, VM_FINISHD_STAYS, 0);
	check_lost(1, LOST_NATIVE_UNWIND);
	has_unknown_state_above = true;
	merge(NATIVE_AT, VM_FINISHD_STAYS, 0);
	check_lost(1, LOST_STATE_UNKNOWN);
	has_unknown_vm = true;
	merge(NATIVE_AT, VM_FINISHD_STAYS, 0);
	check_lost(1, LOST_UNKNOWN_LAYOUT);
}

static void a_trace_has_its_state_and_where_it_starts(void **state)
{
	(void)state;
	merge(TRACE_AT, VM_FINISHD_STAYS, 0);
	assert_int_equal(stack.count, 1);
	check(0, MERGED_TRACE, TRACE_AT, false);
	assert_ptr_equal(stack.frames[0].global, &global);
	assert_ptr_equal(stack.frames[0].trace, &trace);
	assert_non_null(stack.frames[0].proto);
	merge(MADE_AT, VM_FINISHD_STAYS, 0);
	assert_null(stack.frames[0].proto);
}

static void code_of_a_vm_with_an_unknown_layout_is_marked_once(void **state)
{
	(void)state;
	has_unknown_vm = true;
	unknown_vm_at = NATIVE_AT;
	put_caller(1, NATIVE_AT + 8);
	merge(NATIVE_AT, VM_FINISHD_STAYS, 0);
	assert_int_equal(stack.count, 3);
	assert_int_equal(stack.frames[1].lost, LOST_UNKNOWN_LAYOUT);
	check(2, MERGED_NATIVE, NATIVE_AT + 8, true);
	/* A thread that runs a known one has no need of that. */
	unknown_vm_at = 0;
	capture.thread_count = 1;
	capture.threads[0] = (struct lua_thread){ .global = &global };
	merge(NATIVE_AT, VM_FINISHD_STAYS, 0);
	assert_int_equal(stack.count, 2);
}

/*---- Walks that are lost ----*/

static void the_vms_frames_are_lost_for_a_reason(void **state)
{
	(void)state;
	vm_passed = PASSED_LOST;
	merge(STOPPED_AT, VM_FINISHD_STAYS, 0);
	check_lost(1, LOST_NATIVE_UNWIND);
	is_of_unknown_state = true;
	merge(STOPPED_AT, VM_FINISHD_STAYS, 0);
	check_lost(1, LOST_STATE_UNKNOWN);
	is_of_unknown_state = false;
	capture.global_count = 0;
	merge(STOPPED_AT, VM_FINISHD_STAYS, 0);
	check_lost(1, LOST_STATE_UNKNOWN);
	vm.confirmed = false;
	merge(STOPPED_AT, VM_FINISHD_STAYS, 0);
	check_lost(1, LOST_UNCONFIRMED);
	assert_int_equal(stack.native_end, 0);
}

static void a_lost_walk_goes_on_where_lua_is_found_again(void **state)
{
	(void)state;
	put_caller(1, NATIVE_AT + 1);
	put_caller(2, NATIVE_AT + 2);
	put_caller(3, NATIVE_AT + 3);
	native.lost_at = 1;
	native.by_code = NATIVE_LOST;
	resynchronised_at = 3;
	merge(NATIVE_AT, VM_FINISHD_STAYS, 0);
	assert_int_equal(stack.count, 4);
	assert_int_equal(stack.frames[2].lost, LOST_NATIVE_UNWIND);
	check(3, MERGED_NATIVE, NATIVE_AT + 3, true);
	assert_int_equal(stack.native_end, 0); /* part of it is lost */
}

static void a_frame_that_ends_beyond_the_copy_is_told(void **state)
{
	const uint64_t end = 0x70200;

	(void)state;
	put_caller(1, NATIVE_AT + 1);
	native.lost_at = 1;
	native.by_code = NATIVE_LOST;
	capture.stack_begin = 0x70000;
	capture.stack_end = end;
	native.caller_sp = end;
	merge(NATIVE_AT, VM_FINISHD_STAYS, 0);
	assert_false(stack.passes_copy);
	native.caller_sp = end + 8;
	merge(NATIVE_AT, VM_FINISHD_STAYS, 0);
	check_lost(2, LOST_NATIVE_UNWIND);
	assert_true(stack.passes_copy);
	/* It begins where the copy ends. */
	capture.stack_end = native.frames[1].registers.sp;
	merge(NATIVE_AT, VM_FINISHD_STAYS, 0);
	assert_true(stack.passes_copy);
	/* It is on no stack of which there is a copy. */
	capture.stack_end = 0x70000;
	merge(NATIVE_AT, VM_FINISHD_STAYS, 0);
	assert_false(stack.passes_copy);
	/* What is whole passes nothing. */
	native.lost_at = 0;
	capture.stack_end = end;
	merge(NATIVE_AT, VM_FINISHD_STAYS, 0);
	assert_false(stack.passes_copy);
}

static void the_end_of_another_stack_is_none(void **state)
{
	(void)state;
	merge(NATIVE_AT, VM_FINISHD_STAYS, 0);
	assert_int_equal(stack.count, 1);
	has_switched = true;
	merge(NATIVE_AT, VM_FINISHD_STAYS, 0);
	check_lost(1, LOST_NATIVE_UNWIND);
}

static void a_stack_without_end_is_cut(void **state)
{
	(void)state;
	native.is_endless = true;
	native.frames[0].is_return_address = true;
	merge(NATIVE_AT, VM_FINISHD_STAYS, 0);
	check_lost(MERGE_FRAMES_MAX, LOST_TOO_DEEP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_leaf_is_where_the_thread_was_stopped, begin, end),
		cmocka_unit_test_setup_teardown(what_has_nearly_returned_is_the_leaf, begin, end),
		cmocka_unit_test_setup_teardown(what_a_signal_has_interrupted_is_not_the_leaf, begin, end),
		cmocka_unit_test_setup_teardown(beside_an_unknown_vm_every_stack_is_marked, begin, end),
		cmocka_unit_test_setup_teardown(what_is_about_to_land_in_the_vm_is_there, begin, end),
		cmocka_unit_test_setup_teardown(only_the_vms_code_and_what_it_made_is_finished, begin, end),
		cmocka_unit_test_setup_teardown(what_cannot_be_finished_is_half_done_but_for_routines_of_c,
						begin, end),
		cmocka_unit_test_setup_teardown(threads_whose_stacks_move_are_adjusted_first, begin, end),
		cmocka_unit_test_setup_teardown(a_call_by_ffi_is_left_by_its_code_or_its_frame, begin, end),
		cmocka_unit_test_setup_teardown(code_without_a_table_is_left_by_what_it_does, begin, end),
		cmocka_unit_test_setup_teardown(successive_callers_in_made_code_are_one_frame, begin, end),
		cmocka_unit_test_setup_teardown(made_code_that_does_not_return_may_be_a_trace, begin, end),
		cmocka_unit_test_setup_teardown(a_trace_has_its_state_and_where_it_starts, begin, end),
		cmocka_unit_test_setup_teardown(code_of_a_vm_with_an_unknown_layout_is_marked_once, begin,
						end),
		cmocka_unit_test_setup_teardown(the_vms_frames_are_lost_for_a_reason, begin, end),
		cmocka_unit_test_setup_teardown(a_lost_walk_goes_on_where_lua_is_found_again, begin, end),
		cmocka_unit_test_setup_teardown(a_frame_that_ends_beyond_the_copy_is_told, begin, end),
		cmocka_unit_test_setup_teardown(the_end_of_another_stack_is_none, begin, end),
		cmocka_unit_test_setup_teardown(a_stack_without_end_is_cut, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

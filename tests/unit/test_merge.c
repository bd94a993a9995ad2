/* SPDX-License-Identifier: MIT */
/* What merged stacks say of machine code, where the VM had something half done. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/instead_of.h"
#include "unwind/stack/merge.h"
#include "unwind/stack/merge_vm.h"
#include "unwind/stack/vm_finish.h"
#include "unwind/vm/vm_frame.h"

enum { STOPPED_AT = 0x1004, FINISHED_AT = 0x1ff0, CALLER_AT = 0x2345, NATIVE_AT = 0x3000 };

/* Machine code below NATIVE_AT is the VM's. The walk is along these frames. */
static struct native_unwinder {
	struct native_frame frames[2];
	size_t count, at;
} native;

static struct module module = { .vm = &(const struct vm_code){ .confirmed = true } };
static enum vm_finished finished;
static uint64_t finished_at;

static struct native_frame frame_at(const struct registers *registers, bool is_return_address)
{
	return (struct native_frame){
		.registers = *registers,
		.is_return_address = is_return_address,
		.code = registers->pc < NATIVE_AT ? CODE_VM : CODE_NATIVE,
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
	return ++unwinder->at < unwinder->count ? NATIVE_FRAME : NATIVE_END;
}

INSTEAD_OF(native_end);
uint64_t __wrap_native_end(const struct native_unwinder *unwinder)
{
	return unwinder->frames[unwinder->count - 1].registers.sp;
}

INSTEAD_OF(vm_is_about_to_land);
bool __wrap_vm_is_about_to_land(struct memory *text, const struct registers *registers,
				struct registers *ret_registers)
{
	(void)text;
	(void)registers;
	(void)ret_registers;
	return false;
}

INSTEAD_OF(vm_finish);
enum vm_finished __wrap_vm_finish(struct capture *capture, const struct vm_code *vm, struct memory *text,
				  struct lua_objects *objects, struct vm_decoder *decoder,
				  struct registers *registers)
{
	(void)capture;
	(void)vm;
	(void)text;
	(void)objects;
	(void)decoder;
	if (finished != VM_FINISHD_STAYS)
		registers->pc = finished_at;
	return finished;
}

INSTEAD_OF(merge_pass_vm_leaf);
enum passed __wrap_merge_pass_vm_leaf(struct merge *merge, const struct vm_code *vm)
{
	(void)merge;
	(void)vm;
	return PASSED_END;
}

INSTEAD_OF(merge_pass_vm_caller);
enum passed __wrap_merge_pass_vm_caller(struct merge *merge, const struct vm_code *vm)
{
	(void)merge;
	(void)vm;
	return PASSED_END;
}

INSTEAD_OF(merge_has_switched_stack);
bool __wrap_merge_has_switched_stack(const struct merge *merge)
{
	(void)merge;
	return false;
}

INSTEAD_OF(image_text);
struct memory *__wrap_image_text(struct image *image)
{
	(void)image;
	return NULL;
}

INSTEAD_OF(image_in_unknown_vm);
bool __wrap_image_in_unknown_vm(const struct image *image, uint64_t address)
{
	(void)image;
	(void)address;
	return false;
}

static bool has_unknown_vm;

INSTEAD_OF(image_has_unknown_vm);
bool __wrap_image_has_unknown_vm(const struct image *image)
{
	(void)image;
	return has_unknown_vm;
}

static struct merged_stack stack;

/* Merge the stack of a thread that was stopped here. */
static void merge(uint64_t pc, enum vm_finished what, uint64_t where)
{
	static struct capture capture;
	struct memory none = { .read_ranges = NULL };

	capture = (struct capture){ .registers.pc = pc, .snapshot = snapshot_new(&none) };
	assert_non_null(capture.snapshot);
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
	has_unknown_vm = false;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_leaf_is_where_the_thread_was_stopped, begin, end),
		cmocka_unit_test_setup_teardown(what_has_nearly_returned_is_the_leaf, begin, end),
		cmocka_unit_test_setup_teardown(what_a_signal_has_interrupted_is_not_the_leaf, begin, end),
		cmocka_unit_test_setup_teardown(beside_an_unknown_vm_every_stack_is_marked, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

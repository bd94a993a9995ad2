/* SPDX-License-Identifier: MIT */
/* Which callers a walk of the native stack takes, and where it ends. The rules' results are made up. */
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/instead_of.h"
#include "tests/unit/made_up_memory.h"
#include "unwind/native/cfi.h"
#include "unwind/native/native.h"

INSTEAD_OF(cfi_step);
INSTEAD_OF(cfi_step_by_code);
INSTEAD_OF(cfi_step_by_depth);

enum { MODULE = MADE_UP_AT, CODE = MODULE + 0x800, ENTRY = 0x1000, SP = 0x500000 };

/* The next caller, and for what it was asked. */
static struct {
	enum cfi_status status;
	enum cfi_status by_depth; /* where the status is CFI_REGISTER_UNKNOWN */
	struct registers caller;
	uint64_t pc;
} given;

enum cfi_status __wrap_cfi_step(struct cfi *cfi, uint64_t pc, const struct registers *frame,
				struct memory *stack, struct registers *ret_caller)
{
	(void)cfi;
	(void)frame;
	assert_ptr_equal(stack, &made_up_memory.memory);
	given.pc = pc;
	if (given.status == CFI_CALLER)
		*ret_caller = given.caller;
	return given.status;
}

enum cfi_status __wrap_cfi_step_by_code(struct cfi *cfi, const struct registers *frame,
					struct memory *snapshot, struct registers *ret_caller)
{
	return __wrap_cfi_step(cfi, frame->pc, frame, snapshot, ret_caller);
}

enum cfi_status __wrap_cfi_step_by_depth(struct cfi *cfi, uint64_t pc, const struct registers *frame,
					 struct memory *stack, struct registers *ret_caller)
{
	(void)cfi;
	(void)frame;
	assert_ptr_equal(stack, &made_up_memory.memory);
	assert_int_equal(pc, given.pc);
	if (given.by_depth == CFI_CALLER)
		*ret_caller = given.caller;
	return given.by_depth;
}

static struct image *image;
static struct native_unwinder *unwinder;

static void put_header(uint64_t entry, uint16_t type)
{
	const Elf64_Ehdr header = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
						 EV_CURRENT },
				    .e_type = type,
				    .e_entry = entry };
	struct module *module = calloc(1, sizeof(*module));

	assert_non_null(module);
	put_bytes(MODULE, &header, sizeof(header));
	*module = (struct module){ .begin = MODULE, .end = MODULE + MADE_UP_BYTES, .base = MODULE };
	image_set_modules(image, module, 1);
	native_reset(unwinder);
}

static int begin(void **state)
{
	(void)state;
	image = image_new(made_up_memory_begin());
	unwinder = native_unwinder_new(image, NULL);
	assert_non_null(unwinder);
	put_header(ENTRY, ET_DYN);
	memset(&given, 0, sizeof(given));
	given.status = CFI_CALLER;
	given.by_depth = CFI_REGISTER_UNKNOWN;
	return 0;
}

static int end(void **state)
{
	(void)state;
	native_unwinder_free(unwinder);
	native_unwinder_free(NULL);
	image_free(image);
	return 0;
}

static void begin_at(uint64_t pc, uint64_t sp)
{
	const struct registers leaf = { .pc = pc, .sp = sp };

	native_begin(unwinder, &made_up_memory.memory, &leaf);
}

static enum native_status step_to(uint64_t pc, uint64_t sp)
{
	given.caller = (struct registers){ .pc = pc, .sp = sp };
	return native_step(unwinder);
}

static void a_return_address_is_looked_up_within_its_call(void **state)
{
	const struct native_frame *frame = native_current(unwinder);

	(void)state;
	begin_at(CODE, SP);
	assert_false(frame->is_return_address);
	assert_int_equal(native_code_address(frame), CODE);
	assert_int_equal(frame->code, CODE_NATIVE);
	assert_ptr_equal(frame->module, image_module(image, 0));
	assert_int_equal(frame->registers.unknown, 0);
	/* The first byte of the module: the call was before it. */
	assert_int_equal(step_to(MODULE, SP + 8), NATIVE_FRAME);
	assert_int_equal(given.pc, CODE);
	assert_true(frame->is_return_address);
	assert_int_equal(native_code_address(frame), MODULE - 1);
	assert_int_equal(frame->code, CODE_UNKNOWN);
	assert_null(frame->module);
	assert_int_equal(frame->registers.unknown, REGISTER_OTHERS);
	assert_int_equal(step_to(CODE, SP + 16), NATIVE_FRAME);
	assert_int_equal(given.pc, MODULE - 1);
}

static void callers_are_further_up_the_stack(void **state)
{
	(void)state;
	begin_at(CODE, SP);
	assert_int_equal(step_to(CODE, SP - 1), NATIVE_LOST);
	/* A leaf may have nothing there, but its caller has a return address. */
	assert_int_equal(step_to(CODE, SP), NATIVE_FRAME);
	assert_int_equal(step_to(CODE, SP), NATIVE_LOST);
	assert_int_equal(step_to(CODE, SP - 1), NATIVE_LOST);
	assert_int_equal(step_to(CODE, SP + 1), NATIVE_FRAME);
}

static void a_walk_ends_where_there_is_no_caller(void **state)
{
	(void)state;
	begin_at(CODE, SP);
	assert_int_equal(step_to(0, SP + 64), NATIVE_END);
	assert_int_equal(native_end(unwinder), SP + 64);
	/* The outermost frame by its rules. */
	assert_int_equal(step_to(0, SP), NATIVE_END);
	assert_int_equal(native_end(unwinder), SP);
	assert_int_equal(step_to(0, SP - 64), NATIVE_END);
	assert_int_equal(native_end(unwinder), SP);
	given.status = CFI_NONE;
	assert_int_equal(step_to(CODE, SP + 8), NATIVE_LOST);
	assert_false(native_lacks_register(unwinder));
	given.status = CFI_REGISTER_UNKNOWN;
	assert_int_equal(step_to(CODE, SP + 8), NATIVE_LOST);
	assert_true(native_lacks_register(unwinder));
	given.status = CFI_CALLER;
	assert_int_equal(step_to(CODE, SP + 8), NATIVE_FRAME);
	assert_false(native_lacks_register(unwinder));
}

static void the_code_may_tell_what_an_unknown_register_does_not(void **state)
{
	(void)state;
	begin_at(CODE, SP);
	given.status = CFI_REGISTER_UNKNOWN;
	given.by_depth = CFI_CALLER;
	assert_int_equal(step_to(CODE + 2, SP + 8), NATIVE_LOST);
	assert_int_equal(native_step_by_depth(unwinder, SP + 7), NATIVE_LOST);
	assert_true(native_lacks_register(unwinder));
	assert_int_equal(native_step_by_depth(unwinder, SP + 8), NATIVE_FRAME);
	assert_false(native_lacks_register(unwinder));
	assert_int_equal(native_current(unwinder)->registers.pc, CODE + 2);
	assert_int_equal(native_current(unwinder)->registers.unknown, REGISTER_OTHERS);
	assert_true(native_current(unwinder)->is_return_address);
	/* The stack shrinks, and what it has is a return address. */
	assert_int_equal(step_to(CODE, SP + 8), NATIVE_LOST);
	assert_int_equal(native_step_by_depth(unwinder, 0), NATIVE_LOST);
	assert_int_equal(step_to(CODE, SP + 9), NATIVE_LOST);
	assert_int_equal(native_step_by_depth(unwinder, 0), NATIVE_FRAME);
	given.by_depth = CFI_REGISTER_UNKNOWN;
	assert_int_equal(step_to(CODE, SP + 16), NATIVE_LOST);
	assert_int_equal(native_step_by_depth(unwinder, 0), NATIVE_LOST);
}

/* How a walk ends that has no rules at the return address. */
static enum native_status end_at(uint64_t pc)
{
	const struct registers caller = { .pc = pc, .sp = SP };

	begin_at(CODE, SP);
	native_continue(unwinder, &caller);
	given.status = CFI_NONE;
	return native_step(unwinder);
}

static void without_rules_the_programs_entry_is_the_end(void **state)
{
	(void)state;
	assert_int_equal(end_at(MODULE + ENTRY), NATIVE_LOST);
	assert_int_equal(end_at(MODULE + ENTRY + 1), NATIVE_END);
	assert_int_equal(end_at(MODULE + ENTRY + 64), NATIVE_END);
	assert_int_equal(end_at(MODULE + ENTRY + 65), NATIVE_LOST);
	assert_int_equal(end_at(MODULE - 1), NATIVE_LOST);
	/* Nobody has returned to it. */
	begin_at(MODULE + ENTRY + 1, SP);
	assert_int_equal(native_step(unwinder), NATIVE_LOST);
	/* Of a program that is always at one place. */
	put_header(CODE, ET_EXEC);
	assert_int_equal(end_at(CODE + 1), NATIVE_END);
	assert_int_equal(end_at(MODULE + ENTRY + 1), NATIVE_LOST);
	/* Libraries have none. */
	put_header(0, ET_DYN);
	assert_int_equal(end_at(MODULE + 1), NATIVE_LOST);
}

#ifdef __x86_64__
/* The code that the function of one of Boost.Context's coroutines returns to: it calls _exit(). */
static void without_rules_the_end_of_a_context_is_the_end(void **state)
{
	enum { AFTER = MODULE + 0x700, CLEAR = 4, CALL = 7, HLT = 12, LENGTH = 13 };
	static const uint8_t code[] = "\xf3\x0f\x1e\xfa\x48\x31\xff\xe8\x49\xfe\xff\xff\xf4";
	static const int marks[] = { CLEAR, CALL, HLT };

	(void)state;
	put_bytes(AFTER, code, LENGTH);
	put_header(ENTRY, ET_DYN);
	assert_int_equal(end_at(AFTER), NATIVE_END);
	/* Not built for CET. */
	assert_int_equal(end_at(AFTER + CLEAR), NATIVE_END);
	assert_int_equal(end_at(AFTER + CALL), NATIVE_LOST);
	/* Nobody has returned to it. */
	begin_at(AFTER, SP);
	given.status = CFI_NONE;
	assert_int_equal(native_step(unwinder), NATIVE_LOST);
	for (size_t i = 0; i < sizeof(marks) / sizeof(*marks); i++) {
		put(AFTER + (uint64_t)marks[i], 0x90, 1);
		put_header(ENTRY, ET_DYN);
		assert_int_equal(end_at(AFTER), NATIVE_LOST);
		put_bytes(AFTER, code, LENGTH);
	}
}
#endif

static void what_is_no_elf_file_has_no_entry(void **state)
{
	struct module *module = calloc(1, sizeof(*module));

	(void)state;
	assert_non_null(module);
	put(MODULE, '?', 1);
	*module = (struct module){ .begin = MODULE, .end = MODULE + MADE_UP_BYTES, .base = MODULE };
	image_set_modules(image, module, 1);
	assert_int_equal(end_at(MODULE + ENTRY + 1), NATIVE_LOST);
	/* Its header cannot be read. */
	module->base = MODULE + MADE_UP_BYTES;
	assert_int_equal(end_at(MODULE + ENTRY + 1), NATIVE_LOST);
}

static void a_signals_frame_leads_to_what_it_interrupted(void **state)
{
	enum {
		RETURN = CODE + 0x100,
		STACK = MODULE + 0x2000,
		CONTEXT = 40,
		RSP_AT = 15 * 8,
		RIP_AT = 16 * 8
	};
	const struct registers handler = { .pc = RETURN, .sp = STACK };
	const struct native_frame *frame = native_current(unwinder);

	(void)state;
	put_bytes(RETURN, "\x48\xc7\xc0\x0f\0\0\0\x0f\x05", 9);
	put(STACK + CONTEXT + RSP_AT, STACK - 1000, 8);
	put(STACK + CONTEXT + RIP_AT, CODE, 8);
	put_header(ENTRY, ET_DYN); /* text is read anew */
	begin_at(CODE, STACK - 8);
	native_continue(unwinder, &handler);
	given.status = CFI_REGISTER_UNKNOWN;
	assert_int_equal(native_step(unwinder), NATIVE_FRAME);
	assert_int_equal(frame->registers.pc, CODE);
	assert_int_equal(frame->registers.sp, STACK - 1000);
	assert_int_equal(frame->registers.unknown, 0);
	assert_false(frame->is_return_address);
	/* On a stack that was not captured. */
	native_continue(unwinder, &(const struct registers){ .pc = RETURN, .sp = 16 });
	assert_int_equal(native_step(unwinder), NATIVE_LOST);
	assert_false(native_lacks_register(unwinder));
}

/*---- By code ----*/

static enum native_status step_by_code_to(uint64_t sp, uint64_t linked)
{
	given.caller = (struct registers){ .pc = CODE, .sp = sp };
	return native_step_by_code(unwinder, linked);
}

static void by_code_a_caller_is_not_beyond_the_next_known_frame(void **state)
{
	const struct native_frame *frame = native_current(unwinder);

	(void)state;
	begin_at(CODE, SP);
	assert_int_equal(step_by_code_to(SP - 1, 0), NATIVE_LOST);
	assert_int_equal(step_by_code_to(SP + 17, SP + 16), NATIVE_LOST);
	assert_false(frame->is_return_address);
	assert_int_equal(step_by_code_to(SP + 16, SP + 16), NATIVE_FRAME);
	assert_true(frame->is_return_address);
	assert_int_equal(frame->registers.sp, SP + 16);
	assert_int_equal(frame->registers.unknown, REGISTER_OTHERS);
	assert_int_equal(step_by_code_to(SP + 100, 0), NATIVE_FRAME);
	given.status = CFI_NONE;
	assert_int_equal(step_by_code_to(SP + 200, 0), NATIVE_LOST);
	assert_false(native_lacks_register(unwinder));
	given.status = CFI_REGISTER_UNKNOWN;
	assert_int_equal(step_by_code_to(SP + 200, 0), NATIVE_LOST);
	assert_true(native_lacks_register(unwinder));
}

/* The code that calls main() has no rules if it never returns; what has called it is the program's entry. */
static void by_code_the_programs_entry_is_found_at_the_end_of_the_stack(void **state)
{
	enum { STACK = MADE_UP_AT + 0x1000, WORDS_MAX = 6 };
	const struct native_frame *frame = native_current(unwinder);
	const uint64_t last = STACK + (WORDS_MAX - 1) * 8;

	(void)state;
	begin_at(CODE, STACK);
	assert_int_equal(step_by_code_to(STACK, 0), NATIVE_FRAME);
	given.status = CFI_NONE;
	put(STACK + 8, CODE, 8); /* another return address */
	put(STACK + 16, MODULE + ENTRY, 8);
	assert_int_equal(native_step_by_code(unwinder, 0), NATIVE_LOST);
	put(last + 8, MODULE + ENTRY + 22, 8);
	assert_int_equal(native_step_by_code(unwinder, 0), NATIVE_LOST);
	put(last, MODULE + ENTRY + 22, 8);
	assert_int_equal(native_step_by_code(unwinder, 0), NATIVE_FRAME);
	assert_true(frame->is_return_address);
	assert_int_equal(frame->registers.pc, MODULE + ENTRY + 22);
	assert_int_equal(frame->registers.sp, last + 8);
	assert_int_equal(frame->registers.unknown, REGISTERS_ALL_BUT_PC_AND_SP);
	assert_int_equal(native_step(unwinder), NATIVE_END);
	/* A leaf is not the code that has called main(). */
	begin_at(CODE, STACK);
	assert_int_equal(native_step_by_code(unwinder, 0), NATIVE_LOST);
}

/* The same of the code that calls a thread's function, and then ends the thread. */
static void by_code_the_end_of_a_thread_is_found_at_the_end_of_its_stack(void **state)
{
	enum { STACK = MADE_UP_AT + 0x1000, AFTER_CALL = MODULE + 0x700 };
#ifdef __x86_64__
	static const uint8_t code[] = "\x89\xc7\x31\xc0\xb0\x3c\x0f\x05";
#else
	static const uint8_t code[] = "\xa8\x0b\x80\xd2\x01\x00\x00\xd4";
#endif
	const struct native_frame *frame = native_current(unwinder);

	(void)state;
	begin_at(CODE, STACK);
	assert_int_equal(step_by_code_to(STACK, 0), NATIVE_FRAME);
	given.status = CFI_NONE;
	put(STACK + 16, AFTER_CALL, 8);
	put_bytes(AFTER_CALL, code, sizeof(code) - 2);
	put_header(ENTRY, ET_DYN);
	assert_int_equal(native_step_by_code(unwinder, 0), NATIVE_LOST);
	put_bytes(AFTER_CALL, code, sizeof(code) - 1);
	put_header(ENTRY, ET_DYN);
	assert_int_equal(native_step_by_code(unwinder, 0), NATIVE_FRAME);
	assert_int_equal(frame->registers.pc, AFTER_CALL);
	assert_int_equal(frame->registers.sp, STACK + 24);
	assert_int_equal(native_step(unwinder), NATIVE_END);
	/* It is a library's. */
	begin_at(CODE, STACK);
	given.status = CFI_CALLER;
	assert_int_equal(step_by_code_to(STACK, 0), NATIVE_FRAME);
	given.status = CFI_NONE;
	image_set_modules(image, NULL, 0);
	assert_int_equal(native_step_by_code(unwinder, 0), NATIVE_LOST);
	put_header(ENTRY, ET_DYN);
}

static void a_few_in_a_row_may_pop_nothing(void **state)
{
	enum { STANDING_MAX = 4 };

	(void)state;
	begin_at(CODE, SP);
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < STANDING_MAX; i++)
			assert_int_equal(step_by_code_to(SP + (uint64_t)round * 8, 0), NATIVE_FRAME);
		assert_int_equal(step_by_code_to(SP + 8 + (uint64_t)round * 8, 0), NATIVE_FRAME);
	}
	for (int i = 0; i < STANDING_MAX; i++)
		assert_int_equal(step_by_code_to(SP + 16, 0), NATIVE_FRAME);
	assert_int_equal(step_by_code_to(SP + 16, 0), NATIVE_LOST);
	/* Each walk counts for itself. */
	begin_at(CODE, SP);
	for (int i = 0; i < STANDING_MAX; i++)
		assert_int_equal(step_by_code_to(SP, 0), NATIVE_FRAME);
	assert_int_equal(step_by_code_to(SP, 0), NATIVE_LOST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_return_address_is_looked_up_within_its_call, begin, end),
		cmocka_unit_test_setup_teardown(callers_are_further_up_the_stack, begin, end),
		cmocka_unit_test_setup_teardown(a_walk_ends_where_there_is_no_caller, begin, end),
		cmocka_unit_test_setup_teardown(the_code_may_tell_what_an_unknown_register_does_not, begin,
						end),
		cmocka_unit_test_setup_teardown(without_rules_the_programs_entry_is_the_end, begin, end),
#ifdef __x86_64__
		cmocka_unit_test_setup_teardown(without_rules_the_end_of_a_context_is_the_end, begin, end),
#endif
		cmocka_unit_test_setup_teardown(what_is_no_elf_file_has_no_entry, begin, end),
		cmocka_unit_test_setup_teardown(a_signals_frame_leads_to_what_it_interrupted, begin, end),
		cmocka_unit_test_setup_teardown(by_code_a_caller_is_not_beyond_the_next_known_frame, begin,
						end),
		cmocka_unit_test_setup_teardown(by_code_the_programs_entry_is_found_at_the_end_of_the_stack,
						begin, end),
		cmocka_unit_test_setup_teardown(by_code_the_end_of_a_thread_is_found_at_the_end_of_its_stack,
						begin, end),
		cmocka_unit_test_setup_teardown(a_few_in_a_row_may_pop_nothing, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * Who called a leaf, of which only pc and stack pointer are known. Leaves of this program note where they
 * are, a copy of their stack, and, as the truth, the link register.
 */
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/own_module.h"
#include "tests/unit/range_bytes.h"
#include "unwind/native/leaf_caller.h"

enum { STACK_BYTES = 4096, DAMAGES = 200 };

/* Each function as it is written: none is inlined, copied for an argument, or called in another way. */
#define AS_WRITTEN __attribute__((noipa))

static struct {
	uint64_t pc, sp, returns_to, caller_sp;
	uint8_t stack[STACK_BYTES];
} noted;

/* volatile: a call of memcpy() would make it no leaf. */
#define LEAF(name) \
	AS_WRITTEN static int name(int number) \
	{ \
		const volatile uint8_t *from; \
\
		__asm__ volatile("mov %0, x30" : "=r"(noted.returns_to)); \
		__asm__ volatile("adr %0, ." : "=r"(noted.pc)); \
		__asm__ volatile("mov %0, sp" : "=r"(noted.sp)); \
		noted.caller_sp = (uint64_t)__builtin_dwarf_cfa(); \
		from = (const volatile uint8_t *)noted.sp; /* NOLINT(performance-no-int-to-ptr) */ \
		for (volatile int i = 0; i < STACK_BYTES; i++) \
			noted.stack[i] = from[i]; \
		return number + 1; \
	}

#define CALLER(name, leaf) \
	AS_WRITTEN static int name(int number) \
	{ \
		return leaf(number) + 2; \
	}

LEAF(leaf_of_one)
CALLER(only_caller, leaf_of_one)

LEAF(leaf_of_two)
CALLER(first_caller, leaf_of_two)
CALLER(second_caller, leaf_of_two)

LEAF(leaf_called_twice)
AS_WRITTEN static int calls_twice(int number)
{
	number = leaf_called_twice(number);
	return leaf_called_twice(number) + 2;
}

LEAF(leaf_by_address)
CALLER(caller_by_name, leaf_by_address)
static int (*volatile leaf_address)(int) = leaf_by_address;

LEAF(leaf_behind_jump)
CALLER(jumped_to, leaf_behind_jump)
CALLER(not_jumped_to, leaf_behind_jump)
AS_WRITTEN static int jumps(int number)
{
	return jumped_to(number + 1);
}

LEAF(leaf_behind_pointers)
CALLER(pointed_to, leaf_behind_pointers)
CALLER(pointed_to_likewise, leaf_behind_pointers)
static int (*volatile pointers[])(int) = { pointed_to, pointed_to_likewise };

/* Callers that do not run here call the leaves nevertheless. */
static int (*volatile others[])(int) = { not_jumped_to, caller_by_name };

/*---- This process as a target ----*/

struct process {
	struct memory memory; /* first: what is read */
	int file;
	unsigned int seed; /* 0: nothing is changed */
};

static struct process live;

/* Each byte has one value for a seed. Most of the headers stay, else there would be nothing to search. */
static void damage(uint64_t address, uint8_t *byte)
{
	uint32_t number = (uint32_t)address * 2654435761u ^ live.seed * 40503u;

	number ^= number >> 15;
	number *= 2246822519u;
	number ^= number >> 13;
	if (live.seed && number % 512 == 0)
		*byte = (uint8_t)(number >> 16);
}

/* write() says if memory is not mapped. */
static void read_live(struct memory *memory, struct memory_range *ranges, size_t count)
{
	(void)memory;
	for (size_t i = 0; i < count; i++) {
		const void *from = (const void *)ranges[i].address; /* NOLINT(performance-no-int-to-ptr) */
		uint8_t *copy = ranges[i].copy;

		ranges[i].status = MEMORY_UNMAPPED;
		if (pwrite(live.file, from, ranges[i].length, 0) != (ssize_t)ranges[i].length ||
		    pread(live.file, copy, ranges[i].length, 0) != (ssize_t)ranges[i].length)
			continue;
		ranges[i].status = MEMORY_OK;
		for (size_t at = 0; at < ranges[i].length; at++)
			damage(ranges[i].address + at, copy + at);
	}
}

/* Of the stack, what the leaf has noted; of all else, nothing. */
static void read_stack(struct memory *memory, struct memory_range *ranges, size_t count)
{
	(void)memory;
	range_bytes(ranges, count, noted.sp, noted.stack, STACK_BYTES);
}

static struct memory stack = { .read_ranges = read_stack };

static void read_nothing(struct memory *memory, struct memory_range *ranges, size_t count)
{
	(void)memory;
	range_bytes(ranges, count, 0, NULL, 0);
}

/* The first module is the program itself. */
static int take_program(struct dl_phdr_info *info, size_t size, void *context)
{
	struct module *module = context;

	(void)size;
	*module = own_module(info);
	return 1;
}

struct fixture {
	struct image *image;
	struct symbols *symbols;
	struct cfi *cfi;
	struct leaf_callers *callers;
};

static void begin(struct fixture *fixture)
{
	struct module *module = calloc(1, sizeof(*module));

	assert_non_null(module);
	dl_iterate_phdr(take_program, module);
	module->path = realpath(program_invocation_name, NULL);
	module->file = module->path ? strdup(module->path) : NULL;
	assert_non_null(module->file);
	fixture->image = image_new(&live.memory);
	image_set_modules(fixture->image, module, 1);
	fixture->symbols = symbols_new(fixture->image, &live.memory, NULL);
	fixture->cfi = cfi_new(fixture->image, fixture->symbols);
	fixture->callers = NULL;
	assert_non_null(fixture->cfi);
}

static void end(struct fixture *fixture)
{
	leaf_callers_free(fixture->callers);
	cfi_free(fixture->cfi);
	symbols_free(fixture->symbols);
	image_free(fixture->image);
}

static bool find(struct fixture *fixture, struct memory *of_stack, struct registers *ret_caller)
{
	const struct registers leaf = { .pc = noted.pc,
					.sp = noted.sp,
					.unknown = REGISTERS_ALL_BUT_PC_AND_SP };

	return leaf_caller_find(&fixture->callers, fixture->image, fixture->cfi, fixture->symbols, of_stack,
				&leaf, ret_caller);
}

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	live = (struct process){ .memory = { .read_ranges = read_live },
				 .file = memfd_create("copy", MFD_CLOEXEC) };
	assert_true(live.file >= 0);
	begin(fixture);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	end(*state);
	free(*state);
	close(live.file);
	return 0;
}

static void assert_found(struct fixture *fixture)
{
	struct registers caller;

	assert_true(find(fixture, &stack, &caller));
	assert_int_equal(caller.pc, noted.returns_to);
	assert_int_equal(caller.sp, noted.caller_sp);
}

static void assert_unknown(struct fixture *fixture)
{
	struct registers caller;

	assert_false(find(fixture, &stack, &caller));
}

/*---- Behaviour ----*/

static void the_only_caller_is_found(void **state)
{
	assert_int_equal(only_caller(1), 4);
	assert_found(*state);
	assert_found(*state); /* as it was remembered */
}

static void of_two_callers_the_one_that_was_called_is_found(void **state)
{
	assert_int_equal(first_caller(1), 4);
	assert_found(*state);
	assert_int_equal(second_caller(1), 4);
	assert_found(*state);
}

/* Both calls have the same frame, but not the same line. */
static void of_two_calls_in_a_function_none_is_named(void **state)
{
	assert_int_equal(calls_twice(1), 5);
	assert_unknown(*state);
}

static void a_leaf_whose_address_is_known_may_have_other_callers(void **state)
{
	assert_int_equal(caller_by_name(1), 4);
	assert_unknown(*state);
	assert_int_equal(leaf_address(1), 2);
	assert_unknown(*state);
}

/* What called jumps() says nothing of jumped_to(); the jump does. */
static void a_caller_behind_a_jump_is_found(void **state)
{
	assert_int_equal(jumps(1), 5);
	assert_found(*state);
}

static void of_callers_that_were_called_through_pointers_none_is_named(void **state)
{
	for (size_t i = 0; i < sizeof(pointers) / sizeof(pointers[0]); i++) {
		assert_int_equal(pointers[i](1), 4);
		assert_unknown(*state);
	}
}

static void without_its_stack_no_caller_is_named(void **state)
{
	struct memory empty = { .read_ranges = read_nothing };
	struct registers caller;

	assert_int_equal(first_caller(1), 4);
	assert_false(find(*state, &empty, &caller));
}

/* A pc outside of all modules. */
static void code_of_no_module_has_no_caller(void **state)
{
	only_caller(1);
	noted.pc = noted.sp;
	assert_unknown(*state);
}

/* Code, tables and headers of which some bytes are others: an answer, or none, but always an end. */
static void damaged_modules_are_searched_to_an_end(void **state)
{
	size_t unknown = 0;

	(void)state;
	second_caller(1);
	for (live.seed = 1; live.seed <= DAMAGES; live.seed++) {
		struct fixture damaged;
		struct registers caller;

		begin(&damaged);
		unknown += !find(&damaged, &stack, &caller);
		end(&damaged);
	}
	live.seed = 0;
	assert_in_range(unknown, DAMAGES / 20, DAMAGES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_only_caller_is_found),
		cmocka_unit_test(of_two_callers_the_one_that_was_called_is_found),
		cmocka_unit_test(of_two_calls_in_a_function_none_is_named),
		cmocka_unit_test(a_leaf_whose_address_is_known_may_have_other_callers),
		cmocka_unit_test(a_caller_behind_a_jump_is_found),
		cmocka_unit_test(of_callers_that_were_called_through_pointers_none_is_named),
		cmocka_unit_test(without_its_stack_no_caller_is_named),
		cmocka_unit_test(code_of_no_module_has_no_caller),
		cmocka_unit_test(damaged_modules_are_searched_to_an_end),
	};

	(void)others;
	return cmocka_run_group_tests(tests, set_up, tear_down);
}

/* SPDX-License-Identifier: MIT */
/* Where stack pointer and frame pointer stand at instructions of small functions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/range_bytes.h"
#include "unwind/native/frame_depth.h"

enum { ADDRESS = 0x400000, CODE_MAX = 1 << 16, RBP = 6 };

/* Code at ADDRESS, and nothing else. */
static struct code {
	struct memory memory; /* must be first */
	uint8_t bytes[CODE_MAX];
	size_t length;
} code;

static struct image *image;
static struct frame_depths *depths;
static struct frame_depth depth;

static void read_code(struct memory *memory, struct memory_range *ranges, size_t count)
{
	(void)memory;
	range_bytes(ranges, count, ADDRESS, code.bytes, CODE_MAX);
}

static int begin(void **state)
{
	(void)state;
	code.memory.read_ranges = read_code;
	image = image_new(&code.memory);
	depths = frame_depths_new(image);
	assert_non_null(depths);
	return 0;
}

static int end(void **state)
{
	(void)state;
	frame_depths_free(depths);
	frame_depths_free(NULL);
	image_free(image);
	return 0;
}

static void set_code(const char *bytes, size_t length)
{
	memcpy(code.bytes, bytes, length);
	code.length = length;
	image_set_modules(image, NULL, 0); /* text is read anew */
}

#define SET_CODE(literal) set_code((literal), sizeof(literal) - 1)

static bool find(size_t at)
{
	return frame_depth_find(depths, ADDRESS, ADDRESS + code.length, ADDRESS + at, RBP, &depth);
}

static void expect(size_t at, int64_t sp, int64_t pointer)
{
	assert_true(find(at));
	assert_int_equal(depth.sp, sp);
	assert_int_equal(depth.pointer, pointer);
}

static void both_are_known_from_the_prologue_on(void **state)
{
	(void)state;
	/* push rbp; mov rbp, rsp; push rbx; sub rsp, 24; call +0; ... lea rsp, [rbp - 8]; pop rbx; pop rbp; ret */
	SET_CODE("\x55\x48\x89\xe5\x53\x48\x83\xec\x18\xe8\x10\x00\x00\x00\x48\x8d\x65\xf8\x5b\x5d\xc3");
	assert_false(find(0)); /* rbp is the caller's */
	assert_false(find(1));
	expect(4, -8, -8);
	expect(5, -16, -8);
	expect(9, -40, -8);
	/* Within the call, and where it returns to. */
	expect(13, -40, -8);
	expect(14, -40, -8);
	expect(18, -16, -8);
	assert_false(find(20));
	assert_false(find(21));
}

static void a_stack_of_any_size_is_not_known(void **state)
{
	(void)state;
	/* push rbp; mov rbp, rsp; sub rsp, rax; nop; lea rsp, [rbp - 8]; nop; ret */
	SET_CODE("\x55\x48\x89\xe5\x48\x29\xc4\x90\x48\x8d\x65\xf8\x90\xc3");
	expect(4, -8, -8);
	assert_false(find(7));
	assert_false(find(8));
	expect(12, -16, -8);
}

static void all_paths_have_to_agree(void **state)
{
	(void)state;
	/* push rbp; mov rbp, rsp; je +2; push rax; nop; nop; ret */
	SET_CODE("\x55\x48\x89\xe5\x74\x02\x50\x90\x90\xc3");
	expect(6, -8, -8);
	expect(7, -16, -8);
	assert_false(find(8));
	assert_false(find(9));
	/* The same with pop rcx in the place of the first nop. */
	SET_CODE("\x55\x48\x89\xe5\x74\x02\x50\x59\x90\xc3");
	expect(7, -16, -8);
	expect(8, -8, -8);
	/* A loop that pushes: push rbp; mov rbp, rsp; push rax; jne -3; nop */
	SET_CODE("\x55\x48\x89\xe5\x50\x75\xfd\x90");
	assert_false(find(4));
	assert_false(find(7));
	/* One that gives the frame pointer another value: push rbp; mov rbp, rsp; nop; mov rbp, rax; jne -6; nop */
	SET_CODE("\x55\x48\x89\xe5\x90\x48\x89\xc5\x75\xfa\x90");
	assert_false(find(4));
}

static void what_no_path_reaches_is_not_known(void **state)
{
	(void)state;
	/* push rbp; mov rbp, rsp; jmp +1; nop; nop; ret; nop */
	SET_CODE("\x55\x48\x89\xe5\xeb\x01\x90\x90\xc3\x90");
	assert_false(find(6));
	expect(7, -8, -8);
	assert_false(find(9));
	/* A path that leaves the function ends: je +64 */
	SET_CODE("\x55\x48\x89\xe5\x74\x40\x90\xc3");
	expect(6, -8, -8);
	assert_false(find(8));
	/* Bytes that are no instruction end it, too, and so does the function's end. */
	SET_CODE("\x55\x48\x89\xe5\x06\x90");
	assert_false(find(5));
	SET_CODE("\x55\x48\x89\xe5\x48\x83");
	assert_false(find(5));
}

static void code_that_overlaps_is_not_known(void **state)
{
	(void)state;
	/* push rbp; mov rbp, rsp; je +1; mov al, 0x90; nop: the jump leads into the mov. */
	SET_CODE("\x55\x48\x89\xe5\x74\x01\xb0\x90\x90");
	expect(6, -8, -8);
	assert_false(find(7));
	expect(8, -8, -8);
}

static void code_that_is_too_long_is_not_known(void **state)
{
	enum { NOPS = 16384 };

	(void)state;
	SET_CODE("\x55\x48\x89\xe5");
	memset(code.bytes + code.length, 0x90, NOPS);
	code.length += NOPS - 2;
	expect(8, -8, -8);
	code.length += 1;
	assert_false(find(8));
}

static void many_branches_are_too_many(void **state)
{
	enum { BRANCHES = 512 };

	(void)state;
	SET_CODE("\x55\x48\x89\xe5");
	for (size_t i = 0; i <= BRANCHES; i++, code.length += 2)
		memcpy(code.bytes + code.length, "\x74\x00", 2);
	code.length -= 2;
	expect(4, -8, -8);
	code.length += 2;
	assert_false(find(4));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(both_are_known_from_the_prologue_on, begin, end),
		cmocka_unit_test_setup_teardown(a_stack_of_any_size_is_not_known, begin, end),
		cmocka_unit_test_setup_teardown(all_paths_have_to_agree, begin, end),
		cmocka_unit_test_setup_teardown(what_no_path_reaches_is_not_known, begin, end),
		cmocka_unit_test_setup_teardown(code_that_overlaps_is_not_known, begin, end),
		cmocka_unit_test_setup_teardown(code_that_is_too_long_is_not_known, begin, end),
		cmocka_unit_test_setup_teardown(many_branches_are_too_many, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

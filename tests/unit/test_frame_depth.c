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

enum { ADDRESS = 0x400000, CODE_MAX = 1 << 16, RBP = 6, ENOUGH = 1 << 20 };

/* Code at ADDRESS, and nothing else. */
static struct code {
	struct memory memory; /* must be first */
	uint8_t bytes[CODE_MAX];
	size_t length;
} code;

static struct image *image;
static struct frame_depth depth;
static unsigned int left;

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
	assert_non_null(image);
	left = ENOUGH;
	return 0;
}

static int end(void **state)
{
	(void)state;
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

static enum frame_depth_status ask(size_t at)
{
	const struct frame_question question = { ADDRESS, ADDRESS + code.length, ADDRESS + at, RBP };

	return frame_depth_find(image, &question, &left, &depth);
}

static bool find(size_t at)
{
	enum frame_depth_status status = ask(at);

	assert_int_not_equal(status, FRAME_DEPTH_UNDECIDED);
	return status == FRAME_DEPTH_FOUND;
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
	/*
	 * push rbp; mov rbp, rsp; push rbx; sub rsp, 24; call +0; ... lea rsp, [rbp - 8]; pop rbx; pop rbp;
	 * ret
	 */
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
	assert_false(find(4));
	assert_false(find(7));
	assert_false(find(8));
	assert_false(find(12));
	/* It was kept in another register: mov rdx, rsp; sub rsp, rax; mov rsp, rdx; nop */
	SET_CODE("\x55\x48\x89\xe5\x48\x89\xe2\x48\x29\xc4\x48\x89\xd4\x90\xc3");
	assert_false(find(13));
	/* So it was on one of two paths: lea rdx, [rsp - 32]; jne +3; mov rdx, rsp; mov rsp, rdx; nop */
	SET_CODE("\x55\x48\x89\xe5\x48\x8d\x54\x24\xe0\x75\x03\x48\x89\xe2\x48\x89\xd4\x90\xc3");
	assert_false(find(17));
	/* And so it was kept in memory: mov [rbp - 8], rsp; mov rsp, [rbp - 8]; nop */
	SET_CODE("\x55\x48\x89\xe5\x48\x89\x65\xf8\x48\x8b\x65\xf8\x90\xc3");
	assert_false(find(12));
}

static void arguments_are_popped_before_anything_else(void **state)
{
	(void)state;
	/* push rbp; mov rbp, rsp; sub rsp, 16; push 1; push 2; call; pop rax; pop rax; call; leave; ret */
	SET_CODE(
		"\x55\x48\x89\xe5\x48\x83\xec\x10\x6a\x01\x6a\x02\xe8\x40\0\0\0\x58\x58\xe8\x40\0\0\0\xc9\xc3");
	expect(12, -40, -8);
	assert_false(find(17));
	assert_false(find(18));
	expect(19, -24, -8);
	/* Where only one is, the call may be one that never returns. */
	SET_CODE(
		"\x55\x48\x89\xe5\x48\x83\xec\x10\x6a\x01\x6a\x02\xe8\x40\0\0\0\x90\x58\xe8\x40\0\0\0\xc9\xc3");
	assert_false(find(12));
	assert_false(find(19));
	/* And so before a jump: jne +0 */
	SET_CODE("\x55\x48\x89\xe5\x48\x83\xec\x10\x6a\x01\xe8\x40\0\0\0\x75\0\xc9\xc3");
	assert_false(find(10));
	/*
	 * With nothing behind but the end it does not matter, but nothing is known before they would be
	 * popped.
	 */
	SET_CODE("\x55\x48\x89\xe5\x48\x83\xec\x10\x6a\x01\xe8\x40\0\0\0\x90\xc9\xc3");
	expect(10, -32, -8);
	assert_false(find(15));
	/* Others are copied: call; sub rsp, 16; call; add rsp, 16; call; leave; ret */
	SET_CODE(
		"\x55\x48\x89\xe5\xe8\x40\0\0\0\x48\x83\xec\x10\xe8\x40\0\0\0\x48\x83\xc4\x10\xe8\x40\0\0\0\xc9\xc3");
	expect(13, -24, -8);
	expect(22, -8, -8);
	/* The same, with nop for add rsp, 16. */
	SET_CODE(
		"\x55\x48\x89\xe5\xe8\x40\0\0\0\x48\x83\xec\x10\xe8\x40\0\0\0\x0f\x1f\x40\0\xe8\x40\0\0\0\xc9\xc3");
	assert_false(find(22));
	/* Before all calls: sub rsp, 16; sub rsp, 16; call; call; leave; ret */
	SET_CODE("\x55\x48\x89\xe5\x48\x83\xec\x10\x48\x83\xec\x10\xe8\x40\0\0\0\xe8\x40\0\0\0\xc9\xc3");
	assert_false(find(17));
}

static void cases_behind_what_never_returns_are_held_to_the_jumps_depth(void **state)
{
	(void)state;
	/*
	 * push rbp; mov rbp, rsp; sub rsp, 16; ja +2; jmp rax; push 1; push 1; call die; call (a case);
	 * leave; ret: the case's depth is not that of the path to it.
	 */
	SET_CODE(
		"\x55\x48\x89\xe5\x48\x83\xec\x10\x77\x02\xff\xe0\x6a\x01\x6a\x01\xe8\x40\0\0\0\xe8\x40\0\0\0\xc9\xc3");
	assert_false(find(21));
	/* Nothing is pushed: nop; nop; nop; nop; call die */
	SET_CODE(
		"\x55\x48\x89\xe5\x48\x83\xec\x10\x77\x02\xff\xe0\x90\x90\x90\x90\xe8\x40\0\0\0\xe8\x40\0\0\0\xc9\xc3");
	expect(21, -24, -8);
	/* The jump is elsewhere: ja +4; push rcx; jmp rax; pop rcx; call; leave; ret */
	SET_CODE("\x55\x48\x89\xe5\x48\x83\xec\x10\x77\x04\x51\xff\xe0\x59\xe8\x40\0\0\0\xc9\xc3");
	assert_false(find(14));
}

static void what_no_path_reaches_is_held_to_the_same(void **state)
{
	(void)state;
	/* push rbp; mov rbp, rsp; call; leave; ret; mov rsp, rax; jmp -12 (to the call) */
	SET_CODE("\x55\x48\x89\xe5\xe8\x40\0\0\0\xc9\xc3\x48\x89\xc4\xeb\xf4");
	assert_false(find(4));
	/* mov rcx, rax */
	SET_CODE("\x55\x48\x89\xe5\xe8\x40\0\0\0\xc9\xc3\x48\x89\xc1\xeb\xf4");
	expect(4, -8, -8);
	/* push rax; nop; nop */
	SET_CODE("\x55\x48\x89\xe5\xe8\x40\0\0\0\xc9\xc3\x50\x90\x90\xeb\xf4");
	assert_false(find(4));
	/* Data, perhaps. */
	SET_CODE("\x55\x48\x89\xe5\xe8\x40\0\0\0\xc9\xc3\x06");
	assert_false(find(4));
}

static void what_cannot_be_decided_now_may_be_asked_again(void **state)
{
	enum { INSTRUCTIONS = 5 };

	(void)state;
	SET_CODE("\x55\x48\x89\xe5\xe8\x40\0\0\0\xc9\xc3");
	left = INSTRUCTIONS - 1;
	assert_int_equal(ask(4), FRAME_DEPTH_UNDECIDED);
	assert_int_equal(left, 0);
	assert_int_equal(ask(4), FRAME_DEPTH_UNDECIDED);
	left = INSTRUCTIONS + 1;
	expect(4, -8, -8);
	assert_int_equal(left, 1);
	/* Unreadable. */
	left = ENOUGH;
	code.length = CODE_MAX + 1;
	memset(code.bytes + 4, 0x90, CODE_MAX - 4);
	memcpy(code.bytes + 4, "\xe9\xf7\xff\0\0", 5); /* to the last byte */
	image_set_modules(image, NULL, 0);
	assert_int_equal(ask(4), FRAME_DEPTH_UNDECIDED);
}

static void all_paths_have_to_agree(void **state)
{
	(void)state;
	/* push rbp; mov rbp, rsp; je +2; push rax; nop; nop; ret */
	SET_CODE("\x55\x48\x89\xe5\x74\x02\x50\x90\x90\xc3");
	assert_false(find(6));
	assert_false(find(7));
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
	/*
	 * One that gives the frame pointer another value: push rbp; mov rbp, rsp; nop; mov rbp, rax; jne -6;
	 * nop
	 */
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
	/* A path with a frame leads out of all functions: je +64 */
	SET_CODE("\x55\x48\x89\xe5\x74\x40\x90\xc3");
	assert_false(find(6));
	/* Without it, it ends: pop rbp; je +64; nop */
	SET_CODE("\x55\x48\x89\xe5\x90\x5d\x74\x40\x90\xc3");
	expect(4, -8, -8);
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
	for (size_t i = 0; i < BRANCHES; i++, code.length += 2)
		memcpy(code.bytes + code.length, "\x74\x00", 2);
	memcpy(code.bytes + code.length, "\xc3", 1);
	code.length += 1;
	image_set_modules(image, NULL, 0);
	expect(4, -8, -8);
	memcpy(code.bytes + code.length - 1, "\x74\x00\xc3", 3);
	code.length += 2;
	image_set_modules(image, NULL, 0);
	assert_false(find(4));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(both_are_known_from_the_prologue_on, begin, end),
		cmocka_unit_test_setup_teardown(a_stack_of_any_size_is_not_known, begin, end),
		cmocka_unit_test_setup_teardown(arguments_are_popped_before_anything_else, begin, end),
		cmocka_unit_test_setup_teardown(cases_behind_what_never_returns_are_held_to_the_jumps_depth,
						begin, end),
		cmocka_unit_test_setup_teardown(what_no_path_reaches_is_held_to_the_same, begin, end),
		cmocka_unit_test_setup_teardown(what_cannot_be_decided_now_may_be_asked_again, begin, end),
		cmocka_unit_test_setup_teardown(all_paths_have_to_agree, begin, end),
		cmocka_unit_test_setup_teardown(what_no_path_reaches_is_not_known, begin, end),
		cmocka_unit_test_setup_teardown(code_that_overlaps_is_not_known, begin, end),
		cmocka_unit_test_setup_teardown(code_that_is_too_long_is_not_known, begin, end),
		cmocka_unit_test_setup_teardown(many_branches_are_too_many, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

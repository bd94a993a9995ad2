/* SPDX-License-Identifier: MIT */
/* How much of a native stack is copied, by what the last sample found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "luajit-layouts/tables.h"
#include "unwind/capture/capture_parts.h"

enum { BEGIN = 0x7f0000001100, WANTED = 0x4000, FRAMES_END = BEGIN + 0x2345, RANGES_MAX = STACK_PAGES_MAX };

static struct capture capture_from(uint64_t begin)
{
	return (struct capture){
		.registers = { .sp = begin + BELOW_STACK_BYTES },
		.stack_begin = begin,
		.stack_end = begin,
	};
}

/* Where the copy ends that is wanted with these hints. */
static uint64_t wanted_end(const struct capture_hints *hints)
{
	struct capture capture = capture_from(BEGIN);
	struct memory_range ranges[RANGES_MAX];
	size_t count = capture_stack_ranges(&capture, hints, BEGIN + WANTED, ranges);

	assert_int_not_equal(count, 0);
	assert_int_equal(ranges[0].address, BEGIN);
	for (size_t i = 1; i < count; i++)
		assert_int_equal(ranges[i].address, ranges[i - 1].address + ranges[i - 1].length);
	return ranges[count - 1].address + ranges[count - 1].length;
}

static void a_stack_is_copied_as_far_as_it_has_frames(void **state)
{
	struct capture_hints hints = { 0 };

	(void)state;
	assert_int_equal(wanted_end(&hints), BEGIN + WANTED);
	hints.frames_end = FRAMES_END;
	assert_int_equal(wanted_end(&hints), FRAMES_END);
	hints.stack_end = BEGIN + 0x1000;
	assert_int_equal(wanted_end(&hints), BEGIN + 0x1000);
	/* That of another stack, further down: the thread has gone over to this one. */
	hints = (struct capture_hints){ .frames_end = BEGIN - 0x100 };
	assert_int_equal(wanted_end(&hints), BEGIN + WANTED);
	hints = (struct capture_hints){ .frames_end = BEGIN, .stack_end = BEGIN };
	assert_int_equal(wanted_end(&hints), BEGIN + WANTED);
	hints = (struct capture_hints){ .frames_end = BEGIN + WANTED + 1 };
	assert_int_equal(wanted_end(&hints), BEGIN + WANTED);
}

/* The VM pushes its return address first, where the machine has it on the stack. */
static void the_c_frame_of_a_coroutine_that_is_resumed_next_is_copied(void **state)
{
	struct layout_row row;

	(void)state;
	assert_int_not_equal(layout_row_count(LAYOUT_GROUP_CFRAME), 0);
	for (size_t i = 0; i < layout_row_count(LAYOUT_GROUP_CFRAME); i++) {
		layout_row_get(LAYOUT_GROUP_CFRAME, i, &row);
		assert_in_range(row.offsets.CFRAME_size, 1, BELOW_STACK_BYTES - sizeof(uint64_t));
	}
}

static void the_end_is_forgotten_when_a_stack_does_not_lead_there(void **state)
{
	struct capture capture = capture_from(BEGIN);
	struct capture_hints hints = { 0 };

	(void)state;
	capture.stack_end = BEGIN + WANTED;
	capture_note_frames_end(&capture, FRAMES_END, &hints);
	assert_int_equal(hints.frames_end, FRAMES_END);
	capture_note_frames_end(&capture, BEGIN + WANTED, &hints); /* just where the copy ends */
	assert_int_equal(hints.frames_end, BEGIN + WANTED);
	capture_note_frames_end(&capture, 0, &hints); /* part of it was lost */
	assert_int_equal(hints.frames_end, 0);
	capture_note_frames_end(&capture, FRAMES_END, &hints);
	capture_note_frames_end(&capture, BEGIN + WANTED + 1, &hints); /* it ends on another stack */
	assert_int_equal(hints.frames_end, 0);
	capture_note_frames_end(&capture, BEGIN, &hints);
	assert_int_equal(hints.frames_end, 0);
}

static void another_stack_of_the_thread_ends_the_copy(void **state)
{
	struct capture_hints hints = { .own_stack = { .address = BEGIN + 0x2000, .length = 0x1000 } };

	(void)state;
	assert_int_equal(wanted_end(&hints), BEGIN + 0x2000);
	hints.own_stack.address = BEGIN + WANTED;
	assert_int_equal(wanted_end(&hints), BEGIN + WANTED);
	hints.own_stack.address = BEGIN - 0x1000; /* it lies below */
	assert_int_equal(wanted_end(&hints), BEGIN + WANTED);
	hints.own_stack = (struct memory_range){ .address = BEGIN + 0x2000 }; /* there is none */
	assert_int_equal(wanted_end(&hints), BEGIN + WANTED);
}

/*---- Copies of a large stack ----*/

enum { PAGES_END = BEGIN + (2 << 20) + 0xf00, NOT_YET = BEGIN + 0x5f00 };

static bool is_fresh; /* the page at NOT_YET has not been used yet */

/* Each word of the stack is its own address. */
static void read_stack(struct memory *memory, struct memory_range *ranges, size_t count)
{
	(void)memory;
	for (size_t i = 0; i < count; i++) {
		const uint64_t begin = ranges[i].address, end = begin + ranges[i].length;

		ranges[i].status = MEMORY_UNMAPPED;
		if (begin < BEGIN - 0x1100 || end > PAGES_END || end < begin)
			continue;
		ranges[i].status = MEMORY_REFUSED;
		if (is_fresh && begin < NOT_YET + PAGE_SIZE && end > NOT_YET)
			continue;
		for (size_t at = 0; at < ranges[i].length; at++)
			((uint8_t *)ranges[i].copy)[at] = (uint8_t)(((begin + at) & ~(uint64_t)7) >>
								    (begin + at) % 8 * 8);
		ranges[i].status = MEMORY_OK;
	}
}

static struct memory large = { .read_ranges = read_stack };
static struct capture copied;
static struct capture_hints found;

static int begin(void **state)
{
	(void)state;
	is_fresh = false;
	found = (struct capture_hints){ 0 };
	copied = capture_from(BEGIN);
	copied.snapshot = snapshot_new(&large);
	return copied.snapshot ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	snapshot_free(copied.snapshot);
	return 0;
}

static void a_stack_is_copied_to_its_limit(void **state)
{
	(void)state;
	capture_extend_stack(&copied, &found, BEGIN + 0x3210);
	assert_int_equal(copied.stack_end, BEGIN + 0x3210);
	capture_extend_stack(&copied, &found, BEGIN + 0x100); /* it is there */
	assert_int_equal(copied.stack_end, BEGIN + 0x3210);
	capture_extend_stack(&copied, &found, PAGES_END);
	assert_int_equal(copied.stack_end, BEGIN + CAPTURE_STACK_BYTES_MAX);
	assert_int_equal(found.stack_end, 0);
}

static void what_is_below_the_stack_pointer_need_not_be_there(void **state)
{
	enum { LOWEST = BEGIN - 0x1100, SP = LOWEST + 0x40 };

	(void)state;
	copied.registers.sp = SP;
	copied.stack_begin = copied.stack_end = SP - BELOW_STACK_BYTES;
	capture_extend_stack(&copied, &found, SP + 0x1000);
	assert_int_equal(copied.stack_begin, LOWEST);
	assert_int_equal(copied.stack_end, SP + 0x1000);
	assert_int_equal(found.stack_end, 0);
}

static void a_deep_stack_is_copied_to_its_end(void **state)
{
	uint64_t word = 0;

	(void)state;
	found.deep = true;
	assert_int_equal(capture_stack_limit(&copied, &found), BEGIN + CAPTURE_DEEP_BYTES_MAX);
	capture_extend_stack(&copied, &found, capture_stack_limit(&copied, &found));
	assert_int_equal(copied.stack_end, found.stack_end);
	assert_in_range(copied.stack_end, PAGES_END - PAGE_SIZE, PAGES_END);
	assert_true(capture_stack_word(&copied, copied.stack_end - 8, &word));
	assert_int_equal(word, copied.stack_end - 8);
}

static void a_page_that_is_not_there_yet_is_no_end(void **state)
{
	(void)state;
	is_fresh = true;
	capture_extend_stack(&copied, &found, BEGIN + 0x8000);
	assert_int_equal(copied.stack_end, NOT_YET);
	assert_int_equal(found.stack_end, 0);
	is_fresh = false;
	capture_extend_stack(&copied, &found, BEGIN + 0x8000);
	assert_int_equal(copied.stack_end, BEGIN + 0x8000);
}

static void the_copy_is_extended_to_what_lies_further_out(void **state)
{
	(void)state;
	assert_true(capture_reach_stack(&copied, &found, BEGIN + 0x2000, 0x50));
	assert_int_equal(copied.stack_end, BEGIN + 0x2050 + PAGE_SIZE);
	assert_true(capture_reach_stack(&copied, &found, BEGIN, 0x2050 + PAGE_SIZE));
	assert_int_equal(copied.stack_end, BEGIN + 0x2050 + PAGE_SIZE); /* all of it was there */
	assert_true(capture_reach_stack(&copied, &found, BEGIN, 0x2050 + PAGE_SIZE + 1));
	assert_false(capture_reach_stack(&copied, &found, BEGIN - 8, 8));
	assert_false(capture_reach_stack(&copied, &found, BEGIN + CAPTURE_STACK_BYTES_MAX - 8, 16));
	assert_false(capture_reach_stack(&copied, &found, UINT64_MAX - 7, 16));
}

static void a_word_is_on_the_copied_stack_or_unknown(void **state)
{
	uint64_t word = 0;

	(void)state;
	capture_extend_stack(&copied, &found, BEGIN + 0x1000);
	assert_true(capture_stack_word(&copied, BEGIN, &word));
	assert_int_equal(word, BEGIN);
	assert_true(capture_stack_word(&copied, BEGIN + 0x1000 - 8, &word));
	assert_int_equal(word, BEGIN + 0x1000 - 8);
	assert_false(capture_stack_word(&copied, BEGIN + 0x1000 - 7, &word));
	assert_false(capture_stack_word(&copied, BEGIN + 0x1000, &word));
	assert_false(capture_stack_word(&copied, BEGIN - 8, &word));
	assert_int_equal(word, BEGIN + 0x1000 - 8);
}

static void a_part_of_the_threads_own_stack_is_copied(void **state)
{
	const struct memory_range own = { .address = BEGIN + 0x10010, .length = 0x8000 };
	uint64_t word = 0;

	(void)state;
	capture_own_stack(&copied, &own, own.address + 0x123, own.address + 0x2345);
	assert_int_equal(copied.own_begin, own.address + 0x123);
	assert_int_equal(copied.own_end, own.address + 0x2345);
	assert_true(capture_on_own_stack(&copied, own.address + 0x2344));
	assert_false(capture_on_own_stack(&copied, own.address + 0x2345));
	assert_true(capture_stack_word(&copied, own.address + 0x1000, &word));
	assert_int_equal(word, own.address + 0x1000);
	/* No copy of the other stack reaches it. */
	assert_false(capture_reach_stack(&copied, &found, own.address + 0x2340, 8));
	assert_int_equal(copied.stack_end, BEGIN);
	capture_own_stack(&copied, &own, own.address - 0x1000, own.address + 0x9000);
	assert_int_equal(copied.own_begin, own.address);
	assert_int_equal(copied.own_end, own.address + own.length);
	/* An end beyond all addresses. */
	capture_own_stack(&copied, &own, own.address + 0x7000, 0x100);
	assert_int_equal(copied.own_end, own.address + own.length);
	/* All of it in one page. */
	capture_own_stack(&copied, &own, own.address + 0x20, own.address + 0x120);
	assert_int_equal(copied.own_begin, own.address + 0x20);
	assert_int_equal(copied.own_end, own.address + 0x120);
}

static void the_copy_of_it_ends_before_what_is_not_there(void **state)
{
	const struct memory_range own = { .address = NOT_YET - 0x3000, .length = 0x8000 };

	(void)state;
	is_fresh = true;
	capture_own_stack(&copied, &own, NOT_YET - 0x2000, NOT_YET + 0x3000);
	assert_int_equal(copied.own_begin, NOT_YET - 0x2000);
	assert_int_equal(copied.own_end, NOT_YET & ~(uint64_t)(PAGE_SIZE - 1));
	/* Nor is anything of it copied that begins there. */
	capture_own_stack(&copied, &own, NOT_YET, NOT_YET + 0x3000);
	assert_int_equal(copied.own_begin, NOT_YET);
	assert_int_equal(copied.own_end, NOT_YET);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stack_is_copied_as_far_as_it_has_frames),
		cmocka_unit_test(the_end_is_forgotten_when_a_stack_does_not_lead_there),
		cmocka_unit_test(another_stack_of_the_thread_ends_the_copy),
		cmocka_unit_test(the_c_frame_of_a_coroutine_that_is_resumed_next_is_copied),
		cmocka_unit_test_setup_teardown(a_stack_is_copied_to_its_limit, begin, end),
		cmocka_unit_test_setup_teardown(what_is_below_the_stack_pointer_need_not_be_there, begin,
						end),
		cmocka_unit_test_setup_teardown(a_deep_stack_is_copied_to_its_end, begin, end),
		cmocka_unit_test_setup_teardown(a_page_that_is_not_there_yet_is_no_end, begin, end),
		cmocka_unit_test_setup_teardown(the_copy_is_extended_to_what_lies_further_out, begin, end),
		cmocka_unit_test_setup_teardown(a_word_is_on_the_copied_stack_or_unknown, begin, end),
		cmocka_unit_test_setup_teardown(a_part_of_the_threads_own_stack_is_copied, begin, end),
		cmocka_unit_test_setup_teardown(the_copy_of_it_ends_before_what_is_not_there, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

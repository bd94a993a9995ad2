/* SPDX-License-Identifier: MIT */
/* How much of a native stack is copied, by what the last sample found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unwind/capture/capture_parts.h"

enum { BEGIN = 0x7f0000001100, WANTED = 0x4000, FRAMES_END = BEGIN + 0x2345, RANGES_MAX = STACK_PAGES_MAX };

static struct capture capture_from(uint64_t begin)
{
	return (struct capture){
		.registers = { .sp = begin + RED_ZONE },
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
	hints.frames_end = BEGIN + WANTED + 1;
	assert_int_equal(wanted_end(&hints), BEGIN + WANTED);
}

static void the_end_is_forgotten_when_a_stack_does_not_lead_there(void **state)
{
	struct capture capture = capture_from(BEGIN);
	struct capture_hints hints = { 0 };

	(void)state;
	capture.stack_end = BEGIN + WANTED;
	capture_note_frames_end(&capture, FRAMES_END, &hints);
	assert_int_equal(hints.frames_end, FRAMES_END);
	capture_note_frames_end(&capture, 0, &hints); /* part of it was lost */
	assert_int_equal(hints.frames_end, 0);
	capture_note_frames_end(&capture, FRAMES_END, &hints);
	capture_note_frames_end(&capture, BEGIN + WANTED + 1, &hints); /* it ends on another stack */
	assert_int_equal(hints.frames_end, 0);
	capture_note_frames_end(&capture, BEGIN, &hints);
	assert_int_equal(hints.frames_end, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stack_is_copied_as_far_as_it_has_frames),
		cmocka_unit_test(the_end_is_forgotten_when_a_stack_does_not_lead_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* Where stack pointer and frame pointer stand at instructions of arm64's functions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/range_bytes.h"
#include "unwind/native/frame_depth.h"

enum { ADDRESS = 0x400000, X29 = 29, WORDS = 8, PAGE_WORDS = 1024, AT = 3, CALL = 4 };

/* A page at ADDRESS, and nothing else. */
static struct code {
	struct memory memory; /* must be first */
	uint32_t words[PAGE_WORDS];
} code;

static void read_code(struct memory *memory, struct memory_range *ranges, size_t count)
{
	(void)memory;
	range_bytes(ranges, count, ADDRESS, (const uint8_t *)code.words, sizeof(code.words));
}

/* Is the frame known at the call in a function with this instruction before it? */
static bool is_known_behind(uint32_t word)
{
	static const uint32_t function[WORDS] = {
		0xa9be7bfd, /* stp x29, x30, [sp, -32]! */
		0x910003fd, /* mov x29, sp */
		0xf9000bf3, /* str x19, [sp, 16] */
		0xd503201f, /* nop */
		0x94000100, /* bl */
		0x910003bf, /* mov sp, x29 */
		0xa8c27bfd, /* ldp x29, x30, [sp], 32 */
		0xd65f03c0, /* ret */
	};
	const struct frame_question question = { ADDRESS, ADDRESS + sizeof(function), ADDRESS + CALL * 4,
						 X29 };
	struct image *image;
	struct frame_depth depth;
	unsigned int left = 1 << 16;
	enum frame_depth_status status;

	code.memory.read_ranges = read_code;
	memcpy(code.words, function, sizeof(function));
	code.words[AT] = word;
	image = image_new(&code.memory);
	assert_non_null(image);
	status = frame_depth_find(image, &question, &left, &depth);
	image_free(image);
	if (status != FRAME_DEPTH_FOUND)
		return false;
	assert_int_equal(depth.sp, -32);
	assert_int_equal(depth.pointer, -32);
	return true;
}

static void a_stack_of_any_size_is_not_known(void **state)
{
	static const uint32_t words[] = {
		0xcb2063ff, /* sub sp, sp, x0, alloca() */
		0x8b2063ff, /* add sp, sp, x0 */
		0xcb214c1f, /* sub sp, x0, w1, uxtw 3 */
		0x927cec1f, /* and sp, x0, 0xfffffffffffffff0 */
		0x043f503f, /* addvl sp, sp, 1 */
		0x047f503f, /* addpl sp, sp, 1 */
		0x91800c1f, /* addg sp, x0, 0, 3 */
		0x9ac1101f, /* irg sp, x0, x1 */
		0x9100001f, /* mov sp, x0 */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		assert_false(is_known_behind(words[i]));
}

static void what_has_the_zero_register_does_not_move_the_stack(void **state)
{
	static const uint32_t words[] = {
		0xd503201f, /* nop */
		0xf2400c1f, /* tst x0, 0xf */
		0xeb2063ff, /* cmp sp, x0 */
		0xab2063ff, /* cmn sp, x0 */
		0xcb00001f, /* neg xzr, x0 */
		0xf100041f, /* cmp x0, 1 */
		0xcb206000, /* sub x0, x0, x0, uxtx */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		assert_true(is_known_behind(words[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stack_of_any_size_is_not_known),
		cmocka_unit_test(what_has_the_zero_register_does_not_move_the_stack),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* By what two mappings are of one file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/made_up_memory.h"
#include "unwind/elf/file_identity.h"

enum { AT = MADE_UP_AT + 0x100, CHANGED_NS = 1234567890 };

static struct module module;
static struct memory *live;

static int begin(void **state)
{
	(void)state;
	live = made_up_memory_begin();
	for (size_t i = 0; i < MADE_UP_BYTES; i++)
		put(MADE_UP_AT + i, i * 7, 1);
	module = (struct module){ .begin = AT - 0x80,
				  .end = AT + 0x2000,
				  .base = AT,
				  .device = 5,
				  .inode = 6,
				  .changed_ns = CHANGED_NS };
	return 0;
}

static struct file_identity identity(void)
{
	struct file_identity found;

	memset(&found, 0xff, sizeof(found));
	assert_true(file_identity_read(&module, live, &found));
	return found;
}

static void a_file_is_known_by_all_that_is_seen_of_it(void **state)
{
	const struct file_identity found = identity();

	(void)state;
	assert_int_equal(found.device, 5);
	assert_int_equal(found.inode, 6);
	assert_int_equal(found.extent, 0x2080);
	assert_int_equal(found.changed_ns, CHANGED_NS);
	assert_memory_equal(found.head, made_up_memory.bytes + (AT - MADE_UP_AT), FILE_HEAD_BYTES);
	/* They are compared as bytes. */
	assert_int_equal(sizeof(found), 4 * sizeof(uint64_t) + FILE_HEAD_BYTES);
}

static void what_cannot_be_read_is_no_file(void **state)
{
	struct file_identity found = { .device = 1 };

	(void)state;
	module.base = MADE_UP_AT + MADE_UP_BYTES - FILE_HEAD_BYTES;
	assert_true(file_identity_read(&module, live, &found));
	found.device = 1;
	module.base++;
	assert_false(file_identity_read(&module, live, &found));
	assert_int_equal(found.device, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_file_is_known_by_all_that_is_seen_of_it, begin),
		cmocka_unit_test_setup(what_cannot_be_read_is_no_file, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

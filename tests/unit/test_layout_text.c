/* SPDX-License-Identifier: MIT */
/* A layout survives being written and read, and what is no layout is refused with a reason. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "luajit-layouts/layout_text.h"

static unsigned read_text(const char *text, struct layout *ret_layout, const char **ret_reason)
{
	FILE *file = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
	unsigned line = layout_text_read(file, ret_layout, ret_reason);

	fclose(file);
	return line;
}

static void what_is_written_is_read_again(void **state)
{
	struct layout written, read;
	const char *reason = NULL;
	char *text = NULL;
	size_t length;
	int32_t value = 0;
	FILE *file = open_memstream(&text, &length);

	(void)state;
	layout_clear(&written);
#define NUMBER(structure, field) written.structure##_##field = value++ % 5 == 0 ? LAYOUT_ABSENT : 8 * value;
	LAYOUT_FIELDS(NUMBER)
#undef NUMBER
	written.J_state = LAYOUT_UNKNOWN;
	written.gc64 = true;
	written.bytecode = BYTECODE_V21_BITOPS;
	strcpy(written.name, "mine");
	layout_text_write(&written, file);
	fclose(file);
	/* Also what is not known: a reader need not know that. */
	assert_non_null(strstr(text, "\nJ.state = unknown\n"));
	assert_non_null(strstr(text, " = absent\n"));
	assert_int_equal(read_text(text, &read, &reason), 0);
	assert_memory_equal(&written, &read, sizeof(written));
	free(text);
}

static void only_what_both_know_can_differ(void **state)
{
	struct layout here, there;
	char *text = NULL;
	size_t length;
	FILE *file = open_memstream(&text, &length);

	(void)state;
	layout_clear(&here);
	layout_clear(&there);
	here.g_vmstate = 184;
	there.g_vmstate = 192;
	here.L_base = there.L_base = 32;
	here.J_state = 8; /* unknown there */
	there.J_trace = 8;
	here.L_env = 16;
	there.L_env = LAYOUT_ABSENT;
	layout_text_compare(&here, &there, "row 7: ", file);
	fclose(file);
	assert_non_null(strstr(text, "row 7: g.vmstate is 192 there, 184 here\n"));
	assert_non_null(strstr(text, "row 7: L.env is -1 there, 16 here\n"));
	assert_int_equal(length, strlen("row 7: g.vmstate is 192 there, 184 here\n") +
					 strlen("row 7: L.env is -1 there, 16 here\n"));
	free(text);
}

static void comments_and_blanks_mean_nothing(void **state)
{
	struct layout layout;
	const char *reason;

	(void)state;
	assert_int_equal(
		read_text("# mine\n\n  g.vmstate=184   # bytes\n\tJ.state =  absent\n", &layout, &reason), 0);
	assert_int_equal(layout.g_vmstate, 184);
	assert_int_equal(layout.J_state, LAYOUT_ABSENT);
	assert_int_equal(layout.L_base, LAYOUT_UNKNOWN);
}

static void what_is_no_layout_is_refused_by_its_line(void **state)
{
	static const struct {
		const char *text;
		unsigned line;
		const char *reason;
	} bad[] = {
		{ "g.vmstate = 184\ng.nonsense = 1\n", 2, "no such field" },
		{ "g.vmstate = -8\n", 1, "not an offset" },
		{ "g.vmstate = 99999999999999999999\n", 1, "not an offset" },
		{ "g.vmstate = 12x\n", 1, "not an offset" },
		{ "gc64 = maybe\n", 1, "neither yes nor no" },
		{ "bytecode = 3.0\n", 1, "not a bytecode numbering" },
		{ "g.vmstate\n", 1, "not of the form key = value" },
		{ "g.vmstate = 184 192\n", 1, "not of the form key = value" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct layout layout = { .g_vmstate = 1 };
		const char *reason = NULL;

		assert_int_equal(read_text(bad[i].text, &layout, &reason), bad[i].line);
		assert_string_equal(reason, bad[i].reason);
		assert_int_equal(layout.g_vmstate, 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read_again),
		cmocka_unit_test(only_what_both_know_can_differ),
		cmocka_unit_test(comments_and_blanks_mean_nothing),
		cmocka_unit_test(what_is_no_layout_is_refused_by_its_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * A layout survives being written and read, and what is no layout is refused with a reason, also by --layout.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "luajit-layouts/layout_text.h"
#include "luajit-layouts/release.h"
#include "src/inspect/given_layout.h"
#include "src/program/message.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/open_files.h"

/*---- What the user is told ----*/

static char told[8192];

__attribute__((__format__(__printf__, 3, 0))) static void tell(const char *kind, int error,
							       const char *format, va_list values)
{
	const size_t length = strlen(told);

	snprintf(told + length, sizeof(told) - length, "%s %d: ", kind, error);
	vsnprintf(told + strlen(told), sizeof(told) - strlen(told), format, values);
	strcat(told, "\n");
}

INSTEAD_OF(message_error);
MESSAGE_FORMAT(1, 2) void __wrap_message_error(const char *format, ...)
{
	va_list values;

	va_start(values, format);
	tell("error", 0, format, values);
	va_end(values);
}

INSTEAD_OF(message_error_errno);
MESSAGE_FORMAT(2, 3) void __wrap_message_error_errno(int error, const char *format, ...)
{
	va_list values;

	va_start(values, format);
	tell("error", error, format, values);
	va_end(values);
}

INSTEAD_OF(message_note);
MESSAGE_FORMAT(1, 2) void __wrap_message_note(const char *format, ...)
{
	va_list values;

	va_start(values, format);
	tell("note", 0, format, values);
	va_end(values);
}

/*---- Layouts as text ----*/

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
	here.L_status = 11; /* the first field of all */
	there.L_status = 7;
	here.g_vmstate = 184;
	there.g_vmstate = 192;
	here.L_base = there.L_base = 32;
	here.J_state = 8; /* unknown there */
	there.J_trace = 8;
	here.L_env = 16;
	there.L_env = LAYOUT_ABSENT;
	layout_text_compare(&here, &there, "row 7: ", file);
	fclose(file);
	assert_non_null(strstr(text, "row 7: L.status is 7 there, 11 here\n"));
	assert_non_null(strstr(text, "row 7: g.vmstate is 192 there, 184 here\n"));
	assert_non_null(strstr(text, "row 7: L.env is -1 there, 16 here\n"));
	assert_int_equal(length, strlen("row 7: L.status is 7 there, 11 here\n") +
					 strlen("row 7: g.vmstate is 192 there, 184 here\n") +
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
	/* What it does not say. */
	assert_false(layout.gc64);
	assert_false(layout.has_jit);
	assert_string_equal(layout.name, "");
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

static void offsets_are_numbers_up_to_a_bound(void **state)
{
	static const struct {
		const char *text;
		int32_t offset; /* -1: it is refused */
	} numbers[] = {
		{ "0", 0 },
		{ "1", 1 },
		{ "0x10", 16 },
		{ "010", 8 },
		{ "1048576", LAYOUT_OFFSET_MAX },
		{ "1048577", -1 },
		{ "x", -1 },
		{ "8.0", -1 },
		{ "9223372036854775808", -1 },
	};
	struct layout layout;
	const char *reason;
	char text[64];

	(void)state;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		snprintf(text, sizeof(text), "L.base = %s\n", numbers[i].text);
		assert_int_equal(read_text(text, &layout, &reason), numbers[i].offset < 0);
		if (numbers[i].offset < 0)
			assert_string_equal(reason, "not an offset");
		else
			assert_int_equal(layout.L_base, numbers[i].offset);
	}
}

static void a_line_has_a_bounded_length(void **state)
{
	enum { LINE_MAX = 254 }; /* with its end */
	struct layout layout;
	const char *reason;
	char text[2 * LINE_MAX];

	(void)state;
	for (size_t length = LINE_MAX - 1; length <= LINE_MAX + 1; length++) {
		snprintf(text, sizeof(text), "L.base = 8\n#%*s\nL.top = 16\n", (int)length - 2, "");
		if (length <= LINE_MAX) {
			assert_int_equal(read_text(text, &layout, &reason), 0);
			assert_int_equal(layout.L_top, 16);
		} else {
			assert_int_equal(read_text(text, &layout, &reason), 2);
			assert_string_equal(reason, "line too long");
		}
	}
	/* So has what it says. */
	snprintf(text, sizeof(text), "name = %63s\n", "a.name.of.its.own");
	assert_int_equal(read_text(text, &layout, &reason), 0);
	assert_string_equal(layout.name, "a.name.of.its.own");
	memset(text, 'n', sizeof(text));
	memcpy(text, "name = ", 7);
	text[7 + LAYOUT_NAME_MAX - 1] = '\0';
	assert_int_equal(read_text(text, &layout, &reason), 0);
	assert_int_equal(strlen(layout.name), LAYOUT_NAME_MAX - 1);
	memset(text + 7, 'n', LAYOUT_NAME_MAX);
	text[7 + LAYOUT_NAME_MAX] = '\0';
	assert_int_equal(read_text(text, &layout, &reason), 1);
	assert_string_equal(reason, "not of the form key = value");
}

/*---- What a layout must have ----*/

static void a_layout_is_usable_with_all_that_no_code_does_without(void **state)
{
	struct layout whole, layout;
	int32_t *const optional[] = { &layout.L_exdata,   &layout.g_cur_L,   &layout.g_jit_base,
				      &layout.g_tmpbuf_L, &layout.g_vmthref, &layout.SnapShot_mcofs };

	(void)state;
	assert_true(release_layout(release_name(0), &whole));
	assert_true(whole.has_jit);
	assert_null(layout_unusable(&whole));
	for (size_t i = 0; i < sizeof(optional) / sizeof(optional[0]); i++) {
		layout = whole;
		*optional[i] = LAYOUT_ABSENT;
		assert_null(layout_unusable(&layout));
		*optional[i] = LAYOUT_UNKNOWN;
		assert_non_null(layout_unusable(&layout));
	}
	layout = whole;
	layout.L_base = LAYOUT_ABSENT;
	assert_string_equal(layout_unusable(&layout), "L.base");
	layout = whole;
	layout.GCproto_k = LAYOUT_OBJECT_MAX;
	assert_null(layout_unusable(&layout));
	layout.GCproto_k++;
	assert_string_equal(layout_unusable(&layout), "GCproto.k");
	/* Without a JIT compiler there are no traces. */
	layout = whole;
	layout.GCtrace_nk = LAYOUT_UNKNOWN;
	assert_string_equal(layout_unusable(&layout), "GCtrace.nk");
	layout.has_jit = false;
	assert_null(layout_unusable(&layout));
	layout = whole;
	layout.GCtrace_nk = LAYOUT_TRACE_HEADER_MAX;
	assert_null(layout_unusable(&layout));
	layout.GCtrace_nk++;
	assert_string_equal(layout_unusable(&layout), "GCtrace.nk");
	layout = whole;
	layout.GCtrace_size = LAYOUT_TRACE_HEADER_MAX;
	assert_null(layout_unusable(&layout));
	layout.GCtrace_size++;
	assert_string_equal(layout_unusable(&layout), "GCtrace.size");
	layout = whole;
	layout.J_sizetrace = layout.J_trace - 1;
	assert_string_equal(layout_unusable(&layout), "J.sizetrace");
}

static void what_is_unknown_comes_from_another_layout(void **state)
{
	struct layout one, other;

	(void)state;
	layout_clear(&one);
	layout_clear(&other);
	one.L_base = 8;
	other.L_base = 16;
	other.g_vmstate = 24;
	one.GCtrace_nk = LAYOUT_ABSENT;
	other.GCtrace_nk = 32;
	layout_fill(&one, &other);
	assert_int_equal(one.L_base, 8);
	assert_int_equal(one.g_vmstate, 24);
	assert_int_equal(one.GCtrace_nk, LAYOUT_ABSENT);
	layout_keep_common(&one, &other);
	assert_int_equal(one.L_base, LAYOUT_UNKNOWN);
	assert_int_equal(one.g_vmstate, 24);
	assert_int_equal(one.GCtrace_nk, LAYOUT_UNKNOWN);
}

/*---- The layout that --layout names ----*/

static bool give(const char *text, struct given_layout *ret_given)
{
	const unsigned int files = open_files_count();
	bool is_given;

	told[0] = '\0';
	is_given = given_layout_read(text, ret_given);
	assert_int_equal(open_files_count(), files);
	assert_int_equal(is_given, told[0] == '\0');
	return is_given;
}

/* It is compared with the target, as one that ljspy recognises. */
static void a_release_is_given_by_its_name(void **state)
{
	(void)state;
	for (size_t i = 0; release_name(i); i++) {
		struct given_layout given = { .is_trusted = true };
		struct layout layout;

		assert_true(release_layout(release_name(i), &layout));
		assert_true(give(release_name(i), &given));
		assert_memory_equal(&given.layout, &layout, sizeof(layout));
		assert_false(given.is_trusted);
	}
	assert_non_null(release_name(1));
}

static void a_layout_of_the_users_own_is_trusted(void **state)
{
	char path[] = "/tmp/test_layout_text.XXXXXX";
	struct given_layout given = { 0 };
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "name = mine\ng.vmstate = 184\n", 29), 29);
	assert_true(give(path, &given));
	assert_true(given.is_trusted);
	assert_string_equal(given.layout.name, "mine");
	assert_int_equal(given.layout.g_vmstate, 184);
	assert_int_equal(given.layout.g_gc_total, LAYOUT_UNKNOWN);
	/* What is none is told by its line, and gives nothing. */
	assert_int_equal(pwrite(fd, "name = mine\ng.vmstate = none\n", 30, 0), 30);
	memset(&given, 'x', sizeof(given));
	assert_false(give(path, &given));
	assert_int_equal(given.layout.g_vmstate, 0x78787878);
	assert_non_null(strstr(told, path));
	assert_non_null(strstr(told, "line 2 is not an offset."));
	close(fd);
	unlink(path);
}

static void a_name_of_nothing_is_answered_with_the_names_there_are(void **state)
{
	struct given_layout given;
	const char *at;

	(void)state;
	assert_false(give("/no/such/release", &given));
	assert_non_null(strstr(told, "error 0: \"/no/such/release\" is neither"));
	at = strstr(told, "note 0: Releases with a name are ");
	assert_non_null(at);
	at += strlen("note 0: Releases with a name are ");
	for (size_t i = 0; release_name(i); i++) {
		assert_memory_equal(at, release_name(i), strlen(release_name(i)));
		at += strlen(release_name(i));
		assert_memory_equal(at, release_name(i + 1) ? ", " : ".\n", 2);
		at += 2;
	}
	assert_string_equal(at, "");
	/* One that is there but cannot be opened is a file. */
	assert_false(give("/proc/self/exe/a", &given));
	assert_null(strstr(told, "Releases"));
	assert_non_null(strstr(told, "/proc/self/exe/a"));
	assert_int_equal(strtol(told + strlen("error "), NULL, 10), ENOTDIR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read_again),
		cmocka_unit_test(only_what_both_know_can_differ),
		cmocka_unit_test(comments_and_blanks_mean_nothing),
		cmocka_unit_test(what_is_no_layout_is_refused_by_its_line),
		cmocka_unit_test(offsets_are_numbers_up_to_a_bound),
		cmocka_unit_test(a_line_has_a_bounded_length),
		cmocka_unit_test(a_layout_is_usable_with_all_that_no_code_does_without),
		cmocka_unit_test(what_is_unknown_comes_from_another_layout),
		cmocka_unit_test(a_release_is_given_by_its_name),
		cmocka_unit_test(a_layout_of_the_users_own_is_trusted),
		cmocka_unit_test(a_name_of_nothing_is_answered_with_the_names_there_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

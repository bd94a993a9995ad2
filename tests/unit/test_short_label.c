/* SPDX-License-Identifier: MIT */
/* What is left of a label in little room. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "output/labels/short_label.h"

static void assert_short(const struct function *function, size_t columns, const char *expected)
{
	struct label_table table = { 0 };
	char text[LABEL_TEXT_SIZE];

	assert_int_equal(label_table_add(&table, function, 0), 0);
	assert_int_equal(short_label(label_table_find(&table, function, 0), columns, text), strlen(expected));
	assert_string_equal(text, expected);
	label_table_clear(&table);
}

static void the_end_of_the_path_is_kept(void **state)
{
	const struct function handler = {
		.kind = FRAME_LUA,
		.name = "handler",
		.file = "@/usr/local/share/lua/5.1/kong/plugins/rate-limiting/handler.lua",
		.firstline = 12,
	};

	(void)state;
	assert_short(&handler, 49, "handler kong/plugins/rate-limiting/handler.lua:12");
	assert_short(&handler, 48, "handler \u2026/plugins/rate-limiting/handler.lua:12");
	assert_short(&handler, 38, "handler \u2026/rate-limiting/handler.lua:12");
	assert_short(&handler, 37, "handler \u2026/handler.lua:12");
	assert_short(&handler, 23, "handler \u2026handler.lua:12");
	assert_short(&handler, 13, "handler \u2026a:12");
	assert_short(&handler, 12, "handler");
	assert_short(&handler, 6, "handl\u2026");
}

static void names_lose_their_middle(void **state)
{
	const struct function native = { .kind = FRAME_NATIVE,
					 .name = "ngx_http_lua_run_thread",
					 .module = "nginx" };
	const struct function unnamed = { .kind = FRAME_LUA,
					  .file = "@/opt/app/views/page.lua",
					  .firstline = 5 };

	(void)state;
	assert_short(&native, 31, "ngx_http_lua_run_thread [nginx]");
	assert_short(&native, 30, "ngx_http_lua_run_thread");
	assert_short(&native, 15, "ngx_http_\u2026hread");
	assert_short(&unnamed, 24, "function <\u2026/page.lua:5>");
	assert_short(&unnamed, 16, "function <\u2026ua:5>");
	assert_short(&unnamed, 10, "functi\u2026:5>");
}

static void little_room_has_the_beginning_of_a_name(void **state)
{
	const struct function named = { .kind = FRAME_LUA, .name = "abcdefghijkl" };

	(void)state;
	assert_short(&named, 12, "abcdefghijkl");
	assert_short(&named, 11, "abcdef\u2026ijkl");
	assert_short(&named, 9, "abcde\u2026jkl");
	assert_short(&named, 8, "abcdefg\u2026");
	assert_short(&named, 2, "a\u2026");
}

static void wide_characters_take_two_columns(void **state)
{
	const struct function wide = { .kind = FRAME_LUA, .name = "\u4e2d\u6587\u51fd\u6570\u540d\u5b57" };

	(void)state;
	assert_short(&wide, 12, "\u4e2d\u6587\u51fd\u6570\u540d\u5b57");
	assert_short(&wide, 11, "\u4e2d\u6587\u51fd\u2026\u540d\u5b57");
	assert_short(&wide, 4, "\u4e2d\u2026");
	assert_short(&wide, 2, "\u2026");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_end_of_the_path_is_kept),
		cmocka_unit_test(names_lose_their_middle),
		cmocka_unit_test(little_room_has_the_beginning_of_a_name),
		cmocka_unit_test(wide_characters_take_two_columns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* Where Debian's builds of nginx and lua-nginx-module keep what they know of requests, by their files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "luajit-layouts/module/elf_image.h"
#include "tests/unit/mapped_file.h"
#include "unwind/elf/dynamic_symbol.h"
#include "unwind/elf/registers.h"
#include "unwind/lua/request.h"
#include "unwind/nginx/gateway.h"
#include "unwind/nginx/request_members.h"
#include "unwind/nginx/variables.h"

enum { PATH_BYTES = 256, CTX_INDEX = 5 };
static const uint64_t NGINX_AT = 0x400000, MODULE_AT = 0x7f0000000000;

#ifdef __aarch64__
#define BOOKWORM_NGINX "build/packages/bookworm/nginx-arm64/usr/sbin/nginx"
#define BOOKWORM_MODULE "build/packages/bookworm/nginx-arm64/usr/lib/nginx/modules/ngx_http_lua_module.so"
#define TRIXIE "build/packages/trixie/nginx-arm64"
#else
#define BOOKWORM_NGINX "build/packages/nginx/usr/sbin/nginx"
#define BOOKWORM_MODULE "build/packages/libnginx-mod-http-lua/usr/lib/nginx/modules/ngx_http_lua_module.so"
#define TRIXIE "build/packages/trixie/nginx"
#endif

/* tests/nginx judges by nginx's own log what ljspy reads with these. Addresses are those of symbols. */
static const struct build {
	const char *nginx, *module;
	struct request_members members;
	int32_t ctx_context, ctx_ref;
} builds[] = {
#ifndef __aarch64__
	{ "build/packages/bullseye/nginx/usr/sbin/nginx",
	  "build/packages/bullseye/nginx/usr/lib/nginx/modules/ngx_http_lua_module.so",
	  { true, 8,   1128, 1008, 1072, 496,  960, 968, 648, 1256, 1024, 1248,
	    80,   120, 200,  208,  72,   1272, 224, 0,   0,   0,    0 },
	  388,
	  248 },
#endif
	{ BOOKWORM_NGINX,
	  BOOKWORM_MODULE,
	  { true, 8,   1128, 1008, 1072, 496,  960, 968, 648, 1256, 1024, 1248,
	    80,   120, 200,  216,  72,   1272, 232, 0,   0,   0,    0 },
	  420,
	  264 },
	{ TRIXIE "/usr/sbin/nginx",
	  TRIXIE "/usr/lib/nginx/modules/ngx_http_lua_module.so",
	  { true, 8,   1000, 880, 944, 432,  832, 840, 584, 1128, 896, 1120,
	    80,   120, 208,  224, 72,  1144, 240, 0,   0,   0,    0 },
	  420,
	  264 },
};

enum { BUILDS = sizeof(builds) / sizeof(builds[0]) };

static struct mapped_file nginx[BUILDS], module[BUILDS];
static size_t found; /* builds */

/* The files of builds that are unpacked; skips the test if there are none. */
static int open_all(void **state)
{
	(void)state;
	found = 0;
	for (size_t i = 0; i < BUILDS; i++)
		if (mapped_file_open(&nginx[i], builds[i].nginx, NGINX_AT) &&
		    mapped_file_open(&module[i], builds[i].module, MODULE_AT))
			found++;
	return 0;
}

static int close_all(void **state)
{
	(void)state;
	for (size_t i = 0; i < BUILDS; i++) {
		mapped_file_close(&nginx[i]);
		mapped_file_close(&module[i]);
	}
	return 0;
}

#define EACH_BUILD(i) \
	if (found < BUILDS) \
		skip(); \
	for (size_t i = 0; i < BUILDS; i++)

static struct request_members members_of(size_t build)
{
	struct request_members members;

	memset(&members, 0xff, sizeof(members));
	assert_true(request_members_find(&nginx[build].memory, MACHINE_OWN, NGINX_AT, &members));
	return members;
}

static void members_are_found_by_what_functions_read(void **state)
{
	(void)state;
	EACH_BUILD(i)
	{
		struct request_members members = members_of(i), expected = builds[i].members;

		/* Pointers and trees in the program's data, which it exports. */
		assert_true(dynamic_symbol_find(&nginx[i].memory, NGINX_AT, "ngx_cycle", &expected.cycle));
		assert_true(dynamic_symbol_find(&nginx[i].memory, NGINX_AT, "ngx_cached_time",
						&expected.cached_time));
		assert_true(dynamic_symbol_find(&nginx[i].memory, NGINX_AT, "ngx_event_timer_rbtree",
						&expected.timers));
		assert_true(dynamic_symbol_find(&nginx[i].memory, NGINX_AT, "ngx_current_msec",
						&expected.loop_ms));
		assert_int_not_equal(members.cycle, 0);
		assert_int_equal(members.known, expected.known);
		for (size_t at = offsetof(struct request_members, connection);
		     at < offsetof(struct request_members, request_bytes); at += sizeof(int32_t))
			assert_int_equal(*(int32_t *)(void *)((char *)&members + at),
					 *(int32_t *)(void *)((char *)&expected + at));
		assert_int_equal(members.request_bytes, expected.request_bytes);
		assert_int_equal(members.connection_bytes, expected.connection_bytes);
		assert_int_equal(members.cycle, expected.cycle);
		assert_int_equal(members.cached_time, expected.cached_time);
		assert_int_equal(members.timers, expected.timers);
		assert_int_equal(members.loop_ms, expected.loop_ms);
		assert_false(request_members_find(&nginx[i].memory, EM_386, NGINX_AT, &members));
		assert_false(request_members_find(&nginx[i].memory, MACHINE_OWN, NGINX_AT + 4096, &members));
		assert_false(request_members_find(&module[i].memory, MACHINE_OWN, MODULE_AT, &members));
	}
}

/* The name of the variable in the table of those that nginx has in its core or of upstreams. */
static char *name_of(size_t build, const char *first, const char *other, const char *name)
{
	struct elf_image image;
	size_t length = strlen(name);

	assert_int_equal(elf_image_open(&nginx[build].memory, NGINX_AT, &image), ELF_IMAGE_OK);
	/* By the entry: its name's length and address. */
	for (size_t at = 0; at + 16 <= nginx[build].size; at += 8) {
		uint64_t words[2];
		struct variables table;

		memcpy(words, nginx[build].bytes + at, sizeof(words));
		if (words[0] == length && words[1] > NGINX_AT &&
		    words[1] < NGINX_AT + nginx[build].size - length &&
		    memcmp(nginx[build].bytes + (words[1] - NGINX_AT), name, length) == 0 &&
		    variables_find(&nginx[build].memory, &image, first, other, &table) &&
		    variables_named(&table, name))
			return (char *)nginx[build].bytes + (words[1] - NGINX_AT);
	}
	fail();
	return NULL;
}

/* Without one variable. */
static void a_build_without_a_variable_lacks_its_member(void **state)
{
	static const struct {
		const char *name;
		size_t member; /* which is unknown then; 0: nothing is known */
	} known[] = {
		{ "http_host", 0 },
		{ "request_time", 0 },
		{ "host", 0 },
		{ "uri", 0 },
		{ "remote_addr", 0 },
		{ "request_method", 0 },
		{ "args", offsetof(struct request_members, args) },
		{ "status", offsetof(struct request_members, status) },
		{ "request_length", offsetof(struct request_members, request_length) },
		{ "connection", offsetof(struct request_members, number) },
		{ "connection_requests", offsetof(struct request_members, requests) },
		{ "bytes_sent", offsetof(struct request_members, sent) },
	};

	(void)state;
	EACH_BUILD(i)
	{
		struct request_members whole = members_of(i);

		for (size_t j = 0; j < sizeof(known) / sizeof(known[0]); j++) {
			char *name = name_of(i, "http_host", "request_time", known[j].name);
			struct request_members without;
			bool is_found;

			name[0] ^= 0x20;
			is_found = request_members_find(&nginx[i].memory, MACHINE_OWN, NGINX_AT, &without);
			name[0] ^= 0x20;
			assert_int_equal(is_found, known[j].member != 0);
			for (size_t at = offsetof(struct request_members, connection);
			     is_found && at < offsetof(struct request_members, request_bytes);
			     at += sizeof(int32_t)) {
				bool is_it = at == known[j].member ||
					     (known[j].member == offsetof(struct request_members, status) &&
					      at == offsetof(struct request_members, err_status));

				assert_int_equal(*(int32_t *)(void *)((char *)&without + at),
						 is_it ? MEMBER_UNKNOWN
						       : *(int32_t *)(void *)((char *)&whole + at));
			}
		}
	}
}

/* Which of them the variable is cannot be told. */
static void a_variable_that_reads_two_members_tells_none(void **state)
{
	enum { NUMBER = 0x78 };
#ifdef __aarch64__
	/* ldr x1, [x0, #8]; ldr x2, [x1, #0x78]; ldr x3, [x1, #0x70]; ret */
	static const uint8_t one[] = "\x01\x04\x40\xf9\x22\x3c\x40\xf9", other[] = "\x23\x38\x40\xf9",
			     ret[] = "\xc0\x03\x5f\xd6";
#else
	/* mov 0x8(%rdi),%rcx; mov 0x78(%rcx),%rax; mov 0x70(%rcx),%rdx; ret */
	static const uint8_t one[] = "\x48\x8b\x4f\x08\x48\x8b\x41\x78", other[] = "\x48\x8b\x51\x70",
			     ret[] = "\xc3";
#endif
	enum { ONE = sizeof(one) - 1, OTHER = sizeof(other) - 1, RET = sizeof(ret) - 1 };

	(void)state;
	EACH_BUILD(i)
	{
		uint8_t kept[ONE + OTHER + RET], *code;
		struct elf_image image;
		struct variables table;

		assert_int_equal(elf_image_open(&nginx[i].memory, NGINX_AT, &image), ELF_IMAGE_OK);
		assert_true(variables_find(&nginx[i].memory, &image, "http_host", "request_time", &table));
		code = nginx[i].bytes + (variables_named(&table, "connection")->get - NGINX_AT);
		memcpy(kept, code, sizeof(kept));
		memcpy(code, one, ONE);
		memcpy(code + ONE, other, OTHER);
		memcpy(code + ONE + OTHER, ret, RET);
		assert_int_equal(members_of(i).number, MEMBER_UNKNOWN);
		memcpy(code + ONE, ret, RET);
		assert_int_equal(members_of(i).number, NUMBER);
		memcpy(code, kept, sizeof(kept));
	}
}

static void without_variables_of_upstreams_their_times_are_unknown(void **state)
{
	(void)state;
	EACH_BUILD(i)
	{
		char *name = name_of(i, "upstream_addr", "upstream_header_time", "upstream_addr");
		struct request_members whole = members_of(i), without;

		name[0] ^= 0x20;
		without = members_of(i);
		name[0] ^= 0x20;
		assert_int_not_equal(whole.upstream_states, MEMBER_UNKNOWN);
		assert_int_equal(without.upstream_states, MEMBER_UNKNOWN);
		assert_int_equal(without.connection, whole.connection);
	}
}

static void variables_are_in_tables(void **state)
{
	(void)state;
	EACH_BUILD(i)
	{
		struct variables table;
		struct elf_image image;
		const struct variable *uri;

		assert_int_equal(elf_image_open(&nginx[i].memory, NGINX_AT, &image), ELF_IMAGE_OK);
		assert_true(variables_find(&nginx[i].memory, &image, "http_host", "request_time", &table));
		assert_string_equal(table.table[0].name, "http_host");
		assert_in_range(table.count, 50, VARIABLES_MAX - 1);
		for (size_t j = 0; j < table.count; j++)
			assert_ptr_equal(variables_named(&table, table.table[j].name), &table.table[j]);
		uri = variables_named(&table, "uri");
		assert_non_null(uri);
		assert_int_equal(uri->data, builds[i].members.uri);
		assert_int_equal(elf_image_segment(&image, uri->get)->flags & PF_X, PF_X);
		assert_null(variables_named(&table, "ur"));
		assert_false(variables_find(&nginx[i].memory, &image, "http_host", "upstream_addr", &table));
		assert_false(variables_find(&nginx[i].memory, &image, "request_tim", "http_host", &table));
	}
}

/*---- lua-nginx-module ----*/

/* nginx sets the index when it loads the module. */
static void set_index(size_t build, uint64_t index)
{
	uint64_t address;

	assert_true(dynamic_symbol_find(&module[build].memory, MODULE_AT, "ngx_http_lua_module", &address));
	memcpy(module[build].bytes + (address - MODULE_AT), &index, sizeof(index));
}

static void the_module_tells_where_contexts_are(void **state)
{
	(void)state;
	EACH_BUILD(i)
	{
		struct request_layout layout;

		set_index(i, CTX_INDEX);
		assert_true(request_layout_find(&module[i].memory, MACHINE_OWN, MODULE_AT, &layout));
		assert_true(layout.known);
		assert_int_equal(layout.r_ctx, 16);
		assert_int_equal(layout.ctx_index, CTX_INDEX);
		assert_int_equal(layout.ctx_context, builds[i].ctx_context);
		assert_int_equal(layout.context_size, 2);
		assert_true(layout.has_connection);
		assert_int_equal(layout.r_connection, builds[i].members.connection);
		assert_int_equal(layout.r_main, builds[i].members.main);
		assert_int_equal(gateway_ref_member(&module[i].memory, MODULE_AT, &layout),
				 builds[i].ctx_ref);
		assert_false(request_layout_find(&module[i].memory, EM_386, MODULE_AT, &layout));
		assert_false(request_layout_find(&nginx[i].memory, MACHINE_OWN, NGINX_AT, &layout));
		/* A module that nginx has not loaded. */
		set_index(i, UINT64_MAX);
		assert_false(request_layout_find(&module[i].memory, MACHINE_OWN, MODULE_AT, &layout));
		set_index(i, 4095);
		assert_true(request_layout_find(&module[i].memory, MACHINE_OWN, MODULE_AT, &layout));
		set_index(i, 4096);
		assert_false(request_layout_find(&module[i].memory, MACHINE_OWN, MODULE_AT, &layout));
	}
}

static void the_module_has_to_agree_with_nginx(void **state)
{
	static const size_t compared[] = {
		offsetof(struct request_members, connection),  offsetof(struct request_members, main),
		offsetof(struct request_members, method_name), offsetof(struct request_members, args),
		offsetof(struct request_members, status),      offsetof(struct request_members, err_status),
	};
	static const size_t others[] = {
		offsetof(struct request_members, uri),
		offsetof(struct request_members, server),
		offsetof(struct request_members, number),
	};

	(void)state;
	EACH_BUILD(i)
	{
		struct request_members members = members_of(i);

		assert_true(request_members_agree(&module[i].memory, MODULE_AT, &members));
		assert_false(request_members_agree(&nginx[i].memory, NGINX_AT, &members));
		for (size_t j = 0; j < sizeof(compared) / sizeof(compared[0]); j++) {
			struct request_members wrong = members;

			*(int32_t *)(void *)((char *)&wrong + compared[j]) += 4096;
			assert_false(request_members_agree(&module[i].memory, MODULE_AT, &wrong));
		}
		for (size_t j = 0; j < sizeof(others) / sizeof(others[0]); j++) {
			struct request_members wrong = members;

			*(int32_t *)(void *)((char *)&wrong + others[j]) += 4096;
			assert_true(request_members_agree(&module[i].memory, MODULE_AT, &wrong));
		}
		/* What is unknown is not compared. */
		members.args = members.status = members.err_status = MEMBER_UNKNOWN;
		assert_true(request_members_agree(&module[i].memory, MODULE_AT, &members));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(members_are_found_by_what_functions_read),
		cmocka_unit_test(a_build_without_a_variable_lacks_its_member),
		cmocka_unit_test(a_variable_that_reads_two_members_tells_none),
		cmocka_unit_test(without_variables_of_upstreams_their_times_are_unknown),
		cmocka_unit_test(variables_are_in_tables),
		cmocka_unit_test(the_module_tells_where_contexts_are),
		cmocka_unit_test(the_module_has_to_agree_with_nginx),
	};

	return cmocka_run_group_tests(tests, open_all, close_all);
}

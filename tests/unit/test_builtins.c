/* SPDX-License-Identifier: MIT */
/* Names of LuaJIT's own functions, found in a made-up program's tables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "luajit-layouts/bytecode.h"
#include "tests/unit/made_up_lua.h"
#include "unwind/lua/builtins.h"

enum {
	G = 0,
	MAIN_THREAD = 2, /* of the global_State */
	ROOTS = 3,
	G_WORDS = 64,
	NODES_MAX = 4, /* of a table */
	TABLE_WORDS = 8,
	STRING_WORDS = 6,
	FUNCTION_WORDS = 5,
	C_CODE = 0x7000,
	OP = 200, /* no bytecode: an assembler function's */
	SUB = 20, /* numbers of functions */
	IPAIRS = 7,
	WRAP = 32,
	RESUME = 30,
	PRINT = 9,
};

static const struct layout layout = {
	.gc64 = true,
	MADE_UP_LAYOUT,
	.L_exdata = -1,
	.L_exdata2 = -1,
	.GCfunc_ffid = WORD + 2,
	.GCfunc_env = 2 * WORD,
	.GCfunc_pc = 3 * WORD,
	.GCfuncC_f = 4 * WORD,
	.GCproto_firstline = WORD,
	.GCproto_size = 2 * WORD,
	.g_mainthref = MAIN_THREAD * WORD,
	.g_gcroot = ROOTS * WORD,
};

static struct made_up target;
static size_t used; /* words */
static uint64_t loaded;
static struct builtins builtins;

static size_t room(size_t words)
{
	const size_t word = used;

	used += words;
	assert_in_range(used, 1, WORDS);
	return word;
}

static uint64_t new_string(const char *text)
{
	return put_string(&target, &layout, room(STRING_WORDS), text);
}

static uint64_t new_table(void)
{
	const size_t table = room(TABLE_WORDS), nodes = room(NODES_MAX * NODE_WORDS);

	return put_table(&target, &layout, table, nodes, 0, nodes, NODES_MAX);
}

static void set(uint64_t table, const char *key, uint64_t value)
{
	const size_t word = (tvalue_object(true, table) - BASE) / WORD;
	size_t node = (target.words[word + 4] - BASE) / WORD;

	while (target.words[node + 1] != UINT64_MAX)
		node += NODE_WORDS;
	assert_in_range(node, 0, (target.words[word + 4] - BASE) / WORD + (NODES_MAX - 1) * NODE_WORDS);
	put_node(&target, node, new_string(key), value);
}

/* A function with a number. An assembler function begins with the instruction op. */
static uint64_t new_function(uint8_t ffid, uint8_t op)
{
	const size_t word = room(FUNCTION_WORDS), code = room(1);

	put_head(&target, word, GCT_FUNCTION);
	target.words[word + 1] |= (uint64_t)ffid << 16;
	target.words[word + 3] = at(code);
	target.words[word + 4] = C_CODE + word;
	target.words[code] = op;
	return tagged(&layout, TAG_FUNC, at(word));
}

/* Its lua_CFunction. */
static uint64_t code_of(uint64_t function)
{
	return target.words[(tvalue_object(true, function) - BASE) / WORD + 4];
}

static uint64_t new_module(const char *name)
{
	const uint64_t module = new_table();

	set(loaded, name, module);
	return module;
}

static int begin(void **state)
{
	(void)state;
	target = (struct made_up){ .memory = { .read_ranges = read_ranges } };
	used = G_WORDS;
	target.words[G + 1] = new_table();
	loaded = new_table();
	set(target.words[G + 1], "_LOADED", loaded);
	return 0;
}

static int end(void **state)
{
	(void)state;
	builtins_clear(&builtins);
	return 0;
}

/* Whatever builtins held before. */
static void collect(uint64_t g)
{
	memset(&builtins, 0xff, sizeof(builtins));
	builtins_collect(&target.memory, &layout, g, &builtins);
}

static void a_function_has_the_name_of_luajits_own_module(void **state)
{
	const uint64_t sub = new_function(SUB, OP), print = new_function(PRINT, 0);

	(void)state;
	set(new_module("string"), "sub", sub);
	set(new_module("app"), "cut", sub);
	set(new_module("_G"), "print", print);
	collect(at(G));
	assert_string_equal(builtins.at[SUB].name, "string.sub");
	assert_int_equal(builtins.at[SUB].op, OP);
	assert_string_equal(builtins.at[PRINT].name, "print");
	/* What it begins with is an instruction of the language. */
	assert_int_equal(builtins.at[PRINT].op, 0);
}

static void what_no_table_holds_is_known_by_its_neighbour(void **state)
{
	const uint64_t ipairs = new_function(IPAIRS, OP);

	(void)state;
	set(new_module("_G"), "ipairs", ipairs);
	collect(at(G));
	assert_string_equal(builtins.at[IPAIRS].name, "ipairs");
	assert_string_equal(builtins.at[IPAIRS - 1].name, "ipairs_aux");
	assert_int_equal(builtins.at[IPAIRS - 1].op, OP - 1);
}

static void a_neighbour_in_c_tells_a_name_and_no_instruction(void **state)
{
	const uint64_t coroutine = new_module("coroutine");

	(void)state;
	set(coroutine, "wrap", new_function(WRAP, 0));
	set(coroutine, "resume", new_function(RESUME, 0));
	collect(at(G));
	assert_string_equal(builtins.at[WRAP - 1].name, "coroutine.wrap_aux");
	assert_int_equal(builtins.at[WRAP - 1].op, 0);
}

static void an_old_name_is_none(void **state)
{
	const uint64_t mod = new_function(SUB, OP);

	(void)state;
	set(new_module("math"), "mod", mod);
	collect(at(G));
	assert_string_equal(builtins.at[SUB].name, "");
	builtins_clear(&builtins);
	set(new_module("app"), "mod", mod);
	collect(at(G));
	assert_string_equal(builtins.at[SUB].name, "app.mod");
}

/* What of LuaJIT's library is written in Lua. Its prototypes say so. */
static void a_function_in_lua_is_known_by_its_prototype(void **state)
{
	const size_t proto = room(4), bytecode = proto + 2;
	const uint64_t foreach = new_function(FF_LUA, 0);

	(void)state;
	target.words[(tvalue_object(true, foreach) - BASE) / WORD + 3] = at(bytecode);
	target.words[proto + 1] = FIRSTLINE_BUILTIN;
	set(new_module("table"), "foreach", foreach);
	collect(at(G));
	assert_string_equal(builtins_offered(&builtins, at(proto)), "table.foreach");
	builtins_clear(&builtins);
	target.words[proto + 1] = 1; /* any other function */
	collect(at(G));
	assert_null(builtins_offered(&builtins, at(proto)));
}

/* Methods of files are in the environment of io's functions. */
static void methods_are_in_the_environment_of_their_module(void **state)
{
	const uint64_t open = new_function(PRINT, 0), methods = new_table();
	const size_t thread = room(TABLE_WORDS);

	(void)state;
	set(new_module("io"), "open", open);
	set(methods, "read", new_function(SUB, 0));
	target.words[(tvalue_object(true, open) - BASE) / WORD + 2] = tvalue_object(true, methods);
	collect(at(G));
	assert_string_equal(builtins.at[PRINT].name, "io.open");
	assert_string_equal(builtins.at[SUB].name, "file.read");
	/* That of all functions is no module's own. */
	target.words[G + MAIN_THREAD] = at(thread);
	target.words[thread + 4] = tvalue_object(true, methods);
	collect(at(G));
	assert_string_equal(builtins.at[SUB].name, "");
}

static void metamethods_of_a_type_are_the_ffi_librarys(void **state)
{
	const uint64_t metatable = new_table();

	(void)state;
	set(metatable, "__index", new_function(PRINT, 0));
	set(metatable, "ffi", new_function(SUB, 0));
	target.words[G + ROOTS + 2] = tvalue_object(true, metatable);
	collect(at(G));
	assert_string_equal(builtins.at[PRINT].name, "ffi.__index");
	assert_string_equal(builtins.at[SUB].name, "");
}

static void methods_of_cosockets_are_in_the_registry(void **state)
{
	const uint64_t receive = new_function(FF_C, 0), other = new_function(FF_C, 0);
	const uint64_t methods = new_table(), more = new_table();

	(void)state;
	set(target.words[G + 1], "__tcp_cosocket_mt", methods);
	set(target.words[G + 1], "more", more);
	set(methods, "receive", receive);
	set(more, "other", other);
	collect(at(G));
	assert_string_equal(builtins_offered(&builtins, code_of(receive)), "receive");
	assert_null(builtins_offered(&builtins, code_of(other)));
}

static void a_function_without_a_number_is_known_by_its_code(void **state)
{
	const uint64_t encode = new_function(FF_C, 0), other = new_function(FF_C, 0);
	const uint64_t cjson = new_module("cjson");

	(void)state;
	set(cjson, "encode", encode);
	set(cjson, "version", new_string("2.1"));
	set(loaded, "other", other);
	collect(at(G));
	assert_string_equal(builtins_offered(&builtins, code_of(encode)), "cjson.encode");
	assert_string_equal(builtins_offered(&builtins, code_of(other)), "other");
	assert_null(builtins_offered(&builtins, C_CODE));
	assert_string_equal(builtins.version, "");
}

/* As in Neovim: several modules return one table, a global that each adds to. */
static void functions_of_a_global_table_are_named_by_the_global(void **state)
{
	const uint64_t schedule = new_function(FF_C, 0), split = new_function(FF_C, 0);
	const uint64_t vim = new_module("vim.shared"), ui = new_module("vim.ui"), globals = new_table();
	const size_t thread = room(TABLE_WORDS);

	(void)state;
	set(vim, "schedule", schedule);
	set(ui, "split", split);
	set(globals, "v", vim);
	set(globals, "vim", vim);
	set(globals, "json", ui);
	target.words[G + MAIN_THREAD] = at(thread);
	target.words[thread + 4] = tvalue_object(true, globals);
	collect(at(G));
	assert_string_equal(builtins_offered(&builtins, code_of(schedule)), "vim.schedule");
	/* Another table, and another name, are no part of that. */
	assert_string_equal(builtins_offered(&builtins, code_of(split)), "vim.ui.split");
}

static void the_version_is_jits(void **state)
{
	(void)state;
	set(new_module("jit"), "version", new_string("LuaJIT 2.1.0-beta3"));
	collect(at(G));
	assert_string_equal(builtins.version, "LuaJIT 2.1.0-beta3");
}

/* What builtins held before does not count. */
static void where_nothing_can_be_read_nothing_has_a_name(void **state)
{
	(void)state;
	collect(at(WORDS));
	for (size_t i = 0; i < BUILTIN_COUNT; i++) {
		assert_string_equal(builtins.at[i].name, "");
		assert_int_equal(builtins.at[i].op, 0);
	}
	assert_null(builtins.offered);
	assert_string_equal(builtins.version, "");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(a_function_has_the_name_of_luajits_own_module),
		TEST(what_no_table_holds_is_known_by_its_neighbour),
		TEST(a_neighbour_in_c_tells_a_name_and_no_instruction),
		TEST(an_old_name_is_none),
		TEST(a_function_in_lua_is_known_by_its_prototype),
		TEST(methods_are_in_the_environment_of_their_module),
		TEST(metamethods_of_a_type_are_the_ffi_librarys),
		TEST(methods_of_cosockets_are_in_the_registry),
		TEST(a_function_without_a_number_is_known_by_its_code),
		TEST(functions_of_a_global_table_are_named_by_the_global),
		TEST(the_version_is_jits),
		TEST(where_nothing_can_be_read_nothing_has_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

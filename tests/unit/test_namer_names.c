/* SPDX-License-Identifier: MIT */
/* What the frames of stacks are called, in a made-up process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/made_up_process.h"

/*---- Native code ----*/

static void native_code_has_its_symbols_name(void **state)
{
	(void)state;
	add(MERGED_NATIVE, LIBM + 0x10);
	add(MERGED_NATIVE, LIBM + 0x11)->is_return_address = true; /* the call is before it */
	add(MERGED_NATIVE, LIBM + 0x11);
	assert_int_equal(name(), 3);
	assert_frame(0, FRAME_NATIVE, "sqrt", "libm.so.6");
	assert_null(frames[0].function->file);
	assert_ptr_equal(frames[1].function, frames[0].function);
	assert_frame(2, FRAME_NATIVE, "libm.so.6+0x11", "libm.so.6");
	assert_int_equal(frames[0].certainty, CERTAINTY_EXACT);
}

static void inlined_functions_are_frames_of_their_own(void **state)
{
	(void)state;
	add(MERGED_NATIVE, APP + 0x10);
	add(MERGED_NATIVE, APP + 0x90);
	assert_int_equal(name(), 3);
	assert_frame(0, FRAME_NATIVE, "inner", "app");
	assert_frame(1, FRAME_NATIVE, "outer", "app");
	assert_string_equal(frames[1].function->file, "app.c");
	assert_int_equal(frames[0].line, 12);
	assert_int_equal(frames[1].line, 34);
	assert_int_equal(namer_merged_index(namer, 0), 0);
	assert_int_equal(namer_merged_index(namer, 1), 0);
	assert_int_equal(namer_merged_index(namer, 2), 1);
	assert_ptr_equal(namer_merged_function(namer, 0), frames[1].function); /* the outermost one */
	assert_ptr_equal(namer_merged_function(namer, 1), frames[2].function);
}

static void code_without_a_symbol_is_known_by_its_place(void **state)
{
	(void)state;
	add(MERGED_NATIVE, LIBM + 0x1034); /* of a function that begins at 0x1000 */
	add(MERGED_NATIVE, LIBM + 0x2034);
	add(MERGED_NATIVE, MADE + 0x10);
	add(MERGED_NATIVE, NOWHERE);
	assert_int_equal(name(), 4);
	assert_frame(0, FRAME_NATIVE, "libm.so.6+0x1000", "libm.so.6");
	assert_frame(1, FRAME_NATIVE, "libm.so.6+0x2034", "libm.so.6");
	assert_frame(2, FRAME_NATIVE, "machine code", "memfd:code");
	assert_frame(3, FRAME_NATIVE, "machine code", "anon");
}

static void symbols_are_asked_once_for_an_address(void **state)
{
	unsigned int asked = 0;

	(void)state;
	for (int round = 0; round < 3; round++) {
		add(MERGED_NATIVE, LIBM + 0x10);
		add(MERGED_NATIVE, APP + 0x90);
		assert_int_equal(name(), 2);
		asked = round ? asked : symbols_asked;
	}
	assert_int_equal(asked, 2);
	assert_int_equal(symbols_asked, asked);
	/* At other depths, too. */
	add(MERGED_NATIVE, APP + 0x90);
	add(MERGED_NATIVE, LIBM + 0x10);
	add(MERGED_NATIVE, APP + 0x90);
	assert_int_equal(name(), 3);
	assert_frame(0, FRAME_NATIVE, "main", "app");
	assert_frame(1, FRAME_NATIVE, "sqrt", "libm.so.6");
	assert_int_equal(symbols_asked, asked);
	namer_forget_names(namer);
	add(MERGED_NATIVE, LIBM + 0x10);
	assert_int_equal(name(), 1);
	assert_int_equal(symbols_asked, asked + 1);
}

static void the_c_librarys_symbols_are_asked_for_what_is_shown(void **state)
{
	(void)state;
	make_namer(&(const struct namer_options){ .native = NATIVE_FOLD });
	for (int round = 0; round < 2; round++) {
		add_lua(&chunk, 0);
		add(MERGED_NATIVE, APP + 0x90);
		add(MERGED_NATIVE, LIBC + 0x10); /* has called main */
		assert_int_equal(name(), 2);
		assert_frame(1, FRAME_NATIVE, "main", "app");
		assert_int_equal(symbols_asked, 1);
		assert_int_equal(namer_merged_kind(namer, 2), FOLD_LIBC);
		assert_null(namer_merged_function(namer, 2)->name);
	}
	for (int round = 0; round < 2; round++) {
		add(MERGED_NATIVE, LIBC + 0x10); /* main has called it */
		add(MERGED_NATIVE, APP + 0x90);
		assert_int_equal(name(), 2);
		assert_frame(0, FRAME_NATIVE, "memcpy", "libc.so.6");
		assert_int_equal(symbols_asked, 2);
	}
}

static void names_without_end_are_forgotten(void **state)
{
	enum { CACHE_MAX = 1 << 14 };

	(void)state;
	for (uint64_t i = 0; i < CACHE_MAX; i++) {
		add(MERGED_NATIVE, NOWHERE + i);
		assert_int_equal(name(), 1);
	}
	assert_int_equal(symbols_asked, CACHE_MAX);
	add(MERGED_NATIVE, NOWHERE); /* known, were it not full */
	assert_int_equal(name(), 1);
	assert_int_equal(symbols_asked, CACHE_MAX + 1);
	add(MERGED_NATIVE, NOWHERE);
	assert_int_equal(name(), 1);
	assert_int_equal(symbols_asked, CACHE_MAX + 1);
}

/*---- The interpreter ----*/

static void the_vms_code_has_names(void **state)
{
	(void)state;
	add(MERGED_VM, FFI_CALL + 8);
	add(MERGED_VM, VM + 0x100);
	add(MERGED_VM, VM + 8);
	add(MERGED_VM, VM + 0x10);
	add(MERGED_VM, VM + 0x10)->is_return_address = true;
	add(MERGED_VM, LIBRARY_VM + 8);
	add(MERGED_VM, NOWHERE);
	assert_int_equal(name(), 7);
	assert_frame(0, FRAME_VM, "lj_vm_ffi_call", NULL);
	assert_frame(1, FRAME_VM, "lj_BC_ADDVV", NULL);
	assert_frame(2, FRAME_VM, "lj_BC_ISLT", NULL);
	assert_frame(3, FRAME_VM, NULL, NULL);
	assert_frame(4, FRAME_VM, "lj_BC_ISLT", NULL);
	assert_frame(5, FRAME_VM, "lj_BC_ISLT", NULL);
	assert_frame(6, FRAME_VM, NULL, NULL);
	assert_int_equal(libraries_read, 2); /* one of each VM */
	assert_int_equal(namer_merged_kind(namer, 0), FOLD_FFI_CALL);
	assert_int_equal(namer_merged_kind(namer, 1), FOLD_VM);
}

/* LuaJIT records a trace or calls hooks meanwhile. */
static void handlers_get_their_names_later(void **state)
{
	(void)state;
	handlers_are_hidden = true;
	add(MERGED_VM, VM + 4);
	add(MERGED_VM, VM + 12);
	assert_int_equal(name(), 2);
	assert_frame(0, FRAME_VM, "lj_BC_ISLT", NULL);
	assert_frame(1, FRAME_VM, NULL, NULL);
	handlers_are_hidden = false;
	add(MERGED_VM, VM + 12);
	assert_int_equal(name(), 1);
	assert_frame(0, FRAME_VM, "lj_BC_ISLT", NULL);
	assert_int_equal(libraries_read, 1);
	/* Then they stay. */
	handlers_are_hidden = true;
	namer_forget_names(namer);
	add(MERGED_VM, VM + 12);
	assert_int_equal(name(), 1);
	assert_frame(0, FRAME_VM, "lj_BC_ISLT", NULL);
}

/* Of a state that has them hidden for good. */
static void handlers_without_names_are_not_tried_forever(void **state)
{
	enum { TRIES = 256 };

	(void)state;
	handlers_are_hidden = true;
	for (int i = 0; i < TRIES + 1; i++) {
		add(MERGED_VM, VM + 12);
		assert_int_equal(name(), 1);
	}
	handlers_are_hidden = false;
	add(MERGED_VM, VM + 12);
	assert_int_equal(name(), 1);
	assert_frame(0, FRAME_VM, NULL, NULL);
}

/*---- Lua ----*/

static void lua_functions_have_the_names_of_their_callers(void **state)
{
	struct merged_frame *frame;

	(void)state;
	give_lines(&lua);
	called = "heavy";
	frame = add_lua(&lua, lua.bc + 2 * BYTECODE_SIZE);
	frame->caller = &caller;
	frame->caller_pc = caller.bc;
	add_lua(&lua, lua.bc); /* nobody knows who has called it */
	add_lua(&chunk, chunk.bc);
	assert_int_equal(name(), 3);
	assert_frame(0, FRAME_LUA, "heavy", NULL);
	assert_string_equal(frames[0].function->file, "@/srv/app/mod/x.lua");
	assert_int_equal(frames[0].function->firstline, 10);
	assert_int_equal(frames[0].line, 12);
	assert_int_equal(frames[0].certainty, CERTAINTY_EXACT);
	assert_false(frames[0].compiled);
	assert_frame(1, FRAME_LUA, NULL, NULL);
	assert_int_equal(frames[1].line, 10);
	assert_frame(2, FRAME_LUA, "main chunk", NULL);
	assert_int_equal(frames[2].function->firstline, 0);
	/* Where a function is called otherwise, it has another name. */
	called = "light";
	frame = add_lua(&lua, lua.bc);
	frame->caller = &chunk;
	frame->caller_pc = chunk.bc;
	assert_int_equal(name(), 1);
	assert_frame(0, FRAME_LUA, "light", NULL);
}

/* Stripped bytecode has neither a first line nor a number of lines (lj_bcread.c of v2.1: lj_bcread_proto). */
static void a_stripped_vararg_function_is_no_main_chunk(void **state)
{
	struct merged_frame *frame;

	(void)state;
	chunk.numline = 0;
	called = "sum";
	frame = add_lua(&chunk, 0);
	frame->caller = &caller;
	frame->caller_pc = caller.bc;
	add_lua(&chunk, 0);
	assert_int_equal(name(), 2);
	assert_frame(0, FRAME_LUA, "sum", NULL);
	assert_frame(1, FRAME_LUA, NULL, NULL);
}

static void positions_say_how_certain_they_are(void **state)
{
	struct merged_frame *frame;

	(void)state;
	give_lines(&lua);
	frame = add_lua(&lua, lua.bc + BYTECODE_SIZE);
	frame->compiled = frame->pc_is_near = true;
	add_lua(&lua, 0);
	add_lua(&lua, 0)->pc_is_near = true;
	assert_int_equal(name(), 3);
	assert_int_equal(frames[0].certainty, CERTAINTY_NEAREST);
	assert_int_equal(frames[0].line, 11);
	assert_true(frames[0].compiled);
	assert_int_equal(frames[1].certainty, CERTAINTY_FUNCTION);
	assert_int_equal(frames[1].line, 0);
	assert_false(frames[1].compiled);
	assert_int_equal(frames[2].certainty, CERTAINTY_FUNCTION);
}

/* A file is known by its path below package.path. */
static void files_have_the_roots_of_their_programs(void **state)
{
	char roots[64] = "";
	struct proto string = make_proto(0x50000, 9, 5, "/srv/app/x.lua"),
		     third = make_proto(0x60000, 10, 7, "@/srv/app/y.lua");

	(void)state;
	add_lua(&lua, 0);
	add_lua(&string, 0); /* source text, no file */
	add_lua(&third, 0);
	add_lua(&chunk, 0)->global = other_global;
	assert_int_equal(name(), 4);
	assert_int_equal(frames[0].function->root, strlen("@/srv/app/"));
	assert_int_equal(frames[1].function->root, 0);
	assert_int_equal(frames[2].function->root, strlen("@/srv/app/"));
	assert_int_equal(frames[3].function->root, strlen("@/opt/"));
	assert_int_equal(paths_read, 2); /* once for each program in a stack */
	namer_add_roots(namer, roots, sizeof(roots));
	assert_string_equal(roots, "/srv/app/;/opt/;");
	/* A program may change its path. */
	namer_forget_names(namer);
	add_lua(&lua, 0);
	assert_int_equal(name(), 1);
	assert_int_equal(paths_read, 3);
	namer_forget_global(namer, G);
	*roots = '\0';
	namer_add_roots(namer, roots, sizeof(roots));
	assert_string_equal(roots, "/opt/;");
	namer_reset(namer);
	*roots = '\0';
	namer_add_roots(namer, roots, sizeof(roots));
	assert_string_equal(roots, "");
}

static void library_functions_in_lua_are_builtins(void **state)
{
	(void)state;
	add_lua(&in_lua, 0);
	in_lua.address = APP + 0x600;
	in_lua.serial++;
	assert_int_equal(name(), 1);
	assert_frame(0, FRAME_BUILTIN, "table.foreach", NULL); /* as its table has it */
	in_lua.address = 0x40000;
	in_lua.serial++;
	add_lua(&in_lua, 0);
	assert_int_equal(name(), 1);
	assert_frame(0, FRAME_BUILTIN, "table.foreach_", NULL); /* as its chunk has it */
	assert_int_equal(namer_merged_kind(namer, 0), FOLD_LUA);
}

/*---- C functions ----*/

static void builtins_have_their_names_in_lua(void **state)
{
	struct merged_frame *frame;

	(void)state;
	add_c(FFID_FLOOR, 0);
	add_c(FFID_NAMELESS, 0);
	called = "hidden";
	frame = add_c(FFID_NAMELESS, 0);
	frame->caller = &caller;
	frame->caller_pc = caller.bc;
	assert_int_equal(name(), 3);
	assert_frame(0, FRAME_BUILTIN, "math.floor", NULL);
	assert_frame(1, FRAME_BUILTIN, "builtin#77", NULL);
	assert_frame(2, FRAME_BUILTIN, "hidden", NULL);
	assert_int_equal(namer_merged_kind(namer, 0), FOLD_BUILTIN);
	assert_int_equal(frames[0].line, 0);
}

static void c_functions_have_their_symbols_or_what_lua_calls_them(void **state)
{
	struct merged_frame *frame;

	(void)state;
	add_c(FF_C, APP + 0x20);
	add_c(FF_C, APP + 0x10);  /* of what is inlined, the outermost */
	add_c(FF_C, APP + 0x520); /* as its module offers it */
	called = "decode";
	frame = add_c(FF_C, LIBM + 0x2000);
	frame->caller = &caller;
	frame->caller_pc = caller.bc;
	add_c(FF_C, LIBM + 0x3000);
	add_c(FF_C, LIBRARY + 0x3000);
	assert_int_equal(name(), 6);
	assert_frame(0, FRAME_C_FUNCTION, "l_read", "app");
	assert_frame(1, FRAME_C_FUNCTION, "outer", "app");
	assert_frame(2, FRAME_C_FUNCTION, "cjson.encode", "app");
	assert_frame(3, FRAME_C_FUNCTION, "decode", "libm.so.6");
	assert_frame(4, FRAME_C_FUNCTION, "libm.so.6+0x3000", "libm.so.6");
	assert_int_equal(namer_merged_kind(namer, 0), FOLD_C_FUNCTION);
	assert_int_equal(namer_merged_kind(namer, 4), FOLD_C_FUNCTION);
	assert_int_equal(namer_merged_kind(namer, 5), FOLD_OWN_FUNCTION);
}

static void luajits_own_c_functions_are_builtins(void **state)
{
	(void)state;
	add_c(FF_C, APP + 0x500);
	add_c(FF_C, APP + 0x508);
	add_c(FF_C, APP + 0x510);
	add_c(FF_C, APP + 0x518);
	add_c(FF_C, LIBM + 0x500); /* of another module */
	assert_int_equal(name(), 5);
	assert_frame(0, FRAME_BUILTIN, "require", NULL);
	assert_frame(1, FRAME_BUILTIN, "module", NULL);
	assert_frame(2, FRAME_BUILTIN, "package.loadlib", NULL);
	assert_frame(3, FRAME_C_FUNCTION, "packages", "app");
	assert_frame(4, FRAME_C_FUNCTION, "require", "libm.so.6");
}

static void a_function_has_a_name_without_a_frame(void **state)
{
	const struct function_object builtin = { .ffid = FFID_FLOOR },
				     other = { .ffid = FF_C, .f = APP + 0x20 };

	(void)state;
	assert_string_equal(namer_function(namer, global, &builtin)->name, "math.floor");
	assert_string_equal(namer_function(namer, global, &other)->name, "l_read");
}

/* Of one VM, all have the same library. */
static void a_library_is_read_once(void **state)
{
	struct merged_frame *frame;

	(void)state;
	for (int i = 0; i < 3; i++) {
		add_c(FFID_FLOOR, 0);
		add_c(FF_C, APP + 0x520)->global = other_global;
		assert_int_equal(name(), 2);
		assert_frame(0, FRAME_BUILTIN, "math.floor", NULL);
		assert_frame(1, FRAME_C_FUNCTION, "cjson.encode", "app");
		namer_forget_names(namer);
	}
	assert_int_equal(libraries_read, 1);
	/* Another VM has its own; another state is asked where the first one does not know. */
	frame = add_c(FFID_FLOOR, 0);
	frame->global = library_global;
	add_c(FFID_NAMELESS, 0)->global = other_global;
	assert_int_equal(name(), 2);
	assert_int_equal(libraries_read, 3);
}

static void the_last_library_of_a_vm_outlives_its_state(void **state)
{
	(void)state;
	add_c(FFID_FLOOR, 0);
	assert_int_equal(name(), 1);
	namer_forget_names(namer);
	namer_forget_global(namer, G);
	library_is_empty = true; /* what is read from now on */
	add_c(FFID_FLOOR, 0)->global = other_global;
	assert_int_equal(name(), 1);
	assert_frame(0, FRAME_BUILTIN, "math.floor", NULL);
	assert_int_equal(libraries_read, 1);
	/* Where there are others, it is forgotten: another state may take its address. */
	add_c(FFID_NAMELESS, 0);
	add_c(FFID_NAMELESS + 1, 0)->global = other_global;
	assert_int_equal(name(), 2);
	assert_int_equal(libraries_read, 3);
	namer_forget_global(namer, G);
	namer_forget_names(namer);
	add_c(FFID_NAMELESS, 0);
	assert_int_equal(name(), 1);
	assert_int_equal(libraries_read, 4);
	namer_reset(namer);
	add_c(FFID_FLOOR, 0);
	assert_int_equal(name(), 1);
	assert_frame(0, FRAME_BUILTIN, "builtin#70", NULL);
	assert_int_equal(libraries_read, 5);
	namer_forget_global(namer, NOWHERE);
}

static void not_all_of_thousands_of_states_are_read(void **state)
{
	(void)state;
	library_is_empty = true;
	for (uint64_t i = 0; i < 2 * LIBRARIES_MAX; i++) {
		struct global_state one = { .g = 0x10000 + i * 0x1000, .vm = &vm };

		add_c((uint8_t)(2 + i), 0)->global = &one;
		add_lua(&lua, 0)->global = &one;
		lua.serial += 100;
		assert_int_equal(name(), 2);
	}
	assert_int_equal(libraries_read, LIBRARIES_MAX);
	assert_int_equal(paths_read, LIBRARIES_MAX);
}

#define IN_PROCESS(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_PROCESS(native_code_has_its_symbols_name),
		IN_PROCESS(inlined_functions_are_frames_of_their_own),
		IN_PROCESS(code_without_a_symbol_is_known_by_its_place),
		IN_PROCESS(symbols_are_asked_once_for_an_address),
		IN_PROCESS(the_c_librarys_symbols_are_asked_for_what_is_shown),
		IN_PROCESS(names_without_end_are_forgotten),
		IN_PROCESS(the_vms_code_has_names),
		IN_PROCESS(handlers_get_their_names_later),
		IN_PROCESS(handlers_without_names_are_not_tried_forever),
		IN_PROCESS(lua_functions_have_the_names_of_their_callers),
		IN_PROCESS(a_stripped_vararg_function_is_no_main_chunk),
		IN_PROCESS(positions_say_how_certain_they_are),
		IN_PROCESS(files_have_the_roots_of_their_programs),
		IN_PROCESS(library_functions_in_lua_are_builtins),
		IN_PROCESS(builtins_have_their_names_in_lua),
		IN_PROCESS(c_functions_have_their_symbols_or_what_lua_calls_them),
		IN_PROCESS(luajits_own_c_functions_are_builtins),
		IN_PROCESS(a_function_has_a_name_without_a_frame),
		IN_PROCESS(a_library_is_read_once),
		IN_PROCESS(the_last_library_of_a_vm_outlives_its_state),
		IN_PROCESS(not_all_of_thousands_of_states_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

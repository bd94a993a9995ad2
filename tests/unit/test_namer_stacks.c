/* SPDX-License-Identifier: MIT */
/* Which frames of stacks are shown, what LuaJIT does in them, and what is
 * inserted. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "luajit-layouts/bytecode.h"
#include "tests/unit/made_up_process.h"
#include "tests/unit/made_up_trace.h"

/*---- Which are shown ----*/

static void put_mixed_stack(void)
{
	add(MERGED_NATIVE, LIBC + 0x10);
	add(MERGED_NATIVE, APP + 0x60); /* lj_tab_resize */
	add(MERGED_VM, VM + 8);
	add_lua(&lua, 0);
	add_c(FFID_FLOOR, 0);
	add_lua(&chunk, 0);
	add(MERGED_VM, VM + 0x10);
	add(MERGED_NATIVE, APP + 0x30); /* lua_pcall */
	add(MERGED_NATIVE, APP + 0x90); /* main */
	add(MERGED_NATIVE, APP + 0xa0); /* __libc_start_main */
}

static void native_code_is_shown_as_asked(void **state)
{
	static const struct trace trace = { .number = 2 };

	(void)state;
	put_mixed_stack();
	assert_int_equal(name(), 10);
	make_namer(&(const struct namer_options){ .native = NATIVE_NONE });
	put_mixed_stack();
	assert_int_equal(name(), 3);
	assert_frame(0, FRAME_LUA, NULL, NULL);
	assert_frame(1, FRAME_BUILTIN, "math.floor", NULL);
	assert_frame(2, FRAME_LUA, "main chunk", NULL);
	assert_int_equal(namer_merged_index(namer, 0), 3);
	assert_int_equal(namer_merged_index(namer, 2), 5);
	assert_int_equal(namer_merged_kind(namer, 0), FOLD_LIBC); /* shown or not */
	add(MERGED_TRACE, 0)->trace = &trace;
	add(MERGED_LOST, 0);
	assert_int_equal(name(), 1);
	assert_int_equal(frames[0].function->kind, FRAME_LOST);
	assert_int_equal(namer_merged_kind(namer, 0), FOLD_LEFT_OUT);
	make_namer(&(const struct namer_options){ .native = NATIVE_NONE, .traces = true });
	add(MERGED_TRACE, 0)->trace = &trace;
	assert_int_equal(name(), 1);
	assert_frame(0, FRAME_TRACE, "trace#2", NULL);
	assert_int_equal(namer_merged_kind(namer, 0), FOLD_KEPT);
}

static void fold_stack(void)
{
	make_namer(&(const struct namer_options){ .native = NATIVE_FOLD });
}

static void a_folded_stack_has_one_frame_of_luajits_work(void **state)
{
	(void)state;
	fold_stack();
	put_mixed_stack();
	assert_int_equal(name(), 5);
	assert_frame(0, FRAME_VM_WORK, "growing a table", NULL);
	assert_frame(1, FRAME_LUA, NULL, NULL);
	assert_frame(2, FRAME_BUILTIN, "math.floor", NULL);
	assert_frame(3, FRAME_LUA, "main chunk", NULL);
	assert_frame(4, FRAME_NATIVE, "main", "app");
	assert_int_equal(namer_merged_index(namer, 0), 1);
	assert_int_equal(namer_merged_index(namer, 4), 8);
	assert_int_equal(frames[0].certainty, CERTAINTY_EXACT);
}

static void modules_and_names_tell_what_native_code_is(void **state)
{
	static const struct {
		uint64_t pc;
		enum fold_kind kind;
	} kinds[] = {
		{ NOWHERE, FOLD_NATIVE },        { LIBC + 0x10, FOLD_LIBC },
		{ APP + 0xa0, FOLD_LIBC },       { LIBM + 0x10, FOLD_NATIVE },
		{ LIBRARY + 0x10, FOLD_LUAJIT }, { LIBRARY + 0x20, FOLD_LUAJIT },
		{ LIBRARY + 0x99, FOLD_LUAJIT }, { APP + 0x30, FOLD_LUAJIT },
		{ APP + 0x40, FOLD_LUAJIT },     { APP + 0x50, FOLD_LUAJIT },
		{ APP + 0x60, FOLD_LUAJIT },     { APP + 0x90, FOLD_NATIVE },
		{ APP + 0x99, FOLD_NAMELESS },   { LIBM + 0x99, FOLD_NATIVE },
	};
	enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

	(void)state;
	for (size_t i = 0; i < KINDS; i++)
		add(MERGED_NATIVE, kinds[i].pc);
	name();
	for (size_t i = 0; i < KINDS; i++)
		assert_int_equal(namer_merged_kind(namer, i), kinds[i].kind);
}

/* LuaJIT and the program are one stripped module: only the way of the call tells whose code it is. */
static void what_lua_calls_through_the_ffi_is_the_programs(void **state)
{
	(void)state;
	fold_stack();
	add(MERGED_NATIVE, APP + 0x98);
	add(MERGED_NATIVE, APP + 0x99);
	add(MERGED_VM, FFI_CALL + 8);
	add_lua(&lua, 0);
	assert_int_equal(name(), 3);
	assert_int_equal(namer_merged_index(namer, 0), 0);
	assert_int_equal(namer_merged_index(namer, 1), 1);
	assert_int_equal(frames[0].function->kind, FRAME_NATIVE);
	/* What a Lua function calls that such code has called is LuaJIT's again. */
	add(MERGED_NATIVE, APP + 0x99);
	add(MERGED_VM, VM + 8);
	add_lua(&lua, 0);
	add(MERGED_NATIVE, APP + 0x99);
	add(MERGED_NATIVE, APP + 0x98);
	add(MERGED_VM, FFI_CALL + 8);
	add_lua(&chunk, 0);
	assert_int_equal(name(), 4);
	assert_int_equal(frames[0].function->kind, FRAME_VM);
	assert_int_equal(frames[2].function->kind, FRAME_NATIVE);
}

/* Of compiled code that cannot be read: what is above it, from the callee of a trace to the leaf. */
static size_t name_above_unread_trace(uint64_t callee)
{
	static const struct trace unread = { .number = 2 };
	struct merged_frame *compiled;

	add(MERGED_NATIVE, APP + 0x98);
	add(MERGED_NATIVE, callee);
	compiled = add(MERGED_TRACE, MADE_UP_MCODE + 8);
	compiled->trace = &unread;
	compiled->global = global;
	compiled->is_return_address = true;
	add_lua(&lua, 0);
	return name();
}

static void compiled_code_calls_what_has_a_name_through_the_ffi(void **state)
{
	(void)state;
	fold_stack();
	assert_int_equal(name_above_unread_trace(APP + 0x90), 3);
	assert_int_equal(frames[0].function->kind, FRAME_NATIVE);
	assert_frame(1, FRAME_NATIVE, "main", "app");
	/* What a nameless function is, or one of the C library, only the code tells. */
	assert_int_equal(name_above_unread_trace(APP + 0x99), 2);
	assert_int_equal(frames[0].function->kind, FRAME_VM);
	assert_int_equal(name_above_unread_trace(LIBC + 0x10), 3);
	assert_int_equal(frames[0].function->kind, FRAME_VM);
}

static void the_way_into_lua_from_what_the_ffi_calls_is_luajits(void **state)
{
	static const enum merged_kind above[] = { MERGED_VM, MERGED_LUA };

	(void)state;
	fold_stack();
	for (size_t i = 0; i < sizeof(above) / sizeof(above[0]); i++) {
		add_lua(&lua, 0);
		if (above[i] == MERGED_VM)
			add(MERGED_VM, VM + 8);
		add(MERGED_NATIVE, APP + 0x99);
		add(MERGED_NATIVE, APP + 0x98);
		add(MERGED_VM, FFI_CALL + 8);
		add_lua(&chunk, 0);
		assert_int_equal(name(), 3);
		assert_int_equal(frames[0].function->kind, FRAME_LUA);
		assert_int_equal(frames[1].function->kind, FRAME_NATIVE);
		assert_int_equal(namer_merged_index(namer, 1), above[i] == MERGED_VM ? 3 : 2);
	}
	/* What runs above the VM's code is LuaJIT's work. */
	add(MERGED_NATIVE, APP + 0x99);
	add(MERGED_VM, VM + 8);
	add(MERGED_NATIVE, APP + 0x99);
	add(MERGED_NATIVE, APP + 0x98);
	add(MERGED_VM, FFI_CALL + 8);
	add_lua(&chunk, 0);
	assert_int_equal(name(), 3);
	assert_int_equal(frames[0].function->kind, FRAME_VM);
	assert_int_equal(frames[1].function->kind, FRAME_NATIVE);
}

static void the_collector_is_told_above_what_the_ffi_calls(void **state)
{
	(void)state;
	fold_stack();
	add(MERGED_NATIVE, LIBC + 0x10);
	add(MERGED_NATIVE, APP + 0x99);
	add(MERGED_NATIVE, APP + 0x98);
	add(MERGED_VM, FFI_CALL + 8);
	add_lua(&lua, 0);
	assert_int_equal(name_in(VM_STATE_GC), 3);
	assert_frame(0, FRAME_VM_WORK, "garbage collection", NULL);
	assert_int_equal(frames[1].function->kind, FRAME_NATIVE);
	assert_int_equal(namer_merged_index(namer, 1), 2);
}

/* From code that the program calls, through code of the C library, to the C library that started it. */
static void add_call_of_libc(uint64_t function)
{
	add(MERGED_NATIVE, LIBC + 0x98);
	add(MERGED_NATIVE, LIBC + 0x99);
	add(MERGED_NATIVE, function);
	add(MERGED_NATIVE, APP + 0x90);
	add(MERGED_NATIVE, LIBC + 0x10);
	add(MERGED_NATIVE, APP + 0x99);
}

static void what_the_c_library_calls_in_itself_without_a_name_is_hidden(void **state)
{
	(void)state;
	fold_stack();
	add_call_of_libc(LIBC + 0x10);
	assert_int_equal(name(), 2);
	assert_int_equal(namer_merged_index(namer, 0), 2);
	assert_int_equal(namer_merged_index(namer, 1), 3);
	/* A function that the program calls stays, with all that it calls. */
	add_call_of_libc(LIBC + 0x97);
	assert_int_equal(name(), 4);
	assert_int_equal(namer_merged_index(namer, 0), 0);
}

static void all_native_code_has_what_the_c_library_calls_in_itself(void **state)
{
	(void)state;
	make_namer(&(const struct namer_options){ .native = NATIVE_ALL });
	add_call_of_libc(LIBC + 0x10);
	assert_int_equal(name(), 6);
}

/* Of functions that call each other, the outermost one tells, but for parts of
 * its work. */
static const char *work_of(uint64_t leaf, uint64_t its_caller)
{
	fold_stack();
	add(MERGED_NATIVE, leaf);
	if (its_caller)
		add(MERGED_NATIVE, its_caller);
	add_lua(&lua, 0);
	assert_int_equal(name(), 2);
	return frames[0].function->name;
}

static void the_most_precise_work_is_told(void **state)
{
	(void)state;
	assert_string_equal(work_of(APP + 0x60, 0), "growing a table");
	assert_string_equal(work_of(APP + 0x70, 0), "storing in a table");
	assert_string_equal(work_of(APP + 0x60, APP + 0x70), "growing a table");
	assert_string_equal(work_of(APP + 0x80, APP + 0x70), "storing in a table");
	assert_string_equal(work_of(APP + 0xb0, APP + 0x70), "growing a table"); /* inlined */
	assert_null(work_of(APP + 0x99, 0));
}

static void the_vms_state_tells_before_names_do(void **state)
{
	(void)state;
	fold_stack();
	add(MERGED_NATIVE, APP + 0x80);
	add_lua(&lua, 0);
	assert_int_equal(name_in(VM_STATE_GC), 2);
	assert_frame(0, FRAME_VM_WORK, "garbage collection", NULL);
	add(MERGED_NATIVE, APP + 0x80);
	add_lua(&lua, 0);
	assert_int_equal(name_in(VM_STATE_C), 2);
	assert_frame(0, FRAME_VM_WORK, "creating a string", NULL);
}

/* The Lua function is at an instruction that concatenates. */
static struct merged_frame *add_concatenating(void)
{
	memset(lines, 0, sizeof(lines));
	lines[BC_AT + BYTECODE_SIZE] = (uint8_t)bytecode_number(&vm.layout, BC_CAT);
	lua.bytes = lines;
	return add_lua(&lua, lua.bc + BYTECODE_SIZE);
}

static void without_names_the_instruction_tells(void **state)
{
	static const struct trace trace = { .number = 2 };

	(void)state;
	fold_stack();
	add(MERGED_NATIVE, APP + 0x99);
	add(MERGED_VM, VM + 8);
	add_concatenating();
	assert_int_equal(name(), 2);
	assert_frame(0, FRAME_VM_WORK, "concatenating strings", NULL);
	add(MERGED_NATIVE, APP + 0x99);
	add(MERGED_TRACE, 0)->trace = &trace;
	add_concatenating();
	assert_int_equal(name(), 2);
	assert_frame(0, FRAME_VM_WORK, "concatenating strings", NULL);
	add(MERGED_NATIVE, APP + 0x99);
	add_concatenating();
	assert_int_equal(name(), 2);
	assert_frame(0, FRAME_VM_WORK, "concatenating strings", NULL);
	/* Compiled code may be at another one. */
	add(MERGED_NATIVE, APP + 0x99);
	add_concatenating()->pc_is_near = true;
	assert_int_equal(name(), 2);
	assert_frame(0, FRAME_VM, NULL, NULL);
	/* A function that is called at an unknown one. */
	add(MERGED_NATIVE, APP + 0x99);
	add_concatenating()->pc = 0;
	assert_int_equal(name(), 2);
	assert_frame(0, FRAME_VM, NULL, NULL);
}

/* Several pieces of LuaJIT's own code in a row are one frame, the outermost
 * one's. */
static void work_in_a_row_is_one_frame(void **state)
{
	(void)state;
	fold_stack();
	add(MERGED_NATIVE, LIBRARY + 0x20);
	add(MERGED_NATIVE, LIBRARY + 0x10);
	add(MERGED_NATIVE, APP + 0x80); /* lj_str_new */
	add(MERGED_NATIVE, APP + 0x90);
	assert_int_equal(name(), 2);
	assert_frame(0, FRAME_VM_WORK, "creating a string", NULL);
	assert_frame(1, FRAME_NATIVE, "main", "app");
	assert_int_equal(namer_merged_index(namer, 0), 2);
}

/*---- What is inserted ----*/

static void a_detail_stands_above_its_frame(void **state)
{
	(void)state;
	make_namer(&(const struct namer_options){ .native = NATIVE_NONE });
	add(MERGED_NATIVE, LIBM + 0x10);
	add_c(FFID_FLOOR, 0);
	add(MERGED_NATIVE, LIBM + 0x10);
	add_lua(&chunk, 0);
	assert_int_equal(name(), 2);
	assert_int_equal(namer_insert(namer, 1, "of the builtin", &frames, &frame_count), 0);
	assert_int_equal(frame_count, 3);
	assert_frame(0, FRAME_NATIVE, "of the builtin", NULL);
	assert_frame(1, FRAME_BUILTIN, "math.floor", NULL);
	assert_frame(2, FRAME_LUA, "main chunk", NULL);
	assert_int_equal(namer_merged_index(namer, 0), NAMER_NO_FRAME);
	assert_int_equal(namer_merged_index(namer, 1), 1);
	assert_int_equal(namer_merged_index(namer, 2), 3);
	/* Of one that is not shown, where it would be. */
	assert_int_equal(namer_insert(namer, 2, "of native code", &frames, &frame_count), 0);
	assert_int_equal(frame_count, 4);
	assert_frame(1, FRAME_BUILTIN, "math.floor", NULL);
	assert_frame(2, FRAME_NATIVE, "of native code", NULL);
	assert_frame(3, FRAME_LUA, "main chunk", NULL);
	assert_int_equal(namer_insert(namer, 9, "at the root", &frames, &frame_count), 0);
	assert_frame(4, FRAME_NATIVE, "at the root", NULL);
	assert_int_equal(frames[4].certainty, CERTAINTY_EXACT);
}

static void details_without_end_are_one(void **state)
{
	enum { TEXT = 1 << 19, ROUNDS = 40 };
	static char text[TEXT];
	size_t left_out = 0;

	(void)state;
	memset(text, 'x', TEXT - 1);
	add_lua(&chunk, 0);
	name();
	for (unsigned int i = 0; i < ROUNDS; i++) {
		snprintf(text, 8, "%07u", i);
		text[7] = 'x';
		assert_int_equal(namer_insert(namer, 0, text, &frames, &frame_count), 0);
		if (strcmp(frames[i].function->name, "[detail left out: there are too many]") == 0)
			left_out++;
		else
			assert_int_equal(left_out, 0);
	}
	assert_in_range(left_out, ROUNDS / 2, ROUNDS - 3);
	assert_in_range(functions_size(functions), 4 << 20, 8 << 20);
}

/*---- Without memory ----*/

static size_t allocations_left = SIZE_MAX;

static bool may_allocate(void)
{
	if (allocations_left == 0)
		return false;
	allocations_left--;
	return true;
}

INSTEAD_OF(calloc);
void *__wrap_calloc(size_t count, size_t size)
{
	return may_allocate() ? __real_calloc(count, size) : NULL;
}

INSTEAD_OF(realloc);
void *__wrap_realloc(void *old, size_t size)
{
	return may_allocate() ? __real_realloc(old, size) : NULL;
}

/* What namer_name() returns of a new namer that gets so many pieces of memory;
 * 1 if there is no namer. */
static int name_with(size_t allocations, enum native_display native)
{
	const struct namer_options options = { .native = native };
	struct merged_stack stack = { .frames = stack_frames, .vm_state = VM_STATE_INTERPRETED };
	int result = 1;

	namer_free(namer);
	put_mixed_stack();
	stack.count = stack.size = stack_count;
	stack_count = 0;
	allocations_left = allocations;
	namer = namer_new(lua_image, &live, NULL, functions, &options);
	if (namer)
		result = namer_name(namer, &stack, &frames, &frame_count);
	return result;
}

/* The stack has so many frames then. */
static void assert_named_or_not(enum native_display native, size_t shown)
{
	size_t given = 0, failed = 0;
	bool is_short = true;

	for (; is_short; given++) {
		const int result = name_with(given, native);

		is_short = allocations_left == 0;
		allocations_left = SIZE_MAX;
		if (!namer) {
			assert_int_equal(given, 0);
			continue;
		}
		assert_true(result == 0 || result == -ENOMEM);
		failed += result != 0;
		/* Names of builtins and handlers may be missing, but no frames. */
		assert_true(result != 0 || frame_count == shown);
		put_mixed_stack();
		assert_int_equal(name(), shown);
		assert_frame(shown == 5 ? 4 : 8, FRAME_NATIVE, "main", "app");
	}
	assert_in_range(failed, 5, given);
}

static void without_memory_there_is_no_name(void **state)
{
	(void)state;
	assert_named_or_not(NATIVE_FOLD, 5);
	assert_named_or_not(NATIVE_ALL, 10);
}

static void without_memory_nothing_is_inserted(void **state)
{
	int result = -ENOMEM;

	(void)state;
	for (int i = 0; i < 16; i++) /* the frames have no room for more now */
		add(MERGED_CHILD, 0);
	assert_int_equal(name(), 16);
	for (size_t given = 0; result; given++) {
		allocations_left = given;
		result = namer_insert(namer, 0, "detail", &frames, &frame_count);
		allocations_left = SIZE_MAX;
		assert_true(result == 0 || result == -ENOMEM);
		assert_int_equal(frame_count, result ? 16 : 17);
		assert_true(result || given > 0);
	}
	assert_frame(0, FRAME_NATIVE, "detail", NULL);
}

#define IN_PROCESS(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_PROCESS(native_code_is_shown_as_asked),
		IN_PROCESS(a_folded_stack_has_one_frame_of_luajits_work),
		IN_PROCESS(modules_and_names_tell_what_native_code_is),
		IN_PROCESS(what_lua_calls_through_the_ffi_is_the_programs),
		IN_PROCESS(compiled_code_calls_what_has_a_name_through_the_ffi),
		IN_PROCESS(the_way_into_lua_from_what_the_ffi_calls_is_luajits),
		IN_PROCESS(the_collector_is_told_above_what_the_ffi_calls),
		IN_PROCESS(what_the_c_library_calls_in_itself_without_a_name_is_hidden),
		IN_PROCESS(all_native_code_has_what_the_c_library_calls_in_itself),
		IN_PROCESS(the_most_precise_work_is_told),
		IN_PROCESS(the_vms_state_tells_before_names_do),
		IN_PROCESS(without_names_the_instruction_tells),
		IN_PROCESS(work_in_a_row_is_one_frame),
		IN_PROCESS(a_detail_stands_above_its_frame),
		IN_PROCESS(details_without_end_are_one),
		IN_PROCESS(without_memory_there_is_no_name),
		IN_PROCESS(without_memory_nothing_is_inserted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

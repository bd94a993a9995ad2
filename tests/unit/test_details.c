/* SPDX-License-Identifier: MIT */
/* What C functions of a made-up stack work on, and who catches an error. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "luajit-layouts/field.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/made_up_memory.h"
#include "unwind/details/compiled_pattern.h"
#include "unwind/details/details.h"
#include "unwind/lua/lua_names.h"
#include "unwind/lua/luajit.h"

enum {
	FRAMES = 32,
	STACK = MADE_UP_AT, /* of Lua: */
	FRAME_BYTES = 0x80, /* each frame's part of it */
	BASE_IN_FRAME = 0x20,
	STRINGS = MADE_UP_AT + 0x1000, /* each STRING_BYTES further */
	STRING_BYTES = 0x100,
	CDATA = MADE_UP_AT + 0x3000,
	ZONE_OF_DOGS = 0x7000,
	DOGS_MUTEX = 0x5008,
	CATS_MUTEX = 0x6008,
	TAG_OF_CDATA = ~10,
	OWN_PID = 10,
};

static struct vm_code vm = { .layout = { .gc64 = true, .GChead_gct = 9, .GCstr_len = 20, .GCstr_size = 24 } };
static struct global_state global = { .vm = &vm };
static struct lua_thread thread;
static const struct proto handler = { .chunkname = (char *)(uintptr_t) "@handler.lua" };

static struct function functions[FRAMES];
static enum fold_kind kinds[FRAMES];
static struct merged_stack stack;
static struct capture capture;
static struct zones zones;
static uint64_t holders[ZONES_MAX];
static unsigned strings;

INSTEAD_OF(namer_merged_function);
const struct function *__wrap_namer_merged_function(const struct namer *namer, size_t index)
{
	(void)namer;
	return &functions[index];
}

INSTEAD_OF(namer_merged_kind);
enum fold_kind __wrap_namer_merged_kind(const struct namer *namer, size_t index)
{
	(void)namer;
	return kinds[index];
}

INSTEAD_OF(snapshot_memory);
struct memory *__wrap_snapshot_memory(struct snapshot *snapshot)
{
	(void)snapshot;
	return &made_up_memory.memory;
}

INSTEAD_OF(zones_at);
const struct zone *__wrap_zones_at(struct memory *memory, const struct zones *list, uint64_t address)
{
	(void)memory;
	return address == ZONE_OF_DOGS ? &list->list[0] : NULL;
}

INSTEAD_OF(lua_line);
uint32_t __wrap_lua_line(const struct layout *layout, const struct proto *proto, uint64_t pc)
{
	(void)layout;
	(void)proto;
	return (uint32_t)pc;
}

/* Of each function: a variable, then the pattern if it has one. */
static const char *second_local;

INSTEAD_OF(lua_locals);
size_t __wrap_lua_locals(const struct layout *layout, const struct proto *proto, uint64_t pc,
			 struct lua_local ret_locals[static LUA_LOCALS_MAX])
{
	(void)layout;
	(void)proto;
	(void)pc;
	ret_locals[0] = (struct lua_local){ .name = NULL };
	ret_locals[1] = (struct lua_local){ .name = second_local };
	return 2;
}

static bool is_pattern_compiled;

INSTEAD_OF(compiled_pattern_find);
bool __wrap_compiled_pattern_find(struct memory *memory, const struct merged_frame *frame,
				  uint64_t *ret_address, uint32_t *ret_length)
{
	(void)memory;
	(void)frame;
	*ret_address = STRINGS + (uint64_t)vm.layout.GCstr_size;
	*ret_length = 4;
	return is_pattern_compiled;
}

static bool describe_process(void *context, uint64_t pid, char ret_text[static DETAIL_PROCESS_BYTES])
{
	(void)context;
	snprintf(ret_text, DETAIL_PROCESS_BYTES, "asleep");
	return pid == 77;
}

static struct detail_source source;

static int begin(void **state)
{
	(void)state;
	source = (struct detail_source){
		.capture = &capture,
		.stack = &stack,
		.live = made_up_memory_begin(),
		.zones = &zones,
		.holders = holders,
		.own_pid = OWN_PID,
		.describe_process = describe_process,
	};
	thread = (struct lua_thread){
		.layout = &vm.layout,
		.global = &global,
		.stack = STACK,
		.stack_end = STACK + FRAMES * FRAME_BYTES,
		.slots = made_up_memory.bytes,
	};
	capture = (struct capture){ .registers = { 0 } };
	zones = (struct zones){ .list = { { .mutex = DOGS_MUTEX, .name = "dogs" },
					  { .mutex = CATS_MUTEX, .name = "cats" } },
				.count = 2 };
	memset(holders, 0, sizeof(holders));
	strings = 0;
	second_local = "regex";
	is_pattern_compiled = false;
	vm.layout.gc64 = true;
	vm.layout.GChead_gct = 9;
	merged_stack_begin(&stack, VM_STATE_NONE);
	return 0;
}

static int end(void **state)
{
	(void)state;
	merged_stack_clear(&stack);
	return 0;
}

/* Add the next frame outwards. */
static size_t add(enum merged_kind kind, enum frame_kind named_kind, const char *name)
{
	size_t index = stack.count;
	struct merged_frame *frame = merged_stack_add(&stack, kind);

	assert_true(frame && index < FRAMES);
	frame->global = &global;
	functions[index] = (struct function){ .kind = named_kind, .name = name, .module = "ngx_http_lua.so" };
	kinds[index] = kind == MERGED_NATIVE ? FOLD_NATIVE : FOLD_KEPT;
	if (kind == MERGED_NATIVE)
		return index;
	frame->thread = &thread;
	frame->base = STACK + index * FRAME_BYTES + BASE_IN_FRAME;
	for (unsigned slot = 0; slot < 8; slot++)
		put(frame->base + slot * SLOT_SIZE, UINT64_MAX, SLOT_SIZE);
	return index;
}

static size_t builtin(const char *name)
{
	return add(MERGED_C_FUNCTION, FRAME_BUILTIN, name);
}

static void lua_at(uint32_t line)
{
	size_t index = add(MERGED_LUA, FRAME_LUA, "handle");

	stack.frames[index].proto = &handler;
	stack.frames[index].pc = line;
}

static void set(size_t frame, unsigned slot, int tag, uint64_t object)
{
	put(stack.frames[frame].base + slot * SLOT_SIZE, (uint64_t)(int64_t)tag << 47 | object, SLOT_SIZE);
}

static void set_link(size_t frame, uint64_t link)
{
	put(stack.frames[frame].base - SLOT_SIZE, link, SLOT_SIZE);
}

static void set_string(size_t frame, unsigned slot, const char *bytes, size_t length)
{
	uint64_t address = STRINGS + strings++ * STRING_BYTES;

	put(address + (uint64_t)vm.layout.GChead_gct, GCT_STRING, 1);
	put(address + (uint64_t)vm.layout.GCstr_len, length, 4);
	put_bytes(address + (uint64_t)vm.layout.GCstr_size, bytes, length < 0xe0 ? length : 0xe0);
	set(frame, slot, TAG_STR, address);
}

static void check_list(const struct detail *details, size_t count, size_t index, const char *wanted)
{
	assert_int_equal(count, 1);
	assert_int_equal(details[0].merged_index, index);
	assert_string_equal(details[0].text, wanted);
}

/* The only detail, and whose it is. */
static void check(size_t index, const char *wanted)
{
	struct detail details[DETAILS_MAX];

	check_list(details, details_find(&source, details), index, wanted);
}

static void check_error(size_t index, const char *wanted)
{
	struct detail details[DETAILS_MAX];

	check_list(details, details_find_errors(&source, true, details), index, wanted);
}

static void check_no_error(void)
{
	struct detail details[DETAILS_MAX];

	assert_int_equal(details_find_errors(&source, true, details), 0);
}

static void check_none(void)
{
	struct detail details[DETAILS_MAX];

	assert_int_equal(details_find(&source, details), 0);
}

/*---- Arguments ----*/

static void the_argument_that_matters_is_shown(void **state)
{
	size_t find = builtin("string.find");

	(void)state;
	lua_at(3);
	set_string(find, 0, "subject", 7);
	set_string(find, 1, "^a+$\0x", 6);
	check(find, "[pattern ^a+$\\0x]");
	set(find, 1, TAG_TAB, STRINGS);
	check(find, "[pattern unknown]");
	functions[find].name = "require";
	check(find, "[module subject]");
	functions[find].name = "string.rep";
	assert_int_equal(details_find(&source, (struct detail[DETAILS_MAX]){ 0 }), 0);
}

static void long_arguments_are_cut(void **state)
{
	char bytes[0xe0], wanted[DETAIL_TEXT_BYTES];
	size_t open = builtin("io.open");

	(void)state;
	memset(bytes, 'x', sizeof(bytes));
	set_string(open, 0, bytes, sizeof(bytes));
	snprintf(wanted, sizeof(wanted), "[file %.*s...]", 128, bytes);
	check(open, wanted);
}

/* Other programs' functions may have the same names. */
static void hosts_are_those_of_the_gateways_sockets(void **state)
{
	size_t connect = add(MERGED_C_FUNCTION, FRAME_C_FUNCTION, "connect");

	(void)state;
	set_string(connect, 1, "example.com", 11);
	check(connect, "[host example.com]");
	functions[connect].module = "socket.so";
	assert_int_equal(details_find(&source, (struct detail[DETAILS_MAX]){ 0 }), 0);
}

static void each_function_has_its_argument(void **state)
{
	static const struct {
		const char *name, *wanted;
	} known[] = {
		{ "string.find", "[pattern second]" },   { "string.match", "[pattern second]" },
		{ "string.gmatch", "[pattern second]" }, { "string.gsub", "[pattern second]" },
		{ "io.open", "[file first]" },           { "io.lines", "[file first]" },
		{ "io.popen", "[command first]" },       { "os.execute", "[command first]" },
		{ "os.remove", "[file first]" },         { "os.rename", "[file first]" },
		{ "loadfile", "[file first]" },          { "dofile", "[file first]" },
		{ "require", "[module first]" },         { "connect", "[host second]" },
		{ "setpeername", "[host second]" },
	};
	size_t function = builtin("x");

	(void)state;
	set_string(function, 0, "first", 5);
	set_string(function, 1, "second", 6);
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		bool is_socket = strstr(known[i].wanted, "host") != NULL;

		functions[function].name = known[i].name;
		functions[function].kind = is_socket ? FRAME_C_FUNCTION : FRAME_BUILTIN;
		check(function, known[i].wanted);
		/* Another function of that name. */
		functions[function].kind = is_socket ? FRAME_BUILTIN : FRAME_C_FUNCTION;
		check_none();
	}
	functions[function].name = NULL;
	check_none();
}

static void slots_that_are_not_in_memory_are_unknown(void **state)
{
	size_t find = builtin("string.find");
	struct merged_frame frame;
	uint64_t value;

	(void)state;
	set_string(find, 1, "a", 1);
	frame = stack.frames[find];
	check(find, "[pattern a]");
	stack.frames[find].compiled = true;
	check(find, "[pattern unknown]");
	stack.frames[find] = frame;
	stack.frames[find].base = 0;
	check(find, "[pattern unknown]");
	stack.frames[find] = frame;
	stack.frames[find].thread = NULL;
	check(find, "[pattern unknown]");
	stack.frames[find] = frame;
	/* What should be a string, by its tag, but is none, or was not copied. */
	assert_true(lua_thread_slot(&thread, frame.base + SLOT_SIZE, &value));
	put(STRINGS + (uint64_t)vm.layout.GChead_gct, GCT_TABLE, 1);
	check(find, "[pattern unknown]");
	set(find, 1, TAG_STR, 0x7fff0000);
	check(find, "[pattern unknown]");
	set(find, 1, TAG_STR, MADE_UP_AT + MADE_UP_BYTES - (uint64_t)vm.layout.GCstr_size);
	put(MADE_UP_AT + MADE_UP_BYTES - (uint64_t)vm.layout.GCstr_size + (uint64_t)vm.layout.GChead_gct,
	    GCT_STRING, 1);
	put(MADE_UP_AT + MADE_UP_BYTES - 4, 1, 4);
	check(find, "[pattern unknown]");
	/* An empty string has no bytes to copy. */
	put(MADE_UP_AT + MADE_UP_BYTES - 4, 0, 4);
	check(find, "[pattern ]");
}

/* As long as a value may be, or as there is room for. */
static void what_is_cut_is_marked(void **state)
{
	enum { SHOWN = 128, ZEROS = 98 };
	char bytes[0xe0] = { 0 }, zeros[2 * ZEROS + 1], wanted[DETAIL_TEXT_BYTES];
	size_t open = builtin("io.open");

	(void)state;
	for (size_t i = 0; i < ZEROS; i++)
		memcpy(zeros + 2 * i, "\\0", 3);
	for (size_t length = ZEROS - 1; length <= ZEROS + 1; length++) {
		set_string(open, 0, bytes, length);
		snprintf(wanted, sizeof(wanted), "[file %.*s%s]",
			 (int)(2 * (length < ZEROS ? length : ZEROS)), zeros, length > ZEROS ? "..." : "");
		check(open, wanted);
	}
	memset(bytes, 'x', sizeof(bytes));
	for (size_t length = SHOWN - 1; length <= SHOWN + 1; length++) {
		set_string(open, 0, bytes, length);
		snprintf(wanted, sizeof(wanted), "[file %.*s%s]", (int)(length < SHOWN ? length : SHOWN),
			 bytes, length > SHOWN ? "..." : "");
		check(open, wanted);
	}
}

static void the_gateways_functions_are_in_its_modules(void **state)
{
	size_t connect = add(MERGED_C_FUNCTION, FRAME_C_FUNCTION, "setpeername");

	(void)state;
	functions[connect].module = "nginx";
	check(connect, "[host unknown]");
	functions[connect].module = "openresty";
	check(connect, "[host unknown]");
	functions[connect].module = "/usr/lib/ngx_stream_lua_module.so";
	check(connect, "[host unknown]");
	functions[connect].module = "nginx-debug";
	check_none();
	functions[connect].module = NULL;
	check_none();
}

static void details_are_bounded(void **state)
{
	struct detail details[DETAILS_MAX];

	(void)state;
	for (size_t i = 0; i < DETAILS_MAX + 2; i++)
		builtin("error");
	for (size_t i = 0; i < DETAILS_MAX + 2; i++)
		functions[i].name = "require";
	assert_int_equal(details_find(&source, details), DETAILS_MAX);
	assert_int_equal(details[DETAILS_MAX - 1].merged_index, DETAILS_MAX - 1);
	for (size_t i = 0; i < DETAILS_MAX + 2; i++)
		functions[i].name = "error";
	assert_int_equal(details_find_errors(&source, false, details), DETAILS_MAX);
	assert_int_equal(details[DETAILS_MAX - 1].merged_index, DETAILS_MAX - 1);
	assert_string_equal(details[0].text, "[caught: unknown]");
}

/*---- Regular expressions ----*/

static const struct proto regex_file = { .chunkname = (char *)(uintptr_t) "@/lib/resty/core/regex.lua" };

/* lua-resty-core's function calls lua-nginx-module's by FFI; the pattern is its second variable. */
static size_t add_regex(const char *function)
{
	size_t regex = add(MERGED_NATIVE, FRAME_NATIVE, function);

	builtin("ffi.meta.__call");
	lua_at(7);
	stack.frames[regex + 2].proto = &regex_file;
	set_string(regex + 2, 1, "^a+$", 4);
	return regex;
}

static void a_pattern_is_the_variable_of_who_runs_it(void **state)
{
	static const char *const names[] = { "ngx_http_lua_ffi_exec_regex", "ngx_http_lua_ffi_compile_regex",
					     "ngx_stream_lua_ffi_exec_regex",
					     "ngx_stream_lua_ffi_compile_regex" };
	size_t regex = add_regex("x");

	(void)state;
	check_none();
	for (size_t i = 0; i < 4; i++) {
		functions[regex].name = names[i];
		check(regex, "[pattern ^a+$]");
	}
	second_local = "subject";
	check(regex, "[pattern unknown]");
	second_local = "regex";
	stack.frames[regex + 2].pc = 0;
	check(regex, "[pattern unknown]");
	stack.frames[regex + 2].pc = 7;
	stack.frames[regex + 2].proto = &handler;
	check(regex, "[pattern unknown]");
	stack.frames[regex + 2].proto = NULL;
	check(regex, "[pattern unknown]");
	stack.count = regex + 2;
	check(regex, "[pattern unknown]");
}

static void a_compiled_pattern_is_found_while_it_runs(void **state)
{
	size_t regex = add_regex("ngx_http_lua_ffi_exec_regex");

	(void)state;
	stack.frames[regex + 2].compiled = true;
	check(regex, "[pattern unknown]");
	is_pattern_compiled = true;
	check(regex, "[pattern ^a+$]");
	/* Then it is in no cache yet. */
	functions[regex].name = "ngx_http_lua_ffi_compile_regex";
	check(regex, "[pattern unknown]");
}

/*---- Dictionaries and locks ----*/

static size_t add_get(void)
{
	size_t get = add(MERGED_NATIVE, FRAME_NATIVE, "ngx_http_lua_ffi_shdict_get");

	add(MERGED_C_FUNCTION, FRAME_BUILTIN, "ffi.meta.__call");
	lua_at(7);
	return get;
}

/* The first argument is the zone of a dictionary. */
static void give_dogs(size_t get)
{
	put(CDATA + (uint64_t)vm.layout.GChead_gct, GCT_CDATA, 1);
	put(CDATA + 16, ZONE_OF_DOGS, 8);
	set(get + 1, 1, TAG_OF_CDATA, CDATA);
}

static void a_dictionary_is_that_of_the_argument(void **state)
{
	size_t get = add_get();

	(void)state;
	give_dogs(get);
	check(get, "[dict dogs: get]");
	set_string(get + 1, 3, "name", 4);
	check(get, "[dict dogs: get \"name\"]");
	/* The second argument comes before the third. */
	set_string(get + 1, 2, "key", 3);
	check(get, "[dict dogs: get \"key\"]");
	functions[get].name = "ngx_http_lua_ffi_shdict_udata_to_zone";
	assert_int_equal(details_find(&source, (struct detail[DETAILS_MAX]){ 0 }), 0);
}

static void or_the_only_one_whose_lock_is_held(void **state)
{
	size_t get = add_get();

	(void)state;
	check(get, "[dict unknown: get]");
	holders[0] = OWN_PID + 1;
	holders[1] = OWN_PID;
	check(get, "[dict cats: get]");
	holders[0] = OWN_PID;
	check(get, "[dict unknown: get]");
	source.own_pid = 0;
	holders[0] = holders[1] = 0;
	check(get, "[dict unknown: get]");
}

static void a_lock_says_who_holds_it(void **state)
{
	size_t lock = add(MERGED_NATIVE, FRAME_NATIVE, "ngx_shmtx_lock");

	(void)state;
	check(lock, "[lock unknown]");
	source.sleeps_at = DOGS_MUTEX;
	check(lock, "[lock of dogs]");
	holders[0] = OWN_PID;
	check(lock, "[lock of dogs: taken]");
	holders[0] = 77;
	check(lock, "[lock of dogs: held by 77, asleep]");
	holders[0] = 78;
	check(lock, "[lock of dogs: held by 78]");
	source.holders = NULL;
	check(lock, "[lock of dogs]");
}

static void a_dictionary_with_32_bit_references_too(void **state)
{
	size_t get = add_get();

	(void)state;
	vm.layout.gc64 = false;
	vm.layout.GChead_gct = 5;
	put(CDATA + (uint64_t)vm.layout.GChead_gct, GCT_CDATA, 1);
	put(CDATA + 8, ZONE_OF_DOGS, 8);
	put(stack.frames[get + 1].base + SLOT_SIZE, (uint64_t)(uint32_t)TAG_OF_CDATA << 32 | CDATA,
	    SLOT_SIZE);
	check(get, "[dict dogs: get]");
}

static void what_is_no_zone_is_not_taken_for_one(void **state)
{
	size_t get = add_get();

	(void)state;
	give_dogs(get);
	check(get, "[dict dogs: get]");
	put(CDATA + 16, ZONE_OF_DOGS + 8, 8);
	check(get, "[dict unknown: get]");
	put(CDATA + 16, ZONE_OF_DOGS, 8);
	put(CDATA + (uint64_t)vm.layout.GChead_gct, GCT_TABLE, 1);
	check(get, "[dict unknown: get]");
	put(CDATA + (uint64_t)vm.layout.GChead_gct, GCT_CDATA, 1);
	set(get + 1, 1, TAG_UDATA, CDATA);
	check(get, "[dict unknown: get]");
	set(get + 1, 1, TAG_OF_CDATA, MADE_UP_AT + MADE_UP_BYTES - 16);
	check(get, "[dict unknown: get]");
	/* A Lua function has no arguments of FFI calls. */
	set(get + 1, 1, TAG_OF_CDATA, CDATA);
	stack.frames[get + 1].kind = MERGED_LUA;
	check(get, "[dict unknown: get]");
	stack.count = get + 1;
	check(get, "[dict unknown: get]");
}

static void operations_of_lists_are_c_functions(void **state)
{
	static const char *const names[] = { "lpush", "rpush", "lpop", "rpop", "llen", "get_keys" };
	char wanted[DETAIL_TEXT_BYTES];
	size_t list = add(MERGED_C_FUNCTION, FRAME_C_FUNCTION, "x");

	(void)state;
	lua_at(7);
	check_none();
	holders[1] = OWN_PID;
	for (size_t i = 0; i < 6; i++) {
		functions[list].name = names[i];
		functions[list].kind = FRAME_C_FUNCTION;
		snprintf(wanted, sizeof(wanted), "[dict cats: %s]", names[i]);
		check(list, wanted);
		functions[list].kind = FRAME_BUILTIN;
		check_none();
	}
}

/* The function waits for the lock of the dictionary that it works on. */
static void a_dictionary_is_that_whose_lock_is_waited_for(void **state)
{
	struct detail details[DETAILS_MAX];
	size_t lock = add(MERGED_NATIVE, FRAME_NATIVE, "ngx_shmtx_lock"), get;

	(void)state;
	add(MERGED_NATIVE, FRAME_NATIVE, "ngx_http_lua_shdict_get_helper");
	get = add(MERGED_NATIVE, FRAME_NATIVE, "ngx_stream_lua_ffi_shdict_incr");
	lua_at(7);
	source.sleeps_at = CATS_MUTEX;
	holders[0] = OWN_PID;
	assert_int_equal(details_find(&source, details), 2);
	assert_int_equal(details[0].merged_index, lock);
	assert_string_equal(details[0].text, "[lock of cats]");
	assert_int_equal(details[1].merged_index, get);
	assert_string_equal(details[1].text, "[dict cats: incr]");
	assert_ptr_equal(details_find_lock(&source), &zones.list[1]);
	/* Another function's lock is none of this one's. */
	stack.frames[get - 1].kind = MERGED_C_FUNCTION;
	assert_int_equal(details_find(&source, details), 2);
	assert_string_equal(details[1].text, "[dict dogs: incr]");
	assert_ptr_equal(details_find_lock(&source), &zones.list[1]);
	stack.frames[lock].kind = MERGED_VM;
	assert_null(details_find_lock(&source));
	stack.frames[lock].kind = MERGED_NATIVE;
	functions[lock].name = "ngx_shmtx_unlock";
	assert_null(details_find_lock(&source));
	source.sleeps_at = 1;
	functions[lock].name = "ngx_shmtx_lock";
	assert_null(details_find_lock(&source));
}

#ifdef __x86_64__
/* sched_yield() changes no register that its caller needs; other functions do. */
static void registers_tell_of_a_lock_near_the_leaf(void **state)
{
	(void)state;
	capture.registers.rbx = CATS_MUTEX;
	add(MERGED_NATIVE, FRAME_NATIVE, "sched_yield");
	add(MERGED_NATIVE, FRAME_NATIVE, "ngx_shmtx_lock");
	check(1, "[lock of cats]");
	functions[0].name = "x";
	functions[1].name = "sched_yield";
	add(MERGED_NATIVE, FRAME_NATIVE, "ngx_shmtx_lock");
	check(2, "[lock unknown]");
}

static void a_lock_is_that_of_the_only_mutex_in_a_register(void **state)
{
	size_t lock = add(MERGED_NATIVE, FRAME_NATIVE, "ngx_shmtx_lock");

	(void)state;
	capture.registers.rbx = CATS_MUTEX;
	capture.registers.r12 = CATS_MUTEX;
	check(lock, "[lock of cats]");
	capture.registers.r13 = DOGS_MUTEX;
	check(lock, "[lock unknown]");
	capture.registers.r13 = 0;
	capture.registers.unknown = 1;
	check(lock, "[lock unknown]");
}
#endif

/*---- Errors ----*/

static void an_error_is_caught_by_the_next_pcall(void **state)
{
	size_t error = builtin("error"), pcall;

	(void)state;
	lua_at(3);
	pcall = builtin("pcall");
	lua_at(12);
	builtin("xpcall");
	lua_at(20);
	set_string(error, 0, "no", 2);
	check_error(error, "[error \"no\", caught by pcall at handler.lua:12]");
	functions[pcall].name = "coroutine.resume";
	check_error(error, "[error \"no\", caught by coroutine.resume at handler.lua:12]");
	functions[pcall].name = "string.rep";
	check_error(error, "[error \"no\", caught by xpcall at handler.lua:20]");
}

static void what_nobody_is_seen_to_catch_is_unknown(void **state)
{
	size_t error = builtin("error");

	(void)state;
	lua_at(3);
	set(error, 0, ~0, 0);
	check_error(error, "[error nil, caught: unknown]");
	add(MERGED_LOST, FRAME_LOST, NULL);
	builtin("pcall");
	check_error(error, "[error nil, caught: unknown]");
}

/* lua_pcall() and lj_vm_cpcall make frames of this type. */
static void c_code_may_catch(void **state)
{
	size_t error = builtin("error");

	(void)state;
	lua_at(3);
	set(error, 0, ~0, 0);
	set_link(1, FRAME_CP);
	check_error(error, "[error nil, caught by C]");
	add(MERGED_NATIVE, FRAME_NATIVE, "lua_pcall");
	kinds[2] = FOLD_LUAJIT;
	add(MERGED_NATIVE, FRAME_NATIVE, "ngx_http_lua_run_thread");
	check_error(error, "[error nil, caught by C: ngx_http_lua_run_thread]");
	set_link(1, FRAME_C);
	check_error(error, "[error nil, caught: unknown]");
}

/* An instruction that fails has no function of its own: LuaJIT's are on top of the one that it is in. */
static void what_luajit_raises_is_an_error_of_the_function_below(void **state)
{
	size_t raises = add(MERGED_NATIVE, FRAME_NATIVE, "lj_err_optype");

	(void)state;
	lua_at(5);
	builtin("pcall");
	lua_at(12);
	check_error(1, "[caught by pcall at handler.lua:12]");
	functions[raises].name = "lj_str_new";
	assert_int_equal(details_find_errors(&source, true, (struct detail[DETAILS_MAX]){ 0 }), 0);
	/* The unwinder also runs for C++. */
	functions[raises].name = "_Unwind_RaiseException";
	assert_int_equal(details_find_errors(&source, true, (struct detail[DETAILS_MAX]){ 0 }), 0);
}

/* What is wrong with pcall's own arguments it does not catch; what it has called, it does. */
static void a_catcher_that_raises_has_called_something(void **state)
{
	size_t pcall;

	(void)state;
	add(MERGED_NATIVE, FRAME_NATIVE, "lj_err_arg");
	pcall = builtin("pcall");
	lua_at(12);
	check_error(pcall, "[caught: unknown]");
	set(pcall, 0, TAG_FUNC, STRINGS);
	check_error(pcall, "[caught by pcall at handler.lua:12]");
	functions[pcall].name = "xpcall";
	check_error(pcall, "[caught: unknown]");
	set(pcall, 1, TAG_FUNC, STRINGS);
	check_error(pcall, "[caught by xpcall at handler.lua:12]");
}

static void an_error_is_raised_by_functions_for_it(void **state)
{
	static const char *const names[] = { "lj_err_run", "lua_error", "luaL_error" };
	static const char *const unwinders[] = { "_Unwind_RaiseException", "_Unwind_ForcedUnwind" };
	size_t raises = add(MERGED_NATIVE, FRAME_NATIVE, "x"), next;

	(void)state;
	next = add(MERGED_NATIVE, FRAME_NATIVE, "y");
	lua_at(5);
	builtin("pcall");
	lua_at(12);
	check_no_error();
	for (size_t i = 0; i < 3; i++) {
		functions[raises].name = names[i];
		check_error(2, "[caught by pcall at handler.lua:12]");
		stack.frames[raises].kind = MERGED_VM;
		check_no_error();
		stack.frames[raises].kind = MERGED_NATIVE;
	}
	for (size_t i = 0; i < 2; i++) {
		functions[raises].name = unwinders[i];
		kinds[next] = FOLD_NATIVE;
		check_no_error();
		kinds[next] = FOLD_LUAJIT;
		check_error(2, "[caught by pcall at handler.lua:12]");
	}
	functions[raises].name = "lua_errors";
	check_no_error();
	stack.count = 1;
	functions[raises].name = unwinders[0];
	check_no_error();
}

/* assert() runs native code only to raise an error. */
static void assert_raises_while_native_code_runs_for_it(void **state)
{
	(void)state;
	builtin("assert");
	lua_at(12);
	check_no_error();
	begin(NULL);
	add(MERGED_NATIVE, FRAME_NATIVE, "x");
	builtin("assert");
	lua_at(12);
	check_error(1, "[caught: unknown]");
	stack.frames[0].kind = MERGED_VM;
	check_no_error();
}

static void the_innermost_error_comes_first(void **state)
{
	struct detail details[DETAILS_MAX];

	(void)state;
	set_string(builtin("error"), 0, "inner", 5);
	builtin("pcall");
	lua_at(3);
	set_string(builtin("error"), 0, "outer", 5);
	lua_at(4);
	assert_int_equal(details_find_errors(&source, false, details), 2);
	assert_int_equal(details[0].merged_index, 0);
	assert_string_equal(details[0].text, "[caught by pcall at handler.lua:3]");
	assert_int_equal(details[1].merged_index, 3);
	assert_string_equal(details[1].text, "[caught: unknown]");
	assert_int_equal(details_find_errors(&source, true, details), 2);
	assert_string_equal(details[1].text, "[error \"outer\", caught: unknown]");
}

static void the_place_of_a_call_is_known_if_lua_called(void **state)
{
	static char name[2 + 210 + 1] = "@";
	static const struct proto long_named = { .chunkname = name };
	size_t error = builtin("error"), pcall = builtin("pcall");
	char wanted[DETAIL_TEXT_BYTES];

	(void)state;
	set(error, 0, ~0, 0);
	check_error(error, "[error nil, caught by pcall]");
	builtin("table.sort");
	check_error(error, "[error nil, caught by pcall]");
	stack.count = pcall + 1;
	lua_at(9);
	check_error(error, "[error nil, caught by pcall at handler.lua:9]");
	/* Of a long path, the end. */
	stack.frames[pcall + 1].proto = &long_named;
	for (int length = 200; length <= 201; length++) {
		memset(name + 1, 'x', (size_t)length);
		snprintf(wanted, sizeof(wanted), "[error nil, caught by pcall at %s%.200s:9]",
			 length > 200 ? "..." : "", name + 1 + length - 200);
		check_error(error, wanted);
	}
	name[0] = '=';
	name[5] = '\0';
	check_error(error, "[error nil, caught by pcall at xxxx:9]");
}

/* A coroutine of lua-nginx-module waits, as a function of its own, for the one that it has resumed. */
static void an_error_of_a_coroutine_is_caught_by_its_parent(void **state)
{
	static const struct proto core = {
		.chunkname = (char *)(uintptr_t) "@/lib/resty/core/coroutine.lua"
	};
	size_t error = builtin("error"), resume;

	(void)state;
	set(error, 0, ~0, 0);
	lua_at(3);
	add(MERGED_CHILD, FRAME_LUA, "x");
	check_error(error, "[error nil, caught: unknown]");
	resume = add(MERGED_C_FUNCTION, FRAME_C_FUNCTION, "ngx.coroutine.resume");
	check_error(error, "[error nil, caught by coroutine.resume]");
	lua_at(40);
	check_error(error, "[error nil, caught by coroutine.resume at handler.lua:40]");
	lua_at(50);
	stack.frames[resume + 1].proto = &core;
	check_error(error, "[error nil, caught by coroutine.resume at handler.lua:50]");
	functions[resume].name = "ngx.coroutine.yield";
	check_error(error, "[error nil, caught: unknown]");
}

/* The first function of a coroutine has such a link, too, which the native stack below does not explain. */
static void the_first_function_of_a_coroutine_is_not_caught_by_c(void **state)
{
	size_t error = builtin("error"), resume;

	(void)state;
	set(error, 0, ~0, 0);
	lua_at(3);
	set_link(1, FRAME_CP);
	add(MERGED_NATIVE, FRAME_NATIVE, "run");
	resume = builtin("coroutine.wrap_aux");
	lua_at(40);
	check_error(error, "[error nil, caught: unknown]");
	functions[resume].name = "coroutine.resume";
	check_error(error, "[error nil, caught by coroutine.resume at handler.lua:40]");
	functions[resume].name = "string.gsub";
	check_error(error, "[error nil, caught by C: run]");
	/* What runs between them is native code of any kind. */
	stack.frames[2].kind = MERGED_VM;
	check_error(error, "[error nil, caught by C: run]");
	kinds[2] = FOLD_LUAJIT;
	check_error(error, "[error nil, caught by C]");
	stack.frames[2].kind = MERGED_CHILD;
	check_error(error, "[error nil, caught: unknown]");
}

static void links_are_those_of_the_frame_in_memory(void **state)
{
	size_t error = builtin("error");
	struct merged_frame frame;

	(void)state;
	set(error, 0, ~0, 0);
	lua_at(3);
	frame = stack.frames[1];
	set_link(1, FRAME_CP);
	check_error(error, "[error nil, caught by C]");
	/* A vararg function's copy lies above its arguments, and leads to the frame below. */
	set_link(1, 0x10 | FRAME_VARG);
	put(frame.base - 0x10 - SLOT_SIZE, FRAME_CP, SLOT_SIZE);
	check_error(error, "[error nil, caught by C]");
	put(frame.base - 0x10 - SLOT_SIZE, FRAME_C, SLOT_SIZE);
	check_error(error, "[error nil, caught: unknown]");
	set_link(1, 0x10000 | FRAME_VARG);
	check_error(error, "[error nil, caught: unknown]");
	set_link(1, FRAME_CP);
	stack.frames[1].base = 0;
	check_error(error, "[error nil, caught: unknown]");
	stack.frames[1] = frame;
	stack.frames[1].thread = NULL;
	check_error(error, "[error nil, caught: unknown]");
	stack.frames[1] = frame;
	/* Of frames that a trace has inlined, only the first one is in memory. */
	stack.frames[1].compiled = true;
	stack.frames[1].trace_slot = 2;
	check_error(error, "[error nil, caught by C]");
	stack.frames[1].trace_slot = 9;
	check_error(error, "[error nil, caught: unknown]");
	stack.frames[1] = frame;
	stack.frames[1].kind = MERGED_TRACE;
	check_error(error, "[error nil, caught: unknown]");
}

/* xpcall() has its handler in its first slot while that runs. */
static void a_handler_runs_on_top_of_the_error(void **state)
{
	static const struct function_object handler_function = { .address = STRINGS };
	size_t raised, xpcall;

	(void)state;
	lua_at(1);
	stack.frames[0].function = &handler_function;
	set_link(0, FRAME_C);
	add(MERGED_NATIVE, FRAME_NATIVE, "x");
	raised = stack.count;
	lua_at(5);
	xpcall = builtin("xpcall");
	set(xpcall, 0, TAG_FUNC, STRINGS);
	lua_at(12);
	check_error(raised, "[caught by xpcall at handler.lua:12]");
	/* Nothing is between them, or it is another function, another catcher, another call. */
	stack.frames[0].function = NULL;
	check_no_error();
	stack.frames[0].function = &handler_function;
	set_link(0, FRAME_CP);
	check_no_error();
	set_link(0, FRAME_C);
	set(xpcall, 0, TAG_FUNC, STRINGS + 8);
	check_no_error();
	set(xpcall, 0, TAG_TAB, STRINGS);
	check_no_error();
	set(xpcall, 0, TAG_FUNC, STRINGS);
	functions[xpcall].name = "pcall";
	check_no_error();
	functions[xpcall].name = "xpcall";
	functions[xpcall].kind = FRAME_C_FUNCTION;
	check_no_error();
	functions[xpcall].kind = FRAME_BUILTIN;
	check_error(raised, "[caught by xpcall at handler.lua:12]");
	stack.frames[xpcall].kind = MERGED_CHILD;
	check_no_error();
}

static void a_coroutine_that_is_none_cannot_be_resumed(void **state)
{
	size_t resume;

	(void)state;
	add(MERGED_NATIVE, FRAME_NATIVE, "lj_err_arg");
	resume = builtin("coroutine.resume");
	lua_at(12);
	set(resume, 0, TAG_FUNC, STRINGS);
	check_error(resume, "[caught: unknown]");
	set(resume, 0, TAG_THREAD, STRINGS);
	check_error(resume, "[caught by coroutine.resume at handler.lua:12]");
}

static void long_values_of_errors_are_cut(void **state)
{
	struct detail details[DETAILS_MAX];
	char bytes[0xe0];
	size_t error = builtin("error");

	(void)state;
	memset(bytes, 'x', sizeof(bytes));
	set_string(error, 0, bytes, sizeof(bytes));
	assert_int_equal(details_find_errors(&source, true, details), 1);
	assert_non_null(strstr(details[0].text, "[error \"xxxx"));
	assert_non_null(strstr(details[0].text, "xxxx\"... (224 bytes), caught: unknown]"));
	/* Its slots are not in memory. */
	stack.frames[error].compiled = true;
	check_error(error, "[caught: unknown]");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_argument_that_matters_is_shown, begin, end),
		cmocka_unit_test_setup_teardown(long_arguments_are_cut, begin, end),
		cmocka_unit_test_setup_teardown(hosts_are_those_of_the_gateways_sockets, begin, end),
		cmocka_unit_test_setup_teardown(a_dictionary_is_that_of_the_argument, begin, end),
		cmocka_unit_test_setup_teardown(or_the_only_one_whose_lock_is_held, begin, end),
		cmocka_unit_test_setup_teardown(a_lock_says_who_holds_it, begin, end),
#ifdef __x86_64__
		cmocka_unit_test_setup_teardown(registers_tell_of_a_lock_near_the_leaf, begin, end),
		cmocka_unit_test_setup_teardown(a_lock_is_that_of_the_only_mutex_in_a_register, begin, end),
#endif
		cmocka_unit_test_setup_teardown(an_error_is_caught_by_the_next_pcall, begin, end),
		cmocka_unit_test_setup_teardown(what_nobody_is_seen_to_catch_is_unknown, begin, end),
		cmocka_unit_test_setup_teardown(c_code_may_catch, begin, end),
		cmocka_unit_test_setup_teardown(what_luajit_raises_is_an_error_of_the_function_below, begin,
						end),
		cmocka_unit_test_setup_teardown(each_function_has_its_argument, begin, end),
		cmocka_unit_test_setup_teardown(slots_that_are_not_in_memory_are_unknown, begin, end),
		cmocka_unit_test_setup_teardown(what_is_cut_is_marked, begin, end),
		cmocka_unit_test_setup_teardown(the_gateways_functions_are_in_its_modules, begin, end),
		cmocka_unit_test_setup_teardown(details_are_bounded, begin, end),
		cmocka_unit_test_setup_teardown(a_pattern_is_the_variable_of_who_runs_it, begin, end),
		cmocka_unit_test_setup_teardown(a_compiled_pattern_is_found_while_it_runs, begin, end),
		cmocka_unit_test_setup_teardown(a_dictionary_with_32_bit_references_too, begin, end),
		cmocka_unit_test_setup_teardown(what_is_no_zone_is_not_taken_for_one, begin, end),
		cmocka_unit_test_setup_teardown(operations_of_lists_are_c_functions, begin, end),
		cmocka_unit_test_setup_teardown(a_dictionary_is_that_whose_lock_is_waited_for, begin, end),
		cmocka_unit_test_setup_teardown(an_error_is_raised_by_functions_for_it, begin, end),
		cmocka_unit_test_setup_teardown(assert_raises_while_native_code_runs_for_it, begin, end),
		cmocka_unit_test_setup_teardown(the_innermost_error_comes_first, begin, end),
		cmocka_unit_test_setup_teardown(the_place_of_a_call_is_known_if_lua_called, begin, end),
		cmocka_unit_test_setup_teardown(an_error_of_a_coroutine_is_caught_by_its_parent, begin, end),
		cmocka_unit_test_setup_teardown(the_first_function_of_a_coroutine_is_not_caught_by_c, begin,
						end),
		cmocka_unit_test_setup_teardown(links_are_those_of_the_frame_in_memory, begin, end),
		cmocka_unit_test_setup_teardown(a_handler_runs_on_top_of_the_error, begin, end),
		cmocka_unit_test_setup_teardown(a_coroutine_that_is_none_cannot_be_resumed, begin, end),
		cmocka_unit_test_setup_teardown(long_values_of_errors_are_cut, begin, end),
		cmocka_unit_test_setup_teardown(a_catcher_that_raises_has_called_something, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

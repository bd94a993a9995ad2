/* SPDX-License-Identifier: MIT */
/* What C functions of a made-up stack work on, and who catches an error. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "luajit-layouts/field.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/made_up_memory.h"
#include "unwind/details/details.h"
#include "unwind/lua/lua_names.h"
#include "unwind/lua/luajit.h"

enum {
	FRAMES = 8,
	STACK = MADE_UP_AT,  /* of Lua: */
	FRAME_BYTES = 0x100, /* each frame's part of it */
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

/*---- Dictionaries and locks ----*/

static size_t add_get(void)
{
	size_t get = add(MERGED_NATIVE, FRAME_NATIVE, "ngx_http_lua_ffi_shdict_get");

	add(MERGED_C_FUNCTION, FRAME_BUILTIN, "ffi.meta.__call");
	lua_at(7);
	return get;
}

static void a_dictionary_is_that_of_the_argument(void **state)
{
	size_t get = add_get();

	(void)state;
	put(CDATA + (uint64_t)vm.layout.GChead_gct, GCT_CDATA, 1);
	put(CDATA + 16, ZONE_OF_DOGS, 8);
	set(get + 1, 1, TAG_OF_CDATA, CDATA);
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

#ifdef __x86_64__
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
		cmocka_unit_test_setup_teardown(a_lock_is_that_of_the_only_mutex_in_a_register, begin, end),
#endif
		cmocka_unit_test_setup_teardown(an_error_is_caught_by_the_next_pcall, begin, end),
		cmocka_unit_test_setup_teardown(what_nobody_is_seen_to_catch_is_unknown, begin, end),
		cmocka_unit_test_setup_teardown(c_code_may_catch, begin, end),
		cmocka_unit_test_setup_teardown(what_luajit_raises_is_an_error_of_the_function_below, begin,
						end),
		cmocka_unit_test_setup_teardown(a_catcher_that_raises_has_called_something, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

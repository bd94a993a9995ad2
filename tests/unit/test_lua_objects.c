/* SPDX-License-Identifier: MIT */
/* Functions and prototypes that a target makes, changes and frees between snapshots. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/made_up_memory.h"
#include "unwind/lua/lua_objects.h"
#include "unwind/lua/luajit.h"

enum {
	PROTO_HEADER = 0x60,
	BYTECODES = 8,
	PROTO_SIZE = PROTO_HEADER + BYTECODES * BYTECODE_SIZE + 16, /* with constants behind them */
	STRING_HEADER = 24,
	PROTO_AT = MADE_UP_AT + 0x1000, /* one in each 0x100 bytes */
	CHUNK_AT = MADE_UP_AT + 0x2000,
	FUNCTION_AT = MADE_UP_AT + 0x3000, /* one in each 0x80 bytes */
	UPVALUE_AT = MADE_UP_AT + 0x3800,
};

static struct layout layout;
static struct memory *memory;
static struct snapshot *snapshot;
static struct lua_objects *objects;

static uint64_t proto_at(size_t number)
{
	return PROTO_AT + number * 0x100;
}

static uint64_t pc_of(size_t number, size_t bytecode)
{
	return proto_at(number) + PROTO_HEADER + bytecode * BYTECODE_SIZE;
}

static uint64_t function_at(size_t number)
{
	return FUNCTION_AT + number * 0x80;
}

static void put_field(uint64_t object, int32_t field, uint64_t value, size_t size)
{
	put(object + (uint64_t)field, value, size);
}

static uint64_t put_chunk(size_t number, const char *name)
{
	const uint64_t at = CHUNK_AT + number * 0x100;

	put_field(at, layout.GChead_gct, GCT_STRING, 1);
	put_field(at, layout.GCstr_len, strlen(name), 4);
	put_bytes(at + STRING_HEADER, name, strlen(name));
	return at;
}

static uint64_t put_proto(size_t number, const char *chunkname)
{
	const uint64_t at = proto_at(number);

	put_field(at, layout.GChead_gct, GCT_PROTO, 1);
	put_field(at, layout.GCproto_sizept, PROTO_SIZE, 4);
	put_field(at, layout.GCproto_sizebc, BYTECODES, 4);
	put_field(at, layout.GCproto_firstline, 10 + number, 4);
	put_field(at, layout.GCproto_numline, 5, 4);
	put_field(at, layout.GCproto_framesize, 7, 1);
	put_field(at, layout.GCproto_numparams, 2, 1);
	put_field(at, layout.GCproto_flags, 1, 1);
	put_field(at, layout.GCproto_chunkname, put_chunk(number, chunkname), 8);
	for (size_t i = 0; i < BYTECODES; i++)
		put(pc_of(number, i), 0x100 * number + i, BYTECODE_SIZE);
	return at;
}

/* A function in Lua, of that prototype. */
static uint64_t put_function(size_t number, size_t proto)
{
	const uint64_t at = function_at(number);

	put_field(at, layout.GChead_gct, GCT_FUNCTION, 1);
	put_field(at, layout.GCfunc_ffid, FF_LUA, 1);
	put_field(at, layout.GCfunc_pc, pc_of(proto, 0), 8);
	return at;
}

static int begin(void **state)
{
	(void)state;
	layout = (struct layout){ .gc64 = true,
				  .GChead_nextgc = 0,
				  .GChead_marked = 8,
				  .GChead_gct = 9,
				  .GCproto_numparams = 10,
				  .GCproto_framesize = 11,
				  .GCproto_sizebc = 12,
				  .GCproto_k = 32,
				  .GCproto_sizept = 56,
				  .GCproto_flags = 61,
				  .GCproto_trace = 62,
				  .GCproto_chunkname = 64,
				  .GCproto_firstline = 72,
				  .GCproto_numline = 76,
				  .GCproto_size = PROTO_HEADER,
				  .GCstr_len = 20,
				  .GCstr_size = STRING_HEADER,
				  .GCfunc_ffid = 10,
				  .GCfunc_nupvalues = 11,
				  .GCfunc_pc = 32,
				  .GCfuncC_f = 40,
				  .GCfuncL_uvptr = 40,
				  .GCupval_v = 32,
				  .GCupval_size = 48 };
	memory = made_up_memory_begin();
	snapshot = snapshot_new(memory);
	objects = lua_objects_new();
	return snapshot && objects ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	lua_objects_free(objects);
	lua_objects_free(NULL);
	snapshot_free(snapshot);
	return 0;
}

static void begin_snapshot(bool learn)
{
	snapshot_clear(snapshot);
	lua_objects_begin(objects, learn);
}

static const struct function_object *capture(uint64_t function)
{
	lua_objects_capture(objects, snapshot, &layout, &function, 1);
	return lua_objects_function(objects, function);
}

/* The prototype in a snapshot of its own. */
static const struct proto *capture_proto(uint64_t proto)
{
	begin_snapshot(true);
	lua_objects_capture_protos(objects, snapshot, &layout, &proto, 1);
	return lua_objects_proto(objects, proto);
}

/*---- Functions ----*/

static void a_function_has_its_prototype(void **state)
{
	const struct function_object *function;
	uint32_t instruction;

	(void)state;
	put_proto(1, "@file.lua");
	put_function(0, 1);
	begin_snapshot(true);
	assert_null(lua_objects_function(objects, function_at(0)));
	function = capture(function_at(0));
	assert_non_null(function);
	assert_int_equal(function->address, function_at(0));
	assert_int_equal(function->ffid, FF_LUA);
	assert_int_equal(function->pc, pc_of(1, 0));
	assert_int_equal(function->f, 0);
	assert_ptr_equal(function->proto, lua_objects_proto(objects, proto_at(1)));
	assert_non_null(function->proto);
	assert_int_equal(function->proto->address, proto_at(1));
	assert_int_equal(function->proto->size, PROTO_SIZE);
	assert_int_equal(function->proto->sizebc, BYTECODES);
	assert_int_equal(function->proto->firstline, 11);
	assert_int_equal(function->proto->numline, 5);
	assert_int_equal(function->proto->framesize, 7);
	assert_int_equal(function->proto->numparams, 2);
	assert_int_equal(function->proto->flags, 1);
	assert_int_equal(function->proto->bc, pc_of(1, 0));
	assert_string_equal(function->proto->chunkname, "@file.lua");
	assert_true(proto_instruction(function->proto, pc_of(1, BYTECODES - 1), &instruction));
	assert_int_equal(instruction, 0x100 + BYTECODES - 1);
}

static void a_function_in_c_has_an_address(void **state)
{
	const struct function_object *function;

	(void)state;
	put_proto(1, "@file.lua");
	put_function(0, 1);
	put_field(function_at(0), layout.GCfunc_ffid, FF_C, 1);
	put_field(function_at(0), layout.GCfuncC_f, 0x7f0012345678, 8);
	begin_snapshot(true);
	function = capture(function_at(0));
	assert_non_null(function);
	assert_int_equal(function->ffid, FF_C);
	assert_int_equal(function->f, 0x7f0012345678);
	assert_null(function->proto);
	assert_null(lua_objects_proto(objects, proto_at(1)));
}

static void what_is_no_function_is_none(void **state)
{
	(void)state;
	put_proto(1, "@file.lua");
	put_function(0, 1);
	begin_snapshot(true);
	assert_null(capture(proto_at(1)));
	assert_null(capture(MADE_UP_AT + MADE_UP_BYTES));
	assert_non_null(capture(function_at(0)));
	/* At each snapshot anew. */
	put_field(function_at(0), layout.GChead_gct, GCT_TABLE, 1);
	begin_snapshot(true);
	assert_null(capture(function_at(0)));
	put_field(function_at(0), layout.GChead_gct, GCT_FUNCTION, 1);
	begin_snapshot(true);
	assert_null(lua_objects_function(objects, function_at(0)));
	assert_null(lua_objects_proto(objects, proto_at(1)));
	assert_non_null(capture(function_at(0)));
	assert_non_null(lua_objects_proto(objects, proto_at(1)));
}

static void many_functions_are_captured_at_once(void **state)
{
	enum { MANY = 1030 }; /* more than two reads get */
	uint64_t addresses[MANY];

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		put_proto(i, "@file.lua");
		put_function(i, i);
	}
	for (size_t i = 0; i < MANY; i++)
		addresses[i] = MADE_UP_AT + i * 8; /* nothing is there */
	addresses[0] = function_at(0);
	addresses[511] = function_at(1);
	addresses[512] = addresses[513] = function_at(2);
	addresses[MANY - 1] = function_at(3);
	begin_snapshot(true);
	lua_objects_capture(objects, snapshot, &layout, addresses, MANY);
	for (size_t i = 0; i < 4; i++) {
		const struct function_object *function = lua_objects_function(objects, function_at(i));

		assert_non_null(function);
		assert_non_null(function->proto);
		assert_int_equal(function->proto->address, proto_at(i));
	}
	assert_null(lua_objects_function(objects, MADE_UP_AT + 8));
}

/*---- Prototypes ----*/

static void a_known_prototype_is_the_same_until_it_changes(void **state)
{
	static const struct {
		int32_t *field;
		size_t size;
		bool is_another;
	} changes[] = {
		{ &layout.GChead_nextgc, 8, false },    { &layout.GChead_marked, 1, false },
		{ &layout.GCproto_flags, 1, false },    { &layout.GCproto_trace, 2, false },
		{ &layout.GCproto_firstline, 4, true }, { &layout.GCproto_numparams, 1, true },
	};
	uint64_t serial;

	(void)state;
	put_proto(0, "@file.lua");
	put_function(0, 0);
	assert_non_null(capture_proto(proto_at(0)));
	serial = lua_objects_proto(objects, proto_at(0))->serial;
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		put_field(proto_at(0), *changes[i].field, 0x55, changes[i].size);
		/* Alone, and with a function. */
		for (int with = 0; with < 2; with++) {
			begin_snapshot(true);
			if (with)
				assert_non_null(capture(function_at(0)));
			else
				assert_non_null(capture_proto(proto_at(0)));
			assert_int_equal(lua_objects_proto(objects, proto_at(0))->serial,
					 serial + (changes[i].is_another ? 1 : 0));
		}
		serial = lua_objects_proto(objects, proto_at(0))->serial;
	}
	/* Its list of the collector lies in front of the constants' address. */
	put_field(proto_at(0), layout.GCproto_k - 8, 0x55, 8);
	assert_int_equal(capture_proto(proto_at(0))->serial, serial);
	/* Another string has another length or hash. */
	put_field(CHUNK_AT, layout.GChead_marked, 3, 1);
	assert_int_equal(capture_proto(proto_at(0))->serial, serial);
	put_chunk(0, "=stdin");
	assert_int_equal(capture_proto(proto_at(0))->serial, serial + 1);
	assert_string_equal(lua_objects_proto(objects, proto_at(0))->chunkname, "=stdin");
}

static void without_learning_only_known_prototypes_are_seen(void **state)
{
	const struct function_object *function;

	(void)state;
	put_proto(0, "@file.lua");
	put_function(0, 0);
	begin_snapshot(false);
	function = capture(function_at(0));
	assert_non_null(function);
	assert_null(function->proto);
	begin_snapshot(true);
	assert_non_null(capture(function_at(0))->proto);
	begin_snapshot(false);
	assert_non_null(capture(function_at(0))->proto);
}

static void a_prototype_is_whole(void **state)
{
	const uint64_t last = MADE_UP_AT + MADE_UP_BYTES - PROTO_HEADER;

	(void)state;
	put_proto(0, "@file.lua");
	assert_non_null(capture_proto(proto_at(0)));
	put_proto(1, "@file.lua");
	put_field(CHUNK_AT + 0x100, layout.GChead_gct, GCT_TABLE, 1);
	assert_null(capture_proto(proto_at(1)));
	put_field(CHUNK_AT + 0x100, layout.GChead_gct, GCT_STRING, 1);
	put_field(proto_at(1), layout.GCproto_chunkname, MADE_UP_AT + MADE_UP_BYTES, 8);
	assert_null(capture_proto(proto_at(1)));
	/* An empty name is one. */
	put_proto(2, "");
	assert_non_null(capture_proto(proto_at(2)));
	assert_string_equal(lua_objects_proto(objects, proto_at(2))->chunkname, "");
	/* Its header is there, but not its bytecodes. */
	put_bytes(last, made_up_memory.bytes + (proto_at(0) - MADE_UP_AT), PROTO_HEADER);
	assert_null(capture_proto(last));
	assert_null(capture_proto(MADE_UP_AT + MADE_UP_BYTES));
}

static void a_header_has_sizes_that_can_be(void **state)
{
	enum { SIZE_MAX_OF_PROTO = 4 << 20 };
	static const struct {
		uint64_t sizept, sizebc;
		bool is_one;
	} sizes[] = {
		{ PROTO_SIZE, BYTECODES, true },
		{ PROTO_HEADER + BYTECODES * BYTECODE_SIZE, BYTECODES, true },
		{ PROTO_HEADER + BYTECODES * BYTECODE_SIZE - 1, BYTECODES, false },
		{ PROTO_SIZE, 0, false },
		{ SIZE_MAX_OF_PROTO, 1, true },
		{ SIZE_MAX_OF_PROTO + 1, 1, false },
		{ SIZE_MAX_OF_PROTO, UINT32_MAX, false },
	};
	const uint8_t *header = made_up_memory.bytes + (proto_at(0) - MADE_UP_AT);
	struct proto proto;

	(void)state;
	put_proto(0, "@file.lua");
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		put_field(proto_at(0), layout.GCproto_sizept, sizes[i].sizept, 4);
		put_field(proto_at(0), layout.GCproto_sizebc, sizes[i].sizebc, 4);
		assert_int_equal(proto_from_header(&layout, header, proto_at(0), &proto), sizes[i].is_one);
	}
	put_proto(0, "@file.lua");
	put_field(proto_at(0), layout.GChead_gct, GCT_PROTO + 1, 1);
	assert_false(proto_from_header(&layout, header, proto_at(0), &proto));
}

static void bytes_are_loaded_from_within_a_prototype(void **state)
{
	const struct proto *proto;
	uint8_t bytes[PROTO_SIZE + 1];
	uint32_t instruction = 77;

	(void)state;
	put_proto(3, "@file.lua");
	proto = capture_proto(proto_at(3));
	assert_non_null(proto);
	assert_true(proto_load(proto, proto_at(3), bytes, PROTO_SIZE));
	assert_memory_equal(bytes, made_up_memory.bytes + (proto_at(3) - MADE_UP_AT), PROTO_SIZE);
	assert_false(proto_load(proto, proto_at(3), bytes, PROTO_SIZE + 1));
	assert_true(proto_load(proto, proto_at(3) + PROTO_SIZE - 1, bytes, 1));
	assert_false(proto_load(proto, proto_at(3) + PROTO_SIZE - 1, bytes, 2));
	assert_true(proto_load(proto, proto_at(3) + PROTO_SIZE, bytes, 0));
	assert_false(proto_load(proto, proto_at(3) + PROTO_SIZE + 1, bytes, 0));
	assert_false(proto_load(proto, proto_at(3) - 1, bytes, 1));
	/* Not all of its bytes are instructions. */
	assert_true(proto_instruction(proto, pc_of(3, 0), &instruction));
	assert_int_equal(instruction, 0x300);
	assert_false(proto_instruction(proto, pc_of(3, BYTECODES), &instruction));
	assert_false(proto_instruction(proto, pc_of(3, 0) - BYTECODE_SIZE, &instruction));
	assert_false(proto_instruction(proto, pc_of(3, 1) + 1, &instruction));
	assert_int_equal(instruction, 0x300);
}

static void an_instruction_is_found_in_whatever_order_they_come(void **state)
{
	static const size_t order[] = { 5, 2, 9, 0, 7, 3, 8, 1, 6, 4 };
	enum { COUNT = sizeof(order) / sizeof(order[0]) };

	(void)state;
	begin_snapshot(true);
	assert_null(lua_objects_proto_of_pc(objects, pc_of(0, 0)));
	for (size_t seen = 1; seen <= COUNT; seen++) {
		const uint64_t address = put_proto(order[seen - 1], "@file.lua");

		snapshot_clear(snapshot);
		lua_objects_capture_protos(objects, snapshot, &layout, &address, 1);
		for (size_t i = 0; i < seen; i++) {
			const struct proto *proto = lua_objects_proto(objects, proto_at(order[i]));

			assert_non_null(proto);
			assert_ptr_equal(lua_objects_proto_of_pc(objects, pc_of(order[i], 0)), proto);
			assert_ptr_equal(lua_objects_proto_of_pc(objects, pc_of(order[i], BYTECODES - 1)),
					 proto);
			assert_null(lua_objects_proto_of_pc(objects, pc_of(order[i], BYTECODES)));
			assert_null(lua_objects_proto_of_pc(objects, pc_of(order[i], 0) - 1));
			assert_null(lua_objects_proto_of_pc(objects, proto_at(order[i])));
		}
	}
	assert_null(lua_objects_proto_of_pc(objects, UINT64_MAX));
	assert_null(lua_objects_proto_of_pc(objects, 0));
	/* Of two at one address in a snapshot, the later counts. */
	put_field(proto_at(5), layout.GCproto_firstline, 500, 4);
	snapshot_clear(snapshot);
	lua_objects_capture_protos(objects, snapshot, &layout, &(uint64_t){ proto_at(5) }, 1);
	assert_non_null(lua_objects_proto_of_pc(objects, pc_of(5, 3)));
	assert_int_equal(lua_objects_proto_of_pc(objects, pc_of(5, 3))->firstline, 500);
	/* Those that the next snapshot has not seen are none of it. */
	assert_non_null(capture_proto(proto_at(4)));
	assert_non_null(lua_objects_proto_of_pc(objects, pc_of(4, 0)));
	assert_null(lua_objects_proto_of_pc(objects, pc_of(5, 0)));
}

/*---- Upvalues ----*/

static void functions_in_upvalues_are_captured(void **state)
{
	const uint64_t caller = put_function(0, 0), callee = put_function(1, 1);
	const uint64_t values[] = { (uint64_t)TAG_FUNC << 47 | callee, (uint64_t)TAG_TAB << 47 | callee };
	enum { COUNT = 4, CELL = 0x60 };

	(void)state;
	put_proto(0, "@file.lua");
	put_proto(1, "@file.lua");
	/* A function, a table, nothing, and the function again. */
	put_field(caller, layout.GCfunc_nupvalues, COUNT, 1);
	for (size_t i = 0; i < COUNT; i++) {
		const uint64_t upvalue = UPVALUE_AT + i * CELL, cell = upvalue + 48;

		put_field(caller, layout.GCfuncL_uvptr + (int32_t)i * 8, i == 2 ? 0 : upvalue, 8);
		put_field(upvalue, layout.GCupval_v, cell, 8);
		put(cell, values[i == 1], 8);
	}
	begin_snapshot(true);
	assert_non_null(capture(caller));
	assert_null(lua_objects_upvalue(objects, caller, 0));
	lua_objects_capture_upvalues(objects, snapshot, &layout, &caller, 1);
	assert_non_null(lua_objects_upvalue(objects, caller, 0));
	assert_int_equal(lua_objects_upvalue(objects, caller, 0)->address, callee);
	assert_non_null(lua_objects_upvalue(objects, caller, 0)->proto);
	assert_null(lua_objects_upvalue(objects, caller, 1));
	assert_null(lua_objects_upvalue(objects, caller, 2));
	assert_ptr_equal(lua_objects_upvalue(objects, caller, 3), lua_objects_upvalue(objects, caller, 0));
	assert_null(lua_objects_upvalue(objects, caller, COUNT));
	assert_null(lua_objects_upvalue(objects, callee, 0));
	begin_snapshot(true);
	assert_null(lua_objects_upvalue(objects, caller, 0));
	/* Functions that were not captured, and functions in C, have none. */
	lua_objects_capture_upvalues(objects, snapshot, &layout, &caller, 1);
	assert_null(lua_objects_upvalue(objects, caller, 0));
	put_field(caller, layout.GCfunc_ffid, FF_C, 1);
	assert_non_null(capture(caller));
	lua_objects_capture_upvalues(objects, snapshot, &layout, &caller, 1);
	assert_null(lua_objects_upvalue(objects, caller, 0));
}

#define OF_OBJECTS(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		OF_OBJECTS(a_function_has_its_prototype),
		OF_OBJECTS(a_function_in_c_has_an_address),
		OF_OBJECTS(what_is_no_function_is_none),
		OF_OBJECTS(many_functions_are_captured_at_once),
		OF_OBJECTS(a_known_prototype_is_the_same_until_it_changes),
		OF_OBJECTS(without_learning_only_known_prototypes_are_seen),
		OF_OBJECTS(a_prototype_is_whole),
		OF_OBJECTS(a_header_has_sizes_that_can_be),
		OF_OBJECTS(bytes_are_loaded_from_within_a_prototype),
		OF_OBJECTS(an_instruction_is_found_in_whatever_order_they_come),
		OF_OBJECTS(functions_in_upvalues_are_captured),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

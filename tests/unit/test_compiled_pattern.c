/* SPDX-License-Identifier: MIT */
/* Which regular expression a made-up trace passes to lua-nginx-module. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "luajit-layouts/field.h"
#include "tests/unit/made_up_memory.h"
#include "tests/unit/made_up_trace.h"
#include "unwind/details/compiled_pattern.h"
#include "unwind/trace/trace_block.h"
#include "unwind/lua/global_state.h"

enum {
	TRACE = MADE_UP_AT,
	NINS_AT = 8,
	NK_AT = 12,
	IR_AT = 16,
	SNAP_AT = 24,
	NSNAP_AT = 40,
	SNAPS = 0x80,
	SNAP_SIZE = 12,
	IR = 0x100,
	CONSTANTS = 32, /* places below the first instruction */
	INSTRUCTIONS_MAX = 64,
	TRACE_BYTES = IR + (CONSTANTS + INSTRUCTIONS_MAX) * TRACE_IR_SIZE,
	STRINGS = MADE_UP_AT + 0x1000,
	STRING_BYTES = 0x100,
	MCODE = 0x7000,
	CALL_AT = MCODE + 40, /* the machine code that runs */
};

static struct vm_code vm = { .layout = {
				     .gc64 = true,
				     .bytecode = BYTECODE_V21,
				     .IR_KGC = 24,
				     .GChead_gct = 9,
				     .GCstr_len = 20,
				     .GCstr_size = 24,
				     .GCtrace_nins = NINS_AT,
				     .GCtrace_nk = NK_AT,
				     .GCtrace_ir = IR_AT,
				     .GCtrace_snap = SNAP_AT,
				     .GCtrace_nsnap = NSNAP_AT,
				     .SnapShot_ref = 4,
				     .SnapShot_mcofs = 6,
				     .SnapShot_count = 11,
				     .SnapShot_size = SNAP_SIZE,
			     } };
static struct global_state global = { .vm = &vm };
static struct trace trace;
static struct merged_frame frame;
static uint32_t next, constants, strings;

static uint64_t place_of(uint32_t ref)
{
	return TRACE + IR + (ref - (TRACE_REF_BIAS - CONSTANTS)) * TRACE_IR_SIZE;
}

static uint32_t set_ir(uint32_t ref, enum ir_op op, uint8_t type, uint32_t op1, uint32_t op2)
{
	uint8_t number = ir_number(&vm.layout, op);

	put(place_of(ref), op1, 2);
	put(place_of(ref) + 2, op2, 2);
	put(place_of(ref) + 4, type, 1);
	put(place_of(ref) + 5, number, 1);
	return ref;
}

static uint32_t add(enum ir_op op, uint32_t op1, uint32_t op2)
{
	uint32_t ref = set_ir(next++, op, IRT_NIL, op1, op2);

	put(TRACE + NINS_AT, next, 4);
	return ref;
}

/* A constant slot with a constant string. */
static uint32_t key(const char *bytes, size_t length)
{
	uint64_t address = STRINGS + strings++ * STRING_BYTES;
	uint32_t object = constants -= 2;

	put(address + (uint64_t)vm.layout.GChead_gct, GCT_STRING, 1);
	put(address + (uint64_t)vm.layout.GCstr_len, length, 4);
	put_bytes(address + (uint64_t)vm.layout.GCstr_size, bytes, length < 0xe0 ? length : 0xe0);
	set_ir(object, IR_KGC, IRT_STR, 0, 0);
	put(place_of(object + 1), address, 8);
	constants--;
	return set_ir(constants, IR_KSLOT, IRT_NIL, object, 0);
}

static uint64_t bytes_of_string(unsigned number)
{
	return STRINGS + number * STRING_BYTES + (uint64_t)vm.layout.GCstr_size;
}

/* What the field of a table holds. */
static uint32_t field(uint32_t table, uint32_t slot)
{
	return add(IR_HLOAD, add(IR_HREFK, add(IR_FLOAD, table, 0), slot), 0);
}

/* A compiled expression of the cache in a table's field. */
static uint32_t expression(uint32_t cache_key, uint32_t pattern_key)
{
	return add(IR_FLOAD, field(field(add(IR_SLOAD, 1, 0), cache_key), pattern_key), 0);
}

static uint32_t cached(const char *cache, size_t cache_length, const char *pattern, size_t pattern_length)
{
	uint32_t cache_key = key(cache, cache_length), pattern_key = key(pattern, pattern_length);

	return expression(cache_key, pattern_key);
}

static void call(uint32_t first, unsigned count)
{
	for (unsigned i = 1; i < count; i++)
		first = add(IR_CARG, first, TRACE_REF_BASE);
	add(IR_CALLXS, first, 0);
}

static void add_snapshot(unsigned number, uint32_t ref, uint16_t mcode_offset)
{
	put(TRACE + SNAPS + number * SNAP_SIZE + 4, ref, 2);
	put(TRACE + SNAPS + number * SNAP_SIZE + 6, mcode_offset, 2);
	put(TRACE + NSNAP_AT, number + 1, 2);
}

static int begin(void **state)
{
	(void)state;
	made_up_memory_begin();
	trace = (struct trace){
		.address = TRACE, .mcode = MCODE, .bytes = made_up_memory.bytes, .size = TRACE_BYTES
	};
	next = TRACE_REF_BASE + 1;
	constants = TRACE_REF_BIAS;
	strings = 0;
	put(TRACE + NINS_AT, next, 4);
	put(TRACE + NK_AT, TRACE_REF_BIAS - CONSTANTS, 4);
	put(TRACE + IR_AT, TRACE + IR - (uint64_t)(TRACE_REF_BIAS - CONSTANTS) * TRACE_IR_SIZE, 8);
	put(TRACE + SNAP_AT, TRACE + SNAPS, 8);
	add_snapshot(0, TRACE_REF_BASE, 0);
	frame = (struct merged_frame){ .global = &global, .trace = &trace, .trace_pc = CALL_AT };
	return 0;
}

static bool find(uint64_t *ret_address, uint32_t *ret_length)
{
	return compiled_pattern_find(&made_up_memory.memory, &frame, ret_address, ret_length);
}

static void check_none(void)
{
	uint64_t address = 1;
	uint32_t length = 2;

	assert_false(find(&address, &length));
	assert_int_equal(address, 1);
	assert_int_equal(length, 2);
}

/* That string, up to its last zero byte. */
static void check(unsigned string, uint32_t wanted_length)
{
	uint64_t address = 0;
	uint32_t length = 0;

	assert_true(find(&address, &length));
	assert_int_equal(address, bytes_of_string(string));
	assert_int_equal(length, wanted_length);
}

static void a_pattern_is_the_key_of_the_cache(void **state)
{
	(void)state;
	call(cached("hasht", 5, "^a+$\0jo", 7), 5);
	check(1, 4);
	frame.trace_pc = 0;
	check_none();
	frame.trace_pc = CALL_AT;
	frame.trace = NULL;
	check_none();
}

static void a_pattern_may_have_zero_bytes_or_be_empty(void **state)
{
	(void)state;
	call(cached("hasht", 5, "a\0b\0jo", 6), 5);
	check(1, 3);
	begin(NULL);
	call(cached("hasht", 5, "\0", 1), 5);
	check(1, 0);
	/* Without options it is no key of that cache. */
	begin(NULL);
	call(cached("hasht", 5, "^a+$", 4), 5);
	check_none();
}

static void long_keys_are_not_read(void **state)
{
	(void)state;
	call(cached("hasht", 5, "a\0", 2), 5);
	put(STRINGS + STRING_BYTES + (uint64_t)vm.layout.GCstr_len, 4096, 4);
	check(1, 4095); /* what follows is zero bytes */
	put(STRINGS + STRING_BYTES + (uint64_t)vm.layout.GCstr_len, 4097, 4);
	check_none();
}

static void other_caches_are_none(void **state)
{
	(void)state;
	call(cached("hashx", 5, "a\0", 2), 5);
	check_none();
	begin(NULL);
	call(cached("hasht2", 6, "a\0", 2), 5);
	check_none();
	begin(NULL);
	call(add(IR_SLOAD, 1, 0), 5);
	check_none();
	/* A key that is no string. */
	begin(NULL);
	call(cached("hasht", 5, "a\0", 2), 5);
	put(STRINGS + STRING_BYTES + (uint64_t)vm.layout.GChead_gct, GCT_STRING + 1, 1);
	check_none();
}

static void other_calls_are_none(void **state)
{
	uint32_t hasht = key("hasht", 5), pattern = key("a\0", 2);

	(void)state;
	call(expression(hasht, pattern), 4);
	check_none();
	call(expression(hasht, pattern), 6);
	check_none();
	call(expression(hasht, pattern), 5);
	check(1, 1);
}

static void calls_of_several_patterns_are_not_told_apart(void **state)
{
	uint32_t hasht = key("hasht", 5), one = key("a\0", 2), two = key("b\0", 2);

	(void)state;
	call(expression(hasht, one), 5);
	call(expression(hasht, one), 5);
	check(1, 1);
	call(expression(hasht, two), 5);
	check_none();
}

static void only_calls_of_the_snapshot_in_force_count(void **state)
{
	uint32_t hasht = key("hasht", 5), one = key("a\0", 2), two = key("b\0", 2), three = key("c\0", 2);
	uint32_t second, third;

	(void)state;
	call(expression(hasht, one), 5);
	second = next;
	call(expression(hasht, two), 5);
	third = next;
	call(expression(hasht, three), 5);
	add_snapshot(1, second, 20);
	add_snapshot(2, third, 41);
	check(2, 1);
	frame.trace_pc = MCODE + 19;
	check(1, 1);
	frame.trace_pc = MCODE + 41;
	check(3, 1);
	frame.trace_pc = MCODE - 1;
	check_none();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_pattern_is_the_key_of_the_cache, begin),
		cmocka_unit_test_setup(a_pattern_may_have_zero_bytes_or_be_empty, begin),
		cmocka_unit_test_setup(long_keys_are_not_read, begin),
		cmocka_unit_test_setup(other_caches_are_none, begin),
		cmocka_unit_test_setup(other_calls_are_none, begin),
		cmocka_unit_test_setup(calls_of_several_patterns_are_not_told_apart, begin),
		cmocka_unit_test_setup(only_calls_of_the_snapshot_in_force_count, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* Which traces a process has, as LuaJIT makes, replaces and forgets them: made-up ones, GC64. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/instead_of.h"
#include "tests/unit/made_up_memory.h"
#include "unwind/jit/exit_stubs.h"
#include "unwind/jit/traces.h"
#include "unwind/lua/luajit.h"
#include "unwind/trace/trace_block.h"

INSTEAD_OF(malloc);
INSTEAD_OF(calloc);
INSTEAD_OF(realloc);

#include "tests/unit/failing_allocation.h"

enum {
	J = MADE_UP_AT,
	STUBS_AT = 0x40, /* in J */
	LIST = MADE_UP_AT + 0x100,
	LIST_SIZE = 16,
	BLOCKS = MADE_UP_AT + 0x1000,
	BLOCK_BYTES = 0x200,
	CODES = MADE_UP_AT + 0x3000,
	CODE_BYTES = 0x40,
	LONG_LIST = 0x60000000,
	NOWHERE = 0x70000000,

	/* A block: header, two constants, BASE and two instructions, snapshots, their map. */
	HEADER = 128,
	CONSTANTS = 2,
	INSTRUCTIONS = 3,
	IR = HEADER,
	SNAPSHOTS = IR + (CONSTANTS + INSTRUCTIONS) * TRACE_IR_SIZE,
	SNAPSHOT_BYTES = 12,
	SNAPSHOT_COUNT = 2,
	MAP = SNAPSHOTS + SNAPSHOT_COUNT * SNAPSHOT_BYTES,
	MAP_ENTRIES = 5,
	BLOCK_SIZE = MAP + MAP_ENTRIES * TRACE_SNAP_SIZE,

	OPCODE = 5, /* its place in an instruction */
	STUB_GROUP = 0x50000,
	STUBS_OF_A_GROUP = 32,
};

static const struct layout layout = {
	.gc64 = true,
	.has_jit = true,
	.GChead_gct = 9,
	.GCtrace_nsnap = 10,
	.GCtrace_nins = 12,
	.GCtrace_ir = 16,
	.GCtrace_nk = 24,
	.GCtrace_nsnapmap = 28,
	.GCtrace_snap = 32,
	.GCtrace_snapmap = 40,
	.GCtrace_startpt = 48,
	.GCtrace_startpc = 56,
	.GCtrace_startins = 64,
	.GCtrace_szmcode = 68,
	.GCtrace_mcode = 72,
	.GCtrace_mcloop = 80,
	.GCtrace_spadjust = 86,
	.GCtrace_traceno = 88,
	.GCtrace_link = 90,
	.GCtrace_root = 92,
	.GCtrace_linktype = 94,
	.GCtrace_size = HEADER,
	.SnapShot_mapofs = 0,
	.SnapShot_ref = 4,
	.SnapShot_mcofs = 6,
	.SnapShot_nslots = 8,
	.SnapShot_nent = 10,
	.SnapShot_count = 11,
	.SnapShot_size = SNAPSHOT_BYTES,
	.J_exitstubgroup = STUBS_AT,
	.IR_KGC = 24,
};

static uint64_t block_of(uint32_t number)
{
	return BLOCKS + number * BLOCK_BYTES;
}

static uint64_t code_of(uint32_t number)
{
	return CODES + number * CODE_BYTES;
}

static void set(uint32_t number, int32_t field, uint64_t value, size_t size)
{
	put(block_of(number) + (uint64_t)field, value, size);
}

static void list(uint32_t number, uint64_t block)
{
	put(LIST + number * sizeof(uint64_t), block, sizeof(uint64_t));
}

/* A root trace that makes sense, with code of its own, and 64 bytes of it. */
static void put_trace(uint32_t number)
{
	uint64_t block = block_of(number);

	list(number, block);
	set(number, layout.GChead_gct, GCT_TRACE, 1);
	set(number, layout.GCtrace_traceno, number, 2);
	set(number, layout.GCtrace_nsnap, SNAPSHOT_COUNT, 2);
	set(number, layout.GCtrace_nins, TRACE_REF_BASE + INSTRUCTIONS, 4);
	set(number, layout.GCtrace_nk, TRACE_REF_BASE - CONSTANTS, 4);
	set(number, layout.GCtrace_ir, block + IR - (TRACE_REF_BASE - CONSTANTS) * TRACE_IR_SIZE, 8);
	set(number, layout.GCtrace_snap, block + SNAPSHOTS, 8);
	set(number, layout.GCtrace_snapmap, block + MAP, 8);
	set(number, layout.GCtrace_nsnapmap, MAP_ENTRIES, 4);
	set(number, layout.GCtrace_startpt, 0x5000 + number, 8);
	set(number, layout.GCtrace_startpc, 0x6000 + number, 8);
	set(number, layout.GCtrace_startins, 0x7000 + number, 4);
	set(number, layout.GCtrace_szmcode, CODE_BYTES, 4);
	set(number, layout.GCtrace_mcode, code_of(number), 8);
	set(number, layout.GCtrace_spadjust, 16 * number, 2);
	for (unsigned i = 0; i < CODE_BYTES; i++)
		put(code_of(number) + i, number + i, 1);
}

struct reading {
	struct traces *traces;
	struct snapshot *snapshot;
	struct traces_wanted wanted;
};

static void begin(struct reading *reading)
{
	*reading = (struct reading){
		.traces = traces_new(),
		.snapshot = snapshot_new(made_up_memory_begin()),
		.wanted = { .J = J, .J_trace = LIST, .sizetrace = LIST_SIZE },
	};
	assert_true(reading->traces && reading->snapshot);
}

static void end(struct reading *reading)
{
	traces_free(reading->traces);
	snapshot_free(reading->snapshot);
}

/* The target is held again, with this trace running. */
static void look(struct reading *reading, uint32_t executing)
{
	snapshot_clear(reading->snapshot);
	reading->wanted.executing[1] = executing;
	traces_capture(reading->traces, reading->snapshot, &layout, &reading->wanted);
}

static const struct trace *capture_pc(struct reading *reading, uint64_t pc)
{
	return traces_capture_pc(reading->traces, reading->snapshot, &layout, pc);
}

static void traces_are_found_by_number_and_by_code(void **state)
{
	struct reading reading;
	const struct trace *trace;

	(void)state;
	begin(&reading);
	/* Their code is in another order than their numbers. */
	put_trace(1);
	put_trace(2);
	put_trace(7);
	set(1, layout.GCtrace_mcode, code_of(9), 8);
	set(7, layout.GCtrace_root, 2, 2);
	look(&reading, 0);
	assert_int_equal(traces_find(reading.traces, code_of(9))->number, 1);
	for (uint32_t number = 1; number < LIST_SIZE + 2; number++) {
		trace = traces_by_number(reading.traces, number);
		assert_int_equal(trace != NULL, number == 1 || number == 2 || number == 7);
	}
	assert_null(traces_by_number(reading.traces, 0));
	trace = traces_by_number(reading.traces, 7);
	assert_int_equal(trace->number, 7);
	assert_int_equal(trace->address, block_of(7));
	assert_int_equal(trace->mcode, code_of(7));
	assert_int_equal(trace->szmcode, CODE_BYTES);
	assert_int_equal(trace->spadjust, 16 * 7);
	assert_int_equal(trace->root, 2);
	assert_int_equal(trace->startpt, 0x5007);
	assert_int_equal(trace->startpc, 0x6007);
	assert_int_equal(trace->startins, 0x7007);
	assert_int_equal(trace->size, BLOCK_SIZE);
	assert_memory_equal(trace->bytes, made_up_memory.bytes + (block_of(7) - MADE_UP_AT), BLOCK_SIZE);
	assert_ptr_equal(traces_find(reading.traces, code_of(7)), trace);
	assert_ptr_equal(traces_find(reading.traces, code_of(7) + CODE_BYTES - 1), trace);
	assert_null(traces_find(reading.traces, code_of(7) + CODE_BYTES));
	assert_null(traces_find(reading.traces, code_of(7) - 1));
	assert_null(traces_find(reading.traces, 0));
	assert_null(traces_find(reading.traces, UINT64_MAX));
	end(&reading);
}

/* LuaJIT sets some fields last, and may have put something else at the address. */
static void what_is_no_finished_trace_is_left_out(void **state)
{
	static const struct {
		int32_t field;
		uint64_t value;
		size_t size;
	} unfinished[] = {
		{ offsetof(struct layout, GCtrace_mcode), 0, 8 },
		{ offsetof(struct layout, GCtrace_szmcode), 0, 4 },
		{ offsetof(struct layout, GCtrace_traceno), 2, 2 },
		{ offsetof(struct layout, GChead_gct), GCT_TABLE, 1 },
	};
	struct reading reading;

	(void)state;
	for (size_t i = 0; i < sizeof(unfinished) / sizeof(unfinished[0]); i++) {
		int32_t field;

		begin(&reading);
		put_trace(1);
		put_trace(3);
		memcpy(&field, (const char *)&layout + unfinished[i].field, sizeof(field));
		set(1, field, unfinished[i].value, unfinished[i].size);
		list(2, NOWHERE);
		look(&reading, 0);
		assert_null(traces_by_number(reading.traces, 1));
		assert_null(traces_by_number(reading.traces, 2));
		assert_non_null(traces_by_number(reading.traces, 3));
		/* It is read when it is finished. */
		put_trace(1);
		look(&reading, 0);
		assert_non_null(traces_by_number(reading.traces, 1));
		end(&reading);
	}
}

static void a_known_trace_counts_only_when_it_was_verified(void **state)
{
	struct reading reading;

	(void)state;
	begin(&reading);
	put_trace(1);
	put_trace(2);
	put_trace(3);
	look(&reading, 0);
	assert_non_null(traces_by_number(reading.traces, 1));
	look(&reading, 2);
	assert_null(traces_by_number(reading.traces, 1));
	assert_null(traces_find(reading.traces, code_of(1)));
	assert_non_null(traces_by_number(reading.traces, 2));
	assert_non_null(traces_find(reading.traces, code_of(2)));
	assert_int_equal(capture_pc(&reading, code_of(3) + 1)->number, 3);
	assert_null(traces_by_number(reading.traces, 1));
	traces_capture_again(reading.traces, reading.snapshot, &layout);
	for (uint32_t number = 1; number <= 3; number++)
		assert_non_null(traces_by_number(reading.traces, number));
	/* Of several that execute, each. */
	for (uint32_t i = 0; i < TRACES_EXECUTING_MAX; i++)
		reading.wanted.executing[i] = i + 1;
	look(&reading, 2);
	for (uint32_t number = 1; number <= 3; number++)
		assert_int_equal(traces_by_number(reading.traces, number) != NULL,
				 number <= TRACES_EXECUTING_MAX);
	memset(reading.wanted.executing, 0, sizeof(reading.wanted.executing));
	/* A number that there is none of. */
	look(&reading, LIST_SIZE);
	assert_null(traces_by_number(reading.traces, LIST_SIZE));
	look(&reading, UINT32_MAX);
	look(&reading, LIST_SIZE - 1);
	assert_null(traces_by_number(reading.traces, LIST_SIZE - 1));
	end(&reading);
}

static void another_trace_in_the_same_place_is_read_anew(void **state)
{
	struct reading reading;

	(void)state;
	begin(&reading);
	put_trace(4);
	look(&reading, 0);
	assert_non_null(capture_pc(&reading, code_of(4)));
	assert_non_null(traces_code(reading.traces, traces_by_number(reading.traces, 4)));
	/* With the same header, it is the same one, and its code is kept. */
	look(&reading, 4);
	assert_non_null(traces_code(reading.traces, traces_by_number(reading.traces, 4)));
	set(4, layout.GCtrace_startpc, 0x6fff, 8);
	look(&reading, 4);
	assert_int_equal(traces_by_number(reading.traces, 4)->startpc, 0x6fff);
	assert_null(traces_code(reading.traces, traces_by_number(reading.traces, 4)));
	/* Its code lies elsewhere. */
	set(4, layout.GCtrace_mcode, code_of(6), 8);
	look(&reading, 0);
	assert_null(capture_pc(&reading, code_of(6)));
	traces_capture_again(reading.traces, reading.snapshot, &layout);
	assert_int_equal(capture_pc(&reading, code_of(6))->number, 4);
	assert_null(capture_pc(&reading, code_of(4)));
	/* It is back there: where the old one was, the new one is not. */
	set(4, layout.GCtrace_mcode, code_of(4), 8);
	look(&reading, 0);
	assert_null(capture_pc(&reading, code_of(6)));
	assert_int_equal(capture_pc(&reading, code_of(4))->number, 4);
	/* The same with another block. */
	put_trace(5);
	set(5, layout.GCtrace_traceno, 4, 2);
	list(5, 0);
	list(4, block_of(5));
	look(&reading, 0);
	assert_int_equal(traces_by_number(reading.traces, 4)->address, block_of(5));
	end(&reading);
}

static void traces_that_are_gone_are_forgotten(void **state)
{
	struct reading reading;

	(void)state;
	begin(&reading);
	put_trace(1);
	put_trace(9);
	look(&reading, 0);
	list(1, 0);
	look(&reading, 1);
	assert_null(traces_by_number(reading.traces, 1));
	assert_null(capture_pc(&reading, code_of(1)));
	assert_int_equal(capture_pc(&reading, code_of(9))->number, 9);
	/* The list is shorter, then as long as it was. */
	reading.wanted.sizetrace = 9;
	look(&reading, 9);
	assert_null(traces_by_number(reading.traces, 9));
	assert_null(capture_pc(&reading, code_of(9)));
	reading.wanted.sizetrace = 10;
	look(&reading, 0);
	assert_non_null(traces_by_number(reading.traces, 9));
	end(&reading);
}

static void a_list_that_makes_no_sense_verifies_nothing(void **state)
{
	static const uint32_t sizes[] = { 0, TRACES_MAX + 1, UINT32_MAX, LIST_SIZE };
	struct reading reading;

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		begin(&reading);
		put_trace(1);
		look(&reading, 0);
		assert_non_null(traces_by_number(reading.traces, 1));
		reading.wanted.sizetrace = sizes[i];
		if (sizes[i] == LIST_SIZE)
			reading.wanted.J_trace = NOWHERE;
		look(&reading, 1);
		assert_null(traces_by_number(reading.traces, 1));
		assert_null(traces_find(reading.traces, code_of(1)));
		/* The next look is as the first. */
		reading.wanted.sizetrace = LIST_SIZE;
		reading.wanted.J_trace = LIST;
		look(&reading, 1);
		assert_non_null(traces_find(reading.traces, code_of(1)));
		end(&reading);
	}
}

/* A list of zeros, whose last trace is the first block. */
static void read_long_list(struct memory *memory, struct memory_range *ranges, size_t count)
{
	const uint64_t last = block_of(1);

	for (size_t i = 0; i < count; i++) {
		if (ranges[i].address != LONG_LIST) {
			made_up_read(memory, &ranges[i], 1);
			continue;
		}
		memset(ranges[i].copy, 0, ranges[i].length);
		memcpy((uint8_t *)ranges[i].copy + ranges[i].length - sizeof(last), &last, sizeof(last));
		ranges[i].status = MEMORY_OK;
	}
}

/* As long as numbers of 16 bits allow. */
static void the_longest_list_is_read_to_its_end(void **state)
{
	struct reading reading;

	(void)state;
	for (uint32_t size = TRACES_MAX - 1; size <= TRACES_MAX + 1; size++) {
		begin(&reading);
		made_up_memory.memory.read_ranges = read_long_list;
		put_trace(1);
		set(1, layout.GCtrace_traceno, size - 1, 2);
		reading.wanted.J_trace = LONG_LIST;
		reading.wanted.sizetrace = size;
		look(&reading, 0);
		assert_int_equal(traces_by_number(reading.traces, size - 1) != NULL, size <= TRACES_MAX);
		assert_int_equal(traces_find(reading.traces, code_of(1)) != NULL, size <= TRACES_MAX);
		end(&reading);
	}
}

static void code_is_copied_once_it_is_seen_running(void **state)
{
	uint8_t code[CODE_BYTES];
	struct reading reading;
	const struct trace *trace;

	(void)state;
	begin(&reading);
	put_trace(1);
	put_trace(2);
	put_trace(3);
	set(2, layout.GCtrace_szmcode, TRACE_CODE_BYTES_MAX + 1, 4);
	set(2, layout.GCtrace_mcode, code_of(3) + CODE_BYTES, 8);
	set(3, layout.GCtrace_mcode, NOWHERE, 8);
	look(&reading, 0);
	trace = traces_by_number(reading.traces, 1);
	assert_null(traces_code(reading.traces, trace));
	memcpy(code, made_up_memory.bytes + (code_of(1) - MADE_UP_AT), CODE_BYTES);
	assert_ptr_equal(capture_pc(&reading, code_of(1) + CODE_BYTES - 1), trace);
	assert_memory_equal(traces_code(reading.traces, trace), code, CODE_BYTES);
	/* LuaJIT patches its exits later. */
	put(code_of(1), 0xee, 1);
	look(&reading, 0);
	assert_ptr_equal(capture_pc(&reading, code_of(1)), trace);
	assert_memory_equal(traces_code(reading.traces, trace), code, CODE_BYTES);
	/* Too long, and unreadable. */
	trace = capture_pc(&reading, code_of(3) + CODE_BYTES);
	assert_int_equal(trace->number, 2);
	assert_null(traces_code(reading.traces, trace));
	trace = capture_pc(&reading, NOWHERE);
	assert_int_equal(trace->number, 3);
	assert_null(traces_code(reading.traces, trace));
	end(&reading);
}

static void a_trace_leads_to_its_link(void **state)
{
	struct reading reading;
	const struct trace *trace;

	(void)state;
	begin(&reading);
	for (uint32_t number = 1; number <= 4; number++)
		put_trace(number);
	set(1, layout.GCtrace_link, 3, 2);
	set(3, layout.GCtrace_link, 5, 2);
	set(4, layout.GCtrace_link, LIST_SIZE, 2);
	look(&reading, 0);
	look(&reading, 1);
	trace = traces_by_number(reading.traces, 1);
	assert_null(traces_by_number(reading.traces, 3));
	trace = traces_capture_link(reading.traces, reading.snapshot, &layout, trace);
	assert_int_equal(trace->number, 3);
	assert_non_null(traces_code(reading.traces, trace));
	assert_null(traces_capture_link(reading.traces, reading.snapshot, &layout, trace));
	for (uint32_t number = 2; number <= 4; number += 2) {
		trace = capture_pc(&reading, code_of(number));
		assert_non_null(trace);
		assert_null(traces_capture_link(reading.traces, reading.snapshot, &layout, trace));
	}
	end(&reading);
}

/* BASE of a side trace has the exit that it starts at. */
static void put_parent(uint32_t number, uint32_t parent, uint32_t exitno)
{
	const uint8_t base = 13; /* IR_BASE in every release */
	uint64_t at = block_of(number) + IR + CONSTANTS * TRACE_IR_SIZE;

	set(number, layout.GCtrace_root, parent, 2);
	put(at, parent, 2);
	put(at + 2, exitno, 2);
	put(at + OPCODE, base, 1);
}

static void an_exit_leads_to_its_stub_or_its_side_trace(void **state)
{
	struct reading reading;
	const struct trace *trace;

	(void)state;
	if (trace_code_has_stubs())
		skip();
	begin(&reading);
	put_trace(1);
	put_trace(2);
	put_trace(3);
	put_parent(3, 2, 1);
	put(J + STUBS_AT + sizeof(uint64_t), STUB_GROUP, sizeof(uint64_t));
	look(&reading, 0);
	trace = traces_by_number(reading.traces, 2);
	assert_int_equal(traces_exit_number(reading.traces, trace, &layout, code_of(3)), 1);
	assert_int_equal(traces_exit_number(reading.traces, trace, &layout, code_of(3) + 4), -1);
	/* It starts at an exit of another trace; a root trace starts at none. */
	assert_int_equal(
		traces_exit_number(reading.traces, traces_by_number(reading.traces, 1), &layout, code_of(3)),
		-1);
	assert_int_equal(traces_exit_number(reading.traces, trace, &layout, code_of(1)), -1);
	assert_int_equal(traces_exit_number(reading.traces, trace, &layout, STUB_GROUP + 8),
			 STUBS_OF_A_GROUP + 2);
	assert_int_equal(traces_exit_number(reading.traces, trace, &layout, STUB_GROUP - 4), -1);
	assert_true(traces_is_exit(reading.traces, &layout, STUB_GROUP));
	assert_false(traces_is_exit(reading.traces, &layout, STUB_GROUP - 1));
	assert_false(traces_is_exit(reading.traces, &layout, code_of(1)));
	/* Stubs of groups are no trace's own. */
	assert_null(traces_capture_exit(reading.traces, reading.snapshot, &layout, STUB_GROUP));
	assert_null(traces_capture_exit(reading.traces, reading.snapshot, &layout, code_of(2) + CODE_BYTES));
	end(&reading);
}

static void a_return_is_known_by_the_bytecode_that_its_trace_replaced(void **state)
{
	const uint64_t end_of_startins = (uint64_t)layout.GCtrace_startins + BYTECODE_SIZE;
	struct reading reading;

	(void)state;
	begin(&reading);
	assert_null(traces_find_startins(reading.traces, &layout, block_of(1) + end_of_startins));
	put_trace(1);
	put_trace(2);
	look(&reading, 0);
	for (uint32_t number = 1; number <= 2; number++)
		assert_int_equal(
			traces_find_startins(reading.traces, &layout, block_of(number) + end_of_startins)
				->number,
			number);
	assert_null(traces_find_startins(reading.traces, &layout, block_of(3) + end_of_startins));
	assert_null(traces_find_startins(reading.traces, &layout, block_of(1) + end_of_startins - 1));
	end(&reading);
}

static size_t size_with(int32_t field, uint64_t value, size_t size)
{
	made_up_memory_begin();
	put_trace(1);
	if (size)
		set(1, field, value, size);
	return trace_block_size(&layout, block_of(1), made_up_memory.bytes + (block_of(1) - MADE_UP_AT));
}

/* IR, snapshots and map follow the header in this order. */
static void a_block_has_its_size_or_makes_no_sense(void **state)
{
	const uint64_t block = block_of(1);
	const uint64_t ir = block + IR - (TRACE_REF_BASE - CONSTANTS) * TRACE_IR_SIZE;

	(void)state;
	assert_int_equal(size_with(0, 0, 0), BLOCK_SIZE);
	assert_int_equal(size_with(layout.GCtrace_nsnapmap, MAP_ENTRIES + 1, 4),
			 BLOCK_SIZE + TRACE_SNAP_SIZE);
	assert_int_equal(size_with(layout.GCtrace_nsnapmap, (TRACE_BYTES_MAX - MAP) / TRACE_SNAP_SIZE, 4),
			 TRACE_BYTES_MAX);
	assert_int_equal(size_with(layout.GCtrace_nsnapmap, (TRACE_BYTES_MAX - MAP) / TRACE_SNAP_SIZE + 1, 4),
			 0);
	assert_int_equal(size_with(layout.GCtrace_nsnapmap, UINT32_MAX, 4), 0);
	assert_int_equal(size_with(layout.GCtrace_snapmap, block - 1, 8), 0);
	assert_int_equal(size_with(layout.GCtrace_snapmap, UINT64_MAX, 8), 0);
	assert_int_equal(size_with(layout.GCtrace_snapmap, block + SNAPSHOTS, 8),
			 BLOCK_SIZE - MAP + SNAPSHOTS);
	assert_int_equal(size_with(layout.GCtrace_snapmap, block + SNAPSHOTS - 1, 8), 0);
	assert_int_equal(size_with(layout.GCtrace_snap, block + MAP, 8), BLOCK_SIZE);
	assert_int_equal(size_with(layout.GCtrace_snap, block + MAP + 1, 8), 0);
	assert_int_equal(size_with(layout.GCtrace_snap, block - 1, 8), 0);
	assert_int_equal(size_with(layout.GCtrace_nk, TRACE_REF_BIAS, 4), BLOCK_SIZE);
	assert_int_equal(size_with(layout.GCtrace_nk, TRACE_REF_BIAS + 1, 4), 0);
	assert_int_equal(size_with(layout.GCtrace_nins, TRACE_REF_BIAS, 4), BLOCK_SIZE);
	assert_int_equal(size_with(layout.GCtrace_nins, TRACE_REF_BIAS - 1, 4), 0);
	assert_int_equal(size_with(layout.GCtrace_nins, TRACE_REF_BASE + INSTRUCTIONS + 1, 4), 0);
	/* The first constant does not lie before the fields that are always there. */
	assert_int_equal(size_with(layout.GCtrace_ir, ir - HEADER + (uint64_t)layout.GCtrace_nsnap, 8),
			 BLOCK_SIZE);
	assert_int_equal(size_with(layout.GCtrace_ir, ir - HEADER + (uint64_t)layout.GCtrace_nsnap - 1, 8),
			 0);
	assert_int_equal(size_with(layout.GCtrace_ir, ir + 1, 8), 0);
}

/* The trace runs, but nothing is known of its frames. */
static void a_block_that_cannot_be_read_is_a_trace_without_bytes(void **state)
{
	struct trace_frame frames[TRACE_FRAMES_MAX];
	struct lua_objects *objects = lua_objects_new();
	struct reading reading;
	const struct trace *trace;
	struct trace_code code;
	const uint64_t *protos;
	size_t count;

	(void)state;
	begin(&reading);
	put_trace(1);
	put_trace(2);
	set(1, layout.GCtrace_snap, 0, 8);
	/* It makes sense, but leads out of what is mapped. */
	set(2, layout.GCtrace_nsnapmap, MADE_UP_BYTES, 4);
	look(&reading, 0);
	for (uint32_t number = 1; number <= 2; number++) {
		trace = capture_pc(&reading, code_of(number));
		assert_int_equal(trace->number, number);
		assert_null(trace->bytes);
		assert_int_equal(trace->size, 0);
		assert_false(traces_protos(reading.traces, trace, &protos, &count));
		assert_false(traces_align_code(reading.traces, trace, &layout, &code));
		assert_int_equal(
			traces_frames(reading.traces, trace, &layout, objects, code_of(number), frames), 0);
		/* It has a table now, an empty one. */
		assert_true(traces_protos(reading.traces, trace, &protos, &count));
		assert_int_equal(count, 0);
	}
	lua_objects_free(objects);
	end(&reading);
}

/* More than are verified in one batch. */
static void many_traces_are_all_read(void **state)
{
	enum { MANY = 300 };
	struct reading reading;
	uint32_t count = 0;

	(void)state;
	begin(&reading);
	put_trace(1);
	/* All have the block of the first one, which only that confirms by its number. */
	for (uint32_t number = 2; number < MANY; number++)
		list(number, block_of(1));
	reading.wanted.sizetrace = MANY;
	look(&reading, 0);
	for (uint32_t number = 1; number < MANY; number++)
		count += traces_by_number(reading.traces, number) != NULL;
	assert_int_equal(count, 1);
	for (uint32_t number = 255; number <= 258; number++) {
		set(1, layout.GCtrace_traceno, number, 2);
		look(&reading, 0);
		assert_non_null(traces_by_number(reading.traces, number));
	}
	set(1, layout.GCtrace_traceno, MANY - 1, 2);
	look(&reading, 0);
	assert_non_null(traces_by_number(reading.traces, MANY - 1));
	end(&reading);
}

static void the_look_after_memory_was_short_finds_all(void **state)
{
	enum { TRACES = 3, ALLOCATIONS_MIN = 8 };
	bool failed = true;
	size_t after = 0;

	(void)state;
	for (; failed; after++) {
		struct reading reading;

		begin(&reading);
		for (uint32_t number = 1; number <= TRACES; number++)
			put_trace(number);
		allocation_fails_after(after);
		look(&reading, 0);
		capture_pc(&reading, code_of(2));
		traces_capture_again(reading.traces, reading.snapshot, &layout);
		failed = allocation_failed();
		look(&reading, 0);
		traces_capture_again(reading.traces, reading.snapshot, &layout);
		for (uint32_t number = 1; number <= TRACES; number++) {
			const struct trace *trace = traces_by_number(reading.traces, number);

			assert_non_null(trace);
			assert_ptr_equal(capture_pc(&reading, code_of(number)), trace);
			assert_non_null(traces_code(reading.traces, trace));
			assert_int_equal(trace->size, trace->bytes ? BLOCK_SIZE : 0);
			assert_true(failed || trace->bytes);
		}
		end(&reading);
	}
	assert_in_range(after, ALLOCATIONS_MIN, SIZE_MAX);
	traces_free(NULL);
}

static void what_is_gone_is_forgotten_even_if_memory_is_short(void **state)
{
	bool failed = true;

	(void)state;
	for (size_t after = 0; failed; after++) {
		struct reading reading;

		begin(&reading);
		put_trace(1);
		put_trace(2);
		look(&reading, 0);
		list(1, 0);
		allocation_fails_after(after);
		look(&reading, 2);
		failed = allocation_failed();
		assert_null(traces_by_number(reading.traces, 1));
		assert_null(traces_find(reading.traces, code_of(1)));
		assert_null(capture_pc(&reading, code_of(1)));
		end(&reading);
		assert_true(failed || after > 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(traces_are_found_by_number_and_by_code),
		cmocka_unit_test(what_is_no_finished_trace_is_left_out),
		cmocka_unit_test(a_known_trace_counts_only_when_it_was_verified),
		cmocka_unit_test(another_trace_in_the_same_place_is_read_anew),
		cmocka_unit_test(traces_that_are_gone_are_forgotten),
		cmocka_unit_test(a_list_that_makes_no_sense_verifies_nothing),
		cmocka_unit_test(the_longest_list_is_read_to_its_end),
		cmocka_unit_test(code_is_copied_once_it_is_seen_running),
		cmocka_unit_test(a_trace_leads_to_its_link),
		cmocka_unit_test(an_exit_leads_to_its_stub_or_its_side_trace),
		cmocka_unit_test(a_return_is_known_by_the_bytecode_that_its_trace_replaced),
		cmocka_unit_test(a_block_has_its_size_or_makes_no_sense),
		cmocka_unit_test(a_block_that_cannot_be_read_is_a_trace_without_bytes),
		cmocka_unit_test(many_traces_are_all_read),
		cmocka_unit_test(the_look_after_memory_was_short_finds_all),
		cmocka_unit_test(what_is_gone_is_forgotten_even_if_memory_is_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* A trace's IR and snapshots, in made-up blocks of each of LuaJIT's lines of releases. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/made_up_trace.h"
#include "unwind/elf/registers.h"
#include "unwind/lua/luajit.h"
#include "unwind/trace/trace_block.h"

enum {
	GUARD = 0x80,
	PHI = 0x40,
	/* In entries of a snapshot's map (lj_jit.h, SNAP()). */
	SNAP_FRAME = 0x010000,
	SNAP_CONT = 0x020000,
	SLOT_SHIFT = 24,
	PC_SHIFT = 8,

	FUNCTION_A = TRACE_REF_BIAS - 2,
	FUNCTION_B = TRACE_REF_BIAS - 4,
	PROTO_A = TRACE_REF_BIAS - 6,
	STRING_A = TRACE_REF_BIAS - 8,
	LINKS = TRACE_REF_BIAS - 10, /* and downwards */
	FUNCTION_A_AT = 0xfa0,
	FUNCTION_B_AT = 0xfb0,
	PROTO_A_AT = 0xaa0,
	FIRST = TRACE_REF_BASE + 1,
	FRAMES_MAX = 8,
};

static const struct release {
	const char *name;
	bool gc64, mcofs;
	int32_t IR_KGC, GCstr_len, GCstr_size;
	uint8_t hrefk, sload; /* their numbers in lj_ir.h */
} releases[] = {
	{ "2.0", false, false, 23, 12, 16, 57, 69 },
	{ "2.1 of 2017, GC32", false, false, 24, 12, 16, 58, 71 },
	{ "2.1 of 2017, GC64", true, false, 24, 16, 24, 58, 71 },
	{ "2.1 of 2020, GC32", false, false, 24, 16, 20, 57, 70 },
	{ "2.1 of 2020, GC64", true, false, 24, 20, 24, 57, 70 },
	{ "2.1 of 2022, GC32", false, true, 24, 16, 20, 57, 71 },
	{ "2.1 of 2022, GC64", true, true, 24, 20, 24, 57, 71 },
};

/*---- IR ----*/

static void begin_release(struct made_up_trace *made_up, const struct release *release)
{
	made_up_trace_begin(made_up, release->gc64);
	made_up->layout.IR_KGC = release->IR_KGC;
	made_up->layout.GCstr_len = release->GCstr_len;
	made_up->layout.GCstr_size = release->GCstr_size;
	if (!release->mcofs)
		made_up->layout.SnapShot_mcofs = LAYOUT_ABSENT;
}

/* What the first instruction of a trace is, if its opcode has this number. */
static enum ir_op op_numbered(const struct release *release, uint8_t number)
{
	struct made_up_trace made_up;
	struct trace_instruction ins;

	begin_release(&made_up, release);
	trace_put(&made_up, ir_place(TRACE_REF_BASE) + MADE_UP_IR_OP, number, 1);
	assert_true(trace_instruction(&made_up.trace, &made_up.layout, TRACE_REF_BASE, &ins));
	assert_int_equal(ins.number, number);
	return ins.op;
}

static void test_numbers_are_those_of_the_release(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(releases) / sizeof(releases[0]); i++) {
		const struct release *release = &releases[i];

		print_message("%s\n", release->name);
		assert_int_equal(op_numbered(release, 0), IR_LT);
		assert_int_equal(op_numbered(release, (uint8_t)release->IR_KGC), IR_KGC);
		assert_int_equal(op_numbered(release, release->hrefk), IR_HREFK);
		assert_int_equal(op_numbered(release, release->sload), IR_SLOAD);
		assert_int_equal(op_numbered(release, UINT8_MAX), IR__MAX);
	}
}

/* The number behind the last opcode is no opcode's. */
static void numbers_end_with_carg(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(releases) / sizeof(releases[0]); i++) {
		unsigned number = 0;

		while (op_numbered(&releases[i], (uint8_t)number) != IR_CARG)
			assert_in_range(++number, 1, UINT8_MAX);
		for (number++; number <= UINT8_MAX; number++)
			assert_int_equal(op_numbered(&releases[i], (uint8_t)number), IR__MAX);
	}
}

static void alen_is_known_by_what_changed_with_it(void **state)
{
	static const bool have[] = { false, false, false, true, true, true, true };

	(void)state;
	for (size_t i = 0; i < sizeof(releases) / sizeof(releases[0]); i++) {
		struct made_up_trace made_up;

		begin_release(&made_up, &releases[i]);
		assert_int_equal(trace_has_alen(&made_up.layout), have[i]);
	}
}

static void an_instruction_has_all_its_parts(void **state)
{
	struct made_up_trace made_up;
	struct trace_instruction ins;

	(void)state;
	made_up_trace_begin(&made_up, true);
	put_ir(&made_up, FIRST, IR_ADD, GUARD | IRT_NUM, 0x8123, 0x7654);
	put_ir_place(&made_up, FIRST, 5, 9);
	assert_true(trace_instruction(&made_up.trace, &made_up.layout, FIRST, &ins));
	assert_int_equal(ins.op, IR_ADD);
	assert_int_equal(ins.type, IRT_NUM);
	assert_true(ins.guard);
	assert_false(ins.is_phi);
	assert_int_equal(ins.reg, 5);
	assert_int_equal(ins.spill, 9);
	assert_int_equal(ins.op1, 0x8123);
	assert_int_equal(ins.op2, 0x7654);
	put_ir(&made_up, FIRST, IR_ADD, PHI | IRT_INT, 0, 0);
	assert_true(trace_instruction(&made_up.trace, &made_up.layout, FIRST, &ins));
	assert_int_equal(ins.type, IRT_INT);
	assert_false(ins.guard);
	assert_true(ins.is_phi);
}

static void only_references_of_the_trace_are_instructions(void **state)
{
	static const uint32_t none[] = { 0, MADE_UP_NK - 1, MADE_UP_NINS, UINT16_MAX, UINT32_MAX };
	struct made_up_trace made_up;
	struct trace_instruction ins;

	(void)state;
	made_up_trace_begin(&made_up, true);
	assert_int_equal(trace_nins(&made_up.trace, &made_up.layout), MADE_UP_NINS);
	assert_int_equal(trace_nk(&made_up.trace, &made_up.layout), MADE_UP_NK);
	assert_true(trace_instruction(&made_up.trace, &made_up.layout, MADE_UP_NK, &ins));
	assert_true(trace_instruction(&made_up.trace, &made_up.layout, MADE_UP_NINS - 1, &ins));
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		assert_false(trace_instruction(&made_up.trace, &made_up.layout, none[i], &ins));
	/* References have 16 bits, whatever the header claims. */
	trace_put(&made_up, made_up.layout.GCtrace_nins, UINT32_MAX, 4);
	assert_int_equal(trace_nins(&made_up.trace, &made_up.layout), UINT16_MAX);
	trace_put(&made_up, made_up.layout.GCtrace_nins, UINT16_MAX, 4);
	assert_int_equal(trace_nins(&made_up.trace, &made_up.layout), UINT16_MAX);
	/* They end with the block. */
	made_up.trace.size = MADE_UP_SNAPSHOTS;
	assert_true(trace_instruction(&made_up.trace, &made_up.layout, MADE_UP_NINS - 1, &ins));
	made_up.trace.size--;
	assert_false(trace_instruction(&made_up.trace, &made_up.layout, MADE_UP_NINS - 1, &ins));
	/* IR that lies elsewhere is none. */
	trace_put(&made_up, made_up.layout.GCtrace_ir, 0, 8);
	assert_false(trace_instruction(&made_up.trace, &made_up.layout, FIRST, &ins));
	trace_put(&made_up, made_up.layout.GCtrace_ir, UINT64_MAX, 8);
	assert_false(trace_instruction(&made_up.trace, &made_up.layout, FIRST, &ins));
}

static void constants_have_their_values(void **state)
{
	const uint32_t ref = MADE_UP_NK;
	const uint64_t number = 0x3ff8123456789abc;

	(void)state;
	for (unsigned gc64 = 0; gc64 < 2; gc64++) {
		struct made_up_trace made_up;
		uint64_t value = 1;

		made_up_trace_begin(&made_up, gc64);
		put_ir(&made_up, ref, IR_KINT, IRT_INT, 0xfffe, 0xffff);
		assert_true(trace_constant(&made_up.trace, &made_up.layout, ref, &value));
		assert_int_equal(value, (uint64_t)-2);
		put_object(&made_up, ref, IRT_STR, 0x12345678);
		assert_true(trace_constant(&made_up.trace, &made_up.layout, ref, &value));
		assert_int_equal(value, 0x12345678);
		put_wide(&made_up, ref, IR_KNUM, IRT_NUM, number);
		assert_true(trace_constant(&made_up.trace, &made_up.layout, ref, &value));
		assert_int_equal(value, number);
		put_wide(&made_up, ref, IR_KINT64, IRT_NUM, number + 1);
		assert_true(trace_constant(&made_up.trace, &made_up.layout, ref, &value));
		assert_int_equal(value, number + 1);
		for (unsigned i = 0; i < 2; i++) {
			put_wide(&made_up, ref, i ? IR_KPTR : IR_KKPTR, IRT_NIL, number);
			trace_put(&made_up, ir_place(ref), 0x5678, 4);
			assert_true(trace_constant(&made_up.trace, &made_up.layout, ref, &value));
			assert_int_equal(value, gc64 ? number : 0x5678);
		}
		/* One that has no value, an instruction, and nothing. */
		put_ir(&made_up, ref, IR_KPRI, IRT_NIL, 0, 0);
		assert_false(trace_constant(&made_up.trace, &made_up.layout, ref, &value));
		put_ir(&made_up, TRACE_REF_BIAS, IR_KINT, IRT_INT, 5, 0);
		assert_false(trace_constant(&made_up.trace, &made_up.layout, TRACE_REF_BIAS, &value));
		put_ir(&made_up, TRACE_REF_BIAS - 1, IR_KINT, IRT_INT, 5, 0);
		assert_true(trace_constant(&made_up.trace, &made_up.layout, TRACE_REF_BIAS - 1, &value));
		assert_int_equal(value, 5);
		assert_false(trace_constant(&made_up.trace, &made_up.layout, MADE_UP_NK - 1, &value));
		assert_int_equal(value, 5);
	}
}

static void functions_and_prototypes_are_listed(void **state)
{
	(void)state;
	for (unsigned gc64 = 0; gc64 < 2; gc64++) {
		struct made_up_trace made_up;
		uint64_t objects[FRAMES_MAX] = { 0 };

		made_up_trace_begin(&made_up, gc64);
		put_object(&made_up, FUNCTION_A, IRT_FUNC, FUNCTION_A_AT);
		put_object(&made_up, FUNCTION_B, IRT_FUNC, FUNCTION_B_AT);
		put_object(&made_up, PROTO_A, IRT_PROTO, PROTO_A_AT);
		put_object(&made_up, STRING_A, IRT_STR, 0x5a5a);
		/* Not of an object, and no constant. */
		put_wide(&made_up, STRING_A - 2, IR_KNUM, IRT_FUNC, 0x1234);
		put_object(&made_up, TRACE_REF_BIAS, IRT_FUNC, 0x4321);
		assert_int_equal(trace_constants(&made_up.trace, &made_up.layout, TRACE_FUNCTIONS, objects,
						 FRAMES_MAX),
				 2);
		assert_int_equal(objects[0], FUNCTION_B_AT);
		assert_int_equal(objects[1], FUNCTION_A_AT);
		assert_int_equal(
			trace_constants(&made_up.trace, &made_up.layout, TRACE_PROTOS, objects, FRAMES_MAX),
			1);
		assert_int_equal(objects[0], PROTO_A_AT);
		assert_int_equal(objects[1], FUNCTION_A_AT);
		assert_int_equal(
			trace_constants(&made_up.trace, &made_up.layout, TRACE_FUNCTIONS, objects, 1), 1);
		assert_int_equal(objects[1], FUNCTION_A_AT);
		/* The first one may be the first of all. */
		put_object(&made_up, MADE_UP_NK, IRT_PROTO, 0x77);
		assert_int_equal(
			trace_constants(&made_up.trace, &made_up.layout, TRACE_PROTOS, objects, FRAMES_MAX),
			2);
		assert_int_equal(objects[0], 0x77);
	}
}

/*---- The header ----*/

static void a_side_trace_tells_its_parent(void **state)
{
	struct made_up_trace made_up;
	uint32_t parent = 0, exitno = 0;

	(void)state;
	made_up_trace_begin(&made_up, true);
	put_ir(&made_up, TRACE_REF_BASE, IR_BASE, IRT_NIL, 7, 3);
	assert_false(trace_parent(&made_up.trace, &made_up.layout, &parent, &exitno));
	made_up.trace.root = 2;
	assert_true(trace_parent(&made_up.trace, &made_up.layout, &parent, &exitno));
	assert_int_equal(parent, 7);
	assert_int_equal(exitno, 3);
	put_ir(&made_up, TRACE_REF_BASE, IR_NOP, IRT_NIL, 8, 4);
	assert_false(trace_parent(&made_up.trace, &made_up.layout, &parent, &exitno));
	made_up.trace.bytes = NULL;
	assert_false(trace_parent(&made_up.trace, &made_up.layout, &parent, &exitno));
	assert_int_equal(parent, 7);
}

static void how_a_trace_ends_is_told(void **state)
{
	struct made_up_trace made_up;

	(void)state;
	made_up_trace_begin(&made_up, true);
	trace_put(&made_up, made_up.layout.GCtrace_link, 0x1234, 2);
	trace_put(&made_up, made_up.layout.GCtrace_linktype, 0x0502, 2);
	trace_put(&made_up, made_up.layout.GCtrace_mcloop, 0x56789, 4);
	assert_int_equal(trace_link(&made_up.trace, &made_up.layout), 0x1234);
	assert_int_equal(trace_linktype(&made_up.trace, &made_up.layout), 2);
	assert_int_equal(trace_loop_offset(&made_up.trace, &made_up.layout), 0x56789);
}

static void of_a_trace_without_bytes_nothing_is_told(void **state)
{
	struct made_up_trace made_up;
	struct trace_instruction ins;
	struct trace_snapshot snapshot;
	struct trace_frame frames[FRAMES_MAX];
	uint32_t number, entries[TRACE_ENTRIES_MAX], refs[TRACE_SLOTS];
	uint64_t value;

	(void)state;
	made_up_trace_begin(&made_up, true);
	made_up.trace.bytes = NULL;
	assert_int_equal(trace_nins(&made_up.trace, &made_up.layout), 0);
	assert_int_equal(trace_nk(&made_up.trace, &made_up.layout), 0);
	assert_int_equal(trace_link(&made_up.trace, &made_up.layout), 0);
	assert_false(trace_instruction(&made_up.trace, &made_up.layout, FIRST, &ins));
	assert_false(trace_constant(&made_up.trace, &made_up.layout, FUNCTION_A, &value));
	assert_int_equal(trace_constants(&made_up.trace, &made_up.layout, TRACE_PROTOS, &value, 1), 0);
	assert_int_equal(trace_snapshot_count(&made_up.trace, &made_up.layout), 0);
	assert_false(trace_snapshot(&made_up.trace, &made_up.layout, 0, &snapshot));
	assert_false(trace_snapshot_at(&made_up.trace, &made_up.layout, MADE_UP_MCODE, &number));
	assert_false(trace_snapshot_refs(&made_up.trace, &made_up.layout, 0, refs));
	assert_int_equal(trace_snapshot_entries(&made_up.trace, &made_up.layout, 0, entries, &number), 0);
	assert_int_equal(trace_frames(&made_up.trace, &made_up.layout, MADE_UP_MCODE, frames, FRAMES_MAX), 0);
	assert_int_equal(trace_exit_frames(&made_up.trace, &made_up.layout, 0, frames, FRAMES_MAX), 0);
}

/*---- Snapshots ----*/

static uint32_t entry(unsigned slot, uint32_t flags, uint32_t ref)
{
	return slot << SLOT_SHIFT | flags | ref;
}

static void snapshots_tell_their_parts(void **state)
{
	const uint32_t first[] = { entry(2, 0, FIRST), entry(200, 0, FUNCTION_A) };
	const uint32_t second[] = { entry(3, 0, FIRST + 1) };
	struct made_up_trace made_up;
	struct trace_snapshot snapshot;
	uint32_t entries[TRACE_ENTRIES_MAX], slots = 0, refs[TRACE_SLOTS];
	int32_t at;

	(void)state;
	made_up_trace_begin(&made_up, false);
	at = MADE_UP_SNAPSHOTS + made_up.layout.SnapShot_size;
	put_snapshot(&made_up, FIRST, 4, first, 2);
	put_map_word(&made_up, 0x4444);
	put_snapshot(&made_up, FIRST + 1, 40, second, 1);
	put_map_word(&made_up, 0x5555);
	trace_put(&made_up, at + made_up.layout.SnapShot_nslots, 9, 1);
	trace_put(&made_up, at + made_up.layout.SnapShot_count, 0xab, 1);
	assert_int_equal(trace_snapshot_count(&made_up.trace, &made_up.layout), 2);
	assert_true(trace_snapshot(&made_up.trace, &made_up.layout, 1, &snapshot));
	assert_int_equal(snapshot.ref, FIRST + 1);
	assert_int_equal(snapshot.mcofs, 40 * MCODE_BYTES);
	assert_int_equal(snapshot.count, 0xab);
	assert_false(trace_snapshot(&made_up.trace, &made_up.layout, 2, &snapshot));
	assert_int_equal(trace_snapshot_entries(&made_up.trace, &made_up.layout, 1, entries, &slots), 1);
	assert_int_equal(entries[0], second[0]);
	assert_int_equal(slots, 9);
	assert_int_equal(trace_snapshot_entries(&made_up.trace, &made_up.layout, 0, entries, &slots), 2);
	assert_memory_equal(entries, first, sizeof(first));
	assert_int_equal(slots, 0);
	slots = 77;
	assert_int_equal(trace_snapshot_entries(&made_up.trace, &made_up.layout, 2, entries, &slots), 0);
	assert_int_equal(slots, 77);
	assert_true(trace_snapshot_refs(&made_up.trace, &made_up.layout, 0, refs));
	for (unsigned slot = 0; slot < TRACE_SLOTS; slot++)
		assert_int_equal(refs[slot], slot == 2 ? FIRST : slot == 200 ? FUNCTION_A : 0);
	assert_false(trace_snapshot_refs(&made_up.trace, &made_up.layout, 2, refs));
	/* Before their offsets were kept, a place in the map had 16 bits. */
	made_up.layout.SnapShot_mcofs = LAYOUT_ABSENT;
	assert_true(trace_snapshot(&made_up.trace, &made_up.layout, 1, &snapshot));
	assert_int_equal(snapshot.mcofs, 0);
	made_up.layout.SnapShot_size = 8;
	trace_put(&made_up, MADE_UP_SNAPSHOTS + made_up.layout.SnapShot_nent, 0, 2);
	trace_put(&made_up, MADE_UP_SNAPSHOTS, 0xffff0003, 4);
	made_up.layout.SnapShot_nent = 6;
	trace_put(&made_up, MADE_UP_SNAPSHOTS + 6, 1, 1);
	assert_int_equal(trace_snapshot_entries(&made_up.trace, &made_up.layout, 0, entries, &slots), 1);
	assert_int_equal(entries[0], second[0]);
}

/* The map is read up to the end of the block, not beyond. */
static void a_map_that_leads_out_of_the_block_is_unreadable(void **state)
{
	const uint32_t map[] = { entry(2, 0, FIRST), entry(3, 0, FIRST) };

	(void)state;
	for (unsigned gc64 = 0; gc64 < 2; gc64++) {
		/* Behind the entries is the pc: a word, or two. */
		const size_t end = MADE_UP_MAP + (2 + 1 + gc64) * TRACE_SNAP_SIZE;
		struct made_up_trace made_up;
		struct trace_frame frames[FRAMES_MAX];
		uint32_t entries[TRACE_ENTRIES_MAX], slots = 0, refs[TRACE_SLOTS];

		made_up_trace_begin(&made_up, gc64);
		put_snapshot(&made_up, FIRST, 0, map, 2);
		made_up.trace.size = end;
		assert_true(trace_snapshot_refs(&made_up.trace, &made_up.layout, 0, refs));
		assert_int_equal(trace_exit_frames(&made_up.trace, &made_up.layout, 0, frames, FRAMES_MAX),
				 1);
		made_up.trace.size = end - 1;
		assert_false(trace_snapshot_refs(&made_up.trace, &made_up.layout, 0, refs));
		assert_int_equal(trace_exit_frames(&made_up.trace, &made_up.layout, 0, frames, FRAMES_MAX),
				 0);
		assert_int_equal(trace_snapshot_entries(&made_up.trace, &made_up.layout, 0, entries, &slots),
				 2);
		made_up.trace.size = MADE_UP_MAP + 2 * TRACE_SNAP_SIZE - 1;
		assert_int_equal(trace_snapshot_entries(&made_up.trace, &made_up.layout, 0, entries, &slots),
				 0);
		assert_false(trace_snapshot_refs(&made_up.trace, &made_up.layout, 0, refs));
	}
}

static void the_snapshot_in_force_is_the_last_one_before(void **state)
{
	static const uint32_t offsets[] = { 10, 20, 90, 20, 50 };
	static const struct {
		unsigned offset;
		int number;
	} known[] = { { 9, -1 }, { 10, 0 }, { 19, 0 }, { 20, 3 }, { 49, 3 }, { 50, 4 }, { 90, 4 } };
	struct made_up_trace made_up;
	uint32_t number = 99;

	(void)state;
	made_up_trace_begin(&made_up, true);
	assert_false(trace_snapshot_at(&made_up.trace, &made_up.layout, UINT64_MAX, &number));
	for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++)
		put_snapshot(&made_up, FIRST, offsets[i], NULL, 0);
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		uint64_t pc = MADE_UP_MCODE + known[i].offset * MCODE_BYTES;

		number = 99;
		assert_int_equal(trace_snapshot_at(&made_up.trace, &made_up.layout, pc, &number),
				 known[i].number >= 0);
		assert_int_equal(number, known[i].number >= 0 ? known[i].number : 99);
	}
	made_up.layout.SnapShot_mcofs = LAYOUT_ABSENT;
	assert_false(trace_snapshot_at(&made_up.trace, &made_up.layout, MADE_UP_MCODE + 50, &number));
}

/*---- Frames ----*/

/* A frame, or continuation, in a snapshot: the slot of its link, the function's constant, the link. */
struct link {
	unsigned slot;
	uint32_t flags;
	uint16_t function; /* 0: none */
	uint64_t link;
};

/* Put a snapshot of these frames, the innermost last, where the interpreter would resume at pc. */
static void put_frames(struct made_up_trace *made_up, uint64_t pc, const struct link *links, size_t count)
{
	bool gc64 = made_up->layout.gc64;
	uint32_t entries[2 * FRAMES_MAX];
	size_t entry_count = 0;

	for (size_t i = 0; i < count; i++) {
		uint32_t constant = LINKS - 2 * (uint32_t)i;

		if (gc64 && links[i].function)
			entries[entry_count++] = entry(links[i].slot - 1, 0, links[i].function);
		if (gc64)
			put_wide(made_up, constant, IR_KINT64, IRT_NUM, links[i].link);
		entries[entry_count++] = entry(links[i].slot, links[i].flags,
					       gc64 ? constant : links[i].function);
	}
	put_snapshot(made_up, FIRST, 0, entries, entry_count);
	if (gc64) {
		put_map_word(made_up, (uint32_t)(pc << PC_SHIFT) | 0x55);
		put_map_word(made_up, (uint32_t)(pc >> (32 - PC_SHIFT)));
		return;
	}
	put_map_word(made_up, (uint32_t)pc);
	for (size_t i = count; i-- > 0;)
		put_map_word(made_up, (uint32_t)links[i].link);
}

static size_t frames_of(bool gc64, const struct link *links, size_t count,
			struct trace_frame ret_frames[static FRAMES_MAX], size_t max)
{
	struct trace_frame at_pc[FRAMES_MAX];
	struct made_up_trace made_up;
	size_t found;

	memset(ret_frames, 0, FRAMES_MAX * sizeof(*ret_frames));
	memset(at_pc, 0, sizeof(at_pc));
	made_up_trace_begin(&made_up, gc64);
	put_object(&made_up, FUNCTION_A, IRT_FUNC, FUNCTION_A_AT);
	put_object(&made_up, FUNCTION_B, IRT_FUNC, FUNCTION_B_AT);
	put_object(&made_up, PROTO_A, IRT_PROTO, PROTO_A_AT);
	put_frames(&made_up, 0x1000, links, count);
	found = trace_exit_frames(&made_up.trace, &made_up.layout, 0, ret_frames, max);
	/* The snapshot is in force at all of the trace's code. */
	assert_int_equal(trace_frames(&made_up.trace, &made_up.layout, MADE_UP_MCODE, at_pc, max), found);
	for (size_t i = 0; i < found; i++)
		assert_int_equal(at_pc[i].pc, ret_frames[i].pc);
	assert_int_equal(trace_exit_frames(&made_up.trace, &made_up.layout, 1, at_pc, max), 0);
	assert_int_equal(trace_frames(&made_up.trace, &made_up.layout, MADE_UP_MCODE - 1, at_pc, max), 0);
	return found;
}

static void expect_frame(const struct trace_frame *frame, uint64_t function, uint64_t pc, unsigned base_slot,
			 bool is_continuation)
{
	assert_int_equal(frame->function, function);
	assert_int_equal(frame->pc, pc);
	assert_int_equal(frame->base_slot, base_slot);
	assert_int_equal(frame->is_continuation, is_continuation);
	assert_false(frame->is_near);
}

/* With 64-bit references a function has a slot of its own before the link's (LJ_FR2). */
static void each_call_is_a_frame_with_its_pc(void **state)
{
	const struct link links[] = { { 5, SNAP_FRAME, FUNCTION_A, 0x2004 },
				      { 255, SNAP_FRAME, FUNCTION_B, 0x3008 } };
	struct trace_frame frames[FRAMES_MAX];

	(void)state;
	for (unsigned gc64 = 0; gc64 < 2; gc64++) {
		const unsigned start = gc64 ? 2 : 1;

		assert_int_equal(frames_of(gc64, links, 0, frames, FRAMES_MAX), 1);
		expect_frame(&frames[0], 0, 0x1000, start, false);
		assert_int_equal(frames_of(gc64, links, 1, frames, FRAMES_MAX), 2);
		expect_frame(&frames[0], FUNCTION_A_AT, 0x1000, 6, false);
		expect_frame(&frames[1], 0, 0x2000, start, false);
		assert_int_equal(frames_of(gc64, links, 2, frames, FRAMES_MAX), 3);
		expect_frame(&frames[0], FUNCTION_B_AT, 0x1000, 0, false);
		expect_frame(&frames[1], FUNCTION_A_AT, 0x3004, 6, false);
		expect_frame(&frames[2], 0, 0x2000, start, false);
	}
}

static void frames_that_do_not_fit_are_none(void **state)
{
	const struct link links[] = { { 5, SNAP_FRAME, FUNCTION_A, 0x2004 },
				      { 9, SNAP_FRAME, FUNCTION_B, 0x3008 } };
	struct trace_frame frames[FRAMES_MAX];

	(void)state;
	for (unsigned gc64 = 0; gc64 < 2; gc64++) {
		assert_int_equal(frames_of(gc64, links, 2, frames, 3), 3);
		assert_int_equal(frames_of(gc64, links, 2, frames, 2), 0);
		assert_int_equal(frames_of(gc64, links, 1, frames, 2), 2);
		assert_int_equal(frames_of(gc64, links, 0, frames, 2), 1);
		assert_int_equal(frames_of(gc64, links, 0, frames, 1), 0);
		assert_int_equal(frames_of(gc64, links, 0, frames, 0), 0);
	}
}

/* The caller of a metamethod goes on where its continuation says, which lies before the function. */
static void a_metamethod_was_called_by_its_continuation(void **state)
{
	struct trace_frame frames[FRAMES_MAX];

	(void)state;
	for (unsigned gc64 = 0; gc64 < 2; gc64++) {
		const unsigned slot = 9, continuation = slot - 1 - gc64;
		const struct link links[] = {
			{ continuation, SNAP_CONT, 0, 0x2104 },
			{ slot, SNAP_FRAME, FUNCTION_A, 0x40 | FRAME_CONT },
		};

		assert_int_equal(frames_of(gc64, links, 2, frames, FRAMES_MAX), 2);
		expect_frame(&frames[0], FUNCTION_A_AT, 0x1000, slot + 1, false);
		expect_frame(&frames[1], 0, 0x2100, gc64 ? 2 : 1, true);
	}
}

/* The copy of a vararg function runs above its arguments; the frame below is the same function's. */
static void a_vararg_function_is_one_frame(void **state)
{
	const struct link links[] = { { 5, SNAP_FRAME, FUNCTION_A, 0x2004 },
				      { 9, SNAP_FRAME, FUNCTION_A, 0x20 | FRAME_VARG },
				      { 15, SNAP_FRAME, FUNCTION_B, 0x3004 } };
	struct trace_frame frames[FRAMES_MAX];

	(void)state;
	for (unsigned gc64 = 0; gc64 < 2; gc64++) {
		assert_int_equal(frames_of(gc64, links, 2, frames, FRAMES_MAX), 2);
		expect_frame(&frames[0], FUNCTION_A_AT, 0x1000, 10, false);
		expect_frame(&frames[1], 0, 0x2000, gc64 ? 2 : 1, false);
		assert_int_equal(frames_of(gc64, links, 3, frames, FRAMES_MAX), 3);
		expect_frame(&frames[0], FUNCTION_B_AT, 0x1000, 16, false);
		expect_frame(&frames[1], FUNCTION_A_AT, 0x3000, 10, false);
		expect_frame(&frames[2], 0, 0x2000, gc64 ? 2 : 1, false);
		/* The start frame may be the one below. */
		assert_int_equal(frames_of(gc64, links + 1, 1, frames, FRAMES_MAX), 1);
		expect_frame(&frames[0], FUNCTION_A_AT, 0x1000, 10, false);
	}
}

static void the_pc_of_a_builtin_is_unknown(void **state)
{
	const struct link links[] = { { 5, SNAP_FRAME, FUNCTION_A, 0x2004 },
				      { 9, SNAP_FRAME, FUNCTION_B, 0x20 | FRAME_PCALL } };
	struct trace_frame frames[FRAMES_MAX];

	(void)state;
	for (unsigned gc64 = 0; gc64 < 2; gc64++) {
		assert_int_equal(frames_of(gc64, links, 2, frames, FRAMES_MAX), 3);
		expect_frame(&frames[0], FUNCTION_B_AT, 0x1000, 10, false);
		expect_frame(&frames[1], FUNCTION_A_AT, 0, 6, false);
		expect_frame(&frames[2], 0, 0x2000, gc64 ? 2 : 1, false);
	}
}

/* As after a tail call of a builtin, which calls back: nothing else tells what the start frame is now. */
static void the_start_frames_function_may_be_in_the_snapshot(void **state)
{
	struct trace_frame frames[FRAMES_MAX];

	(void)state;
	for (unsigned gc64 = 0; gc64 < 2; gc64++) {
		const struct link links[] = { { gc64 ? 1 : 0, 0, FUNCTION_A, 0 },
					      { 5, SNAP_FRAME, FUNCTION_B, 0x20 | FRAME_PCALL } };
		const unsigned start = gc64 ? 2 : 1;

		assert_int_equal(frames_of(gc64, links, 1, frames, FRAMES_MAX), 1);
		expect_frame(&frames[0], FUNCTION_A_AT, 0x1000, start, false);
		assert_int_equal(frames_of(gc64, links, 2, frames, FRAMES_MAX), 2);
		expect_frame(&frames[0], FUNCTION_B_AT, 0x1000, 6, false);
		expect_frame(&frames[1], FUNCTION_A_AT, 0, start, false);
	}
}

/* A slot of another type holds a function that depends on the path. */
static void a_function_is_known_only_as_a_constant(void **state)
{
	const struct link links[] = { { 5, SNAP_FRAME, PROTO_A, 0x2004 }, { 9, SNAP_FRAME, FIRST, 0x3004 } };
	struct trace_frame frames[FRAMES_MAX];

	(void)state;
	for (unsigned gc64 = 0; gc64 < 2; gc64++) {
		assert_int_equal(frames_of(gc64, links, 2, frames, FRAMES_MAX), 3);
		expect_frame(&frames[0], 0, 0x1000, 10, false);
		expect_frame(&frames[1], 0, 0x3000, 6, false);
	}
}

/* With 64-bit references a link is a constant of the trace. */
static void frames_with_a_link_to_nowhere_are_none(void **state)
{
	struct trace_frame frames[FRAMES_MAX];
	struct made_up_trace made_up;
	uint32_t bad = entry(5, SNAP_FRAME, 0);

	(void)state;
	made_up_trace_begin(&made_up, true);
	put_snapshot(&made_up, FIRST, 0, &bad, 1);
	assert_int_equal(trace_exit_frames(&made_up.trace, &made_up.layout, 0, frames, FRAMES_MAX), 0);
	/* The slots of the start frame have no link there. */
	made_up_trace_begin(&made_up, true);
	bad = entry(1, SNAP_FRAME, 0);
	put_snapshot(&made_up, FIRST, 0, &bad, 1);
	assert_int_equal(trace_exit_frames(&made_up.trace, &made_up.layout, 0, frames, FRAMES_MAX), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers_are_those_of_the_release),
		cmocka_unit_test(numbers_end_with_carg),
		cmocka_unit_test(alen_is_known_by_what_changed_with_it),
		cmocka_unit_test(an_instruction_has_all_its_parts),
		cmocka_unit_test(only_references_of_the_trace_are_instructions),
		cmocka_unit_test(constants_have_their_values),
		cmocka_unit_test(functions_and_prototypes_are_listed),
		cmocka_unit_test(a_side_trace_tells_its_parent),
		cmocka_unit_test(how_a_trace_ends_is_told),
		cmocka_unit_test(of_a_trace_without_bytes_nothing_is_told),
		cmocka_unit_test(snapshots_tell_their_parts),
		cmocka_unit_test(a_map_that_leads_out_of_the_block_is_unreadable),
		cmocka_unit_test(the_snapshot_in_force_is_the_last_one_before),
		cmocka_unit_test(each_call_is_a_frame_with_its_pc),
		cmocka_unit_test(frames_that_do_not_fit_are_none),
		cmocka_unit_test(a_metamethod_was_called_by_its_continuation),
		cmocka_unit_test(a_vararg_function_is_one_frame),
		cmocka_unit_test(the_pc_of_a_builtin_is_unknown),
		cmocka_unit_test(the_start_frames_function_may_be_in_the_snapshot),
		cmocka_unit_test(a_function_is_known_only_as_a_constant),
		cmocka_unit_test(frames_with_a_link_to_nowhere_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

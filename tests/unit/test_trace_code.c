/* SPDX-License-Identifier: MIT */
/* Which IR instruction machine code of x86-64 was assembled for, in made-up traces of 2.1, GC64. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/made_up_trace.h"
#include "unwind/lua/luajit.h"
#include "unwind/trace/trace_code.h"

enum {
	FIRST = TRACE_REF_BASE + 1,
	CODE_BYTES = 256,
	PIECES_MAX = 32,
	EXIT_BYTES = 0x1000, /* from one exit to the next */
	JIT_BASE = 0x50,     /* from DISPATCH */
	NONE = UINT8_MAX,    /* no register */
	GUARD = 0x80,

	/* RID_* of lj_target_x86.h */
	RAX = 0,
	RCX = 1,
	RBP = 5,
	XMM0 = 16,
	XMM1 = 17,

	WIDE = TRACE_REF_BIAS - 2, /* constants */
	NUMBER = 0x123456,
};

struct instruction {
	enum ir_op op;
	uint16_t op1, op2;
	uint8_t reg, spill, type; /* 0: a number's */
};

/* Machine code, and the IR instruction that it belongs to. */
struct piece {
	const char *bytes;
	size_t length;
	uint32_t ref;
};
#define IS(bytes, ref) \
	{ \
		bytes, sizeof(bytes) - 1, ref \
	}

struct made_up {
	struct made_up_trace trace;
	uint8_t bytes[CODE_BYTES];
};

static int exit_number(const void *context, uint64_t target)
{
	(void)context;
	return (int)((target - MADE_UP_MCODE) / EXIT_BYTES) - 1;
}

static const struct trace_exits exits = { .number = exit_number };

/* A trace without a snapshot. */
static void begin(struct made_up *made_up, const struct instruction *instructions, uint32_t count)
{
	struct made_up_trace *trace = &made_up->trace;

	memset(made_up, 0, sizeof(*made_up));
	made_up_trace_begin(trace, true);
	trace->layout.g_jit_base = JIT_BASE;
	trace_put(trace, trace->layout.GCtrace_nins, FIRST + count, 4);
	put_ir(trace, TRACE_REF_BASE, IR_BASE, 0, 0, 0);
	put_wide(trace, WIDE, IR_KINT64, IRT_INT, NUMBER);
	for (uint32_t i = 0; i < count; i++) {
		const struct instruction *of = &instructions[i];

		put_ir(trace, FIRST + i, of->op, of->type ? of->type : IRT_NUM, of->op1, of->op2);
		put_ir_place(trace, FIRST + i, of->reg, of->spill);
	}
}

static void put_code(struct made_up *made_up, const struct piece *pieces, size_t count)
{
	made_up->trace.trace.szmcode = 0;
	for (size_t i = 0; i < count; i++) {
		assert_in_range(made_up->trace.trace.szmcode + pieces[i].length, 1, CODE_BYTES);
		memcpy(made_up->bytes + made_up->trace.trace.szmcode, pieces[i].bytes, pieces[i].length);
		made_up->trace.trace.szmcode += (uint32_t)pieces[i].length;
	}
}

static bool align(const struct made_up *made_up, struct trace_code *code)
{
	return trace_code_align(code, &made_up->trace.trace, &made_up->trace.layout, made_up->bytes, &exits);
}

/* Each piece is what it is said to be; returns what is known of them all. */
static struct trace_code expect(const struct made_up *made_up, const struct piece *pieces, size_t count)
{
	struct trace_code code;
	uint32_t offset = 0;

	assert_true(align(made_up, &code));
	assert_int_equal(code.count, count);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(code.pieces[i].offset, offset);
		assert_int_equal(code.pieces[i].ref, pieces[i].ref);
		offset += (uint32_t)pieces[i].length;
	}
	return code;
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* All of the trace is one segment. */
static void expect_whole(const struct instruction *instructions, uint32_t count, const struct piece *pieces,
			 size_t piece_count)
{
	struct made_up made_up;
	struct trace_code code;

	begin(&made_up, instructions, count);
	put_snapshot(&made_up.trace, FIRST, 0, NULL, 0);
	put_code(&made_up, pieces, piece_count);
	code = expect(&made_up, pieces, piece_count);
	trace_code_clear(&code);
	assert_null(code.pieces);
	assert_int_equal(code.count, 0);
}
#define EXPECT(instructions, pieces) expect_whole(instructions, COUNT(instructions), pieces, COUNT(pieces))

/* The machine instruction belongs to this IR instruction and not to the other, whichever comes first. */
static void expect_choice(const char *bytes, size_t length, struct instruction its, struct instruction other)
{
	const struct instruction one_way[] = { its, other }, other_way[] = { other, its };

	EXPECT(one_way, ((struct piece[]){ { bytes, length, FIRST } }));
	EXPECT(other_way, ((struct piece[]){ { bytes, length, FIRST + 1 } }));
}
#define CODE(bytes) bytes, sizeof(bytes) - 1

static void computations_belong_to_their_operators(void **state)
{
	static const struct {
		const char *bytes;
		size_t length;
		enum ir_op op;
	} known[] = {
		{ CODE("\xf2\x0f\x58\xd3"), IR_ADD },  { CODE("\x83\xc3\x01"), IR_ADDOV },
		{ CODE("\xf2\x0f\x5c\xd3"), IR_SUB },  { CODE("\xf2\x0f\x59\xd3"), IR_MUL },
		{ CODE("\xf2\x0f\x5e\xd3"), IR_DIV },  { CODE("\x0f\x57\xd3"), IR_NEG },
		{ CODE("\x0f\x54\xd3"), IR_ABS },      { CODE("\xf2\x0f\x5d\xd3"), IR_MIN },
		{ CODE("\xf2\x0f\x5f\xd3"), IR_MAX },  { CODE("\xf2\x0f\x51\xd3"), IR_FPMATH },
		{ CODE("\xf2\x0f\x2c\xdb"), IR_CONV }, { CODE("\x21\xeb"), IR_BAND },
		{ CODE("\x09\xeb"), IR_BOR },          { CODE("\x31\xeb"), IR_BXOR },
		{ CODE("\xf7\xd3"), IR_BNOT },         { CODE("\xc1\xe3\x03"), IR_BSHL },
		{ CODE("\xc1\xcb\x03"), IR_BROR },     { CODE("\x39\xeb"), IR_ULT },
		{ CODE("\x66\x0f\x2e\xd3"), IR_LT },   { CODE("\x85\xdb"), IR_EQ },
		{ CODE("\x8d\x5d\x08"), IR_AREF },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(known); i++)
		for (size_t j = 0; j < COUNT(known); j++) {
			const struct instruction its = { known[i].op, 0, 0, NONE, 0, 0 };
			const struct instruction other = { known[j].op, 0, 0, NONE, 0, 0 };
			bool is_sum = known[i].op == IR_ADD || known[i].op == IR_ADDOV ||
				      known[i].op == IR_AREF;
			bool is_comparison = known[i].op == IR_ULT || known[i].op == IR_LT ||
					     known[i].op == IR_EQ;

			if (i == j || (is_sum && (known[j].op == IR_ADD || known[j].op == IR_ADDOV)) ||
			    (known[i].op == IR_ADD && known[j].op == IR_AREF) ||
			    (is_comparison && (known[j].op == IR_ULT || known[j].op == IR_LT ||
					       known[j].op == IR_EQ || known[j].op == IR_CONV)) ||
			    ((known[i].op == IR_BSHL || known[i].op == IR_BROR) &&
			     (known[j].op == IR_BSHL || known[j].op == IR_BROR)))
				continue;
			expect_choice(known[i].bytes, known[i].length, its, other);
		}
}

static void a_result_is_in_its_register(void **state)
{
	const struct instruction none = { IR_ADD, 0, 0, NONE, 0, 0 }, in_xmm1 = { IR_ADD, 0, 0, XMM1, 0, 0 };

	(void)state;
	expect_choice(CODE("\xf2\x0f\x58\xcb"), in_xmm1, none);
	expect_choice(CODE("\xf2\x0f\x58\xcb"), in_xmm1, (struct instruction){ IR_ADD, 0, 0, XMM0, 0, 0 });
	expect_choice(CODE("\x89\xc8"), (struct instruction){ IR_CONV, 0, 0, RAX, 0, 0 },
		      (struct instruction){ IR_CONV, 0, 0, RCX, 0, 0 });
	/* What has neither a result nor an effect has no code. */
	expect_choice(CODE("\x89\xeb"), (struct instruction){ IR_ADD, 0, 0, RAX, 0, 0 },
		      (struct instruction){ IR_NOP, 0, 0, NONE, 0, 0 });
	expect_choice(CODE("\x89\xeb"), (struct instruction){ IR_EQ, 0, 0, NONE, 0, GUARD },
		      (struct instruction){ IR_USE, 0, 0, NONE, 0, 0 });
}

static void exits_belong_to_guards(void **state)
{
	const struct instruction guard = { IR_EQ, 0, 0, NONE, 0, GUARD | IRT_NUM };
	const struct instruction call = { IR_CALLN, 0, 0, NONE, 0, 0 }, add = { IR_ADD, 0, 0, NONE, 0, 0 };

	(void)state;
	expect_choice(CODE("\x0f\x85\xfa\x0f\x00\x00"), guard, add);
	expect_choice(CODE("\x0f\x85\xfa\x0f\x00\x00"), guard, call);
	expect_choice(CODE("\x0f\x85\xfa\x0f\x00\x00"), (struct instruction){ IR_LOOP, 0, 0, NONE, 0, 0 },
		      call);
	/* A call may end in an exit, a sum does not. */
	expect_choice(CODE("\x0f\x85\xfa\x0f\x00\x00"), call, add);
	/* A jump within the trace is no exit. */
	expect_choice(CODE("\x75\xfe"), (struct instruction){ IR_ADD, 0, 0, RAX, 0, 0 },
		      (struct instruction){ IR_NOP, 0, 0, NONE, 0, 0 });
}

static void calls_belong_to_what_may_call(void **state)
{
	static const enum ir_op callers[] = {
		IR_CALLN, IR_CALLA, IR_CALLL, IR_CALLS,  IR_CALLXS, IR_SNEW,  IR_XSNEW,  IR_TNEW,
		IR_TDUP,  IR_CNEW,  IR_CNEWI, IR_BUFPUT, IR_TOSTR,  IR_STRTO, IR_NEWREF, IR_FPMATH,
		IR_POW,   IR_MOD,   IR_OBAR,  IR_GCSTEP, IR_LDEXP,  IR_LOOP,
	};
	const struct instruction add = { IR_ADD, 0, 0, RAX, 0, 0 };

	(void)state;
	for (size_t i = 0; i < COUNT(callers); i++) {
		const struct instruction caller = { callers[i], 0, 0, NONE, 0, 0 };

		expect_choice(CODE("\xe8\xfb\x0f\x00\x00"), caller, add);
		expect_choice(CODE("\xe8\xfb\x0f\x00\x00"), caller,
			      (struct instruction){ IR_HREF, 0, 0, RAX, 0, 0 });
	}
	/* Division of 64-bit integers calls a function. */
	expect_choice(CODE("\xe8\xfb\x0f\x00\x00"), (struct instruction){ IR_DIV, 0, 0, NONE, 0, IRT_INT },
		      (struct instruction){ IR_DIV, 0, 0, NONE, 0, IRT_NUM });
	/* A search for a key, and a barrier, may do so out of line. */
	expect_choice(CODE("\xe8\xfb\x0f\x00\x00"), (struct instruction){ IR_HREF, 0, 0, NONE, 0, 0 }, add);
	expect_choice(CODE("\xe8\xfb\x0f\x00\x00"), (struct instruction){ IR_TBAR, 0, 0, NONE, 0, 0 }, add);
}

static void loads_of_slots_have_their_offset(void **state)
{
	const struct instruction slot_4 = { IR_SLOAD, 4, 0, RAX, 0, 0 },
				 slot_5 = { IR_SLOAD, 5, 0, RAX, 0, 0 };
	const struct instruction in_rcx = { IR_SLOAD, 4, 0, RCX, 0, 0 };
	const struct instruction load = { IR_FLOAD, 0, 0, NONE, 0, 0 };

	(void)state;
	/* BASE is in rdx, and slot 2 there. */
	expect_choice(CODE("\x48\x8b\x42\x10"), slot_4, slot_5);
	expect_choice(CODE("\x48\x8b\x42\x18"), slot_5, slot_4);
	expect_choice(CODE("\x48\x8b\x42\x10"), slot_4, in_rcx);
	expect_choice(CODE("\x83\x7a\x14\x01"), slot_4, slot_5);
	expect_choice(CODE("\x48\x8b\x43\x10"), load, slot_4);
	expect_choice(CODE("\x48\x89\x5a\x10"), (struct instruction){ IR_HSTORE, 0, 0, NONE, 0, 0 }, slot_4);
	/* Nothing but an address is computed. */
	expect_choice(CODE("\x48\x8d\x42\x10"), (struct instruction){ IR_AREF, 0, 0, RAX, 0, 0 }, slot_4);
}

static void stores_belong_to_stores(void **state)
{
	static const enum ir_op stores[] = { IR_ASTORE, IR_HSTORE, IR_USTORE, IR_FSTORE, IR_XSTORE };

	(void)state;
	for (size_t i = 0; i < COUNT(stores); i++) {
		const struct instruction store = { stores[i], 0, 0, NONE, 0, 0 };
		const struct instruction wide = { stores[i], WIDE, 0, NONE, 0, 0 };

		expect_choice(CODE("\x48\x89\x2b"), store,
			      (struct instruction){ IR_FLOAD, 0, 0, NONE, 0, 0 });
		expect_choice(CODE("\x89\x2b"), store, (struct instruction){ IR_ADD, 0, 0, RBP, 0, 0 });
		/* What is compared in memory stays there. */
		expect_choice(CODE("\x39\x2b"), (struct instruction){ IR_EQ, 0, 0, NONE, 0, 0 }, store);
		expect_choice(CODE("\xc7\x03\x56\x34\x12\x00"), wide, store);
		expect_choice(CODE("\xc7\x83\x56\x34\x12\x00\x07\x00\x00\x00"), wide, store);
	}
}

/* ra_save() and ra_restore(): results that are on the native stack. */
static void results_are_spilled_and_used_from_there(void **state)
{
	const struct instruction spilled = { IR_ADD, 0, 0, RAX, 2, 0 },
				 not_spilled = { IR_ADD, 0, 0, RAX, 0, 0 };
	const struct instruction uses[] = { { IR_CONV, 0, 0, NONE, 4, 0 },    { IR_SUB, 0, 0, NONE, 0, 0 },
					    { IR_SUB, FIRST, 0, NONE, 0, 0 }, { IR_SUB, 0, 0, NONE, 0, 0 },
					    { IR_SUB, 0, FIRST, NONE, 0, 0 }, { IR_SUB, 0, 0, NONE, 0, 0 } };

	(void)state;
	expect_choice(CODE("\x48\x89\x44\x24\x08"), spilled, not_spilled);
	expect_choice(CODE("\x48\x89\x44\x24\x08"), spilled, (struct instruction){ IR_ADD, 0, 0, RAX, 4, 0 });
	expect_choice(CODE("\x48\x89\x44\x24\x08"), spilled, (struct instruction){ IR_ADD, 0, 0, RCX, 2, 0 });
	expect_whole(uses, 4, ((struct piece[]){ IS("\x48\x8b\x5c\x24\x10", FIRST + 2) }), 1);
	expect_whole(uses, 6, ((struct piece[]){ IS("\x48\x8b\x5c\x24\x10", FIRST + 4) }), 1);
}

static void loads_belong_to_loads(void **state)
{
	static const enum ir_op loads[] = { IR_ALOAD, IR_HLOAD, IR_ULOAD, IR_FLOAD, IR_XLOAD, IR_VLOAD };
	const struct instruction other = { IR_CONV, 0, 0, RAX, 0, 0 };

	(void)state;
	for (size_t i = 0; i < COUNT(loads); i++) {
		expect_choice(CODE("\x48\x8b\x43\x08"), (struct instruction){ loads[i], 0, 0, RAX, 0, 0 },
			      other);
		expect_choice(CODE("\x83\x7b\x08\x07"),
			      (struct instruction){ loads[i], 0, 0, NONE, 0, GUARD }, other);
		/* One that only another register gets is not of this one. */
		expect_choice(CODE("\x48\x8b\x43\x08"), other,
			      (struct instruction){ loads[i], 0, 0, RCX, 0, 0 });
	}
}

static void operands_tell_instructions_apart(void **state)
{
	const struct instruction instructions[] = { { IR_CONV, 0, 0, XMM0, 0, 0 },
						    { IR_CONV, 0, 0, XMM1, 0, 0 },
						    { IR_ADD, FIRST, FIRST, NONE, 0, 0 },
						    { IR_ADD, FIRST + 1, FIRST, NONE, 0, 0 },
						    { IR_ADD, 0, 0, NONE, 0, 0 } };
	const struct instruction plain = { IR_BAND, 0, 0, NONE, 0, 0 },
				 wide = { IR_BAND, 0, WIDE, NONE, 0, 0 };

	(void)state;
	/* Each register that is read counts. */
	EXPECT(instructions, ((struct piece[]){ IS("\xf2\x0f\x58\xc8", FIRST + 3) }));
	EXPECT(instructions, ((struct piece[]){ IS("\xf2\x0f\x58\xf8", FIRST + 2) }));
	EXPECT(instructions, ((struct piece[]){ IS("\xf2\x0f\x58\xfe", FIRST + 4) }));
	/* And each constant that is large enough. */
	expect_choice(CODE("\x81\xe3\x56\x34\x12\x00"), wide, plain);
	expect_choice(CODE("\x23\x9d\x56\x34\x12\x00"), wide, plain);
}

/* asm_gc_check() at the start of a loop. */
static void a_step_of_the_collector_belongs_to_the_loop(void **state)
{
	const struct instruction instructions[] = { { IR_LOOP, 0, 0, NONE, 0, 0 },
						    { IR_CALLL, 0, 0, RAX, 0, GUARD } };
	const struct piece pieces[] = { IS("\xe8\xfb\x0f\x00\x00", FIRST), IS("\x85\xc0", FIRST),
					IS("\x0f\x85\xfa\x0f\x00\x00", FIRST) };
	const struct instruction called[] = { { IR_CALLL, 0, 0, RAX, 0, 0 },
					      { IR_EQ, 0, 0, NONE, 0, GUARD } };
	struct made_up made_up;
	struct trace_code code;

	(void)state;
	/* A comparison of what a call returns is none. */
	EXPECT(called, ((struct piece[]){ IS("\xe8\xfb\x0f\x00\x00", FIRST), IS("\x39\xc8", FIRST + 1),
					  IS("\x0f\x85\xfa\x0f\x00\x00", FIRST + 1) }));
	begin(&made_up, instructions, 2);
	put_snapshot(&made_up.trace, TRACE_REF_BASE, 0, NULL, 0);
	put_snapshot(&made_up.trace, FIRST, 0, NULL, 0);
	put_code(&made_up, pieces, 3);
	code = expect(&made_up, pieces, 3);
	assert_false(code.pieces[0].joins_loop); /* it begins the trace */
	assert_int_equal(code.pieces[0].low_snapshot, 1);
	trace_code_clear(&code);
}

static void code_keeps_the_order_of_the_ir(void **state)
{
	const struct instruction sums[] = { { IR_ADD, 0, 0, XMM0, 0, 0 },
					    { IR_ADD, 0, 0, XMM0, 0, 0 },
					    { IR_MUL, 0, 0, XMM0, 0, 0 } };
	const struct instruction guards[] = { { IR_LT, 0, 0, NONE, 0, GUARD | IRT_NUM },
					      { IR_EQ, 0, 0, NONE, 0, GUARD | IRT_NUM } };

	(void)state;
	/* Each sum is computed once; what is set up precedes its use. */
	EXPECT(sums, ((struct piece[]){ IS("\xf2\x0f\x58\xc3", FIRST), IS("\xf2\x0f\x58\xc3", FIRST + 1),
					IS("\xf2\x0f\x59\xc3", FIRST + 2) }));
	EXPECT(sums, ((struct piece[]){ IS("\xf2\x0f\x58\xc3", FIRST + 1), IS("\x0f\x28\xf5", FIRST + 2),
					IS("\xf2\x0f\x59\xc6", FIRST + 2) }));
	/* Two jumps follow a comparison of numbers. */
	EXPECT(guards,
	       ((struct piece[]){ IS("\x66\x0f\x2e\xc1", FIRST), IS("\x0f\x8a\xfa\x0f\x00\x00", FIRST),
				  IS("\x0f\x85\xfa\x0f\x00\x00", FIRST), IS("\x66\x0f\x2e\xc2", FIRST + 1),
				  IS("\x0f\x8a\xfa\x0f\x00\x00", FIRST + 1),
				  IS("\x0f\x85\xfa\x0f\x00\x00", FIRST + 1) }));
}

static const struct instruction three_sums[] = { { IR_ADD, 0, 0, XMM0, 0, 0 },
						 { IR_ADD, 0, 0, XMM0, 0, 0 },
						 { IR_ADD, 0, 0, XMM0, 0, 0 } };

/* Three sums, with the snapshot at the beginning that each trace has. */
static void begin_sums(struct made_up *made_up)
{
	begin(made_up, three_sums, 3);
	put_snapshot(&made_up->trace, FIRST, 0, NULL, 0);
}

/* SnapShot.mcofs: where the code of each begins. */
static void code_belongs_to_its_snapshot(void **state)
{
	static const uint32_t snapshots[] = { 0, 1, 1, 2, 2, 2 };
	const struct piece pieces[] = {
		IS("\x89\xeb", FIRST),
		IS("\x89\xeb", FIRST + 1),
		IS("\xf2\x0f\x58\xc3", FIRST + 1),
		IS("\x89\xeb", FIRST + 2),
		IS("\xf2\x0f\x58\xc3", FIRST + 2),
		IS("\xe9\xfb\x0f\x00\x00", FIRST + 2),
	};
	struct made_up made_up;
	struct trace_code code;

	(void)state;
	begin_sums(&made_up);
	put_snapshot(&made_up.trace, FIRST + 1, 2, NULL, 0);
	put_snapshot(&made_up.trace, FIRST + 2, 8, NULL, 0);
	/* One of inherited slots has no code, and no IR of its own. */
	put_snapshot(&made_up.trace, FIRST + 3, 99, NULL, 0);
	put_code(&made_up, pieces, COUNT(pieces));
	code = expect(&made_up, pieces, COUNT(pieces));
	for (size_t i = 0; i < COUNT(pieces); i++) {
		assert_int_equal(code.pieces[i].low_snapshot, snapshots[i]);
		assert_int_equal(code.pieces[i].high_snapshot, snapshots[i]);
	}
	trace_code_clear(&code);
	/* The tail's check of the stack's size is behind all IR. */
	begin_sums(&made_up);
	put_snapshot(&made_up.trace, FIRST + 3, 14, NULL, 0);
	put_code(&made_up, pieces, COUNT(pieces));
	assert_true(align(&made_up, &code));
	assert_int_equal(code.pieces[4].low_snapshot, 0);
	assert_int_equal(code.pieces[5].low_snapshot, 1);
	assert_int_equal(code.pieces[5].ref, FIRST + 2);
	trace_code_clear(&code);
}

/* Builds without mcofs: exits tell between which snapshots code is. */
static void exits_tell_the_snapshots_of_code(void **state)
{
	static const struct {
		uint32_t low, high;
	} bounds[] = { { 0, 2 }, { 0, 2 }, { 0, 2 }, { 2, 2 }, { 2, 2 },
		       { 2, 2 }, { 2, 3 }, { 2, 3 }, { 2, 3 } };
	const struct piece pieces[] = {
		/*
		 * The head: its check of the stack uses an exit of the parent, and it stores the trace's
		 * number.
		 */
		IS("\x0f\x85\xfa\x3f\x00\x00", 0),
		IS("\x41\xc7\x46\x08\x01\x00\x00\x00", 0),
		IS("\x89\xeb", 0),
		IS("\x0f\x85\xfa\x2f\x00\x00", 0),
		IS("\x89\xeb", 0),
		IS("\x0f\x85\xfa\x2f\x00\x00", 0),
		/* Exits do not go back, nor to a snapshot that is not there. */
		IS("\x0f\x85\xfa\x1f\x00\x00", 0),
		IS("\x89\xeb", 0),
		IS("\x0f\x85\xfa\x4f\x00\x00", 0),
	};
	struct made_up made_up;
	struct trace_code code;

	(void)state;
	begin(&made_up, three_sums, 3);
	made_up.trace.layout.SnapShot_mcofs = LAYOUT_ABSENT;
	for (uint32_t i = 0; i < 4; i++)
		put_snapshot(&made_up.trace, FIRST + i, 0, NULL, 0);
	put_code(&made_up, pieces, COUNT(pieces));
	assert_true(align(&made_up, &code));
	assert_int_equal(code.count, COUNT(pieces));
	for (size_t i = 0; i < COUNT(pieces); i++) {
		assert_int_equal(code.pieces[i].low_snapshot, bounds[i].low);
		assert_int_equal(code.pieces[i].high_snapshot, bounds[i].high);
	}
	trace_code_clear(&code);
}

/* asm_head_root() stores the trace's number, then loads what stays in registers. */
static void the_head_is_of_base(void **state)
{
	const struct piece pieces[] = {
		IS("\x39\xeb", TRACE_REF_BASE),
		IS("\x41\xc7\x46\x08\x01\x00\x00\x00", TRACE_REF_BASE),
		IS("\x49\x8b\x56\x50", TRACE_REF_BASE),
		IS("\xf2\x0f\x10\x44\x24\x08", TRACE_REF_BASE),
		IS("\xf2\x0f\x58\xc3", FIRST + 2),
		IS("\xf2\x0f\x10\x44\x24\x08", FIRST + 2),
	};
	const struct piece of_another[] = { IS("\x41\xc7\x46\x08\x02\x00\x00\x00", FIRST + 2),
					    IS("\xf2\x0f\x58\xc3", FIRST + 2) };

	(void)state;
	EXPECT(three_sums, pieces);
	/* Of a side trace, it may begin with the store. */
	expect_whole(three_sums, 3, pieces + 1, COUNT(pieces) - 1);
	EXPECT(three_sums, of_another);
}

static void a_return_to_a_lower_frame_lowers_base(void **state)
{
	static const uint32_t lowered[] = { 0, 0, 1, 1, 1, 1, 1, 2 };
	const struct piece pieces[] = {
		IS("\x48\x83\xc2\xf0", 0),
		IS("\x49\x89\x56\x50", 0),
		IS("\x48\x83\xc2\x10", 0),
		IS("\x49\x89\x56\x50", 0),
		IS("\x48\x83\xc2\xf0", 0),
		IS("\x49\x89\x56\x58", 0),
		IS("\x48\x83\xc2\xf8\x49\x89\x56\x50", 0),
		IS("\x90", 0),
	};
	struct made_up made_up;
	struct trace_code code;

	(void)state;
	begin_sums(&made_up);
	put_code(&made_up, pieces, COUNT(pieces));
	assert_true(align(&made_up, &code));
	assert_int_equal(code.count, COUNT(pieces) + 1);
	for (size_t i = 0; i < COUNT(pieces) - 1; i++)
		assert_int_equal(code.pieces[i].lowered, lowered[i]);
	assert_int_equal(code.pieces[COUNT(pieces) - 1].lowered, 1);
	assert_int_equal(code.pieces[COUNT(pieces)].lowered, 2);
	trace_code_clear(&code);
}

/* asm_tail_link() */
static void the_tail_may_move_base(void **state)
{
	const struct piece pieces[] = { IS("\x48\x83\xc2\x10", 0), IS("\x49\x89\x56\x50", 0),
					IS("\x89\xeb", 0), IS("\xe9\xfb\x0f\x00\x00", 0), IS("\x90", 0) };
	struct made_up made_up;
	struct trace_code code;

	(void)state;
	begin_sums(&made_up);
	for (size_t count = 3; count <= COUNT(pieces); count++) {
		put_code(&made_up, pieces, count);
		assert_true(align(&made_up, &code));
		for (size_t i = 0; i < count; i++)
			assert_int_equal(code.pieces[i].base_is_moved, count > 3 && i >= 2);
		trace_code_clear(&code);
	}
	/* Without the store, it is not moved. */
	put_code(&made_up, pieces + 1, COUNT(pieces) - 1);
	assert_true(align(&made_up, &code));
	assert_false(code.pieces[COUNT(pieces) - 2].base_is_moved);
	trace_code_clear(&code);
}

static void pieces_tell_how_long_they_take(void **state)
{
	static const struct {
		bool is_quick, is_after_slow;
	} known[] = { { false, false }, { true, false }, { false, false }, { true, true },
		      { false, false }, { true, false }, { false, false }, { false, false } };
	const struct piece pieces[] = {
		IS("\x89\xc8", 0), /* reached from elsewhere */
		IS("\x89\xc8", 0),     IS("\xf2\x0f\x5e\xc3", 0),
		IS("\x8d\x41\x08", 0), IS("\x8b\x41\x08", 0),
		IS("\xeb\x00", 0),     IS("\x89\xc8", 0), /* another jump's target */
		IS("\x0f\xaf\xc1", 0),
	};
	struct made_up made_up;
	struct trace_code code;

	(void)state;
	begin_sums(&made_up);
	put_code(&made_up, pieces, COUNT(pieces));
	assert_true(align(&made_up, &code));
	for (size_t i = 0; i < COUNT(pieces); i++) {
		assert_int_equal(code.pieces[i].is_quick, known[i].is_quick);
		assert_int_equal(code.pieces[i].is_after_slow, known[i].is_after_slow);
	}
	trace_code_clear(&code);
}

/* Its time is its own: by the jump, the piece before it has not run. */
static void a_piece_that_is_jumped_to_has_no_piece_before_it(void **state)
{
	const struct piece forwards[] = {
		IS("\xeb\x02", 0), /* over one */
		IS("\x89\xc8", 0),
		IS("\x89\xc8", 0),
		IS("\x89\xc8", 0),
	};
	const struct piece backwards[] = {
		IS("\x89\xc8", 0), IS("\x89\xc8", 0), IS("\x89\xc8", 0),
		IS("\xeb\xfc", 0), /* to the one before */
	};
	static const bool is_quick[][COUNT(forwards)] = { { false, false, false, true },
							  { false, true, false, true } };
	const struct piece *const pieces[] = { forwards, backwards };
	struct made_up made_up;
	struct trace_code code;

	(void)state;
	for (size_t i = 0; i < COUNT(pieces); i++) {
		begin_sums(&made_up);
		put_code(&made_up, pieces[i], COUNT(forwards));
		assert_true(align(&made_up, &code));
		assert_int_equal(code.count, COUNT(forwards));
		for (size_t j = 0; j < COUNT(forwards); j++)
			assert_int_equal(code.pieces[j].is_quick, is_quick[i][j]);
		trace_code_clear(&code);
	}
}

/* asm_loop(): what moves values to where the loop has them. */
static void the_loop_begins_with_moves(void **state)
{
	static const bool joins[] = { false, true, true, true, true, false, false };
	const struct instruction instructions[] = { { IR_ADD, 0, 0, XMM0, 0, 0 },
						    { IR_LOOP, 0, 0, NONE, 0, 0 },
						    { IR_ADD, 0, 0, XMM0, 0, 0 },
						    { IR_ADD, 0, 0, XMM1, 0, 0 } };
	const struct piece pieces[] = {
		IS("\x0f\x28\xe5", 0),         IS("\x0f\x28\xe5", 0),     IS("\x48\x89\x5c\x24\x08", 0),
		IS("\x48\x8b\x5c\x24\x08", 0), IS("\x49\x8b\x5e\x08", 0), IS("\x48\x8b\x5d\x08", 0),
		IS("\x0f\x28\xe5", 0),
	};
	static const struct piece others[] = {
		IS("\xf2\x0f\x58\xc3", 0),
		IS("\x48\x89\x5d\x08", 0),
		IS("\x0f\x85\xfa\x0f\x00\x00", 0),
		IS("\xe8\xfb\x0f\x00\x00", 0),
	};
	struct made_up made_up;
	struct trace_code code;

	(void)state;
	begin(&made_up, instructions, 4);
	put_snapshot(&made_up.trace, FIRST, 0, NULL, 0);
	put_snapshot(&made_up.trace, FIRST + 1, 3, NULL, 0);
	put_code(&made_up, pieces, COUNT(pieces));
	assert_true(align(&made_up, &code));
	for (size_t i = 0; i < COUNT(pieces); i++)
		assert_int_equal(code.pieces[i].joins_loop, joins[i]);
	trace_code_clear(&code);
	for (size_t i = 0; i < COUNT(others); i++) {
		put_code(&made_up, ((struct piece[]){ pieces[0], others[i], pieces[1] }), 3);
		assert_true(align(&made_up, &code));
		assert_false(code.pieces[1].joins_loop);
		assert_false(code.pieces[2].joins_loop);
		trace_code_clear(&code);
	}
}

static void code_of_no_sense_is_not_aligned(void **state)
{
	const struct piece piece = IS("\xf2\x0f\x58\xc3", 0), no_code = IS("\x06\x06", 0);
	struct made_up made_up;
	struct trace_code code;

	(void)state;
	begin(&made_up, three_sums, 3);
	put_code(&made_up, &piece, 1);
	/* Without a snapshot. */
	assert_false(align(&made_up, &code));
	assert_null(code.pieces);
	put_snapshot(&made_up.trace, FIRST, 0, NULL, 0);
	assert_true(align(&made_up, &code));
	trace_code_clear(&code);
	/* Without instructions, or with some that are not there. */
	trace_put(&made_up.trace, made_up.trace.layout.GCtrace_nins, TRACE_REF_BASE, 4);
	assert_false(align(&made_up, &code));
	trace_put(&made_up.trace, made_up.trace.layout.GCtrace_nins, FIRST + 2000, 4);
	assert_false(align(&made_up, &code));
	/* Without code. */
	begin_sums(&made_up);
	put_code(&made_up, &no_code, 1);
	assert_false(align(&made_up, &code));
	/* A snapshot of instructions that are not there. */
	begin_sums(&made_up);
	put_snapshot(&made_up.trace, FIRST + 4, 2, NULL, 0);
	put_code(&made_up, ((struct piece[]){ piece, piece }), 2);
	assert_false(align(&made_up, &code));
	assert_null(code.pieces);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(computations_belong_to_their_operators),
		cmocka_unit_test(a_result_is_in_its_register),
		cmocka_unit_test(exits_belong_to_guards),
		cmocka_unit_test(calls_belong_to_what_may_call),
		cmocka_unit_test(loads_of_slots_have_their_offset),
		cmocka_unit_test(stores_belong_to_stores),
		cmocka_unit_test(results_are_spilled_and_used_from_there),
		cmocka_unit_test(loads_belong_to_loads),
		cmocka_unit_test(operands_tell_instructions_apart),
		cmocka_unit_test(a_step_of_the_collector_belongs_to_the_loop),
		cmocka_unit_test(code_keeps_the_order_of_the_ir),
		cmocka_unit_test(code_belongs_to_its_snapshot),
		cmocka_unit_test(exits_tell_the_snapshots_of_code),
		cmocka_unit_test(the_head_is_of_base),
		cmocka_unit_test(a_return_to_a_lower_frame_lowers_base),
		cmocka_unit_test(the_tail_may_move_base),
		cmocka_unit_test(pieces_tell_how_long_they_take),
		cmocka_unit_test(a_piece_that_is_jumped_to_has_no_piece_before_it),
		cmocka_unit_test(the_loop_begins_with_moves),
		cmocka_unit_test(code_of_no_sense_is_not_aligned),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

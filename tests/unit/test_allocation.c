/* SPDX-License-Identifier: MIT */
/* What code that LuaJIT runs after a call of g->allocf says of the new memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "luajit-layouts/field.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/range_bytes.h"
#include "unwind/allocation/allocated.h"
#include "unwind/allocation/allocation.h"
#include "unwind/jit/traces.h"
#include "unwind/lua/luajit.h"

/*
 * LuaJIT's module: rax is the new memory, rbx what refers to it, r12 the global_State, r13 the size, r14 the
 * type of the object, r15 and rbp what else is stored. Offsets are those of the layout below.
 */
#define ADD_TO_TOTAL "mov 0x10(%r12), %rcx\nadd %r13, %rcx\nmov %rcx, 0x10(%r12)\n"
#define LIST "mov %rax, 0x20(%r12)\n"
#define SET_TYPE "mov %r14b, 9(%rax)\n"
#define NOPS(count) ".rept " count "\nnop\n.endr\n"
#define PIECES(X) \
	X(adds_only, ADD_TO_TOTAL) \
	X(adds_32_bits, "mov 0x10(%r12), %ecx\nadd %r13d, %ecx\nmov %ecx, 0x10(%r12)\n") \
	X(makes_object, ADD_TO_TOTAL SET_TYPE) \
	X(lists_object, ADD_TO_TOTAL LIST SET_TYPE "mov %bpl, 10(%rax)\nmov %r15, 0x20(%rax)\n") \
	X(lists_behind, ADD_TO_TOTAL "add %r15, %rax\n" LIST SET_TYPE) \
	X(lists_cdata, ADD_TO_TOTAL LIST SET_TYPE "mov %r15w, 10(%rax)\n") \
	X(lists_for_a_trace, ADD_TO_TOTAL LIST) \
	X(grows_array, ADD_TO_TOTAL "mov %rax, 0x10(%rbx)\nmov %r15d, 0x30(%rbx)\n") \
	X(frees_old_array, "mov %rbp, %rax\njmp grows_array\n") \
	X(grows_array_behind, ADD_TO_TOTAL "add %rbp, %rax\nmov %rax, 0x10(%rbx)\nmov %r15d, 0x30(%rbx)\n") \
	X(makes_chunk, "mov %r15, 8(%rax)\n" ADD_TO_TOTAL "add $16, %rax\n" SET_TYPE) \
	X(lists_behind_chunk, "mov %r15, 8(%rax)\n" ADD_TO_TOTAL "add $24, %rax\n" LIST SET_TYPE) \
	X(grows_hash, ADD_TO_TOTAL "mov %rax, 0x28(%rbx)\nmov %r15d, 0x34(%rbx)\n") \
	X(grows_stack, ADD_TO_TOTAL "mov %rax, 0x38(%rbx)\nmov %r15, 0x40(%rbx)\n") \
	X(grows_string_table, ADD_TO_TOTAL "mov %rax, 0x80(%r12)\n") \
	X(takes_half, ADD_TO_TOTAL "mov %eax, 0x10(%rbx)\nmov %r15d, 0x30(%rbx)\n") \
	X(adds_what_is_unknown, "mov (%r15), %r13\n" ADD_TO_TOTAL) \
	X(asks_what_is_unknown, "mov (%r15), %rcx\ntest %rcx, %rcx\nje 1f\n" ADD_TO_TOTAL "1:\n") \
	X(adds_constant, "mov 1f(%rip), %r13\n" ADD_TO_TOTAL "ret\n1: .quad 40\n") \
	X(adds_in_time, NOPS("61") ADD_TO_TOTAL) \
	X(adds_late, NOPS("62") ADD_TO_TOTAL) \
	X(sets_type, SET_TYPE) \
	X(sets_type_first, ADD_TO_TOTAL "jmp sets_type\n") \
	X(types_in_time, ADD_TO_TOTAL NOPS("508") SET_TYPE) \
	X(types_late, ADD_TO_TOTAL NOPS("509") SET_TYPE) \
	X(loops, "jmp loops\n")
#define PIECE(name, code) #name ":\n" code "ret\n"
#define DECLARE(name, code) extern const uint8_t name[] __attribute__((visibility("hidden")));

__asm__(".text\n"
	"module_begin:\n" PIECES(PIECE) /* The interpreter is a part of its module; a trace is not. */
	"interpreter: ud2\n"
	"interpreter_end:\n"
	".zero 16, 0x90\n"
	"module_end:\n"
	"trace_begin: mov %r15w, 10(%rax)\n" SET_TYPE /* of what lists_for_a_trace has listed */
	"nop\n"
	"trace_end:\n");

PIECES(DECLARE)
DECLARE(module_begin, )
DECLARE(interpreter, )
DECLARE(interpreter_end, )
DECLARE(module_end, )
DECLARE(trace_begin, )
DECLARE(trace_end, )

enum {
	WORD = 8,
	COPY_AT = 0x20000, /* what was captured: the native stack, and a global_State */
	COPY_WORDS = 64,
	STACK_AT = COPY_AT + 0x100,
	STACK_END = COPY_AT + 0x180,
	G = COPY_AT,
	OTHER_G = COPY_AT + 0x180,
	TOTAL = 100000,
	TABLE = 0x70000,
	NOT_CAPTURED = 0x90000,
	FRAMES = 16,
};

static struct vm_code vm, other_vm;
static struct global_state global = { .g = G, .vm = &vm }, other_global = { .g = OTHER_G, .vm = &vm };
static uint64_t copy_words[COPY_WORDS];
static struct capture capture;
static struct image *image;
static struct module *module;

static uint64_t address_of(const uint8_t *code)
{
	return (uint64_t)(uintptr_t)code;
}

static void read_module(struct memory *memory, struct memory_range *ranges, size_t count)
{
	(void)memory;
	/* Pages of it are read whole. */
	for (size_t i = 0; i < count; i++) {
		memcpy(ranges[i].copy, (const void *)(uintptr_t)ranges[i].address, ranges[i].length);
		ranges[i].status = MEMORY_OK;
	}
}

static void read_copy(struct memory *memory, struct memory_range *ranges, size_t count)
{
	(void)memory;
	range_bytes(ranges, count, COPY_AT, copy_words, sizeof(copy_words));
}

static struct memory live = { .read_ranges = read_module }, copy = { .read_ranges = read_copy };

INSTEAD_OF(snapshot_memory);
struct memory *__wrap_snapshot_memory(struct snapshot *snapshot)
{
	(void)snapshot;
	return &copy;
}

INSTEAD_OF(lua_objects_proto_of_pc);
const struct proto *__wrap_lua_objects_proto_of_pc(struct lua_objects *objects, uint64_t pc)
{
	(void)objects;
	(void)pc;
	return NULL;
}

static struct trace trace;

INSTEAD_OF(traces_find);
const struct trace *__wrap_traces_find(const struct traces *traces, uint64_t pc)
{
	assert_ptr_equal(traces, global.traces);
	return pc - trace.mcode < trace.szmcode ? &trace : NULL;
}

INSTEAD_OF(traces_code);
const uint8_t *__wrap_traces_code(const struct traces *traces, const struct trace *of)
{
	(void)traces;
	(void)of;
	return trace_begin;
}

/* The native stack: the allocator's frames, then LuaJIT's. */
static struct native_unwinder {
	struct native_frame frames[FRAMES];
	size_t count, at;
} native;

INSTEAD_OF(native_begin);
void __wrap_native_begin(struct native_unwinder *unwinder, struct memory *stack, const struct registers *leaf)
{
	assert_ptr_equal(stack, &copy);
	assert_ptr_equal(leaf, &capture.registers);
	unwinder->at = 0;
}

INSTEAD_OF(native_current);
const struct native_frame *__wrap_native_current(const struct native_unwinder *unwinder)
{
	return &unwinder->frames[unwinder->at];
}

INSTEAD_OF(native_step);
enum native_status __wrap_native_step(struct native_unwinder *unwinder)
{
	return ++unwinder->at < unwinder->count ? NATIVE_FRAME : NATIVE_END;
}

static struct vm_decoder *decoder;

static int begin(void **state)
{
	(void)state;
	vm = (struct vm_code){ .begin = address_of(interpreter), .end = address_of(interpreter_end) };
	vm.layout = (struct layout){ .gc64 = true,
				     .GChead_gct = 9,
				     .GCfunc_ffid = 10,
				     .GCfunc_pc = 0x20,
				     .GCproto_size = 0x60,
				     .GCtab_array = 0x10,
				     .GCtab_node = 0x28,
				     .GCtab_asize = 0x30,
				     .GCtab_hmask = 0x34,
				     .L_stack = 0x38,
				     .L_maxstack = 0x40,
				     .g_gc_total = 0x10,
				     .g_gc_root = 0x20,
				     .g_strhash = 0x80 };
	other_vm = vm;
	module = calloc(1, sizeof(*module));
	image = image_new(&live);
	decoder = vm_decoder_new();
	if (!module || !image || !decoder)
		return -1;
	*module = (struct module){ .begin = address_of(module_begin),
				   .end = address_of(module_end),
				   .base = address_of(module_begin),
				   .vm = &vm };
	image_set_modules(image, module, 1);
	global = (struct global_state){ .g = G, .vm = &vm };
	other_global = (struct global_state){ .g = OTHER_G, .vm = &vm };
	trace = (struct trace){ .mcode = 0 };
	memset(copy_words, 0, sizeof(copy_words));
	copy_words[(G + 0x10 - COPY_AT) / WORD] = TOTAL;
	copy_words[(OTHER_G + 0x10 - COPY_AT) / WORD] = 2 * TOTAL;
	copy_words[(STACK_AT - COPY_AT) / WORD] = address_of(interpreter);
	capture = (struct capture){ .stack_begin = STACK_AT, .stack_end = STACK_END, .global_count = 2 };
	capture.globals[0] = (struct global_view){ .global = &other_global, .gc_total = 2 * TOTAL };
	capture.globals[1] = (struct global_view){ .global = &global, .gc_total = TOTAL };
	native = (struct native_unwinder){ .count = 1 };
	return 0;
}

static int end(void **state)
{
	(void)state;
	vm_decoder_free(decoder);
	image_free(image);
	return 0;
}

/* What is in LuaJIT's registers where the call of g->allocf returns to this code. */
static struct registers *returns_to(const uint8_t *code)
{
	struct native_frame *frame = &native.frames[native.count - 1];

	*frame = (struct native_frame){ .is_return_address = true, .code = CODE_NATIVE, .module = module };
	frame->registers = (struct registers){
		.pc = address_of(code), .sp = STACK_AT, .rbx = TABLE, .r12 = G, .r13 = 40
	};
	return &frame->registers;
}

static struct allocation allocation;

static bool is_told(void)
{
	const struct allocation_source source = {
		.capture = &capture, .image = image, .native = &native, .decoder = decoder
	};

	allocation = (struct allocation){ .bytes = 77 };
	return allocation_in_flight(&source, &allocation);
}

/* All that is told of it. */
static void assert_allocation(enum allocation_kind kind, uint64_t table)
{
	assert_true(is_told());
	assert_int_equal(allocation.kind, kind);
	assert_int_equal(allocation.bytes, 40);
	assert_int_equal(allocation.table, table);
	assert_false(allocation.is_first_part);
	assert_ptr_equal(allocation.global, &global);
}

static void assert_untold(void)
{
	assert_false(is_told());
	assert_int_equal(allocation.bytes, 77);
}

/*---- Objects ----*/

static void objects_are_told_by_their_types(void **state)
{
	static const struct {
		uint8_t gct;
		enum allocation_kind kind;
	} types[] = {
		{ GCT_STRING, ALLOCATION_STRING },     { GCT_UPVALUE, ALLOCATION_UPVALUE },
		{ GCT_THREAD, ALLOCATION_THREAD },     { GCT_PROTO, ALLOCATION_PROTO },
		{ GCT_FUNCTION, ALLOCATION_FUNCTION }, { GCT_TRACE, ALLOCATION_TRACE },
		{ GCT_CDATA, ALLOCATION_CDATA },       { GCT_TABLE, ALLOCATION_TABLE },
		{ GCT_USERDATA, ALLOCATION_USERDATA },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		returns_to(makes_object)->r14 = types[i].gct;
		assert_allocation(types[i].kind, 0);
		assert_int_equal(allocation.prototype, 0);
		returns_to(lists_object)->r14 = types[i].gct;
		assert_allocation(types[i].kind, 0);
	}
	returns_to(makes_object)->r14 = GCT_STRING - 1;
	assert_allocation(ALLOCATION_OTHER, 0);
	returns_to(makes_object)->r14 = GCT_USERDATA + 1;
	assert_allocation(ALLOCATION_OTHER, 0);
}

static void a_function_in_lua_has_its_prototype(void **state)
{
	struct registers *registers = returns_to(lists_object);

	(void)state;
	registers->r14 = GCT_FUNCTION;
	registers->rbp = FF_LUA;
	registers->r15 = 0x5060;
	assert_allocation(ALLOCATION_FUNCTION, 0);
	assert_int_equal(allocation.prototype, 0x5000);
	registers->r15 = 0x60; /* nothing is there */
	assert_allocation(ALLOCATION_FUNCTION, 0);
	assert_int_equal(allocation.prototype, 0);
	registers->r15 = 0x61;
	assert_allocation(ALLOCATION_FUNCTION, 0);
	assert_int_equal(allocation.prototype, 1);
	registers->r15 = 0x5060;
	registers->rbp = FF_C;
	assert_allocation(ALLOCATION_FUNCTION, 0);
	assert_int_equal(allocation.prototype, 0);
	registers->rbp = FF_LUA;
	registers->r14 = GCT_TABLE;
	assert_allocation(ALLOCATION_TABLE, 0);
	assert_int_equal(allocation.prototype, 0);
}

static void a_cdata_has_its_type(void **state)
{
	struct registers *registers = returns_to(lists_cdata);

	(void)state;
	registers->r14 = GCT_CDATA;
	registers->r15 = 0x12345;
	assert_allocation(ALLOCATION_CDATA, 0);
	assert_int_equal(allocation.ctype, 0x2345);
	registers->r14 = GCT_TABLE;
	assert_allocation(ALLOCATION_TABLE, 0);
	assert_int_equal(allocation.ctype, 0);
}

/* In front of a cdata may be its length. */
static void an_object_may_lie_behind_the_begin_of_its_memory(void **state)
{
	enum { BEFORE_MAX = 512 };
	struct registers *registers = returns_to(lists_behind);

	(void)state;
	registers->r14 = GCT_CDATA;
	registers->r15 = 16;
	assert_allocation(ALLOCATION_CDATA, 0);
	registers->r15 = BEFORE_MAX - 1;
	assert_allocation(ALLOCATION_CDATA, 0);
	registers->r15 = BEFORE_MAX;
	assert_allocation(ALLOCATION_OTHER, 0);
	registers->r15 = (uint64_t)-16;
	assert_allocation(ALLOCATION_OTHER, 0);
}

static void a_trace_writes_a_cdata_itself(void **state)
{
	struct registers *registers = returns_to(lists_for_a_trace);

	(void)state;
	trace = (struct trace){ .mcode = 0x80000, .szmcode = (uint32_t)(trace_end - trace_begin) };
	global.traces = (struct traces *)(uintptr_t)0x1234;
	copy_words[(STACK_AT - COPY_AT) / WORD] = trace.mcode;
	registers->r14 = GCT_CDATA;
	registers->r15 = 5;
	assert_allocation(ALLOCATION_CDATA, 0);
	assert_int_equal(allocation.ctype, 5);
	/* Without the trace, it can be nothing else. */
	trace.szmcode = 0;
	assert_allocation(ALLOCATION_CDATA, 0);
	assert_int_equal(allocation.ctype, 0);
	global.traces = NULL;
	assert_allocation(ALLOCATION_CDATA, 0);
	assert_int_equal(allocation.ctype, 0);
}

/*---- Parts ----*/

static void parts_are_told_by_what_refers_to_them(void **state)
{
	(void)state;
	returns_to(grows_array);
	assert_allocation(ALLOCATION_ARRAY, TABLE);
	returns_to(grows_hash);
	assert_allocation(ALLOCATION_HASH, TABLE);
	returns_to(grows_stack);
	assert_allocation(ALLOCATION_STACK, 0);
	returns_to(grows_string_table);
	assert_allocation(ALLOCATION_STRING_TABLE, 0);
	returns_to(adds_only);
	assert_allocation(ALLOCATION_OTHER, 0);
	returns_to(takes_half); /* no reference is so short */
	assert_allocation(ALLOCATION_OTHER, 0);
}

/* The thread was in mmap() or mremap(), and the allocator puts 16 bytes in front of what that returns. */
static void memory_from_the_kernel_begins_with_a_header(void **state)
{
	enum { IN_USE = 2, FLAGS = 7 };
	struct registers *registers;

	(void)state;
	for (uint64_t header = 8; header <= 24; header += 8) {
		registers = returns_to(grows_array_behind);
		registers->rbp = header;
		assert_allocation(header == 16 ? ALLOCATION_ARRAY : ALLOCATION_OTHER,
				  header == 16 ? TABLE : 0);
	}
	registers = returns_to(makes_chunk);
	registers->r14 = GCT_STRING;
	registers->r15 = 56 | FLAGS;
	assert_allocation(ALLOCATION_STRING, 0);
	registers->r15 = 40 | IN_USE;
	assert_allocation(ALLOCATION_STRING, 0);
	registers->r15 = 32 | FLAGS; /* too small */
	assert_allocation(ALLOCATION_OTHER, 0);
	registers->r15 = 56; /* free */
	assert_allocation(ALLOCATION_OTHER, 0);
	registers = returns_to(
		lists_behind_chunk); /* what is before a cdata of variable length comes in between */
	registers->r14 = GCT_CDATA;
	registers->r15 = 56 | FLAGS;
	assert_allocation(ALLOCATION_CDATA, 0);
}

/* The thread was in a call with which realloc() frees the old part: the new one is there already. */
static void a_part_is_told_while_the_old_one_is_freed(void **state)
{
	(void)state;
	returns_to(frees_old_array)->rbp = 0x50000;
	assert_allocation(ALLOCATION_ARRAY, TABLE);
}

/* LuaJIT keeps it in a local variable meanwhile. */
static void what_is_stored_on_the_native_stack_is_no_part(void **state)
{
	(void)state;
	returns_to(grows_array)->rbx = STACK_AT;
	assert_allocation(ALLOCATION_OTHER, 0);
	returns_to(grows_array)->rbx = STACK_END - 0x10;
	assert_allocation(ALLOCATION_ARRAY, STACK_END - 0x10);
}

/*---- How much ----*/

static void only_what_grows_is_an_allocation(void **state)
{
	(void)state;
	returns_to(adds_only)->r13 = 1;
	assert_true(is_told());
	assert_int_equal(allocation.bytes, 1);
	returns_to(adds_only)->r13 = 0;
	assert_untold();
	returns_to(adds_only)->r13 = (uint64_t)-8;
	assert_untold();
	returns_to(adds_only)->r13 = (uint64_t)5 << 32;
	assert_true(is_told());
	assert_int_equal(allocation.bytes, (uint64_t)5 << 32);
}

static void without_gc64_the_total_has_32_bits(void **state)
{
	(void)state;
	returns_to(adds_32_bits);
	assert_allocation(ALLOCATION_OTHER, 0);
	returns_to(adds_32_bits)->r13 = (uint32_t)-8;
	assert_untold();
	/* It may pass their end. */
	capture.globals[1].gc_total = UINT32_MAX - 7;
	copy_words[(G + 0x10 - COPY_AT) / WORD] = UINT32_MAX - 7;
	returns_to(adds_32_bits);
	assert_allocation(ALLOCATION_OTHER, 0);
}

static void the_total_is_that_of_a_known_state_of_the_vm(void **state)
{
	(void)state;
	returns_to(adds_only)->r12 = OTHER_G;
	assert_true(is_told());
	assert_ptr_equal(allocation.global, &other_global);
	assert_int_equal(allocation.bytes, 40);
	returns_to(adds_only);
	global.vm = &other_vm;
	assert_untold();
	global.vm = &vm;
	capture.global_count = 1;
	assert_untold();
	capture.global_count = 2;
	assert_allocation(ALLOCATION_OTHER, 0);
}

static void what_is_unknown_is_not_guessed(void **state)
{
	(void)state;
	returns_to(adds_what_is_unknown)->r15 = NOT_CAPTURED;
	assert_untold();
	returns_to(asks_what_is_unknown)->r15 = NOT_CAPTURED;
	assert_untold();
	returns_to(asks_what_is_unknown)->r15 = G + 0x10;
	assert_allocation(ALLOCATION_OTHER, 0);
	/* Constants do not change: they need not be captured. */
	returns_to(adds_constant)->r13 = 0;
	assert_allocation(ALLOCATION_OTHER, 0);
}

static void code_that_adds_nothing_soon_is_not_followed(void **state)
{
	(void)state;
	returns_to(loops);
	assert_untold();
	returns_to(adds_late);
	assert_untold();
	returns_to(adds_in_time);
	assert_allocation(ALLOCATION_OTHER, 0);
}

/*---- Where the code goes on ----*/

/* So many steps after the call it is still told what is allocated, and no more steps. */
static void code_is_followed_to_the_interpreter_for_so_long(void **state)
{
	(void)state;
	returns_to(types_in_time)->r14 = GCT_TABLE;
	assert_allocation(ALLOCATION_TABLE, 0);
	returns_to(types_late)->r14 = GCT_TABLE;
	assert_allocation(ALLOCATION_OTHER, 0);
}

/* From its first instruction on, up to its end. */
static void the_interpreters_code_is_not_run(void **state)
{
	(void)state;
	returns_to(adds_only)->r14 = GCT_TABLE;
	vm.begin = address_of(sets_type);
	vm.end = address_of(interpreter);
	copy_words[(STACK_AT - COPY_AT) / WORD] = address_of(sets_type);
	assert_allocation(ALLOCATION_OTHER, 0);
	vm.begin++;
	assert_allocation(ALLOCATION_TABLE, 0);
	vm.begin = address_of(module_begin);
	vm.end = address_of(sets_type);
	returns_to(sets_type_first)->r14 = GCT_TABLE;
	assert_allocation(ALLOCATION_TABLE, 0);
	vm.end++;
	assert_allocation(ALLOCATION_OTHER, 0);
}

/*---- Old parts ----*/

/* A part of so many bytes of a table, of which the counters held that it had so many nodes and slots. */
static void part_is(enum allocation_kind kind, uint64_t bytes, uint64_t newest, uint64_t nodes,
		    uint64_t slots)
{
	const struct allocation_counters held = { .root = newest,
						  .newest_nodes = (uint32_t)nodes,
						  .newest_slots = (uint32_t)slots };
	bool is_first;

	vm.layout.Node_size = 24;
	allocation = (struct allocation){ .kind = kind, .bytes = bytes, .table = TABLE, .global = &global };
	is_first = allocation_without_old_part(&allocation, &held);
	assert_int_equal(allocation.is_first_part, is_first);
	assert_int_equal(allocation.table, TABLE);
	assert_int_equal(allocation.kind, kind);
}

static void the_old_hash_part_is_subtracted(void **state)
{
	(void)state;
	/* Of the newest table, as it was. */
	part_is(ALLOCATION_HASH, 8 * 24, TABLE, 4, 0);
	assert_int_equal(allocation.bytes, 4 * 24);
	assert_false(allocation.is_first_part);
	part_is(ALLOCATION_HASH, 8 * 24, TABLE, 1, 0);
	assert_int_equal(allocation.bytes, 7 * 24);
	assert_false(allocation.is_first_part);
	part_is(ALLOCATION_HASH, 8 * 24, TABLE, 0, 5);
	assert_int_equal(allocation.bytes, 8 * 24);
	assert_true(allocation.is_first_part);
	/* It cannot have been as large. */
	part_is(ALLOCATION_HASH, 8 * 24, TABLE, 8, 0);
	assert_int_equal(allocation.bytes, 8 * 24);
	part_is(ALLOCATION_HASH, 8 * 24, TABLE, 7, 0);
	assert_int_equal(allocation.bytes, 24);
	/* Another table's doubles. */
	part_is(ALLOCATION_HASH, 8 * 24, TABLE + 8, 0, 0);
	assert_int_equal(allocation.bytes, 4 * 24);
	assert_false(allocation.is_first_part);
	part_is(ALLOCATION_HASH, 24, TABLE + 8, 0, 0);
	assert_int_equal(allocation.bytes, 24);
}

/* LuaJIT grows it in place: the total has grown by the difference. */
static void an_array_part_is_counted_as_it_is(void **state)
{
	(void)state;
	part_is(ALLOCATION_ARRAY, 64, TABLE, 4, 0);
	assert_int_equal(allocation.bytes, 64);
	assert_true(allocation.is_first_part);
	part_is(ALLOCATION_ARRAY, 64, TABLE, 0, 4);
	assert_int_equal(allocation.bytes, 64);
	assert_false(allocation.is_first_part);
	part_is(ALLOCATION_ARRAY, 64, TABLE + 8, 0, 0);
	assert_int_equal(allocation.bytes, 64);
	assert_false(allocation.is_first_part);
}

/*---- The stack ----*/

/* Put so many frames of the allocator on it. */
static void put_below(size_t count)
{
	for (size_t i = 0; i < count; i++) {
		native.count = i + 1;
		returns_to(loops);
	}
	native.count = count + 1;
}

static void luajit_is_below_the_frames_of_the_allocator(void **state)
{
	enum { FRAMES_MAX = 12 };
	static const struct module other;

	(void)state;
	put_below(FRAMES_MAX - 1);
	returns_to(adds_only);
	assert_allocation(ALLOCATION_OTHER, 0);
	/* Another allocator's are not followed at all. */
	for (size_t i = 0; i + 1 < native.count; i++)
		native.frames[i].module = &other;
	assert_allocation(ALLOCATION_OTHER, 0);
	put_below(FRAMES_MAX);
	returns_to(adds_only);
	assert_untold();
	put_below(2); /* the stack ends */
	native.count = 2;
	assert_untold();
}

static void only_calls_of_native_code_return_to_luajit(void **state)
{
	(void)state;
	put_below(1);
	returns_to(adds_only);
	assert_allocation(ALLOCATION_OTHER, 0);
	native.frames[0].code = CODE_VM; /* no allocator */
	assert_untold();
	native.frames[0].code = CODE_NATIVE;
	native.frames[1].code = CODE_UNKNOWN;
	assert_untold();
	native.frames[1].code = CODE_NATIVE;
	native.frames[1].is_return_address = false; /* a signal's */
	assert_untold();
}

#define OF_CODE(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		OF_CODE(objects_are_told_by_their_types),
		OF_CODE(a_function_in_lua_has_its_prototype),
		OF_CODE(a_cdata_has_its_type),
		OF_CODE(an_object_may_lie_behind_the_begin_of_its_memory),
		OF_CODE(a_trace_writes_a_cdata_itself),
		OF_CODE(parts_are_told_by_what_refers_to_them),
		OF_CODE(memory_from_the_kernel_begins_with_a_header),
		OF_CODE(a_part_is_told_while_the_old_one_is_freed),
		OF_CODE(what_is_stored_on_the_native_stack_is_no_part),
		OF_CODE(only_what_grows_is_an_allocation),
		OF_CODE(without_gc64_the_total_has_32_bits),
		OF_CODE(the_total_is_that_of_a_known_state_of_the_vm),
		OF_CODE(what_is_unknown_is_not_guessed),
		OF_CODE(code_that_adds_nothing_soon_is_not_followed),
		OF_CODE(code_is_followed_to_the_interpreter_for_so_long),
		OF_CODE(the_interpreters_code_is_not_run),
		OF_CODE(the_old_hash_part_is_subtracted),
		OF_CODE(an_array_part_is_counted_as_it_is),
		OF_CODE(luajit_is_below_the_frames_of_the_allocator),
		OF_CODE(only_calls_of_native_code_return_to_luajit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* Where the machine of the VM's code finds code and data, what it does not know, and where it stops. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "luajit-layouts/vmstate.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/made_up_memory.h"
#include "tests/unit/same_registers.h"
#include "unwind/vm/vm_machine.h"

enum {
	VM_AT = MADE_UP_AT, /* its text; what follows is captured memory */
	VM_BYTES = 0x1000,
	VM_END = VM_AT + VM_BYTES,
	DATA_AT = VM_END,
	STACK_AT = VM_AT + 0x2000,
	STUB_AT = VM_AT + 0x3000,
	ALL_END = VM_AT + MADE_UP_BYTES,
	G = 0x700000, /* not captured */
	VMSTATE = 0x50,
	JIT_BASE = 0x80,
	TRACE_AT = 0x500000,
	OTHER_TRACE_AT = 0x600000,
	TRACE_BYTES = 0x40,
	PROTO_AT = 0x400000,
};

static const struct vm_value unknown;
static struct vm_code vm;
static struct vm_machine machine;
static struct memory text = { .read_ranges = NULL };

static uint8_t trace_code[TRACE_BYTES];
static const struct trace traces[] = {
	{ .number = 1, .mcode = TRACE_AT, .szmcode = TRACE_BYTES },
	{ .number = 2, .mcode = OTHER_TRACE_AT, .szmcode = TRACE_BYTES },
};

INSTEAD_OF(traces_find);
const struct trace *__wrap_traces_find(const struct traces *of, uint64_t pc)
{
	(void)of;
	for (size_t i = 0; i < sizeof(traces) / sizeof(traces[0]); i++)
		if (pc - traces[i].mcode < traces[i].szmcode)
			return &traces[i];
	return NULL;
}

INSTEAD_OF(traces_code);
const uint8_t *__wrap_traces_code(const struct traces *of, const struct trace *trace)
{
	(void)of;
	return trace == &traces[0] ? trace_code : NULL;
}

static const uint8_t proto_bytes[] = { 1, 2, 3, 4, 5, 6, 7, 8 };
static const struct proto proto = { .address = PROTO_AT, .bytes = proto_bytes, .size = sizeof(proto_bytes) };

INSTEAD_OF(lua_objects_proto_of_pc);
const struct proto *__wrap_lua_objects_proto_of_pc(struct lua_objects *objects, uint64_t pc)
{
	(void)objects;
	assert_int_equal(pc % 4, 0);
	return pc - PROTO_AT < sizeof(proto_bytes) ? &proto : NULL;
}

static void read_text(struct memory *memory, struct memory_range *ranges, size_t count)
{
	(void)memory;
	range_bytes(ranges, count, VM_AT, made_up_memory.bytes, VM_BYTES);
}

static void read_captured(struct memory *memory, struct memory_range *ranges, size_t count)
{
	(void)memory;
	range_bytes(ranges, count, DATA_AT, made_up_memory.bytes + VM_BYTES, MADE_UP_BYTES - VM_BYTES);
}

static int begin(void **state)
{
	const struct registers registers = { .pc = VM_AT, .sp = STACK_AT };
	struct vm_decoder *decoder = *state;

	made_up_memory_begin();
	made_up_memory.memory.read_ranges = read_captured;
	text.read_ranges = read_text;
	memset(trace_code, 0x90, sizeof(trace_code));
	vm = (struct vm_code){ .begin = VM_AT, .end = VM_END };
	vm.layout.g_vmstate = VMSTATE;
	vm.layout.g_jit_base = JIT_BASE;
	vm_machine_clear(&machine);
	machine.decoder = decoder;
	machine.vm = &vm;
	machine.text = &text;
	machine.memory = &made_up_memory.memory;
	machine.vmstate = G + VMSTATE;
	vm_machine_load_registers(&machine, &registers);
	return 0;
}

static int open_decoder(void **state)
{
	*state = vm_decoder_new();
	return *state ? 0 : -1;
}

static int close_decoder(void **state)
{
	vm_decoder_free(*state);
	return 0;
}

static struct vm_value known(uint64_t bits)
{
	return (struct vm_value){ bits, true };
}

static void assert_known(struct vm_value value, uint64_t bits)
{
	assert_true(value.known);
	assert_int_equal(value.bits, bits);
}

static struct vm_value load(uint64_t address, unsigned int size)
{
	return vm_machine_load(&machine, known(address), size);
}

static void store(uint64_t address, unsigned int size, uint64_t bits)
{
	assert_true(vm_machine_store(&machine, known(address), size, known(bits)));
}

/* Run one instruction, which lies at an address. */
#define STEP_AT(address, code) step_at((address), (code), sizeof(code) - 1)
#define STEP(code) STEP_AT(VM_AT, code)

static enum vm_progress step_at(uint64_t address, const char *code, size_t size)
{
	put_bytes(address, code, size);
	machine.pc = address;
	return vm_machine_step(&machine);
}

/* The same of the trace's code. */
#define STEP_IN_TRACE(offset, code) step_in_trace((offset), (code), sizeof(code) - 1)

static enum vm_progress step_in_trace(size_t offset, const char *code, size_t size)
{
	machine.trace = &traces[0];
	memcpy(trace_code + offset, code, size);
	machine.pc = TRACE_AT + offset;
	return vm_machine_step(&machine);
}

/*---- Memory ----*/

static void a_load_takes_the_last_store(void **state)
{
	(void)state;
	put(DATA_AT, 0x1111111111111111, 8);
	put(DATA_AT + 8, 0x2222222222222222, 8);
	put(DATA_AT + 16, 0x3333333333333333, 8);
	assert_known(load(DATA_AT + 8, 8), 0x2222222222222222);
	store(DATA_AT + 8, 8, 0x0102030405060708);
	assert_known(load(DATA_AT + 8, 8), 0x0102030405060708);
	assert_known(load(DATA_AT + 8, 1), 0x08);
	assert_known(load(DATA_AT + 15, 1), 0x01);
	assert_known(load(DATA_AT + 10, 4), 0x03040506);
	/* Its neighbours are as they were. */
	assert_known(load(DATA_AT, 8), 0x1111111111111111);
	assert_known(load(DATA_AT + 16, 8), 0x3333333333333333);
	store(DATA_AT + 12, 4, 0xa1a2a3a4);
	assert_known(load(DATA_AT + 12, 4), 0xa1a2a3a4);
	assert_known(load(DATA_AT + 8, 4), 0x05060708);
	assert_known(load(DATA_AT + 16, 4), 0x33333333);
	/* What is partly of one store is unknown. */
	assert_false(load(DATA_AT + 8, 8).known);
	assert_false(load(DATA_AT + 14, 4).known);
	assert_false(load(DATA_AT + 7, 2).known);
	assert_false(load(DATA_AT + 4, 8).known);
}

static void what_was_stored_unknown_is_unknown(void **state)
{
	(void)state;
	put(DATA_AT, 5, 8);
	assert_true(vm_machine_store(&machine, known(DATA_AT), 8, unknown));
	assert_false(load(DATA_AT, 8).known);
	assert_false(load(DATA_AT, 4).known);
	assert_int_equal(machine.store_count, 1);
	/* No register is so wide, and none of these bytes are followed. */
	store(DATA_AT + 8, 16, 7);
	assert_int_equal(machine.store_count, 2);
	assert_int_equal(machine.stores[1].size, 8);
	assert_false(load(DATA_AT + 8, 8).known);
}

static void a_store_notes_its_step_and_no_more_bytes_than_it_has(void **state)
{
	(void)state;
	machine.steps = 9;
	store(DATA_AT, 2, 0x12345678);
	assert_int_equal(machine.store_count, 1);
	assert_int_equal(machine.stores[0].address, DATA_AT);
	assert_int_equal(machine.stores[0].size, 2);
	assert_int_equal(machine.stores[0].step, 9);
	assert_known(machine.stores[0].value, 0x5678);
}

static void a_store_to_an_unknown_address_is_left_out(void **state)
{
	(void)state;
	assert_true(vm_machine_store(&machine, unknown, 8, known(1)));
	assert_int_equal(machine.store_count, 0);
	assert_false(vm_machine_load(&machine, unknown, 8).known);
}

static void stores_have_an_end(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < VM_MACHINE_STORES_MAX; i++)
		store(DATA_AT, 8, i);
	assert_known(load(DATA_AT, 8), VM_MACHINE_STORES_MAX - 1);
	assert_false(vm_machine_store(&machine, known(DATA_AT), 8, known(1)));
	assert_int_equal(machine.store_count, VM_MACHINE_STORES_MAX);
}

static void what_was_not_captured_is_unknown_but_for_prototypes(void **state)
{
	(void)state;
	put(DATA_AT, UINT64_MAX, 8);
	put(ALL_END - 8, 0x77, 8);
	assert_known(load(ALL_END - 8, 8), 0x77);
	assert_false(load(ALL_END - 7, 8).known);
	assert_int_equal(load(ALL_END - 7, 8).bits, 0);
	assert_false(load(G, 8).known);
	assert_false(load(DATA_AT, 9).known);
	assert_known(load(PROTO_AT, 4), 0x04030201);
	assert_known(load(PROTO_AT + 6, 2), 0x0807);
	assert_false(load(PROTO_AT + 6, 4).known);
	assert_int_equal(load(PROTO_AT + 6, 4).bits, 0);
}

static void masks_are_of_bytes(void **state)
{
	(void)state;
	assert_int_equal(vm_machine_mask(1), 0xff);
	assert_int_equal(vm_machine_mask(2), 0xffff);
	assert_int_equal(vm_machine_mask(4), 0xffffffff);
	assert_int_equal(vm_machine_mask(8), UINT64_MAX);
}

/*---- The end of a trace ----*/

/* Store a state, and say whether the machine takes it for the end of a trace. */
static bool leaves(uint64_t address, uint64_t value)
{
	machine.interpreted_at = 0;
	machine.interpreted_base = unknown;
	machine.registers[VM_BASE] = known(0x1230);
	machine.steps = 5;
	store(address, 4, value);
	if (!machine.interpreted_at)
		return false;
	assert_int_equal(machine.interpreted_at, 5);
	assert_known(machine.interpreted_base, 0x1230);
	return true;
}

static void a_trace_ends_where_the_state_becomes_the_interpreters(void **state)
{
	(void)state;
	store(DATA_AT, 8, 1);
	assert_true(leaves(G + VMSTATE, (uint32_t)VMST_INTERP));
	assert_true(leaves(G + VMSTATE, (uint64_t)(int64_t)VMST_INTERP));
	assert_false(leaves(G + VMSTATE, (uint32_t)VMST_C));
	assert_false(leaves(G + VMSTATE + 8, (uint32_t)VMST_INTERP));
}

/* Tarantool's stores it elsewhere, too; there it zeroes g->jit_base just before. */
static void with_tarantools_states_jit_base_tells_the_end_of_a_trace(void **state)
{
	enum { TARANTOOL_EXIT = ~5 };

	(void)state;
	vm.layout.vmstates = VMSTATES_TARANTOOL;
	assert_false(leaves(G + VMSTATE, (uint32_t)VMST_INTERP));
	assert_int_equal(machine.store_count, 1);
	store(G + JIT_BASE, 8, 0);
	assert_true(leaves(G + VMSTATE, (uint32_t)VMST_INTERP));
	store(G + JIT_BASE, 8, 8);
	assert_false(leaves(G + VMSTATE, (uint32_t)VMST_INTERP));
	assert_true(vm_machine_store(&machine, known(G + JIT_BASE), 8, unknown));
	assert_false(leaves(G + VMSTATE, (uint32_t)VMST_INTERP));
	store(G + JIT_BASE, 8, 0);
	store(DATA_AT, 8, 0);
	assert_false(leaves(G + VMSTATE, (uint32_t)VMST_INTERP));
	/* Was it zeroed before the copy was made? */
	machine.store_count = 0;
	machine.vmstate = DATA_AT;
	put(DATA_AT, (uint32_t)TARANTOOL_EXIT, 4);
	assert_true(leaves(DATA_AT, (uint32_t)VMST_INTERP));
	machine.store_count = 0;
	put(DATA_AT, (uint32_t)VMST_EXIT, 4); /* its number of another state */
	assert_false(leaves(DATA_AT, (uint32_t)VMST_INTERP));
	machine.store_count = 0;
	put(DATA_AT, (uint32_t)TARANTOOL_EXIT, 4);
	store(DATA_AT + 8, 8, 1);
	assert_false(leaves(DATA_AT, (uint32_t)VMST_INTERP));
}

/*---- Control ----*/

static void the_vm_is_where_its_code_is(void **state)
{
	(void)state;
	assert_true(vm_machine_in_vm(&machine, VM_AT));
	assert_true(vm_machine_in_vm(&machine, VM_END - 1));
	assert_false(vm_machine_in_vm(&machine, VM_AT - 1));
	assert_false(vm_machine_in_vm(&machine, VM_END));
}

static void each_step_is_counted_and_goes_on_behind_its_instruction(void **state)
{
	(void)state;
	assert_int_equal(STEP("\x90"), VM_PROGRESS_ON); /* nop */
	assert_int_equal(machine.pc, VM_AT + 1);
	assert_int_equal(machine.steps, 1);
	assert_int_equal(STEP("\x48\xc7\xc0\x05\x00\x00\x00"), VM_PROGRESS_ON); /* mov rax, 5 */
	assert_int_equal(machine.pc, VM_AT + 7);
	assert_int_equal(machine.steps, 2);
	assert_known(machine.registers[RAX], 5);
	assert_int_equal(STEP("\x06"), VM_PROGRESS_STUCK); /* no instruction */
	assert_int_equal(machine.steps, 2);
}

static void code_that_cannot_be_read_is_not_followed(void **state)
{
	(void)state;
	machine.pc = VM_END - 1; /* an instruction may be longer than what is left */
	assert_int_equal(vm_machine_step(&machine), VM_PROGRESS_STUCK);
	machine.pc = G;
	assert_int_equal(vm_machine_step(&machine), VM_PROGRESS_STUCK);
	assert_int_equal(machine.steps, 0);
}

static void an_endless_loop_ends(void **state)
{
	(void)state;
	put_bytes(VM_AT, "\xeb\xfe", 2);
	assert_int_equal(vm_machine_run(&machine), VM_PROGRESS_STUCK);
	assert_in_range(machine.steps, 1000, 100000);
	assert_int_equal(machine.pc, VM_AT);
}

static void a_run_goes_to_where_the_code_leaves_the_vm(void **state)
{
	static const char code[] = "\x90\x48\x83\xc0\x07" /* nop; add rax, 7 */
				   "\xc3";                /* ret */

	(void)state;
	put_bytes(VM_AT, code, sizeof(code));
	put(STACK_AT, G, 8);
	assert_int_equal(vm_machine_run(&machine), VM_PROGRESS_RETURNED);
	assert_int_equal(machine.steps, 3);
	assert_int_equal(machine.pc, G);
	assert_known(machine.registers[RAX], 7);
	assert_known(machine.registers[RSP], STACK_AT + 8);
}

static void a_return_needs_its_address(void **state)
{
	(void)state;
	put(STACK_AT, VM_AT + 0x80, 8);
	assert_int_equal(STEP("\xc3"), VM_PROGRESS_ON);
	assert_int_equal(machine.pc, VM_AT + 0x80);
	machine.registers[RSP] = known(G);
	assert_int_equal(STEP("\xc3"), VM_PROGRESS_STUCK);
}

static void a_dispatch_stays_before_its_jump(void **state)
{
	(void)state;
	machine.registers[RCX] = known(1);
	machine.registers[R12 + 2] = known(DATA_AT);
	put(DATA_AT + 8, VM_AT + 0x40, 8);
	assert_int_equal(STEP("\x41\xff\x24\xce"), VM_PROGRESS_DISPATCH); /* jmp [r14+rcx*8] */
	assert_int_equal(machine.pc, VM_AT);
	assert_int_equal(STEP("\x67\x41\xff\x24\xce"), VM_PROGRESS_DISPATCH); /* jmp [r14d+ecx*8] */
	/* No other jump is one. */
	assert_int_equal(STEP("\x41\xff\x66\x08"), VM_PROGRESS_ON); /* jmp [r14+8] */
	assert_int_equal(machine.pc, VM_AT + 0x40);
	machine.registers[RAX] = known(DATA_AT);
	assert_int_equal(STEP("\xff\x24\xc8"), VM_PROGRESS_ON); /* jmp [rax+rcx*8] */
	assert_int_equal(machine.pc, VM_AT + 0x40);
}

static void jumps_out_of_the_vm_are_not_followed(void **state)
{
	(void)state;
	machine.registers[RAX] = known(STUB_AT);
	assert_int_equal(STEP("\xff\xe0"), VM_PROGRESS_JUMP_OUT); /* jmp rax */
	assert_int_equal(machine.pc, VM_AT);
	machine.registers[RAX] = known(TRACE_AT);
	assert_int_equal(STEP("\xff\xe0"), VM_PROGRESS_JUMP_OUT);
	machine.registers[RAX] = unknown;
	assert_int_equal(STEP("\xff\xe0"), VM_PROGRESS_JUMP_OUT);
	machine.registers[RAX] = known(VM_END - 1);
	assert_int_equal(STEP("\xff\xe0"), VM_PROGRESS_ON);
	assert_int_equal(machine.pc, VM_END - 1);
}

static void calls_out_of_the_vm_are_told_behind_them(void **state)
{
	(void)state;
	machine.registers[RAX] = known(G);
	assert_int_equal(STEP("\xff\xd0"), VM_PROGRESS_CALL_OUT); /* call rax */
	assert_int_equal(machine.pc, VM_AT + 2);
	assert_known(machine.registers[RSP], STACK_AT);
	machine.registers[RAX] = unknown;
	assert_int_equal(STEP("\xff\xd0"), VM_PROGRESS_CALL_OUT);
	machine.registers[RAX] = known(VM_AT + 0x80);
	assert_int_equal(STEP("\xff\xd0"), VM_PROGRESS_ON);
	assert_int_equal(machine.pc, VM_AT + 0x80);
	assert_known(machine.registers[RSP], STACK_AT - 8);
	assert_known(load(STACK_AT - 8, 8), VM_AT + 2);
	for (size_t i = machine.store_count; i < VM_MACHINE_STORES_MAX; i++)
		store(DATA_AT, 8, 0);
	assert_int_equal(STEP("\xff\xd0"), VM_PROGRESS_STUCK);
}

static void a_branch_on_something_unknown_is_a_guess(void **state)
{
	(void)state;
	machine.flags = (struct vm_flags){ .zero = true, .known = true };
	assert_int_equal(STEP("\x74\x10"), VM_PROGRESS_ON); /* je +0x10 */
	assert_int_equal(machine.pc, VM_AT + 0x12);
	assert_false(machine.guessed);
	assert_int_equal(STEP("\x75\x10"), VM_PROGRESS_ON); /* jne +0x10 */
	assert_int_equal(machine.pc, VM_AT + 2);
	machine.flags.known = false;
	assert_int_equal(STEP("\x74\x10"), VM_PROGRESS_ON);
	assert_int_equal(machine.pc, VM_AT + 2);
	assert_true(machine.guessed);
	/* It stays one. */
	machine.flags.known = true;
	assert_int_equal(STEP("\x74\x10"), VM_PROGRESS_ON);
	assert_true(machine.guessed);
	assert_int_equal(STEP("\x74\x80"), VM_PROGRESS_STUCK); /* to before the VM */
}

/* LuaJIT compares floating point with it. */
static void the_parity_flag_is_unknown(void **state)
{
	(void)state;
	assert_int_equal(STEP("\x48\x39\xc0"), VM_PROGRESS_ON); /* cmp rax, rax */
	assert_int_equal(STEP("\x7a\x10"), VM_PROGRESS_ON);     /* jp +0x10 */
	assert_int_equal(machine.pc, VM_AT + 2);
	assert_true(machine.guessed);
}

/*---- Stubs and traces ----*/

static void stubs_are_run_from_the_copy(void **state)
{
	(void)state;
	/* The last bytes of what was captured: jmp VM_AT. */
	assert_int_equal(STEP_AT(ALL_END - 5, "\xe9\x00\xc0\xff\xff"), VM_PROGRESS_ON);
	assert_int_equal(machine.pc, VM_AT);
	assert_int_equal(STEP_AT(STUB_AT, "\xeb\x10"), VM_PROGRESS_ON);
	assert_int_equal(machine.pc, STUB_AT + 0x12);
	assert_int_equal(STEP_AT(STUB_AT, "\x74\x10"), VM_PROGRESS_STUCK); /* je */
	assert_int_equal(STEP_AT(STUB_AT, "\xff\xd0"), VM_PROGRESS_STUCK); /* call rax */
	put(STACK_AT, VM_AT, 8);
	assert_int_equal(STEP_AT(STUB_AT, "\xc3"), VM_PROGRESS_STUCK); /* ret */
	assert_known(machine.registers[RSP], STACK_AT);
}

static void a_trace_is_run_from_its_own_copy(void **state)
{
	(void)state;
	assert_int_equal(STEP_IN_TRACE(0, "\x48\xc7\xc0\x05\x00\x00\x00"), VM_PROGRESS_ON); /* mov rax, 5 */
	assert_known(machine.registers[RAX], 5);
	assert_int_equal(machine.pc, TRACE_AT + 7);
	/* Its last instruction; behind it is nothing. */
	assert_int_equal(STEP_IN_TRACE(TRACE_BYTES - 7, "\x48\xc7\xc0\x06\x00\x00\x00"), VM_PROGRESS_ON);
	assert_known(machine.registers[RAX], 6);
	assert_int_equal(vm_machine_step(&machine), VM_PROGRESS_STUCK);
	assert_int_equal(STEP_IN_TRACE(TRACE_BYTES - 6, "\x48\xc7\xc0\x07\x00\x00"), VM_PROGRESS_STUCK);
	/* Of one that was not copied, nothing is. */
	machine.trace = &traces[1];
	machine.pc = OTHER_TRACE_AT;
	assert_int_equal(vm_machine_step(&machine), VM_PROGRESS_STUCK);
	/* The stub that it jumps to is. */
	assert_int_equal(STEP_AT(STUB_AT, "\x90"), VM_PROGRESS_ON);
}

static void a_trace_may_lead_to_the_vm_or_to_another_ones_begin(void **state)
{
	(void)state;
	machine.registers[RAX] = known(VM_AT + 4);
	assert_int_equal(STEP_IN_TRACE(0, "\xff\xe0"), VM_PROGRESS_ON); /* jmp rax */
	assert_int_equal(machine.pc, VM_AT + 4);
	machine.registers[RAX] = known(OTHER_TRACE_AT);
	assert_int_equal(STEP_IN_TRACE(0, "\xff\xe0"), VM_PROGRESS_LINKED);
	assert_int_equal(machine.pc, OTHER_TRACE_AT);
	machine.registers[RAX] = known(OTHER_TRACE_AT + 4);
	assert_int_equal(STEP_IN_TRACE(0, "\xff\xe0"), VM_PROGRESS_STUCK);
	machine.registers[RAX] = known(STUB_AT);
	assert_int_equal(STEP_IN_TRACE(0, "\xff\xe0"), VM_PROGRESS_STUCK);
}

/*---- What is unknown ----*/

static void what_depends_on_something_unknown_is_unknown(void **state)
{
	(void)state;
	machine.registers[RAX] = unknown;
	machine.registers[RCX] = known(3);
	assert_int_equal(STEP("\x48\x01\xc1"), VM_PROGRESS_ON); /* add rcx, rax */
	assert_false(machine.registers[RCX].known);
	assert_false(machine.flags.known);
	machine.registers[RCX] = known(3);
	machine.flags.known = true;
	assert_int_equal(STEP("\x48\x39\xc8"), VM_PROGRESS_ON); /* cmp rax, rcx */
	assert_false(machine.flags.known);
	machine.flags.known = true;
	machine.registers[RDX] = known(DATA_AT);
	assert_int_equal(STEP("\x48\xd3\xe2"), VM_PROGRESS_ON); /* shl rdx, cl */
	assert_true(machine.registers[RDX].known && machine.flags.known);
	machine.registers[RCX] = unknown;
	assert_int_equal(STEP("\x48\xd3\xe2"), VM_PROGRESS_ON);
	assert_false(machine.registers[RDX].known || machine.flags.known);
	/* An index, a base, and a segment, whose base is the kernel's. */
	machine.registers[RDX] = known(DATA_AT);
	assert_int_equal(STEP("\x48\x8d\x14\x8a"), VM_PROGRESS_ON); /* lea rdx, [rdx+rcx*4] */
	assert_false(machine.registers[RDX].known);
	machine.registers[RCX] = known(1);
	assert_int_equal(STEP("\x48\x8d\x14\x8a"), VM_PROGRESS_ON);
	assert_false(machine.registers[RDX].known);
	machine.registers[RDX] = known(1);
	assert_int_equal(STEP("\x64\x48\x8b\x14\x25\x00\x10\x01\x00"),
			 VM_PROGRESS_ON); /* mov rdx, fs:[DATA_AT] */
	assert_false(machine.registers[RDX].known);
	assert_int_equal(STEP("\x48\x8b\x14\x25\x00\x10\x01\x00"), VM_PROGRESS_ON); /* mov rdx, [DATA_AT] */
	assert_true(machine.registers[RDX].known);
}

static void a_part_that_becomes_known_does_not_make_the_rest_so(void **state)
{
	(void)state;
	machine.registers[RAX] = unknown;
	assert_int_equal(STEP("\xb0\x05"), VM_PROGRESS_ON); /* mov al, 5 */
	assert_false(machine.registers[RAX].known);
	assert_int_equal(STEP("\xb8\x05\x00\x00\x00"), VM_PROGRESS_ON); /* mov eax, 5 */
	assert_known(machine.registers[RAX], 5);
	machine.registers[RCX] = unknown;
	assert_int_equal(STEP("\x88\xc8"), VM_PROGRESS_ON); /* mov al, cl */
	assert_false(machine.registers[RAX].known);
}

static void a_register_less_itself_is_zero_whatever_it_was(void **state)
{
	(void)state;
	machine.registers[RAX] = machine.registers[RCX] = unknown;
	assert_int_equal(STEP("\x31\xc8"), VM_PROGRESS_ON); /* xor eax, ecx */
	assert_false(machine.registers[RAX].known);
	assert_int_equal(STEP("\x31\xc0"), VM_PROGRESS_ON); /* xor eax, eax */
	assert_known(machine.registers[RAX], 0);
	assert_true(machine.flags.known && machine.flags.zero);
	machine.registers[RAX] = unknown;
	assert_int_equal(STEP("\x09\xc0"), VM_PROGRESS_ON); /* or eax, eax */
	assert_false(machine.registers[RAX].known);
}

static void a_conditional_move_by_unknown_flags_is_unknown(void **state)
{
	(void)state;
	machine.flags = (struct vm_flags){ .zero = true, .known = true };
	machine.registers[RAX] = known(1);
	machine.registers[RCX] = known(2);
	assert_int_equal(STEP("\x48\x0f\x45\xc1"), VM_PROGRESS_ON); /* cmovne rax, rcx */
	assert_known(machine.registers[RAX], 1);
	assert_int_equal(STEP("\x48\x0f\x44\xc1"), VM_PROGRESS_ON); /* cmove rax, rcx */
	assert_known(machine.registers[RAX], 2);
	machine.flags.known = false;
	assert_int_equal(STEP("\x48\x0f\x44\xc1"), VM_PROGRESS_ON);
	assert_false(machine.registers[RAX].known);
	machine.registers[RAX] = known(1);
	assert_int_equal(STEP("\x48\x0f\x45\xc1"), VM_PROGRESS_ON);
	assert_false(machine.registers[RAX].known);
}

static void what_other_instructions_write_is_unknown(void **state)
{
	(void)state;
	machine.registers[RAX] = known(DATA_AT);
	assert_int_equal(STEP("\xf2\x0f\x10\x00"), VM_PROGRESS_ON); /* movsd xmm0, [rax] */
	assert_known(machine.registers[RAX], DATA_AT);
	assert_true(machine.flags.known);
	assert_int_equal(machine.store_count, 0);
	assert_int_equal(STEP("\xf2\x0f\x11\x00"), VM_PROGRESS_ON); /* movsd [rax], xmm0 */
	assert_int_equal(machine.store_count, 1);
	assert_false(load(DATA_AT, 8).known);
	assert_true(load(DATA_AT + 8, 8).known);
	assert_int_equal(STEP("\x66\x0f\x2e\xc1"), VM_PROGRESS_ON); /* ucomisd xmm0, xmm1 */
	assert_false(machine.flags.known);
	assert_int_equal(STEP("\xf2\x0f\x2c\xc0"), VM_PROGRESS_ON); /* cvttsd2si eax, xmm0 */
	assert_false(machine.registers[RAX].known);
	assert_true(machine.registers[RCX].known);
	assert_int_equal(STEP("\x0f\xaf\xe1"), VM_PROGRESS_STUCK); /* imul esp, ecx */
}

/*---- Registers ----*/

/* LuaJIT moves to it what it goes on with; it adds to it for the next instruction. */
static void the_step_that_moved_to_pc_is_noted(void **state)
{
	(void)state;
	machine.registers[RAX] = known(0x1230);
	assert_int_equal(STEP("\x90"), VM_PROGRESS_ON);
	assert_int_equal(STEP("\x48\x89\xc3"), VM_PROGRESS_ON); /* mov rbx, rax */
	assert_int_equal(machine.pc_set_at, 2);
	assert_int_equal(STEP("\x48\x89\xc1"), VM_PROGRESS_ON);     /* mov rcx, rax */
	assert_int_equal(STEP("\x48\x83\xc3\x04"), VM_PROGRESS_ON); /* add rbx, 4 */
	assert_int_equal(machine.pc_set_at, 2);
	assert_int_equal(STEP("\x48\x89\xc3"), VM_PROGRESS_ON);
	assert_int_equal(machine.pc_set_at, 5);
}

static const struct registers all = {
	.rax = 1,
	.rbx = 2,
	.rcx = 3,
	.rdx = 4,
	.rsi = 5,
	.rdi = 6,
	.rbp = 7,
	.sp = 8,
	.r8 = 9,
	.r9 = 10,
	.r10 = 11,
	.r11 = 12,
	.r12 = 13,
	.r13 = 14,
	.r14 = 15,
	.r15 = 16,
	.pc = 17,
};

static void registers_are_loaded_and_saved(void **state)
{
	struct registers saved;

	(void)state;
	vm_machine_load_registers(&machine, &all);
	assert_int_equal(machine.pc, 17);
	assert_known(machine.registers[RAX], 1);
	assert_known(machine.registers[VM_PC], 2);
	assert_known(machine.registers[VM_BASE], 4);
	assert_known(machine.registers[VM_SP], 8);
	assert_known(machine.registers[R12 + 3], 16);
	assert_true(machine.flags.known);
	vm_machine_save_registers(&machine, &saved);
	assert_int_equal(saved.call_number, UINT64_MAX); /* it is in no system call */
	saved.call_number = 0;
	assert_same_registers(&saved, &all);
	machine.registers[RBP].known = false;
	vm_machine_save_registers(&machine, &saved);
	assert_int_equal(saved.unknown, REGISTER_RBP);
	assert_int_equal(saved.pc, 17);
	machine.registers[RDI].known = machine.registers[R12].known = false;
	vm_machine_save_registers(&machine, &saved);
	assert_int_equal(saved.unknown, REGISTER_RBP | REGISTER_OTHERS | REGISTER_R12);
}

static void a_called_function_keeps_what_the_convention_says(void **state)
{
	static const int kept[] = { RBX, RSP, RBP, R12, R12 + 1, R12 + 2, R12 + 3 };
	size_t count = 0;

	(void)state;
	vm_machine_load_registers(&machine, &all);
	vm_machine_take_result(&machine, 0x77);
	assert_known(machine.registers[RAX], 0x77);
	assert_false(machine.flags.known);
	for (int i = 0; i < REGISTER_COUNT; i++)
		count += machine.registers[i].known;
	assert_int_equal(count, 1 + sizeof(kept) / sizeof(kept[0]));
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		assert_true(machine.registers[kept[i]].known);
}

static void a_copy_has_all_stores(void **state)
{
	static struct vm_machine copy;

	(void)state;
	store(DATA_AT, 8, 1);
	store(DATA_AT + 8, 8, 2);
	machine.steps = 3;
	memset(&copy, 0xee, sizeof(copy));
	vm_machine_copy(&copy, &machine);
	assert_int_equal(copy.steps, 3);
	assert_int_equal(copy.store_count, 2);
	assert_known(vm_machine_load(&copy, known(DATA_AT), 8), 1);
	assert_known(vm_machine_load(&copy, known(DATA_AT + 8), 8), 2);
	assert_int_equal(copy.stores[2].size, 0xeeeeeeee);
	vm_machine_clear(&copy);
	assert_int_equal(copy.store_count, 0);
	assert_int_equal(copy.steps, 0);
	assert_false(copy.registers[RSP].known);
}

#define IN_MACHINE(test) cmocka_unit_test_setup(test, begin)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_MACHINE(a_load_takes_the_last_store),
		IN_MACHINE(what_was_stored_unknown_is_unknown),
		IN_MACHINE(a_store_notes_its_step_and_no_more_bytes_than_it_has),
		IN_MACHINE(a_store_to_an_unknown_address_is_left_out),
		IN_MACHINE(stores_have_an_end),
		IN_MACHINE(what_was_not_captured_is_unknown_but_for_prototypes),
		IN_MACHINE(masks_are_of_bytes),
		IN_MACHINE(a_trace_ends_where_the_state_becomes_the_interpreters),
		IN_MACHINE(with_tarantools_states_jit_base_tells_the_end_of_a_trace),
		IN_MACHINE(the_vm_is_where_its_code_is),
		IN_MACHINE(each_step_is_counted_and_goes_on_behind_its_instruction),
		IN_MACHINE(code_that_cannot_be_read_is_not_followed),
		IN_MACHINE(an_endless_loop_ends),
		IN_MACHINE(a_run_goes_to_where_the_code_leaves_the_vm),
		IN_MACHINE(a_return_needs_its_address),
		IN_MACHINE(a_dispatch_stays_before_its_jump),
		IN_MACHINE(jumps_out_of_the_vm_are_not_followed),
		IN_MACHINE(calls_out_of_the_vm_are_told_behind_them),
		IN_MACHINE(a_branch_on_something_unknown_is_a_guess),
		IN_MACHINE(the_parity_flag_is_unknown),
		IN_MACHINE(stubs_are_run_from_the_copy),
		IN_MACHINE(a_trace_is_run_from_its_own_copy),
		IN_MACHINE(a_trace_may_lead_to_the_vm_or_to_another_ones_begin),
		IN_MACHINE(what_depends_on_something_unknown_is_unknown),
		IN_MACHINE(a_part_that_becomes_known_does_not_make_the_rest_so),
		IN_MACHINE(a_register_less_itself_is_zero_whatever_it_was),
		IN_MACHINE(a_conditional_move_by_unknown_flags_is_unknown),
		IN_MACHINE(what_other_instructions_write_is_unknown),
		IN_MACHINE(the_step_that_moved_to_pc_is_noted),
		IN_MACHINE(registers_are_loaded_and_saved),
		IN_MACHINE(a_called_function_keeps_what_the_convention_says),
		IN_MACHINE(a_copy_has_all_stores),
	};

	return cmocka_run_group_tests(tests, open_decoder, close_decoder);
}

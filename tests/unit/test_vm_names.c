/* SPDX-License-Identifier: MIT */
/* Names of a made-up interpreter's code, by its dispatch table and by where its code leads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "luajit-layouts/bytecode.h"
#include "tests/unit/made_up_memory.h"
#include "unwind/vm/vm_flow.h"
#include "unwind/vm/vm_names.h"

enum {
	VM_AT = MADE_UP_AT,
	HANDLER_BYTES = 0x10,
	FUNCTIONS_AT = VM_AT + 0x800, /* of the assembler, FUNCTION_BYTES each */
	FUNCTION_BYTES = 0x20,
	FUNCTIONS = 4,
	VM_END = FUNCTIONS_AT + FUNCTIONS * FUNCTION_BYTES,
	G = MADE_UP_AT + 0x2000,
	DISPATCH = 0x100,
	WORD = 8,
	FIRST_FFID = 10, /* of the first function */
};

static struct vm_code vm;
static struct builtins builtins;
static struct vm_names names;
static unsigned int op_count;

static uint64_t handler_at(unsigned int op)
{
	return VM_AT + op * HANDLER_BYTES;
}

static uint64_t function_at(unsigned int number)
{
	return FUNCTIONS_AT + number * FUNCTION_BYTES;
}

/* An entry of the dispatch table; behind the functions lies the static one, which hooks do not change. */
static void put_entry(unsigned int number, uint64_t address)
{
	put(G + DISPATCH + number * WORD, address, WORD);
}

static void put_static_entry(unsigned int op, uint64_t address)
{
	put_entry(op_count + FUNCTIONS + op, address);
}

static int begin(void **state)
{
	static const char *const library[FUNCTIONS] = { "assert", "math.floor", "string.byte", "bit.bnot" };

	(void)state;
	made_up_memory_begin();
	vm = (struct vm_code){ .begin = VM_AT, .end = VM_END };
	vm.layout.bytecode = BYTECODE_V21;
	vm.layout.GG_dispatch = DISPATCH;
	op_count = (unsigned int)bytecode_count(&vm.layout);
	memset(made_up_memory.bytes, 0x90, VM_END - VM_AT); /* nop */
	for (unsigned int op = 0; op < op_count; op++) {
		put_entry(op, handler_at(op));
		put_static_entry(op, handler_at(op));
	}
	builtins = (struct builtins){ 0 };
	for (unsigned int i = 0; i < FUNCTIONS; i++) {
		put_entry(op_count + i, function_at(i));
		snprintf(builtins.at[FIRST_FFID + i].name, BUILTIN_NAME_SIZE, "%s", library[i]);
		builtins.at[FIRST_FFID + i].op = (uint8_t)(op_count + i);
	}
	put(VM_END - 1, 0xc3, 1); /* ret */
	return 0;
}

static int end(void **state)
{
	(void)state;
	vm_names_clear(&names);
	assert_int_equal(names.count, 0);
	assert_null(names.at);
	return 0;
}

static bool collect(void)
{
	vm_names_clear(&names);
	return vm_names_collect(&made_up_memory.memory, &vm, G, &builtins, &names);
}

static void assert_name(uint64_t pc, const char *wanted)
{
	const char *name = vm_names_find(&names, pc);

	if (wanted) {
		assert_non_null(name);
		assert_string_equal(name, wanted);
	} else {
		assert_null(name);
	}
}

/* All of this code has the name, and what is around it does not. */
static void assert_extent(const char *name, uint64_t from, uint64_t to)
{
	for (uint64_t pc = from; pc < to; pc++)
		assert_name(pc, name);
	for (int i = 0; i < 2; i++) {
		const char *other = vm_names_find(&names, i ? to : from - 1);

		assert_true(!other || strcmp(other, name) != 0);
	}
}

static void assert_handler(unsigned int op, bool is_named)
{
	char name[VM_NAME_SIZE];

	snprintf(name, sizeof(name), "lj_BC_%s", bytecode_name(&vm.layout, (uint8_t)op));
	if (is_named)
		assert_extent(name, handler_at(op), handler_at(op + 1));
	else
		assert_name(handler_at(op), NULL);
}

static void handlers_are_named_by_their_bytecodes(void **state)
{
	(void)state;
	assert_true(collect());
	/* Where the last one ends, nothing says. */
	for (unsigned int op = 0; op < op_count; op++)
		assert_handler(op, op + 1 < op_count);
	assert_name(VM_AT - 1, NULL);
	assert_name(VM_END, NULL);
}

/* Of those that count calls or call a hook, the dispatch table has another entry. */
static void the_static_table_tells_what_hooks_hide(void **state)
{
	unsigned int funcf = (unsigned int)bytecode_number(&vm.layout, BC_FUNCF);

	(void)state;
	for (unsigned int op = 0; op < funcf; op++)
		put_entry(op, handler_at(3));
	/* Headers of functions are in the dispatch table alone. */
	for (unsigned int op = funcf; op < op_count; op++)
		put_static_entry(op, handler_at(3));
	assert_true(collect());
	for (unsigned int op = 0; op + 1 < op_count; op++)
		assert_handler(op, true);
}

static void handlers_that_lie_elsewhere_have_no_name(void **state)
{
	enum { SHARED = 8, FAR = 20, MISSING = 30 };

	(void)state;
	put_static_entry(SHARED, handler_at(SHARED + 1));
	put_static_entry(FAR, FUNCTIONS_AT + 1);
	put_static_entry(MISSING, VM_END); /* not of the VM */
	assert_true(collect());
	assert_handler(SHARED - 2, true);
	assert_handler(SHARED - 1, false); /* its end is not known then */
	assert_handler(SHARED, false);
	assert_handler(SHARED + 1, true);
	assert_handler(FAR - 2, true);
	assert_handler(FAR - 1, false);
	assert_name(handler_at(FAR), NULL);
	assert_name(FUNCTIONS_AT + 1, "lj_ff_assert");
	assert_handler(FAR + 1, false);
	assert_handler(FAR + 2, true);
	assert_handler(MISSING - 3, true);
	assert_handler(MISSING - 1, false);
	assert_handler(MISSING, false);
	assert_handler(MISSING + 1, true);
}

static void while_calls_are_hooked_not_all_have_names(void **state)
{
	unsigned int funcc = (unsigned int)bytecode_number(&vm.layout, BC_FUNCC);

	(void)state;
	put_entry(funcc, handler_at(funcc + 1));
	assert_false(collect());
	assert_handler(0, true);
	assert_name(function_at(1), "lj_ff_math_floor");
}

/* A program may be hooked all the time, and the code is long. */
static void names_are_collected_again_when_no_call_is_hooked(void **state)
{
	unsigned int funcc = (unsigned int)bytecode_number(&vm.layout, BC_FUNCC);
	const struct vm_name *collected;

	(void)state;
	put_entry(funcc, handler_at(funcc + 1));
	assert_false(collect());
	assert_handler(funcc, false);
	collected = names.at;
	assert_false(vm_names_complete(&made_up_memory.memory, &vm, G, &builtins, &names));
	assert_ptr_equal(names.at, collected);
	assert_name(function_at(1), "lj_ff_math_floor");
	put_entry(funcc, handler_at(funcc));
	assert_true(vm_names_complete(&made_up_memory.memory, &vm, G, &builtins, &names));
	assert_handler(funcc, true);
}

static void without_a_static_table_there_are_no_names(void **state)
{
	(void)state;
	put_static_entry(0, handler_at(1));
	assert_false(collect());
	assert_int_equal(names.count, 0);
	assert_name(handler_at(1), NULL);
	vm_names_clear(&names);
	assert_false(
		vm_names_collect(&made_up_memory.memory, &vm, MADE_UP_AT + MADE_UP_BYTES, &builtins, &names));
	assert_int_equal(names.count, 0);
}

/*---- Functions of the assembler ----*/

static void functions_are_named_up_to_the_next_one(void **state)
{
	(void)state;
	assert_true(collect());
	assert_extent("lj_ff_assert", function_at(0), function_at(1));
	assert_extent("lj_ff_math_floor", function_at(1), function_at(2));
	assert_extent("lj_ff_string_byte", function_at(2), function_at(3));
	assert_extent("lj_ff_bit_bnot", function_at(3), VM_END);
}

static void functions_that_are_not_the_assemblers_have_no_code(void **state)
{
	(void)state;
	builtins.at[FIRST_FFID].op = 0;
	builtins.at[FIRST_FFID + 1].op = (uint8_t)(op_count - 1);         /* a bytecode */
	builtins.at[FIRST_FFID + 2].op = (uint8_t)(op_count + FUNCTIONS); /* the static table's first */
	put_entry(op_count + 3, VM_AT - 8);
	assert_true(collect());
	for (unsigned int i = 0; i < FUNCTIONS; i++)
		assert_name(function_at(i), NULL);
	assert_handler(0, true);
	assert_handler(op_count - 2, true);
}

/* A short jump, with or without a condition. */
static void put_jump(uint64_t from, uint8_t opcode, uint64_t to)
{
	put(from, opcode, 1);
	put(from + 1, to - (from + 2), 1);
}

enum { JMP = 0xeb, JE = 0x74 };

static void a_function_ends_where_nothing_goes_on(void **state)
{
	const uint64_t at = function_at(1);

	(void)state;
	put(at + 7, 0xc3, 1); /* ret */
	assert_true(collect());
	assert_extent("lj_ff_math_floor", at, at + 8);
	/* A jump over it goes on; the end is behind the next one. */
	put_jump(at + 2, JE, at + 8);
	put_jump(at + 10, JMP, at);
	assert_true(collect());
	assert_extent("lj_ff_math_floor", at, at + 12);
	/* One from further on does not: what it jumps to may be another's. */
	put(at + 2, 0x9090, 2);
	put_jump(at + 10, JMP, at + 8);
	assert_true(collect());
	assert_extent("lj_ff_math_floor", at, at + 8);
	/* Of a function that begins with an end, too. */
	put(at, 0xc3, 1);
	assert_true(collect());
	assert_extent("lj_ff_math_floor", at, at + 1);
	/* What ends right before it is not its own. */
	put(at, 0x90, 1);
	put(at - 1, 0xc3, 1);
	assert_true(collect());
	assert_extent("lj_ff_math_floor", at, at + 8);
	assert_extent("lj_ff_assert", function_at(0), at);
}

static void its_first_instruction_may_jump_over_an_end(void **state)
{
	const uint64_t at = function_at(1);

	(void)state;
	put(at + 7, 0xc3, 1); /* ret */
	put(at + 11, 0xc3, 1);
	put_jump(at, JE, at + 8);
	assert_true(collect());
	assert_extent("lj_ff_math_floor", at, at + 12);
	/* One right before it is another's: what it jumps to is nobody's. */
	put(at, 0x9090, 2);
	put_jump(at - 2, JE, at + 8);
	assert_true(collect());
	assert_extent("lj_ff_math_floor", at, at + 8);
	/* So is the first one of the next function. */
	put(at - 2, 0x9090, 2);
	put_jump(at + FUNCTION_BYTES, JE, at + 4);
	assert_true(collect());
	assert_extent("lj_ff_math_floor", at, at + 4);
	assert_name(at + 4, NULL);
}

static void code_that_others_jump_to_is_nobodys(void **state)
{
	const uint64_t at = function_at(1);

	(void)state;
	put_jump(at + FUNCTION_BYTES + 4, JE, at + 0x12); /* from the next one */
	assert_true(collect());
	assert_extent("lj_ff_math_floor", at, at + 0x12);
	assert_name(at + 0x12, NULL);
	put_jump(at - 8, JE, at + 0x10); /* from the one before */
	assert_true(collect());
	assert_extent("lj_ff_math_floor", at, at + 0x10);
	put_jump(at - 4, JE, at); /* to its begin, as a tail call */
	assert_true(collect());
	assert_extent("lj_ff_math_floor", at, at + 0x10);
	put_jump(at + 4, JE, at + 0xc); /* its own jumps do not divide it */
	assert_true(collect());
	assert_extent("lj_ff_math_floor", at, at + 0x10);
}

/*---- Where control goes ----*/

static void jumps_and_ends_are_in_the_order_of_the_code(void **state)
{
	struct vm_flow flow;

	(void)state;
	put(VM_END - 1, 0x90, 1);
	put_jump(VM_AT, JE, VM_AT + 0x20);
	put_jump(VM_AT + 4, JMP, VM_AT);
	put(VM_AT + 6, 0x06, 1);    /* no instruction */
	put(VM_AT + 7, 0xc3, 1);    /* ret */
	put(VM_AT + 8, 0xe0ff, 2);  /* jmp rax */
	put(VM_AT + 10, 0xd0ff, 2); /* call rax */
	put(VM_AT + 12, 0xe8, 1);   /* call */
	put(VM_AT + 13, 0x100, 4);
	put_jump(VM_END - 2, JMP, VM_AT + 0x30); /* the last bytes */
	assert_true(vm_flow_read(&made_up_memory.memory, &vm, &flow));
	assert_int_equal(flow.jump_count, 3);
	assert_int_equal(flow.jumps[0].from, VM_AT);
	assert_int_equal(flow.jumps[0].to, VM_AT + 0x20);
	assert_int_equal(flow.jumps[1].from, VM_AT + 4);
	assert_int_equal(flow.jumps[1].to, VM_AT);
	assert_int_equal(flow.jumps[2].from, VM_END - 2);
	assert_int_equal(flow.end_count, 4);
	assert_int_equal(flow.ends[0], VM_AT + 6);
	assert_int_equal(flow.ends[1], VM_AT + 8);
	assert_int_equal(flow.ends[2], VM_AT + 10);
	assert_int_equal(flow.ends[3], VM_END);
	vm_flow_clear(&flow);
}

static void code_without_an_end_is_none(void **state)
{
	enum { CODE_MAX = 256 << 10 };
	struct vm_flow flow;

	(void)state;
	put(VM_END - 1, 0x90, 1);
	assert_false(vm_flow_read(&made_up_memory.memory, &vm, &flow));
	vm_flow_clear(&flow);
	vm.end = vm.begin + CODE_MAX; /* more than there is */
	assert_false(vm_flow_read(&made_up_memory.memory, &vm, &flow));
	assert_non_null(flow.jumps);
	vm_flow_clear(&flow);
	vm.end++; /* more than any VM has */
	assert_false(vm_flow_read(&made_up_memory.memory, &vm, &flow));
	assert_null(flow.jumps);
	vm_flow_clear(&flow);
	/* Handlers have names without it. */
	begin(NULL);
	put(VM_END - 1, 0x90, 1);
	assert_true(collect());
	assert_handler(1, true);
	assert_name(function_at(1), NULL);
}

#define WITH_TABLE(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_TABLE(handlers_are_named_by_their_bytecodes),
		WITH_TABLE(the_static_table_tells_what_hooks_hide),
		WITH_TABLE(handlers_that_lie_elsewhere_have_no_name),
		WITH_TABLE(while_calls_are_hooked_not_all_have_names),
		WITH_TABLE(names_are_collected_again_when_no_call_is_hooked),
		WITH_TABLE(without_a_static_table_there_are_no_names),
		WITH_TABLE(functions_are_named_up_to_the_next_one),
		WITH_TABLE(functions_that_are_not_the_assemblers_have_no_code),
		WITH_TABLE(a_function_ends_where_nothing_goes_on),
		WITH_TABLE(its_first_instruction_may_jump_over_an_end),
		WITH_TABLE(code_that_others_jump_to_is_nobodys),
		WITH_TABLE(jumps_and_ends_are_in_the_order_of_the_code),
		WITH_TABLE(code_without_an_end_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

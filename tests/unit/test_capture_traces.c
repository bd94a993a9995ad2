/* SPDX-License-Identifier: MIT */
/* Which traces of a held thread's state are looked at, and which objects are captured for them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "luajit-layouts/vmstate.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/made_up_states.h"
#include "unwind/capture/unknown_states.h"
#include "unwind/jit/traces.h"
#include "unwind/trace/trace_block.h"
#include "unwind/vm/vm_frame.h"

enum {
	FRAME = C_STACK_AT + 0x3000,
	IN_VM = VM_AT + 8,
	TRACES = 6, /* 1 to 5 */
	CODE_AT = FREE_AT,
	CODE_BYTES = 0x80,         /* of each trace, one behind the other */
	STUB_AT = CODE_AT + 0x800, /* the exit of trace 1 */
	SPADJUST = 32,
	J_AT = G_AT + 0x100,
	TRACE_ARRAY = FREE_AT + 0x4000,
	UPVALUES_AT = FREE_AT + 0x5000,
	UPVALUE_BYTES = 0x20,
	/* Of trace i: function i, prototypes PROTO + i and START + i, and if it has a table, TABLE + i. */
	PROTO = 8,
	START = 16,
	TABLE = 24,
	HELD = 32, /* by an upvalue of function i */
	OBJECTS = 40,
};

/*---- The traces of the state ----*/

static struct trace made[TRACES];
static const struct trace *link_of_first;
static bool has_table;
static unsigned looks, looks_again;
static struct traces_wanted looked_for;
static uint32_t stale; /* this one is found by its code only after another look */

static const struct trace *trace_of(uint64_t pc)
{
	for (size_t i = 1; i < TRACES; i++)
		if (pc - made[i].mcode < made[i].szmcode)
			return &made[i];
	return NULL;
}

INSTEAD_OF(traces_capture);
void __wrap_traces_capture(struct traces *traces, struct snapshot *snapshot, const struct layout *layout,
			   const struct traces_wanted *wanted)
{
	(void)traces;
	(void)snapshot;
	(void)layout;
	looks++;
	looked_for = *wanted;
}

INSTEAD_OF(traces_capture_again);
void __wrap_traces_capture_again(struct traces *traces, struct snapshot *snapshot,
				 const struct layout *layout)
{
	(void)traces;
	(void)snapshot;
	(void)layout;
	looks_again++;
}

INSTEAD_OF(traces_capture_pc);
const struct trace *__wrap_traces_capture_pc(struct traces *traces, struct snapshot *snapshot,
					     const struct layout *layout, uint64_t pc)
{
	const struct trace *trace = trace_of(pc);

	(void)traces;
	(void)snapshot;
	(void)layout;
	return trace && trace->number == stale && looks_again == 0 ? NULL : trace;
}

INSTEAD_OF(traces_capture_link);
const struct trace *__wrap_traces_capture_link(struct traces *traces, struct snapshot *snapshot,
					       const struct layout *layout, const struct trace *trace)
{
	(void)traces;
	(void)snapshot;
	(void)layout;
	return trace == &made[1] ? link_of_first : NULL;
}

INSTEAD_OF(traces_capture_exit);
const struct trace *__wrap_traces_capture_exit(struct traces *traces, struct snapshot *snapshot,
					       const struct layout *layout, uint64_t pc)
{
	(void)traces;
	(void)snapshot;
	(void)layout;
	return pc == STUB_AT ? &made[1] : NULL;
}

INSTEAD_OF(traces_by_number);
const struct trace *__wrap_traces_by_number(const struct traces *traces, uint32_t number)
{
	(void)traces;
	return number > 0 && number < TRACES ? &made[number] : NULL;
}

INSTEAD_OF(traces_find);
const struct trace *__wrap_traces_find(const struct traces *traces, uint64_t pc)
{
	(void)traces;
	return trace_of(pc);
}

INSTEAD_OF(traces_protos);
bool __wrap_traces_protos(const struct traces *traces, const struct trace *trace, const uint64_t **ret_protos,
			  size_t *ret_count)
{
	static uint64_t protos[1];

	(void)traces;
	if (!has_table)
		return false;
	protos[0] = proto_at(TABLE + trace->number);
	*ret_protos = protos;
	*ret_count = 1;
	return true;
}

INSTEAD_OF(trace_constants);
size_t __wrap_trace_constants(const struct trace *trace, const struct layout *layout,
			      enum trace_constant kind, uint64_t *ret_objects, size_t max)
{
	(void)layout;
	assert_int_not_equal(max, 0);
	ret_objects[0] = kind == TRACE_FUNCTIONS ? function_at(trace->number)
						 : proto_at(PROTO + trace->number);
	return 1;
}

/*---- The thread ----*/

/* All objects there may be, each function with an upvalue that holds another one. */
static void put_objects(void)
{
	struct layout *layout = &states.vm.layout;

	layout->GCupval_v = 8;
	layout->GCupval_size = 16;
	for (size_t i = 0; i < OBJECTS; i++)
		put_function(i);
	for (size_t i = 0; i < TRACES; i++) {
		const uint64_t upvalue = UPVALUES_AT + i * UPVALUE_BYTES;

		put(function_at(i) + (uint64_t)layout->GCfunc_nupvalues, 1, 1);
		put_word(function_at(i) + (uint64_t)layout->GCfuncL_uvptr, upvalue);
		put_word(upvalue + 8, upvalue + 16);
		put_word(upvalue + 16, tagged(TAG_FUNC, function_at(HELD + i)));
	}
}

static int begin(void **state)
{
	const int status = states_begin(state);
	struct global_state *global = lua_image_global(states.lua, 0);

	for (uint32_t i = 1; i < TRACES; i++)
		made[i] = (struct trace){
			.number = i,
			.mcode = CODE_AT + i * CODE_BYTES,
			.szmcode = CODE_BYTES,
			.spadjust = SPADJUST,
			.startpt = proto_at(START + i),
		};
	link_of_first = NULL;
	has_table = false;
	looks = looks_again = stale = 0;
	put_objects();
	put_word(J_AT + (uint64_t)states.vm.layout.J_trace, TRACE_ARRAY);
	put(J_AT + (uint64_t)states.vm.layout.J_sizetrace, TRACES, 4);
	put_g(0, put_thread(0, 0, FRAME));
	put_cframe(FRAME, thread_at(0), 0, NATIVE_CODE);
	states.registers.sp = FRAME - 0x100;
	global->traces = traces_new();
	return global->traces ? status : -1;
}

static uint64_t code_of(uint32_t trace)
{
	return made[trace].mcode + 0x10;
}

/* The thread is at this pc, and the state has these in g->vmstate and g->jit_base. */
static void capture_at(uint64_t pc, int32_t vmstate, uint64_t jit_base)
{
	looks = looks_again = 0;
	states.registers.pc = pc;
	put(g_at(0) + (uint64_t)states.vm.layout.g_vmstate, (uint32_t)vmstate, 4);
	put_word(g_at(0) + (uint64_t)states.vm.layout.g_jit_base, jit_base);
	states_capture();
}

static bool has_function(size_t i)
{
	return lua_objects_function(states.process.objects, function_at(i));
}

static bool has_proto(size_t i)
{
	return lua_objects_proto(states.process.objects, proto_at(i));
}

/* Were the objects of these traces captured, and of no others? */
static void check_traces(unsigned set)
{
	for (unsigned i = 1; i < TRACES; i++) {
		const bool wanted = set & 1u << i;

		assert_int_equal(has_function(i), wanted);
		assert_int_equal(has_proto(PROTO + i), wanted);
		assert_int_equal(has_proto(START + i), wanted);
	}
}

enum { FIRST = 1 << 1, SECOND = 1 << 2, THIRD = 1 << 3, FOURTH = 1 << 4 };

/*---- When to look ----*/

static void traces_are_looked_at_if_one_may_run_or_be_left(void **state)
{
	static const int32_t exiting[] = { VMST_EXIT, VMST_GC, VMST_RECORD, VMST_OPT, VMST_ASM };

	(void)state;
	capture_at(NATIVE_CODE, VMST_C, 0);
	assert_int_equal(looks, 0);
	capture_at(IN_VM, VMST_INTERP, 0);
	assert_int_equal(looks, 0);
	capture_at(NATIVE_CODE, 0, 0);
	assert_int_equal(looks, 0);
	capture_at(NATIVE_CODE, VMST_C, slots_at(0));
	assert_int_equal(looks, 1);
	capture_at(NATIVE_CODE, 1, 0);
	assert_int_equal(looks, 1);
	capture_at(code_of(1), VMST_C, 0);
	assert_int_equal(looks, 1);
	for (size_t i = 0; i < sizeof(exiting) / sizeof(exiting[0]); i++) {
		capture_at(NATIVE_CODE, exiting[i], 0);
		assert_int_equal(looks, 1);
	}
}

static void traces_that_cannot_be_read_are_not_looked_at(void **state)
{
	(void)state;
	states.vm.traces_open = true;
	capture_at(code_of(1), 1, slots_at(0));
	assert_int_equal(looks, 0);
	states.vm.traces_open = false;
	states.vm.layout.GG_J = 0x1000; /* in the next page */
	unmap(g_at(1));
	capture_at(code_of(1), 1, slots_at(0));
	assert_int_equal(looks, 0);
	states.vm.layout.GG_J = 0x1000 - states.vm.layout.J_sizetrace; /* the size is */
	capture_at(code_of(1), 1, slots_at(0));
	assert_int_equal(looks, 0);
	check_traces(0);
}

static void it_is_known_what_to_look_for(void **state)
{
	const struct layout *layout = &states.vm.layout;

	(void)state;
	put(J_AT + (uint64_t)layout->J_parent, 4, 4);
	states.registers.rcx = 5;
	capture_at(NATIVE_CODE, 3, 0);
	assert_int_equal(looked_for.J, J_AT);
	assert_int_equal(looked_for.J_trace, TRACE_ARRAY);
	assert_int_equal(looked_for.sizetrace, TRACES);
	assert_int_equal(looked_for.executing[0], 3);
	assert_int_equal(looked_for.executing[1], 4);
	assert_int_equal(looked_for.executing[2], 0);
	check_traces(THIRD | FOURTH);
	/* Only the VM's exit handler has a number in that register. */
	capture_at(IN_VM, VMST_EXIT, 0);
	assert_int_equal(looked_for.executing[0], 0);
	assert_int_equal(looked_for.executing[2], 5);
	/* What changes if the exit is run on. */
	assert_true(is_copied(J_AT + (uint64_t)layout->J_exitno, 4));
	assert_true(is_copied(J_AT + (uint64_t)layout->J_state, 4));
	assert_true(is_copied(J_AT + (uint64_t)layout->J_pc, 8));
}

/*---- Which of them ----*/

static void the_trace_that_runs_is_captured_with_the_one_it_jumps_to(void **state)
{
	(void)state;
	capture_at(code_of(1), 0, 0);
	check_traces(FIRST);
	link_of_first = &made[2];
	capture_at(code_of(1), 0, 0);
	check_traces(FIRST | SECOND);
	capture_at(code_of(4), 0, 0);
	check_traces(FOURTH);
}

static void a_trace_that_is_left_is_captured(void **state)
{
	(void)state;
	capture_at(STUB_AT, 0, 0);
	check_traces(FIRST);
	capture_at(STUB_AT + 8, 0, 0);
	check_traces(0);
}

static void a_trace_that_has_called_what_runs_is_captured(void **state)
{
	const uint64_t at = vm_trace_sp(FRAME, SPADJUST) - sizeof(uint64_t);

	(void)state;
	put_word(at, code_of(2) + 1); /* past the call */
	capture_at(NATIVE_CODE, 0, slots_at(0));
	check_traces(SECOND);
	assert_int_equal(looks_again, 0);
	/* A leaf has put nothing on the stack. */
	states.registers.sp = at;
	capture_at(NATIVE_CODE, 0, slots_at(0));
	check_traces(SECOND);
	states.registers.sp = at + 8;
	capture_at(NATIVE_CODE, 0, slots_at(0));
	check_traces(0);
	/* The return address of an older call, in a place for values. */
	states.registers.sp = FRAME - 0x100;
	put_word(at, 0);
	put_word(at + 8, code_of(2) + 1);
	put_word(at - 8, code_of(3) + 1);
	capture_at(NATIVE_CODE, 0, slots_at(0));
	check_traces(0);
	/* The call was the last instruction of a trace's code. */
	put_word(at, made[2].mcode + CODE_BYTES);
	capture_at(NATIVE_CODE, 0, slots_at(0));
	check_traces(SECOND);
	/* Nothing runs that a trace could have called. */
	put_g(0, 0);
	capture_at(NATIVE_CODE, 0, slots_at(0));
	check_traces(0);
}

static void the_part_of_a_trace_on_the_stack_is_not_large(void **state)
{
	enum { LIMIT = 4096 };

	(void)state;
	states.registers.sp = FRAME - 2 * LIMIT;
	made[2].spadjust = LIMIT - 32;
	put_word(FRAME - LIMIT + 8, code_of(2) + 1);
	capture_at(NATIVE_CODE, 0, slots_at(0));
	check_traces(SECOND);
	made[2].spadjust = LIMIT - 16;
	put_word(FRAME - LIMIT + 8, 0);
	put_word(FRAME - LIMIT - 8, code_of(2) + 1);
	capture_at(NATIVE_CODE, 0, slots_at(0));
	check_traces(0);
}

/* g->vmstate does not name it, so only its code tells that it is a new one. */
static void a_new_trace_in_an_old_ones_place_is_found_by_another_look(void **state)
{
	(void)state;
	stale = 2;
	capture_at(code_of(2), 0, slots_at(0));
	assert_int_equal(looks_again, 1);
	check_traces(SECOND);
	capture_at(code_of(2), 0, 0);
	assert_int_equal(looks_again, 0);
	check_traces(0);
	capture_at(code_of(2), 3, slots_at(0));
	assert_int_equal(looks_again, 0);
	check_traces(THIRD);
	put_g(0, 0);
	capture_at(code_of(2), 0, slots_at(0));
	assert_int_equal(looks_again, 1);
	stale = 0;
	capture_at(code_of(2), 0, slots_at(0));
	assert_int_equal(looks_again, 0);
}

static void each_state_has_traces_of_its_own(void **state)
{
	(void)state;
	lua_image_add(states.lua, g_at(1), &states.vm);
	put_g(1, 0);
	lua_image_global(states.lua, 1)->traces = traces_new();
	assert_non_null(lua_image_global(states.lua, 1)->traces);
	capture_at(code_of(1), 0, 0);
	assert_int_equal(looks, 2);
	assert_int_equal(looked_for.J, J_AT + G_BYTES);
}

/*---- What of them ----*/

/* A trace does not check what it calls by an upvalue that never changes. */
static void functions_in_upvalues_are_captured_until_a_table_says_which(void **state)
{
	(void)state;
	capture_at(code_of(1), 0, 0);
	assert_true(has_function(HELD + 1));
	assert_false(has_proto(TABLE + 1));
	has_table = true;
	capture_at(code_of(1), 0, 0);
	assert_false(has_function(HELD + 1));
	assert_true(has_proto(TABLE + 1));
	check_traces(FIRST);
}

static void code_of_a_known_trace_is_not_copied_as_made_code(void **state)
{
	(void)state;
	capture_at(code_of(1), 0, 0);
	assert_false(is_copied(code_of(1), 8));
	/* Nor may it be that of a state that nobody knows. */
	assert_false(unknown_states_may_compile(&states.capture, states.image));
	capture_at(made[TRACES - 1].mcode + CODE_BYTES, 0, 0);
	assert_true(is_copied(code_of(1), 8));
	assert_true(unknown_states_may_compile(&states.capture, states.image));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, states_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(traces_are_looked_at_if_one_may_run_or_be_left),
		TEST(traces_that_cannot_be_read_are_not_looked_at),
		TEST(it_is_known_what_to_look_for),
		TEST(the_trace_that_runs_is_captured_with_the_one_it_jumps_to),
		TEST(a_trace_that_is_left_is_captured),
		TEST(a_trace_that_has_called_what_runs_is_captured),
		TEST(the_part_of_a_trace_on_the_stack_is_not_large),
		TEST(a_new_trace_in_an_old_ones_place_is_found_by_another_look),
		TEST(each_state_has_traces_of_its_own),
		TEST(functions_in_upvalues_are_captured_until_a_table_says_which),
		TEST(code_of_a_known_trace_is_not_copied_as_made_code),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

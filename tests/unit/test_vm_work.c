/* SPDX-License-Identifier: MIT */
/* What LuaJIT does for a Lua function, in words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "unwind/names/vm_work.h"

static void assert_work(const char *work, const char *wanted)
{
	if (wanted) {
		assert_non_null(work);
		assert_string_equal(work, wanted);
	} else {
		assert_null(work);
	}
}

static void names_of_functions_tell_their_work(void **state)
{
	static const struct {
		const char *function, *work;
	} functions[] = {
		{ "lj_tab_resize", "growing a table" },
		{ "rehashtab", "growing a table" },
		{ "rehashtab.isra.0", "growing a table" },
		{ "lj_tab_newkey", "storing in a table" },
		{ "lj_tab_new", "creating a table" },
		{ "lj_tab_new_ah", "creating a table" },
		{ "lj_tab_len", "length" },
		{ "lj_tab_setinth", "storing in a table" },
		{ "lj_tab_getstr", "looking up a key" },
		{ "lj_meta_cat", "concatenating strings" },
		{ "lj_meta_arith", "arithmetic" },
		{ "lj_meta_equal_cd", "comparing" },
		{ "lj_str_new", "creating a string" },
		{ "lj_str_cmp", "comparing" },
		{ "lj_buf_putstr", "concatenating strings" },
		{ "lj_strfmt_putfnum", "converting a number" },
		{ "lj_strscan_scan", "converting a number" },
		{ "lj_func_newL_gc", "creating a closure" },
		{ "lj_func_closeuv", "closing upvalues" },
		{ "lj_gc_step_jit", "garbage collection" },
		{ "lua_gc", "garbage collection" },
		{ "lj_gc_barrieruv", "write barrier" },
		{ "lj_trace_ins", "recording a trace" },
		{ "lj_trace_exit", "leaving a trace" },
		{ "lj_state_growstack1", "growing the stack" },
		{ "lj_ccall_func", "handling C data" },
		{ "lj_err_run", "raising an error" },
		/* The first row and the last one say no more than theirs. */
		{ "lj_tab_re", NULL },
		{ "lj_err", NULL },
		{ "lj_", NULL },
		{ "main", NULL },
		{ "", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		assert_work(vm_work_of_function(functions[i].function), functions[i].work);
}

static void instructions_tell_for_what_they_call_c_code(void **state)
{
	static const struct {
		enum bytecode_op op;
		const char *work;
	} instructions[] = {
		{ BC_ISLT, "comparing" },
		{ BC_ISNEV, "comparing" },
		{ BC_ADDVN, "arithmetic" },
		{ BC_MODVV, "arithmetic" },
		{ BC_POW, "arithmetic" },
		{ BC_LEN, "length" },
		{ BC_CAT, "concatenating strings" },
		{ BC_USETV, "write barrier" },
		{ BC_UCLO, "closing upvalues" },
		{ BC_FNEW, "creating a closure" },
		{ BC_TNEW, "creating a table" },
		{ BC_TDUP, "creating a table" },
		{ BC_GGET, "looking up a key" },
		{ BC_TGETS, "looking up a key" },
		{ BC_GSET, "storing in a table" },
		{ BC_TSETM, "storing in a table" },
		{ BC_VARG, "growing the stack" },
		/* Of these, several things may be done. */
		{ BC_CALL, NULL },
		{ BC_FORL, NULL },
		{ BC_JMP, NULL },
		{ BC__MAX, NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(instructions) / sizeof(instructions[0]); i++)
		assert_work(vm_work_of_instruction(instructions[i].op), instructions[i].work);
}

static void states_in_which_it_may_do_anything_do_not_tell(void **state)
{
	static const char *const works[VM_STATE_COUNT] = {
		[VM_STATE_GC] = "garbage collection",        [VM_STATE_RECORDING] = "recording a trace",
		[VM_STATE_OPTIMISING] = "recording a trace", [VM_STATE_ASSEMBLING] = "recording a trace",
		[VM_STATE_EXIT] = "leaving a trace",
	};

	(void)state;
	for (unsigned int i = 0; i < VM_STATE_COUNT; i++)
		assert_work(vm_work_of_state((enum vm_state)i), works[i]);
}

/* The words are compared by their addresses. */
static void some_work_is_a_part_of_other_work(void **state)
{
	(void)state;
	assert_true(vm_work_is_part(vm_work_of_function("lj_tab_resize")));
	assert_true(vm_work_is_part(vm_work_of_function("lj_gc_step")));
	assert_true(vm_work_is_part(vm_work_of_state(VM_STATE_GC)));
	assert_false(vm_work_is_part(vm_work_of_function("lj_tab_newkey")));
	assert_false(vm_work_is_part(vm_work_of_function("lj_str_new")));
	assert_false(vm_work_is_part(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_of_functions_tell_their_work),
		cmocka_unit_test(instructions_tell_for_what_they_call_c_code),
		cmocka_unit_test(states_in_which_it_may_do_anything_do_not_tell),
		cmocka_unit_test(some_work_is_a_part_of_other_work),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
#include "unwind/names/vm_work.h"

#include <string.h>

static const char growing_table[] = "growing a table";
static const char new_table[] = "creating a table";
static const char storing[] = "storing in a table";
static const char looking_up[] = "looking up a key";
static const char new_string[] = "creating a string";
static const char concatenating[] = "concatenating strings";
static const char number_text[] = "converting a number";
static const char new_closure[] = "creating a closure";
static const char closing_upvalues[] = "closing upvalues";
static const char collecting[] = "garbage collection";
static const char barrier[] = "write barrier";
static const char recording[] = "recording a trace";
static const char leaving_trace[] = "leaving a trace";
static const char growing_stack[] = "growing the stack";
static const char arithmetic[] = "arithmetic";
static const char comparing[] = "comparing";
static const char length[] = "length";
static const char c_data[] = "handling C data";
static const char error[] = "raising an error";

/* Of two rows that fit, the first counts. */
struct row {
	const char *prefix;
	const char *work;
};

static const struct row functions[] = {
	{ "lj_tab_resize", growing_table },
	{ "lj_tab_reasize", growing_table },
	{ "rehashtab", growing_table },
	{ "lj_tab_newkey", storing },
	{ "lj_tab_new", new_table },
	{ "lj_tab_dup", new_table },
	{ "lj_tab_len", length },
	{ "lj_tab_set", storing },
	{ "lj_tab_get", looking_up },
	{ "lj_tab_next", looking_up },
	{ "lj_tab_keyindex", looking_up },
	{ "lj_meta_tset", storing },
	{ "lj_meta_tget", looking_up },
	{ "lj_meta_cat", concatenating },
	{ "lj_meta_arith", arithmetic },
	{ "lj_meta_comp", comparing },
	{ "lj_meta_equal", comparing },
	{ "lj_meta_len", length },
	{ "lj_str_new", new_string },
	{ "lj_str_alloc", new_string },
	{ "lj_str_resize", new_string },
	{ "lj_str_cmp", comparing },
	{ "lj_buf_", concatenating },
	{ "lj_strfmt_", number_text },
	{ "lj_str_from", number_text },
	{ "lj_strscan_", number_text },
	{ "lj_func_new", new_closure },
	{ "lj_func_closeuv", closing_upvalues },
	{ "lj_gc_step", collecting },
	{ "lj_gc_fullgc", collecting },
	{ "lua_gc", collecting },
	{ "lj_gc_barrier", barrier },
	{ "lj_trace_hot", recording },
	{ "lj_trace_ins", recording },
	{ "lj_trace_exit", leaving_trace },
	{ "lj_state_growstack", growing_stack },
	{ "lj_state_cpgrowstack", growing_stack },
	{ "lj_vm_pow", arithmetic },
	{ "lj_vm_mod", arithmetic },
	{ "lj_carith_", c_data },
	{ "lj_ccall", c_data },
	{ "lj_cconv_", c_data },
	{ "lj_cdata_", c_data },
	{ "lj_ctype_", c_data },
	{ "lj_err_", error },
};

const char *vm_work_of_function(const char *name)
{
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++)
		if (strncmp(name, functions[i].prefix, strlen(functions[i].prefix)) == 0)
			return functions[i].work;
	return NULL;
}

/*
 * From vm_x64.dasc, vm_x86.dasc and vm_arm64.dasc of v2.1. Calls, loops and jumps may begin to record a
 * trace.
 */
const char *vm_work_of_instruction(enum bytecode_op op)
{
	switch ((int)op) {
	case BC_ISLT:
	case BC_ISGE:
	case BC_ISLE:
	case BC_ISGT:
	case BC_ISEQV:
	case BC_ISNEV: return comparing;
	case BC_UNM:
	case BC_ADDVN:
	case BC_SUBVN:
	case BC_MULVN:
	case BC_DIVVN:
	case BC_MODVN:
	case BC_ADDNV:
	case BC_SUBNV:
	case BC_MULNV:
	case BC_DIVNV:
	case BC_MODNV:
	case BC_ADDVV:
	case BC_SUBVV:
	case BC_MULVV:
	case BC_DIVVV:
	case BC_MODVV:
	case BC_POW: return arithmetic;
	case BC_LEN: return length;
	case BC_CAT: return concatenating;
	case BC_USETV:
	case BC_USETS: return barrier;
	case BC_UCLO: return closing_upvalues;
	case BC_FNEW: return new_closure;
	case BC_TNEW:
	case BC_TDUP: return new_table;
	case BC_GGET:
	case BC_TGETV:
	case BC_TGETS:
	case BC_TGETB:
	case BC_TGETR: return looking_up;
	case BC_GSET:
	case BC_TSETV:
	case BC_TSETS:
	case BC_TSETB:
	case BC_TSETM:
	case BC_TSETR: return storing;
	case BC_VARG: return growing_stack;
	default: return NULL;
	}
}

const char *vm_work_of_state(enum vm_state state)
{
	switch (state) {
	case VM_STATE_GC: return collecting;
	case VM_STATE_RECORDING:
	case VM_STATE_OPTIMISING:
	case VM_STATE_ASSEMBLING: return recording;
	case VM_STATE_EXIT: return leaving_trace;
	case VM_STATE_NONE:
	case VM_STATE_INTERPRETED:
	case VM_STATE_COMPILED:
	case VM_STATE_C:
	case VM_STATE_UNKNOWN:
	case VM_STATE_COUNT: break;
	}
	return NULL;
}

bool vm_work_is_part(const char *work)
{
	return work == growing_table || work == collecting;
}

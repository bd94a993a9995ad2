/* SPDX-License-Identifier: MIT */
/* Settles what only a state can tell of a layout, and confirms it by the state's objects. */
#include "luajit-layouts/recognise/recognise.h"

#include "luajit-layouts/bytecode.h"
#include "luajit-layouts/field.h"
#include "luajit-layouts/inquiry.h"
#include "luajit-layouts/selftest/selftest.h"
#include "luajit-layouts/tables.h"

static bool row_serves(const struct layout_row *row, const struct vm_code *vm)
{
	return (row->modes & LAYOUT_MODE(vm->layout.gc64 ? LAYOUT_X64_GC64 : LAYOUT_X64_GC32)) != 0;
}

/* The main thread lies right before g (GG_State), so its size is the distance. */
static bool confirm_thread(const struct inquiry *inquiry, uint64_t g, struct vm_code *vm)
{
	struct layout *layout = &vm->layout;
	struct layout_row row;
	uint64_t L;

	if (!field_reference(inquiry->memory, layout, g + (uint64_t)layout->g_mainthref, &L)) {
		inquiry_verdict(inquiry, "lua_State", "g.mainthref cannot be read");
		return false;
	}
	layout->L_size = (int32_t)(g - L);
	layout->L_exdata = layout->L_exdata2 = LAYOUT_ABSENT;
	for (size_t i = 0; i < layout_row_count(LAYOUT_GROUP_THREAD); i++) {
		layout_row_get(LAYOUT_GROUP_THREAD, i, &row);
		if (row_serves(&row, vm) && row.offsets.L_size == layout->L_size) {
			layout->L_exdata = row.offsets.L_exdata;
			layout->L_exdata2 = row.offsets.L_exdata2;
			inquiry_verdict(inquiry, "lua_State", "%d bytes: %s (%s)", layout->L_size, row.name,
					row.from);
			return true;
		}
	}
	inquiry_verdict(inquiry, "lua_State", "%d bytes, as in no release known; its end is left alone",
			layout->L_size);
	return true;
}

/* The instruction that all C functions share is a FUNCC, which shows the numbering. */
static bool confirm_bytecode(const struct inquiry *inquiry, uint64_t g, struct vm_code *vm)
{
	struct vm_code trial = *vm;
	uint32_t instruction;

	if (!vm->bytecode_open)
		return true;
	if (!memory_u32(inquiry->memory, g + (uint64_t)vm->layout.g_bc_cfunc_int, &instruction)) {
		inquiry_verdict(inquiry, "bytecode", "g.bc_cfunc_int cannot be read");
		return false;
	}
	for (enum layout_bytecode set = 0; set < BYTECODE_COUNT; set++) {
		trial.layout.bytecode = set;
		if (bytecode_op(&trial.layout, (uint8_t)instruction) == BC_FUNCC) {
			vm->layout.bytecode = set;
			vm->bytecode_open = false;
			inquiry_verdict(inquiry, "bytecode", "numbered so that FUNCC is %u",
					(uint8_t)instruction);
			return true;
		}
	}
	inquiry_verdict(inquiry, "bytecode", "no known numbering has FUNCC at %u", (uint8_t)instruction);
	return false;
}

/* What came of trying layouts. Those that agree with the first that passed do not count again. */
struct trial {
	const struct inquiry *inquiry;
	uint64_t g;
	struct vm_code vm; /* the first that passed */
	unsigned passed;
	bool is_untested; /* for want of a trace */
};

static void try_layout(struct trial *trial, const struct vm_code *vm)
{
	switch (selftest_run(trial->inquiry->memory, vm, trial->g, SELFTEST_TRACES, NULL, NULL)) {
	case SELFTEST_PASSED:
		if (trial->passed > 0 && layout_conflict(&trial->vm.layout, &vm->layout) == NULL)
			break;
		if (trial->passed++ == 0)
			trial->vm = *vm;
		break;
	case SELFTEST_UNTESTED: trial->is_untested = true; break;
	case SELFTEST_FAILED: break;
	}
}

/* Try the layout; if the code did not show IR_KGC, with each number that this opcode has had. */
static void try_ir_opcodes(struct trial *trial, struct vm_code *vm)
{
	struct layout_row row;

	if (vm->layout.IR_KGC != LAYOUT_UNKNOWN) {
		try_layout(trial, vm);
		return;
	}
	for (size_t i = 0; i < layout_row_count(LAYOUT_GROUP_JIT); i++) {
		layout_row_get(LAYOUT_GROUP_JIT, i, &row);
		vm->layout.IR_KGC = row.offsets.IR_KGC;
		if (row_serves(&row, vm))
			try_layout(trial, vm);
	}
}

/* Of the rows that the code cannot tell apart, choose the one whose trace objects are sound. */
static bool confirm_traces(const struct inquiry *inquiry, uint64_t g, struct vm_code *vm)
{
	struct trial trial = { .inquiry = inquiry, .g = g };
	struct layout_row row;

	if (!vm->traces_open)
		return true;
	for (size_t i = 0; i < layout_row_count(LAYOUT_GROUP_TRACE); i++) {
		struct vm_code candidate = *vm;

		layout_row_get(LAYOUT_GROUP_TRACE, i, &row);
		row.offsets.GCtrace_size = vm->layout.GCtrace_size; /* build options change it */
		if (!row_serves(&row, vm) || layout_conflict(&row.offsets, &vm->layout) != NULL)
			continue;
		layout_fill(&candidate.layout, &row.offsets);
		try_ir_opcodes(&trial, &candidate);
	}
	if (trial.passed == 1) {
		*vm = trial.vm;
		vm->traces_open = false;
		inquiry_verdict(inquiry, "trace objects", "snapshots of %d bytes, by the traces there are",
				vm->layout.SnapShot_size);
		return true;
	}
	inquiry_verdict(inquiry, "trace objects",
			trial.passed > 1    ? "several layouts fit the traces there are"
			: trial.is_untested ? "no trace yet to tell their layout by"
					    : "no known layout fits the traces there are");
	return trial.passed > 1 || trial.is_untested;
}

static bool confirm(const struct inquiry *inquiry, uint64_t g, const struct vm_code *vm)
{
	for (enum selftest test = 0; test < SELFTEST_COUNT; test++) {
		if (test == SELFTEST_TRACES && vm->traces_open)
			continue;
		if (selftest_run(inquiry->memory, vm, g, test, inquiry->evidence, inquiry->context) ==
		    SELFTEST_FAILED)
			return false;
	}
	return true;
}

enum recognise_status recognise_confirm(struct memory *memory, struct vm_code *vm, uint64_t g,
					recognise_evidence *evidence, void *context)
{
	const struct inquiry inquiry = { memory, evidence, context };
	struct vm_code confirmed_vm = *vm;

	if (!confirm_thread(&inquiry, g, &confirmed_vm) || !confirm_bytecode(&inquiry, g, &confirmed_vm) ||
	    !confirm_traces(&inquiry, g, &confirmed_vm) || !confirm(&inquiry, g, &confirmed_vm))
		return RECOGNISE_UNKNOWN_LAYOUT;
	confirmed_vm.confirmed = true;
	*vm = confirmed_vm;
	return RECOGNISE_OK;
}

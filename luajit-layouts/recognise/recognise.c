/* SPDX-License-Identifier: MIT */
#include "luajit-layouts/recognise/recognise.h"

#include <elf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "luajit-layouts/bytecode.h"
#include "luajit-layouts/inquiry.h"
#include "luajit-layouts/module/elf_image.h"
#include "luajit-layouts/module/vm_code_arm64.h"
#include "luajit-layouts/module/vm_code_x86_64.h"
#include "luajit-layouts/module/vm_find.h"
#include "luajit-layouts/tables.h"
#include "luajit-layouts/vmstate.h"

/* ---- rows against evidence ---------------------------------------------- */

struct match {
	size_t count;          /* rows that fit */
	struct layout_row row; /* the first of them, with the offsets that all have in common */
	const char *conflict;  /* when none fits: a wrong field of the last row tried */
};

/* Build options that move J's fields, as measured on 2.0.5 to 2026. */
static const struct jit_option {
	const char *name;
	bool gc64;
	int32_t all;  /* added to every offset behind J->cur, and to GCtrace's size */
	int32_t tail; /* added behind J->penalty */
} jit_options[] = {
	{ "", true, 0, 0 },
	{ "", false, 0, 0 },
	{ "LUAJIT_USE_GDBJIT", true, 8, 0 },
	{ "LUAJIT_USE_GDBJIT", false, 8, 0 },
	{ "LUAJIT_ENABLE_TABLE_BUMP", true, 0, 200 },
	{ "LUAJIT_ENABLE_TABLE_BUMP", true, 0, 192 },
	{ "LUAJIT_ENABLE_TABLE_BUMP", false, 0, 96 },
	{ "LUAJIT_USE_GDBJIT, LUAJIT_ENABLE_TABLE_BUMP", true, 8, 200 },
	{ "LUAJIT_USE_GDBJIT, LUAJIT_ENABLE_TABLE_BUMP", true, 8, 192 },
	{ "LUAJIT_USE_GDBJIT, LUAJIT_ENABLE_TABLE_BUMP", false, 8, 96 },
};

static void apply_jit_option(struct layout *offsets, const struct jit_option *option)
{
	int32_t *const front[] = {
		&offsets->J_L,     &offsets->J_pc,    &offsets->J_fn,        &offsets->J_pt,
		&offsets->J_state, &offsets->J_trace, &offsets->J_sizetrace, &offsets->J_exitstubgroup,
	};
	int32_t *const tail[] = {
		&offsets->J_startpc, &offsets->J_parent,   &offsets->J_exitno,
		&offsets->J_mcarea,  &offsets->J_szmcarea,
	};

	for (size_t i = 0; i < sizeof(front) / sizeof(front[0]); i++)
		*front[i] += option->all;
	for (size_t i = 0; i < sizeof(tail) / sizeof(tail[0]); i++)
		*tail[i] += option->all + option->tail;
}

static void match_row(const struct layout_row *row, const struct layout *evidence, struct match *match)
{
	const char *conflict = layout_conflict(&row->offsets, evidence);

	if (conflict != NULL) {
		if (match->count == 0)
			match->conflict = conflict;
		return;
	}
	if (match->count++ == 0)
		match->row = *row;
	else
		layout_keep_common(&match->row.offsets, &row->offsets);
}

/* Does op have the number in this numbering that the code shows? True if the code shows none. */
static bool number_fits(enum layout_bytecode set, enum bytecode_op op, int shown)
{
	const struct layout layout = { .bytecode = set };

	return shown == LAYOUT_UNKNOWN || shown == bytecode_number(&layout, op);
}

/* The rows of a group that the evidence does not contradict. */
static struct match match_group(enum layout_group group, enum layout_mode mode,
				const struct vm_code_evidence *evidence)
{
	struct match match = { .count = 0 };
	struct layout_row row;

	for (size_t i = 0; i < layout_row_count(group); i++) {
		layout_row_get(group, i, &row);
		if ((row.modes & LAYOUT_MODE(mode)) == 0)
			continue;
		if (group == LAYOUT_GROUP_TRACE && row.mcofs != evidence->exit_error_code)
			continue;
		if (group == LAYOUT_GROUP_GLOBAL && !number_fits(row.bytecode, BC_JMP, evidence->op_jmp))
			continue;
		match_row(&row, &evidence->offsets, &match);
	}
	return match;
}

/* As match_group() for J's rows, with each build option in turn; plain builds come first. */
static struct match match_jit(enum layout_mode mode, const struct vm_code_evidence *evidence,
			      const struct jit_option **ret_option)
{
	struct match match = { .count = 0 };
	struct layout_row row;

	for (size_t o = 0; o < sizeof(jit_options) / sizeof(jit_options[0]); o++) {
		if (jit_options[o].gc64 != evidence->offsets.gc64)
			continue;
		for (size_t i = 0; i < layout_row_count(LAYOUT_GROUP_JIT); i++) {
			layout_row_get(LAYOUT_GROUP_JIT, i, &row);
			if ((row.modes & LAYOUT_MODE(mode)) == 0 || row.mcofs != evidence->exit_error_code ||
			    !number_fits(row.bytecode, BC_JMP, evidence->op_jmp))
				continue;
			apply_jit_option(&row.offsets, &jit_options[o]);
			match_row(&row, &evidence->offsets, &match);
		}
		if (match.count > 0) {
			*ret_option = &jit_options[o];
			break;
		}
	}
	return match;
}

/* ---- the layout, group by group ------------------------------------------ */

static bool choose_group(const struct inquiry *inquiry, const char *what, const struct match *match,
			 struct layout *layout)
{
	if (match->count == 0) {
		inquiry_verdict(inquiry, what, "no known layout fits: the code contradicts them at %s",
				match->conflict == NULL ? "the mode" : match->conflict);
		return false;
	}
	inquiry_verdict(inquiry, what, "%s%s (%s)", match->row.name,
			match->count > 1 ? " or another that the code cannot tell apart" : "",
			match->row.from);
	layout_fill(layout, &match->row.offsets);
	return true;
}

static bool choose_jit(const struct inquiry *inquiry, enum layout_mode mode,
		       const struct vm_code_evidence *evidence, struct vm_code *vm)
{
	const struct jit_option *option = &jit_options[0];
	struct match match;

	if (!evidence->offsets.has_jit) {
		inquiry_verdict(inquiry, "jit_State",
				"built without the JIT compiler: BC_JLOOP does nothing");
		layout_without_jit(&vm->layout);
		return true;
	}
	match = match_jit(mode, evidence, &option);
	if (!choose_group(inquiry, "jit_State", &match, &vm->layout))
		return false;
	if (option->name[0] != '\0')
		inquiry_verdict(inquiry, "build options", "%s", option->name);
	/* Traces will show the number of the IR opcode, but nothing will show J's fields. */
	if (vm->layout.J_state < 0 || vm->layout.J_exitstubgroup < 0 || vm->layout.J_mcarea < 0) {
		inquiry_verdict(inquiry, "jit_State", "%zu layouts fit the code; not guessing", match.count);
		return false;
	}
	match = match_group(LAYOUT_GROUP_TRACE, mode, evidence);
	if (!choose_group(inquiry, "trace objects", &match, &vm->layout))
		return false;
	vm->traces_open = match.count > 1 || vm->layout.IR_KGC == LAYOUT_UNKNOWN;
	vm->layout.GCtrace_size += option->all;
	return true;
}

static const char *const bytecode_names[BYTECODE_COUNT] = {
	[BYTECODE_V20] = "LuaJIT 2.0",
	[BYTECODE_V21] = "LuaJIT 2.1",
	[BYTECODE_V21_BITOPS] = "LuaJIT 2.1 with bit operators",
};

static bool choose_bytecode(const struct inquiry *inquiry, const struct vm_code_evidence *evidence,
			    enum layout_bytecode preferred, struct vm_code *vm)
{
	enum layout_bytecode found = BYTECODE_COUNT;
	unsigned count = 0;

	for (enum layout_bytecode set = 0; set < BYTECODE_COUNT; set++) {
		if (!number_fits(set, BC_JMP, evidence->op_jmp) ||
		    !number_fits(set, BC_FUNCF, evidence->op_funcf))
			continue;
		count++;
		if (found == BYTECODE_COUNT || set == preferred)
			found = set;
	}
	if (count == 0) {
		inquiry_verdict(inquiry, "bytecode", "unknown numbering: BC_JMP is %d, BC_FUNCF is %d",
				evidence->op_jmp, evidence->op_funcf);
		return false;
	}
	vm->layout.bytecode = found;
	vm->bytecode_open = count > 1;
	inquiry_verdict(inquiry, "bytecode", "%s%s", bytecode_names[found],
			count > 1 ? ", to be confirmed by a state" : "");
	return true;
}

/* Does the code number the VM's states as the row's builds do? True if the code shows none (arm64). */
static bool choose_vmstates(const struct inquiry *inquiry, const struct vm_code_evidence *evidence,
			    enum layout_vmstates expected, struct vm_code *vm)
{
	vm->layout.vmstates = expected;
	if (evidence->vmstates == 0 ||
	    (vmstate_numbering(evidence->vmstates, &vm->layout.vmstates) && vm->layout.vmstates == expected))
		return true;
	inquiry_verdict(inquiry, "VM states", "an unknown numbering: the code stores those of 0x%x",
			(unsigned)evidence->vmstates);
	return false;
}

static enum layout_mode mode_of(const struct vm_code *vm, const struct vm_code_evidence *evidence)
{
	if (vm->machine == EM_AARCH64)
		return LAYOUT_ARM64;
	return evidence->offsets.gc64 ? LAYOUT_X64_GC64 : LAYOUT_X64_GC32;
}

static bool choose_layout(const struct inquiry *inquiry, const struct vm_code_evidence *evidence,
			  struct vm_code *vm)
{
	enum layout_mode mode = mode_of(vm, evidence);
	const struct match objects = match_group(LAYOUT_GROUP_OBJECT, mode, evidence);
	const struct match cframe = match_group(LAYOUT_GROUP_CFRAME, mode, evidence);
	const struct match global = match_group(LAYOUT_GROUP_GLOBAL, mode, evidence);
	const bool fits = objects.count > 0 && cframe.count > 0 && global.count > 0;
	struct match thread;

	vm->layout = evidence->offsets;
	/* Say of each whether it fits, and last of those that do not: the last verdict is the reason. */
	for (int known = 1; known >= 0; known--) {
		if ((objects.count > 0) == known)
			choose_group(inquiry, "objects", &objects, &vm->layout);
		if ((cframe.count > 0) == known)
			choose_group(inquiry, "C frame", &cframe, &vm->layout);
		if ((global.count > 0) == known)
			choose_group(inquiry, "global_State", &global, &vm->layout);
	}
	if (!fits)
		return false;
	if (global.count > 1) {
		inquiry_verdict(inquiry, "global_State", "%zu layouts fit the code; not guessing",
				global.count);
		return false;
	}
	/* The state itself will show which fork it is: recognise_confirm(). */
	thread = match_group(LAYOUT_GROUP_THREAD, mode, evidence);
	layout_fill(&vm->layout, &thread.row.offsets);
	snprintf(vm->layout.name, sizeof(vm->layout.name), "%s", global.row.name);
	return choose_vmstates(inquiry, evidence, global.row.vmstates, vm) &&
	       choose_jit(inquiry, mode, evidence, vm) &&
	       choose_bytecode(inquiry, evidence, global.row.bytecode, vm);
}

/* ---- the module ----------------------------------------------------------- */

static enum recognise_status locate(const struct inquiry *inquiry, uint16_t machine, uint64_t base,
				    struct vm_extent *ret_extent)
{
	struct elf_image image = { .machine = EM_NONE };
	const char *how = "its unwind entry";
	enum vm_find_status status;

	switch (elf_image_open(inquiry->memory, base, &image)) {
	case ELF_IMAGE_OK:
		if (image.machine == machine)
			break;
		inquiry_verdict(inquiry, "ELF image", "for another machine (e_machine %u)", image.machine);
		return RECOGNISE_OTHER_MACHINE;
	case ELF_IMAGE_UNREADABLE:
		inquiry_verdict(inquiry, "ELF image", "its headers cannot be read");
		return RECOGNISE_UNREADABLE;
	case ELF_IMAGE_MALFORMED:
		inquiry_verdict(inquiry, "ELF image", "not a sound ELF image");
		return RECOGNISE_UNREADABLE;
	case ELF_IMAGE_OTHER_MACHINE:
		inquiry_verdict(inquiry, "ELF image", "for another machine (e_machine %u)", image.machine);
		return RECOGNISE_OTHER_MACHINE;
	}
	status = vm_find_by_unwind_entry(inquiry->memory, &image, ret_extent);
	if (status == VM_FIND_NONE) {
		how = "the dispatch sequence (it has no unwind entry)";
		status = vm_find_by_dispatch(inquiry->memory, &image, ret_extent);
	}
	switch (status) {
	case VM_FIND_OK:
		inquiry_verdict(inquiry, "VM", "at 0x%" PRIx64 ", %" PRIu64 " bytes, found by %s%s",
				ret_extent->begin, ret_extent->end - ret_extent->begin, how,
				ret_extent->ffi_call == 0 ? "; no FFI" : "");
		return RECOGNISE_OK;
	case VM_FIND_UNREADABLE:
		inquiry_verdict(inquiry, "VM", "the module cannot be read");
		return RECOGNISE_UNREADABLE;
	case VM_FIND_NONE: break;
	}
	inquiry_verdict(inquiry, "VM", "no LuaJIT interpreter in this module");
	return RECOGNISE_NO_VM;
}

static enum recognise_status read_code(const struct inquiry *inquiry, uint16_t machine,
				       const struct vm_extent *extent, struct vm_code_evidence *ret_evidence)
{
	size_t length = extent->end - extent->begin;
	enum vm_code_status status;
	uint8_t *code = malloc(length);

	if (code == NULL || memory_read(inquiry->memory, extent->begin, code, length) != MEMORY_OK) {
		free(code);
		inquiry_verdict(inquiry, "VM code", "cannot be read");
		return RECOGNISE_UNREADABLE;
	}
	status = machine == EM_AARCH64 ? vm_code_arm64_read(code, length, extent->begin, ret_evidence)
				       : vm_code_x86_64_read(code, length, extent->begin, ret_evidence);
	free(code);
	switch (status) {
	case VM_CODE_OK:
		inquiry_verdict(inquiry, "mode", "%s references, %u dispatch sequences",
				ret_evidence->offsets.gc64 ? "64-bit (GC64)" : "32-bit",
				ret_evidence->dispatches);
		return RECOGNISE_OK;
	case VM_CODE_NOT_A_VM:
		inquiry_verdict(inquiry, "VM code", "does not dispatch as LuaJIT's interpreter does");
		return RECOGNISE_NO_VM;
	case VM_CODE_CONTRADICTION:
		inquiry_verdict(inquiry, "VM code", "two places disagree about %s",
				ret_evidence->contradiction);
		return RECOGNISE_UNKNOWN_LAYOUT;
	case VM_CODE_NO_MEMORY: break;
	}
	inquiry_verdict(inquiry, "VM code", "out of memory");
	return RECOGNISE_UNREADABLE;
}

/* A VM with the addresses of its code; the caller adds the layout. */
static struct vm_code vm_at(uint16_t machine, const struct vm_extent *extent)
{
	return (struct vm_code){
		.machine = machine,
		.begin = extent->begin,
		.end = extent->end,
		.ffi_call = extent->ffi_call,
		.ffi_call_end = extent->ffi_call_end,
	};
}

/* What the code contradicts in the given layout, or NULL. */
static const char *contradiction(const struct layout *given, const struct vm_code_evidence *code)
{
	if (given->gc64 != code->offsets.gc64)
		return "the width of references";
	if (given->has_jit != code->offsets.has_jit)
		return "the JIT compiler";
	if (!number_fits(given->bytecode, BC_JMP, code->op_jmp) ||
	    !number_fits(given->bytecode, BC_FUNCF, code->op_funcf))
		return "the numbers of bytecodes";
	return layout_conflict(given, &code->offsets);
}

enum recognise_status recognise_vm_as(const struct inquiry *inquiry, uint16_t machine, uint64_t base,
				      const struct layout *given, bool trusted, struct vm_code *ret_vm)
{
	const struct inquiry silent = { .memory = inquiry->memory };
	struct layout layout = *given;
	struct vm_code_evidence code;
	struct vm_extent extent;
	struct vm_code vm;
	enum recognise_status status = locate(inquiry, machine, base, &extent);
	const char *wrong;

	if (status != RECOGNISE_OK)
		return status;
	vm = vm_at(machine, &extent);
	*ret_vm = vm;
	status = read_code(inquiry, machine, &extent, &code);
	if (status == RECOGNISE_OK) {
		wrong = contradiction(given, &code);
		if (wrong != NULL && !trusted) {
			inquiry_verdict(inquiry, "layout given", "the code contradicts it at %s", wrong);
			return RECOGNISE_UNKNOWN_LAYOUT;
		}
		choose_layout(&silent, &code, &vm);
		layout_fill(&layout, &vm.layout);
	} else if (!trusted) {
		return status;
	}
	wrong = layout_missing(&layout);
	if (wrong != NULL) {
		inquiry_verdict(inquiry, "layout given", "it lacks %s", wrong);
		return RECOGNISE_UNKNOWN_LAYOUT;
	}
	wrong = layout_unusable(&layout);
	if (wrong != NULL) {
		inquiry_verdict(inquiry, "layout given", "%s cannot be right", wrong);
		return RECOGNISE_UNKNOWN_LAYOUT;
	}
	vm.layout = layout;
	vm.traces_open = vm.bytecode_open = false;
	*ret_vm = vm;
	return RECOGNISE_OK;
}

enum recognise_status recognise_find(struct memory *memory, uint16_t machine, uint64_t base,
				     recognise_evidence *evidence, void *context)
{
	const struct inquiry inquiry = { memory, evidence, context };
	struct vm_extent extent;

	return locate(&inquiry, machine, base, &extent);
}

enum recognise_status recognise_vm(struct memory *memory, uint16_t machine, uint64_t base,
				   recognise_evidence *evidence, void *context, struct vm_code *ret_vm)
{
	const struct inquiry inquiry = { memory, evidence, context };
	struct vm_code_evidence code;
	struct vm_extent extent;
	struct vm_code vm;
	enum recognise_status status;

	status = locate(&inquiry, machine, base, &extent);
	if (status != RECOGNISE_OK)
		return status;
	vm = vm_at(machine, &extent);
	*ret_vm = vm;
	status = read_code(&inquiry, machine, &extent, &code);
	if (status != RECOGNISE_OK)
		return status;
	if (!choose_layout(&inquiry, &code, &vm))
		return RECOGNISE_UNKNOWN_LAYOUT;
	*ret_vm = vm;
	return RECOGNISE_OK;
}

/* SPDX-License-Identifier: MIT */
/*
 * shown_code: a module whose interpreter is where a test says, and whose code shows what it says.
 */
#ifndef LJSPY_SHOWN_CODE_H
#define LJSPY_SHOWN_CODE_H

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "luajit-layouts/bytecode.h"
#include "luajit-layouts/module/elf_image.h"
#include "luajit-layouts/module/vm_code_arm64.h"
#include "luajit-layouts/module/vm_code_x86_64.h"
#include "luajit-layouts/module/vm_find.h"
#include "memory/memory.h"
#include "tests/unit/instead_of.h"

INSTEAD_OF(elf_image_open);
INSTEAD_OF(vm_find_by_unwind_entry);
INSTEAD_OF(vm_find_by_dispatch);
INSTEAD_OF(vm_code_x86_64_read);
INSTEAD_OF(vm_code_arm64_read);

enum { SHOWN_BEGIN = 0x1000, SHOWN_END = 0x2000, SHOWN_CALL_END = 0x2040 };

static struct {
	enum elf_image_status elf;
	uint16_t machine;
	enum vm_find_status by_entry, by_dispatch;
	struct vm_extent extent;
	bool is_unreadable; /* the code, not what says where it is */
	enum vm_code_status status;
	struct vm_code_evidence evidence;
} shown;

enum elf_image_status __wrap_elf_image_open(struct memory *memory, uint64_t base, struct elf_image *ret_image)
{
	(void)memory;
	(void)base;
	*ret_image = (struct elf_image){ .machine = shown.machine };
	return shown.elf;
}

enum vm_find_status __wrap_vm_find_by_unwind_entry(struct memory *memory, const struct elf_image *image,
						   struct vm_extent *ret_extent)
{
	(void)memory;
	assert_int_equal(image->machine, shown.machine);
	*ret_extent = shown.extent;
	return shown.by_entry;
}

enum vm_find_status __wrap_vm_find_by_dispatch(struct memory *memory, const struct elf_image *image,
					       struct vm_extent *ret_extent)
{
	(void)memory;
	assert_int_equal(image->machine, shown.machine);
	assert_int_equal(shown.by_entry, VM_FIND_NONE);
	*ret_extent = shown.extent;
	return shown.by_dispatch;
}

static inline enum vm_code_status shown_code_read(uint16_t machine, size_t length, uint64_t address,
						  struct vm_code_evidence *ret_evidence)
{
	assert_int_equal(machine, shown.machine);
	assert_int_equal(address, shown.extent.begin);
	assert_int_equal(length, shown.extent.end - shown.extent.begin);
	*ret_evidence = shown.evidence;
	return shown.status;
}

enum vm_code_status __wrap_vm_code_x86_64_read(const uint8_t *bytes, size_t length, uint64_t address,
					       struct vm_code_evidence *ret_evidence)
{
	(void)bytes;
	return shown_code_read(EM_X86_64, length, address, ret_evidence);
}

enum vm_code_status __wrap_vm_code_arm64_read(const uint8_t *bytes, size_t length, uint64_t address,
					      struct vm_code_evidence *ret_evidence)
{
	(void)bytes;
	return shown_code_read(EM_AARCH64, length, address, ret_evidence);
}

static inline void shown_read_ranges(struct memory *memory, struct memory_range *ranges, size_t count)
{
	(void)memory;
	for (size_t i = 0; i < count; i++) {
		memset(ranges[i].copy, 0, ranges[i].length);
		ranges[i].status = shown.is_unreadable ? MEMORY_UNMAPPED : MEMORY_OK;
	}
}

static struct memory shown_memory = { .read_ranges = shown_read_ranges };

/* The code of a build shows all but most fields of the compiler and those of traces. */
static inline void show_code(const struct layout *layout)
{
	struct vm_code_evidence *evidence = &shown.evidence;

	memset(&shown, 0, sizeof(shown));
	shown.machine = EM_X86_64;
	shown.extent = (struct vm_extent){
		.begin = SHOWN_BEGIN, .end = SHOWN_END, .ffi_call = SHOWN_END, .ffi_call_end = SHOWN_CALL_END
	};
	vm_code_clear(evidence);
	for (size_t i = 0; i < layout_field_count; i++)
		if (strcmp(layout_fields[i].structure, "J") != 0 &&
		    strcmp(layout_fields[i].structure, "IR") != 0 &&
		    strcmp(layout_fields[i].structure, "GCtrace") != 0 &&
		    strcmp(layout_fields[i].structure, "SnapShot") != 0)
			*layout_offset_in(&evidence->offsets,
					  &layout_fields[i]) = layout_offset(layout, &layout_fields[i]);
	evidence->offsets.gc64 = layout->gc64;
	evidence->offsets.has_jit = true;
	evidence->offsets.J_L = layout->J_L;
	evidence->offsets.J_trace = layout->J_trace;
	evidence->offsets.J_parent = layout->J_parent;
	evidence->offsets.J_exitno = layout->J_exitno;
	evidence->op_jmp = bytecode_number(layout, BC_JMP);
	evidence->op_funcf = bytecode_number(layout, BC_FUNCF);
	evidence->exit_error_code = layout->SnapShot_mcofs != LAYOUT_ABSENT;
}

#endif

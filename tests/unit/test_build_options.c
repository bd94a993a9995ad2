/* SPDX-License-Identifier: MIT */
/* Options that a LuaJIT was built with move fields of the compiler's state, those that the code does not show, too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <elf.h>

#include "luajit-layouts/bytecode.h"
#include "luajit-layouts/module/elf_image.h"
#include "luajit-layouts/module/vm_code_x86_64.h"
#include "luajit-layouts/module/vm_find.h"
#include "luajit-layouts/recognise/recognise.h"
#include "luajit-layouts/release.h"
#include "tests/unit/instead_of.h"

INSTEAD_OF(elf_image_open);
INSTEAD_OF(vm_find_by_unwind_entry);
INSTEAD_OF(vm_code_x86_64_read);

static struct vm_code_evidence shown; /* what the code of the module tells */

enum elf_image_status __wrap_elf_image_open(struct memory *memory, uint64_t base, struct elf_image *ret_image)
{
	(void)memory;
	(void)base;
	*ret_image = (struct elf_image){ .machine = EM_X86_64 };
	return ELF_IMAGE_OK;
}

enum vm_find_status __wrap_vm_find_by_unwind_entry(struct memory *memory, const struct elf_image *image,
						   struct vm_extent *ret_extent)
{
	(void)memory;
	(void)image;
	*ret_extent = (struct vm_extent){ .begin = 0x1000, .end = 0x2000 };
	return VM_FIND_OK;
}

enum vm_code_status __wrap_vm_code_x86_64_read(const uint8_t *bytes, size_t length, uint64_t address,
					       struct vm_code_evidence *ret_evidence)
{
	(void)bytes;
	(void)length;
	(void)address;
	*ret_evidence = shown;
	return VM_CODE_OK;
}

static void read_ranges(struct memory *memory, struct memory_range *ranges, size_t count)
{
	(void)memory;
	for (size_t i = 0; i < count; i++) {
		memset(ranges[i].copy, 0, ranges[i].length);
		ranges[i].status = MEMORY_OK;
	}
}

static char options[128]; /* the verdict on them, if there is one */

static void note_verdict(void *context, const char *probe, const char *verdict)
{
	(void)context;
	if (strcmp(probe, "build options") == 0)
		snprintf(options, sizeof(options), "%s", verdict);
}

/* The fields before J->penalty, and those behind it. */
#define FRONT(DO) DO(L) DO(pc) DO(fn) DO(pt) DO(state) DO(trace) DO(sizetrace) DO(exitstubgroup)
#define TAIL(DO) DO(startpc) DO(parent) DO(exitno) DO(mcarea) DO(szmcarea)

static void move(struct layout *layout, int32_t all, int32_t tail)
{
#define MOVE_ALL(field) layout->J_##field += all;
#define MOVE_TAIL(field) layout->J_##field += all + tail;
	FRONT(MOVE_ALL)
	TAIL(MOVE_TAIL)
	layout->GCtrace_size += all;
}

/* The code of a build shows all but most fields of the compiler and those of traces. */
static void show(const struct layout *layout)
{
	vm_code_clear(&shown);
	for (size_t i = 0; i < layout_field_count; i++)
		if (strcmp(layout_fields[i].structure, "J") != 0 &&
		    strcmp(layout_fields[i].structure, "IR") != 0 &&
		    strcmp(layout_fields[i].structure, "GCtrace") != 0 &&
		    strcmp(layout_fields[i].structure, "SnapShot") != 0)
			*layout_offset_in(&shown.offsets,
					  &layout_fields[i]) = layout_offset(layout, &layout_fields[i]);
	shown.offsets.gc64 = layout->gc64;
	shown.offsets.has_jit = true;
	shown.offsets.J_L = layout->J_L;
	shown.offsets.J_trace = layout->J_trace;
	shown.offsets.J_parent = layout->J_parent;
	shown.offsets.J_exitno = layout->J_exitno;
	shown.op_jmp = bytecode_number(layout, BC_JMP);
	shown.op_funcf = bytecode_number(layout, BC_FUNCF);
	shown.exit_error_code = layout->SnapShot_mcofs != LAYOUT_ABSENT;
}

/* Is the build of this release with these options recognised as one? */
static bool is_recognised(const char *release, bool gc64, const char *name, int32_t all, int32_t tail)
{
	struct memory memory = { .read_ranges = read_ranges };
	struct layout layout;
	struct vm_code vm;

	assert_true(release_layout(release, &layout));
	if (layout.gc64 != gc64)
		return false;
	move(&layout, all, tail);
	show(&layout);
	options[0] = '\0';
	if (recognise_vm(&memory, EM_X86_64, 0, note_verdict, NULL, &vm) != RECOGNISE_OK ||
	    strcmp(options, name) != 0)
		return false;
#define SAME(field) assert_int_equal(vm.layout.J_##field, layout.J_##field);
	FRONT(SAME)
	TAIL(SAME)
	if (vm.layout.GCtrace_size >= 0)
		assert_int_equal(vm.layout.GCtrace_size, layout.GCtrace_size);
	return true;
}

/* With GC64, LUAJIT_ENABLE_TABLE_BUMP moves the last fields by 200 bytes or 192, which is left to real builds. */
static void fields_that_are_not_shown_move_with_those_that_are(void **state)
{
	static const struct {
		const char *name;
		bool gc64;
		int32_t all, tail;
	} builds[] = {
		{ "", true, 0, 0 },
		{ "", false, 0, 0 },
		{ "LUAJIT_USE_GDBJIT", true, 8, 0 },
		{ "LUAJIT_USE_GDBJIT", false, 8, 0 },
		{ "LUAJIT_ENABLE_TABLE_BUMP", false, 0, 96 },
		{ "LUAJIT_USE_GDBJIT, LUAJIT_ENABLE_TABLE_BUMP", false, 8, 96 },
	};
	const char *release;

	(void)state;
	for (size_t i = 0; i < sizeof(builds) / sizeof(builds[0]); i++) {
		size_t recognised = 0;

		for (size_t j = 0; (release = release_name(j)) != NULL; j++)
			recognised += is_recognised(release, builds[i].gc64, builds[i].name, builds[i].all,
						    builds[i].tail);
		if (recognised == 0)
			fail_msg("no release with \"%s\" is recognised", builds[i].name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields_that_are_not_shown_move_with_those_that_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

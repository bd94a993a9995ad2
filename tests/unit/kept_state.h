/* SPDX-License-Identifier: MIT */
/*
 * kept_state: a state of LuaJIT with the heap that is kept of a process (test_heap_read.c), as self-tests
 * look at it.
 */
#ifndef LJSPY_KEPT_STATE_H
#define LJSPY_KEPT_STATE_H

#include <elf.h>
#include <stdint.h>
#include <string.h>

#include "luajit-layouts/field.h"
#include "luajit-layouts/vm.h"
#include "tests/unit/kept_pages.h"

enum {
	OBJECTS_MAX = 4096,
	KINDS = 16,
	PUSH_IMM8 = 0x6a, /* begins an exit stub, with the number of the exit */
	/* In place of a type, which is a larger number: */
	OF_G = 0,
	OF_J,
	OF_MAIN,
};

static const char *const kept_states[] = { "heap-gc64.process", "heap-gc32.process" };
enum { KEPT_STATES = sizeof(kept_states) / sizeof(kept_states[0]) };

static struct kept_pages kept_state;
static struct vm_code kept_vm;
static uint64_t kept_last;          /* the object that was made last, which may not be complete */
static uint64_t kept_newest[KINDS]; /* object of each type, but for that one; 0: none */

static inline uint64_t kept_number(uint64_t address, unsigned size)
{
	uint64_t value = 0;

	assert_int_equal(memory_read(&kept_state.memory, address, &value, size), MEMORY_OK);
	return value;
}

static inline uint64_t kept_reference(uint64_t address)
{
	return kept_number(address, layout_ref_size(&kept_vm.layout));
}

/*
 * What is not kept: the main thread stands in no native frame, traces have code and exits, and their area a
 * head.
 */
static inline void kept_state_begin(const char *build)
{
	uint64_t at;

	kept_pages_load(&kept_state, build);
	kept_vm = (struct vm_code){ .machine = EM_X86_64, .layout = kept_state.layout };
	kept_vm.begin = kept_number(kept_state.g + (uint64_t)kept_vm.layout.GG_dispatch, 8);
	kept_vm.end = kept_vm.begin + 1;
	memset(kept_newest, 0, sizeof(kept_newest));
	kept_pages_put(&kept_state,
		       kept_reference(kept_state.g + (uint64_t)kept_vm.layout.g_mainthref) +
			       (uint64_t)kept_vm.layout.L_cframe,
		       0, 8);
	at = kept_reference(kept_state.g + (uint64_t)kept_vm.layout.g_gc_root);
	for (size_t i = 0; at && i < OBJECTS_MAX; i++) {
		const uint8_t gct = (uint8_t)kept_number(at + (uint64_t)kept_vm.layout.GChead_gct, 1);

		assert_in_range(gct, 0, KINDS - 1);
		if (i == 0)
			kept_last = at;
		else if (!kept_newest[gct])
			kept_newest[gct] = at;
		at = kept_reference(at + (uint64_t)kept_vm.layout.GChead_nextgc);
	}
	assert_int_equal(at, 0);
	at = kept_newest[GCT_TRACE];
	assert_int_not_equal(at, 0);
	kept_pages_put(&kept_state,
		       kept_number(at + (uint64_t)kept_vm.layout.GCtrace_mcode, 8) +
			       kept_number(at + (uint64_t)kept_vm.layout.GCtrace_szmcode, 4) - 1,
		       0xc3, 1);
	kept_newest[OF_G] = kept_state.g;
	kept_newest[OF_J] = at = kept_state.g + (uint64_t)kept_vm.layout.GG_J;
	kept_newest[OF_MAIN] = kept_reference(kept_state.g + (uint64_t)kept_vm.layout.g_mainthref);
	kept_pages_put(&kept_state, kept_number(at + (uint64_t)kept_vm.layout.J_mcarea, 8) + 8,
		       kept_number(at + (uint64_t)kept_vm.layout.J_szmcarea, 8), 8);
	kept_pages_put(&kept_state, kept_number(at + (uint64_t)kept_vm.layout.J_exitstubgroup, 8), PUSH_IMM8,
		       2);
}

static inline void kept_state_end(void)
{
	kept_pages_free(&kept_state);
}

#endif

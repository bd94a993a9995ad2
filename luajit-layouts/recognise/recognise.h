/* SPDX-License-Identifier: MIT */
/*
 * recognise: which LuaJIT build does this module contain, and how is it laid out?
 *
 * Recognition uses no symbols, version strings or files. It reads the module
 * where it is mapped, finds the VM by its unwind entry (or by the instruction
 * pattern of the dispatch sequence) and takes the offsets that matter from the
 * VM's own instructions. Tables supply and cross-check the rest.
 */
#ifndef LJSPY_RECOGNISE_H
#define LJSPY_RECOGNISE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "luajit-layouts/inquiry.h"
#include "luajit-layouts/layout.h"
#include "luajit-layouts/vm.h"
#include "memory/memory.h"

enum recognise_status {
	RECOGNISE_OK,
	RECOGNISE_NO_VM,          /* no LuaJIT in this module */
	RECOGNISE_UNREADABLE,     /* its ELF image cannot be read or is malformed */
	RECOGNISE_OTHER_MACHINE,  /* an ELF image for another machine than the target's */
	RECOGNISE_UNKNOWN_LAYOUT, /* a LuaJIT VM, but no layout fits all the evidence */
};

/*
 * Look for a VM in the ELF image whose header is mapped at base, in a target
 * that runs on machine: EM_X86_64 or EM_AARCH64. evidence may be NULL. *ret_vm
 * is complete on RECOGNISE_OK; on RECOGNISE_UNKNOWN_LAYOUT it holds only the
 * addresses of the code.
 */
enum recognise_status recognise_vm(struct memory *memory, uint16_t machine, uint64_t base,
				   recognise_evidence *evidence, void *context, struct vm_code *ret_vm);

/*
 * Only whether there is one: RECOGNISE_OK, or as recognise_vm(). For that, memory may be that of the module's
 * file instead of a target's.
 */
enum recognise_status recognise_find(struct memory *memory, uint16_t machine, uint64_t base,
				     recognise_evidence *evidence, void *context);

/*
 * As recognise_vm(), with a given layout. Fields that it leaves unknown come
 * from the code and the tables. Unless it is trusted, it must not contradict
 * the code. RECOGNISE_UNKNOWN_LAYOUT if it does, or if it stays incomplete or
 * cannot be right.
 */
enum recognise_status recognise_vm_as(const struct inquiry *inquiry, uint16_t machine, uint64_t base,
				      const struct layout *given, bool trusted, struct vm_code *ret_vm);

/*
 * Find the global_States that belong to vm in one writable range by mutual
 * pointers: a lua_State whose glref leads to a global_State whose mainthref
 * leads back, in a GG_State whose dispatch table points into the VM's text.
 * Writes at most max addresses and returns how many there are. The search is
 * cheap per byte, but with gigabytes to search, try small ranges first: states
 * are among a process's first allocations.
 */
size_t recognise_states(struct memory *memory, const struct vm_code *vm, uint64_t range_begin,
			uint64_t range_end, uint64_t *ret_g, size_t max);

/* Would recognise_states() find a state at g? */
bool recognise_finds_state(struct memory *memory, const struct vm_code *vm, uint64_t g);

/* Is there still a state at g that is not being closed? */
bool recognise_is_state(struct memory *memory, const struct vm_code *vm, uint64_t g);

/*
 * Settle what only a state can tell (the end of lua_State, the bytecode
 * numbering, the trace objects), and confirm the layout by the state's objects
 * (selftest.h). Call it once a state is found, and again while vm->traces_open
 * and the state has traces. After RECOGNISE_OK something may still be open: vm
 * says what. Returns RECOGNISE_UNKNOWN_LAYOUT, with *vm unchanged, when a
 * self-test contradicts the layout or no row passes. The target must be stopped
 * or asleep. Believe a failure only when it repeats (selftest.h says why).
 */
enum recognise_status recognise_confirm(struct memory *memory, struct vm_code *vm, uint64_t g,
					recognise_evidence *evidence, void *context);

#endif

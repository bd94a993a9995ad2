/* SPDX-License-Identifier: MIT */
/*
 * vm_find: finds LuaJIT's interpreter in a module.
 *
 * buildvm writes the unwind entry of the interpreter by hand (emit_asm_debug()
 * in vm_x64.dasc), so its bytes are the same in every build and unlike any
 * compiler's. A build with LUAJIT_NO_UNWIND has no such entry; there the
 * instruction sequence that ends most opcode handlers marks the place.
 */
#ifndef LJSPY_VM_FIND_H
#define LJSPY_VM_FIND_H

#include <stdint.h>

#include "luajit-layouts/module/elf_image.h"
#include "memory/memory.h"

enum vm_find_status {
	VM_FIND_OK,
	VM_FIND_NONE, /* the module holds no LuaJIT interpreter */
	VM_FIND_UNREADABLE,
};

struct vm_extent {
	uint64_t begin;                  /* lj_vm_asm_begin */
	uint64_t end;                    /* lj_vm_ffi_call, or the end of the VM when there is none */
	uint64_t ffi_call, ffi_call_end; /* 0 without FFI */
};

/* By its entry in .eh_frame. */
enum vm_find_status vm_find_by_unwind_entry(struct memory *memory, const struct elf_image *image,
					    struct vm_extent *ret_extent);

/*
 * By the dispatch sequence. Without FFI nothing marks the end of the VM; it is
 * then taken to be the start of the next function with an unwind entry.
 */
enum vm_find_status vm_find_by_dispatch(struct memory *memory, const struct elf_image *image,
					struct vm_extent *ret_extent);

#endif

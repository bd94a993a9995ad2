/* SPDX-License-Identifier: MIT */
/*
 * vm: LuaJIT's interpreter in one mapped module, and where its build keeps its fields.
 */
#ifndef LJSPY_VM_H
#define LJSPY_VM_H

#include <stdbool.h>
#include <stdint.h>

#include "luajit-layouts/layout.h"

/* The VM's machine code in one mapped module (the output of vm_x64.dasc, vm_x86.dasc, vm_arm64.dasc). */
struct vm_code {
	uint16_t machine;  /* EM_X86_64 or EM_AARCH64 */
	uint64_t begin;    /* lj_vm_asm_begin: handler of opcode 0 */
	uint64_t end;      /* end of the interpreter; lj_vm_ffi_call excluded */
	uint64_t ffi_call; /* lj_vm_ffi_call, 0 when the build has none */
	uint64_t ffi_call_end;
	struct layout layout;
	/*
	 * What the code leaves open until recognise_confirm() has a state:
	 * which row of the table of trace objects holds (until then, fields
	 * that differ between rows are LAYOUT_UNKNOWN), and the bytecode
	 * numbering.
	 */
	bool traces_open, bytecode_open;
	bool confirmed; /* by a state's objects; or the layout was given and is trusted */
};

#endif

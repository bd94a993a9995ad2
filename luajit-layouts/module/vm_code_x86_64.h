/* SPDX-License-Identifier: MIT */
/*
 * vm_code_x86_64: what LuaJIT's interpreter shows of its own build on x86-64.
 *
 * DynASM assembles the interpreter from vm_x64.dasc (GC64) or vm_x86.dasc
 * (32-bit references on x86-64); no compiler is involved. So the same few
 * instruction shapes occur in every build, with the build's offsets as
 * operands. Each probe reads one shape.
 */
#ifndef LJSPY_VM_CODE_X86_64_H
#define LJSPY_VM_CODE_X86_64_H

#include <stddef.h>
#include <stdint.h>

#include "luajit-layouts/module/vm_code.h"

/*
 * The next dispatch sequence at or after at: the instructions that most
 * handlers end with, the first of which (add PC, 4) may have a prefix.
 * NULL if there is none before end.
 */
const uint8_t *vm_code_x86_64_dispatch(const uint8_t *at, const uint8_t *end);

/* Read the interpreter's code: a copy of length bytes at address in the target. */
enum vm_code_status vm_code_x86_64_read(const uint8_t *bytes, size_t length, uint64_t address,
					struct vm_code_evidence *ret_evidence);

#endif

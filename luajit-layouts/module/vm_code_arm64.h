/* SPDX-License-Identifier: MIT */
/*
 * vm_code_arm64: what LuaJIT's interpreter shows of its own build on arm64.
 *
 * As vm_code_x86_64, for the code of vm_arm64.dasc, which addresses the fields
 * of global_State, jit_State and the dispatch table from g.
 */
#ifndef LJSPY_VM_CODE_ARM64_H
#define LJSPY_VM_CODE_ARM64_H

#include <stddef.h>
#include <stdint.h>

#include "luajit-layouts/module/vm_code.h"

/*
 * The next dispatch sequence at or after at: the instructions that most
 * handlers end with. NULL if there is none before end.
 */
const uint8_t *vm_code_arm64_dispatch(const uint8_t *at, const uint8_t *end);

/* Read the interpreter's code: a copy of length bytes at address in the target. */
enum vm_code_status vm_code_arm64_read(const uint8_t *bytes, size_t length, uint64_t address,
				       struct vm_code_evidence *ret_evidence);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * exit_stubs: the code that exits of traces jump to.
 *
 * On x86 all traces share groups of stubs, and J->exitstubgroup leads to them (lj_asm_x86.h,
 * asm_exitstub_gen()). On arm64 each trace has its own behind its machine code: one call for
 * each exit, of the code before them that calls vm_exit_handler (lj_asm_arm64.h,
 * asm_exitstub_setup(); lj_target_arm64.h, exitstub_trace_addr()).
 */
#ifndef LJSPY_EXIT_STUBS_H
#define LJSPY_EXIT_STUBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "luajit-layouts/layout.h"
#include "unwind/trace/trace.h"

enum { EXIT_GROUPS = 16 };

/*---- Groups ----*/

/* The number of the exit whose stub is at pc, or -1; and is pc in any group? An unused group is 0. */
int exit_group_number(const uint64_t groups[static EXIT_GROUPS], uint64_t pc);
bool exit_group_contains(const uint64_t groups[static EXIT_GROUPS], uint64_t pc);

/*---- A trace's own ----*/

/* How many bytes behind its machine code a trace's stubs may take, at most. */
size_t exit_stubs_size_max(const struct trace *trace, const struct layout *layout);

/* The number of the exit whose stub is at pc, or -1. stubs: length bytes from behind the machine code on. */
int exit_stub_number(const struct trace *trace, const uint8_t *stubs, size_t length, uint64_t pc);

#endif

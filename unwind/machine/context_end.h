/* SPDX-License-Identifier: MIT */
/*
 * context_end: the code that the function of a C coroutine returns to. Each architecture has its own, in its
 * own .c file.
 */
#ifndef LJSPY_CONTEXT_END_H
#define LJSPY_CONTEXT_END_H

#include <stdbool.h>
#include <stdint.h>

#include "memory/memory.h"

/*
 * Does the code at pc end the program, as Boost.Context's make_fcontext() has it run when a coroutine's
 * function returns (1.74, src/asm/make_*_elf_gas.S, finish)? It has no unwind table, and no caller. glibc's
 * makecontext() has a table that says so.
 */
bool context_end_is_at(struct memory *text, uint64_t pc);

#endif

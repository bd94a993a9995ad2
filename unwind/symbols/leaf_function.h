/* SPDX-License-Identifier: MIT */
/*
 * leaf_function: does a function leave the stack as it finds it?
 *
 * Code written by hand may have no unwind table. If none of its instructions
 * changes the stack pointer before it returns, the return address is always on
 * top of the stack. If none changes the registers that calls keep, these hold
 * the caller's values.
 */
#ifndef LJSPY_LEAF_FUNCTION_H
#define LJSPY_LEAF_FUNCTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Is the code the whole of such a function? Also false if it does not return, or not all of it is code. */
bool leaf_function(const uint8_t *code, size_t length);

#endif

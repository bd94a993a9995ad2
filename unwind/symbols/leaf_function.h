/* SPDX-License-Identifier: MIT */
/*
 * leaf_function: a function that leaves the stack as it finds it.
 *
 * Code written by hand may have no unwind table. If nothing in it changes the
 * stack pointer before it returns, the return address is on top of the stack
 * wherever it is; and if nothing changes registers that callers want kept, they
 * hold what they held there.
 */
#ifndef LJSPY_LEAF_FUNCTION_H
#define LJSPY_LEAF_FUNCTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Is that all of such a function? False too if it does not return, or not all of it is code. */
bool leaf_function(const uint8_t *code, size_t length);

#endif

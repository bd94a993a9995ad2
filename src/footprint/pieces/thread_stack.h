/* SPDX-License-Identifier: MIT */
/*
 * thread_stack: finds the stack that a C library has made for a thread.
 *
 * The library keeps its record of a thread (struct pthread) at the end of the stack. Its
 * first word is its own address, and a pair of words in it says where the stack is, and
 * how large. The stack of a thread that has ended may be kept for the next one.
 * Facts: glibc, nptl/descr.h (stackblock, stackblock_size); musl, src/internal/pthread_impl.h
 * (map_base, map_size).
 */
#ifndef LJSPY_THREAD_STACK_H
#define LJSPY_THREAD_STACK_H

#include <stdbool.h>
#include <stdint.h>

#include "src/footprint/pieces/window.h"

/*
 * The first stack in the mapping [begin, end). lowest: where a guard before the mapping
 * begins; begin if there is none. False if there is none.
 */
bool thread_stack_find(struct window *window, uint64_t lowest, uint64_t begin, uint64_t end,
		       uint64_t *ret_begin, uint64_t *ret_end);

#endif

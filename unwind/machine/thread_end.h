/* SPDX-License-Identifier: MIT */
/*
 * thread_end: the code that a thread's function returns to. Each architecture has its own bytes, in its own
 * .c file.
 */
#ifndef LJSPY_THREAD_END_H
#define LJSPY_THREAD_END_H

#include <stdbool.h>
#include <stdint.h>

#include "memory/memory.h"

/*
 * Does the code at pc end its thread, and does nothing else? Compares it with that of musl (clone.s, as of
 * 1.2.3), which has no unwind table. glibc's has one.
 */
bool thread_end_is_at(struct memory *text, uint64_t pc);

/* That code. */
enum { THREAD_END_BYTES = 8 };
extern const uint8_t thread_end_code[THREAD_END_BYTES];

/*
 * Functions of musl's that never return have their return address in so many words of the stack at most, with
 * the registers that they save (1.2.3: src/thread/pthread_create.c, start; src/env/__libc_start_main.c).
 */
extern const unsigned int thread_end_words, program_end_words;

#endif

/* SPDX-License-Identifier: MIT */
/*
 * reading: what ljspy does with the memory of one process, as a fuzz target
 * and as what makes its images. Memory may be spoilt in any way; it is not
 * that of the image where this is being made.
 */
#ifndef LJSPY_TESTS_FUZZ_READING_H
#define LJSPY_TESTS_FUZZ_READING_H

#include "memory/memory.h"
#include "tests/fuzz/image.h"

/* The stack of its thread, its coroutines and traces if they are wanted, and the names of all that. */
void reading_walk(const struct memory_image *image, struct memory *memory, bool coroutines);

/* The stack of its thread, of whose state it alone tells, as of one that was made a moment ago. */
void reading_unknown(const struct memory_image *image, struct memory *memory);

/*
 * The same as the thread's own stack, while it runs on another one: whose stack pointer leads into
 * IMAGE_FREE.
 */
void reading_switched(const struct memory_image *image, struct memory *memory);

/* Which LuaJIT it is, its states, whether its objects confirm that, and names of its code. */
void reading_recognise(const struct memory_image *image, struct memory *memory);

#endif

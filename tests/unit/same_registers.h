/* SPDX-License-Identifier: MIT */
/* same_registers: compare registers, but not the padding behind the last one. */
#ifndef LJSPY_SAME_REGISTERS_H
#define LJSPY_SAME_REGISTERS_H

#include <stddef.h>

#include "unwind/elf/registers.h"

enum { REGISTERS_BYTES = offsetof(struct registers, unknown) + sizeof(unsigned int) };

/* Pointers to two; of cmocka. */
#define assert_same_registers(found, expected) assert_memory_equal((found), (expected), REGISTERS_BYTES)

#endif

/* SPDX-License-Identifier: MIT */
/*
 * core_registers: read a thread's registers from a core file.
 */
#ifndef LJSPY_CORE_REGISTERS_H
#define LJSPY_CORE_REGISTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "unwind/elf/registers.h"

/* Is machine (e_machine of the core's ELF header) the one that ljspy was built for? */
bool core_registers_machine(uint16_t machine);

/* Interpret an NT_PRSTATUS note of size bytes. False if it is too short. */
bool core_registers_read(const uint8_t *note, size_t size, pid_t *ret_tid, struct registers *ret_registers);

#endif

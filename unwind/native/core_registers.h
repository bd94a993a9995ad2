/* SPDX-License-Identifier: MIT */
/*
 * core_registers: the registers of a thread in a core file.
 *
 * One file per architecture: the note's structure is the machine's.
 */
#ifndef LJSPY_CORE_REGISTERS_H
#define LJSPY_CORE_REGISTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "unwind/elf/registers.h"

/* Is it a core of the machine that ljspy was built for? */
bool core_registers_machine(uint16_t machine);

/* Interpret an NT_PRSTATUS note. False if it is too short for one. */
bool core_registers_read(const uint8_t *note, size_t size, pid_t *ret_tid,
			 struct registers *ret_registers);

#endif

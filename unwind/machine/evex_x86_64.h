/* SPDX-License-Identifier: MIT */
/*
 * evex_x86_64: the length of an AVX-512 instruction, and what it writes beside vector and mask registers.
 *
 * That includes instructions on mask registers, whose prefix is VEX. capstone 4 knows only some of all these,
 * and compilers at run time use them. It takes no more to follow where registers and the stack pointer are
 * kept, as such instructions never touch the stack pointer.
 * Facts: Intel's Software Developer's Manual, volume 2, sections 2.7 (EVEX, disp8*N) and 5 (the opcodes), and
 * its architecture specifications of AVX512-FP16 and APX.
 */
#ifndef LJSPY_EVEX_X86_64_H
#define LJSPY_EVEX_X86_64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { EVEX_NO_REGISTER = -1 };

struct evex {
	uint8_t size; /* of the instruction, in bytes */
	int written;  /* the general register that it writes, as encoded; or EVEX_NO_REGISTER */
	bool writes_flags;
	bool stores;         /* to memory, at base + displacement */
	uint8_t store_bytes; /* at most */
	int base;            /* a general register; EVEX_NO_REGISTER: another address, or one with an index */
	int32_t displacement;
};

/*
 * False if these bytes begin with no such instruction, or with one of APX, which may write any general
 * register.
 */
bool evex_decode(const uint8_t *bytes, size_t length, struct evex *ret_evex);

#endif

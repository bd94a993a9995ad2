/* SPDX-License-Identifier: MIT */
/*
 * machine_decoder: the machine's instructions one after the other, with their details, by capstone.
 *
 * machine_decoder_x86_64.c and machine_decoder_arm64.c hold what depends on the machine.
 */
#ifndef LJSPY_MACHINE_DECODER_H
#define LJSPY_MACHINE_DECODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <capstone/capstone.h>

struct machine_decoder {
	csh capstone;
	cs_insn *insn; /* what was decoded last; the decoder's own */
};

/* False if capstone does not work, or out of memory: there is nothing to close then. */
bool machine_decoder_open(struct machine_decoder *ret_decoder);
void machine_decoder_close(struct machine_decoder *decoder);

/* Decode the instruction at *code, and go on behind it. False if the bytes are none: nothing moves. */
bool machine_decoder_next(struct machine_decoder *decoder, const uint8_t **code, size_t *length,
			  uint64_t *address);

/* May control go on elsewhere: a jump, with or without a condition? */
bool machine_decoder_jumps(const struct machine_decoder *decoder);

/*---- Each machine has its own ----*/

cs_err machine_decoder_open_capstone(csh *ret_capstone);

/* The bytes to go on by where bytes are no instruction. */
size_t machine_decoder_step(void);

/* Does the instruction return, as every function's last one does? */
bool machine_decoder_returns(const struct machine_decoder *decoder);

/* Does control never go on behind it: a jump without a condition, or a return? */
bool machine_decoder_ends(const struct machine_decoder *decoder);

/* The address that the instruction jumps to or calls. False if it does neither, or not directly. */
bool machine_decoder_target(const struct machine_decoder *decoder, uint64_t *ret_target);

/* Is it the stack pointer, or a register that calls keep, by any of its names? A link register is one. */
bool machine_decoder_keeps(unsigned int reg);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * made_up_proto: a prototype of bytecodes that a test chooses.
 */
#ifndef LJSPY_MADE_UP_PROTO_H
#define LJSPY_MADE_UP_PROTO_H

#include <stdint.h>
#include <string.h>

#include "luajit-layouts/bytecode.h"
#include "unwind/lua/lua_objects.h"
#include "unwind/lua/luajit.h"

/* b and c are the halves of the operand D, too. */
struct bytecode {
	enum bytecode_op op;
	uint8_t a, b, c;
};

enum { JUMP = 0x80 }; /* b of a jump forwards by c, from the next bytecode (BCBIAS_J) */

/* A bytecode as it is in memory. */
static inline uint32_t bytecode_word(const struct layout *layout, const struct bytecode *bytecode)
{
	int number = bytecode_number(layout, bytecode->op);

	assert_true(number >= 0);
	return (uint32_t)number | (uint32_t)bytecode->a << 8 | (uint32_t)bytecode->c << 16 |
	       (uint32_t)bytecode->b << 24;
}

/*
 * Make a prototype at this address, whose bytecodes lie at an offset in its bytes and are the last of them.
 */
static inline void make_bytecodes(struct proto *proto, const struct layout *layout, uint64_t address,
				  uint8_t *bytes, size_t offset, const struct bytecode *bytecodes,
				  uint32_t count)
{
	*proto = (struct proto){
		.address = address,
		.bytes = bytes,
		.size = offset + count * BYTECODE_SIZE,
		.sizebc = count,
		.bc = address + offset,
	};
	for (uint32_t i = 0; i < count; i++) {
		uint32_t word = bytecode_word(layout, &bytecodes[i]);

		memcpy(bytes + offset + i * BYTECODE_SIZE, &word, sizeof(word));
	}
}

#endif

/* SPDX-License-Identifier: MIT */
#include "unwind/elf/plt_jump.h"

#include <string.h>

enum { WORD = 4, PAGE_BITS = 12 };

/* The distance in pages, of adrp: its two lowest bits lie apart. */
static uint64_t pages_of(uint32_t adrp)
{
	uint32_t bits = (adrp >> 5 & 0x7ffff) << 2 | (adrp >> 29 & 3);

	return (uint64_t)((int64_t)((uint64_t)bits << 43) >> 43);
}

/* bti c, if any; adrp x16, page; ldr x17, [x16, #offset]; add x16, x16, #offset; br x17 */
bool plt_jump_decode(const uint8_t *code, size_t length, uint64_t address, uint64_t *ret_slot)
{
	const uint32_t bti_c = 0xd503245f, adrp_x16 = 0x90000010, ldr_x17_x16 = 0xf9400211;
	uint32_t words[3];
	size_t at = 0;

	if (length < sizeof(words))
		return false;
	memcpy(words, code, sizeof(words));
	if (words[0] == bti_c)
		at++;
	if ((words[at] & 0x9f00001f) != adrp_x16 || (words[at + 1] & 0xffc003ff) != ldr_x17_x16)
		return false;
	address += at * WORD;
	*ret_slot = (address >> PAGE_BITS << PAGE_BITS) + (pages_of(words[at]) << PAGE_BITS) +
		    (uint64_t)(words[at + 1] >> 10 & 0xfff) * sizeof(*ret_slot);
	return true;
}

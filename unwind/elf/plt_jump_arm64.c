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

static bool is_page_load(uint32_t word)
{
	const uint32_t adrp_x16 = 0x90000010;

	return (word & 0x9f00001f) == adrp_x16;
}

/* The linker does not always tell how long entries are: each has one adrp. */
bool plt_jump_entry(const uint8_t *section, uint64_t offset, uint64_t entry_size, uint64_t *ret_offset)
{
	enum { BACK_MAX = 4 };
	uint32_t word;

	(void)entry_size;
	for (uint64_t back = 1; back <= BACK_MAX && back * WORD <= offset; back++) {
		memcpy(&word, section + offset - back * WORD, sizeof(word));
		if (is_page_load(word)) {
			*ret_offset = offset - back * WORD;
			return true;
		}
	}
	return false;
}

/* bti c, if any; adrp x16, page; ldr x17, [x16, #offset]; add x16, x16, #offset; br x17 */
bool plt_jump_decode(const uint8_t *code, size_t length, uint64_t address, uint64_t *ret_slot)
{
	const uint32_t bti_c = 0xd503245f, ldr_x17_x16 = 0xf9400211;
	uint32_t words[3];
	size_t at = 0;

	if (length < sizeof(words))
		return false;
	memcpy(words, code, sizeof(words));
	if (words[0] == bti_c)
		at++;
	if (!is_page_load(words[at]) || (words[at + 1] & 0xffc003ff) != ldr_x17_x16)
		return false;
	address += at * WORD;
	*ret_slot = (address >> PAGE_BITS << PAGE_BITS) + (pages_of(words[at]) << PAGE_BITS) +
		    (uint64_t)(words[at + 1] >> 10 & 0xfff) * sizeof(*ret_slot);
	return true;
}

/* SPDX-License-Identifier: MIT */
#include "unwind/elf/plt_jump.h"

#include <string.h>

/*
 * The GOT slot of the "jmp *slot(%rip)" with which code begins, after any endbr64, bnd, and the
 * "mov $index,%r11d" of entries that mold has made.
 */
bool plt_jump_decode(const uint8_t *code, size_t length, uint64_t address, uint64_t *ret_slot)
{
	static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa }, mov_r11d[] = { 0x41, 0xbb }, bnd = 0xf2;
	int32_t displacement, index;
	size_t at = 0;

	if (length >= sizeof(endbr64) && memcmp(code, endbr64, sizeof(endbr64)) == 0)
		at = sizeof(endbr64);
	if (length >= at + sizeof(mov_r11d) && memcmp(code + at, mov_r11d, sizeof(mov_r11d)) == 0)
		at += sizeof(mov_r11d) + sizeof(index);
	if (length > at && code[at] == bnd)
		at++;
	if (length < at + 2 + sizeof(displacement) || code[at] != 0xff || code[at + 1] != 0x25)
		return false;
	memcpy(&displacement, code + at + 2, sizeof(displacement));
	*ret_slot = address + at + 2 + sizeof(displacement) + (uint64_t)(int64_t)displacement;
	return true;
}

/* lld does not tell how long entries are: they have 16 bytes. */
bool plt_jump_entry(const uint8_t *section, uint64_t offset, uint64_t entry_size, uint64_t *ret_offset)
{
	(void)section;
	if (entry_size == 0)
		entry_size = 16;
	if (entry_size != 8 && entry_size != 16)
		return false;
	*ret_offset = offset - offset % entry_size;
	return true;
}

/* SPDX-License-Identifier: MIT */
/*
 * table_rules: call frame information by a module's unwind tables in memory.
 *
 * libunwind interprets them, in a frame of a thread that does not exist: what its
 * registers and stack hold is made up so that the caller's registers tell where
 * each came from. So the rules of an address are worked out once, and applied
 * as often as it lies on a stack (cfi.h). Text and tables come from the image;
 * libunwind is given only entries that cannot harm it (unwind_entry.h).
 */
#ifndef LJSPY_TABLE_RULES_H
#define LJSPY_TABLE_RULES_H

#include "unwind/elf/frame_rules.h"
#include "unwind/elf/image.h"

struct table_rules;

/* NULL when memory is short. The image must outlive the result. */
struct table_rules *table_rules_new(struct image *image);
void table_rules_free(struct table_rules *tables);

enum table_rules_status {
	TABLE_RULES_FOUND,
	TABLE_RULES_NONE,	/* no entry for the address, or none for libunwind */
	TABLE_RULES_BAD,	/* an entry that makes no sense */
};

enum table_rules_status table_rules_find(struct table_rules *tables, uint64_t pc,
					 struct frame_rules *ret_rules);

#endif

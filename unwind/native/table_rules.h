/* SPDX-License-Identifier: MIT */
/*
 * table_rules: call frame information from a module's unwind tables in memory.
 *
 * libunwind interprets the tables for a frame of a made-up thread. The thread's
 * registers and stack hold values that show where each of the caller's
 * registers came from. So ljspy works out the rules of an address once and
 * applies them to every stack that holds it (cfi.h). Text and tables come from
 * the image. libunwind gets only entries that cannot harm it (unwind_entry.h).
 */
#ifndef LJSPY_TABLE_RULES_H
#define LJSPY_TABLE_RULES_H

#include "unwind/elf/frame_rules.h"
#include "unwind/elf/image.h"

struct table_rules;

/* NULL when out of memory. The image must outlive the result. */
struct table_rules *table_rules_new(struct image *image);
void table_rules_free(struct table_rules *tables);

enum table_rules_status {
	TABLE_RULES_FOUND,
	TABLE_RULES_NONE, /* no entry for the address, or none that libunwind may be given */
	TABLE_RULES_BAD,  /* an entry that makes no sense */
};

/* Work out the rules at pc. *ret_rules is valid only on TABLE_RULES_FOUND. */
enum table_rules_status table_rules_find(struct table_rules *tables, uint64_t pc,
					 struct frame_rules *ret_rules);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * table_search: find .eh_frame in a file that tells nowhere where it is.
 *
 * A static program has no PT_GNU_EH_FRAME (gcc, LINK_EH_SPEC). If its section headers are gone too, as in the
 * image of a file that cannot be opened, only the table itself is left, somewhere in the segments that nobody
 * writes to.
 */
#ifndef LJSPY_TABLE_SEARCH_H
#define LJSPY_TABLE_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <libelf.h>

struct unwind_entries {
	uint8_t *bytes; /* up to and with the end mark; owned by the Elf */
	size_t length;
	uint64_t address; /* in the file */
};

/*
 * Find the one run of bytes that is a table from end to end: each entry is a CIE, or an FDE that leads back
 * to one of these and whose code is in the file, and the end mark follows. False if there is none, or
 * several: then a file within the file may have its own. False, too, if the search would take long: files are
 * untrusted.
 */
bool table_search(Elf *elf, struct unwind_entries *ret_entries);

#endif

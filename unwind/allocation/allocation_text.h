/* SPDX-License-Identifier: MIT */
/*
 * allocation_text: what is allocated, in words: "table", "string", "function <x.lua:12>".
 */
#ifndef LJSPY_ALLOCATION_TEXT_H
#define LJSPY_ALLOCATION_TEXT_H

#include "memory/memory.h"
#include "unwind/allocation/allocated.h"
#include "unwind/allocation/allocation.h"

enum { ALLOCATION_TEXT_SIZE = 256 };

/*
 * Also allocation_without_old_part(), which tells whether a part belongs to a new table. memory is the
 * running process's: a prototype is alive as long as the function that is being made of it. ctype is the name
 * of a cdata's type; empty if it is unknown.
 */
void allocation_text(struct memory *memory, struct allocation *allocation,
		     const struct allocation_counters *held, const char *ctype,
		     char ret_text[static ALLOCATION_TEXT_SIZE]);

#endif

/* SPDX-License-Identifier: MIT */
/* detail_parts: what the parts of details share. Private to unwind/details. */
#ifndef LJSPY_DETAIL_PARTS_H
#define LJSPY_DETAIL_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/details/details.h"

enum { DETAIL_STRING_BYTES = 200 }; /* with the final NUL; longer strings are cut */

struct details {
	const struct detail_source *source;
	struct detail *list; /* of DETAILS_MAX */
	size_t count;
};

/* Add the detail of a merged frame, as long as there is room. */
__attribute__((format(printf, 3, 4))) void details_add(struct details *details, size_t merged_index,
						       const char *format, ...);

/* The next frame outwards that is Lua's: a Lua, builtin or C function. stack->count if there is none. */
size_t details_outwards(const struct merged_stack *stack, size_t index);

/* A slot of a frame of Lua's stack. False for frames whose slots are not in memory. */
bool details_slot(const struct merged_frame *frame, unsigned slot, uint64_t *ret_value);

/* The string in a slot; zero bytes read as "\0". False if it is none, or was not copied. */
bool details_slot_string(const struct detail_source *source, const struct merged_frame *frame, unsigned slot,
			 char ret_text[static DETAIL_STRING_BYTES]);

/* The same for bytes in memory. */
bool details_bytes(struct memory *memory, uint64_t address, uint32_t length,
		   char ret_text[static DETAIL_STRING_BYTES]);

/* What a shared dictionary's function at this frame works on. operation: "get". */
void details_add_dict(struct details *details, size_t index, const char *operation);

/* Is the native frame that of ngx_shmtx_lock()? */
bool details_is_lock(const struct detail_source *source, size_t index);

/* Whom the process waits for in ngx_shmtx_lock(), which is at this frame. */
void details_add_lock(struct details *details, size_t index);

#endif

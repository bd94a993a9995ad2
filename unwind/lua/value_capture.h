/* SPDX-License-Identifier: MIT */
/*
 * value_capture: copy what values lead to, while the target is held.
 *
 * Strings up to VALUE_STRING_BYTES, the first slots and nodes of tables, upvalues,
 * headers of functions, their prototypes' headers and chunk names. What a table
 * holds is copied as far as one line of text shows it. All that a value reads as
 * is so of one moment; what there was no room for is not in the copy, and reads
 * as unknown.
 */
#ifndef LJSPY_VALUE_CAPTURE_H
#define LJSPY_VALUE_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "luajit-layouts/layout.h"
#include "memory/snapshot.h"

enum {
	VALUE_STRING_BYTES =
		128, /* copied of one string; chunk names also are not longer where they are shown */
	VALUE_TABLE_SLOTS = 64,   /* of a table's array part */
	VALUE_TABLE_NODES = 64,   /* of its hash part */
	VALUE_CDATA_BYTES = 8,    /* of what a cdata holds */
	VALUE_UPVALUES_MAX = 60,  /* of one function (LJ_MAX_UPVAL) */
	VALUE_OBJECTS_MAX = 4096, /* for one hold */
};

struct value_capture;

/* NULL when memory is short. */
struct value_capture *value_capture_new(void);
void value_capture_free(struct value_capture *values);

/* Forget all values, to take those of threads with this layout. */
void value_capture_begin(struct value_capture *values, struct snapshot *snapshot,
			 const struct layout *layout);

/* Take a slot's value, or an object. False if there is no room for more. */
bool value_capture_add(struct value_capture *values, uint64_t value);
bool value_capture_add_object(struct value_capture *values, uint64_t address);

/* While the target is held: copy what the values lead to. */
void value_capture_copy(struct value_capture *values);

/*
 * The bytes of a table's array part, or of its hash part, that are copied; a table's header is GCtab_size
 * bytes.
 */
uint64_t value_array_bytes(const struct layout *layout, const uint8_t *header, uint64_t *ret_address);
uint64_t value_node_bytes(const struct layout *layout, const uint8_t *header, uint64_t *ret_address);

#endif

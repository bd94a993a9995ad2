/* SPDX-License-Identifier: MIT */
/*
 * kept_fields: fields of what is in each kept state (kept_state.h), read and written.
 */
#ifndef LJSPY_KEPT_FIELDS_H
#define LJSPY_KEPT_FIELDS_H

#include <stddef.h>
#include <stdint.h>

#include "tests/unit/kept_state.h"
#include "unwind/lua/luajit.h"

/* Of the kept state that in_each() is at. */
static const struct layout *layout;

static inline void in_each(void (*test)(void))
{
	for (size_t i = 0; i < KEPT_STATES; i++) {
		kept_state_begin(kept_states[i]);
		layout = &kept_vm.layout;
		test();
		kept_state_end();
	}
}

/* A field of the newest object of a type, or of OF_G and the like. Size 0: that of a reference. */
static inline void put_of(unsigned of, int32_t field, uint64_t value, unsigned size)
{
	kept_pages_put(&kept_state, kept_newest[of] + (uint64_t)(int64_t)field, value,
		       size ? size : layout_ref_size(layout));
}

static inline uint64_t get_of(unsigned of, int32_t field, unsigned size)
{
	return kept_number(kept_newest[of] + (uint64_t)(int64_t)field, size ? size : layout_ref_size(layout));
}

#endif

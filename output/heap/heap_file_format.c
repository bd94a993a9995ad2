/* SPDX-License-Identifier: MIT */
#include "output/heap/heap_file_format.h"

#include <string.h>

#define NUMBER(member) \
	{ \
#member, offsetof(struct heap_account, member), PROPERTY_64 \
	}
#define SMALL(member) \
	{ \
#member, offsetof(struct heap_account, member), PROPERTY_32 \
	}
#define FIGURE(member) \
	{ \
#member, offsetof(struct heap_account, member), PROPERTY_FIGURE \
	}

const struct heap_property heap_properties[] = {
	SMALL(pid),
	SMALL(vm),
	NUMBER(g),
	NUMBER(time),
	NUMBER(gc_total),
	NUMBER(sum),
	FIGURE(threshold),
	FIGURE(estimate),
	FIGURE(pause),
	FIGURE(stepmul),
	NUMBER(dead_objects),
	NUMBER(dead_bytes),
	SMALL(attempts),
	NUMBER(holds),
	NUMBER(longest_hold_ns),
	NUMBER(held_ns),
	NUMBER(copied_bytes),
	NUMBER(copied_held_bytes),
	NUMBER(uncertain.unread_objects),
	NUMBER(uncertain.unread_bytes),
	NUMBER(uncertain.broken_chains),
	NUMBER(uncertain.unknown_objects),
	NUMBER(uncertain.dangling),
	NUMBER(uncertain.unsized_objects),
	NUMBER(uncertain.changed_pages),
	NUMBER(uncertain.changed_objects),
	NUMBER(uncertain.left_out),
};

const size_t heap_property_count = sizeof(heap_properties) / sizeof(heap_properties[0]);

static_assert(sizeof(pid_t) == 4 && sizeof(unsigned int) == 4, "small properties have 32 bits");

const char *heap_gc_state_literal(const char *text)
{
	static const char *const states[] = {
		"pause", "propagate", "atomic", "sweep strings", "sweep", "finalize",
	};

	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
		if (strcmp(states[i], text) == 0)
			return states[i];
	return "?";
}

/* SPDX-License-Identifier: MIT */
#include "output/heap/heap_method.h"

#include <string.h>

static const struct {
	const char *name, *text;
} methods[HEAP_METHOD_COUNT] = {
	[HEAP_FROM_CORE] = { "core", "from a core file" },
	[HEAP_WHILE_ASLEEP] = { "asleep", "while it slept, without a stop" },
	[HEAP_IN_SLICES] = { "slices", "in slices, which are of different times" },
	[HEAP_ONE_HOLD] = { "once", "while it was held once" },
	[HEAP_WRITTEN_PAGES] = { "written",
				 "while it was held, for what the kernel had marked as written since it was copied" },
	[HEAP_COMPARED] = { "compared",
			    "while it was held, for what changes; the rest was compared afterwards" },
	[HEAP_UNCHANGED] = { "unchanged", "while threads ran; a second look found nothing changed" },
	[HEAP_MISSING] = { "missing", "not at all" },
	[HEAP_METHOD_UNKNOWN] = { "?", "in a way that this ljspy does not know" },
	[HEAP_WHILE_RUNNING] = { "running", "while it ran, without a stop" },
};

const char *heap_method_name(enum heap_method method)
{
	return methods[method].name;
}

bool heap_method_by_name(const char *name, enum heap_method *ret_method)
{
	for (int i = 0; i < HEAP_METHOD_COUNT; i++)
		if (strcmp(methods[i].name, name) == 0) {
			*ret_method = (enum heap_method)i;
			return true;
		}
	return false;
}

const char *heap_method_text(enum heap_method method)
{
	return methods[method].text;
}

#include "luajit-layouts/layout.h"

#include <stddef.h>

void layout_clear(struct layout *layout)
{
	*layout = (struct layout){ .gc64 = false };
#define CLEAR(structure, field) layout->structure##_##field = LAYOUT_UNKNOWN;
	LAYOUT_FIELDS(CLEAR)
#undef CLEAR
}

void layout_without_jit(struct layout *layout)
{
#define ABSENT(structure, field) layout->structure##_##field = LAYOUT_ABSENT;
	LAYOUT_TRACE_FIELDS(ABSENT)
	LAYOUT_JIT_FIELDS(ABSENT)
#undef ABSENT
	layout->GG_J = LAYOUT_ABSENT;
}

const char *layout_conflict(const struct layout *one, const struct layout *other)
{
#define COMPARE(structure, field) \
	if (one->structure##_##field != LAYOUT_UNKNOWN && \
	    other->structure##_##field != LAYOUT_UNKNOWN && \
	    one->structure##_##field != other->structure##_##field) \
		return #structure "." #field;
	LAYOUT_FIELDS(COMPARE)
#undef COMPARE
	return NULL;
}

const char *layout_missing(const struct layout *layout)
{
#define MISSING(structure, field) \
	if (layout->structure##_##field == LAYOUT_UNKNOWN) \
		return #structure "." #field;
	LAYOUT_FIELDS(MISSING)
#undef MISSING
	return NULL;
}

void layout_fill(struct layout *layout, const struct layout *from)
{
#define FILL(structure, field) \
	if (layout->structure##_##field == LAYOUT_UNKNOWN) \
		layout->structure##_##field = from->structure##_##field;
	LAYOUT_FIELDS(FILL)
#undef FILL
}

void layout_keep_common(struct layout *layout, const struct layout *other)
{
#define KEEP(structure, field) \
	if (layout->structure##_##field != other->structure##_##field) \
		layout->structure##_##field = LAYOUT_UNKNOWN;
	LAYOUT_FIELDS(KEEP)
#undef KEEP
}

#include "luajit-layouts/layout.h"

void layout_clear(struct layout *layout)
{
	*layout = (struct layout){ .gc64 = false };
#define CLEAR(structure, field) layout->structure##_##field = LAYOUT_UNKNOWN;
	LAYOUT_FIELDS(CLEAR)
#undef CLEAR
}

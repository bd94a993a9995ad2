/* SPDX-License-Identifier: MIT */
#include "luajit-layouts/release.h"

#include <stdio.h>
#include <string.h>

#include "luajit-layouts/tables.h"

static const struct release {
	const char *name;
	bool gc64;
	enum layout_bytecode bytecode;
	const char *global, *jit, *trace, *thread; /* names of rows in the tables */
	int32_t GG_J, GG_dispatch;
} releases[] = {
#include "luajit-layouts/rows/release.inc"
};

enum { RELEASES = sizeof(releases) / sizeof(releases[0]) };

/* Fill in the first row that serves the mode and has this name (any if NULL). False if there is none. */
static bool add_row(struct layout *layout, enum layout_group group, unsigned mode, const char *name)
{
	struct layout_row row;

	for (size_t i = 0; i < layout_row_count(group); i++) {
		layout_row_get(group, i, &row);
		if ((row.modes & mode) == 0 || (name != NULL && strcmp(row.name, name) != 0))
			continue;
		layout_fill(layout, &row.offsets);
		return true;
	}
	return false;
}

static bool compose(const struct release *release, struct layout *ret_layout)
{
	unsigned mode = LAYOUT_MODE(release->gc64 ? LAYOUT_X64_GC64 : LAYOUT_X64_GC32);
	struct layout layout;

	layout_clear(&layout);
	snprintf(layout.name, sizeof(layout.name), "%s", release->name);
	layout.gc64 = release->gc64;
	layout.has_jit = true;
	layout.bytecode = release->bytecode;
	layout.GG_J = release->GG_J;
	layout.GG_dispatch = release->GG_dispatch;
	if (!add_row(&layout, LAYOUT_GROUP_OBJECT, mode, NULL) ||
	    !add_row(&layout, LAYOUT_GROUP_CFRAME, mode, NULL) ||
	    !add_row(&layout, LAYOUT_GROUP_GLOBAL, mode, release->global) ||
	    !add_row(&layout, LAYOUT_GROUP_JIT, mode, release->jit) ||
	    !add_row(&layout, LAYOUT_GROUP_TRACE, mode, release->trace) ||
	    !add_row(&layout, LAYOUT_GROUP_THREAD, mode, release->thread))
		return false;
	*ret_layout = layout;
	return true;
}

bool release_layout(const char *name, struct layout *ret_layout)
{
	for (size_t i = 0; i < RELEASES; i++) {
		if (strcmp(releases[i].name, name) == 0)
			return compose(&releases[i], ret_layout);
	}
	return false;
}

const char *release_name(size_t index)
{
	return index < RELEASES ? releases[index].name : NULL;
}

/* SPDX-License-Identifier: MIT */
/*
 * described MACHINE FILE: the rows of the tables that FILE's debug info does not
 * contradict, one line a group; "none" and a field where it contradicts all.
 * MACHINE is x86-64, arm64 or i386.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "luajit-layouts/module/dwarf_layout.h"
#include "luajit-layouts/tables.h"

static const char *const groups[LAYOUT_GROUP_COUNT] = {
	[LAYOUT_GROUP_OBJECT] = "objects",   [LAYOUT_GROUP_GLOBAL] = "global_State",
	[LAYOUT_GROUP_JIT] = "jit_State",    [LAYOUT_GROUP_TRACE] = "traces",
	[LAYOUT_GROUP_THREAD] = "lua_State",
};

static enum layout_mode mode_of(const char *machine, const struct layout *layout)
{
	if (strcmp(machine, "arm64") == 0)
		return LAYOUT_ARM64;
	if (strcmp(machine, "i386") == 0)
		return LAYOUT_I386;
	return layout->gc64 ? LAYOUT_X64_GC64 : LAYOUT_X64_GC32;
}

static void print_group(enum layout_group group, enum layout_mode mode, const struct layout *described)
{
	const char *conflict = "any row", *found = NULL;
	struct layout_row row;

	for (size_t i = 0; i < layout_row_count(group) && found == NULL; i++) {
		const char *differs;

		layout_row_get(group, i, &row);
		if ((row.modes & LAYOUT_MODE(mode)) == 0)
			continue;
		differs = layout_conflict(&row.offsets, described);
		if (differs == NULL)
			found = row.name;
		else
			conflict = differs;
	}
	if (found != NULL)
		printf("%s: %s\n", groups[group], found);
	else
		printf("%s: none, for %s\n", groups[group], conflict);
}

int main(int argc, char **argv)
{
	struct layout described;

	if (argc != 3 || dwarf_layout_read(argv[2], &described) != DWARF_LAYOUT_OK)
		return EXIT_FAILURE;
	for (enum layout_group group = 0; group < LAYOUT_GROUP_COUNT; group++)
		if (groups[group] != NULL)
			print_group(group, mode_of(argv[1], &described), &described);
	return EXIT_SUCCESS;
}

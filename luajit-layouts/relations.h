/* SPDX-License-Identifier: MIT */
/*
 * relations: fields that have always kept their distance from each other.
 *
 * No self-test can tell some fields from their neighbours: a number that is
 * mostly 0, say. But in all of LuaJIT's history these have kept their distance
 * from a field that a self-test can find. A layout with another distance is
 * wrong, or belongs to a later release and needs a look.
 */
#ifndef LJSPY_RELATIONS_H
#define LJSPY_RELATIONS_H

#include "luajit-layouts/layout.h"

/*
 * The first field that is not where it always was, as "structure.field" (a
 * constant), or NULL. pointer_bytes is the size of the machine's pointers.
 * Skips fields that are absent or unknown.
 */
const char *relations_broken(const struct layout *layout, unsigned pointer_bytes);

#endif

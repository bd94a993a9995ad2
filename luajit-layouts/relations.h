/* SPDX-License-Identifier: MIT */
/*
 * relations: fields that have never moved apart.
 *
 * Some fields hold what no self-test can tell from what is next to them: a
 * number that is mostly 0, say. But over all of LuaJIT's history they have kept
 * their distance from a field whose offset can be told, so a layout in which
 * they have not is wrong, or of a release to come that has to be looked at.
 */
#ifndef LJSPY_RELATIONS_H
#define LJSPY_RELATIONS_H

#include "luajit-layouts/layout.h"

/*
 * The first field that is not where it always was, as "structure.field", or
 * NULL. pointer_bytes are those of the machine's pointers. Fields that are
 * absent or unknown are left out.
 */
const char *relations_broken(const struct layout *layout, unsigned pointer_bytes);

#endif

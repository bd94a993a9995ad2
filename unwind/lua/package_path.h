/* SPDX-License-Identifier: MIT */
/*
 * package_path: where a Lua program finds its modules.
 *
 * package.path is a list of templates such as "/srv/app/lua/?.lua;./?/init.lua". What
 * stands before the "?", up to the last slash, is a package root: a file below it is
 * known to the program by its path from there on.
 */
#ifndef LJSPY_PACKAGE_PATH_H
#define LJSPY_PACKAGE_PATH_H

#include <stddef.h>
#include <stdint.h>

#include "luajit-layouts/layout.h"
#include "memory/memory.h"

enum { PACKAGE_PATH_MAX = 16 << 10 }; /* bytes of package.path that are read */

/* The package.path of one global_State. All zero: not read yet. */
struct package_path {
	uint64_t table; /* package; 0: not found yet */
	char *text;     /* "" or NULL if there is none; owned */
};

/*
 * Read package.path of the global_State at g again, because a program may change it at any
 * time. What cannot be read stays as it was. The target may change its tables meanwhile.
 */
void package_path_read(struct memory *memory, const struct layout *layout, uint64_t g,
		       struct package_path *path);
void package_path_clear(struct package_path *path);

/*
 * The length of the longest root in templates (as in package.path) that the file is below,
 * with its last slash; 0 if there is none. "/" is no root.
 */
size_t package_path_root(const char *templates, const char *file);

/*
 * Append the roots in templates that list does not have yet, each with a ";" behind it, while there is room.
 */
void package_path_add_roots(const char *templates, char *list, size_t size);

/* The same of the roots in another list. */
void package_path_join_roots(const char *others, char *list, size_t size);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * release: complete layouts of well-known builds, by name.
 *
 * Recognition needs none of this. It is for targets whose code ljspy cannot
 * read, such as core files without text: there the user names the build.
 */
#ifndef LJSPY_RELEASE_H
#define LJSPY_RELEASE_H

#include <stdbool.h>
#include <stddef.h>

#include "luajit-layouts/layout.h"

/* False if no release has this name. */
bool release_layout(const char *name, struct layout *ret_layout);

/* The names in order, for a message; NULL when index is past the last. */
const char *release_name(size_t index);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * given_layout: the layout that --layout names.
 */
#ifndef LJSPY_GIVEN_LAYOUT_H
#define LJSPY_GIVEN_LAYOUT_H

#include <stdbool.h>

#include "luajit-layouts/layout.h"

struct given_layout {
	struct layout layout;
	bool is_trusted; /* the user's own: it holds even if the target seems to contradict it */
};

/*
 * Text is the name of a release (release.h), else of a file (layout_text.h). If it
 * is neither, print why and return false.
 */
bool given_layout_read(const char *text, struct given_layout *ret_given);

#endif

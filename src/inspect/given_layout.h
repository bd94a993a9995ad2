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
	bool is_file;	/* the user's own: it holds whatever the target seems to say */
};

/* Text is the name of a release (release.h), else of a file (layout_text.h). False, and said why, if neither. */
bool given_layout_read(const char *text, struct given_layout *ret_given);

#endif

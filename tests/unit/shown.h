/* SPDX-License-Identifier: MIT */
/*
 * shown: what ljspy writes to standard output between shown_begin() and shown_end().
 */
#ifndef LJSPY_SHOWN_H
#define LJSPY_SHOWN_H

#include "tests/unit/caught.h"

static struct caught shown_output;
static char shown[1 << 16];

static inline void shown_begin(void)
{
	caught_begin(&shown_output, stdout);
}

/* It is in shown[] from here on. */
static inline void shown_end(void)
{
	caught_end(&shown_output, shown, sizeof(shown));
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * screen: the live view as it stands in the terminal.
 *
 * Draws what it is given and knows nothing of keys or targets. Fits what it
 * draws into whatever size there is; what matters least goes first.
 */
#ifndef LJSPY_TOP_SCREEN_H
#define LJSPY_TOP_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "output/sample/figures.h"
#include "src/top/rows.h"

struct screen;

/*
 * Take over the terminal on standard input and output. -ENOTTY: there is none;
 * -ENOTSUP: what TERM says is unknown, or cannot place text; -ENOMEM.
 */
int screen_open(struct screen **ret_screen);

/* The terminal is as it was. */
void screen_close(struct screen *screen);

/* What the user has chosen to see, and where in it. */
struct position {
	size_t selected;	/* row */
	size_t first;		/* row at the top */
	size_t left;		/* columns of the names that are scrolled out to the left */
};

struct picture {
	const char *target;		/* untrusted */
	const char *notice;		/* "paused", "the target has ended"; NULL if none */
	const struct rows *rows;
	const struct figures *figures;
	const struct rows_options *options;
	const struct position *position;
	uint64_t period_ns;		/* that the rows are of, as far as samples reach */
	unsigned int period_s;		/* as chosen */
	unsigned int rate_hz;
	bool help;
	bool typing;			/* the filter */
};

void screen_draw(struct screen *screen, const struct picture *picture);

/* How many rows of the list fit now. */
size_t screen_page(void);

#endif

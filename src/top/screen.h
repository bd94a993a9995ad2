/* SPDX-License-Identifier: MIT */
/*
 * screen: draw the live view in the terminal.
 *
 * Draws the picture it is given; knows nothing of keys or targets. Fits the picture into
 * any size, and leaves out what matters least first.
 */
#ifndef LJSPY_TOP_SCREEN_H
#define LJSPY_TOP_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "output/sample/figures.h"
#include "src/top/history.h"
#include "src/top/rows.h"

struct screen;

/*
 * Take over the terminal on standard input and output. 0; -ENOTTY: there is none;
 * -ENOTSUP: TERM names an unknown terminal, or one that cannot move its cursor; -ENOMEM.
 */
int screen_open(struct screen **ret_screen);

/* Restore the terminal. No effect on NULL. */
void screen_close(struct screen *screen);

/* What part of the list the user sees. */
struct position {
	size_t selected; /* row */
	size_t first;    /* row at the top */
	size_t left;     /* characters of the names scrolled out to the left */
};

struct picture {
	const char *target; /* untrusted */
	const char *notice; /* "paused", why nothing is left to sample; "" if none */
	const struct rows *rows;
	const struct figures *figures;
	const struct rows_options *options;
	const struct position *position;
	const struct history *history;
	uint64_t now_ns;       /* CLOCK_MONOTONIC, when samples were last collected */
	uint64_t period_ns;    /* the time that the samples of the rows cover */
	unsigned int period_s; /* as chosen */
	unsigned int rate_hz;
	bool help;
	bool typing; /* the user types the filter */
};

void screen_draw(struct screen *screen, const struct picture *picture);

/* How many rows of the list fit the terminal now. */
size_t screen_page(void);

#endif

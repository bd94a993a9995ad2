/* SPDX-License-Identifier: MIT */
/*
 * ui: the live view's keys, and when it is drawn.
 */
#ifndef LJSPY_TOP_UI_H
#define LJSPY_TOP_UI_H

#include <signal.h>
#include <stdbool.h>

#include "src/top/live_samples.h"
#include "src/top/screen.h"

struct ui_options {
	struct live_samples *live;
	struct screen *screen;
	const char *target;		/* untrusted */
	unsigned int rate_hz;
	bool by_line;			/* at first */
	/*
	 * Readable when sampling has ended. Then *target_ended tells whether
	 * it did so because there is nothing left to sample: what was seen
	 * last stays on the screen.
	 */
	int ended_fd;
	const bool *target_ended;
};

/* Until the user has enough, or a signal or the end of sampling says so. 0 or a negative errno. */
int ui_run(const struct ui_options *options);

#endif

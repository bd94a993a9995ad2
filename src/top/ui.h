/* SPDX-License-Identifier: MIT */
/*
 * ui: handle the live view's keys, and redraw it.
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
	const char *target; /* untrusted */
	unsigned int rate_hz;
	bool by_line; /* at first */
	/*
	 * Readable when sampling has ended. *nothing_left then says why nothing is left to sample, and
	 * the last samples stay on the screen; NULL if something is.
	 */
	int ended_fd;
	const char *const *nothing_left;
	int signal_fd; /* readable when a signal is to end ljspy; not read */
};

/*
 * Run the live view until the user quits, a signal ends ljspy, or sampling ends before
 * its targets. 0 or a negative errno.
 */
int ui_run(const struct ui_options *options);

#endif

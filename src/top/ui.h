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
	 * Readable when sampling has ended. *target_ended then says whether nothing
	 * is left to sample; if so, the last samples stay on the screen.
	 */
	int ended_fd;
	const bool *target_ended;
};

/*
 * Run the live view until the user quits, a signal ends ljspy, or sampling ends before
 * its targets. 0 or a negative errno.
 */
int ui_run(const struct ui_options *options);

#endif

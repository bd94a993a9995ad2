/* SPDX-License-Identifier: MIT */
#include "src/program/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "src/linux/clocks/clock.h"
#include "src/program/message.h"
#include "src/program/terminal.h"

enum { TIME_SIZE = 32, LINE_SIZE = 160 };

void progress_begin(struct progress *progress, uint64_t duration_ns)
{
	*progress = (struct progress){
		.wanted = terminal_can_rewrite(STDERR_FILENO),
		.start_ns = clock_now_ns(CLOCK_MONOTONIC),
		.duration_ns = duration_ns,
	};
}

/* "7 s", "2:05", "1:00:00" */
static void write_time(uint64_t seconds, char ret_text[static TIME_SIZE])
{
	if (seconds < 60)
		snprintf(ret_text, TIME_SIZE, "%" PRIu64 " s", seconds);
	else if (seconds < 3600)
		snprintf(ret_text, TIME_SIZE, "%" PRIu64 ":%02" PRIu64, seconds / 60, seconds % 60);
	else
		snprintf(ret_text, TIME_SIZE, "%" PRIu64 ":%02" PRIu64 ":%02" PRIu64, seconds / 3600,
			 seconds / 60 % 60, seconds % 60);
}

/* The line fits any terminal: one that wraps could not be removed. */
void progress_show(struct progress *progress, const struct figures *so_far)
{
	char line[LINE_SIZE], now[TIME_SIZE], end[TIME_SIZE] = "";

	if (!progress->wanted || message_would_wait())
		return;
	write_time((clock_now_ns(CLOCK_MONOTONIC) - progress->start_ns) / NS_PER_SECOND, now);
	if (progress->duration_ns)
		write_time(progress->duration_ns / NS_PER_SECOND, end);
	snprintf(line, sizeof(line), "\r%s%s%s, %" PRIu64 " samples%s\033[K", now, *end ? " of " : "", end,
		 so_far->samples, *end ? "" : "; Ctrl-C ends");
	message_lines(line);
	progress->shown = true;
}

void progress_end(struct progress *progress)
{
	if (progress->shown && !message_would_wait())
		message_lines("\r\033[K");
	progress->shown = false;
}

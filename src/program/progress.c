/* SPDX-License-Identifier: MIT */
#include "src/program/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "src/linux/clocks/clock.h"
#include "src/program/message.h"
#include "src/program/terminal.h"

void progress_begin(struct progress *progress, uint64_t duration_ns)
{
	*progress = (struct progress){
		.wanted = terminal_can_rewrite(STDERR_FILENO),
		.start_ns = clock_now_ns(CLOCK_MONOTONIC),
		.duration_ns = duration_ns,
	};
}

/* "7 s", "2:05", "1:00:00" */
static void print_time(uint64_t seconds)
{
	if (seconds < 60)
		fprintf(stderr, "%" PRIu64 " s", seconds);
	else if (seconds < 3600)
		fprintf(stderr, "%" PRIu64 ":%02" PRIu64, seconds / 60, seconds % 60);
	else
		fprintf(stderr, "%" PRIu64 ":%02" PRIu64 ":%02" PRIu64, seconds / 3600, seconds / 60 % 60,
			seconds % 60);
}

/* The line fits any terminal: one that wraps could not be removed. */
void progress_show(struct progress *progress, const struct figures *so_far)
{
	if (!progress->wanted || message_would_wait())
		return;
	fputs("\r", stderr);
	print_time((clock_now_ns(CLOCK_MONOTONIC) - progress->start_ns) / NS_PER_SECOND);
	if (progress->duration_ns) {
		fputs(" of ", stderr);
		print_time(progress->duration_ns / NS_PER_SECOND);
	}
	fprintf(stderr, ", %" PRIu64 " samples%s\033[K", so_far->samples,
		progress->duration_ns ? "" : "; Ctrl-C ends");
	fflush(stderr);
	progress->shown = true;
}

void progress_end(struct progress *progress)
{
	if (progress->shown && !message_would_wait())
		fputs("\r\033[K", stderr);
	progress->shown = false;
}

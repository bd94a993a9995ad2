#include "src/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const uint64_t second_ns = 1000000000u;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * second_ns + (uint64_t)now.tv_nsec;
}

void progress_begin(struct progress *progress, uint64_t duration_ns)
{
	const char *term = getenv("TERM");

	*progress = (struct progress){
		.wanted = isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0,
		.start_ns = now_ns(),
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
		fprintf(stderr, "%" PRIu64 ":%02" PRIu64 ":%02" PRIu64,
			seconds / 3600, seconds / 60 % 60, seconds % 60);
}

/* Short enough for any terminal: a line that wraps could not be taken away. */
void progress_show(struct progress *progress, const struct figures *so_far)
{
	if (!progress->wanted)
		return;
	fputs("\r", stderr);
	print_time((now_ns() - progress->start_ns) / second_ns);
	if (progress->duration_ns) {
		fputs(" of ", stderr);
		print_time(progress->duration_ns / second_ns);
	}
	fprintf(stderr, ", %" PRIu64 " samples%s\033[K", so_far->samples,
		progress->duration_ns ? "" : "; Ctrl-C ends");
	fflush(stderr);
	progress->shown = true;
}

void progress_end(struct progress *progress)
{
	if (progress->shown)
		fputs("\r\033[K", stderr);
	progress->shown = false;
}

/* SPDX-License-Identifier: MIT */
#include "src/nginx/quiet_read.h"

#include <stdint.h>
#include <time.h>

#include "src/linux/clocks/clock.h"
#include "src/linux/clocks/scheduler.h"
#include "src/linux/proc/proc_file.h"
#include "src/linux/proc/proc_text.h"

enum {
	TRIES = 20,
	BETWEEN_TRIES_NS = 2 * 1000 * 1000,
	READINGS_NS = 1000 * 1000 * 1000, /* after so long, the last reading has to do */
	STAT_BYTES = 1024,
};

/*
 * How often the process's first thread got a CPU; 0 if it has one, wants one, or the kernel does not count.
 */
static uint64_t asleep_since(pid_t pid)
{
	char text[STAT_BYTES], *state;

	if (proc_text_read(pid, "stat", text, sizeof(text)) < 0)
		return 0;
	state = proc_file_stat_fields(text);
	if (!state || *state == 'R')
		return 0;
	return proc_text_read(pid, "schedstat", text, sizeof(text)) > 0 ? schedstat_parse(text).runs : 0;
}

int quiet_read(pid_t pid, int (*read)(void *context), void *context, bool *ret_asleep)
{
	const uint64_t begin_ns = clock_now_ns(CLOCK_MONOTONIC);
	bool asleep = false;
	int error = 0;

	for (unsigned i = 0; i < TRIES && !error && !asleep; i++) {
		uint64_t runs = asleep_since(pid);

		if (runs == 0 && i + 1 < TRIES) {
			/* Not as long each time, or else all tries might meet the same part of its period. */
			const struct timespec pause = { .tv_nsec = BETWEEN_TRIES_NS * (TRIES / 2 + i) /
								   TRIES };

			nanosleep(&pause, NULL);
			continue;
		}
		error = read(context);
		asleep = runs != 0 && asleep_since(pid) == runs;
		if (clock_now_ns(CLOCK_MONOTONIC) - begin_ns > READINGS_NS)
			break;
	}
	*ret_asleep = asleep;
	return error;
}

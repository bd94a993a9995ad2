/* SPDX-License-Identifier: MIT */
/*
 * scheduler: what the kernel's scheduler tells about a thread, in files of /proc.
 */
#ifndef LJSPY_SCHEDULER_H
#define LJSPY_SCHEDULER_H

#include <stdbool.h>
#include <stdint.h>

enum {
	/* Room for the text of a file, with the NUL; a longer text is cut. */
	SCHEDSTAT_MAX = 128,
	SCHED_MAX = 8192,
};

/* From schedstat, since the thread began. */
struct schedstat {
	uint64_t cpu_ns;    /* lags by up to a tick while the thread is on a CPU */
	uint64_t waited_ns; /* for a CPU */
	uint64_t runs;      /* how often it got a CPU; 0 if the kernel does not count */
};

struct schedstat schedstat_parse(const char *text);

/* From sched, or from status, which has no times. */
struct switches {
	uint64_t count;   /* how often the thread has left its CPU */
	uint64_t sleeps;  /* how many of these were to sleep; a stop counts, too */
	uint64_t left_at; /* when it was last on a CPU, by the scheduler's clock; 0: unknown */
	uint64_t cpu_ns;  /* as in schedstat; 0: unknown */
};

/* False if the text is from neither file. */
bool switches_parse(const char *text, struct switches *ret_switches);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * clock_time: a time of day that a user names, with or without its date.
 */
#ifndef LJSPY_CLOCK_TIME_H
#define LJSPY_CLOCK_TIME_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* Zeroed memory is: not given. */
struct clock_time {
	bool given;
	bool has_date;
	bool utc;             /* else local time */
	struct tm fields;     /* the time, and the date if there is one */
	uint32_t fraction_ns; /* of its second */
};

/* "14:02", "14:02:30.25", "2026-11-23 14:02", "2026-11-23T14:02:30Z". False if it is none. */
bool clock_time_read(const char *text, struct clock_time *ret_time);

/* That second since 1970, without any doubt. */
struct clock_time clock_time_at(int64_t unix_s);

/*
 * Seconds since 1970, without the fraction. Without a date: the one that lies between
 * begin_s and end_s, or next to them. Of several, the last.
 */
int64_t clock_time_near(const struct clock_time *time, int64_t begin_s, int64_t end_s);

/* The same, but the first one after begin_s and its fraction. */
int64_t clock_time_after(const struct clock_time *time, int64_t begin_s, uint32_t begin_fraction_ns);

#endif

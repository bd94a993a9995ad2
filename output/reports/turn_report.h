/* SPDX-License-Identifier: MIT */
/*
 * turn_report: the long turns of event loops and the lines that took their
 * time, for people and as JSON.
 */
#ifndef LJSPY_TURN_REPORT_H
#define LJSPY_TURN_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include "output/reports/turns.h"

struct turn_report;

/* The time of a line of Lua in long turns. */
struct turn_line {
	const struct function
		*function; /* the innermost Lua function; without Lua, the leaf; NULL if unknown */
	const struct function *callee; /* the function that it called; NULL if none */
	uint32_t line;                 /* 0 if unknown */
	bool wants_cpu;                /* the thread waited for a CPU */
	uint64_t ns, longest_ns;       /* in all long turns, and the most in one */
};

struct turn_sums {
	uint64_t threshold_ns;
	uint64_t seen, long_turns, unsure; /* counts; the last one of long turns that may be several */
	uint64_t ns, longest_ns;           /* of the long turns */
};

/*
 * Turns from threshold_ns on are long. Functions in samples must outlive the report, or be kept by
 * turn_report_keep_functions(). NULL when memory is short.
 */
struct turn_report *turn_report_new(uint64_t threshold_ns);
void turn_report_free(struct turn_report *report);

/* Keep the functions of the report's lines (see output/sample/functions.h). */
void turn_report_keep_functions(const struct turn_report *report);

/* A turns_take and a turns_close; context is the report. The first returns 0 or -ENOMEM. */
int turn_report_add(void *context, const struct turn *turn, const struct sample *sample);
void turn_report_close(void *context, const struct turn *turn, bool is_long);

/* The sums; and the lines, heaviest first, which the caller frees: NULL when memory is short. */
struct turn_sums turn_report_sums(const struct turn_report *report);
struct turn_line *turn_report_lines(const struct turn_report *report, size_t *ret_count);

/* Print for people. duration_ns is the time observed. 0, -ENOMEM or -EIO (the stream's error is in errno). */
int turn_report_print(FILE *out, const struct turn_report *report, uint64_t duration_ns);

/*
 * An object with threshold_ms, turns_seen, long_turns, unsure_turns, long_ms (the sum of long
 * turns), slack_ms (the largest error of the length of one), turn_ms {p50, p90,
 * p99, max} and histogram [{from_ms, to_ms, turns}] of long turns, and lines
 * [{ms, turns, longest_ms, phase, function, line, doing}], heaviest first. The
 * caller owns the reference. NULL when memory is short.
 */
json_t *turn_report_json(const struct turn_report *report);

#endif

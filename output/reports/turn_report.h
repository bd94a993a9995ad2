/* SPDX-License-Identifier: MIT */
/*
 * turn_report: the turns of event loops that took long, and the lines at which
 * they did, for people and as JSON.
 */
#ifndef LJSPY_TURN_REPORT_H
#define LJSPY_TURN_REPORT_H

#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include "output/reports/turns.h"

struct turn_report;

/* Functions in samples must outlive it. NULL when memory is short. */
struct turn_report *turn_report_new(uint64_t threshold_ns);
void turn_report_free(struct turn_report *report);

/* Keep the functions of its lines (see output/sample/functions.h). */
void turn_report_keep_functions(const struct turn_report *report);

/* As turns_take and turns_close; context is the report. */
int turn_report_add(void *context, const struct turn *turn, const struct sample *sample);
int turn_report_close(void *context, const struct turn *turn, bool is_long);

/* duration_ns is how long turns were looked for. 0, -ENOMEM or -EIO (the stream's own error is in errno). */
int turn_report_print(FILE *out, const struct turn_report *report, uint64_t duration_ns);

/*
 * threshold_ms, turns_seen, long_turns, long_ms (their sum), slack_ms (by how
 * much one may be longer or shorter at most), turn_ms {p50, p90, p99, max} of
 * the long ones, histogram [{from_ms, to_ms, turns}] of the long ones, and
 * lines [{ms, turns, longest_ms, phase, function, line, doing}], the heaviest
 * first. The caller owns the reference; NULL when memory is short.
 */
json_t *turn_report_json(const struct turn_report *report);

#endif

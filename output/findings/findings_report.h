/* SPDX-License-Identifier: MIT */
/*
 * findings_report: the findings of one process as a page of text, and as JSON.
 */
#ifndef LJSPY_FINDINGS_REPORT_H
#define LJSPY_FINDINGS_REPORT_H

#include <stddef.h>
#include <stdio.h>

#include <jansson.h>

#include "output/findings/findings.h"

enum { FINDINGS_UNSEEN_MAX = 12 };

/* What could not be looked at, in ljspy's own words. */
struct unseen {
	char at[FINDINGS_UNSEEN_MAX][FINDING_TEXT_SIZE];
	size_t count;
};

/*
 * "the heap: it could not be read": what, and why. Each thing is told of once, by the first reason. More than
 * FINDINGS_UNSEEN_MAX are dropped: there are not so many.
 */
void unseen_add(struct unseen *unseen, const char *format, ...) __attribute__((__format__(__printf__, 2, 3)));

/* What the evidence itself shows that it lacks. */
void unseen_add_of(struct unseen *unseen, const struct evidence *evidence);

/* Print for people. On failure, the stream's error flag is set. */
void findings_print(FILE *out, const struct evidence *evidence, const struct findings *findings,
		    const struct unseen *unseen);

/* An object as doc/JSON.md describes it. The caller owns the reference. NULL when memory is short. */
json_t *findings_json(const struct evidence *evidence, const struct findings *findings,
		      const struct unseen *unseen);

#endif

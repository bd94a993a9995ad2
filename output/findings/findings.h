/* SPDX-License-Identifier: MIT */
/*
 * findings: what stands out in the evidence of one process, by fixed rules.
 *
 * Each moment of CPU time is of one kind of work at most (work_kind.h), so the costs of findings by
 * CPU time do not overlap, but for recursion and sorting, which count all that they call. A share
 * of CPU time counts only if it is surely above the rule's limit, by the number of samples.
 */
#ifndef LJSPY_FINDINGS_H
#define LJSPY_FINDINGS_H

#include <stddef.h>
#include <stdint.h>

#include "output/findings/evidence.h"
#include "output/findings/finding_kind.h"

enum { FINDING_ITEMS_MAX = 5, FINDING_TEXT_SIZE = 256 };

/* A place that shows it. */
struct finding_item {
	const struct function *function; /* NULL: no Lua function */
	const struct function *callee;   /* what it called or waited for; NULL if nothing */
	uint32_t line;                   /* 0 if unknown */
	uint64_t amount;                 /* of the finding's cost: nanoseconds or bytes */
	const char *path;                /* of a heap; borrowed, untrusted; NULL if none */
	char words[FINDING_TEXT_SIZE];   /* more of it, ljspy's own words; "" if none */
};

struct finding {
	enum finding_kind kind;
	enum finding_cost cost;
	double share; /* of that, from 0 to 1 */
	uint64_t amount;
	char words[FINDING_TEXT_SIZE];                /* what stands out, with its figures */
	struct finding_item items[FINDING_ITEMS_MAX]; /* the heaviest first */
	size_t item_count;
};

struct findings {
	struct finding at[FINDING_KIND_COUNT]; /* by share, the largest first */
	size_t count;
};

/* Judge. The findings point into the evidence. 0 or -ENOMEM. */
int findings_judge(const struct evidence *evidence, struct findings *ret_findings);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * finding_kind: the kinds of findings in one table: from which share on, what people do, where to read.
 *
 * doc/FINDINGS.md has a section for each.
 */
#ifndef LJSPY_FINDING_KIND_H
#define LJSPY_FINDING_KIND_H

enum finding_kind {
	FINDING_NONE, /* work that is no finding, however much it is */
	FINDING_JOINS,
	FINDING_STORES,
	FINDING_CLOSURES,
	FINDING_FORMATS,
	FINDING_PATTERNS,
	FINDING_SORTS,
	FINDING_SHIFTS,
	FINDING_LOADS,
	FINDING_ERRORS,
	FINDING_CLOCK,
	FINDING_CALLS,
	FINDING_DEBUG,
	FINDING_CDATA,
	FINDING_OWN_WORK,
	FINDING_GARBAGE,
	FINDING_COMPILING,
	FINDING_EXITS,
	FINDING_NOT_COMPILED,
	FINDING_SWITCHED_OFF,
	FINDING_RECURSION,
	FINDING_BLOCKED,
	FINDING_PROGRAMS,
	FINDING_GROWTH,
	FINDING_KIND_COUNT
};

/* What a finding costs a part of. */
enum finding_cost { COST_CPU, COST_WALL, COST_HEAP };

struct finding_rule {
	const char *name;  /* a word of JSON, never changed */
	const char *title; /* what stands out */
	enum finding_cost cost;
	double least;       /* share, from 0 to 1 */
	const char *advice; /* what people do about it, a sentence */
	const char *page;   /* of doc/, with a heading if need be */
};

/* FINDING_NONE has none. */
extern const struct finding_rule finding_rules[FINDING_KIND_COUNT];

/* "CPU time", "time", "heap" */
const char *finding_cost_title(enum finding_cost cost);
/* "cpu", "wall", "heap" */
const char *finding_cost_name(enum finding_cost cost);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * survey: which processes run LuaJIT?
 */
#ifndef LJSPY_SURVEY_H
#define LJSPY_SURVEY_H

#include <stdbool.h>

#include "src/linux/proc/process.h"

enum { SURVEY_VM_MAX = 64 };

struct finding {
	int error;		/* why the process could not be looked at, a negative errno; or 0 */
	bool runs_luajit;
	char vm[SURVEY_VM_MAX];	/* in words, "LuaJIT 2.1 GC64"; "" if its layout is not known */
};

/* Processes in the list that run LuaJIT, and why the others do not matter. */
struct survey {
	struct process_list list;
	struct finding *findings;	/* one for each */
	size_t refused_count;		/* of those that could not be looked at */
	pid_t refused_pid;		/* one of them, such as is likely to run LuaJIT; 0 if there is none */
	int refused_error;		/* a positive errno */
};

/* Takes the list over, and keeps of it what runs LuaJIT. 0 or -ENOMEM. Free with survey_clear(). */
int survey_take(struct process_list *list, struct survey *ret_survey);
void survey_clear(struct survey *survey);

/* CPU use of each in percent, measured for a moment; cpu has room for all. */
void survey_measure(const struct survey *survey, double *cpu);

#endif

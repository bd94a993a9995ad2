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
	int error; /* why ljspy could not look at the process, a negative errno; or 0 */
	bool runs_luajit;
	char vm[SURVEY_VM_MAX]; /* in words, "LuaJIT 2.1 GC64"; "" if its layout is unknown */
};

/* The processes that run LuaJIT, and a refusal to explain. */
struct survey {
	struct process_list list;
	struct finding *findings; /* one for each process */
	size_t refused_count;     /* how many processes ljspy could not look at */
	pid_t refused_pid;        /* the first of them that is likely to run LuaJIT; 0 if there is none */
	int refused_error;        /* its error, a positive errno */
};

/*
 * Take over the list and keep the processes that run LuaJIT; those that are unread are not looked at. 0, or
 * -ENOMEM and the list stays the caller's. Free with survey_clear().
 */
int survey_take(struct process_list *list, struct survey *ret_survey);
void survey_clear(struct survey *survey);

/* CPU use of each process in percent, measured for 200 ms; cpu has room for all. */
void survey_measure(const struct survey *survey, double *cpu);

#endif

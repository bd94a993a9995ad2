/* SPDX-License-Identifier: MIT */
/*
 * trace_survey: from a process to what is reported of its traces.
 *
 * While samples are taken, it is noted which traces they are in. Afterwards
 * the traces that there are then are read, with their start and all, some at
 * a time, while the process is held for about a millisecond; and all functions are looked
 * through for code that LuaJIT has given up compiling.
 */
#ifndef LJSPY_TRACE_SURVEY_H
#define LJSPY_TRACE_SURVEY_H

#include "output/reports/trace_report.h"
#include "output/sample/sample.h"
#include "src/inspect/lua_process.h"
#include "src/linux/threads/hold.h"

struct trace_survey;

/* functions receives those that are reported, and is that of the samples. NULL when memory is short. */
struct trace_survey *trace_survey_new(struct functions *functions);
void trace_survey_free(struct trace_survey *survey);

/* A sample of any process. 0 or -ENOMEM. */
int trace_survey_add(struct trace_survey *survey, const struct sample *sample);

/* Fill the report of a process, of which nothing but pid and name is known. 0 or -ENOMEM. */
int trace_survey_report(struct trace_survey *survey, struct lua_process *process,
			struct hold *hold, struct trace_process *report);

#endif

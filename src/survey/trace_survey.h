/* SPDX-License-Identifier: MIT */
/*
 * trace_survey: fill a report with the traces of a process.
 *
 * During sampling it notes which traces the samples are in. Afterwards it reads
 * the traces that then exist, and where they start: some at a time, while the
 * process is held for about a millisecond. And it searches all functions for code
 * that LuaJIT does not compile.
 */
#ifndef LJSPY_TRACE_SURVEY_H
#define LJSPY_TRACE_SURVEY_H

#include "output/reports/trace_report.h"
#include "output/sample/sample.h"
#include "src/inspect/lua_process.h"
#include "src/linux/threads/hold.h"

struct trace_survey;

/* functions is that of the samples and receives the reported ones. NULL when memory is short. */
struct trace_survey *trace_survey_new(struct functions *functions);
void trace_survey_free(struct trace_survey *survey);

/* Count a sample of any process. 0 or -ENOMEM. */
int trace_survey_add(struct trace_survey *survey, const struct sample *sample);

/* Fill the report of a process; pid and name are set already. 0 or -ENOMEM. */
int trace_survey_report(struct trace_survey *survey, struct lua_process *process, struct hold *hold,
			struct trace_process *report);

#endif

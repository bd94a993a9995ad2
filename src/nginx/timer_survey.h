/* SPDX-License-Identifier: MIT */
/*
 * timer_survey: fill a report with the timers of a worker of nginx; no thread is stopped (quiet_read.h).
 */
#ifndef LJSPY_TIMER_SURVEY_H
#define LJSPY_TIMER_SURVEY_H

#include "output/nginx_reports/timer_report.h"
#include "src/inspect/lua_process.h"

/*
 * Replace the rows of the report. 0, -ENOMEM, -EXDEV if it is not known how far the process's clock is ahead
 * of ljspy's, or -ENOTSUP if the process is no nginx whose timers ljspy can read.
 */
int timer_survey_take(struct lua_process *process, struct timer_report *report);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * request_survey: fill a report with the requests in flight in a process.
 *
 * No thread is stopped: a worker of nginx sleeps most of the time, and what it has in memory does
 * not change while it sleeps. If it runs meanwhile, ljspy reads again, some times. The last
 * reading of a worker that never sleeps has the requests that were there before and after.
 */
#ifndef LJSPY_REQUEST_SURVEY_H
#define LJSPY_REQUEST_SURVEY_H

#include "output/nginx_reports/request_report.h"
#include "src/inspect/lua_process.h"

enum { REQUEST_ROWS_MAX = 65536 }; /* of a process; more are counted */

/*
 * Replace the rows of the report. 0, -ENOMEM, or -ENOTSUP if the process is no nginx whose
 * connections ljspy can read.
 */
int request_survey_take(struct lua_process *process, struct request_report *report);

#endif

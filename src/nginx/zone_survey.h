/* SPDX-License-Identifier: MIT */
/*
 * zone_survey: fill a report with the memory that a process of nginx shares with others.
 *
 * No thread is stopped. Only pages that the process has are read, so a process that has never
 * touched a part of a zone cannot tell its keys; the one that has made them can.
 */
#ifndef LJSPY_ZONE_SURVEY_H
#define LJSPY_ZONE_SURVEY_H

#include "output/nginx_reports/zone_report.h"
#include "src/inspect/lua_process.h"

/* Replace the rows of the report. 0, -ENOTSUP if there are no zones, or another negative errno. */
int zone_survey_take(struct lua_process *process, struct zone_report *report);

#endif

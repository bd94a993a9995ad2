/* SPDX-License-Identifier: MIT */
/*
 * listing_survey: list a trace or a function of a process or core file.
 *
 * ljspy copies a trace with all that its listing needs while the process is held once. It
 * searches functions some at a time, as trace_survey.h does.
 */
#ifndef LJSPY_LISTING_SURVEY_H
#define LJSPY_LISTING_SURVEY_H

#include "output/listing/listing_report.h"
#include "src/inspect/lua_process.h"
#include "src/linux/threads/hold.h"
#include "src/survey/code_samples.h"

struct listing_wanted {
	uint32_t trace;       /* its number; 0 if a function is wanted */
	const char *function; /* "file.lua:12" or a name */
};

/*
 * Add a listing for each VM that has such a trace, or of each such function. hold is NULL for a
 * core file, which never changes; samples may be NULL. 0 or -ENOMEM.
 */
int listing_survey(struct lua_process *process, struct hold *hold, const struct listing_wanted *wanted,
		   struct code_samples *samples, struct listing_process *report);

#endif

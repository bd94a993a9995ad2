/* SPDX-License-Identifier: MIT */
/* halted: tell which targets could not run, and how to let them go on. */
#ifndef LJSPY_HALTED_H
#define LJSPY_HALTED_H

#include "src/sampler/sampler.h"

enum { NOTES_TOLD_MAX = 8 }; /* of many processes, so many are named */

/*
 * Of the first eight, by message_error() or message_warn(): "WHAT: process 12 is stopped, as by SIGSTOP or
 * Ctrl-Z.", and what lets it go on. In the end, how many more there are.
 */
void halted_tell(const struct sampler_result *result, void message(const char *format, ...),
		 const char *what);

#endif

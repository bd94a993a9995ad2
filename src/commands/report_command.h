/* SPDX-License-Identifier: MIT */
/*
 * report_command: the `ljspy report` that makes of a recording what `ljspy record` was to make.
 */
#ifndef LJSPY_REPORT_COMMAND_H
#define LJSPY_REPORT_COMMAND_H

#include "src/options/options.h"

/* output: "-" for the standard output. The caller frees it; NULL when memory is short. */
char *report_command(const struct options *options, const char *recording, const char *output);

#endif

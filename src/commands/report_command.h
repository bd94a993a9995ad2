/* SPDX-License-Identifier: MIT */
/*
 * report_command: the `ljspy report` that renders a kept recording as `ljspy record` would have.
 */
#ifndef LJSPY_REPORT_COMMAND_H
#define LJSPY_REPORT_COMMAND_H

#include "src/options/options.h"

/* output: "-" for the standard output. The caller frees it; NULL when memory is short. */
char *report_command(const struct options *options, const char *recording, const char *output);

#endif

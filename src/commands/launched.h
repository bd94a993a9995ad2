/* SPDX-License-Identifier: MIT */
/*
 * launched: the command that was started, as its caller would see it without ljspy.
 */
#ifndef LJSPY_LAUNCHED_H
#define LJSPY_LAUNCHED_H

#include <jansson.h>

#include "src/options/options.h"
#include "src/sampler/sampler.h"

/* What ended the recording ends the command, too, if it has not got it already. */
void launched_pass_on(const struct sampler_result *result);

/*
 * Wait for the command, once the recording is over; signals that processes
 * send to ljspy meanwhile are passed on. From then on result knows its exit.
 */
void launched_await(struct sampler_result *result, const char *command);

/*
 * exit_status and signal of the command, of which one is null, or both while
 * it goes on. The caller owns the reference; NULL when memory is short.
 */
json_t *launched_json(const struct sampler_result *result);

/*
 * What to exit with: with the command's own status if that is not 0, which is
 * 128 and its number if it was a signal; else with ljspy's.
 */
int launched_exit_status(const struct sampler_result *result, enum exit_status own);

#endif

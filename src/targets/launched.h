/* SPDX-License-Identifier: MIT */
/*
 * launched: make the command that ljspy starts look to its caller as without ljspy.
 */
#ifndef LJSPY_LAUNCHED_H
#define LJSPY_LAUNCHED_H

#include <jansson.h>

#include "src/options/options.h"
#include "src/sampler/sampler.h"

/* If a process interrupted the recording with a signal, send that signal to the command, too. */
void launched_pass_on(const struct sampler_result *result);

/* Once the recording is over: has the command ended by now? Sets result->exit_status and exit_known. */
void launched_look(struct sampler_result *result);

/*
 * Wait for the command, once the recording is over; pass on signals that processes
 * send to ljspy meanwhile. Sets the same.
 */
void launched_await(struct sampler_result *result, const char *command);

/*
 * The command's exit_status and signal: one of them is null, or both while it runs.
 * The caller owns the reference; NULL when memory is short.
 */
json_t *launched_json(const struct sampler_result *result);

/*
 * The exit status to return: the command's if not 0, or 128 + the signal that ended it;
 * else ljspy's own.
 */
int launched_exit_status(const struct sampler_result *result, enum exit_status own);

#endif

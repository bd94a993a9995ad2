/* SPDX-License-Identifier: MIT */
/*
 * heap_request: `ljspy heap` in a process of its own, for one request.
 *
 * It needs the targets for itself: call it between hub_reserve() and hub_release().
 */
#ifndef LJSPY_HEAP_REQUEST_H
#define LJSPY_HEAP_REQUEST_H

#include <stdio.h>

#include "src/options/options.h"
#include "src/sampler/wanted.h"
#include "src/serve/hub.h"

/*
 * Write the heaps of the targets in that format to the stream. wanted: the processes of the options;
 * of these, the ones still there count. HUB_DONE, HUB_GONE if the client went away, HUB_STOPPED, or
 * HUB_FAILED after telling the user.
 */
enum hub_answer heap_request_run(struct hub *hub, const struct options *options, const struct wanted *wanted,
				 const struct hub_request *request, const char *format, FILE *out);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * nothing_seen: why a recording has no sample.
 */
#ifndef LJSPY_NOTHING_SEEN_H
#define LJSPY_NOTHING_SEEN_H

#include <stdbool.h>

#include "src/linux/proc/permission.h"
#include "src/options/options.h"
#include "src/sampler/sampler.h"

/*
 * Tell the user why there is nothing to show; false if there is. left_out is
 * about the process that result has of those that were left out, if any.
 */
bool nothing_seen_explain(const struct options *options, const struct sampler_result *result,
			  const struct permission_verdict *left_out);

#endif

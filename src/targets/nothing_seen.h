/* SPDX-License-Identifier: MIT */
/*
 * nothing_seen: explain why a recording that began has no sample; choose_explain_failure() tells of others.
 */
#ifndef LJSPY_NOTHING_SEEN_H
#define LJSPY_NOTHING_SEEN_H

#include <stdbool.h>

#include "src/linux/proc/permission.h"
#include "src/options/options.h"
#include "src/sampler/sampler.h"

/*
 * Tell the user why there is nothing to show; false if there is something. left_out is
 * the verdict on result->left_out_pid, if result->left_out is not 0.
 */
bool nothing_seen_explain(const struct options *options, const struct sampler_result *result,
			  const struct permission_verdict *left_out);

#endif

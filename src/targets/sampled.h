/* SPDX-License-Identifier: MIT */
/*
 * sampled: what there is to say about a run of the sampler once it has ended.
 */
#ifndef LJSPY_SAMPLED_H
#define LJSPY_SAMPLED_H

#include <stdbool.h>

#include "output/sample/figures.h"
#include "src/linux/proc/permission.h"
#include "src/options/options.h"
#include "src/sampler/sampler.h"

/* As sampling begins, tell which processes are left out, and why: the first eight, and how many there are. */
void sampled_tell_refused(const struct sampler_noted *refused);

/* Tell of processes that were found, but not searched for LuaJIT, if there are any. */
void sampled_tell_unsearched(const struct sampler_result *result);

/*
 * Processes were left out: tell how many, and, if that is not told yet, why result->left_out_pid was, which
 * left_out is about.
 */
void sampled_tell_left_out(const struct sampler_result *result, const struct permission_verdict *left_out);

/* Tell the user how the sampling went, in numbers. */
void sampled_tell_figures(const struct figures *figures);

/*
 * Tell the user which processes are missing in the samples, and why sampling ended early.
 * left_out is about result->left_out_pid. True if something is missing.
 */
bool sampled_explain(const struct options *options, const struct sampler_result *result,
		     const struct permission_verdict *left_out);

#endif

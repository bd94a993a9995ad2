/* SPDX-License-Identifier: MIT */
/*
 * sampler_apart: the sampler in a separate process (src/apart/apart.h).
 *
 * Commands use it: targets run on even while a command waits. Samples that a command
 * takes too late find no room and count as figures.dropped. While ljspy is stopped, it
 * samples nothing; figures.away_ns counts that time, and the time from when the memory of one of several
 * targets kept the sampling process waiting until another one samples. Only the latter comes on top of
 * options.duration_ns.
 */
#ifndef LJSPY_SAMPLER_APART_H
#define LJSPY_SAMPLER_APART_H

#include "src/apart/apart.h"
#include "src/sampler/sampler_resumed.h"

/*
 * As sampler_run(), but this process calls take, keep and progress. The sampling process has its
 * own copy of what the options point to; what sampler.h says of functions holds for those of this
 * process. If the sampling process is killed, the result is the last that it published, with the
 * end SAMPLER_KILLED.
 *
 * If the kernel keeps the sampling process waiting for the memory of one of several targets, tell_refused is
 * told of that one, and another sampling process goes on without it; the result is that of all together.
 * Where the target is in the middle of an execve(), nothing is told, and another one goes on with it
 * once that is over: once for each target, also for the only one. Not with launch: the command is the
 * child of the first sampling process.
 *
 * SIGINT, SIGTERM or SIGHUP interrupt the sampler; another SIGINT, unless it is one for a
 * single thread, ends ljspy.
 */
void sampler_run_apart(const struct sampler_options *options, struct sampler_result *ret_result);

/* Run the sampler in an engine that does more than sample; apart is the engine's. */
void sampler_run_in_engine(struct apart *apart, const struct sampler_options *given,
			   const struct sampler_breaks *breaks, struct sampler_result *ret_result);

#endif

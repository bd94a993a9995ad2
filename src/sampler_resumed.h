/*
 * sampler_resumed: a sampler that can let go of its targets and come back to them.
 *
 * Each run is one of sampler_run(), in a thread of its own; its result is that of
 * all runs together. Time between them is nobody's. Targets that have ended
 * meanwhile, or whose process id is another's now, are no more.
 */
#ifndef LJSPY_SAMPLER_RESUMED_H
#define LJSPY_SAMPLER_RESUMED_H

#include "src/sampler.h"

struct sampler_resumed;

/* About once a second, as sampler_pulse, with the result of all runs so far. */
typedef bool sampler_so_far(void *context, const struct sampler_result *so_far);

/* The options' pulse is so_far here. What they point to is borrowed. NULL when memory is short. */
struct sampler_resumed *sampler_resumed_new(const struct sampler_options *options, sampler_so_far *so_far);
void sampler_resumed_free(struct sampler_resumed *resumed);

/* True if it has let go of all targets (options.may_go_on) and is to be run again. */
bool sampler_resumed_run(struct sampler_resumed *resumed);

const struct sampler_result *sampler_resumed_result(const struct sampler_resumed *resumed);

#endif

/* SPDX-License-Identifier: MIT */
#include "src/targets/sampling.h"

#include <errno.h>

#include "src/linux/proc/process.h"

struct sampler_options sampling_options(const struct options *options)
{
	return (struct sampler_options){
		.pids = options->pids,
		.pid_count = options->pid_count,
		.no_stop = options->no_stop,
		.allow_attach = options->allow_attach,
		.rate_hz = options->rate_hz,
		.duration_ns = options->duration_ns,
		.namer = { .native = options->native },
		.layout = options->layout,
	};
}

int sampling_follow(const struct options *options, regex_t *pattern, struct sampler_options *sampler)
{
	sampler->subprocesses = options->subprocesses;
	if (!options->name)
		return 0;
	/* The pattern is valid: it found the first processes. */
	if (process_pattern(options->name, pattern, NULL))
		return -ENOMEM;
	sampler->pattern = pattern;
	return 0;
}

void sampling_forget(const struct sampler_options *sampler, regex_t *pattern)
{
	if (sampler->pattern)
		regfree(pattern);
}

/* SPDX-License-Identifier: MIT */
#include "src/survey/traced_process.h"

#include <errno.h>

#include "src/linux/clocks/clock.h"
#include "src/linux/tracer/tracer_looks.h"

int traced_process_begin(struct traced_process *traced, pid_t pid, const struct known_files *files)
{
	struct patience *patience = &traced->patience;

	traced->files = files;
	patience_begin(patience, files);
	tracer_be_urgent_by_nice(patience->tracer); /* a hold may take long */
	traced->threads = threads_new(patience->tracer, pid);
	traced->hold = traced->threads ? hold_new(patience->tracer, traced->threads) : NULL;
	if (!traced->hold)
		return -ENOMEM;
	hold_go_on_while(traced->hold, patience->may_go_on, patience->context);
	return threads_refresh(traced->threads, clock_now_ns(CLOCK_MONOTONIC), 0);
}

void traced_process_end(struct traced_process *traced)
{
	if (traced->files)
		patience_end(traced->files);
	hold_free(traced->hold);
	threads_free(traced->threads);
	traced->files = NULL;
	traced->hold = NULL;
	traced->threads = NULL;
}

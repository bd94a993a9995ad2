/* SPDX-License-Identifier: MIT */
#include "src/targets/sampling.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/linux/proc/process.h"
#include "src/program/command_line.h"

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
		.awaits = options_await_processes(options),
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

/*
 * Takes over the title of the first of several processes that is there; NULL when memory is short. Which of
 * them can be sampled comes out later.
 */
static char *title_of_several(char *title, size_t others)
{
	char *text = NULL;

	if (title && asprintf(&text, "%s and %zu other process%s asked for", title, others,
			      others == 1 ? "" : "es") < 0)
		text = NULL;
	free(title);
	return text;
}

char *sampling_title(const struct options *options, char ret_name[static PROCESS_NAME_MAX], pid_t *ret_pid)
{
	struct process process;
	size_t first = 0;
	char *title;

	if (options->launch) {
		const char *slash = strrchr(options->launch[0], '/');

		strncpy(ret_name, slash ? slash + 1 : options->launch[0], PROCESS_NAME_MAX - 1);
		*ret_pid = 0;
		return command_line_join(options->launch);
	}
	while (first < options->pid_count && process_read_soon(options->pids[first], &process))
		first++;
	if (first == options->pid_count)
		return NULL;
	memcpy(ret_name, process.name, PROCESS_NAME_MAX);
	*ret_pid = options->pid_count == 1 ? process.pid : 0;
	title = process_title(&process);
	process_clear(&process);
	return options->pid_count > 1 ? title_of_several(title, options->pid_count - 1) : title;
}

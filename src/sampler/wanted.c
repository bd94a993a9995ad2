/* SPDX-License-Identifier: MIT */
#include "src/sampler/wanted.h"

#include <stdlib.h>

#include "src/linux/proc/process.h"

struct wanted {
	size_t count;
	struct {
		pid_t pid;
		uint64_t start_ticks; /* unique together with the pid */
	} processes[];
};

/* In the middle of an execve(): who asks might wait for ever. */
static const uint64_t start_unknown = UINT64_MAX;

uint64_t wanted_start(pid_t pid)
{
	return process_is_in_exec(pid) ? start_unknown : process_start(pid);
}

bool wanted_is_left(pid_t pid, uint64_t start_ticks)
{
	const uint64_t start = wanted_start(pid);

	return start != 0 && (start == start_ticks || start == start_unknown || start_ticks == start_unknown);
}

bool wanted_is_unreadable(const struct sampler_options *options, pid_t pid)
{
	for (size_t i = 0; i < options->unreadable_count; i++)
		if (options->unreadable[i].pid == pid &&
		    wanted_is_left(pid, options->unreadable[i].start_ticks))
			return true;
	return false;
}

struct wanted *wanted_new(const pid_t *pids, size_t count)
{
	struct wanted *wanted = calloc(1, sizeof(*wanted) + count * sizeof(wanted->processes[0]));

	if (!wanted)
		return NULL;
	wanted->count = count;
	for (size_t i = 0; i < count; i++) {
		wanted->processes[i].pid = pids[i];
		wanted->processes[i].start_ticks = wanted_start(pids[i]);
	}
	return wanted;
}

void wanted_free(struct wanted *wanted)
{
	free(wanted);
}

size_t wanted_left(const struct wanted *wanted, pid_t *ret_pids)
{
	size_t count = 0;

	for (size_t i = 0; i < wanted->count; i++)
		if (wanted_is_left(wanted->processes[i].pid, wanted->processes[i].start_ticks))
			ret_pids[count++] = wanted->processes[i].pid;
	return count;
}

size_t wanted_count(const struct wanted *wanted)
{
	return wanted->count;
}

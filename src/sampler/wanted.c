/* SPDX-License-Identifier: MIT */
#include "src/sampler/wanted.h"

#include <stdint.h>
#include <stdlib.h>

#include "src/linux/proc/process.h"

struct wanted {
	size_t count;
	struct {
		pid_t pid;
		uint64_t start_ticks; /* unique together with the pid; 0 if unknown */
	} processes[];
};

/* When the process started, in clock ticks; 0 if it has ended. */
static uint64_t start_of(pid_t pid)
{
	struct process process;
	uint64_t ticks = 0;

	if (process_read(pid, &process))
		return 0;
	if (!process_is_zombie(&process))
		ticks = process.start_ticks;
	process_clear(&process);
	return ticks;
}

struct wanted *wanted_new(const pid_t *pids, size_t count)
{
	struct wanted *wanted = calloc(1, sizeof(*wanted) + count * sizeof(wanted->processes[0]));

	if (!wanted)
		return NULL;
	wanted->count = count;
	for (size_t i = 0; i < count; i++) {
		wanted->processes[i].pid = pids[i];
		wanted->processes[i].start_ticks = start_of(pids[i]);
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

	for (size_t i = 0; i < wanted->count; i++) {
		const pid_t pid = wanted->processes[i].pid;

		/* It cannot be asked in the middle of an execve(), and keeps its start. */
		if (process_is_in_exec(pid) || start_of(pid) == wanted->processes[i].start_ticks)
			ret_pids[count++] = pid;
	}
	return count;
}

size_t wanted_count(const struct wanted *wanted)
{
	return wanted->count;
}

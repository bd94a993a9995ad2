/* SPDX-License-Identifier: MIT */
#include "src/linux/threads/halt.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/linux/proc/proc_text.h"
#include "src/linux/proc/process.h"

enum { CGROUPS_BYTES = 8192, STATE_BYTES = 256 };

/* Where a hierarchy is mounted as a rule, and what its file says of a frozen cgroup. */
static const struct freezer {
	const char *controllers; /* in /proc/PID/cgroup; "" is version 2 */
	const char *mount, *file, *sign;
} freezers[] = {
	{ "", "/sys/fs/cgroup", "cgroup.events", "frozen 1" },
	{ "", "/sys/fs/cgroup/unified", "cgroup.events", "frozen 1" },
	{ "freezer", "/sys/fs/cgroup/freezer", "freezer.state", "FROZEN" },
};

static bool says_frozen(const struct freezer *freezer, const char *cgroup)
{
	char path[PATH_MAX], text[STATE_BYTES];
	size_t length;
	FILE *file;

	if (snprintf(path, sizeof(path), "%s%s/%s", freezer->mount, cgroup, freezer->file) >=
	    (int)sizeof(path))
		return false;
	file = fopen(path, "re");
	if (!file)
		return false;
	length = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[length] = '\0';
	return strstr(text, freezer->sign) != NULL;
}

/* A line is HIERARCHY:CONTROLLERS:CGROUP. */
static bool is_frozen_by(char *line)
{
	char *controllers = strchr(line, ':'), *cgroup = controllers ? strchr(controllers + 1, ':') : NULL;

	if (!cgroup)
		return false;
	*cgroup++ = '\0';
	for (size_t i = 0; i < sizeof(freezers) / sizeof(freezers[0]); i++)
		if (strcmp(controllers + 1, freezers[i].controllers) == 0 &&
		    says_frozen(&freezers[i], cgroup))
			return true;
	return false;
}

static bool is_frozen(pid_t pid)
{
	char text[CGROUPS_BYTES], *rest = text, *line;
	bool found = false;

	if (proc_text_read(pid, "cgroup", text, sizeof(text)) <= 0)
		return false;
	while (!found && (line = strsep(&rest, "\n")))
		found = is_frozen_by(line);
	return found;
}

enum process_halt process_halt(pid_t pid)
{
	struct process process;

	if (process_read_status(pid, &process))
		return HALT_NONE;
	/* Without a tracer, 't' lasts only until the thread has stopped again, as one that ljspy has left. */
	if (process.state == 't' && process.tracer_pid)
		return HALT_TRACER;
	if (process.state == 'T' || process.state == 't')
		return HALT_SIGNAL;
	return (process.state == 'S' || process.state == 'D') && is_frozen(pid) ? HALT_FREEZER : HALT_NONE;
}

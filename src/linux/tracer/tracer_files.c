/* SPDX-License-Identifier: MIT */
#include "src/linux/tracer/tracer_files.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "src/linux/tracer/tracer_parts.h"

void tracer_allow_files(struct tracer *tracer, size_t count)
{
	tracer->files_left = count;
}

bool tracer_reserve_files(struct tracer *tracer, size_t count)
{
	if (tracer->files_left < count)
		return false;
	tracer->files_left -= count;
	tracer->files_to_open += count;
	return true;
}

void tracer_note_opened(struct tracer *tracer)
{
	tracer->files_to_open--;
}

void tracer_release_files(struct tracer *tracer, size_t count, size_t opened)
{
	tracer->files_left += count;
	tracer->files_to_open -= count - opened;
}

/* At least as many files are open as the number of a new one: targets that ended may have left gaps. */
int tracer_leave_files(struct tracer *tracer, size_t count)
{
	int next = open("/", O_PATH | O_CLOEXEC);
	struct rlimit limit;
	size_t taken, room;

	if (next < 0)
		return -errno;
	close(next);
	/* prlimit64() may be refused: then files are opened while that works. */
	if (getrlimit(RLIMIT_NOFILE, &limit))
		return 0;
	taken = (size_t)next + tracer->files_to_open + count;
	if (limit.rlim_cur < taken)
		return -EMFILE;
	room = limit.rlim_cur - taken;
	if (tracer->files_left > room)
		tracer->files_left = room;
	return 0;
}

/* SPDX-License-Identifier: MIT */
#include "memory/close_files.h"

#include <errno.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FILES_MAX = 1 << 20 }; /* Linux's limit for what is not told otherwise (fs.nr_open) */

static unsigned int highest_file(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur > FILES_MAX)
		return FILES_MAX - 1;
	return limit.rlim_cur ? (unsigned int)limit.rlim_cur - 1 : 0;
}

void close_files(unsigned int first, unsigned int last)
{
	const int saved = errno;
	const unsigned int highest = highest_file();

	if (first <= last && syscall(__NR_close_range, first, last, 0) != 0)
		for (unsigned int fd = first; fd <= last && fd <= highest; fd++)
			close((int)fd);
	errno = saved;
}

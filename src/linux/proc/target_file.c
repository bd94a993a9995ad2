/* SPDX-License-Identifier: MIT */
#include "src/linux/proc/target_file.h"

#include <fcntl.h>
#include <stdio.h>

bool target_file_status(pid_t pid, uint64_t fd, struct statx *ret_status)
{
	char path[sizeof("/proc//fd/") + 6 * sizeof(int)];

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, (int)fd);
	return statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_TYPE | STATX_MODE, ret_status) == 0;
}

/* SPDX-License-Identifier: MIT */
#include "src/program/standard_files.h"

#include <fcntl.h>
#include <unistd.h>

void standard_files_reserve(void)
{
	/* Each file gets the lowest number that is free. There may be no /dev. */
	for (int number = STDIN_FILENO; number <= STDERR_FILENO; number++)
		if (fcntl(number, F_GETFD) < 0 && open("/", O_PATH | O_CLOEXEC) < 0)
			return;
}

/* SPDX-License-Identifier: MIT */
#include "src/program/standard_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "src/program/message.h"

void standard_files_reserve(void)
{
	/* Each file gets the lowest number that is free. There may be no /dev. */
	for (int number = STDIN_FILENO; number <= STDERR_FILENO; number++)
		if (fcntl(number, F_GETFD) < 0 && open("/", O_PATH | O_CLOEXEC) < 0)
			return;
}

bool standard_output_flush(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return true;
	message_error_stdout(errno);
	return false;
}

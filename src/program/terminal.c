/* SPDX-License-Identifier: MIT */
#include "src/program/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool terminal_can_rewrite(int fd)
{
	const char *name = getenv("TERM");

	return isatty(fd) && name && strcmp(name, "dumb") != 0;
}

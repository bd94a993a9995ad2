/* SPDX-License-Identifier: MIT */
#include "output/labels/session_title.h"

#include <stdio.h>

/* Longer than a line shows, and short enough to leave room for the rest of the title. */
enum { COMMAND_MAX = 1024 };

/* A command line without the directory of its program. */
static const char *without_directory(const char *command)
{
	const char *program = command;

	for (const char *at = command; *command == '/' && *at && *at != ' '; at++)
		if (*at == '/')
			program = at + 1;
	return program;
}

void session_title(const struct session *session, char ret_title[static SESSION_TITLE_SIZE])
{
	const char *target = session->target ? without_directory(session->target) : "LuaJIT";
	int length = snprintf(ret_title, SESSION_TITLE_SIZE, "%s of %.*s", weights[session->clock].title,
			      COMMAND_MAX, target);

	if (session->pid > 0 && length > 0)
		snprintf(ret_title + length, SESSION_TITLE_SIZE - (size_t)length, " (pid %ld)",
			 (long)session->pid);
}

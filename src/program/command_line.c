/* SPDX-License-Identifier: MIT */
#include "src/program/command_line.h"

#include <stdio.h>
#include <stdlib.h>

char *command_line_join(char *const *arguments)
{
	char *line = NULL;
	size_t length;
	FILE *stream = open_memstream(&line, &length);

	if (!stream)
		return NULL;
	for (int i = 0; arguments[i]; i++)
		fprintf(stream, "%s%s", i ? " " : "", arguments[i]);
	if (fclose(stream)) {
		free(line);
		return NULL;
	}
	return line;
}

/* SPDX-License-Identifier: MIT */
#include "src/commands/report_command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Quote the word for a shell if necessary. */
static void write_word(FILE *out, const char *word)
{
	static const char harmless[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:@%+=,-";

	fputc(' ', out);
	if (*word && word[strspn(word, harmless)] == '\0') {
		fputs(word, out);
		return;
	}
	fputc('\'', out);
	for (; *word; word++)
		if (*word == '\'')
			fputs("'\\''", out);
		else
			fputc(*word, out);
	fputc('\'', out);
}

static void write_view(FILE *out, const struct options *options)
{
	if (options->clock == WEIGHT_OFF_CPU_TIME)
		fputs(" --off-cpu", out);
	if (options->filter.group == GROUP_STATE)
		fputs(" --vm-state", out);
	if (options->lines)
		fputs(" --lines", out);
	if (options->inverted)
		fputs(" --inverted", out);
	if (options->heatmap)
		fputs(" --heatmap", out);
	if (options->source)
		fputs(" --source", out);
	if (options->annotate)
		fputs(" --annotate", out);
}

char *report_command(const struct options *options, const char *recording, const char *output)
{
	const bool to_stdout = strcmp(output, "-") == 0;
	char *command = NULL;
	size_t length;
	FILE *out = open_memstream(&command, &length);

	if (!out)
		return NULL;
	fputs("ljspy report", out);
	write_word(out, recording);
	write_view(out, options);
	if (to_stdout || format_by_path(output) != options->format)
		fprintf(out, " -f %s", options->format->name);
	if (!to_stdout) {
		fputs(" -o", out);
		write_word(out, output);
	}
	if (fclose(out)) {
		free(command);
		return NULL;
	}
	return command;
}

/* SPDX-License-Identifier: MIT */
/*
 * report_line: run `ljspy report` or `ljspy diff` as from a shell in a directory of the test, which
 * makes and removes it.
 */
#ifndef LJSPY_REPORT_LINE_H
#define LJSPY_REPORT_LINE_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/open_files.h"
#include "tests/unit/run_command.h"

enum { PATH_SIZE = 64, WORDS_MAX = 12 };

static char directory[PATH_SIZE] = "/tmp/report_line.XXXXXX";
static struct options options;

/* The path of a file of the directory; it holds until WORDS_MAX others are asked for. */
static char *path_of(const char *name)
{
	static char paths[WORDS_MAX][2 * PATH_SIZE];
	static unsigned int next;
	char *path = paths[next++ % WORDS_MAX];

	snprintf(path, sizeof(paths[0]), "%s/%s", directory, name);
	return path;
}

static bool is_there(const char *name)
{
	return access(path_of(name), F_OK) == 0;
}

/* What ends so is a file of the directory. */
static bool is_file(const char *word)
{
	static const char *const ends[] = { ".ljspy", ".heap", ".svg", ".txt", ".any" };
	const char *end = strrchr(word, '.');

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]) && end; i++)
		if (strcmp(end, ends[i]) == 0)
			return true;
	return false;
}

static enum exit_status run(const char *command, const char *line)
{
	const unsigned int files = open_files_count();
	char words[256], *argv[WORDS_MAX] = { (char[]){ "ljspy" } };
	enum exit_status status;
	int argc = 1;

	snprintf(words, sizeof(words), "%s %s", command, line);
	for (char *word = strtok(words, " "); word; word = strtok(NULL, " ")) {
		assert_in_range(argc, 1, WORDS_MAX - 2);
		argv[argc++] = is_file(word) ? path_of(word) : word;
	}
	assert_true(options_parse(argc, argv, &options, &status));
	status = run_command(strcmp(command, "diff") == 0 ? command_diff : command_report, &options);
	options_clear(&options);
	assert_int_equal(open_files_count(), files);
	return status;
}

static void assert_refused(const char *command, const char *line, enum exit_status status, const char *words)
{
	assert_int_equal(run(command, line), status);
	assert_string_equal(shown, "");
	ASSERT_TOLD(words);
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * told: what ljspy tells its user on standard error between told_begin() and told_end().
 */
#ifndef LJSPY_TOLD_H
#define LJSPY_TOLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { TOLD_SIZE = 1 << 16 };

static char told[TOLD_SIZE];
static FILE *told_file;
static int told_stderr;

static inline void told_begin(void)
{
	told_file = tmpfile();
	told_stderr = dup(STDERR_FILENO);
	assert_non_null(told_file);
	assert_true(told_stderr >= 0);
	fflush(stderr);
	dup2(fileno(told_file), STDERR_FILENO);
}

/* It is in told[] from here on. */
static inline void told_end(void)
{
	fflush(stderr);
	dup2(told_stderr, STDERR_FILENO);
	close(told_stderr);
	rewind(told_file);
	told[fread(told, 1, sizeof(told) - 1, told_file)] = '\0';
	fclose(told_file);
}

static inline size_t told_times(const char *what)
{
	size_t count = 0;

	for (const char *at = told; (at = strstr(at, what)) != NULL; at++)
		count++;
	return count;
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * made_up: functions and names for programs that make up profiles. All of it
 * lives as long as the program, which ends when it cannot have memory.
 */
#ifndef LJSPY_TESTS_MADE_UP_H
#define LJSPY_TESTS_MADE_UP_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "output/sample/frame.h"

/* In a list, so that a leak detector can reach them. */
static struct made_up {
	struct function function;
	struct made_up *next;
} * all_made_up;

static inline const struct function *made_up(struct function function)
{
	struct made_up *made = malloc(sizeof(*made));

	if (!made)
		exit(1);
	*made = (struct made_up){ .function = function, .next = all_made_up };
	all_made_up = made;
	return &made->function;
}

static inline const struct function *lua(const char *name, const char *file, uint32_t firstline)
{
	return made_up(
		(struct function){ .kind = FRAME_LUA, .name = name, .file = file, .firstline = firstline });
}

static inline const struct function *other(enum frame_kind kind, const char *name, const char *module)
{
	return made_up((struct function){ .kind = kind, .name = name, .module = module });
}

__attribute__((format(printf, 1, 2))) static inline const char *text(const char *format, ...)
{
	va_list arguments;
	char *made;

	va_start(arguments, format);
	if (vasprintf(&made, format, arguments) < 0)
		exit(1);
	va_end(arguments);
	return made;
}

#endif

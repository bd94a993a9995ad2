/* SPDX-License-Identifier: MIT */
#include "src/static/terminals.h"

#include <stdlib.h>
#include <string.h>

/* Descriptions are as `infocmp -Q2` writes them; TERMINFO accepts this form (ncurses(3X)). */
static const struct {
	const char *name;
	const char *description;
} terminals[] = {
#include "terminals.inc"
};

bool terminals_describe(const char *name)
{
	for (size_t i = 0; i < sizeof(terminals) / sizeof(terminals[0]); i++)
		if (strcmp(terminals[i].name, name) == 0)
			return !getenv("TERMINFO") && setenv("TERMINFO", terminals[i].description, 0) == 0;
	return false;
}

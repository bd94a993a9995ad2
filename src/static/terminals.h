/* SPDX-License-Identifier: MIT */
/*
 * terminals: descriptions of common terminals, for machines without terminfo.
 */
#ifndef LJSPY_STATIC_TERMINALS_H
#define LJSPY_STATIC_TERMINALS_H

#include <stdbool.h>

/*
 * Describe the terminal of that name to ncurses, by setting the environment variable
 * TERMINFO. False if there is no description, the variable is already set, or
 * memory is short.
 */
bool terminals_describe(const char *name);

#endif

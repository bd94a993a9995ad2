/* SPDX-License-Identifier: MIT */
/*
 * terminals: descriptions of common terminals, for machines without terminfo.
 */
#ifndef LJSPY_STATIC_TERMINALS_H
#define LJSPY_STATIC_TERMINALS_H

#include <stdbool.h>

/*
 * Let ncurses know the terminal of that name, by the environment variable
 * TERMINFO. False if there is no description, the variable is set already, or
 * memory is short.
 */
bool terminals_describe(const char *name);

#endif

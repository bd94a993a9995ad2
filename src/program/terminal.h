/* SPDX-License-Identifier: MIT */
/*
 * terminal: what the terminals that ljspy writes lines to can do.
 */
#ifndef LJSPY_TERMINAL_H
#define LJSPY_TERMINAL_H

#include <stdbool.h>

/*
 * Is it a terminal on which text can be written over? One that is "dumb", or unknown, shows control sequences
 * as text.
 */
bool terminal_can_rewrite(int fd);

#endif

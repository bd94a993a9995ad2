/* SPDX-License-Identifier: MIT */
/*
 * help: what --help and --version print.
 */
#ifndef LJSPY_HELP_H
#define LJSPY_HELP_H

#include <stdio.h>

#include "src/options/command.h"

void help_print(FILE *out);
void help_print_command(enum command command);
void help_print_version(void);

/* After an error, point to the command's --help. */
void help_suggest(enum command command);

#endif

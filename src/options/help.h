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

/* Tell the user that there is no such command or option, and which one is like it. */
void help_no_command(const char *command);
void help_no_option(enum command command, const char *option);
void help_no_letter(enum command command, char letter);

/* After an error, point to the command's --help. */
void help_suggest(enum command command);

#endif

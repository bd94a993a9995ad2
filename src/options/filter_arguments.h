/* SPDX-License-Identifier: MIT */
/*
 * filter_arguments: parse the arguments of options that choose samples.
 *
 * Each function takes an argument's text. It returns false after telling the user
 * what is wrong with it.
 */
#ifndef LJSPY_FILTER_ARGUMENTS_H
#define LJSPY_FILTER_ARGUMENTS_H

#include <regex.h>
#include <stdbool.h>

#include "output/views/filter.h"

/* "running,gc" */
bool filter_arguments_states(const char *text, struct filter_options *options);

/* "pid" */
bool filter_arguments_group(const char *text, struct filter_options *options);
const char *filter_arguments_group_name(enum filter_group group); /* NULL for GROUP_NONE */

/* Compile an extended regular expression; frees the previous *pattern. The caller owns the new one. */
bool filter_arguments_pattern(const char *text, regex_t **pattern);
void filter_arguments_free_pattern(regex_t *pattern);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * filter_arguments: what options say of the samples that are wanted.
 *
 * Each takes the text of an argument, and is false if the user had to be told
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
const char *filter_arguments_group_name(enum filter_group group);	/* NULL for GROUP_NONE */

/* An extended regular expression; what *pattern was is freed. */
bool filter_arguments_pattern(const char *text, regex_t **pattern);
void filter_arguments_free_pattern(regex_t *pattern);

#endif

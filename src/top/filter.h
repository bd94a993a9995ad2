/* SPDX-License-Identifier: MIT */
/*
 * filter: select names by a pattern while the user types it.
 */
#ifndef LJSPY_TOP_FILTER_H
#define LJSPY_TOP_FILTER_H

#include <regex.h>
#include <stdbool.h>

enum { FILTER_SIZE = 128 }; /* bytes, with the NUL */

struct filter {
	char text[FILTER_SIZE]; /* UTF-8; "" lets everything pass */
	bool is_regex;          /* regex is set */
	regex_t regex;
};

/*
 * The text matches itself ("operator+") and what it matches as an extended regular expression. While it is
 * not a valid one ("[lo"), it matches only itself, as does the name of a frame that ends in square brackets
 * ("[vm]").
 * Case does not matter. Cuts a text that is too long. A filter of all
 * zero bytes lets everything pass.
 */
void filter_set(struct filter *filter, const char *text);
void filter_clear(struct filter *filter);

bool filter_passes(const struct filter *filter, const char *text);

#endif

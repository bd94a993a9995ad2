/* SPDX-License-Identifier: MIT */
/*
 * filter: which names are wanted, told while it is being typed.
 */
#ifndef LJSPY_TOP_FILTER_H
#define LJSPY_TOP_FILTER_H

#include <regex.h>
#include <stdbool.h>

enum { FILTER_SIZE = 128 };	/* bytes, with the NUL */

struct filter {
	char text[FILTER_SIZE];		/* UTF-8; "" lets everything pass */
	bool is_regex;			/* regex is set */
	regex_t regex;
};

/*
 * Extended regular expression; as long as the text is none, such as "[lo", it
 * is looked for as it is. Either way without regard to case. A text that is
 * too long is cut. All zero bytes is a filter that lets everything pass.
 */
void filter_set(struct filter *filter, const char *text);
void filter_clear(struct filter *filter);

bool filter_passes(const struct filter *filter, const char *text);

#endif

/* SPDX-License-Identifier: MIT */
#include "src/top/filter.h"

#include <stdio.h>
#include <string.h>

void filter_clear(struct filter *filter)
{
	if (filter->is_regex)
		regfree(&filter->regex);
	filter->is_regex = false;
	filter->text[0] = '\0';
}

/* "[vm]" and "string.gsub [builtin]" are names as they are shown, and no sets of letters. */
static bool is_name(const char *text)
{
	const char *bracket = strrchr(text, '[');

	return bracket && (bracket == text || bracket[-1] == ' ') && strchr(bracket, ']') &&
	       strchr(bracket, ']')[1] == '\0';
}

void filter_set(struct filter *filter, const char *text)
{
	filter_clear(filter);
	snprintf(filter->text, sizeof(filter->text), "%s", text);
	filter->is_regex = !is_name(filter->text) &&
			   regcomp(&filter->regex, filter->text, REG_EXTENDED | REG_ICASE | REG_NOSUB) == 0;
}

bool filter_passes(const struct filter *filter, const char *text)
{
	if (!*filter->text)
		return true;
	return strcasestr(text, filter->text) ||
	       (filter->is_regex && regexec(&filter->regex, text, 0, NULL, 0) == 0);
}

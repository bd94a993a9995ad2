/* SPDX-License-Identifier: MIT */
#include "src/options/heeded.h"

#include "output/views/heeds.h"
#include "src/options/option_values.h"
#include "src/program/message.h"

static const struct {
	enum heeds heeds;
	const char *option;
} names[] = {
	{ HEEDS_INVERTED, "--inverted" },
	{ HEEDS_MIN_PERCENT, "--min-percent" },
	{ HEEDS_ANNOTATE, "--annotate" },
	{ HEEDS_SOURCE, "--source" },
	{ HEEDS_COUNT, "--measure count" },
	{ HEEDS_RETAINED, "--measure retained" },
	{ HEEDS_GROUP, "--by" },
};

static unsigned int given(const struct options *options, unsigned int kinds)
{
	unsigned int all = 0;

	if (options->inverted)
		all |= HEEDS_INVERTED;
	if (options->min_percent > 0)
		all |= HEEDS_MIN_PERCENT;
	if (options->annotate)
		all |= HEEDS_ANNOTATE;
	if (options->source)
		all |= HEEDS_SOURCE;
	/* Of what may be a profile, --by groups samples, whatever the format. */
	if (kinds != FORMATS_OF_HEAPS)
		return all;
	if (options->measure == HEAP_BY_COUNT)
		all |= HEEDS_COUNT;
	if (options->measure == HEAP_BY_RETAINED)
		all |= HEEDS_RETAINED;
	if (options->heap_group != HEAP_GROUP_NONE)
		all |= HEEDS_GROUP;
	return all;
}

bool heeded_check(const struct options *options, unsigned int kinds)
{
	const struct format *format = kinds & FORMATS_OF_PROFILES ? options->format : NULL;
	const struct heap_format *heap_format = kinds & FORMATS_OF_HEAPS ? options->heap_format : NULL;
	const unsigned int heeds = (format ? format->heeds : 0) | (heap_format ? heap_format->heeds : 0);
	const unsigned int unheeded = given(options, kinds) & ~heeds;
	char all[OPTION_LIST_SIZE];
	size_t i = 0;

	if (!unheeded || (!format && !heap_format))
		return true;
	while (!(unheeded & names[i].heeds))
		i++;
	option_value_list_formats(kinds, names[i].heeds, options->command == COMMAND_DIFF, all);
	message_error("The format %s does not heed %s.", format ? format->name : heap_format->name,
		      names[i].option);
	message_note("%s goes with -f %s.", names[i].option, all);
	return false;
}

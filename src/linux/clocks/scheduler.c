/* SPDX-License-Identifier: MIT */
#include "src/linux/clocks/scheduler.h"

#include <string.h>

/* The decimal number behind any blanks at *at, which then points behind it. 0 without a digit. */
static uint64_t take_number(const char **at)
{
	const char *digit = *at;
	uint64_t number = 0;

	while (*digit == ' ')
		digit++;
	for (; *digit >= '0' && *digit <= '9'; digit++)
		number = 10 * number + (uint64_t)(*digit - '0');
	*at = digit;
	return number;
}

struct schedstat schedstat_parse(const char *text)
{
	struct schedstat schedstat;

	schedstat.cpu_ns = take_number(&text);
	schedstat.waited_ns = take_number(&text);
	schedstat.runs = take_number(&text);
	return schedstat;
}

/*
 * The text behind the colon in the line of that name, or NULL. *at: where to begin, a line; it then is the
 * line behind the one found.
 */
static const char *find_value(const char **at, const char *name)
{
	const size_t length = strlen(name);

	for (const char *line = *at, *next; line; line = next) {
		const char *colon = line + length;

		next = strchr(line, '\n');
		next = next ? next + 1 : NULL;
		if (strncmp(line, name, length) != 0)
			continue;
		colon += strspn(colon, " \t");
		if (*colon != ':')
			continue;
		*at = next ? next : "";
		return colon + 1;
	}
	return NULL;
}

static bool find_number(const char **at, const char *name, uint64_t *ret_number)
{
	const char *value = find_value(at, name);

	if (!value)
		return false;
	value += strspn(value, " \t");
	*ret_number = take_number(&value);
	return true;
}

/* The line has milliseconds with six decimals. 0 if there is no such line. */
static uint64_t find_ns(const char **at, const char *name)
{
	const char *value = find_value(at, name);
	uint64_t ms;

	if (!value)
		return 0;
	ms = take_number(&value);
	return ms * 1000000 + (*value++ == '.' ? take_number(&value) : 0);
}

bool switches_parse(const char *text, struct switches *ret_switches)
{
	uint64_t preempted;

	*ret_switches = (struct switches){ 0 };
	/* The kernel writes the lines of sched in this order. */
	ret_switches->left_at = find_ns(&text, "se.exec_start");
	ret_switches->cpu_ns = find_ns(&text, "se.sum_exec_runtime");
	if (find_number(&text, "nr_switches", &ret_switches->count)) {
		find_number(&text, "nr_voluntary_switches", &ret_switches->sleeps);
		return true;
	}
	if (!find_number(&text, "voluntary_ctxt_switches", &ret_switches->sleeps) ||
	    !find_number(&text, "nonvoluntary_ctxt_switches", &preempted))
		return false;
	ret_switches->count = ret_switches->sleeps + preempted;
	return true;
}

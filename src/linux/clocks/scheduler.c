/* SPDX-License-Identifier: MIT */
#include "src/linux/clocks/scheduler.h"

#include <stdlib.h>
#include <string.h>

struct schedstat schedstat_parse(const char *text)
{
	struct schedstat schedstat;
	char *at;

	schedstat.cpu_ns = strtoull(text, &at, 10);
	schedstat.waited_ns = strtoull(at, &at, 10);
	schedstat.runs = strtoull(at, NULL, 10);
	return schedstat;
}

/* The text behind the colon in the line of that name, or NULL. */
static const char *find_value(const char *text, const char *name)
{
	const size_t length = strlen(name);

	for (const char *at = strstr(text, name); at; at = strstr(at + length, name)) {
		const char *colon = at + length + strspn(at + length, " ");

		if ((at == text || at[-1] == '\n') && *colon == ':')
			return colon + 1;
	}
	return NULL;
}

static bool find_number(const char *text, const char *name, uint64_t *ret_number)
{
	const char *value = find_value(text, name);

	if (value)
		*ret_number = strtoull(value, NULL, 10);
	return value;
}

/* The line has milliseconds with six decimals. 0 if there is no such line. */
static uint64_t find_ns(const char *text, const char *name)
{
	const char *value = find_value(text, name);
	uint64_t ms;
	char *at;

	if (!value)
		return 0;
	ms = strtoull(value, &at, 10);
	return ms * 1000000 + (*at == '.' ? strtoull(at + 1, NULL, 10) : 0);
}

bool switches_parse(const char *text, struct switches *ret_switches)
{
	uint64_t preempted;

	*ret_switches = (struct switches){ 0 };
	if (find_number(text, "nr_switches", &ret_switches->count)) {
		find_number(text, "nr_voluntary_switches", &ret_switches->sleeps);
		ret_switches->left_at = find_ns(text, "se.exec_start");
		ret_switches->cpu_ns = find_ns(text, "se.sum_exec_runtime");
		return true;
	}
	if (!find_number(text, "voluntary_ctxt_switches", &ret_switches->sleeps) ||
	    !find_number(text, "nonvoluntary_ctxt_switches", &preempted))
		return false;
	ret_switches->count = ret_switches->sleeps + preempted;
	return true;
}

/* SPDX-License-Identifier: MIT */
#include "src/options/condition.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "src/options/option_values.h"
#include "src/program/message.h"

enum {
	TEXT_MAX = 64,
	PERCENT_MAX = 100000, /* a thousand cores */
};

static const uint64_t second_ns = 1000000000u;
static const uint64_t cpu_span_default_ns = 10 * UINT64_C(1000000000);
static const uint64_t span_max_ns = 3600 * UINT64_C(1000000000);
static const uint64_t blocked_min_ns = 1000000u;

static bool refuse(const char *text)
{
	message_error("\"%s\" is no condition to wait for.", text);
	message_note("There are cpu>90%% for 10s, rss>1G, heap+20%%/10m, blocked>200ms and latency>1s.");
	return false;
}

/* Without its spaces, so that "cpu > 90% for 10s" and "cpu>90%for10s" are one. False if it is too long. */
static bool squeeze(const char *text, char ret_text[static TEXT_MAX])
{
	size_t length = 0;

	for (; *text; text++) {
		if (isspace((unsigned char)*text))
			continue;
		if (length == TEXT_MAX - 1)
			return false;
		ret_text[length++] = *text;
	}
	ret_text[length] = '\0';
	return true;
}

/* A whole number from 1 on before "%"; moves *text behind it. */
static bool take_percent(const char **text, uint64_t *ret)
{
	const char *at = *text;
	uint64_t value = 0;

	for (; *at >= '0' && *at <= '9' && value <= PERCENT_MAX; at++)
		value = value * 10 + (uint64_t)(*at - '0');
	if (*at != '%' || value == 0 || value > PERCENT_MAX)
		return false;
	*text = at + 1;
	*ret = value;
	return true;
}

static bool take_span(const char *text, uint64_t *ret_ns)
{
	if (!option_value_time(text, "time", ret_ns))
		return false;
	if (*ret_ns >= second_ns && *ret_ns <= span_max_ns)
		return true;
	message_error("The time of a condition is from 1s to 1h.");
	return false;
}

static bool read_cpu(const char *given, const char *at, struct condition *condition)
{
	condition->span_ns = cpu_span_default_ns;
	if (!take_percent(&at, &condition->limit) || (*at && strncmp(at, "for", 3) != 0))
		return refuse(given);
	return !*at || take_span(at + 3, &condition->span_ns);
}

static bool read_heap(const char *given, const char *at, struct condition *condition)
{
	if (!take_percent(&at, &condition->limit) || *at != '/')
		return refuse(given);
	return take_span(at + 1, &condition->span_ns);
}

static bool read_blocked(const char *at, struct condition *condition)
{
	if (!option_value_time(at, "time", &condition->limit))
		return false;
	if (condition->limit >= blocked_min_ns)
		return true;
	message_error("blocked> takes 1ms or more.");
	return false;
}

bool condition_read(const char *text, struct condition *ret_condition)
{
	static const struct {
		const char *beginning;
		enum condition_kind kind;
	} kinds[] = {
		{ "cpu>", CONDITION_CPU },         { "rss>", CONDITION_RSS },
		{ "heap+", CONDITION_HEAP },       { "blocked>", CONDITION_BLOCKED },
		{ "latency>", CONDITION_LATENCY },
	};
	const size_t count = sizeof(kinds) / sizeof(kinds[0]);
	struct condition condition = { .text = text };
	char squeezed[TEXT_MAX];
	const char *at = squeezed;
	size_t i = 0;
	bool good;

	if (!squeeze(text, squeezed))
		return refuse(text);
	while (i < count && strncmp(squeezed, kinds[i].beginning, strlen(kinds[i].beginning)) != 0)
		i++;
	if (i == count)
		return refuse(text);
	condition.kind = kinds[i].kind;
	at += strlen(kinds[i].beginning);
	switch (condition.kind) {
	case CONDITION_CPU: good = read_cpu(text, at, &condition); break;
	case CONDITION_RSS: good = option_value_size(at, &condition.limit); break;
	case CONDITION_HEAP: good = read_heap(text, at, &condition); break;
	case CONDITION_BLOCKED: good = read_blocked(at, &condition); break;
	case CONDITION_LATENCY: good = option_value_time(at, "time", &condition.limit); break;
	default: return refuse(text);
	}
	if (good)
		*ret_condition = condition;
	return good;
}

uint64_t conditions_blocked_ns(const struct condition *conditions, unsigned int count)
{
	uint64_t shortest_ns = 0;

	for (unsigned int i = 0; i < count; i++)
		if (conditions[i].kind == CONDITION_BLOCKED &&
		    (shortest_ns == 0 || conditions[i].limit < shortest_ns))
			shortest_ns = conditions[i].limit;
	return shortest_ns;
}

/* SPDX-License-Identifier: MIT */
#include "src/options/option_values.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/program/message.h"

static const uint64_t second_ns = 1000000000u;
static const uint64_t threshold_min_ns = 1000000u;
static const uint64_t request_number_max = UINT64_C(1) << 60;
static const uint64_t duration_max_ns = 366 * 24 * 3600 * UINT64_C(1000000000);

/* Read a decimal number up to maximum at the start of *text; move *text behind it. */
static bool take_number(const char **text, uint64_t maximum, uint64_t *ret)
{
	const char *at = *text;
	uint64_t value = 0;

	for (; *at >= '0' && *at <= '9'; at++) {
		value = value * 10 + (uint64_t)(*at - '0');
		if (value > maximum)
			return false;
	}
	if (at == *text)
		return false;
	*text = at;
	*ret = value;
	return true;
}

bool option_value_no_memory(const char *doing)
{
	message_error_errno(ENOMEM, "%s", doing);
	errno = ENOMEM;
	return false;
}

/* Skips an id that is already there. */
static bool add_id(pid_t **ids, size_t *count, pid_t id)
{
	for (size_t i = 0; i < *count; i++)
		if ((*ids)[i] == id)
			return true;
	if (!*ids)
		*ids = calloc(OPTIONS_PIDS_MAX, sizeof(**ids));
	if (!*ids)
		return option_value_no_memory("listing processes");
	if (*count == OPTIONS_PIDS_MAX) {
		message_error("There are more than %d processes.", OPTIONS_PIDS_MAX);
		return false;
	}
	(*ids)[(*count)++] = id;
	return true;
}

bool option_value_ids(const char *text, bool is_target, pid_t **ids, size_t *count)
{
	const char *at = text;
	uint64_t id;

	do {
		if (!take_number(&at, INT_MAX, &id) || id == 0 || (*at && *at != ',')) {
			message_error("\"%s\" is not an id, or several with commas between.", text);
			if (is_target)
				message_note("To choose processes by name, use --name.");
			return false;
		}
		if (!add_id(ids, count, (pid_t)id))
			return false;
	} while (*at++ == ',');
	return true;
}

/* One more word of a list such as "svg, folded and ljspy", before that many others. */
static void list_word(char *list, size_t size, const char *word, size_t others)
{
	size_t length = strlen(list);

	snprintf(list + length, size - length, "%s%s", word, others > 1 ? ", " : others == 1 ? " and " : "");
}

void option_value_list_formats(unsigned int kinds, unsigned int heeds, bool compares,
			       char ret_all[static OPTION_LIST_SIZE])
{
	const char *names[OPTION_LIST_MAX];
	size_t count = 0;

	*ret_all = '\0';
	for (size_t i = 0; kinds & FORMATS_OF_PROFILES && i < format_count; i++)
		if ((formats[i].heeds & heeds) == heeds && (formats[i].compare || !compares))
			names[count++] = formats[i].name;
	for (size_t i = 0; kinds & FORMATS_OF_HEAPS && i < heap_format_count; i++)
		if ((heap_formats[i].heeds & heeds) == heeds && (heap_formats[i].compare || !compares) &&
		    !(kinds & FORMATS_OF_PROFILES && format_by_name(heap_formats[i].name)))
			names[count++] = heap_formats[i].name;
	for (size_t i = 0; i < count; i++)
		list_word(ret_all, OPTION_LIST_SIZE, names[i], count - i - 1);
}

bool option_value_format(const char *text, unsigned int wanted, const struct format **ret_format,
			 const struct heap_format **ret_heap_format)
{
	const struct format *format = wanted & FORMATS_OF_PROFILES ? format_by_name(text) : NULL;
	const struct heap_format *heap_format = wanted & FORMATS_OF_HEAPS ? heap_format_by_name(text) : NULL;
	char all[OPTION_LIST_SIZE];

	if (format || heap_format) {
		*ret_format = format;
		*ret_heap_format = heap_format;
		return true;
	}
	option_value_list_formats(wanted, 0, false, all);
	message_error("There is no format \"%s\".", text);
	message_note("The formats are %s.", all);
	return false;
}

bool option_value_heap_group(const char *text, enum heap_grouping *ret_group)
{
	if (heap_grouping_by_name(text, ret_group))
		return true;
	message_error("\"%s\" is nothing to group a heap by.", text);
	message_note("What there is: path, module, type and coroutine.");
	return false;
}

bool option_value_measure(const char *text, enum heap_measure *ret_measure)
{
	if (heap_measure_by_name(text, ret_measure))
		return true;
	message_error("\"%s\" is nothing to measure a heap by.", text);
	message_note("What there is: own, retained and count.");
	return false;
}

/* Read one to six digits behind a decimal point, as millionths. */
static bool take_millionths(const char **text, uint64_t *ret)
{
	uint64_t value = 0, unit = 1000000;
	const char *at = *text;

	for (; *at >= '0' && *at <= '9' && unit > 1; at++)
		value += (uint64_t)(*at - '0') * (unit /= 10);
	if (at == *text)
		return false;
	*text = at;
	*ret = value;
	return true;
}

/* Read a number and its unit at the start of *text, and move *text behind them. */
static bool take_part(const char **text, uint64_t *ret_ns, uint64_t *ret_unit_ns)
{
	static const struct {
		const char *unit;
		uint64_t ns;
	} units[] = {
		{ "ms", second_ns / 1000 }, { "s", second_ns },         { "m", 60 * second_ns },
		{ "h", 3600 * second_ns },  { "d", 86400 * second_ns },
	};
	uint64_t whole, millionths = 0;
	const char *at = *text;

	if (!take_number(&at, duration_max_ns / second_ns, &whole))
		return false;
	if (*at == '.') {
		at++;
		if (!take_millionths(&at, &millionths))
			return false;
	}
	*ret_unit_ns = *at ? 0 : second_ns;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]) && !*ret_unit_ns; i++)
		if (strncmp(at, units[i].unit, strlen(units[i].unit)) == 0) {
			*ret_unit_ns = units[i].ns;
			at += strlen(units[i].unit);
		}
	if (!*ret_unit_ns || whole > duration_max_ns / *ret_unit_ns)
		return false;
	*ret_ns = whole * *ret_unit_ns + millionths * *ret_unit_ns / 1000000;
	*text = at;
	return true;
}

static bool ends_with_digit(const char *text)
{
	size_t length = strlen(text);

	return length && text[length - 1] >= '0' && text[length - 1] <= '9';
}

/*
 * "90", "1.5s", "12.34s", "500ms", "2m", "1h", "1h30m": units from large to small. Only a
 * number by itself, in seconds, may be without a unit: "1h30" may mean minutes.
 */
static bool parse_duration(const char *text, uint64_t *ret_ns)
{
	uint64_t sum = 0, last_unit_ns = UINT64_MAX;
	bool has_unit = strspn(text, "0123456789.") < strlen(text);

	if (has_unit && ends_with_digit(text))
		return false;

	do {
		uint64_t ns, unit_ns;

		if (!take_part(&text, &ns, &unit_ns) || unit_ns >= last_unit_ns)
			return false;
		sum += ns;
		last_unit_ns = unit_ns;
	} while (*text);
	if (sum == 0 || sum > duration_max_ns)
		return false;
	*ret_ns = sum;
	return true;
}

/* If only the last number's unit is missing in a duration, ask for it. */
static bool ask_for_unit(const char *text)
{
	static const char *const units[] = { "m", "s", "ms" }; /* ms only where no larger unit fits */
	char *good[sizeof(units) / sizeof(units[0])] = { NULL };
	size_t count = 0;
	uint64_t ns;

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]) && ends_with_digit(text); i++) {
		if (count && strcmp(units[i], "ms") == 0)
			break;
		if (asprintf(&good[count], "%s%s", text, units[i]) < 0)
			good[count] = NULL;
		else if (parse_duration(good[count], &ns))
			count++;
		else
			free(good[count]);
	}
	if (count > 1)
		message_note("Its last number has no unit: is it %s or %s?", good[0], good[1]);
	else if (count)
		message_note("Its last number has no unit: is it %s?", good[0]);
	for (size_t i = 0; i < count; i++)
		free(good[i]);
	return count > 0;
}

bool option_value_time(const char *text, const char *what, uint64_t *ret_ns)
{
	if (parse_duration(text, ret_ns))
		return true;
	message_error("\"%s\" is not a %s.", text, what);
	if (!ask_for_unit(text))
		message_note("Write it like 30s, 2m, 1h30m, 500ms or 12.34s; a year is the most.");
	return false;
}

bool option_value_slowness(const char *text, uint64_t *ret_ns, uint32_t *ret_ppm)
{
	const char *at = text + 1;
	uint64_t whole, millionths = 0, ppm;

	*ret_ppm = 0;
	if (text[0] != 'p')
		return option_value_time(text, "time, or a percentile such as p99", ret_ns);
	*ret_ns = 0;
	if (take_number(&at, 99, &whole) && (*at != '.' || (at++, take_millionths(&at, &millionths))) &&
	    *at == '\0') {
		ppm = whole * 10000 + millionths / 100;
		*ret_ppm = (uint32_t)ppm;
		if (ppm)
			return true;
	}
	message_error("\"%s\" is not a percentile.", text);
	message_note("Write it like p99 or p99.9.");
	return false;
}

bool option_value_moment(const char *text, uint64_t *ret_ns, struct clock_time *ret_time)
{
	if (clock_time_read(text, ret_time)) {
		*ret_ns = 0;
		return true;
	}
	if (parse_duration(text, ret_ns)) {
		*ret_time = (struct clock_time){ 0 };
		return true;
	}
	message_error("\"%s\" is not a time.", text);
	if (!ask_for_unit(text))
		message_note("Write it like 14:02, 2026-01-31T14:02:30, 30s or 1h30m after the beginning.");
	return false;
}

bool option_value_size(const char *text, uint64_t *ret_bytes)
{
	static const char units[] = "KMGT";
	const char *at = text, *unit;
	uint64_t number, bytes;

	if (take_number(&at, UINT64_MAX >> 41, &number) && number) {
		bytes = number;
		unit = *at ? strchr(units, *at) : NULL;
		if (unit) {
			bytes = number << (10 * (unit - units + 1));
			at++;
		}
		if (!*at) {
			*ret_bytes = bytes;
			return true;
		}
	}
	message_error("\"%s\" is not a size.", text);
	message_note("Write it like 500M or 2G; the units are K, M, G and T.");
	return false;
}

bool option_value_at_most(const char *text, unsigned int *ret_count)
{
	const char *at = text;
	uint64_t number;

	if (!take_number(&at, OPTIONS_AT_MOST_MAX, &number) || *at || number == 0) {
		message_error("\"%s\" is no number from 1 to %d.", text, OPTIONS_AT_MOST_MAX);
		return false;
	}
	*ret_count = (unsigned int)number;
	return true;
}

bool option_value_threshold(const char *text, uint64_t *ret_ns)
{
	uint64_t ns;

	if (!parse_duration(text, &ns) || ns < threshold_min_ns) {
		message_error("\"%s\" is not a threshold from 1ms on.", text);
		ask_for_unit(text);
		return false;
	}
	*ret_ns = ns;
	return true;
}

bool option_value_rate(const char *text, unsigned int *ret_hz)
{
	uint64_t number;

	if (!take_number(&text, OPTIONS_RATE_MAX, &number) || *text || number == 0) {
		message_error("The rate is to be a number from 1 to %d, in samples per second.",
			      OPTIONS_RATE_MAX);
		return false;
	}
	*ret_hz = (unsigned int)number;
	return true;
}

bool option_value_percent(const char *text, double *ret_percent)
{
	const char *at = text;
	uint64_t whole, millionths = 0;

	if (take_number(&at, 100, &whole) && *at == '.') {
		at++;
		take_millionths(&at, &millionths);
	}
	if (at != text && !*at && (double)whole + (double)millionths / 1e6 <= 100) {
		*ret_percent = (double)whole + (double)millionths / 1e6;
		return true;
	}
	message_error("\"%s\" is not a part in percent.", text);
	return false;
}

bool option_value_trace(const char *text, uint32_t *ret_number)
{
	const char *at = text;
	uint64_t number;

	if (take_number(&at, TRACE_NUMBER_MAX, &number) && !*at && number > 0) {
		*ret_number = (uint32_t)number;
		return true;
	}
	message_error("\"%s\" is not the number of a trace.", text);
	message_note("`ljspy traces` shows the numbers.");
	return false;
}

bool option_value_request(const char *text, uint64_t *ret_connection, uint64_t *ret_number)
{
	const char *at = text;
	uint64_t connection, number;

	if (take_number(&at, request_number_max, &connection) && *at == '.' && connection > 0) {
		at++;
		if (take_number(&at, request_number_max, &number) && !*at && number > 0) {
			*ret_connection = connection;
			*ret_number = number;
			return true;
		}
	}
	message_error("\"%s\" is not the number of a request: it is like 17.3.", text);
	message_note("`ljspy report` lists the slowest requests with their numbers.");
	return false;
}

bool option_value_file(const char *text, const char *option, const char **ret_file)
{
	if (!*text) {
		message_error("%s is given no name of a file.", option);
		message_note("Name one, or - for the standard output.");
		return false;
	}
	/* Its name is forgotten, and the next option taken for it. */
	if (text[0] == '-' && text[1]) {
		message_error("%s needs the name of a file, and %s is an option.", option, text);
		message_note("Name a file; one of that name is ./%s", text);
		return false;
	}
	*ret_file = text;
	return true;
}

bool option_value_native(const char *text, enum native_display *ret_native)
{
	static const char *const names[] = {
		[NATIVE_FOLD] = "fold",
		[NATIVE_ALL] = "all",
		[NATIVE_NONE] = "none",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(text, names[i]) == 0) {
			*ret_native = (enum native_display)i;
			return true;
		}
	message_error("\"%s\" is not a way to show native code.", text);
	message_note("The ways are all, fold and none; fold unless given.");
	return false;
}

/* A clock to record by counts time; a recording is shown by whatever a clock records. */
static bool is_for(bool records, enum weight_kind kind)
{
	return records ? weight_is_clock(kind) && weight_is_time(kind) : weight_is_sampled(kind);
}

bool option_value_clock(const char *text, bool records, enum weight_kind *ret_clock)
{
	size_t others = 0;
	char all[256] = "";
	enum weight_kind kind;

	if (weight_by_name(text, strlen(text), &kind) && is_for(records, kind)) {
		*ret_clock = kind;
		return true;
	}
	for (kind = 0; kind < WEIGHT_COUNT; kind++)
		others += is_for(records, kind);
	for (kind = 0; kind < WEIGHT_COUNT; kind++)
		if (is_for(records, kind))
			list_word(all, sizeof(all), weights[kind].name, --others);
	message_error("There is no clock \"%s\".", text);
	message_note("The clocks are %s.", all);
	return false;
}

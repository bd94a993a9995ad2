/* SPDX-License-Identifier: MIT */
#include "src/options/clock_time.h"

#include <stddef.h>
#include <string.h>

/* Read so many digits, up to maximum, and move *text behind them. */
static bool take(const char **text, int digits, int maximum, int *ret)
{
	int value = 0;

	for (int i = 0; i < digits; i++, (*text)++) {
		if (**text < '0' || **text > '9')
			return false;
		value = value * 10 + (**text - '0');
	}
	*ret = value;
	return value <= maximum;
}

static bool skip(const char **text, char wanted)
{
	if (**text != wanted)
		return false;
	(*text)++;
	return true;
}

/* Read a date and what divides it from a time. */
static bool take_date(const char **text, struct tm *fields)
{
	struct tm normal;
	int year, month, day;

	if (!take(text, 4, 9999, &year) || !skip(text, '-') || !take(text, 2, 12, &month) || month == 0 ||
	    !skip(text, '-') || !take(text, 2, 31, &day) || day == 0 ||
	    (!skip(text, 'T') && !skip(text, ' ')))
		return false;
	fields->tm_year = year - 1900;
	fields->tm_mon = month - 1;
	fields->tm_mday = day;
	normal = *fields;
	return timegm(&normal) != -1 && normal.tm_mday == day;
}

/* Read the digits of a fraction of a second, nine at most. */
static bool take_fraction(const char **text, uint32_t *ret_ns)
{
	const char *begin = *text;
	uint32_t ns = 0;

	for (uint32_t unit_ns = 100000000; unit_ns > 0 && **text >= '0' && **text <= '9'; unit_ns /= 10)
		ns += unit_ns * (uint32_t)(*(*text)++ - '0');
	*ret_ns = ns;
	return *text > begin;
}

/* Read seconds and their fraction, if they are there. */
static bool take_seconds(const char **text, struct clock_time *time)
{
	if (!skip(text, ':'))
		return true;
	return take(text, 2, 60, &time->fields.tm_sec) &&
	       (!skip(text, '.') || take_fraction(text, &time->fraction_ns));
}

bool clock_time_read(const char *text, struct clock_time *ret_time)
{
	struct clock_time time = { .given = true };
	struct tm *fields = &time.fields;

	time.has_date = strlen(text) > 4 && text[4] == '-';
	if (time.has_date && !take_date(&text, fields))
		return false;
	if (!take(&text, 2, 23, &fields->tm_hour) || !skip(&text, ':') ||
	    !take(&text, 2, 59, &fields->tm_min) || !take_seconds(&text, &time))
		return false;
	time.utc = skip(&text, 'Z');
	if (*text)
		return false;
	*ret_time = time;
	return true;
}

struct clock_time clock_time_at(int64_t unix_s)
{
	struct clock_time time = { .given = true, .has_date = true, .utc = true };
	const time_t seconds = (time_t)unix_s;

	gmtime_r(&seconds, &time.fields);
	return time;
}

/* That time on the day of another, and so many days later. */
static int64_t on_day(const struct clock_time *time, int64_t of_s, int days)
{
	struct tm fields = time->fields, day;
	const time_t of = (time_t)of_s;

	if (!time->has_date && (time->utc ? gmtime_r(&of, &day) : localtime_r(&of, &day))) {
		fields.tm_year = day.tm_year;
		fields.tm_mon = day.tm_mon;
		fields.tm_mday = day.tm_mday + days;
	}
	fields.tm_isdst = -1;
	return time->utc ? timegm(&fields) : mktime(&fields);
}

int64_t clock_time_near(const struct clock_time *time, int64_t begin_s, int64_t end_s)
{
	int64_t last_s = on_day(time, end_s, 0), next_s;

	if (time->has_date)
		return last_s;
	if (last_s > end_s)
		last_s = on_day(time, end_s, -1);
	next_s = on_day(time, last_s, 1);
	return last_s < begin_s && begin_s - last_s > next_s - end_s ? next_s : last_s;
}

int64_t clock_time_after(const struct clock_time *time, int64_t begin_s, uint32_t begin_fraction_ns)
{
	int64_t at_s = on_day(time, begin_s, 0);
	bool is_after = at_s > begin_s || (at_s == begin_s && time->fraction_ns > begin_fraction_ns);

	return is_after || time->has_date ? at_s : on_day(time, begin_s, 1);
}

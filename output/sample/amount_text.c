/* SPDX-License-Identifier: MIT */
#include "output/sample/amount_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *amount_bytes(uint64_t bytes, char ret_text[static AMOUNT_SIZE])
{
	static const char *const units[] = { "B", "kB", "MB", "GB", "TB", "PB", "EB" };
	double amount = (double)bytes;
	size_t unit = 0;

	/* What would be rounded up to 1000 has the next unit. */
	for (; amount >= 999.95; unit++)
		amount /= 1000;
	if (unit == 0)
		snprintf(ret_text, AMOUNT_SIZE, "%" PRIu64 " B", bytes);
	else
		snprintf(ret_text, AMOUNT_SIZE, "%.1f %s", amount, units[unit]);
	return ret_text;
}

const char *amount_number(uint64_t number, char ret_text[static AMOUNT_SIZE])
{
	char digits[24];
	size_t length = (size_t)snprintf(digits, sizeof(digits), "%" PRIu64, number), at = 0;

	for (size_t i = 0; i < length; i++) {
		if (i > 0 && (length - i) % 3 == 0)
			ret_text[at++] = ',';
		ret_text[at++] = digits[i];
	}
	ret_text[at] = '\0';
	return ret_text;
}

static bool is_bytes(enum weight_kind kind)
{
	return strcmp(weights[kind].unit, "bytes") == 0;
}

const char *amount_column(enum weight_kind kind)
{
	return weight_is_time(kind) ? "ms" : weights[kind].unit;
}

const char *amount_in_column(enum weight_kind kind, uint64_t weight, char ret_text[static AMOUNT_SIZE])
{
	if (is_bytes(kind))
		return amount_bytes(weight, ret_text);
	if (!weight_is_time(kind))
		return amount_number(weight, ret_text);
	snprintf(ret_text, AMOUNT_SIZE, "%.1f", (double)weight / 1e6);
	return ret_text;
}

const char *amount_alone(enum weight_kind kind, uint64_t weight, char ret_text[static AMOUNT_SIZE])
{
	size_t length = strlen(amount_in_column(kind, weight, ret_text));

	if (!is_bytes(kind))
		snprintf(ret_text + length, AMOUNT_SIZE - length, " %s", amount_column(kind));
	return ret_text;
}

/* SPDX-License-Identifier: MIT */
#include "unwind/nginx/route.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

enum { HEX_MIN = 8, TOKEN_MIN = 20, TOKEN_DIGITS_MIN = 2, RUN_MIN = 3, ENDING_MAX = 5 };

struct route {
	char *text;
	size_t length;
};

static void add(struct route *route, const char *text, size_t length)
{
	for (size_t i = 0; i < length && route->length + 1 < ROUTE_BYTES; i++)
		route->text[route->length++] = text[i];
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
	return isalpha((unsigned char)c) && !((unsigned char)c & 0x80);
}

static bool is_identifier(const char *part, size_t length)
{
	size_t digits = 0, hex = 0, letters = 0, others = 0;

	for (size_t i = 0; i < length; i++) {
		if (is_digit(part[i]))
			digits++;
		else if (is_letter(part[i]))
			letters++, hex += isxdigit((unsigned char)part[i]) != 0;
		else if (!strchr("-_.,~=", part[i]))
			others++;
	}
	if (others || digits == 0)
		return false;
	return letters == 0 || (letters == hex && digits + hex >= HEX_MIN) ||
	       (digits >= TOKEN_DIGITS_MIN && digits + letters >= TOKEN_MIN);
}

/* The length of a part without an ending such as ".jpg" or ".mp3". */
static size_t without_ending(const char *part, size_t length)
{
	for (size_t i = length; i > 1 && length - i <= ENDING_MAX; i--)
		if (part[i - 1] == '.')
			return i < length && is_letter(part[i]) ? i - 1 : length;
	return length;
}

static void add_folding_runs(struct route *route, const char *part, size_t length)
{
	for (size_t i = 0; i < length;) {
		size_t run = 0;

		while (i + run < length && is_digit(part[i + run]))
			run++;
		if (run >= RUN_MIN)
			add(route, "*", 1);
		else
			add(route, part + i, run ? run : 1);
		i += run ? run : 1;
	}
}

static void add_part(struct route *route, const char *part, size_t length)
{
	size_t stem = without_ending(part, length);

	if (stem > 0 && is_identifier(part, stem)) {
		add(route, "*", 1);
		add(route, part + stem, length - stem);
	} else {
		add_folding_runs(route, part, length);
	}
}

void route_of(const char *path, char ret_route[static ROUTE_BYTES])
{
	struct route route = { .text = ret_route };

	while (*path) {
		size_t slashes = strspn(path, "/");
		size_t length = strcspn(path + slashes, "/");

		add(&route, "/", slashes > 0);
		add_part(&route, path + slashes, length);
		path += slashes + length;
	}
	ret_route[route.length] = '\0';
}

const char *route_separator(const char *route)
{
	return *route == '/' ? "" : " ";
}

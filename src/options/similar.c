/* SPDX-License-Identifier: MIT */
#include "src/options/similar.h"

#include <stdint.h>
#include <string.h>

enum { LENGTH_MAX = 32 };

static size_t least(size_t a, size_t b, size_t c)
{
	size_t ab = a < b ? a : b;

	return ab < c ? ab : c;
}

/* The optimal string alignment distance. Neither word is longer than LENGTH_MAX. */
static size_t edit_distance(const char *a, const char *b)
{
	size_t rows[3][LENGTH_MAX + 1];
	size_t a_length = strlen(a), b_length = strlen(b);

	for (size_t j = 0; j <= b_length; j++)
		rows[0][j] = j;
	for (size_t i = 1; i <= a_length; i++) {
		size_t *row = rows[i % 3], *above = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];

		row[0] = i;
		for (size_t j = 1; j <= b_length; j++) {
			row[j] = least(above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    before[j - 2] + 1 < row[j])
				row[j] = before[j - 2] + 1;
		}
	}
	return rows[a_length % 3][b_length];
}

struct similar similar_begin(const char *word)
{
	size_t length = strlen(word);

	return (struct similar){ .word = length <= LENGTH_MAX ? word : NULL, .distance = length / 3 + 1 };
}

void similar_add(struct similar *similar, const char *candidate)
{
	size_t distance;

	if (!similar->word || strlen(candidate) > LENGTH_MAX)
		return;
	distance = edit_distance(similar->word, candidate);
	if (distance >= similar->distance)
		return;
	similar->distance = distance;
	similar->best = candidate;
}

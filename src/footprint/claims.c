/* SPDX-License-Identifier: MIT */
#include "src/footprint/claims.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "memory/array.h"

void claims_clear(struct claims *claims)
{
	free(claims->list);
	*claims = (struct claims){ .list = NULL };
}

size_t claims_from(const struct claims *claims, uint64_t address)
{
	size_t low = 0, high = claims->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (claims->list[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

int claims_add(struct claims *claims, const struct claim *claim)
{
	size_t at = claims_from(claims, claim->begin);
	struct claim *moved;

	if (claim->begin >= claim->end || (at < claims->count && claims->list[at].begin < claim->end))
		return -EEXIST;
	moved = array_grow(claims->list, &claims->room, claims->count + 1, sizeof(*moved));
	if (!moved)
		return -ENOMEM;
	claims->list = moved;
	memmove(&moved[at + 1], &moved[at], (claims->count - at) * sizeof(*moved));
	moved[at] = *claim;
	claims->count++;
	return 0;
}

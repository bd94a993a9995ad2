/* SPDX-License-Identifier: MIT */
#include "output/views/changed.h"

#include <errno.h>
#include <stdlib.h>

bool changed_has(const struct changed *changed, const struct function *function)
{
	const struct changed_function *found;

	HASH_FIND_PTR(changed->functions, &function, found);
	return found;
}

int changed_add(struct changed *changed, const struct function *function)
{
	struct changed_function *more;

	if (changed_has(changed, function))
		return 0;
	more = malloc(sizeof(*more));
	if (!more)
		return -ENOMEM;
	more->function = function;
	HASH_ADD_PTR(changed->functions, function, more);
	if (hash_added(&more->hh))
		return 0;
	free(more);
	return -ENOMEM;
}

void changed_clear(struct changed *changed)
{
	HASH_FREE_ALL(changed->functions);
}

/* SPDX-License-Identifier: MIT */
/*
 * changed: a set of functions, those whose share of time is known to have changed.
 */
#ifndef LJSPY_CHANGED_H
#define LJSPY_CHANGED_H

#include <stdbool.h>

#include "memory/hash.h"
#include "output/sample/functions.h"

struct changed_function {
	const struct function *function;
	UT_hash_handle hh;
};

/* Zeroed memory is an empty set. */
struct changed {
	struct changed_function *functions;
};

/* 0, also if it is there already, or -ENOMEM. The function is borrowed. */
int changed_add(struct changed *changed, const struct function *function);
bool changed_has(const struct changed *changed, const struct function *function);
void changed_clear(struct changed *changed);

#endif

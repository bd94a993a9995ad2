/* SPDX-License-Identifier: MIT */
/*
 * checked_all: whether the targets of the options may be looked at, and have the given layout, as `checked`
 * says; and how it is told why one cannot be looked at. The test has `options` before it includes this.
 */
#ifndef LJSPY_CHECKED_ALL_H
#define LJSPY_CHECKED_ALL_H

#include <stdio.h>

#include "src/targets/choose.h"
#include "tests/unit/instead_of.h"

static struct {
	bool may_not, misfit;
} checked;

INSTEAD_OF(choose_check_all);
bool __wrap_choose_check_all(const struct options *of)
{
	assert_ptr_equal(of, &options);
	return !checked.may_not;
}

INSTEAD_OF(choose_check_layouts);
bool __wrap_choose_check_layouts(const struct options *of)
{
	assert_ptr_equal(of, &options);
	return !checked.misfit;
}

INSTEAD_OF(choose_explain);
void __wrap_choose_explain(pid_t pid, int error)
{
	fprintf(stderr, "%d: error %d\n", (int)pid, error);
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * checked_each: whether each process may be looked at, and has the given layout, as its `may_not` and
 * `misfits` say. The test has looked_at.h and `options` before it includes this.
 */
#ifndef LJSPY_CHECKED_EACH_H
#define LJSPY_CHECKED_EACH_H

#include "src/targets/choose.h"
#include "tests/unit/instead_of.h"

INSTEAD_OF(choose_check);
bool __wrap_choose_check(pid_t pid)
{
	return !made_up(pid)->may_not;
}

INSTEAD_OF(choose_check_layout);
bool __wrap_choose_check_layout(pid_t pid, const struct given_layout *layout)
{
	assert_ptr_equal(layout, options.layout);
	return !made_up(pid)->misfits;
}

#endif

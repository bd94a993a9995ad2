/* SPDX-License-Identifier: MIT */
/* one_taking: a footprint that is being taken, of mappings and claims that the test makes up. */
#ifndef LJSPY_ONE_TAKING_H
#define LJSPY_ONE_TAKING_H

#include <stdbool.h>

#include "src/footprint/taking.h"

static struct taking taking;

/* False when memory is short. */
static bool taking_begin(void)
{
	taking = (struct taking){ .report = footprint_new(1, "luajit") };
	return taking.report != NULL;
}

static int taking_end(void **state)
{
	(void)state;
	smaps_clear(&taking.smaps);
	page_runs_clear(&taking.runs);
	claims_clear(&taking.claims);
	footprint_free(taking.report);
	return 0;
}

#endif

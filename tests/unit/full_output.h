/* SPDX-License-Identifier: MIT */
/*
 * full_output: a standard output that takes nothing more, while output_is_full. The user is told "It is
 * full.\n".
 */
#ifndef LJSPY_FULL_OUTPUT_H
#define LJSPY_FULL_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "src/program/standard_files.h"
#include "tests/unit/instead_of.h"

static bool output_is_full; /* a test begins without */

INSTEAD_OF(standard_output_flush);
bool __wrap_standard_output_flush(void)
{
	if (output_is_full)
		fputs("It is full.\n", stderr);
	return !output_is_full;
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * told_reason: why a process cannot be looked at is told as its number and the error, with a reason of the
 * test's. Only that ljspy may not open more files is the same of all.
 */
#ifndef LJSPY_TOLD_REASON_H
#define LJSPY_TOLD_REASON_H

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "src/linux/proc/permission.h"
#include "tests/unit/instead_of.h"

static enum permission_reason told_reason;

INSTEAD_OF(permission_diagnose);
void __wrap_permission_diagnose(pid_t pid, int error, struct permission_verdict *ret_verdict)
{
	*ret_verdict = (struct permission_verdict){ .reason = told_reason };
	if (error == EMFILE)
		strcpy(ret_verdict->sentence, "Too few files.");
	else
		snprintf(ret_verdict->sentence, sizeof(ret_verdict->sentence), "%d: error %d.", (int)pid,
			 error);
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * made_up_native: a walk of the native stack that stands where a test says, and goes on where it is told to.
 */
#ifndef LJSPY_MADE_UP_NATIVE_H
#define LJSPY_MADE_UP_NATIVE_H

#include "tests/unit/instead_of.h"
#include "unwind/native/native.h"

static struct native_frame native;

INSTEAD_OF(native_current);
const struct native_frame *__wrap_native_current(const struct native_unwinder *unwinder)
{
	(void)unwinder;
	return &native;
}

INSTEAD_OF(native_continue);
void __wrap_native_continue(struct native_unwinder *unwinder, const struct registers *caller)
{
	(void)unwinder;
	native = (struct native_frame){ .registers = *caller, .is_return_address = true };
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * instead_of: put a function of a test's own in the place of one of ljspy's or the C library's.
 *
 * After INSTEAD_OF(name), define __wrap_name(); what is elsewhere calls it by the name, and
 * __real_name() is the original. The makefile tells the linker (replaced in GNUmakefile), so
 * each stands on a line of its own, in a test or in a header of tests/unit that it includes.
 */
#ifndef LJSPY_INSTEAD_OF_H
#define LJSPY_INSTEAD_OF_H

#define INSTEAD_OF(function) \
	__typeof__(function) __wrap_##function; \
	__typeof__(function) __real_##function

#endif

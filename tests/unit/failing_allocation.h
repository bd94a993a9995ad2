/* SPDX-License-Identifier: MIT */
/*
 * failing_allocation: one allocation that fails, as if memory were short just then.
 *
 * The test has INSTEAD_OF(malloc), INSTEAD_OF(calloc) and INSTEAD_OF(realloc) before it includes this, and
 * INSTEAD_OF(reallocarray) and FAILING_REALLOCARRAY if arrays fail, too, that grow (memory/array.h).
 */
#ifndef LJSPY_FAILING_ALLOCATION_H
#define LJSPY_FAILING_ALLOCATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static size_t allocations_before_failure = SIZE_MAX;

/* The allocation after so many others fails. */
static inline void allocation_fails_after(size_t count)
{
	allocations_before_failure = count;
}

/* None fails from now on. Has one failed? */
static inline bool allocation_failed(void)
{
	bool failed = allocations_before_failure == SIZE_MAX;

	allocations_before_failure = SIZE_MAX;
	return failed;
}

static bool allocation_fails(void)
{
	return allocations_before_failure != SIZE_MAX && allocations_before_failure-- == 0;
}

void *__wrap_malloc(size_t size)
{
	return allocation_fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
	return allocation_fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
	return allocation_fails() ? NULL : __real_realloc(old, size);
}

#ifdef FAILING_REALLOCARRAY
void *__wrap_reallocarray(void *old, size_t count, size_t size)
{
	return allocation_fails() ? NULL : __real_reallocarray(old, count, size);
}
#endif

#endif

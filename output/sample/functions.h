/* SPDX-License-Identifier: MIT */
/*
 * functions: each function once.
 *
 * Interning makes a function's identity a pointer; see output/sample/frame.h.
 */
#ifndef LJSPY_FUNCTIONS_H
#define LJSPY_FUNCTIONS_H

#include <stddef.h>

#include "output/sample/frame.h"
#include "output/sample/lost.h"

struct functions;

struct functions *functions_new(void);
void functions_free(struct functions *functions);

/*
 * The interned function that equals this one; strings are copied. NULL when
 * memory is short.
 */
const struct function *functions_intern(struct functions *functions,
					const struct function *function);

/*
 * To forget functions that nobody needs any more, for a program may make ever
 * new ones: keep each that somebody still points to, then drop all others.
 */
void functions_keep(const struct function *function);
void functions_drop_others(struct functions *functions);

/* How many bytes all functions take. */
size_t functions_size(const struct functions *functions);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * functions: a table that holds each function once.
 *
 * A function is then identified by its pointer; see output/sample/frame.h.
 */
#ifndef LJSPY_FUNCTIONS_H
#define LJSPY_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "output/sample/frame.h"
#include "output/sample/lost.h"

struct functions;

struct functions *functions_new(void);
void functions_free(struct functions *functions);

/*
 * The interned function equal to this one, which the table owns. Strings are
 * copied. NULL when memory is short. The first one's root stays, but for functions_set_root().
 */
const struct function *functions_intern(struct functions *functions, const struct function *function);

/*
 * The leaf of a sample of an allocation: "table", "string", "function <x.lua:12>", "cdata",
 * "growth of a table". NULL when memory is short.
 */
const struct function *functions_allocated(struct functions *functions, const char *what);

/*
 * Have both the same place of definition, in a file that is known? They may still be two functions on one
 * line. NULL is the same as NULL only.
 */
bool functions_share_definition(const struct function *a, const struct function *b);

/* Set the root of an interned function while no other thread looks at it. */
void functions_set_root(const struct function *function, uint32_t root);

/*
 * Free unused functions, because a program may create new ones without end:
 * mark each function still in use with functions_keep(), then drop the others.
 */
void functions_keep(const struct function *function);
void functions_drop_others(struct functions *functions);

/* The size of all functions in bytes. */
size_t functions_size(const struct functions *functions);

#endif

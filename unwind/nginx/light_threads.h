/* SPDX-License-Identifier: MIT */
/*
 * light_threads: the coroutines in which Lua works for a request.
 *
 * The module's context of a request contains that of its first coroutine and leads to the list of
 * the others (unwind/lua/request.h). A coroutine is accepted if it refers to its context and to
 * the request in turn, which needs a LuaJIT that keeps them in lua_State (L->exdata, L->exdata2).
 */
#ifndef LJSPY_LIGHT_THREADS_H
#define LJSPY_LIGHT_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "luajit-layouts/layout.h"
#include "memory/memory.h"
#include "unwind/lua/request.h"

enum { LIGHT_THREADS_MAX = 64 }; /* of a request; there may be more */

/* The coroutine with this context, which it refers to in turn. False if there is none. */
bool light_thread_of(struct memory *memory, const struct layout *luajit, uint64_t coctx,
		     uint64_t *ret_thread);

/* The lua_States of the request with this context, the first coroutine first. Returns how many. */
size_t light_threads_find(struct memory *memory, const struct request_layout *layout,
			  const struct layout *luajit, uint64_t request,
			  const struct request_context *context, uint64_t ret_threads[LIGHT_THREADS_MAX]);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * light_threads: the coroutines in which Lua works for a request.
 *
 * The module's context of a request contains that of its first coroutine and leads to the list of
 * the others (unwind/lua/request.h). A coroutine is accepted if it refers to the request in turn. The list
 * has those that have ended, too, to the end of the request (ngx_http_lua_create_co_ctx(), 0.10.13 to
 * 0.10.29). Only its light threads are kept from the collector, so a lua_State in the list may be freed
 * memory.
 *
 * In OpenResty's LuaJIT, a lua_State refers to its request and to its context (L->exdata, L->exdata2).
 * With another LuaJIT, the module keeps the request as a light userdata among the globals of the
 * coroutine, by the name __ngx_req, and gives each request globals of its own (ngx_http_lua_util.h:
 * ngx_http_lua_set_req). The context is then the one of the request that refers to the coroutine.
 */
#ifndef LJSPY_LIGHT_THREADS_H
#define LJSPY_LIGHT_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "luajit-layouts/layout.h"
#include "memory/memory.h"
#include "unwind/lua/global_state.h"
#include "unwind/lua/request.h"

enum { LIGHT_THREADS_MAX = 64 }; /* of a request; there may be more */

/* The lua_States of a request that have not ended, the first coroutine first. */
struct light_threads {
	uint64_t threads[LIGHT_THREADS_MAX];
	size_t count;
	size_t more; /* that have no room */
	uint64_t g;  /* the global_State of all; 0 if there are none */
};

struct light_thread {
	uint64_t thread;  /* lua_State */
	uint64_t request; /* ngx_http_request_t, if it is still one: request_context() tells */
	uint64_t coctx;   /* ngx_http_lua_co_ctx_t; 0 if it is unknown */
};

/* The request that a lua_State refers to. False if it refers to none. Brings the hints up to date. */
bool light_thread_request(struct memory *memory, const struct layout *luajit, uint64_t thread,
			  struct request_hints *hints, uint64_t *ret_request);

/* The context of a coroutine of the request with this context. False if the request has no such coroutine. */
bool light_thread_context(struct memory *memory, const struct request_layout *layout,
			  const struct layout *luajit, uint64_t request,
			  const struct request_context *context, uint64_t thread, uint64_t *ret_coctx);

/* Both of a coroutine. False if it refers to no request. */
bool light_thread_read(struct memory *memory, const struct request_layout *layout,
		       const struct layout *luajit, uint64_t thread, struct request_hints *hints,
		       struct light_thread *ret_light_thread);

/* The coroutine with this context, which it refers to in turn. False if there is none. */
bool light_thread_of(struct memory *memory, const struct layout *luajit, uint64_t coctx,
		     uint64_t *ret_thread);

/* Of the request with this context, while nothing runs. */
void light_threads_find(struct memory *memory, const struct request_layout *layout,
			const struct layout *luajit, uint64_t request, const struct request_context *context,
			struct light_threads *ret_threads);

#endif

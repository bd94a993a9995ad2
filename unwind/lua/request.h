/* SPDX-License-Identifier: MIT */
/*
 * request: what lua-nginx-module knows of the request that Lua works for.
 *
 * OpenResty's LuaJIT keeps in each lua_State the request (L->exdata) and the
 * module's context of the coroutine (L->exdata2). Where the request keeps its
 * phase is read from the code of ngx_http_lua_ffi_get_phase(), which is what
 * ngx.get_phase() returns; nothing is assumed about a module without it.
 *
 * A coroutine keeps the pointer to its request for life, and hands it on to those
 * that it makes. The request's memory is freed and used again meanwhile, for
 * another request, too. So nothing is believed but what leads back: the request's
 * connection and the module's context to the request, and for a coroutine that does
 * not run, its own context to it and to that of the request.
 */
#ifndef LJSPY_REQUEST_H
#define LJSPY_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memory/memory.h"

/* ngx_http_get_module_ctx(r, ngx_http_lua_module)->context */
struct request_layout {
	bool known;
	int32_t r_ctx;		/* ngx_http_request_t.ctx */
	uint64_t ctx_index;	/* ngx_http_lua_module.ctx_index */
	int32_t ctx_context;	/* ngx_http_lua_ctx_t.context */
	unsigned int context_size;	/* bytes of it */
	bool has_connection;	/* the two below are known */
	int32_t r_connection;	/* ngx_http_request_t.connection */
	int32_t r_main;		/* ngx_http_request_t.main */
};

/* The things read of a request, in turn. They are what the next look most likely needs. */
enum { REQUEST_RANGES = 4 };

/* The module's context of a request. */
struct request_context {
	uint64_t address;
	uint32_t phase;		/* a member of NGX_HTTP_LUA_CONTEXT_* */
};

/* As the code of ngx_http_lua_ffi_get_phase() has it. */
struct request_code {
	uint64_t module;	/* address of ngx_http_lua_module, or of a pointer to it */
	bool module_is_pointer;
	int32_t r_ctx, ctx_context;
	unsigned int context_size;
};

/* Of x86-64 (request_code_x86_64.c). False if it is no such code. */
bool request_code_read(const uint8_t *code, size_t length, uint64_t address,
		       struct request_code *ret_code);

/* As the code of ngx_http_lua_ffi_is_subrequest() has it: r->connection->fd, and r != r->main. */
bool request_code_read_main(const uint8_t *code, size_t length, uint64_t address,
			    int32_t *ret_connection, int32_t *ret_main);

/*
 * Is the module mapped at base lua-nginx-module, or the nginx that it is linked
 * into? machine: EM_X86_64; of others, the code cannot be read.
 */
bool request_layout_find(struct memory *memory, uint16_t machine, uint64_t base,
			 struct request_layout *ret_layout);

/*
 * The context of the request at the address, while the target holds still. False
 * if there is no request, or none that says so itself.
 */
bool request_context(struct memory *memory, const struct request_layout *layout, uint64_t request,
		     struct memory_range ranges[static REQUEST_RANGES], struct request_context *ret_context);

/* Where the contexts of coroutines that a request has made are; for many coroutines of one request. */
enum { REQUEST_PARTS_MAX = 2048, REQUEST_PARTS_READ_MAX = 4 * REQUEST_PARTS_MAX };

struct request_coroutines {
	uint64_t request;	/* whose they are: the address of its context */
	uint64_t size;		/* of each */
	size_t count;
	struct {
		uint64_t first, count;
	} parts[REQUEST_PARTS_MAX];
	size_t read;		/* parts of all requests */
};

void request_coroutines_begin(struct request_coroutines *coroutines);

/*
 * Does a coroutine that does not run belong to the request with this context?
 * coctx is the coroutine's own context (L->exdata2). The target holds still since
 * request_coroutines_begin().
 */
bool request_has_coroutine(struct memory *memory, const struct request_layout *layout,
			   const struct request_context *context, uint64_t L, uint64_t coctx,
			   struct request_coroutines *coroutines);

/*
 * The lua_State that a coroutine or light thread (ngx.thread.spawn) runs for:
 * it has yielded to nginx, which runs the other one, so it is not on the C
 * stack. coctx is the context of the coroutine L (L->exdata2). *ret_coctx is
 * that of the parent: whether that is its exdata2 is for the caller to check.
 */
bool request_parent(struct memory *memory, uint64_t L, uint64_t coctx,
		    uint64_t *ret_L, uint64_t *ret_coctx);

/* As ngx.get_phase() calls it; NULL for 0 and phases that are not known. */
const char *request_phase(uint32_t context);

/* The same text where it lasts for ever; NULL if no phase is called so. text may be NULL. */
const char *request_phase_named(const char *text);

/*
 * The phase that the chunk name of an entry says: "content" for
 * "=content_by_lua(nginx.conf:24)"; NULL for others.
 */
const char *request_phase_of_chunk(const char *chunkname);

#endif

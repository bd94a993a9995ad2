/*
 * request: what lua-nginx-module knows of the request that Lua works for.
 *
 * OpenResty's LuaJIT keeps in each lua_State the request (L->exdata) and the
 * module's context of the coroutine (L->exdata2). Where the request keeps its
 * phase is read from the code of ngx_http_lua_ffi_get_phase(), which is what
 * ngx.get_phase() returns; nothing is assumed about a module without it.
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
};

/* The three things read of a request, in turn. They are what the next look most likely needs. */
enum { REQUEST_RANGES = 3 };

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

/*
 * Is the module mapped at base lua-nginx-module, or the nginx that it is linked
 * into? machine: EM_X86_64; of others, the code cannot be read.
 */
bool request_layout_find(struct memory *memory, uint16_t machine, uint64_t base,
			 struct request_layout *ret_layout);

/*
 * The phase of the request at the address, while the target holds still: a
 * member of NGX_HTTP_LUA_CONTEXT_*, 0 if it is no request of the module's.
 */
uint32_t request_context(struct memory *memory, const struct request_layout *layout,
			 uint64_t request, struct memory_range ranges[static REQUEST_RANGES]);

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

/*
 * The phase that the chunk name of an entry says: "content" for
 * "=content_by_lua(nginx.conf:24)"; NULL for others.
 */
const char *request_phase_of_chunk(const char *chunkname);

#endif

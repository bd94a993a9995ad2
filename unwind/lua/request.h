/* SPDX-License-Identifier: MIT */
/*
 * request: the nginx request that Lua code works for, by lua-nginx-module's data.
 *
 * Each lua_State of OpenResty's LuaJIT holds the request (L->exdata) and the
 * module's context of the coroutine (L->exdata2). ljspy reads where the request
 * keeps its phase from the code of ngx_http_lua_ffi_get_phase(), which serves
 * ngx.get_phase(). It assumes nothing about a module without that function.
 *
 * A coroutine keeps the pointer to its request for life, and passes it to the
 * coroutines it creates. Meanwhile nginx may free the request's memory and reuse
 * it, even for another request. So ljspy requires pointers back: from the request's
 * connection and the module's context to the request. For a coroutine that does not
 * run, it also requires that its context leads to it and to the request's context.
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
	int32_t r_ctx;             /* ngx_http_request_t.ctx */
	uint64_t ctx_index;        /* ngx_http_lua_module.ctx_index */
	int32_t ctx_context;       /* ngx_http_lua_ctx_t.context */
	unsigned int context_size; /* of that field, in bytes */
	bool has_connection;       /* r_connection and r_main are known */
	int32_t r_connection;      /* ngx_http_request_t.connection */
	int32_t r_main;            /* ngx_http_request_t.main */
	int32_t ctx_ref;           /* ngx_http_lua_ctx_t.ctx_ref; 0 if unknown (unwind/nginx/gateway.h) */
};

/* The ranges read for a request, in order. The next look most likely needs the same ones. */
enum { REQUEST_RANGES = 4 };

/* The module's context of a request. */
struct request_context {
	uint64_t address;
	uint32_t phase; /* NGX_HTTP_LUA_CONTEXT_* */
};

/* The offsets in the code of ngx_http_lua_ffi_get_phase(). */
struct request_code {
	uint64_t module; /* address of ngx_http_lua_module, or of a pointer to it */
	bool module_is_pointer;
	int32_t r_ctx, ctx_context;
	unsigned int context_size;
};

/*
 * Read length bytes of code, which lie at address; each architecture has its own .c file.
 * False if it is other code.
 */
bool request_code_read(const uint8_t *code, size_t length, uint64_t address, struct request_code *ret_code);

/*
 * The offsets of r->connection and r->main, from the code of ngx_http_lua_ffi_is_subrequest():
 * it reads r->connection->fd and compares r != r->main. False if it is other code.
 */
bool request_code_read_main(const uint8_t *code, size_t length, uint64_t address, int32_t *ret_connection,
			    int32_t *ret_main);

/*
 * Is the module at base lua-nginx-module, or an nginx that it is linked into?
 * machine is e_machine of the ELF header: false for any but MACHINE_OWN.
 */
bool request_layout_find(struct memory *memory, uint16_t machine, uint64_t base,
			 struct request_layout *ret_layout);

/*
 * Read the context of the request at an address, while the target is held. Set
 * ranges to what was read. False if there is no request, or if nothing leads back
 * to it.
 */
bool request_context(struct memory *memory, const struct request_layout *layout, uint64_t request,
		     struct memory_range ranges[static REQUEST_RANGES], struct request_context *ret_context);

/* The locations of the contexts of a request's coroutines, to check many coroutines of one request. */
enum { REQUEST_PARTS_MAX = 2048, REQUEST_PARTS_READ_MAX = 4 * REQUEST_PARTS_MAX };

struct request_coroutines {
	uint64_t request; /* the address of the request's context; 0: none */
	uint64_t size;    /* of each coroutine's context, in bytes */
	size_t count;
	struct {
		uint64_t first, count;
	} parts[REQUEST_PARTS_MAX];
	size_t read; /* parts read so far, of all requests */
};

/* Forget the request and what was read. */
void request_coroutines_begin(struct request_coroutines *coroutines);

/* Read the parts of the list at an address, up to the limits. None if it is not such a list. */
void request_coroutines_read(struct memory *memory, uint64_t address, struct request_coroutines *coroutines);

/*
 * Does a coroutine that does not run belong to the request with this context?
 * coctx is the coroutine's own context (L->exdata2). The target must be held since
 * request_coroutines_begin().
 */
bool request_has_coroutine(struct memory *memory, const struct request_layout *layout,
			   const struct request_context *context, uint64_t L, uint64_t coctx,
			   struct request_coroutines *coroutines);

/*
 * The parent: the lua_State for which a coroutine or light thread
 * (ngx.thread.spawn) runs. The parent has yielded to nginx, which runs the child,
 * so it is not on the C stack. coctx is the context of the child L (L->exdata2).
 * *ret_coctx is the parent's context; the caller checks that it is the parent's
 * exdata2. False if there is no parent.
 */
bool request_parent(struct memory *memory, uint64_t L, uint64_t coctx, uint64_t *ret_L, uint64_t *ret_coctx);

/* The phase's name in ngx.get_phase(). NULL for 0 and for unknown phases. */
const char *request_phase(uint32_t context);

/* The same name as a static string; NULL if no phase has it. text may be NULL. */
const char *request_phase_named(const char *text);

/*
 * The phase by the chunk name of an entry: "content" for
 * "=content_by_lua(nginx.conf:24)". NULL for other chunk names.
 */
const char *request_phase_of_chunk(const char *chunkname);

#endif

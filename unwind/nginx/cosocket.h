/* SPDX-License-Identifier: MIT */
/*
 * cosocket: the socket of lua-nginx-module that a coroutine waits for.
 *
 * While it waits, the coroutine's context (ngx_http_lua_co_ctx_t, see light_threads.h) begins with the
 * address of what the module keeps of the socket: ngx_http_lua_socket_tcp_upstream_t, or that of UDP. This
 * has the words request, connection, sockaddr, socklen side by side, three words after the address of its
 * pool, and refers to the context until the wait is over (ngx_http_lua_socket_tcp.h, _udp.h, 0.10.8 to
 * 0.10.32).
 * The connection refers back to it; a connection of the client, to the request. A connect that waits for a
 * place in its pool has another structure there (since 0.10.14), which begins with an event whose data is
 * that structure.
 */
#ifndef LJSPY_COSOCKET_H
#define LJSPY_COSOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "luajit-layouts/layout.h"
#include "memory/memory.h"
#include "unwind/nginx/connections.h"
#include "unwind/nginx/light_threads.h"

enum {
	COSOCKET_ADDRESS_BYTES = 128, /* sockaddr_storage */
	COSOCKET_NAME_BYTES = 136,
};

enum cosocket_state {
	COSOCKET_NONE,      /* the coroutine waits for no cosocket */
	COSOCKET_QUEUED,    /* to connect, until its pool has a place */
	COSOCKET_RESOLVING, /* the name of its peer, by DNS */
	COSOCKET_OPEN,      /* it connects, or is connected */
	COSOCKET_CLIENT,    /* the connection of the client (ngx.req.socket) */
};

struct cosocket {
	enum cosocket_state state;
	uint64_t connection; /* ngx_connection_t; 0: none yet */
	uint8_t address[COSOCKET_ADDRESS_BYTES];
	size_t address_length; /* 0: unknown */
	/*
	 * With an open one whose address is unknown, its pool's name if that reads as "host:port", as it does
	 * unless the program has named it. Before there is a connection, what connect() was asked for. "" if
	 * unknown.
	 * Untrusted.
	 */
	char name[COSOCKET_NAME_BYTES];
};

/* Of a coroutine that does not run, while nothing runs. */
void cosocket_read(struct memory *memory, const struct layout *luajit, const struct connections *connections,
		   const struct light_thread *light_thread, struct cosocket *ret_cosocket);

/* A pool of connections (ngx_http_lua_socket_pool_t). */
struct cosocket_pool {
	uint64_t address;
	uint64_t size, connections; /* at most so many; used and kept ones; both 0 before 0.10.14: unknown */
	char name[COSOCKET_NAME_BYTES]; /* untrusted; "" if it is longer */
	bool is_peer; /* it reads as "host:port", as it does unless the program has named the pool */
};

/* Of the VM with this global_State. False if there is no pool. */
bool cosocket_pool_read(struct memory *memory, const struct layout *luajit, uint64_t g, uint64_t pool,
			struct cosocket_pool *ret_pool);

/*
 * The pool that a connection is of, and whether it is kept there (then its data is an
 * ngx_http_lua_socket_pool_item_t) or used by a cosocket. False if it is of none.
 */
bool cosocket_pool_of(struct memory *memory, const struct layout *luajit, uint64_t g,
		      const struct connection_in_use *connection, struct cosocket_pool *ret_pool,
		      bool *ret_is_idle);

#endif

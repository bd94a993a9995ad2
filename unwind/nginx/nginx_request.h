/* SPDX-License-Identifier: MIT */
/*
 * nginx_request: what nginx knows of one request.
 *
 * nginx frees a request's memory when the request has ended, and uses it again. ljspy accepts a
 * request only if it begins with its signature, its connection leads back to it or to another
 * request of the same main request, and its main request is one as well. A request that has no
 * time at which it began is none of a client: the Lua module makes such ones for timers.
 */
#ifndef LJSPY_NGINX_REQUEST_H
#define LJSPY_NGINX_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memory/memory.h"
#include "unwind/nginx/request_members.h"
#include "unwind/nginx/route.h"

enum {
	NGINX_METHOD_BYTES = 24, /* with the final NUL; longer texts are cut */
	NGINX_HOST_BYTES = 136,
	NGINX_URI_BYTES = 264,
	NGINX_PEER_BYTES = 136,
	NGINX_ARGS_BYTES = 264,
};

/* Texts are as in memory, and may hold any byte; a NUL ends them. "" if there is none. */
struct nginx_request {
	uint64_t address;    /* 0: none */
	uint64_t main;       /* the request of the client, itself unless it is a subrequest */
	uint64_t connection; /* ngx_connection_t */
	uint64_t serves;     /* the request that the connection serves now: one of the same main request */
	uint64_t number;     /* of its connection, as $connection; 0 if unknown */
	/* the how-manieth request of its connection, as $connection_requests; 0 if unknown */
	uint64_t ordinal;
	uint64_t start_ms;        /* of the main request, since the epoch */
	uint64_t upstream_states; /* ngx_array_t; 0: none yet */
	unsigned int status;      /* 0: not set yet */
	char method[NGINX_METHOD_BYTES];
	char host[NGINX_HOST_BYTES];
	char uri[NGINX_URI_BYTES]; /* decoded, without the query string */
	char matched[ROUTE_BYTES]; /* by a gateway: gateway_route(), which others call; "" if there is none */
};

/* Read the request at an address. False if there is none. */
bool nginx_request_read(struct memory *memory, const struct request_members *members, uint64_t address,
			struct nginx_request *ret_request);

/*
 * Are both read of the same request, or of others with the same main request? Memory may be another one's by
 * now.
 */
bool nginx_requests_are_same(const struct nginx_request *one, const struct nginx_request *other);

/* The request's route: the one that a gateway has matched, else that of its path. */
void nginx_request_route(const struct nginx_request *request, char ret_route[static ROUTE_BYTES]);

enum nginx_upstream_state {
	NGINX_UPSTREAM_NONE,
	NGINX_UPSTREAM_RESOLVING, /* the name of its server, by DNS: no peer yet */
	NGINX_UPSTREAM_CONNECTING,
	NGINX_UPSTREAM_WAITING, /* connected; nothing of the answer yet */
	NGINX_UPSTREAM_READING, /* the answer's header has come */
	NGINX_UPSTREAM_DONE,
};

/* The last peer that nginx has asked. */
struct nginx_upstream {
	enum nginx_upstream_state state;
	char peer[NGINX_PEER_BYTES];
	unsigned int status; /* 0: unknown yet */
	uint64_t tries;      /* peers asked, this one included */
};

/* The peer of a request that was read just now. What cannot be read is empty. */
void nginx_request_upstream(struct memory *memory, const struct nginx_request *request,
			    struct nginx_upstream *ret_upstream);

/*
 * Does the request at an address wait until another one has filled the cache (proxy_cache_lock and the like)?
 * Believe it only if timers_compare_flags() agrees.
 */
bool nginx_request_waits_for_cache(struct memory *memory, const struct request_members *members,
				   uint64_t address);

struct nginx_details {
	char client[NGINX_PEER_BYTES];
	char args[NGINX_ARGS_BYTES]; /* the query string */
	uint64_t received, sent;     /* bytes of the request; of its connection's answers */
	struct nginx_upstream upstream;
};

/* What more there is to know of a request that was read just now. What cannot be read is empty. */
void nginx_request_details(struct memory *memory, const struct request_members *members,
			   const struct nginx_request *request, struct nginx_details *ret_details);

#endif

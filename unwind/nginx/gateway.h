/* SPDX-License-Identifier: MIT */
/*
 * gateway: the route that Kong or APISIX has matched for a request.
 *
 * Both keep what they know of a request in its ngx.ctx. Kong (kong/runloop/handler.lua) sets route and
 * service there, APISIX (apisix/init.lua, apisix/http/router) api_ctx.matched_route, whose value is the
 * route. A route has an id, and may have a name; both are of the configuration.
 *
 * ngx.ctx is an element of a table in the registry, ngx_lua_ctx_tables (lib/resty/core/ctx.lua of
 * lua-resty-core). ngx_http_lua_ctx_t.ctx_ref is its index there.
 */
#ifndef LJSPY_GATEWAY_H
#define LJSPY_GATEWAY_H

#include <stdbool.h>
#include <stdint.h>

#include "luajit-layouts/layout.h"
#include "memory/memory.h"
#include "unwind/lua/request.h"
#include "unwind/members/member_loads.h"
#include "unwind/nginx/route.h"

/*
 * The offset of ngx_http_lua_ctx_t.ctx_ref: the only number of 4 bytes, other than the phase, that
 * ngx_http_lua_ffi_get_ctx_ref() reads of the module's context of a request. 0 if it reads none or several.
 */
int32_t gateway_ref_of(const struct member_loads *loads, const struct request_layout *layout);

/* The same for the lua-nginx-module at base. 0 if it is unknown. */
int32_t gateway_ref_member(struct memory *memory, uint64_t base, const struct request_layout *layout);

struct gateway;

/*
 * The gateway in the global_State at g, by its module in package.loaded. NULL if there is none, if the
 * state is not that of the http module, or when memory is short.
 */
struct gateway *gateway_new(struct memory *memory, const struct layout *luajit, uint64_t g);
void gateway_free(struct gateway *gateway);

/*
 * The matched route of the request with this context: "route NAME", or "route ID" of a route without a
 * name, of Kong with " of " and the name of its service. It may hold any byte, and is cut. False if no route
 * has been matched yet, or if it cannot be read. The target must hold still. Notes where the keys are, to
 * read less the next time.
 */
bool gateway_route(struct memory *memory, const struct request_layout *layout, const struct layout *luajit,
		   struct gateway *gateway, const struct request_context *context,
		   char ret_route[static ROUTE_BYTES]);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * lua_wait: what a coroutine of a request waits for.
 *
 * The function of the module in which it has yielded tells, and for a socket, what the module keeps of it.
 */
#ifndef LJSPY_LUA_WAIT_H
#define LJSPY_LUA_WAIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "output/nginx_reports/request_report.h"
#include "output/sample/frame.h"
#include "src/inspect/lua_process.h"
#include "unwind/nginx/connections.h"
#include "unwind/nginx/cosocket.h"

/* The socket that a coroutine waits for. */
struct lua_wait {
	struct cosocket socket;
	enum connection_wait limit; /* of its connection */
	bool has_sent;              /* its connection has sent bytes, or that is unknown */
	bool with_names;            /* details are wanted: show names of hosts, too */
	uint64_t thread,
		parent; /* the lua_State, and the one that created it for the same request; 0: none */
};

/* While nothing runs. */
void lua_wait_read(struct lua_process *process, uint64_t thread, struct lua_wait *ret_wait);

/*
 * "sleep", "socket receive: 127.0.0.1:6379", "lock: dogs"; "Lua" if it is unknown. frames are those of the
 * coroutine that was unwound last, the innermost first. The peer may have any bytes; it is "-" if it is
 * unknown, or a name that is not to be shown. True if the name tells more than the function does.
 */
bool lua_wait_name(struct lua_process *process, const struct lua_wait *wait, const struct frame *frames,
		   size_t count, char ret_name[static REQUEST_WAIT_BYTES]);

enum lua_wait_end {
	LUA_WAIT_ENDS_OUTSIDE,
	LUA_WAIT_ENDS_INSIDE,  /* when another coroutine of the request ends */
	LUA_WAIT_ENDS_UNKNOWN, /* inside, if it has created one that waits itself: then it has resumed it */
};

enum lua_wait_end lua_wait_end(const struct lua_wait *wait, const struct frame *frames, size_t count);

#endif

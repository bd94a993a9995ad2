/* SPDX-License-Identifier: MIT */
#include "src/nginx/lua_wait.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "output/sample/text_ends.h"
#include "src/linux/sockets/socket_peer.h"
#include "unwind/lua/request.h"

enum { NEAR_FRAMES = 4 /* how far from the innermost frame a library's file counts */ };

/*
 * nginx counts what a connection sends, from zero on when it is made or taken from a pool
 * (ngx_connection_t.sent).
 */
static bool has_sent(struct lua_process *process, uint64_t connection)
{
	const struct request_members *members = lua_process_request_members(process);
	uint64_t sent;

	return members->sent == MEMBER_UNKNOWN ||
	       !memory_u64(lua_process_memory(process), connection + (uint64_t)members->sent, &sent) ||
	       sent != 0;
}

void lua_wait_read(struct lua_process *process, uint64_t thread, struct lua_wait *ret_wait)
{
	struct light_thread light_thread;
	uint64_t parent_coctx;
	struct connections connections;

	memset(ret_wait, 0, sizeof(*ret_wait));
	ret_wait->with_names = lua_process_wants_details(process);
	ret_wait->thread = thread;
	if (!lua_process_light_thread(process, thread, &light_thread))
		return;
	request_parent(lua_process_memory(process), thread, light_thread.coctx, &ret_wait->parent,
		       &parent_coctx);
	if (!lua_process_connections(process, &connections))
		return;
	cosocket_read(lua_process_memory(process), &lua_process_global(process, 0)->vm->layout, &connections,
		      &light_thread, &ret_wait->socket);
	if (!ret_wait->socket.connection || !lua_process_has_timer_flags(process))
		return;
	ret_wait->limit = connection_wait(lua_process_memory(process), ret_wait->socket.connection);
	ret_wait->has_sent = has_sent(process, ret_wait->socket.connection);
}

/*---- Functions ----*/

/* Is there Lua of this file among the innermost frames? */
static bool is_in_file(const struct frame *frames, size_t count, const char *file)
{
	for (size_t i = 0; i < count && i < NEAR_FRAMES; i++) {
		const char *path = frames[i].function->kind == FRAME_LUA ? frames[i].function->file : NULL;

		if (path && text_ends_with(path, file))
			return true;
	}
	return false;
}

/* The name of the function in which the coroutine has yielded: what it works on may stand above. */
static const char *function_of(const struct frame *frames, size_t count)
{
	size_t i = 0;

	while (i < count && i < NEAR_FRAMES && frames[i].function->kind == FRAME_NATIVE)
		i++;
	return i < count && frames[i].function->kind == FRAME_C_FUNCTION && frames[i].function->name
		       ? frames[i].function->name
		       : "";
}

/* The name in Lua, or that of the symbol, which may have a prefix. */
static bool is_function(const char *function, const char *name, const char *symbol)
{
	return strcmp(function, name) == 0 || (symbol && text_ends_with(function, symbol));
}

static const char light_thread[] = "light thread", coroutine[] = "coroutine", lock[] = "lock";

static const char *name_by_function(const struct frame *frames, size_t count)
{
	static const struct {
		const char *function, *symbol, *wait;
	} waits[] = {
		{ "ngx.sleep", "_lua_ngx_sleep", "sleep" },
		{ "ngx.thread.wait", "_lua_uthread_wait", light_thread },
		{ "wait", NULL, light_thread }, /* ngx.thread.wait */
		{ "coroutine.resume", "_lua_coroutine_resume", coroutine },
		{ "ngx.location.capture", "_lua_ngx_location_capture", "subrequest" },
		{ "capture", NULL, "subrequest" }, /* ngx.location.capture */
		{ "ngx.location.capture_multi", "_lua_ngx_location_capture_multi", "subrequest" },
		{ "capture_multi", NULL, "subrequest" }, /* ngx.location.capture_multi */
		{ "ngx.req.read_body", "_lua_ngx_req_read_body", "client body" },
		{ "read_body", NULL, "client body" }, /* ngx.req.read_body */
		{ "ngx.flush", "_lua_ngx_flush", "client write" },
		{ "ngx.run_worker_thread", "_lua_run_worker_thread", "worker thread" },
	};
	/* What these wait for, they await in Lua (lua-resty-core). */
	static const struct {
		const char *file, *wait;
	} libraries[] = {
		{ "ngx/semaphore.lua", "semaphore" },
		{ "ngx/pipe.lua", "process" },
	};
	const char *function = function_of(frames, count);

	for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++)
		if (is_function(function, waits[i].function, waits[i].symbol))
			/* lua-resty-lock sleeps again and again. */
			return i == 0 && is_in_file(frames, count, "resty/lock.lua") ? lock : waits[i].wait;
	for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++)
		if (is_in_file(frames, count, libraries[i].file))
			return libraries[i].wait;
	return NULL;
}

/*---- Sockets ----*/

/* What an open socket does: by the function, else by the time limit that is set and what it has sent. */
static const char *verb_of(const struct lua_wait *wait, const struct frame *frames, size_t count)
{
	static const struct {
		const char *function, *symbol, *verb;
	} verbs[] = {
		{ "connect", "_lua_socket_tcp_connect", "connect" },
		{ "setpeername", "_lua_socket_udp_setpeername", "connect" },
		{ "send", "_lua_socket_tcp_send", "send" },
		{ "receive", "_receive", "receive" },
		{ "receiveany", "_receiveany", "receive" },
		{ "", "_receiveuntil_iterator", "receive" },
	};
	const char *function = function_of(frames, count);

	for (size_t i = 0; *function && i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (is_function(function, verbs[i].function, verbs[i].symbol))
			return verbs[i].verb;
	if (is_in_file(frames, count, "resty/core/socket.lua"))
		return "TLS handshake";
	/* What receiveuntil() returns has the name that the program gives it. */
	if (wait->limit == CONNECTION_WAIT_READ)
		return "receive";
	if (wait->limit != CONNECTION_WAIT_WRITE)
		return NULL;
	/* A connection takes some bytes before it makes its sender wait. */
	return wait->socket.state == COSOCKET_CLIENT || wait->has_sent ? "send" : "connect";
}

/* An address, without a port or with it. */
static bool is_address(const char *name)
{
	return name[0] == '[' || (name[0] && strspn(name, "0123456789.:") == strlen(name));
}

static void describe_peer(const struct lua_wait *wait, char ret_text[static NGINX_PEER_BYTES])
{
	const struct cosocket *cosocket = &wait->socket;
	bool is_shown = cosocket->name[0] && (wait->with_names || is_address(cosocket->name));
	size_t path = offsetof(struct sockaddr_un, sun_path);
	struct socket_peer peer;
	sa_family_t family = AF_UNSPEC;

	snprintf(ret_text, NGINX_PEER_BYTES, "%s", is_shown ? cosocket->name : "-");
	if (cosocket->address_length >= sizeof(family))
		memcpy(&family, cosocket->address, sizeof(family));
	socket_peer_read(cosocket->address, cosocket->address_length, &peer);
	if (peer.known)
		snprintf(ret_text, NGINX_PEER_BYTES, "%s", peer.text);
	else if (family == AF_UNIX && cosocket->address_length > path && cosocket->address[path] != '\0')
		snprintf(ret_text, NGINX_PEER_BYTES, "unix:%.*s", (int)(cosocket->address_length - path),
			 (const char *)cosocket->address + path);
}

static void name_socket(const struct lua_wait *wait, const struct frame *frames, size_t count,
			char ret_name[static REQUEST_WAIT_BYTES])
{
	const char *verb = NULL;
	char peer[NGINX_PEER_BYTES];

	switch (wait->socket.state) {
	case COSOCKET_QUEUED: verb = "pool"; break;
	case COSOCKET_RESOLVING: verb = "DNS"; break;
	case COSOCKET_NONE:
	case COSOCKET_OPEN:
	case COSOCKET_CLIENT: verb = verb_of(wait, frames, count); break;
	}
	describe_peer(wait, peer);
	if (wait->socket.state != COSOCKET_CLIENT)
		snprintf(ret_name, REQUEST_WAIT_BYTES, "socket%s%s: %s", verb ? " " : "", verb ? verb : "",
			 peer);
	else
		snprintf(ret_name, REQUEST_WAIT_BYTES, "client%s",
			 !verb                       ? ""
			 : strcmp(verb, "send") == 0 ? " write"
						     : " read");
}

static void name_lock(const struct resty_lock *known, bool with_key, char ret_name[static REQUEST_WAIT_BYTES])
{
	if (with_key && known->key[0])
		snprintf(ret_name, REQUEST_WAIT_BYTES, "%s: %s \"%s\"", lock, known->dict, known->key);
	else
		snprintf(ret_name, REQUEST_WAIT_BYTES, "%s: %s", lock, known->dict);
}

bool lua_wait_name(struct lua_process *process, const struct lua_wait *wait, const struct frame *frames,
		   size_t count, char ret_name[static REQUEST_WAIT_BYTES])
{
	const char *name = name_by_function(frames, count);
	struct resty_lock known;

	if (name == lock && lua_process_find_lock(process, &known)) {
		name_lock(&known, wait->with_names, ret_name);
		return true;
	}

	if (!name && wait->socket.state != COSOCKET_NONE) {
		name_socket(wait, frames, count, ret_name);
		return wait->socket.state != COSOCKET_CLIENT;
	}
	snprintf(ret_name, REQUEST_WAIT_BYTES, "%s", name ? name : "Lua");
	return false;
}

enum lua_wait_end lua_wait_end(const struct lua_wait *wait, const struct frame *frames, size_t count)
{
	const char *name = name_by_function(frames, count);

	if (name == light_thread || name == coroutine)
		return LUA_WAIT_ENDS_INSIDE;
	return name || wait->socket.state != COSOCKET_NONE ? LUA_WAIT_ENDS_OUTSIDE : LUA_WAIT_ENDS_UNKNOWN;
}

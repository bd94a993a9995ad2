/* SPDX-License-Identifier: MIT */
#include "unwind/nginx/cosocket.h"

#include <string.h>

#include "unwind/lua/luajit.h"

enum {
	WORD = sizeof(uint64_t),
	SOCKET_WORDS = 72, /* of what the module keeps of a socket, to its coroutines; it has about 60 */
	SOCKET_POOL = 3,   /* words from the address of its pool to that of its request */
	QUEUED_SOCKET = 5, /* words from the event's end to the socket's address */
	POOL_WORDS = 16,   /* read of ngx_http_lua_socket_pool_t, to its name's beginning */
	POOL_SIZE = 1,
	POOL_CONNECTIONS = 6,
	POOL_NAME = 12,
	POOL_NAME_OLD = 6,
	ITEM_WORDS = 4, /* read of ngx_http_lua_socket_pool_item_t: pool, queue, connection */
	ITEM_CONNECTION = 3,
	SIGNATURE = 0x50545448, /* ngx_http_request_t.signature: NGX_HTTP_MODULE, "HTTP" */
	PORT_DIGITS_MAX = 5,
};

/* Words of a socket: those from its request on. */
struct socket {
	uint64_t words[SOCKET_WORDS];
	size_t request; /* which word it is */
};

struct search {
	struct memory *memory;
	const struct layout *luajit;
	const struct connections *connections;
	uint64_t thread, request, coctx;
};

/* Is there a socket of the request, which the coroutine with this context waits for? */
static bool read_socket(const struct search *search, uint64_t address, struct socket *ret_socket)
{
	bool is_waited_for = false;
	size_t request = 0;

	if (address == 0 || address % WORD != 0 ||
	    memory_read(search->memory, address, ret_socket->words, sizeof(ret_socket->words)) != MEMORY_OK)
		return false;
	for (size_t i = SOCKET_POOL; i < SOCKET_WORDS; i++) {
		if (!request && ret_socket->words[i] == search->request)
			request = i;
		is_waited_for |= request && ret_socket->words[i] == search->coctx;
	}
	ret_socket->request = request;
	return is_waited_for && request + 3 < SOCKET_WORDS;
}

static bool is_host_and_port(const char *text)
{
	const char *colon = strrchr(text, ':');
	size_t digits = colon ? strspn(colon + 1, "0123456789") : 0;

	if (!colon || colon == text || digits == 0 || digits > PORT_DIGITS_MAX || colon[1 + digits] != '\0')
		return false;
	return strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_") ==
		       (size_t)(colon - text) ||
	       (text[0] == '[' && colon[-1] == ']' &&
		strspn(text + 1, "0123456789abcdefABCDEF:.") == (size_t)(colon - text) - 2);
}

static bool is_queue(const uint64_t *words, uint64_t pool, size_t word)
{
	return words[word] % WORD == 0 && words[word] != 0 && words[word + 1] % WORD == 0 &&
	       words[word + 1] != 0 &&
	       (words[word] == pool + word * WORD) == (words[word + 1] == pool + word * WORD);
}

/*
 * Where the name of a pool begins, in words: after lua_vm, size, two queues, connections, two queues and
 * backlog; before 0.10.14 after lua_vm, a count and two queues. 0 if it is no pool.
 */
static size_t name_of_pool(struct memory *memory, const struct layout *luajit, uint64_t g, uint64_t pool,
			   const uint64_t words[POOL_WORDS])
{
	uint64_t vm_g;

	if (words[0] == 0 || words[0] % WORD != 0 ||
	    !field_reference(memory, luajit, words[0] + (uint64_t)luajit->L_glref, &vm_g) || vm_g != g ||
	    !is_queue(words, pool, 2) || !is_queue(words, pool, 4))
		return 0;
	return is_queue(words, pool, 7) && is_queue(words, pool, 9) ? POOL_NAME : POOL_NAME_OLD;
}

bool cosocket_pool_read(struct memory *memory, const struct layout *luajit, uint64_t g, uint64_t pool,
			struct cosocket_pool *ret_pool)
{
	struct cosocket_pool found = { .address = pool };
	uint64_t words[POOL_WORDS];
	size_t first;

	if (pool == 0 || pool % WORD != 0 || memory_read(memory, pool, words, sizeof(words)) != MEMORY_OK)
		return false;
	first = name_of_pool(memory, luajit, g, pool, words);
	if (first == 0)
		return false;
	/* All of a pool's connections, used and kept, are counted beside its size. */
	if (first == POOL_NAME && words[POOL_SIZE] <= INT32_MAX && words[POOL_CONNECTIONS] <= INT32_MAX) {
		found.size = words[POOL_SIZE];
		found.connections = words[POOL_CONNECTIONS];
	}
	if (memory_read(memory, pool + first * WORD, found.name, sizeof(found.name)) != MEMORY_OK ||
	    !memchr(found.name, '\0', sizeof(found.name)))
		found.name[0] = '\0';
	found.is_peer = is_host_and_port(found.name);
	*ret_pool = found;
	return true;
}

bool cosocket_pool_of(struct memory *memory, const struct layout *luajit, uint64_t g,
		      const struct connection_in_use *connection, struct cosocket_pool *ret_pool,
		      bool *ret_is_idle)
{
	uint64_t words[SOCKET_WORDS];

	if (memory_read(memory, connection->data, words, ITEM_WORDS * WORD) != MEMORY_OK)
		return false;
	if (words[ITEM_CONNECTION] == connection->address &&
	    cosocket_pool_read(memory, luajit, g, words[0], ret_pool)) {
		*ret_is_idle = true;
		return true;
	}
	if (memory_read(memory, connection->data, words, sizeof(words)) != MEMORY_OK)
		return false;
	for (size_t i = SOCKET_POOL; i + 1 < SOCKET_WORDS; i++) {
		uint32_t signature;

		if (words[i + 1] == connection->address && words[i] != 0 &&
		    memory_u32(memory, words[i], &signature) && signature == SIGNATURE &&
		    cosocket_pool_read(memory, luajit, g, words[i - SOCKET_POOL], ret_pool)) {
			*ret_is_idle = false;
			return true;
		}
	}
	return false;
}

static void read_pool(const struct search *search, uint64_t address, struct cosocket *cosocket)
{
	struct cosocket_pool pool;
	uint64_t g;

	if (field_reference(search->memory, search->luajit,
			    search->thread + (uint64_t)search->luajit->L_glref, &g) &&
	    cosocket_pool_read(search->memory, search->luajit, g, address, &pool) && pool.is_peer)
		memcpy(cosocket->name, pool.name, sizeof(pool.name));
}

/* What connect() was asked for: its second argument, to which it appends the port. */
static void read_argument(const struct search *search, struct cosocket *cosocket)
{
	const struct layout *luajit = search->luajit;
	uint64_t base, value, string;
	uint32_t length;
	uint8_t gct;

	if (!field_reference(search->memory, luajit, search->thread + (uint64_t)luajit->L_base, &base) ||
	    !memory_u64(search->memory, base + SLOT_SIZE, &value) ||
	    tvalue_tag(luajit->gc64, value) != TAG_STR)
		return;
	string = tvalue_object(luajit->gc64, value);
	if (!field_gct(search->memory, luajit, string, &gct) || gct != GCT_STRING ||
	    !memory_u32(search->memory, string + (uint64_t)luajit->GCstr_len, &length) ||
	    length >= COSOCKET_NAME_BYTES ||
	    memory_read(search->memory, string + (uint64_t)luajit->GCstr_size, cosocket->name, length) !=
		    MEMORY_OK)
		length = 0;
	cosocket->name[length] = '\0';
}

static void read_open(const struct search *search, uint64_t address, const struct socket *socket,
		      struct cosocket *cosocket)
{
	const uint64_t *words = &socket->words[socket->request];
	uint64_t connection = words[1], data, length = words[3] & UINT32_MAX;

	if (!connections_hold(search->connections, connection) ||
	    !memory_u64(search->memory, connection, &data) || (data != address && data != search->request))
		return;
	cosocket->connection = connection;
	cosocket->state = data == address ? COSOCKET_OPEN : COSOCKET_CLIENT;
	if (data != address)
		return;
	if (words[2] != 0 && length <= sizeof(cosocket->address) &&
	    memory_read(search->memory, words[2], cosocket->address, (size_t)length) == MEMORY_OK)
		cosocket->address_length = (size_t)length;
	/* A connection that comes from a pool. */
	if (cosocket->address_length == 0)
		read_pool(search, socket->words[socket->request - SOCKET_POOL], cosocket);
}

/* Is there a connect that waits for a place in its pool? */
static bool is_queued(const struct search *search, uint64_t address)
{
	uint64_t data, queued;
	struct socket socket;

	return memory_u64(search->memory, address, &data) && data == address &&
	       memory_u64(search->memory,
			  address + search->connections->event_bytes + (uint64_t)QUEUED_SOCKET * WORD,
			  &queued) &&
	       read_socket(search, queued, &socket);
}

void cosocket_read(struct memory *memory, const struct layout *luajit, const struct connections *connections,
		   const struct light_thread *light_thread, struct cosocket *ret_cosocket)
{
	const struct search search = {
		.memory = memory,
		.luajit = luajit,
		.connections = connections,
		.thread = light_thread->thread,
		.request = light_thread->request,
		.coctx = light_thread->coctx,
	};
	struct socket socket;
	uint64_t address;

	memset(ret_cosocket, 0, sizeof(*ret_cosocket));
	if (search.request == 0 || search.coctx == 0 || !memory_u64(memory, search.coctx, &address) ||
	    address == 0)
		return;
	if (is_queued(&search, address)) {
		ret_cosocket->state = COSOCKET_QUEUED;
		read_argument(&search, ret_cosocket);
	} else if (read_socket(&search, address, &socket)) {
		if (socket.words[socket.request + 1] != 0) {
			read_open(&search, address, &socket, ret_cosocket);
		} else {
			ret_cosocket->state = COSOCKET_RESOLVING;
			read_argument(&search, ret_cosocket);
		}
	}
}

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
static size_t name_of_pool(const struct search *search, uint64_t pool, const uint64_t words[POOL_WORDS])
{
	uint64_t vm_g, own_g;

	if (!field_reference(search->memory, search->luajit, words[0] + (uint64_t)search->luajit->L_glref,
			     &vm_g) ||
	    !field_reference(search->memory, search->luajit,
			     search->thread + (uint64_t)search->luajit->L_glref, &own_g) ||
	    vm_g != own_g || !is_queue(words, pool, 2) || !is_queue(words, pool, 4))
		return 0;
	return is_queue(words, pool, 7) && is_queue(words, pool, 9) ? 12 : 6;
}

static void read_pool(const struct search *search, uint64_t pool, struct cosocket *cosocket)
{
	uint64_t words[POOL_WORDS];
	char name[COSOCKET_NAME_BYTES];
	size_t first;

	if (pool == 0 || pool % WORD != 0 ||
	    memory_read(search->memory, pool, words, sizeof(words)) != MEMORY_OK)
		return;
	first = name_of_pool(search, pool, words);
	if (first == 0 || memory_read(search->memory, pool + first * WORD, name, sizeof(name)) != MEMORY_OK ||
	    !memchr(name, '\0', sizeof(name)) || !is_host_and_port(name))
		return;
	memcpy(cosocket->name, name, sizeof(name));
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

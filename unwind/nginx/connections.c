/* SPDX-License-Identifier: MIT */
#include "unwind/nginx/connections.h"

#include <stdlib.h>
#include <string.h>

enum {
	CYCLE_WORDS = 96,          /* ngx_cycle_t; it has about 85 */
	CONNECTIONS_MAX = 1 << 20, /* worker_connections */
	CONNECTION_BYTES_MIN = 64, /* ngx_connection_t; it has 200 to 300 */
	CONNECTION_BYTES_MAX = 1024,
	EVENT_BYTES_MAX = 1024,
	CHECKED = 4, /* connections compared with their events */
	PIECE_BYTES = 32 << 10,
	HTTP2_WORDS = 96,      /* read of ngx_http_v2_connection_t; the array of lists is within */
	HTTP2_LISTS = 32,      /* http2_streams_index_size, unless it is configured: of more, the first 32 */
	HTTP2_NODE_WORDS = 16, /* ngx_http_v2_node_t; it has 13 */
	HTTP2_LIST_MAX = 1024, /* nodes of a list */
	HTTP2_NODES_MAX = HTTP2_LISTS * HTTP2_LIST_MAX, /* read in search of a connection's lists */
};

/* The start of ngx_connection_t */
struct connection {
	uint64_t data, read, write;
	int32_t fd;
};

/* Is this where the arrays begin, with connections of that size? */
static bool fits(struct memory *memory, const uint64_t arrays[3], uint64_t count, uint64_t stride,
		 uint64_t *ret_event_bytes)
{
	uint64_t event = 0;
	struct connection connection;

	for (uint64_t i = 0; i < count && i < CHECKED; i++) {
		if (memory_read(memory, arrays[0] + i * stride, &connection, sizeof(connection)) != MEMORY_OK)
			return false;
		if (i == 1)
			event = connection.read - arrays[1];
		if (connection.read != arrays[1] + i * event || connection.write != arrays[2] + i * event ||
		    event > EVENT_BYTES_MAX || (i == 1 && event == 0))
			return false;
	}
	*ret_event_bytes = event;
	return true;
}

/* Words of the cycle: connection_n, files_n, connections, read_events, write_events. */
static bool read_arrays(struct memory *memory, const uint64_t words[5], struct connections *ret_connections)
{
	uint64_t event_bytes;

	if (words[0] < 2 || words[0] > CONNECTIONS_MAX || words[2] == 0 || words[3] == 0 || words[4] == 0)
		return false;
	for (uint64_t stride = CONNECTION_BYTES_MIN; stride <= CONNECTION_BYTES_MAX;
	     stride += sizeof(uint64_t))
		if (fits(memory, words + 2, words[0], stride, &event_bytes)) {
			*ret_connections = (struct connections){
				.first = words[2],
				.stride = stride,
				.count = words[0],
				.read_events = words[3],
				.write_events = words[4],
				.event_bytes = event_bytes,
			};
			return true;
		}
	return false;
}

/*
 * ngx_cycle_t has free_connections and free_connection_n side by side, before the words of the arrays. 0 if
 * not one pair of words alone can be these: none can while no connection is free.
 */
static uint64_t find_free_count(const struct connections *connections, uint64_t cycle, const uint64_t *words,
				size_t count)
{
	uint64_t found = 0;

	for (size_t i = 0; i + 1 < count; i++) {
		if (!connections_hold(connections, words[i]) || words[i + 1] > connections->count)
			continue;
		if (found)
			return 0;
		found = cycle + (i + 1) * sizeof(words[0]);
	}
	return found;
}

bool connections_find(struct memory *memory, const struct request_members *members,
		      struct connections *ret_connections)
{
	uint64_t cycle, words[CYCLE_WORDS];
	struct connection first;

	if (!members->known || members->cycle == 0 || !memory_u64(memory, members->cycle, &cycle) ||
	    memory_read(memory, cycle, words, sizeof(words)) != MEMORY_OK)
		return false;
	for (size_t i = 0; i + 5 <= CYCLE_WORDS; i++)
		/* The first connection has the first events: this rules out nearly all words at once. */
		if (words[i + 2] && memory_read(memory, words[i + 2], &first, sizeof(first)) == MEMORY_OK &&
		    first.read == words[i + 3] && first.write == words[i + 4] &&
		    read_arrays(memory, words + i, ret_connections)) {
			ret_connections->request_connection = members->connection;
			ret_connections->free_count = find_free_count(ret_connections, cycle, words, i);
			return true;
		}
	return false;
}

bool connections_hold(const struct connections *connections, uint64_t address)
{
	uint64_t distance = address - connections->first;

	return distance % connections->stride == 0 && distance / connections->stride < connections->count;
}

/* The start of ngx_event_t */
struct event {
	uint64_t data;
	uint32_t flags;
};

enum connection_wait connection_wait(struct memory *memory, uint64_t address)
{
	struct connection connection;
	struct event read, write;
	struct memory_range ranges[2];

	if (memory_read(memory, address, &connection, sizeof(connection)) != MEMORY_OK)
		return CONNECTION_WAIT_UNKNOWN;
	ranges[0] = (struct memory_range){ .address = connection.read,
					   .copy = &read,
					   .length = sizeof(read) };
	ranges[1] = (struct memory_range){ .address = connection.write,
					   .copy = &write,
					   .length = sizeof(write) };
	memory_read_ranges(memory, ranges, 2);
	if (ranges[0].status != MEMORY_OK || ranges[1].status != MEMORY_OK || read.data != address ||
	    write.data != address || (read.flags & EVENT_WRITE) || !(write.flags & EVENT_WRITE) ||
	    (read.flags & write.flags & EVENT_TIMER_SET))
		return CONNECTION_WAIT_UNKNOWN;
	if (read.flags & EVENT_TIMER_SET)
		return CONNECTION_WAIT_READ;
	if (!(write.flags & EVENT_TIMER_SET))
		return CONNECTION_WAIT_NONE;
	return write.flags & EVENT_DELAYED ? CONNECTION_WAIT_DELAY : CONNECTION_WAIT_WRITE;
}

uint64_t connections_of_event(const struct connections *connections, uint64_t event)
{
	const uint64_t arrays[] = { connections->read_events, connections->write_events };

	for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++) {
		uint64_t distance = event - arrays[i], index;

		index = distance / connections->event_bytes;
		if (distance % connections->event_bytes == 0 && index < connections->count)
			return connections->first + index * connections->stride;
	}
	return 0;
}

struct walk {
	struct memory *memory;
	const struct connections *connections;
	connections_take *take;
	void *context;
};

/*---- HTTP/2 ----*/

/* The start of ngx_http_v2_stream_t */
struct stream {
	uint64_t request, http2, node;
};

/* The start of ngx_http_v2_node_t */
struct node {
	uint64_t id, next;
	uint64_t others[HTTP2_NODE_WORDS - 2];
};

static bool is_pointer(uint64_t word)
{
	return word != 0 && word % sizeof(uint64_t) == 0;
}

/* The request of a node's stream; 0 if it has none. */
static uint64_t request_of_node(struct memory *memory, uint64_t http2, uint64_t address,
				const struct node *node)
{
	struct memory_range ranges[HTTP2_NODE_WORDS - 2];
	struct stream streams[HTTP2_NODE_WORDS - 2];
	size_t count = 0;

	for (size_t i = 0; i < HTTP2_NODE_WORDS - 2; i++)
		if (is_pointer(node->others[i])) {
			ranges[count] = (struct memory_range){ .address = node->others[i],
							       .copy = &streams[count],
							       .length = sizeof(streams[count]) };
			count++;
		}
	memory_read_ranges(memory, ranges, count);
	for (size_t i = 0; i < count; i++)
		if (ranges[i].status == MEMORY_OK && streams[i].http2 == http2 &&
		    streams[i].node == address && is_pointer(streams[i].request))
			return streams[i].request;
	return 0;
}

/* False to end. */
static bool walk_list(const struct walk *walk, uint64_t http2, uint64_t address)
{
	struct node node;

	for (size_t i = 0; i < HTTP2_LIST_MAX && is_pointer(address) &&
			   memory_read(walk->memory, address, &node, sizeof(node)) == MEMORY_OK;
	     i++, address = node.next) {
		uint64_t request = request_of_node(walk->memory, http2, address, &node), connection;

		if (request &&
		    memory_u64(walk->memory, request + (uint64_t)walk->connections->request_connection,
			       &connection) &&
		    !walk->take(walk->context, &(struct connection_in_use){ connection, request, -1 }))
			return false;
	}
	return true;
}

/*
 * Are these the lists of a connection, with at least one stream?
 *
 * The node of a stream is in list (id >> 1) % count (ngx_http_v2.c: ngx_http_v2_index(), 1.18 to 1.29). That
 * tells the array from what else leads to nodes: before it there may be h2c->state.stream, of the frame that
 * nginx reads, and the third word of a stream is its node. nginx keeps the nodes of up to 32 closed streams,
 * and puts new ones in front of their list (ngx_http_v2_get_node_by_id()), so a stream may be behind them.
 */
static bool are_lists(struct memory *memory, uint64_t http2, const uint64_t lists[], size_t count,
		      size_t *nodes_left)
{
	bool has_stream = false;
	struct node node;

	for (size_t i = 0; i < count; i++) {
		uint64_t address = lists[i];

		for (size_t j = 0; j < HTTP2_LIST_MAX && address != 0; j++, address = node.next) {
			if (*nodes_left == 0 || !is_pointer(address) ||
			    memory_read(memory, address, &node, sizeof(node)) != MEMORY_OK ||
			    (node.id >> 1) % count != i)
				return false;
			--*nodes_left;
			has_stream = has_stream || request_of_node(memory, http2, address, &node);
		}
	}
	return has_stream;
}

/* How many lists of the connection are at the start of these words? None if it has no stream in them. */
static size_t count_lists(struct memory *memory, uint64_t http2, const uint64_t lists[HTTP2_LISTS],
			  size_t *nodes_left)
{
	size_t count = HTTP2_LISTS;

	/* Their number is a power of two (ngx_http_v2_module.c: ngx_http_v2_streams_index_mask()). */
	while (count && !are_lists(memory, http2, lists, count, nodes_left))
		count /= 2;
	return count;
}

/*
 * The streams of a connection, if it is one of HTTP/2. False to end.
 *
 * ngx_http_v2_connection_t begins with the connection and its ngx_http_connection_t. Others
 * begin with the connection, too: ngx_resolver_connection_t, with one of TCP behind it, or
 * none (ngx_resolver.h, 1.18 to 1.29).
 */
static bool walk_streams(const struct walk *walk, uint64_t connection, uint64_t http2)
{
	uint64_t words[HTTP2_WORDS], lists[HTTP2_LISTS];
	size_t nodes_left = HTTP2_NODES_MAX, count = 0;

	if (memory_read(walk->memory, http2, words, 2 * sizeof(words[0])) != MEMORY_OK ||
	    words[0] != connection || !is_pointer(words[1]) ||
	    connections_hold(walk->connections, words[1]) ||
	    memory_read(walk->memory, http2, words, sizeof(words)) != MEMORY_OK)
		return true;
	for (size_t i = 1; i < HTTP2_WORDS && count == 0; i++)
		if (is_pointer(words[i]) &&
		    memory_read(walk->memory, words[i], lists, sizeof(lists)) == MEMORY_OK)
			count = count_lists(walk->memory, http2, lists, &nodes_left);
	for (size_t i = 0; i < count; i++)
		if (!walk_list(walk, http2, lists[i]))
			return false;
	return true;
}

/*
 * ngx_get_connection() took it, and ngx_free_connection() did not put it back: that makes the next free one
 * its data (1.18 to 1.31). Those that lua-nginx-module makes for its timers have no descriptor.
 */
static bool is_taken(const struct connections *connections, const struct connection *connection)
{
	return (connection->fd >= 0 || connection->data != 0) && connection->data % sizeof(uint64_t) == 0 &&
	       !connections_hold(connections, connection->data);
}

/* How many were taken; more than there are if that is unknown. */
static uint64_t count_taken(const struct walk *walk)
{
	uint64_t free_count;

	if (walk->connections->free_count == 0 ||
	    !memory_u64(walk->memory, walk->connections->free_count, &free_count) ||
	    free_count > walk->connections->count)
		return UINT64_MAX;
	return walk->connections->count - free_count;
}

/* False to end: also if *left, of those that were taken, have been met. */
static bool walk_piece(const struct walk *walk, const uint8_t *piece, uint64_t first, size_t count,
		       uint64_t *left)
{
	struct connection_in_use in_use;
	struct connection connection;

	for (size_t i = 0; *left && i < count; i++) {
		uint64_t offset = i * walk->connections->stride;

		memcpy(&connection, piece + offset, sizeof(connection));
		*left -= is_taken(walk->connections, &connection);
		/* A free connection has no descriptor, and holds the next free one. */
		if (connection.fd < 0 || connection.data % sizeof(uint64_t) != 0)
			continue;
		in_use = (struct connection_in_use){ first + offset, connection.data, connection.fd };
		if (!walk->take(walk->context, &in_use) ||
		    (connection.data && !walk_streams(walk, first + offset, connection.data)))
			return false;
	}
	return *left > 0;
}

bool connections_walk(struct memory *memory, const struct connections *connections, connections_take *take,
		      void *context)
{
	uint64_t at_a_time = PIECE_BYTES / connections->stride;
	const struct walk walk = { memory, connections, take, context };
	uint8_t *piece = malloc(PIECE_BYTES);
	uint64_t left = count_taken(&walk);

	for (uint64_t i = 0; piece && i < connections->count && left > 0; i += at_a_time) {
		uint64_t count = connections->count - i < at_a_time ? connections->count - i : at_a_time;
		uint64_t first = connections->first + i * connections->stride;

		if (memory_read(memory, first, piece, (size_t)(count * connections->stride)) == MEMORY_OK &&
		    !walk_piece(&walk, piece, first, (size_t)count, &left))
			break;
	}
	free(piece);
	return piece != NULL;
}

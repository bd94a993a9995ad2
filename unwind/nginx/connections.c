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
	PIECE_BYTES = 128 << 10,
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
		    read_arrays(memory, words + i, ret_connections))
			return true;
	return false;
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
	const struct connections *connections;
	connections_take *take;
	void *context;
};

static bool walk_piece(const struct walk *walk, const uint8_t *piece, uint64_t first, size_t count)
{
	struct connection connection;

	for (size_t i = 0; i < count; i++) {
		uint64_t offset = i * walk->connections->stride;

		memcpy(&connection, piece + offset, sizeof(connection));
		/* A free connection holds the next free one. */
		if (connection.fd != -1 && connection.data != 0 && connection.data % sizeof(uint64_t) == 0 &&
		    !walk->take(walk->context, first + offset, connection.data))
			return false;
	}
	return true;
}

bool connections_walk(struct memory *memory, const struct connections *connections, connections_take *take,
		      void *context)
{
	uint64_t at_a_time = PIECE_BYTES / connections->stride;
	const struct walk walk = { connections, take, context };
	uint8_t *piece = malloc(PIECE_BYTES);

	for (uint64_t i = 0; piece && i < connections->count; i += at_a_time) {
		uint64_t count = connections->count - i < at_a_time ? connections->count - i : at_a_time;
		uint64_t first = connections->first + i * connections->stride;

		if (memory_read(memory, first, piece, (size_t)(count * connections->stride)) == MEMORY_OK &&
		    !walk_piece(&walk, piece, first, (size_t)count))
			break;
	}
	free(piece);
	return piece != NULL;
}

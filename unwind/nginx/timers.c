/* SPDX-License-Identifier: MIT */
#include "unwind/nginx/timers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "memory/array.h"
#include "unwind/nginx/light_threads.h"

enum {
	DEPTH_MAX = 128, /* of the tree: twice the logarithm of the number of its nodes */
	WORD = sizeof(uint64_t),
	OFFSET_MIN = 2 * WORD,
	NODE_BYTES = 5 * WORD,
	FD_AT = 3 * WORD, /* ngx_connection_t.fd */
	PIECE_BYTES = 128 << 10,
	COCTX_BYTES_MAX = 1024, /* ngx_http_lua_co_ctx_t; it has about 200 */
};

/* The start of ngx_rbtree_t */
struct tree {
	uint64_t root, sentinel;
};

/* The start of ngx_rbtree_node_t */
struct node {
	uint64_t key, left, right, parent;
};

/*---- The tree ----*/

struct walk {
	struct memory *memory;
	uint64_t sentinel;
	struct timers *timers;
	/* From the root to the node that is taken next. */
	struct {
		uint64_t address;
		struct node node;
	} path[DEPTH_MAX];
	size_t depth;
};

/*
 * Go down to the leftmost node below one; parent is 0 for the root. Each has to refer back to its parent: so
 * no node is read twice.
 */
static int go_down(struct walk *walk, uint64_t address, uint64_t parent)
{
	while (address != walk->sentinel) {
		struct node node;

		if (walk->depth == DEPTH_MAX ||
		    memory_read(walk->memory, address, &node, sizeof(node)) != MEMORY_OK ||
		    (parent != 0 && node.parent != parent) ||
		    (node.left == node.right && node.left != walk->sentinel))
			return -EAGAIN;
		walk->path[walk->depth].address = address;
		walk->path[walk->depth++].node = node;
		parent = address;
		address = node.left;
	}
	return 0;
}

static int take(struct walk *walk, uint64_t address, uint64_t key)
{
	struct timers *timers = walk->timers;
	struct timer *bigger;

	/* Due times wrap around as nginx's do. */
	if (timers->count && (int64_t)(key - timers->timers[timers->count - 1].due_ms) < 0)
		return -EAGAIN;
	bigger = array_grow(timers->timers, &timers->room, timers->count + 1, sizeof(*bigger));
	if (!bigger)
		return -ENOMEM;
	timers->timers = bigger;
	timers->timers[timers->count++] = (struct timer){ address, key };
	return 0;
}

int timers_read(struct memory *memory, uint64_t address, uint64_t until_ms, struct timers *ret_timers)
{
	struct timers timers = { 0 };
	struct walk walk = { .memory = memory, .timers = &timers };
	struct tree tree;
	int error;

	if (memory_read(memory, address, &tree, sizeof(tree)) != MEMORY_OK || tree.sentinel == 0)
		return -EAGAIN;
	walk.sentinel = tree.sentinel;
	error = go_down(&walk, tree.root, 0);
	while (!error && walk.depth > 0) {
		uint64_t node = walk.path[--walk.depth].address;
		uint64_t right = walk.path[walk.depth].node.right;

		if (until_ms != TIMERS_ALL && (int64_t)(walk.path[walk.depth].node.key - until_ms) > 0)
			break;
		if (timers.count == TIMERS_MAX) {
			timers.is_cut = true;
			break;
		}
		error = take(&walk, node, walk.path[walk.depth].node.key);
		if (!error)
			error = go_down(&walk, right, node);
	}
	if (error)
		timers_clear(&timers);
	else
		*ret_timers = timers;
	return error;
}

void timers_clear(struct timers *timers)
{
	free(timers->timers);
	*timers = (struct timers){ 0 };
}

/*---- Their events ----*/

/* Does data, an event's, refer to the context of a coroutine that contains the event? */
static bool is_in_context(struct memory *memory, const struct layout *luajit, uint64_t event, uint64_t data,
			  uint64_t *ret_thread)
{
	return luajit && data < event && event - data < COCTX_BYTES_MAX &&
	       light_thread_of(memory, luajit, data, ret_thread);
}

/* lua-nginx-module allocates what it notes of a timer behind its event. */
static bool is_of_lua(const struct connections *connections, uint64_t event, uint64_t data)
{
	return data == event + connections->event_bytes;
}

static uint64_t connection_offset(const struct connections *connections, uint64_t node)
{
	const uint64_t arrays[] = { connections->read_events, connections->write_events };

	for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++)
		if ((node - arrays[i]) / connections->event_bytes < connections->count)
			return (node - arrays[i]) % connections->event_bytes;
	return 0;
}

uint64_t timers_offset(struct memory *memory, const struct timers *timers,
		       const struct connections *connections, const struct layout *luajit)
{
	uint64_t found = 0;

	for (size_t i = 0; i < timers->count; i++) {
		uint64_t node = timers->timers[i].node, told = connection_offset(connections, node);

		for (uint64_t offset = OFFSET_MIN; !told && offset + NODE_BYTES <= connections->event_bytes;
		     offset += WORD) {
			uint64_t data, thread;

			if (memory_u64(memory, node - offset, &data) &&
			    (is_of_lua(connections, node - offset, data) ||
			     is_in_context(memory, luajit, node - offset, data, &thread)))
				told = offset;
		}
		if (told && found && told != found)
			return 0;
		found = told ? told : found;
	}
	return found;
}

static bool has_descriptor(const uint8_t *connection)
{
	int32_t fd;

	memcpy(&fd, connection + FD_AT, sizeof(fd));
	return fd >= 0;
}

static bool is_set(const uint8_t *event)
{
	uint32_t flags;

	memcpy(&flags, event + WORD, sizeof(flags));
	return flags & EVENT_TIMER_SET;
}

/* Of some connections from one on, add the events that have the flag. copy has room for both. */
static bool count_some(struct memory *memory, const struct connections *connections, uint64_t from,
		       uint64_t some, uint8_t *copy, uint64_t *count)
{
	const uint64_t arrays[] = { connections->first, connections->read_events, connections->write_events };
	const uint64_t sizes[] = { connections->stride, connections->event_bytes, connections->event_bytes };
	struct memory_range ranges[3];
	bool is_read = true;

	for (size_t i = 0; i < 3; i++) {
		ranges[i] = (struct memory_range){ .address = arrays[i] + from * sizes[i],
						   .copy = copy,
						   .length = (size_t)(some * sizes[i]) };
		copy += ranges[i].length;
	}
	memory_read_ranges(memory, ranges, 3);
	for (size_t i = 0; i < 3; i++)
		is_read &= ranges[i].status == MEMORY_OK;
	for (uint64_t i = 0; is_read && i < some; i++)
		for (size_t j = 1; j < 3 && has_descriptor((uint8_t *)ranges[0].copy + i * sizes[0]); j++)
			*count += is_set((uint8_t *)ranges[j].copy + i * sizes[j]);
	return is_read;
}

/*
 * How many events of connections in use have the flag. ngx_event_process_init() (src/event/ngx_event.c,
 * 1.0 to 1.31) gets the events by malloc(), which after a reload gives memory of the configuration
 * before, and sets two flags. Only ngx_get_connection() clears the events of a connection.
 */
static bool count_set(struct memory *memory, const struct connections *connections, uint64_t *ret_count)
{
	uint64_t at_a_time = PIECE_BYTES / (connections->stride + 2 * connections->event_bytes);
	uint8_t *piece = malloc(PIECE_BYTES);
	uint64_t count = 0;
	bool is_read = piece != NULL;

	for (uint64_t i = 0; is_read && i < connections->count; i += at_a_time) {
		uint64_t some = connections->count - i < at_a_time ? connections->count - i : at_a_time;

		is_read = count_some(memory, connections, i, some, piece, &count);
	}
	free(piece);
	if (is_read)
		*ret_count = count;
	return is_read;
}

enum timer_flags timers_compare_flags(struct memory *memory, const struct timers *timers, uint64_t offset,
				      const struct connections *connections)
{
	uint64_t of_connections = 0, set;

	if (offset == 0 || timers->is_cut)
		return TIMER_FLAGS_UNPROVEN;
	for (size_t i = 0; i < timers->count; i++) {
		uint64_t event = timers->timers[i].node - offset;
		uint64_t connection = connections_of_event(connections, event);
		uint32_t fd, flags;

		if (!connection)
			continue;
		if (!memory_u32(memory, connection + FD_AT, &fd) || !memory_u32(memory, event + WORD, &flags))
			return TIMER_FLAGS_UNPROVEN;
		if (!(flags & EVENT_TIMER_SET))
			return TIMER_FLAGS_DIFFER;
		of_connections += (int32_t)fd >= 0;
	}
	if (of_connections == 0 || !count_set(memory, connections, &set))
		return TIMER_FLAGS_UNPROVEN;
	return set == of_connections ? TIMER_FLAGS_AGREE : TIMER_FLAGS_DIFFER;
}

struct timer_event timer_event_read(struct memory *memory, const struct timer *timer, uint64_t offset,
				    const struct connections *connections, const struct layout *luajit)
{
	uint64_t event = timer->node - offset, connection = connections_of_event(connections, event);
	uint64_t data, thread;

	if (offset == 0 || !memory_u64(memory, event, &data))
		return (struct timer_event){ .kind = TIMER_UNKNOWN };
	if (connection)
		return (struct timer_event){ TIMER_CONNECTION, connection };
	if (is_of_lua(connections, event, data))
		return (struct timer_event){ TIMER_LUA, data };
	if (is_in_context(memory, luajit, event, data, &thread))
		return (struct timer_event){ TIMER_COROUTINE, thread };
	return (struct timer_event){ .kind = TIMER_OTHER };
}

size_t timer_event_words(struct memory *memory, const struct timer *timer, uint64_t offset,
			 uint64_t ret_words[TIMER_WORDS_MAX])
{
	size_t count = offset / WORD < TIMER_WORDS_MAX ? (size_t)offset / WORD : TIMER_WORDS_MAX;

	return memory_read(memory, timer->node - offset, ret_words, count * WORD) == MEMORY_OK ? count : 0;
}

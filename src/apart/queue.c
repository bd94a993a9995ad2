/* SPDX-License-Identifier: MIT */
#include "src/apart/queue.h"

#include <errno.h>
#include <string.h>

/* Precedes each message. */
struct head {
	uint32_t size;
};

static void write_ring(struct queue *queue, uint64_t at, const void *bytes, size_t size)
{
	size_t begin = at % QUEUE_SIZE, first = QUEUE_SIZE - begin < size ? QUEUE_SIZE - begin : size;

	memcpy(queue->ring + begin, bytes, first);
	memcpy(queue->ring, (const unsigned char *)bytes + first, size - first);
}

static void read_ring(const struct queue *queue, uint64_t at, void *bytes, size_t size)
{
	size_t begin = at % QUEUE_SIZE, first = QUEUE_SIZE - begin < size ? QUEUE_SIZE - begin : size;

	memcpy(bytes, queue->ring + begin, first);
	memcpy((unsigned char *)bytes + first, queue->ring, size - first);
}

bool queue_put(struct queue *queue, const void *bytes, size_t size)
{
	const struct head head = { .size = (uint32_t)size };
	uint64_t put = atomic_load_explicit(&queue->put, memory_order_relaxed);
	uint64_t taken = atomic_load_explicit(&queue->taken, memory_order_acquire);

	if (size == 0 || size > QUEUE_MESSAGE_MAX || put - taken + sizeof(head) + size > QUEUE_SIZE)
		return false;
	write_ring(queue, put, &head, sizeof(head));
	write_ring(queue, put + sizeof(head), bytes, size);
	atomic_store_explicit(&queue->put, put + sizeof(head) + size, memory_order_release);
	return true;
}

int queue_take(struct queue *queue, unsigned char ret_bytes[static QUEUE_MESSAGE_MAX])
{
	uint64_t put = atomic_load_explicit(&queue->put, memory_order_acquire);
	uint64_t taken = atomic_load_explicit(&queue->taken, memory_order_relaxed);
	uint64_t length = put - taken;
	struct head head;

	if (length == 0)
		return 0;
	if (length > QUEUE_SIZE || length < sizeof(head))
		return -EBADMSG;
	read_ring(queue, taken, &head, sizeof(head));
	if (head.size == 0 || head.size > QUEUE_MESSAGE_MAX || head.size > length - sizeof(head))
		return -EBADMSG;
	read_ring(queue, taken + sizeof(head), ret_bytes, head.size);
	atomic_store_explicit(&queue->taken, taken + sizeof(head) + head.size, memory_order_release);
	return (int)head.size;
}

uint64_t queue_bytes(const struct queue *queue)
{
	return atomic_load_explicit(&queue->put, memory_order_acquire) -
	       atomic_load_explicit(&queue->taken, memory_order_relaxed);
}

/* SPDX-License-Identifier: MIT */
/*
 * queue: messages from one process to another, without waiting on either side.
 *
 * A ring of bytes in shared memory. One thread puts, one thread takes. The queue
 * refuses at once a message that does not fit; the sender counts lost messages. The
 * taker does not trust the sender: it checks lengths, and copies a message before it
 * reads the message.
 */
#ifndef LJSPY_QUEUE_H
#define LJSPY_QUEUE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	QUEUE_SIZE = 1 << 20,               /* bytes of the ring; a power of two */
	QUEUE_MESSAGE_MAX = QUEUE_SIZE / 2, /* bytes of one message */
};

/* All zero bytes is an empty queue. */
struct queue {
	_Atomic uint64_t put, taken; /* bytes in total */
	unsigned char ring[QUEUE_SIZE];
};

/* Put a message. False if there is no room now, if it is longer than QUEUE_MESSAGE_MAX, or if size is 0. */
bool queue_put(struct queue *queue, const void *bytes, size_t size);

/*
 * Copy the next message into the buffer. Returns its size; 0 if there is none;
 * -EBADMSG, now and always, if the queue is corrupt.
 */
int queue_take(struct queue *queue, unsigned char ret_bytes[static QUEUE_MESSAGE_MAX]);

/* How full it is; 0: there is no message. More than QUEUE_SIZE if it is corrupt. */
uint64_t queue_bytes(const struct queue *queue);

#endif

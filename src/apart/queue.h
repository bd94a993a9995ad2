/* SPDX-License-Identifier: MIT */
/*
 * queue: messages from one process to another, without either waiting for it.
 *
 * A ring of bytes in memory that both share. One thread puts, one thread
 * takes. What does not fit is refused at once: whoever puts says how much was
 * lost. Whoever takes does not trust the one who puts: lengths are checked, and
 * a message is copied before it is looked at.
 */
#ifndef LJSPY_QUEUE_H
#define LJSPY_QUEUE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	QUEUE_SIZE = 1 << 20,			/* bytes of the ring; a power of two */
	QUEUE_MESSAGE_MAX = QUEUE_SIZE / 2,	/* bytes of one message */
};

/* All zero bytes is an empty queue. */
struct queue {
	_Atomic uint64_t put, taken;		/* bytes, since the beginning */
	unsigned char ring[QUEUE_SIZE];
};

/* False if there is no room for it now, or ever. An empty message is none. */
bool queue_put(struct queue *queue, const void *bytes, size_t size);

/*
 * The next message into the buffer: its size; 0 if there is none; -EBADMSG
 * when what is in the queue cannot be, and never will be.
 */
int queue_take(struct queue *queue, unsigned char ret_bytes[static QUEUE_MESSAGE_MAX]);

bool queue_is_empty(const struct queue *queue);

#endif

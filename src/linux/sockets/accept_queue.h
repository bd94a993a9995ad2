/* SPDX-License-Identifier: MIT */
/*
 * accept_queue: how many connections wait until a process accepts them.
 *
 * The kernel tells it by sock_diag (man 7 sock_diag), in ljspy's own network namespace only. Of
 * processes in another one, /proc/PID/net has the TCP sockets and the lengths of their queues, but
 * neither limits nor lengths of Unix sockets' queues.
 */
#ifndef LJSPY_ACCEPT_QUEUE_H
#define LJSPY_ACCEPT_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	ACCEPT_ADDRESS_SIZE = sizeof("unix:") + 108, /* sun_path of sockaddr_un */
	ACCEPT_QUEUES_MAX = 4096,                    /* of a network namespace */
};

/* A socket that listens, of TCP or Unix. */
struct accept_queue {
	uint64_t inode;                    /* which links in /proc/PID/fd show */
	char address[ACCEPT_ADDRESS_SIZE]; /* "127.0.0.1:80", "unix:/run/s", "unix:@s"; untrusted */
	uint32_t waiting;                  /* connections that nobody has accepted */
	bool has_limit;
	/* What listen() was given, or the kernel's limit if that is less. One more fits in. */
	uint32_t limit;
};

struct accept_queues {
	struct accept_queue *list; /* owned */
	size_t count, room;
	bool is_complete; /* Unix sockets, too, each queue with its limit, and none is left out */
};

/* All in the network namespace of the process. 0 or -ENOMEM; free with accept_queues_clear(). */
int accept_queues_read(pid_t pid, struct accept_queues *ret_queues);

/* As accept_queues_read() finds them in another network namespace. */
int accept_queues_read_tables(pid_t pid, struct accept_queues *ret_queues);

/* NULL if that socket does not listen. */
const struct accept_queue *accept_queues_find(const struct accept_queues *queues, uint64_t inode);

void accept_queues_clear(struct accept_queues *queues);

#endif

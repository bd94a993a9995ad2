/* SPDX-License-Identifier: MIT */
/*
 * socket_table: the internet sockets in the network namespace of a process, from /proc/PID/net.
 */
#ifndef LJSPY_SOCKET_TABLE_H
#define LJSPY_SOCKET_TABLE_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	SOCKET_WORDS = 4, /* of an IPv6 address */
	SOCKET_END_SIZE = INET6_ADDRSTRLEN + sizeof("[]:65535"),
	SOCKET_STATE_LISTEN = 10, /* TCP_LISTEN of the kernel's net/tcp_states.h */
};

struct socket_end {
	int family;
	uint32_t words[SOCKET_WORDS]; /* in network order; one of an IPv4 address */
	uint16_t port;
};

struct socket_row {
	struct socket_end local, remote;
	bool listens;     /* for new connections */
	uint32_t waiting; /* rx_queue: bytes; connections that wait to be accepted if it listens */
	uint64_t inode;   /* which links in /proc/PID/fd show */
};

/* "127.0.0.1:80", "[::1]:80" */
void socket_end_print(const struct socket_end *end, char ret_text[static SOCKET_END_SIZE]);

/* Take a row; false to end. */
typedef bool socket_table_take(void *context, const struct socket_row *row);

/* Each row of the table NAME, such as "net/tcp", up to a bound. None if the table cannot be read. */
void socket_table_walk(pid_t pid, const char *name, socket_table_take *take, void *context);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * socket_peer: what a socket of another process is connected to.
 *
 * From the tables in /proc/PID/net, which show the network namespace of the process.
 */
#ifndef LJSPY_SOCKET_PEER_H
#define LJSPY_SOCKET_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/linux/sockets/socket_table.h"

enum {
	SOCKET_PEER_SIZE = SOCKET_END_SIZE + sizeof("client of :65535"),
	PORT_DNS = 53,
};

struct socket_peer {
	bool known;   /* it is an internet socket, and in one of the tables */
	bool listens; /* for new connections */
	bool is_dns;  /* the peer is a name server, by its port */
	/* "127.0.0.1:80", "client of :8080" if the peer has connected to it, "port 80" without a peer. */
	char text[SOCKET_PEER_SIZE];
};

/* Find the peer of the socket with that inode, which links in /proc/PID/fd show. */
void socket_peer_find(pid_t pid, uint64_t inode, struct socket_peer *ret_peer);

/* The peer at an untrusted address, as passed to connect() and sendto(). */
void socket_peer_read(const void *address, size_t length, struct socket_peer *ret_peer);

#endif

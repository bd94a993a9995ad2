/* SPDX-License-Identifier: MIT */
/*
 * socket_peer: whom a socket of another process is connected to.
 *
 * From the tables in /proc/PID/net, which are those of the process's own
 * network namespace.
 */
#ifndef LJSPY_SOCKET_PEER_H
#define LJSPY_SOCKET_PEER_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	SOCKET_PEER_SIZE = INET6_ADDRSTRLEN + sizeof("[]:65535") + sizeof("client of :65535"),
	PORT_DNS = 53,
};

struct socket_peer {
	bool known;		/* of the internet, and in one of the tables */
	bool listens;		/* for new connections */
	bool is_dns;		/* the peer is a name server, by its port */
	/* "127.0.0.1:80", "client of :8080" of one that has connected to us, "port 80" if there is none. */
	char text[SOCKET_PEER_SIZE];
};

/* The socket is told by its inode, as links in /proc/PID/fd have it. */
void socket_peer_find(pid_t pid, uint64_t inode, struct socket_peer *ret_peer);

/* That of an address, as connect() and sendto() have it; untrusted. */
void socket_peer_read(const void *address, size_t length, struct socket_peer *ret_peer);

#endif

/* SPDX-License-Identifier: MIT */
#include "src/linux/sockets/socket_peer.h"

#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "src/linux/sockets/socket_table.h"

enum { EPHEMERAL_PORT = 32768 }; /* ports of clients, as Linux chooses them, begin here */

static void describe(const struct socket_end *local, const struct socket_end *remote, bool listens,
		     struct socket_peer *ret_peer)
{
	struct socket_peer peer = { .known = true, .listens = listens };

	peer.is_dns = remote->port == PORT_DNS;
	if (remote->port == 0)
		snprintf(peer.text, sizeof(peer.text), "port %u", (unsigned)local->port);
	else if (remote->port >= EPHEMERAL_PORT && local->port > 0 && local->port < EPHEMERAL_PORT)
		snprintf(peer.text, sizeof(peer.text), "client of :%u", (unsigned)local->port);
	else
		socket_end_print(remote, peer.text);
	*ret_peer = peer;
}

struct search {
	uint64_t inode;
	struct socket_peer *peer;
};

static bool take_row(void *context, const struct socket_row *row)
{
	const struct search *search = context;

	if (row->inode != search->inode)
		return true;
	describe(&row->local, &row->remote, row->listens, search->peer);
	return false;
}

void socket_peer_find(pid_t pid, uint64_t inode, struct socket_peer *ret_peer)
{
	static const char *const tables[] = { "net/tcp", "net/udp", "net/tcp6", "net/udp6" };
	struct search search = { inode, ret_peer };

	*ret_peer = (struct socket_peer){ .known = false };
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]) && !ret_peer->known; i++)
		socket_table_walk(pid, tables[i], take_row, &search);
}

void socket_peer_read(const void *address, size_t length, struct socket_peer *ret_peer)
{
	struct socket_end local = { .port = 0 }, remote = { .port = 0 };
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	sa_family_t family;

	*ret_peer = (struct socket_peer){ .known = false };
	if (length < sizeof(family))
		return;
	memcpy(&family, address, sizeof(family));
	remote.family = family;
	if (family == AF_INET && length >= sizeof(in)) {
		memcpy(&in, address, sizeof(in));
		remote.port = ntohs(in.sin_port);
		memcpy(remote.words, &in.sin_addr, sizeof(in.sin_addr));
	} else if (family == AF_INET6 && length >= offsetof(struct sockaddr_in6, sin6_scope_id)) {
		memcpy(&in6, address, length < sizeof(in6) ? length : sizeof(in6));
		remote.port = ntohs(in6.sin6_port);
		memcpy(remote.words, &in6.sin6_addr, sizeof(in6.sin6_addr));
	} else {
		return;
	}
	describe(&local, &remote, false, ret_peer);
}

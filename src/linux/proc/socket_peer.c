/* SPDX-License-Identifier: MIT */
#include "src/linux/proc/socket_peer.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/linux/proc/proc_file.h"

enum {
	LINE_SIZE = 512,
	LINES_MAX = 20000,      /* of a table that ljspy reads */
	TCP_LISTEN = 10,        /* enum in the kernel's net/tcp_states.h */
	WORDS = 4,              /* of an IPv6 address */
	EPHEMERAL_PORT = 32768, /* ports of clients, as Linux chooses them, begin here */
};

/* One end of a socket. */
struct end {
	int family;
	uint32_t words[WORDS]; /* in network order */
	uint16_t port;
};

static bool is_anybody(const struct end *end)
{
	return end->port == 0;
}

static void print_end(const struct end *end, char *text, size_t size)
{
	static const uint8_t mapped[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };
	bool is_mapped = end->family == AF_INET6 && memcmp(end->words, mapped, sizeof(mapped)) == 0;
	char address[INET6_ADDRSTRLEN] = "?";

	inet_ntop(is_mapped ? AF_INET : end->family, is_mapped ? &end->words[3] : end->words, address,
		  sizeof(address));
	if (end->family == AF_INET || is_mapped)
		snprintf(text, size, "%s:%u", address, (unsigned)end->port);
	else
		snprintf(text, size, "[%s]:%u", address, (unsigned)end->port);
}

/* "0100007F:0050": the words of the address as in memory, and the port. */
static bool parse_end(const char *address, unsigned int port, struct end *ret_end)
{
	struct end end = { .port = (uint16_t)port };
	size_t length = strlen(address);

	if (length != 8 && length != 8 * WORDS)
		return false;
	end.family = length == 8 ? AF_INET : AF_INET6;
	for (size_t i = 0; i < length / 8; i++)
		if (sscanf(address + 8 * i, "%8" SCNx32, &end.words[i]) != 1)
			return false;
	*ret_end = end;
	return true;
}

static void describe(const struct end *local, const struct end *remote, bool listens,
		     struct socket_peer *ret_peer)
{
	struct socket_peer peer = { .known = true, .listens = listens };

	peer.is_dns = remote->port == PORT_DNS;
	if (is_anybody(remote))
		snprintf(peer.text, sizeof(peer.text), "port %u", (unsigned)local->port);
	else if (remote->port >= EPHEMERAL_PORT && local->port > 0 && local->port < EPHEMERAL_PORT)
		snprintf(peer.text, sizeof(peer.text), "client of :%u", (unsigned)local->port);
	else
		print_end(remote, peer.text, sizeof(peer.text));
	*ret_peer = peer;
}

/* "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000  0 12345 ..." */
static bool parse_line(const char *line, uint64_t inode, struct socket_peer *ret_peer)
{
	char local_text[8 * WORDS + 1], remote_text[8 * WORDS + 1];
	unsigned int local_port, remote_port, state;
	struct end local, remote;
	uint64_t found;

	if (sscanf(line, " %*u: %32[0-9A-Fa-f]:%x %32[0-9A-Fa-f]:%x %x %*s %*s %*s %*u %*u %" SCNu64,
		   local_text, &local_port, remote_text, &remote_port, &state, &found) != 6 ||
	    found != inode || !parse_end(local_text, local_port, &local) ||
	    !parse_end(remote_text, remote_port, &remote))
		return false;
	describe(&local, &remote, state == TCP_LISTEN, ret_peer);
	return true;
}

static bool search_table(pid_t pid, const char *name, uint64_t inode, struct socket_peer *ret_peer)
{
	int fd = proc_file_open(pid, name);
	FILE *table = fd < 0 ? NULL : fdopen(fd, "r");
	char line[LINE_SIZE];
	bool found = false;

	if (!table) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	for (int i = 0; i < LINES_MAX && !found && fgets(line, sizeof(line), table); i++)
		found = parse_line(line, inode, ret_peer);
	fclose(table);
	return found;
}

void socket_peer_find(pid_t pid, uint64_t inode, struct socket_peer *ret_peer)
{
	static const char *const tables[] = { "net/tcp", "net/udp", "net/tcp6", "net/udp6" };

	*ret_peer = (struct socket_peer){ .known = false };
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		if (search_table(pid, tables[i], inode, ret_peer))
			return;
}

void socket_peer_read(const void *address, size_t length, struct socket_peer *ret_peer)
{
	struct end local = { .port = 0 }, remote = { .port = 0 };
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

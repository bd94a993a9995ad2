/* SPDX-License-Identifier: MIT */
/*
 * address: where a server listens.
 *
 * "127.0.0.1:6060", "[::1]:6060", "localhost:6060", ":6060" (loopback), or a Unix
 * socket: "unix:PATH", "/PATH". Names are not looked up.
 */
#ifndef LJSPY_ADDRESS_H
#define LJSPY_ADDRESS_H

#include <stdbool.h>
#include <sys/socket.h>

enum { ADDRESS_TEXT_SIZE = 160 };

struct address {
	struct sockaddr_storage storage;
	socklen_t length;
	bool is_local; /* a Unix socket or loopback */
};

/* False if the text is no address. */
bool address_read(const char *text, struct address *ret_address);

/*
 * Listen. A Unix socket is its owner's alone, and replaces one that nobody listens on.
 * A descriptor or a negative errno. *ret_text is the address as a URL, for people.
 */
int address_listen(const struct address *address, char ret_text[static ADDRESS_TEXT_SIZE]);

/* Is there something else than a socket where a Unix socket is to be? */
bool address_is_taken_by_file(const struct address *address);

/* Remove a Unix socket's file. */
void address_forget(const struct address *address);

#endif

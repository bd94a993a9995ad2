/* SPDX-License-Identifier: MIT */
/*
 * server: the hub by HTTP.
 *
 * Each client has a thread, which waits, renders and writes; sampling goes on in another
 * process meanwhile. Requests are GET or HEAD without a body. What a client may ask for is
 * bounded: how many clients there are (clients.h), how long a capture takes.
 */
#ifndef LJSPY_SERVER_H
#define LJSPY_SERVER_H

#include "src/options/options.h"
#include "src/sampler/wanted.h"
#include "src/serve/hub.h"

enum { SERVER_SECONDS_MAX = 300 };

struct server;

/*
 * Serve on a listening socket, which the server takes over. Without a token, only requests to a
 * host of this machine are answered, so that no web page reads profiles through a name of its
 * own; is_unix: there is no such name. token: NULL if none is needed; borrowed. 0 or a negative errno.
 */
struct server_options {
	int socket;
	bool is_unix;
	const char *token;
	const struct options *options; /* for rendering */
	const struct wanted *wanted;   /* the processes of the options */
	struct hub *hub;
};

int server_start(const struct server_options *options, struct server **ret_server);

/*
 * Answer no more, once requests that have begun are answered, or half a second later; captures must have
 * ended.
 */
void server_stop(struct server *server);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * http: post a body and read the answer, by libcurl.
 *
 * Follows no redirects, so credentials go to no other host, and takes proxies from the
 * environment, as libcurl does, unless the post is direct. What a server says is bounded and untrusted.
 */
#ifndef LJSPY_HTTP_H
#define LJSPY_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/push/credentials.h"

enum { HTTP_MESSAGE_SIZE = 256, HTTP_RETRY_AFTER_MAX_S = 3600, HTTP_CAUSES_MAX = 1200 };

struct http;

struct http_post {
	const char *url;
	const char *body;
	size_t length;
	const char *content_type;
	const struct credentials *credentials;
	bool is_direct; /* by no proxy */
};

struct http_answer {
	long status;                /* 0: there was none */
	unsigned int cause;         /* tells failures apart, below HTTP_CAUSES_MAX; 0: there was no try */
	unsigned int retry_after_s; /* by the server's word; 0 if it gave none */
	char message[HTTP_MESSAGE_SIZE]; /* the beginning of what the server, or libcurl, says */
};

/* Is the request to be given up? Asked about once a second, and while there is traffic. */
typedef bool http_asks(void *context);

/*
 * ca_file: certificates to trust instead of the system's; NULL for those. NULL when memory
 * is short, or in the static binary, which has no libcurl.
 */
struct http *http_new(const char *ca_file, http_asks *gives_up, void *context);
void http_free(struct http *http);

void http_post(struct http *http, const struct http_post *post, struct http_answer *ret_answer);

#endif

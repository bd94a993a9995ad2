/* SPDX-License-Identifier: MIT */
/*
 * endpoint: how a service wants profiles, by its URL.
 *
 *	URL ends in			protocol
 *	/ingest				Pyroscope's older one: pprof's bytes, labels in the query
 *	/writeraw			Parca's ProfileStoreService.WriteRaw, as JSON through its gateway:
 *					http://HOST:7070/api/profiles/writeraw
 *	anything else			Pyroscope's push.v1.PusherService.Push, as JSON (Connect); its
 *					path is added unless it is there
 *
 * From the services' published interfaces: push/v1/push.proto and the page on /ingest of
 * Grafana Pyroscope 1.x, parca/profilestore/v1alpha1/profilestore.proto of Parca 0.2x.
 */
#ifndef LJSPY_ENDPOINT_H
#define LJSPY_ENDPOINT_H

#include <stdbool.h>
#include <stddef.h>

#include "src/push/batch.h"

enum { ENDPOINT_URL_MAX = 1024 };

enum endpoint_protocol { ENDPOINT_PUSH, ENDPOINT_INGEST, ENDPOINT_WRITE_RAW };

struct endpoint {
	enum endpoint_protocol protocol;
	bool is_here;                    /* on this machine: no proxy leads to it */
	bool is_secret_safe;             /* what is sent there is encrypted, or stays on this machine */
	char url[ENDPOINT_URL_MAX + 64]; /* whole, but for the query */
};

/*
 * False, with what is wrong with it, unless the URL is one of http or https, without a name
 * and a password, without a query.
 */
bool endpoint_read(const char *url, struct endpoint *ret_endpoint, const char **ret_wrong);

/* A request to post a profile. */
struct endpoint_request {
	char *url, *body; /* owned */
	size_t length;
	const char *content_type;
};

/* 0 or -ENOMEM. */
int endpoint_request(const struct endpoint *endpoint, const struct push_profile *profile,
		     struct endpoint_request *ret_request);
void endpoint_request_clear(struct endpoint_request *request);

/* What an answer means for the profile. */
enum endpoint_verdict {
	ENDPOINT_TAKEN,
	ENDPOINT_REFUSED, /* it is wrong for this server, for good */
	ENDPOINT_LATER,   /* the same may be taken later, or with other credentials or settings */
	/* The server has failed: with all profiles, or with this one for good. */
	ENDPOINT_FAILED,
};

enum endpoint_verdict endpoint_verdict(long http_status);

/* base64 of RFC 4648, to be freed; NULL when memory is short. */
char *endpoint_base64(const char *bytes, size_t length);

#endif

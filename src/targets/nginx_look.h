/* SPDX-License-Identifier: MIT */
/*
 * nginx_look: the commands that show what is in nginx's workers now, once or again each second.
 */
#ifndef LJSPY_NGINX_LOOK_H
#define LJSPY_NGINX_LOOK_H

#include <stdio.h>
#include <sys/types.h>

#include <jansson.h>

#include "src/inspect/lua_process.h"
#include "src/options/invocation.h"

/* One kind of report, which new() makes and the other functions get. */
struct nginx_look {
	const char *doing; /* "reading requests" */
	const char *what;  /* of nginx, that other processes do not have: "connections" */
	/* name is copied. NULL when memory is short. */
	void *(*new)(pid_t pid, const char *name, const struct options *options);
	/* Fill it anew. 0, or a negative errno; -ENOTSUP: the process has nothing of the kind. */
	int (*take)(struct lua_process *process, void *report);
	void (*print)(FILE *out, const void *report);
	json_t *(*json)(const void *report); /* NULL when memory is short */
	void (*free)(void *report);          /* which may be NULL */
};

enum exit_status nginx_look(const struct invocation *invocation, const struct nginx_look *kind);

#endif

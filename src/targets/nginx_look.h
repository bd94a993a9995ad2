/* SPDX-License-Identifier: MIT */
/*
 * nginx_look: the commands that show what is in nginx's workers now, once or again each second.
 */
#ifndef LJSPY_NGINX_LOOK_H
#define LJSPY_NGINX_LOOK_H

#include <stdbool.h>
#include <stddef.h>
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
	/*
	 * Fill it anew. 0, or a negative errno; -ENOTSUP: the process has nothing of the kind; -EXDEV: it
	 * has, but when these are due is not known, as it has another clock (time_namespace.h).
	 */
	int (*take)(struct lua_process *process, void *report);
	void (*print)(FILE *out, const void *report);
	json_t *(*json)(const void *report); /* NULL when memory is short */
	void (*free)(void *report);          /* which may be NULL */
	/* What all reports together show, in text below them and in the document; or both NULL. */
	void (*print_together)(FILE *out, const void *const reports[], size_t count);
	/* Add keys. False when memory is short. */
	bool (*json_together)(json_t *document, const void *const reports[], size_t count);
};

enum exit_status nginx_look(const struct invocation *invocation, const struct nginx_look *kind);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * details: what C functions on a stack work on, and who catches an error, as frames.
 *
 *	[pattern ^a+$]             ngx.re.*: above the function that runs the regular expression
 *	[dict dogs: get "key"]     ngx.shared.dogs: above lua-nginx-module's function
 *	[lock of dogs: held by 1234, asleep]     above ngx_shmtx_lock()
 *	[host example.com], [file /etc/hosts], [command ls], [module resty.http]
 *	[caught by pcall at handler.lua:12]      above the function that raised an error
 *
 * A detail is shown only if the copy of the memory proves it: the pattern is the argument of the
 * Lua function that runs, or the key by which compiled code found it (compiled_pattern.h); the
 * dictionary is the one that an argument refers to (zones.h), or the only one whose lock this
 * process holds, or waits for. Else the frame says so: [pattern unknown].
 *
 * Facts: lua-nginx-module 0.10.13 to 0.10.28, ngx_http_lua_regex.c, ngx_http_lua_shdict.c;
 * lua-resty-core's regex.lua and shdict.lua; nginx, ngx_shmtx.c.
 */
#ifndef LJSPY_DETAILS_H
#define LJSPY_DETAILS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memory/memory.h"
#include "unwind/capture/capture.h"
#include "unwind/names/namer.h"
#include "unwind/nginx/zones.h"
#include "unwind/stack/merged_stack.h"

enum {
	DETAILS_MAX = 16, /* of a stack; the outer ones are left out */
	DETAIL_TEXT_BYTES = 448,
	DETAIL_PROCESS_BYTES = 64,
};

/* The frame goes right above a merged frame. */
struct detail {
	size_t merged_index;
	char text[DETAIL_TEXT_BYTES]; /* untrusted */
};

struct detail_source {
	struct capture *capture;
	const struct merged_stack *stack;
	struct namer *namer; /* has named the stack */
	struct memory *live; /* what constants of compiled code lead to */
	const struct zones *zones;
	const uint64_t *holders; /* the zones' lock words of the moment of the copy; NULL: unknown */
	uint64_t own_pid;        /* as the target itself knows it */
	uint64_t sleeps_at; /* the first argument of the system call in which the thread sleeps; 0: none */
	/* What a process of that number does, for the text of a lock: "asleep". False if unknown. */
	bool (*describe_process)(void *context, uint64_t pid, char ret_text[static DETAIL_PROCESS_BYTES]);
	void *context;
};

/* What C functions work on. Returns how many. */
size_t details_find(const struct detail_source *source, struct detail ret_details[static DETAILS_MAX]);

/* The zone whose lock the thread waits for in ngx_shmtx_lock(). NULL if it does not, or it is unknown. */
const struct zone *details_find_lock(const struct detail_source *source);

/* Errors that are being raised, the innermost first; with_value: and the error values. Returns how many. */
size_t details_find_errors(const struct detail_source *source, bool with_value,
			   struct detail ret_details[static DETAILS_MAX]);

#endif

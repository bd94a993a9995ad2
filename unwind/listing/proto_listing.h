/* SPDX-License-Identifier: MIT */
/*
 * proto_listing: the bytecode of a function as jit.bc prints it, and which function is meant.
 *
 * A prototype has no name. Its name is what the function that it is in stores it as: a global or
 * field, an upvalue or a local variable.
 */
#ifndef LJSPY_PROTO_LISTING_H
#define LJSPY_PROTO_LISTING_H

#include "unwind/listing/listing.h"

/* Which functions are wanted: by a place, "file.lua:12", or by a name. */
struct proto_wanted {
	const char *name; /* NULL if by a place; its last part, after "." or ":" */
	const char *file; /* the file's path or the end of it; not NUL-terminated */
	size_t file_length;
	uint32_t line;
};

/* text must outlive the result. */
struct proto_wanted proto_wanted(const char *text);

enum proto_match {
	PROTO_IS_ELSEWHERE,
	PROTO_HAS_LINE,       /* the line is in the function */
	PROTO_BEGINS_AT_LINE, /* it is defined there */
};

enum proto_match proto_match_place(const struct proto *proto, const struct proto_wanted *wanted);

/* The functions that a function defines and stores under that name, at most max. Returns how many. */
size_t proto_children_named(const struct listing_source *source, const struct proto *proto, const char *name,
			    uint64_t *ret_protos, size_t max);

/* Add the lines of a function. samples of its interpreted code; may be NULL. 0 or -ENOMEM. */
int proto_listing_add(const struct listing_source *source, const struct proto *proto,
		      const struct listing_samples *samples, struct listing *listing);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * listing: the lines of a trace or function, each with its source line and its samples.
 */
#ifndef LJSPY_LISTING_H
#define LJSPY_LISTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/listing/listing_source.h"

enum { LISTING_LINES_MAX = 1 << 17, LISTING_BYTES_MAX = 64 << 20 /* of text */ };

enum listing_kind {
	LISTING_HEAD, /* begins a part: "---- TRACE 7 IR" */
	LISTING_BYTECODE,
	LISTING_IR,
	LISTING_SNAPSHOT,
	LISTING_CODE,
	LISTING_NOTE, /* what cannot be shown, and why */
	LISTING_KIND_COUNT
};

/* Texts and places come from the target and hold any byte but NUL. */
struct listing_line {
	enum listing_kind kind;
	char *text;                     /* owned */
	char place[LISTING_PLACE_SIZE]; /* "file.lua:12"; "" if unknown */
	uint64_t address;               /* of the instruction; 0 if it has none */
	uint32_t ref; /* of code: the IR instruction that it is for, as jit.dump numbers them */
	uint64_t samples, cpu_ns;
};

struct listing {
	struct listing_line *lines;
	size_t count, size;
	size_t bytes;             /* of all texts */
	bool cut;                 /* LISTING_LINES_MAX or LISTING_BYTES_MAX is reached */
	bool failed;              /* memory was short for a line, which is missing */
	uint64_t samples, cpu_ns; /* in all of it, also those that no line shows */
};

/* What samples have found at an address of code or bytecode. Return by ret_: zeros if nothing. */
struct listing_samples {
	void (*at)(void *context, uint64_t begin, uint64_t end, uint64_t *ret_samples, uint64_t *ret_cpu_ns);
	void *context;
};

/*
 * Add a line with this text, which it takes over and which may be NULL; the line is valid until the next.
 * NULL when memory is short, or if there is no more room.
 */
struct listing_line *listing_add(struct listing *listing, enum listing_kind kind, char *text);
struct listing_line *listing_add_format(struct listing *listing, enum listing_kind kind, const char *format,
					...) __attribute__((format(printf, 3, 4)));
void listing_clear(struct listing *listing);

/* Count the samples from begin up to end for a line. */
void listing_count(struct listing_line *line, const struct listing_samples *samples, uint64_t begin,
		   uint64_t end);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * window: words of a target's memory, read in ascending order.
 *
 * Copies a piece at a time. Reads only pages that are in memory, so that it neither
 * brings pages back from swap nor makes new ones.
 */
#ifndef LJSPY_WINDOW_H
#define LJSPY_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memory/memory.h"
#include "src/linux/pages/page_runs.h"

enum { WINDOW_BYTES = 1 << 20 };

struct window {
	struct memory *memory;
	const struct page_runs *runs;
	uint64_t begin;
	uint64_t length; /* of the copy; 0: there is none */
	uint8_t *copy;   /* room for WINDOW_BYTES */
};

/* 0 or -ENOMEM. memory and runs must outlive the window. */
int window_open(struct memory *memory, const struct page_runs *runs, struct window *ret_window);
void window_close(struct window *window);

/* The target has run on: what was copied may be old. */
void window_forget(struct window *window);

/* A word, or false if its page is not in memory or cannot be read. The address is a multiple of 8. */
bool window_word(struct window *window, uint64_t address, uint64_t *ret);

/* Copy some bytes, however old the window is. False as above. */
bool window_peek(const struct window *window, uint64_t address, void *copy, size_t length);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * timers: what an nginx worker waits for the time of.
 *
 * ngx_event_timer_rbtree is a red-black tree of the timers of all events, by the millisecond when
 * they are due (src/core/ngx_rbtree.h: root, sentinel; nodes begin with key, left, right, parent).
 * Each node is a member of its ngx_event_t, whose first word is the event's data.
 */
#ifndef LJSPY_TIMERS_H
#define LJSPY_TIMERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "luajit-layouts/layout.h"
#include "memory/memory.h"
#include "unwind/nginx/connections.h"

enum { TIMERS_MAX = 1 << 20 };

struct timer {
	uint64_t node;
	uint64_t due_ms; /* as ngx_current_msec */
};

/* In the order in which they are due. */
struct timers {
	struct timer *timers; /* owned */
	size_t count, room;
	bool is_cut; /* there are more */
};

#define TIMERS_ALL UINT64_MAX

/*
 * Read the tree at an address: all of it, or what is due until_ms. 0, -ENOMEM, or -EAGAIN if it changes
 * or is none.
 */
int timers_read(struct memory *memory, uint64_t address, uint64_t until_ms, struct timers *ret_timers);
void timers_clear(struct timers *timers);

/*
 * Where in ngx_event_t its timer is: all timers that tell must agree. Those of connections do, and
 * those of ngx.timer and ngx.sleep. 0 if none does.
 */
uint64_t timers_offset(struct memory *memory, const struct timers *timers,
		       const struct connections *connections, const struct layout *luajit);

/*
 * Do the flags of the events of connections in use say of the same ones as the tree that they have a
 * timer? timers are all of a moment at which nothing ran. Unproven if no connection has one, or memory
 * cannot be read.
 */
enum timer_flags { TIMER_FLAGS_UNPROVEN, TIMER_FLAGS_AGREE, TIMER_FLAGS_DIFFER };

enum timer_flags timers_compare_flags(struct memory *memory, const struct timers *timers, uint64_t offset,
				      const struct connections *connections);

enum timer_kind {
	TIMER_LUA,        /* ngx.timer */
	TIMER_COROUTINE,  /* a coroutine waits, for example in ngx.sleep */
	TIMER_CONNECTION, /* to read or write */
	TIMER_OTHER,
	TIMER_UNKNOWN, /* where its event begins is unknown */
};

struct timer_event {
	enum timer_kind kind;
	uint64_t subject; /* of ngx.timer: what the module notes of it; the coroutine; the connection */
};

/* What a timer is of. offset is that of timers_offset(). luajit may be NULL. */
struct timer_event timer_event_read(struct memory *memory, const struct timer *timer, uint64_t offset,
				    const struct connections *connections, const struct layout *luajit);

enum { TIMER_WORDS_MAX = 16 };

/* The words of an event before its timer: one of them is the address of its handler. Returns how many. */
size_t timer_event_words(struct memory *memory, const struct timer *timer, uint64_t offset,
			 uint64_t ret_words[TIMER_WORDS_MAX]);

#endif

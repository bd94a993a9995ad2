/* SPDX-License-Identifier: MIT */
/*
 * same_state: read a Lua state in one hold after the other, as long as it is the one that the first hold has
 * met.
 *
 * Programs may open a state for each request. What is closed has left its memory to anything: to another
 * state, too, at the same address. That one has another registry, or another random seed of its strings'
 * hashes (LuaJIT 2.1 since June 2020). Without such seeds, one whose registry is where the first one had it
 * cannot be told from that one.
 */
#ifndef LJSPY_SAME_STATE_H
#define LJSPY_SAME_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "memory/memory.h"
#include "src/linux/threads/hold.h"
#include "unwind/lua/global_state.h"

/* The first three are the caller's; the others begin as zeros. */
struct same_state {
	struct hold *hold;
	struct memory *memory;
	const struct global_state *global;
	bool is_met;
	uint64_t registry, seed; /* of the one met; seed is 0 where there is none */
};

enum same_state_read {
	SAME_STATE_READ,
	SAME_STATE_CLOSED,   /* or another one: read() was not called */
	SAME_STATE_NOT_HELD, /* what read() saw is worth nothing */
};

/* As hold_while(), but where the state is not the same any more, neither read() nor undo() is called. */
enum same_state_read same_state_hold(struct same_state *same, void (*read)(void *context),
				     void (*undo)(void *context), void *context);

#endif

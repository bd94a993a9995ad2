/* SPDX-License-Identifier: MIT */
/*
 * same_state: is a Lua state still the one that the first hold has met?
 *
 * Programs may open a state for each request. What is closed has left its memory to anything: to another state, too,
 * at the same address. That one has another registry, or another random seed of its strings' hashes (LuaJIT 2.1 since
 * June 2020). Without such seeds, one whose registry is where the first one had it cannot be told from that one.
 */
#ifndef LJSPY_SAME_STATE_H
#define LJSPY_SAME_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "memory/memory.h"
#include "unwind/lua/global_state.h"

/* Begins as zeros. */
struct same_state {
	bool is_met;
	uint64_t registry, seed; /* of the one met; seed is 0 where there is none */
	uint64_t registry_now, seed_now;
};

/* In a hold: is the state open, and the one met if one was? */
bool same_state_look(struct same_state *same, struct memory *memory, const struct global_state *global);

/* The hold was good: what the look has seen is the one met. */
void same_state_met(struct same_state *same);

#endif

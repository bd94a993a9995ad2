/* SPDX-License-Identifier: MIT */
/*
 * resty_lock: the shared dictionary of the lock that a coroutine waits for in lua-resty-lock.
 *
 * lock(self, key) tries, and sleeps, again and again. self.dict is the dictionary, which is an element of
 * ngx.shared by its name (resty/lock.lua 0.04 to 0.09).
 */
#ifndef LJSPY_RESTY_LOCK_H
#define LJSPY_RESTY_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "memory/memory.h"
#include "unwind/lua/lua_table.h"
#include "unwind/stack/merged_stack.h"

/* What was found before; all zero at first. */
struct resty_lock_memo {
	uint64_t g, shared;            /* a global_State, and its ngx.shared; 0: not known yet */
	uint64_t dict;                 /* the dictionary found last; 0: none */
	char name[LUA_TABLE_KEY_SIZE]; /* of that */
};

struct resty_lock {
	char dict[LUA_TABLE_KEY_SIZE];
	char key[LUA_TABLE_KEY_SIZE]; /* "" if it is longer, or unknown */
};

/* Untrusted texts. False if the coroutine does not wait there, or the dictionary is unknown. */
bool resty_lock_find(struct memory *memory, const struct merged_stack *stack, struct resty_lock_memo *memo,
		     struct resty_lock *ret_lock);

#endif

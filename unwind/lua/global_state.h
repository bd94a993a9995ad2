/* SPDX-License-Identifier: MIT */
/*
 * global_state: one global_State and its data that lasts between samples.
 */
#ifndef LJSPY_LUA_GLOBAL_H
#define LJSPY_LUA_GLOBAL_H

#include <stdint.h>

#include "luajit-layouts/vm.h"

struct gateway;
struct traces;

/* Where what refers to a coroutine's request was found; 0: nowhere yet (unwind/nginx/light_threads.h). */
struct request_hints {
	uint64_t key;      /* the name, as lua_table_find() has it */
	uint64_t segments; /* offset of gc.lightudseg in global_State */
};

struct global_state {
	uint64_t g;
	const struct vm_code *vm;
	struct traces *traces;      /* NULL without a JIT compiler */
	uint8_t currentwhite;       /* of its collector at the previous sample; 0: there was none */
	struct gateway *gateway;    /* NULL: none is known */
	unsigned int gateway_tries; /* how often one was searched for */
	struct request_hints request_hints;
};

#endif

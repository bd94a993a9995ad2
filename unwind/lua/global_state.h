/* SPDX-License-Identifier: MIT */
/*
 * global_state: one global_State and its data that lasts between samples.
 */
#ifndef LJSPY_LUA_GLOBAL_H
#define LJSPY_LUA_GLOBAL_H

#include <stdbool.h>
#include <stdint.h>

#include "luajit-layouts/vm.h"

struct gateway;
struct traces;

/* The collector's counters at one look. */
struct allocation_counters {
	/* Without the VM's table of strings, which grows and shrinks from cycle to cycle. */
	uint64_t total, estimate, string_table;
	uint64_t threshold; /* of gc.total, at which the next step begins: each step sets it at its end */
	uint64_t root;      /* the newest object but for strings */
	/*
	 * If it is a table, allocation_counters_read_newest(): of its hash and array part, without a
	 * colocated one.
	 */
	uint32_t newest_nodes, newest_slots;
	uint32_t strings;     /* in the VM's table of strings */
	bool has_few_strings; /* so few that the end of a sweep halves that table */
	bool may_resize;      /* that table may be getting another size just now */
	uint8_t state;        /* g->gc.state */
	uint8_t white;        /* g->gc.currentwhite */
	bool has_finalizers;  /* objects wait for theirs to be called */
	/* ... or did, or they were called, at a look before: allocation_counters_follow() */
	bool has_finalized;
};

/* What its collector did at the previous sample. */
struct collector_look {
	struct allocation_counters counters; /* string_table is 0 if there was no sample */
	/*
	 * Of time with finalizers after a sweep, of whose bytes a part is known: told with the next marking,
	 * likewise.
	 */
	uint64_t part_bytes, part_ns;
	int64_t untold;         /* bytes allocated that no sample has; at most 0: see allocated.h */
	uint64_t cpu_ns;        /* of the thread at the last sample */
	uint64_t step_begin_ns; /* when the step that ran was seen first; 0: none ran */
	uint64_t step_gap_ns;   /* CPU time from sample to sample in steps, about; 0: unknown */
};

/* Where what refers to a coroutine's request was found; 0: nowhere yet (unwind/nginx/light_threads.h). */
struct request_hints {
	uint64_t key;      /* the name, as lua_table_find() has it */
	uint64_t segments; /* offset of gc.lightudseg in global_State */
};

struct global_state {
	uint64_t g;
	uint64_t serial; /* another one may begin at the address of one that was closed */
	const struct vm_code *vm;
	struct traces *traces; /* NULL without a JIT compiler */
	uint8_t currentwhite;  /* of its collector at the previous sample; 0: there was none */
	struct collector_look collector;
	struct gateway *gateway;    /* NULL: none is known */
	unsigned int gateway_tries; /* how often one was searched for */
	struct request_hints request_hints;
};

#endif

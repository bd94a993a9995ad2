/* SPDX-License-Identifier: MIT */
/*
 * trace_calls: the functions that a trace visibly calls.
 *
 * A call leaves no instruction in the IR. Two things show it: the check that the
 * function is the one called while recording, with that function as a constant
 * (lj_record.c, rec_call_specialize()), and the snapshots taken within it. A call
 * site mostly calls the same function, so snapshots of other traces of the same
 * code count too.
 */
#ifndef LJSPY_TRACE_CALLS_H
#define LJSPY_TRACE_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/trace/trace.h"
#include "unwind/lua/lua_objects.h"

enum {
	TRACE_CALLEES_MAX = 256, /* functions and prototypes considered for a trace */
	TRACE_CHECKS_MAX = 512,
	TRACE_CALLS_MAX = 256,    /* known calls */
	TRACE_UPVALUES_MAX = 256, /* upvalues that are accessed */
	TRACE_STORES_MAX = 64,    /* functions that are stored in upvalues */
};

enum trace_check_of {
	CHECK_OF_UNKNOWN,
	CHECK_OF_TABLE, /* as of metamethods */
	CHECK_OF_UPVALUE,
};

/* The check of a function before its call. */
struct trace_check {
	uint32_t ref;
	const struct proto *callee; /* NULL for a builtin */
	uint64_t function;          /* GCfunc; 0 if any closure of the prototype passes */
	enum trace_check_of of;     /* where the function was read from */
	uint64_t key;               /* of a table: by this string constant; 0 if unknown */
};

/* An access to an upvalue in memory. */
struct trace_upvalue {
	uint32_t ref;
	uint64_t function; /* GCfunc; 0 if it is no constant */
	unsigned index;
};

/* A function that the trace stores in an upvalue. */
struct trace_store {
	struct trace_upvalue upvalue; /* ref: of the store */
	uint64_t stored;              /* GCfunc; 0 if it is no constant */
};

/* A call that a snapshot or the path shows. */
struct trace_call {
	uint64_t pc;
	const struct proto *callee;
};

struct trace_calls {
	const struct proto *callees[TRACE_CALLEES_MAX]; /* those among the constants, each once */
	size_t callee_count;
	const struct function_object *functions[TRACE_CALLEES_MAX]; /* likewise, also builtins */
	size_t function_count;
	bool has_builtin;                            /* a builtin is among the constants */
	bool is_incomplete;                          /* there are more constants, or some were not read */
	struct trace_check checks[TRACE_CHECKS_MAX]; /* by rising ref */
	uint32_t check_count;
	struct trace_call calls[TRACE_CALLS_MAX]; /* each once */
	size_t call_count;
	struct trace_upvalue upvalues[TRACE_UPVALUES_MAX]; /* each once, by its first access */
	size_t upvalue_count;
	struct trace_store stores[TRACE_STORES_MAX]; /* by rising ref */
	size_t store_count;
};

/* Find a trace's callees, checks and calls. The result points into objects. */
void trace_calls_find(struct trace_calls *ret_calls, const struct trace_numbers *numbers,
		      const struct trace *trace, const struct layout *layout, struct lua_objects *objects);

/*
 * Can the trace call this function? Each Lua function that it calls is among its constants, or the
 * prototype is, if that has many closures (lj_record.c, rec_call_specialize()). True if not all are known.
 */
bool trace_calls_may_call(const struct trace_calls *calls, const struct proto *proto);

/* The same for a function that may be a builtin. */
bool trace_calls_may_call_function(const struct trace_calls *calls, const struct function_object *function);

/* Add a call that the path leads through. */
void trace_calls_add(struct trace_calls *calls, uint64_t pc, const struct proto *callee);

/* The checks among the IR instructions from ref up to end_ref. */
void trace_calls_checks(const struct trace_calls *calls, uint32_t ref, uint32_t end_ref, uint32_t *ret_first,
			uint32_t *ret_end);

#endif

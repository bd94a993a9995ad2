/* SPDX-License-Identifier: MIT */
/*
 * trace_calls: whom a trace calls, as far as it can be seen.
 *
 * A call leaves no instruction of its own in the IR. What shows it: the check
 * that the function is the one which was called when the trace was recorded,
 * with that function among the constants (lj_record.c, rec_call_specialize()),
 * and the snapshots that were taken in it. As the same place mostly calls the
 * same function, snapshots of other traces of the same code count, too.
 */
#ifndef LJSPY_TRACE_CALLS_H
#define LJSPY_TRACE_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/jit/traces.h"
#include "unwind/lua/lua_objects.h"

enum {
	TRACE_CALLEES_MAX = 256,	/* functions and prototypes of a trace that are considered */
	TRACE_CHECKS_MAX = 512,
	TRACE_CALLS_MAX = 256,		/* places of calls that are known */
};

/* Of the function that is called, before it is. */
struct trace_check {
	uint32_t ref;
	const struct proto *callee;	/* NULL for a builtin */
};

/* What a snapshot or the path has shown to be called from a place. */
struct trace_call {
	uint64_t pc;
	const struct proto *callee;
};

struct trace_calls {
	const struct proto *callees[TRACE_CALLEES_MAX];		/* all that are among the constants */
	size_t callee_count;
	const struct function_object *functions[TRACE_CALLEES_MAX];	/* of Lua, likewise */
	size_t function_count;
	bool has_builtin;					/* among them */
	struct trace_check checks[TRACE_CHECKS_MAX];		/* by rising ref */
	uint32_t check_count;
	struct trace_call calls[TRACE_CALLS_MAX];		/* each once */
	size_t call_count;
};

void trace_calls_find(struct trace_calls *ret_calls, const struct traces *traces,
		      const struct trace *trace, const struct layout *layout,
		      struct lua_objects *objects);

/* The path was found to lead through this call. */
void trace_calls_add(struct trace_calls *calls, uint64_t pc, const struct proto *callee);

/* Which of the checks are among these IR instructions? */
void trace_calls_checks(const struct trace_calls *calls, uint32_t ref, uint32_t end_ref,
			uint32_t *ret_first, uint32_t *ret_end);

#endif

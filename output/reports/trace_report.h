/* SPDX-License-Identifier: MIT */
/*
 * trace_report: the traces of a process and their samples, ready to write.
 */
#ifndef LJSPY_TRACE_REPORT_H
#define LJSPY_TRACE_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include <jansson.h>

#include "output/sample/frame.h"
#include "output/sample/sample.h"
#include "unwind/compiled/not_compiled.h"
#include "unwind/compiled/trace_list.h"

struct trace_row {
	struct trace_summary trace;
	const struct function *start; /* the function that the trace starts in; NULL if unknown */
	uint32_t line;                /* where it starts; 0 if unknown */
	uint64_t samples, cpu_ns;     /* in this trace */
};

/* Code that LuaJIT does not compile. */
struct interpreted_row {
	const struct function *function;
	uint32_t line;
	bool is_loop; /* a loop at that line; else the function */
	enum not_compiled_cause cause;
	const char *reason; /* of the last failure, static; NULL if unknown */
	unsigned times;     /* how often it has failed; 0 if unknown */
	uint64_t cpu_ns;    /* that the function, not compiled, was the innermost Lua function */
	uint64_t proto;     /* the address of its prototype */
};

/* An exit of a trace that was taken. */
struct exit_row {
	uint32_t trace, number;
	uint32_t taken;    /* how often, before a side trace was made */
	bool has_side;     /* one was made: taken is unknown */
	uint32_t side;     /* its number; 0 if there is none, or not any more, or it was not read */
	uint64_t side_ns;  /* in it */
	uint64_t trace_ns; /* in the exit's trace */
	const struct function *function; /* where the interpreter goes on; NULL if unknown */
	uint32_t line;                   /* 0 if unknown */
};

struct trace_vm {
	uint64_t g;   /* address of its global_State */
	char *module; /* path of the file with LuaJIT; untrusted */
	bool has_jit;
	bool complete;              /* everything was readable */
	bool traces_left;           /* there are traces that were not read; then not complete */
	bool closed;                /* it was closed before all was read; then not complete */
	struct trace_limits limits; /* zeros if unknown */
	struct trace_row *rows;
	size_t row_count, row_size;
	struct exit_row *exits;
	size_t exit_count, exit_size;
	struct interpreted_row *interpreted;
	size_t interpreted_count, interpreted_size;
};

struct trace_process {
	pid_t pid;
	char *name;           /* untrusted; NULL if unknown */
	uint64_t duration_ns; /* of sampling */
	uint64_t samples, cpu_ns;
	uint64_t state_ns[VM_STATE_COUNT]; /* cpu_ns by state of the VM */
	uint64_t gone_ns;                  /* in traces that the state at their address no longer has */
	size_t gone_count;                 /* ... and how many of them samples have seen */
	/* in traces of Lua states that are not known in the end, closed or read in part */
	uint64_t unlisted_ns;
	struct trace_vm *vms;
	size_t vm_count, vm_size;
};

/* Functions must outlive the process. name is copied and may be NULL. NULL when memory is short. */
struct trace_process *trace_process_new(pid_t pid, const char *name);
void trace_process_free(struct trace_process *process);

/* Add a VM; module is copied. The result is valid until the next is added. NULL when memory is short. */
struct trace_vm *trace_process_add_vm(struct trace_process *process, uint64_t g, const char *module);

/* Add a trace, in ascending order of numbers. 0 or -ENOMEM. */
int trace_vm_add(struct trace_vm *vm, const struct trace_row *row);
/* Add a place, unless it is there already, or reads the same and has no time of its own. 0 or -ENOMEM. */
int trace_vm_add_interpreted(struct trace_vm *vm, const struct interpreted_row *row);

/* Add an exit, in ascending order of traces and numbers. 0 or -ENOMEM. */
int trace_vm_add_exit(struct trace_vm *vm, const struct exit_row *row);

/*
 * Set the parents of stitched traces, and the side traces and times of exits. Call this when all traces are
 * added that were read, and before sorting.
 */
void trace_vm_find_parents(struct trace_vm *vm);

/* Its side trace may be among those that were not read: then neither its number nor its time is known. */
bool trace_vm_may_have_side(const struct trace_vm *vm, const struct exit_row *row);

/* Sort all rows by time, the largest first; traces then by number, exits by how often they were taken. */
void trace_process_sort(struct trace_process *process);

/* "root" and so on; and the link types of jit.util: "loop", "tail-recursion" and so on. */
const char *trace_kind_name(enum trace_kind kind);
const char *trace_linktype_name(enum trace_linktype linktype);

/* "blacklisted", "aborted", "off" */
const char *not_compiled_cause_name(enum not_compiled_cause cause);

/* No room for one more area of machine code: LuaJIT will then flush all traces. */
bool trace_vm_is_full(const struct trace_vm *vm);

/* The share of ns in the process's CPU time, 0 to 1; 0 if it used none. */
double trace_process_share(const struct trace_process *process, uint64_t ns);

/* Print for people. On failure, the stream's error flag is set. */
void trace_process_print(FILE *out, const struct trace_process *process);

/* The JSON object described in README.md. The caller owns the reference. NULL when memory is short. */
json_t *trace_process_json(const struct trace_process *process);

#endif

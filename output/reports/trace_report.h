/* SPDX-License-Identifier: MIT */
/*
 * trace_report: the traces of a process and what was seen of them, ready to be written.
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
#include "unwind/jit/trace_list.h"

struct trace_row {
	struct trace_summary trace;
	const struct function *start;	/* the function that it starts in; NULL if unknown */
	uint32_t line;			/* where; 0 if unknown */
	uint64_t samples, cpu_ns;	/* seen in it */
};

/* Code that LuaJIT has given up compiling. */
struct given_up {
	const struct function *function;
	uint32_t line;
	bool is_loop;			/* a loop at that line, else the whole function */
};

struct trace_vm {
	uint64_t g;			/* address of its global_State */
	char *module;			/* path of the file that LuaJIT is in; untrusted */
	bool has_jit;
	bool complete;			/* everything could be read */
	uint64_t mcode_allocated, mcode_max;	/* bytes; 0 if unknown */
	struct trace_row *rows;
	size_t row_count, row_size;
	struct given_up *given_up;
	size_t given_up_count, given_up_size;
};

struct trace_process {
	pid_t pid;
	char *name;			/* untrusted; NULL if unknown */
	uint64_t duration_ns;		/* for which samples were taken */
	uint64_t samples, cpu_ns;
	uint64_t state_ns[VM_STATE_COUNT];	/* cpu_ns, by what the VM was doing */
	uint64_t gone_ns;		/* in traces that are not there any more */
	struct trace_vm *vms;
	size_t vm_count, vm_size;
};

/* Functions must outlive it. NULL when memory is short; name may be NULL. */
struct trace_process *trace_process_new(pid_t pid, const char *name);
void trace_process_free(struct trace_process *process);

/* Valid until the next one is added. NULL when memory is short. */
struct trace_vm *trace_process_add_vm(struct trace_process *process, uint64_t g, const char *module);

/* 0 or -ENOMEM. */
int trace_vm_add(struct trace_vm *vm, const struct trace_row *row);
/* The same place is added once. */
int trace_vm_add_given_up(struct trace_vm *vm, const struct given_up *given_up);

/* Fill in the parents of stitched traces, once all traces are there. */
void trace_vm_find_parents(struct trace_vm *vm);

/* Sort the rows: by time, then by number. */
void trace_process_sort(struct trace_process *process);

/* "root" and so on, and as jit.util has them: "loop", "tail-recursion" and so on. */
const char *trace_kind_name(enum trace_kind kind);
const char *trace_linktype_name(enum trace_linktype linktype);

/* The share of the process's time; 0 if it has used none. */
double trace_process_share(const struct trace_process *process, uint64_t ns);

/* For people to read. The stream's error flag tells of failures. */
void trace_process_print(FILE *out, const struct trace_process *process);

/* As README.md has it. The caller owns the reference; NULL when memory is short. */
json_t *trace_process_json(const struct trace_process *process);

#endif

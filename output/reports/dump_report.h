/* SPDX-License-Identifier: MIT */
/*
 * dump_report: the result of a dump, grouped and ready to write.
 *
 * Coroutines of one VM with equal state, phase and stack form a group.
 */
#ifndef LJSPY_DUMP_REPORT_H
#define LJSPY_DUMP_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include <jansson.h>

#include "output/sample/frame.h"
#include "unwind/lua/lua_thread.h"
#include "unwind/values/frame_values.h"

struct dump_stack {
	struct frame *frames;        /* leaf first; owned */
	struct variables *variables; /* of each frame; NULL if they are not wanted; owned */
	size_t count;
};

struct dump_thread {
	pid_t tid;
	char *name;        /* untrusted; NULL if unknown */
	const char *state; /* "running", "asleep" and the like */
	const char *phase; /* of its request, see sample.phase */
	struct dump_stack stack;
};

struct dump_group {
	enum coroutine_state state;
	const char *phase; /* of their requests, see sample.phase */
	uint64_t count;
	struct dump_stack stack; /* empty for active and for finished coroutines */
};

struct dump_vm {
	uint64_t g;    /* address of its global_State */
	char *module;  /* path of the file with LuaJIT; untrusted */
	bool complete; /* every coroutine was found and read */
	uint64_t counts[COROUTINE_STATE_COUNT];
	struct dump_group **groups; /* set by dump_process_sort(), the largest first */
	size_t group_count;
	struct dump_index *index; /* private to dump_report.c */
};

struct dump_process {
	pid_t pid;
	char *name; /* untrusted; NULL if unknown */
	struct dump_thread *threads;
	size_t thread_count, thread_size;
	struct dump_vm *vms;
	size_t vm_count, vm_size;
	uint64_t holds; /* how often threads were held to read coroutines */
	uint64_t longest_hold_ns;
	size_t variable_count; /* of all stacks */
	bool variables_cut;    /* some frames have none here, because there are too many */
};

/* Functions in frames must outlive the process. name is copied and may be NULL. NULL when memory is short. */
struct dump_process *dump_process_new(pid_t pid, const char *name);
void dump_process_free(struct dump_process *process);

/*
 * Add a thread with this stack in place of thread->stack. Name and frames are copied;
 * state and phase are literals. Takes over the variables, even on failure. 0 or -ENOMEM.
 */
int dump_process_add_thread(struct dump_process *process, const struct dump_thread *thread,
			    const struct dump_stack *stack);

/* Free the variables of each frame. */
void dump_stack_free_variables(struct dump_stack *stack);

/* Add a VM; module is copied. The result is valid until the next is added. NULL when memory is short. */
struct dump_vm *dump_process_add_vm(struct dump_process *process, uint64_t g, const char *module);
/*
 * Add a coroutine to its group; the frames are copied. phase is a literal or NULL. Takes over
 * the variables, even on failure; with variables, a coroutine is a group of its own. 0 or -ENOMEM.
 */
int dump_vm_add(struct dump_vm *vm, enum coroutine_state state, const char *phase,
		const struct dump_stack *stack);

/* Sort the groups: largest first, then by state and first appearance. Without memory, groups is NULL. */
void dump_process_sort(struct dump_process *process);

/* The name of a state: "suspended" and so on. */
const char *dump_state_text(enum coroutine_state state);

/* Print for people. On failure, the stream's error flag is set. */
void dump_process_print(FILE *out, const struct dump_process *process);

/*
 * An object with pid, name, threads and vms, see README.md. The certainty of a
 * frame is exact, nearest or function. The caller owns the reference. NULL
 * when memory is short.
 */
json_t *dump_process_json(const struct dump_process *process);

#endif

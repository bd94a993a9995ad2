/* SPDX-License-Identifier: MIT */
/*
 * dump_report: what a dump has found, grouped and ready to be written.
 *
 * Coroutines of one VM whose state, phase and stack are equal are one group.
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

struct dump_stack {
	struct frame *frames;	/* leaf first; owned */
	size_t count;
};

struct dump_thread {
	pid_t tid;
	char *name;		/* untrusted; NULL if unknown */
	const char *state;	/* "running", "asleep" and the like */
	const char *phase;	/* of its request, as sample.phase has it */
	struct dump_stack stack;
};

struct dump_group {
	enum coroutine_state state;
	const char *phase;		/* of their requests, as sample.phase has it */
	uint64_t count;
	struct dump_stack stack;	/* empty for those that are active, and those that have finished */
};

struct dump_vm {
	uint64_t g;		/* address of its global_State */
	char *module;		/* path of the file that LuaJIT is in; untrusted */
	bool complete;		/* every coroutine was found and read */
	uint64_t counts[COROUTINE_STATE_COUNT];
	struct dump_group **groups;	/* the largest first once sorted */
	size_t group_count;
	struct dump_index *index;	/* the module's own */
};

struct dump_process {
	pid_t pid;
	char *name;		/* untrusted; NULL if unknown */
	struct dump_thread *threads;
	size_t thread_count, thread_size;
	struct dump_vm *vms;
	size_t vm_count, vm_size;
	uint64_t holds;		/* how often threads were held for coroutines */
	uint64_t longest_hold_ns;
};

/* Functions in frames must outlive it. NULL when memory is short; name may be NULL. */
struct dump_process *dump_process_new(pid_t pid, const char *name);
void dump_process_free(struct dump_process *process);

/*
 * A thread with this stack instead of its own. Name and frames are copied;
 * state and phase are literals. 0 or -ENOMEM.
 */
int dump_process_add_thread(struct dump_process *process, const struct dump_thread *thread,
			    const struct frame *frames, size_t count);

/* Valid until the next one is added. NULL when memory is short. */
struct dump_vm *dump_process_add_vm(struct dump_process *process, uint64_t g, const char *module);
/* phase is a literal or NULL. */
int dump_vm_add(struct dump_vm *vm, enum coroutine_state state, const char *phase,
		const struct frame *frames, size_t count);

/* Sort the groups: largest first, then in the order of their states and first appearance. */
void dump_process_sort(struct dump_process *process);

/* "suspended" and so on. */
const char *dump_state_text(enum coroutine_state state);

/* For people to read. The stream's error flag tells of failures. */
void dump_process_print(FILE *out, const struct dump_process *process);

/*
 * An object with pid, name, threads and vms, see README.md. Certainty of a
 * frame is exact, nearest or function. The caller owns the reference; NULL
 * when memory is short.
 */
json_t *dump_process_json(const struct dump_process *process);

#endif

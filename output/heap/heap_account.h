/* SPDX-License-Identifier: MIT */
/*
 * heap_account: what is known of a VM's heap besides its graph, and how it was read.
 */
#ifndef LJSPY_HEAP_ACCOUNT_H
#define LJSPY_HEAP_ACCOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* How the memory was read. */
enum heap_method {
	HEAP_FROM_CORE,      /* a core file: nothing runs */
	HEAP_WHILE_ASLEEP,   /* without a stop; no thread of the process ran meanwhile */
	HEAP_IN_SLICES,      /* held for a slice after the other, of different times; only in old files */
	HEAP_ONE_HOLD,       /* held once, for the whole copy */
	HEAP_WHILE_RUNNING,  /* without a stop while it ran; only in old files */
	HEAP_WRITTEN_PAGES,  /* held once, for what was written since it was copied, by the kernel's marks */
	HEAP_COMPARED,       /* held for what was seen to change; the rest was compared afterwards */
	HEAP_UNCHANGED,      /* while threads ran; a second look found all of it unchanged */
	HEAP_MISSING,        /* not at all: the graph has the root alone; gc_total is 0 if it is not known */
	HEAP_METHOD_UNKNOWN, /* in a file: in a way that only a later ljspy knows, or that it does not say */
	HEAP_METHOD_COUNT
};

/*
 * What remains uncertain. Each is a count of objects or references; 0 everywhere: all is as it was at one
 * time.
 */
struct heap_uncertain {
	uint64_t unread_objects;  /* their memory could not be read; they are missing */
	uint64_t unread_bytes;    /* of the VM's memory that was not copied */
	uint64_t broken_chains;   /* chains of objects that led nowhere, or in a circle */
	uint64_t unknown_objects; /* of a type that no LuaJIT has */
	uint64_t dangling;        /* references to what is no object of the heap */
	uint64_t unsized_objects; /* counted with the least that they can have */
	uint64_t changed_pages;   /* changed after they were copied, and were not copied again */
	uint64_t changed_objects; /* that lie in such pages */
	uint64_t left_out;        /* objects beyond what ljspy reads of one VM */
};

/* A number that this LuaJIT's layout may lack. */
struct heap_figure {
	bool known;
	uint64_t value;
};

struct heap_account {
	pid_t pid;       /* of the process; 0: none, a core file tells it not always */
	char *process;   /* its name; untrusted; NULL if unknown; owned */
	unsigned int vm; /* 1 for the process's first VM */
	uint64_t g;      /* address of its global_State */
	char *module;    /* path of the file with LuaJIT; untrusted; NULL if unknown; owned */
	int64_t time;    /* when it was read, seconds since 1970; 0 if unknown */

	/* Of global_State.gc; see LuaJIT's lj_obj.h. */
	uint64_t gc_total; /* what the VM says that it has allocated */
	uint64_t sum;      /* of all nodes' bytes */
	/* A literal: "pause", "propagate", "atomic", "sweep strings", "sweep", "finalize" or "?". */
	const char *gc_state;
	struct heap_figure threshold, estimate, pause, stepmul; /* pause and stepmul in % */

	uint64_t dead_objects, dead_bytes; /* found dead, not swept yet */
	bool dead_known;                   /* or are not known: the layout lacks gc.currentwhite */

	bool c_unnamed; /* its functions in C have no texts, as in files before version 3 */

	enum heap_method method;
	unsigned int attempts;    /* how often it was read, 1 if at once */
	const char *retry_reason; /* why the last one but this was given up, a literal; NULL: it was not */
	uint64_t holds;           /* how often threads were held */
	uint64_t longest_hold_ns, held_ns;
	uint64_t copied_bytes;      /* of the target's memory, while it ran or was held */
	uint64_t copied_held_bytes; /* of these, while it was held */
	struct heap_uncertain uncertain;
};

/* gc_total - sum: 0 if the graph has everything. */
static inline int64_t heap_account_difference(const struct heap_account *account)
{
	return (int64_t)(account->gc_total - account->sum);
}

static inline bool heap_account_is_missing(const struct heap_account *account)
{
	return account->method == HEAP_MISSING;
}

/*
 * Does the graph have everything? Not if the sums differ, or if memory with references could not be read,
 * whose objects may then seem to be held by others or by nothing.
 */
static inline bool heap_account_is_whole(const struct heap_account *account)
{
	const struct heap_uncertain *uncertain = &account->uncertain;

	return !heap_account_is_missing(account) && heap_account_difference(account) == 0 &&
	       uncertain->unread_objects == 0 && uncertain->unread_bytes == 0 &&
	       uncertain->broken_chains == 0 && uncertain->unknown_objects == 0 && uncertain->left_out == 0;
}

#endif

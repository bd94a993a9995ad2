/* SPDX-License-Identifier: MIT */
/*
 * heap_unread: tell why heaps of a process could not be read, and in a series not again and again.
 */
#ifndef LJSPY_HEAP_UNREAD_H
#define LJSPY_HEAP_UNREAD_H

#include <stdbool.h>
#include <sys/types.h>

#include "src/heap/process_heaps.h"
#include "src/linux/proc/permission.h"

/* Zeroed memory is no reason. */
struct heap_unread {
	enum {
		HEAP_UNREAD_NOT,
		HEAP_UNREAD_STATES,   /* of all or some states, by what is below */
		HEAP_UNREAD_NO_STATE, /* the process has none that is known */
		HEAP_UNREAD_LOOK,     /* it could not be looked at: error */
		HEAP_UNREAD_OWN,      /* ljspy has not what it needs: error */
	} reason;
	bool too_large, busy, closed;
	int error;                         /* negative errno */
	struct permission_verdict verdict; /* of a look, unless there is no LuaJIT: -ENOEXEC */
};

/*
 * Why heaps are missing; error is that of the look at the process. Call it right after the look: a cause may
 * pass.
 */
struct heap_unread heap_unread_why(const struct process_heaps *heaps, pid_t pid, int error);

/* Why a process cannot be looked at. As above. */
struct heap_unread heap_unread_look(pid_t pid, int error);

/*
 * May it pass by itself, though no look has found a heap so far: another tracer, an execve(), what ljspy is
 * short of? A right that is missing stays, and nobody knows that there will ever be Lua where there is none.
 */
bool heap_unread_may_pass(const struct heap_unread *why);

/*
 * Tell it, unless it is what *told says, and keep it there. goes_on: a series comes to the process again by
 * itself. heaps may be NULL where the reason is no state's.
 */
void heap_unread_tell(struct heap_unread *told, const struct heap_unread *why,
		      const struct process_heaps *heaps, pid_t pid, bool goes_on);

/* "Of 3 Lua states of core.1234, 1 is missing." */
void heap_unread_tell_count(const struct process_heaps *heaps, const char *of);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * permission: why ljspy may not trace a process, and what to do about it.
 */
#ifndef LJSPY_PERMISSION_H
#define LJSPY_PERMISSION_H

#include <stdbool.h>
#include <sys/types.h>

#include "src/linux/proc/process.h"

enum permission_reason {
	PERMISSION_NO_SUCH_PROCESS,
	PERMISSION_FOREIGN_PROC,      /* /proc is another pid namespace's, or missing */
	PERMISSION_TOO_FEW_FILES,     /* may be open at a time */
	PERMISSION_TOO_FEW_PROCESSES, /* or signals that may be pending */
	PERMISSION_TOO_LITTLE_MEMORY, /* for ljspy */
	PERMISSION_HIDDEN,            /* /proc hides other users' processes (hidepid) */
	PERMISSION_ZOMBIE,
	PERMISSION_KERNEL_THREAD,
	PERMISSION_SELF,
	PERMISSION_32BIT,
	PERMISSION_OTHER_TRACER,
	PERMISSION_SECCOMP, /* a filter on ljspy itself forbids ptrace */
	PERMISSION_YAMA,
	PERMISSION_OTHER_USER,
	PERMISSION_MISSING_CAPABILITY, /* root, but without CAP_SYS_PTRACE (a container) */
	PERMISSION_NOT_DUMPABLE,
	PERMISSION_IN_EXEC,    /* it is in the middle of an execve() */
	PERMISSION_UNREADABLE, /* reading its memory does not come to an end, or has not yet */
	PERMISSION_NO_SEIZE,   /* the kernel has no PTRACE_SEIZE */
	PERMISSION_UNKNOWN,
};

struct permission_verdict {
	enum permission_reason reason;
	char sentence[512]; /* the cause, with a full stop */
	char remedy[512];   /* what to do about it; "" if nothing helps */
};

/* Explain why tracing pid failed with this positive errno. Untrusted names in the text are not escaped. */
void permission_diagnose(pid_t pid, int error, struct permission_verdict *ret_verdict);

/* The same for an error that concerns no process in particular; false if this explains nothing. */
bool permission_diagnose_error(int error, struct permission_verdict *ret_verdict);

/* The same for a command that could not be started to trace it. */
bool permission_diagnose_launch(const char *command, int error, struct permission_verdict *ret_verdict);

/* Has the calling thread this capability in effect? number is of linux/capability.h. */
bool permission_has_capability(int number);

/*
 * Is permission_take_target_identity() worth trying: is ljspy root without CAP_SYS_PTRACE, and the process
 * another user's?
 */
bool permission_would_take_identity(const struct process *process);

/*
 * If ljspy is root without CAP_SYS_PTRACE: give the calling thread the target's user
 * and group for good, which is often enough. Threads and processes that it starts
 * from then on have them, too. All others keep theirs, and deal with files. 0 if the
 * identity is now the target's, -EALREADY if there is nothing to do, or a negative
 * errno and nothing has changed.
 */
int permission_take_target_identity(const struct process *process);

#endif

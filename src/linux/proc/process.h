/* SPDX-License-Identifier: MIT */
/*
 * process: what /proc tells about a process, and finding processes by name.
 */
#ifndef LJSPY_PROCESS_H
#define LJSPY_PROCESS_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "memory/errand.h"

enum {
	PROCESS_NAME_MAX = 64,         /* kernel threads' names may be this long */
	PROCESS_COMMAND_MAX = 1 << 16, /* bytes of the command line that ljspy keeps */
};

struct process {
	pid_t pid;
	pid_t own_pid; /* in its own pid namespace */
	pid_t parent_pid;
	pid_t tracer_pid; /* 0 if it is not traced, else a thread id of the tracer */
	uid_t uid, euid, suid;
	gid_t gid, egid, sgid;
	char state; /* as in /proc/PID/status: R S D T t Z X I */
	bool kernel_thread;
	bool is_32bit;               /* false also if unknown */
	uint64_t capabilities;       /* permitted ones, by bit */
	uint64_t pending_signals;    /* of the whole process, by bit from signal 1 on */
	uint64_t start_ticks;        /* since boot; pid and start together never recur */
	char name[PROCESS_NAME_MAX]; /* comm; untrusted */
	char *executable; /* target of /proc/PID/exe without " (deleted)"; NULL if refused; owned */
	bool executable_deleted;
	char *command;         /* arguments, each ended by NUL; owned */
	size_t command_length; /* bytes with the NULs; 0 for kernel threads and zombies */
};

/*
 * 0, -ESRCH when there is no such process, -EBUSY if process_is_in_exec(), or another negative errno. Free
 * with process_clear().
 */
int process_read(pid_t pid, struct process *ret_process);
void process_clear(struct process *process);

/*
 * The same without the executable and the command, which are of the process's memory: this does not wait for
 * the lock of that memory, which the kernel may hold for ever. There is nothing to clear.
 */
int process_read_outside(pid_t pid, struct process *ret_process);

/*
 * What /proc/TID/status alone tells of a process or thread, which the kernel shows also in the middle of an
 * execve(), as process_is_in_exec() does: its state, tracer, users, groups, capabilities, signals, own_pid.
 * Errors as of process_read(). There is nothing to clear.
 */
int process_read_status(pid_t tid, struct process *ret_process);

/* Has a signal stopped it (SIGSTOP, Ctrl-Z)? False if that is not known. */
bool process_is_stopped(pid_t pid);

/* Has it ended with all its threads, and its parent has not reaped it yet? */
bool process_is_zombie(const struct process *process);

/* The same for its first thread alone, or for the thread whose id was read. */
bool process_thread_is_zombie(const struct process *process);

/* The process that started or inherited this one; 0 if there is none or the process is gone. */
pid_t process_parent(pid_t pid);

/*
 * Is it in the middle of an execve()? Whoever reads its memory, maps, stat, auxv, exe or the like then waits,
 * by a wait that only SIGKILL ends, until the kernel has dropped the old memory and closed files: a disk or
 * server that one of them is on may never answer. This does not wait for that.
 */
bool process_is_in_exec(pid_t pid);

/*
 * Has it memory, but no code of a program? So it is in an execve(), in gVisor always, and else where a
 * process has told the kernel so. False if that is not known. This never waits; process_is_in_exec() may, for
 * the lock of the memory of a process that lacks code and is not in an execve().
 */
bool process_lacks_code(pid_t pid);

/*
 * The same as process_is_in_exec() in a fifth of the time, for who asks often and keeps its
 * /proc/PID/statm open; statm may be negative.
 */
bool process_is_in_exec_by(int statm, pid_t pid);

/* The process that a thread belongs to, or 0. */
pid_t process_of_thread(pid_t tid);

/* The same if the id is a thread's and no process's, else 0: both have directories in /proc alike. */
pid_t process_if_thread(pid_t id);

/*
 * The id of a thread through which the memory of the process can be read: pid itself,
 * or another one if the first thread has ended. 0 if there is none; pid if that cannot be known, as where
 * ljspy may open no more files.
 */
pid_t process_thread_with_memory(pid_t pid);

/* Its start_ticks, read without its memory; 0 if it has ended. In the middle of an execve() this waits. */
uint64_t process_start(pid_t pid);

/*
 * The arguments joined by spaces, or the name in brackets: untrusted text for users, to
 * be freed. NULL when memory is short.
 */
char *process_title(const struct process *process);

/*
 * Compile an extended regular expression; free it with regfree(). 0, or -ENOMEM, or
 * -EINVAL with *ret_message telling what is wrong with it. Free the message;
 * ret_message may be NULL.
 */
int process_pattern(const char *pattern, regex_t *ret_pattern, char **ret_message);

/* Does it match the name, the program (first argument) or the script (next argument that is no option)? */
bool process_matches(const struct process *process, const regex_t *pattern);

/* process_read(), but without the command where that takes half a second. Never in a tracer. */
int process_read_soon(pid_t pid, struct process *ret_process);

/* A look at a process of a list. */
struct process_look {
	pid_t pid;              /* the caller sets it */
	int error;              /* as of process_read(), or that of process_look_at() */
	struct process process; /* without an error; the caller's, to be cleared */
	uint64_t cpu_ns;        /* that it took of a CPU, if it came to an end */
	pid_t reader;           /* with -ETIMEDOUT: the thread of ljspy's that goes on waiting for it */
};

/*
 * process_read() of one after the other, by a helper that waits where the kernel keeps it waiting for a
 * process's memory. Returns how many it has read. The next one has an error then: -ETIMEDOUT if it is that
 * process, from behind which the caller may go on; -EINTR if the helper takes long, or what is to be served
 * meanwhile asks for an end; or -ENOMEM.
 *
 * The errands have nothing else to do. They may be others afterwards, which wait for the same, as the helper
 * goes on waiting; or NULL. Where they serve nobody, only the kernel ends the wait, after seconds.
 */
size_t process_look_at(struct errands **errands, struct process_look *looks, size_t count);
/* Does the reader of a look still wait? */
bool process_reader_waits(pid_t reader);

struct process_list {
	struct process *processes; /* sorted by pid */
	size_t count;
	/*
	 * Those of which the kernel does not show the arguments, by their numbers. Only what can be read
	 * without is set: their names are right.
	 */
	struct process *unread;
	size_t unread_count;
};

/*
 * Look at all of these, and list those that are there. Of those that keep their reader waiting, it waits for
 * the first few for seconds, and for a moment for each of the others. With a pattern, they must match it, and
 * be processes of users that live. 0 or -ENOMEM.
 */
int process_list_read(struct process_look *looks, size_t count, const regex_t *pattern,
		      struct process_list *ret_list);

/*
 * All processes that process_matches(), without ljspy itself, kernel threads and the
 * dead. 0, or as process_pattern(), or another negative errno. Free with
 * process_list_clear().
 */
int process_find(const char *pattern, struct process_list *ret_list, char **ret_message);
void process_list_clear(struct process_list *list);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * tracer_parts: what the files of the tracer share, and its callers need not know.
 *
 *	tracees.c         the table of tracees, and what ptrace does with one
 *	tracer_reports.c  what the kernel reports of them: signals, stops, execve(), ends
 *	tracer_seizing.c  seize one, and what has become of one that does not answer
 *	tracer_stops.c    tell one to stop, await that, let it go
 *	tracer_looks.c    when ljspy is urgent, and on which CPU it awaits a look
 *	tracer_files.c    how many files are open
 */
#ifndef LJSPY_TRACER_PARTS_H
#define LJSPY_TRACER_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "memory/hash.h"
#include "src/linux/calls/interrupted_call.h"
#include "src/linux/clocks/own_turn.h"
#include "src/linux/clocks/urgent.h"
#include "src/linux/clocks/visit.h"
#include "src/linux/tracer/call_watch.h"
#include "src/linux/tracer/tracer.h"

struct seized {
	struct tracee tracee;  /* first, so that a pointer to one points to the other */
	int stat_fd;           /* of /proc/PID/task/TID/stat; negative if not open */
	bool reserved;         /* room for that file */
	bool is_seized;        /* or attached; else ljspy only knows the thread's id */
	bool attached;         /* by PTRACE_ATTACH, not seized */
	bool has_stopped;      /* attached: it has stopped once, and its options are set */
	bool asked;            /* attached: a SIGSTOP from ljspy is on its way */
	bool job_stopped;      /* a signal stopped it, which ends its call even without ljspy */
	bool expected;         /* ljspy expects it to stop, or to run on */
	uint64_t restarted_ns; /* when ljspy last restarted a call with a limit after a signal */
	uint64_t asked_ns;     /* seized: when ljspy last told it to stop */
	bool has_regs;         /* it is stopped, and regs are its registers */
	bool is_read;          /* it is held, and the caller has asked for its registers */
	struct user_regs_struct regs;
	struct restarted_call call; /* the one that the last stop has restarted */
	UT_hash_handle hh;
};

static inline struct seized *seized_of(struct tracee *tracee)
{
	return (struct seized *)tracee;
}

struct tracer {
	struct seized *seized; /* by tid */
	struct call_watch watch;
	size_t files_left;    /* how many more files may be kept open */
	size_t files_to_open; /* how many are reserved, and not open yet */
	struct own_turn turn;
	struct urgent urgent;
	struct visit visit;
	size_t expected; /* how many tracees are expected */
	bool look_is_awaited;
	uint64_t quiet_ns;       /* when no tracee had anything to report */
	struct histogram *holds; /* see tracer_count_holds(); may be NULL */
	bool stays_away, allow_attach;
	bool poll_is_due;
	bool held_late;      /* since the last tracer_has_held_late() */
	bool only_passes_on; /* see tracer_pass_on() */
	bool has_let_go;
	bool keeps_urgent;  /* after a look */
	uint64_t passed_ns; /* when a thread was last let go that had stopped by itself; 0: never */
	bool changed;       /* a tracee has ended or execed since the last tracer_poll() */
	uint64_t changes;   /* how many have so far */
};

/* tracees.c */

struct seized *tracer_find_seized(const struct tracer *tracer, pid_t tid);

/* Add a tracee in its initial state, of which ljspy only knows the id. NULL when memory is short. */
struct seized *tracer_add_seized(struct tracer *tracer, pid_t pid, pid_t tid);
void tracer_free_seized(struct tracer *tracer, struct seized *seized);

/* ljspy is urgent from telling a thread to stop until the thread runs on. */
void tracer_expect(struct tracer *tracer, struct tracee *tracee, bool expected);

/* A tracee has ended or execed: tracer_poll() tells of it. */
void tracer_note_change(struct tracer *tracer);
void tracer_mark_gone(struct tracer *tracer, struct tracee *tracee);

/* The registers of a stopped thread; NULL with errno, ENOTSUP for a 32-bit program. */
const struct user_regs_struct *seized_regs(struct seized *seized);

/* What /proc/PID/task/TID/stat tells about a thread now. */
struct stat_line {
	char state;        /* a letter; 'R': it runs, or waits for a CPU */
	int cpu;           /* the last one that it was on */
	bool on_other_cpu; /* than ljspy; a thread on ljspy's CPU can only stop when ljspy sleeps */
};

/* False if the file cannot be read. */
bool seized_read_stat(const struct seized *seized, struct stat_line *ret_line);

/* Open it for good; negative if that fails. */
int seized_open_stat(const struct seized *seized);

/* Tell the thread to stop soon; once is enough. 0, or -1 if it is no tracee any more. */
int tracee_ask_to_stop(struct tracee *tracee);

/* Let a stopped thread run on. ESRCH means that it was just killed; the kernel reports its exit later. */
void tracer_continue(struct tracer *tracer, struct tracee *tracee, int signal);

/*
 * Leave it stopped, as the sender of SIGSTOP wants, but notice SIGCONT: the kernel reports it, but not of an
 * attached one, see tracer_poll().
 */
void tracer_leave_job_stopped(struct tracer *tracer, struct tracee *tracee);

/* tracer_reports.c */

/* Handle one report of the thread; false if it has none. */
bool tracer_wait_once(struct tracer *tracer, struct tracee *tracee);

/* Handle the reports of all tracees. */
void tracer_handle_reports(struct tracer *tracer);

/* tracer_seizing.c */

/* 0 or a negative errno, see tracer_seize(). */
int tracer_seize_now(struct tracer *tracer, struct seized *seized);

enum fate {
	FATE_ALIVE,  /* it is still this thread's tracee */
	FATE_ZOMBIE, /* a first thread has ended; the kernel reports that after the last one's end */
	FATE_OTHERS, /* not this thread's tracee */
	FATE_GONE,
};

/*
 * Find out, and mark the tracee if it is none any more: a thread that was not seized may have taken its id by
 * execve().
 */
enum fate tracer_check_fate(struct tracer *tracer, struct tracee *tracee);

/* tracer_looks.c */

/* After what makes ljspy urgent has changed: tracees that are expected, or a look that is awaited. */
void tracer_update_urgency(struct tracer *tracer);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * threads: the threads of one process, seized, named and metered.
 *
 * ljspy does not see threads that come and go between two looks. Their CPU time shows
 * as the difference between the process's clock and the sum over the threads.
 */
#ifndef LJSPY_THREADS_H
#define LJSPY_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "output/sample/sample.h"
#include "src/linux/clocks/scheduler.h"
#include "src/linux/tracer/tracer.h"

enum {
	THREAD_NAME_MAX = 16, /* TASK_COMM_LEN, with the NUL */
	THREADS_MAX = 65536,  /* of one process; ljspy leaves more alone */
};

/* Files of a thread in /proc that are read often, and kept open. */
enum thread_file { THREAD_SCHEDSTAT, THREAD_SYSCALL, THREAD_SCHED, THREAD_STAT, THREAD_FILE_COUNT };

struct thread_call {
	bool known;            /* the fields below are set */
	int64_t number;        /* system call; -1: asleep outside of one */
	uint64_t arguments[6]; /* set if number >= 0 */
	uint64_t sp, pc;       /* in user space */
};

/* What is known of the calls that a thread makes. Private to may_stop.c. */
struct call_watch {
	struct thread_call seen; /* the last one it was seen asleep in; not known if none */
	bool bears_stop;         /* does seen bear a stop? */
	/*
	 * When it was last seen in a call that bears no stop, CLOCK_MONOTONIC, 0: never; how long that
	 * counts.
	 */
	uint64_t fragile_seen_ns, memory_ns;
	uint64_t sleep_runs; /* thread.runs when it was last seen asleep; 0 once it has run */
	uint64_t up_runs;    /* thread.runs when it was last seen awake; 0 if it slept */
	/* At the last thread_note_place(): how often it had gone to sleep, and got a CPU. */
	uint64_t sleeps, runs;
	bool has_slept; /* since the last question whether it may be stopped */
	bool is_awake;  /* it has run since its last sleep */
	/* How often it was seen asleep, and left alone as it had not been seen asleep often enough. */
	unsigned int seen_count, left_alone_count;
	unsigned int harmless_count; /* stops in calls that may be cut, but were not at risk */
};

/* Valid until threads_changes() changes. */
struct thread {
	pid_t tid;
	pid_t own_tid;   /* in its own pid namespace; 0 until lock_holder.c asks */
	uint64_t serial; /* no other thread of the process has it, or had it; the kernel gives tids again */
	char name[THREAD_NAME_MAX]; /* untrusted; as of when it was added, or of thread_refresh_name() */
	struct tracee *tracee;
	/* As of the last thread_measure(), 0 before. */
	uint64_t cpu_ns;
	uint64_t waited_ns;  /* for a CPU, since its start */
	uint64_t runs;       /* how often it got a CPU; 0 if the kernel does not count */
	uint64_t runs_left;  /* runs when it was last seen without a CPU; see on_cpu.h */
	uint64_t sleeps;     /* how often it had gone to sleep, by thread_count_switches() */
	bool is_job_stopped; /* as of the last thread_read_state() */

	struct call_watch calls;

	/* The module's own. */
	uint64_t name_round;
	bool keeps_open;
	int files[THREAD_FILE_COUNT]; /* -1 if not open */
};

struct threads;

/* Empty until threads_refresh(). NULL when memory is short. The tracer must outlive it. */
struct threads *threads_new(struct tracer *tracer, pid_t pid);

/* Before the first threads_refresh(): seize only one thread at once, others by tracer_seize_late(). */
void threads_seize_late(struct threads *threads);

/* The threads stay seized, and with the tracer. */
void threads_free(struct threads *threads);

/*
 * Look for new threads and drop dead ones, if there is a reason: it is the first call,
 * the number of threads has changed, a tracee of the process has died, the process has
 * used more CPU time than its threads account for (process_cpu_ns is the process's CPU
 * clock, 0 if unknown), or the last refresh is a second old.
 *
 * 0, -ESRCH when the process has ended, or, when no thread is seized, -ENOMEM or the
 * error of tracer_seize() or of opening /proc/PID/task. -EBUSY: it is there, but no thread of
 * it can be seized at the moment, as one runs another program. Call again soon.
 */
int threads_refresh(struct threads *threads, uint64_t now_ns, uint64_t process_cpu_ns);

/*
 * Changes at least when a thread was added or dropped, or a tracee has execed: as long as it is
 * the same, so are the threads.
 */
uint64_t threads_changes(const struct threads *threads);

/*
 * How much of the process's CPU time (process_cpu_ns is its clock) no thread_measure() has told of:
 * that of threads that came and went unseen, and what threads have used since they were measured.
 */
uint64_t threads_unaccounted_ns(const struct threads *threads, uint64_t process_cpu_ns);

/* In ascending order of thread ids. */
size_t threads_count(const struct threads *threads);
struct thread *threads_at(const struct threads *threads, size_t index);

/* NULL if there is none of that id. */
struct thread *threads_find(const struct threads *threads, pid_t tid);

/* Have all seized threads ended, by what the tracer knows? True if none is seized. */
bool threads_are_gone(const struct threads *threads);

/* Read the name again if it is older than a second, by the times of threads_refresh(). */
void thread_refresh_name(const struct threads *threads, struct thread *thread);

/* Read the name now, as a new program has another one. */
void thread_read_name(const struct threads *threads, struct thread *thread);

/*
 * Read how much CPU time the thread has used, and how long it has waited for a CPU. The
 * CPU time lags by up to a tick while the thread is on a CPU. It is exact when the thread
 * sleeps, or is held and its registers have been read (before, it may still be leaving
 * the CPU). 0 with thread->cpu_ns set and the time used since the last call in
 * *ret_used_ns, or -ESRCH. The first call counts from the thread's start, or from the
 * first threads_refresh() if the thread existed then.
 */
int thread_measure(struct threads *threads, struct thread *thread, uint64_t *ret_used_ns);

/*
 * Its tracee has taken the id: the thread is another one than before. It has a serial number of its own, and
 * its time counts from now on; what it used under its other id counted there.
 */
void thread_begin_anew(struct threads *threads, struct thread *thread);

/* How often the thread has got a CPU until now; thread->runs stays. 0 or -ESRCH. */
int thread_count_runs(const struct threads *threads, struct thread *thread, uint64_t *ret_runs);

/*
 * How often the thread has gone to sleep; a stop counts as a sleep. Exact while it
 * sleeps or is held. 0 or -ESRCH.
 */
int thread_count_sleeps(const struct threads *threads, const struct thread *thread, uint64_t *ret_count);

/* How often the thread has left a CPU, and when it last did; sets thread->sleeps. 0 or -ESRCH. */
int thread_count_switches(const struct threads *threads, struct thread *thread,
			  struct switches *ret_switches);

/*
 * What the thread is doing, without stopping it: THREAD_RUNNING (on a CPU or
 * waiting for one), THREAD_BLOCKED (asleep, idle or not), or
 * THREAD_UNINTERRUPTIBLE where the kernel tells. 0 or -ESRCH.
 * ret_call may be NULL; else, for a sleeping thread, it gets its system call.
 */
int thread_read_state(struct threads *threads, struct thread *thread, enum thread_state *ret_state,
		      struct thread_call *ret_call);

/* The call that any thread sleeps in, also of another process. False if it runs, or that cannot be read. */
bool thread_call_read(pid_t tid, struct thread_call *ret_call);

bool thread_call_is_same(const struct thread_call *a, const struct thread_call *b);

/* What is known of the registers of a thread that sleeps in this call, which must be known. */
struct registers thread_call_registers(const struct thread_call *call);

/* True if it is on a CPU or waits for one. may_stop.h tells whether it may be stopped then. */
bool thread_is_running(struct threads *threads, struct thread *thread);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * threads: the threads of one process, each seized, named and metered.
 *
 * Short-lived threads that come and go between two looks are not seen; their
 * CPU time shows as the difference between the process's clock and the sum
 * over the threads.
 */
#ifndef LJSPY_THREADS_H
#define LJSPY_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "output/sample/sample.h"
#include "src/linux/clocks/scheduler.h"
#include "src/linux/threads/tracer.h"

enum {
	THREAD_NAME_MAX = 16,		/* TASK_COMM_LEN, with the NUL */
	THREADS_MAX = 65536,		/* seen of one process; more are left alone */
};

struct thread_call {
	bool known;		/* the fields below are set */
	int64_t number;		/* system call; -1: asleep outside of one */
	uint64_t arguments[6];	/* as long as known and number >= 0 */
	uint64_t sp, pc;	/* in user space */
};

/* What is known of the calls that a thread makes; see may_stop.h, whose own this is. */
struct call_watch {
	struct thread_call seen;	/* asleep in it last, not known if it never was */
	bool bears_stop;		/* that one does */
	/* When it was seen last in a call that does not bear a stop, CLOCK_MONOTONIC, 0: never; and how long that counts. */
	uint64_t fragile_seen_ns, memory_ns;
	uint64_t sleep_runs;		/* how often it had been given a CPU then */
	/* When it was noted last where it is: how often it had gone to sleep and been given a CPU. */
	uint64_t sleeps, runs;
	bool has_slept;			/* since it was asked last whether it may be stopped */
	bool is_awake;			/* it has run since it slept last */
	/* So often it was seen asleep, and left alone as it had not been so often enough. */
	unsigned int seen_count, left_alone_count;
};

/* Valid until the next threads_refresh(). */
struct thread {
	pid_t tid;
	char name[THREAD_NAME_MAX];	/* untrusted; at most a second old, but for execs */
	struct tracee *tracee;
	/* As thread_measure() found them last, 0 before. */
	uint64_t cpu_ns;
	uint64_t waited_ns;		/* wanting a CPU, from its start on */
	uint64_t runs;			/* how often it was given one; 0 where the kernel does not count */
	uint64_t runs_left;		/* ... when it was last seen to have none; see on_cpu.h */
	uint64_t sleeps;		/* how often it had gone to sleep, at the last thread_count_switches() */

	struct call_watch calls;

	/* The module's own. */
	bool keeps_open;
	int schedstat_fd, syscall_fd, sched_fd;	/* -1 if not open */
};

struct threads;

/* Sees nothing until threads_refresh(). NULL when memory is short. The tracer must outlive it. */
struct threads *threads_new(struct tracer *tracer, pid_t pid);

/* The threads stay seized, and with the tracer. */
void threads_free(struct threads *threads);

/*
 * Look for new threads and drop dead ones, if there is a reason to: first
 * call, the number of threads has changed, a tracee of the process has died,
 * more CPU time was used than its threads account for (process_cpu_ns is the
 * process's CPU clock, 0 if unknown), or the last look is a second old.
 *
 * 0, -ESRCH when the process has ended, or -ENOMEM or what tracer_seize() said
 * when no thread is seized.
 */
int threads_refresh(struct threads *threads, uint64_t now_ns, uint64_t process_cpu_ns);

/* In ascending order of thread ids. */
size_t threads_count(const struct threads *threads);
struct thread *threads_at(const struct threads *threads, size_t index);

/* Have all of them ended, as far as the tracer was told? True if it stays away. */
bool threads_are_gone(const struct threads *threads);

/* A new program has another name: have it now. */
void thread_read_name(const struct threads *threads, struct thread *thread);

/*
 * Read how much CPU time the thread has used, and has waited for a CPU. The figure lags by up to a tick
 * while the thread is on a CPU, and is exact when it sleeps, or is held and its
 * registers have been read (before, it may still be leaving the CPU).
 * 0 with thread->cpu_ns set and what it has used since the last time in
 * *ret_used_ns, or -ESRCH. The first time counts from its start, or from the
 * first threads_refresh() if the thread was there then.
 */
int thread_measure(struct threads *threads, struct thread *thread, uint64_t *ret_used_ns);

/*
 * How often the thread has gone to sleep, a stop being a sleep as well; exact
 * while it sleeps or is held. 0 or -ESRCH.
 */
int thread_count_sleeps(const struct threads *threads, const struct thread *thread, uint64_t *ret_count);

/* How often the thread has left a CPU, and when it did last; sets thread->sleeps. 0 or -ESRCH. */
int thread_count_switches(const struct threads *threads, struct thread *thread,
			  struct switches *ret_switches);

/*
 * What the thread is doing, without stopping it: THREAD_RUNNING (on a CPU or
 * waiting for one), THREAD_BLOCKED (asleep, idle or not), or
 * THREAD_UNINTERRUPTIBLE where the kernel tells. 0 or -ESRCH.
 * ret_call may be NULL; else, for a sleeping thread, it gets its system call.
 */
int thread_look(struct threads *threads, struct thread *thread,
		enum thread_state *ret_state, struct thread_call *ret_call);

bool thread_call_is_same(const struct thread_call *a, const struct thread_call *b);

/* True if it is on a CPU or waits for one. Whether it may be stopped then: see may_stop.h. */
bool thread_is_running(struct threads *threads, struct thread *thread);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * made_up_machine: processes that exist on paper, on a clock that only ljspy's sleep moves.
 *
 * It stands for all that the sampler asks of the kernel and of processes: what their threads do at a moment
 * follows from the moment alone, so a test knows all of it and takes no time. A thread waits for a CPU,
 * runs and sleeps in turn. The kernel's alarms come on its tick only.
 */
#ifndef LJSPY_MADE_UP_MACHINE_H
#define LJSPY_MADE_UP_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "luajit-layouts/vm.h"
#include "output/sample/sample.h"
#include "src/inspect/stack_states.h"
#include "src/linux/proc/follow.h"
#include "src/linux/threads/may_stop.h"
#include "src/linux/threads/wait.h"
#include "src/survey/asleep.h"
#include "unwind/capture/capture.h"
#include "unwind/elf/registers.h"

enum {
	MADE_UP_PROCESSES = 4,
	MADE_UP_THREADS = 12,
	MADE_UP_TICK_NS = 4000000,
};

struct made_up_thread {
	uint64_t begin_ns, end_ns;          /* in the machine's time; 0: always there, never ends */
	uint64_t wait_ns, run_ns, sleep_ns; /* for a CPU, on it, and asleep; again and again */
	enum may_stop nature;               /* what ljspy finds out about its calls while it has a CPU */
	bool stops_late;                    /* it does not stop before ljspy's patience ends */
	const struct function *function;    /* that is on its stack; NULL: one in Lua */
	bool hides_registers;               /* they cannot be read while it is held */
	bool hides_stack;                   /* where its native stack is cannot be found out */
	enum capture_verdict running;       /* how a copy of its stack while it runs on turns out */
	enum asleep_verdict asleep;         /* the same while it sleeps */
	const struct wait *wait;            /* what for; NULL: machine.wait */
	const struct made_up_thread *next;  /* has its id from its own begin_ns on, once this one has ended */
};

struct made_up_process {
	pid_t pid;                 /* its threads count on from there */
	uint64_t begin_ns, end_ns; /* as above */
	uint64_t luajit_ns;        /* from when on it runs LuaJIT; UINT64_MAX: never */
	bool followed;             /* found by following others */
	uint64_t hides_until_ns;   /* ... from then on */
	bool ends_when_attached;   /* once ljspy has listed its threads */
	bool ends_when_searched;   /* before anything can be read of it */
	uint64_t exec_ns;          /* when it begins to run another program; 0: never */
	uint64_t exec_luajit_ns;   /* from when on that runs LuaJIT */
	size_t exec_by; /* the thread that calls execve(), and has the first one's id from then on */
	uint64_t busy_begin_ns, busy_end_ns; /* none of its threads can be seized meanwhile */
	int refusal;                         /* why its memory cannot be read, a negative errno */
	bool is_unread;                      /* the files that tell whether it runs LuaJIT */
	bool has_unknown_layout;             /* its LuaJIT */
	const struct vm_code *vm;            /* of its state; NULL if none is found */
	const char *roots;                   /* of its packages; NULL: none */
	struct made_up_thread threads[MADE_UP_THREADS];
	size_t thread_count;
	unsigned long clock_reads; /* counted: how often ljspy has asked for its CPU time */
};

struct made_up_machine {
	uint64_t now_ns;
	struct made_up_process processes[MADE_UP_PROCESSES];
	size_t process_count;

	/*
	 * ljspy's own sleep: one in so many (0: none) is so much longer than it asked for; a stop of ljspy
	 * ends one in so many half-way, though no signal has come.
	 */
	unsigned int oversleep_one_in, interrupts_one_in;
	uint64_t oversleep_ns;

	bool is_job_stopped; /* all threads are, when they are asked */
	bool in_calls;       /* threads are held at the end of system calls */
	bool fell_asleep;    /* ... in which they slept */

	/*
	 * How long it takes until a thread stops, to copy its stack, to have ljspy's CPU again, to open a
	 * process.
	 */
	uint64_t stop_takes_ns, copy_takes_ns, resume_takes_ns, open_takes_ns;
	uint64_t unwind_takes_ns;          /* once the thread has been let go */
	uint64_t renew_takes_ns;           /* to begin another turn */
	int registers_error, unwind_error; /* of threads that are held, of stacks: 0 */
	bool turn_is_used_up;              /* after each stop */
	bool cannot_be_first;
	bool has_no_timers;
	bool wants_refresh;  /* stacks have code of unknown modules */
	bool tells_programs; /* also when a process runs another one */
	int follow_error;
	size_t unread_count; /* as follow_unread() says */
	pid_t unread_pid;
	const char *no_memory_for; /* "tracer", "files": these cannot be had */
	uint64_t symbols_cpu_ns;
	struct wait wait; /* of each thread that sleeps */
	/*
	 * This lock is held by this thread of the process, all others by one of another process. Until
	 * then the holder's call waits for events, but for one look in so many.
	 */
	uint64_t held_lock;
	size_t holder;
	uint64_t events_end_ns;
	unsigned long events_but_one_in, lock_looks;
	enum thread_state sleep_state;
	bool names_waits; /* each in other words */
	struct thread_call call;
	struct registers held; /* of each thread that is held */

	/* A command that ljspy starts is the first process. */
	int launch_error, go_error; /* why it cannot be started, or run; 0 */
	bool exit_known;            /* the first process's status, when it has ended */
	bool all_ends_known;        /* that of each other one, too */
	int exit_status;
	bool has_new_modules;
	const char *other_lua;       /* in any process; NULL: none */
	uint64_t other_lua_takes_ns; /* to look for it */

	bool tells_late_stops; /* at once; else ljspy sees them at its next look */
	int signal;            /* that ljspy gets; 0: none */
	int signal_value;
	uint64_t signal_ns;

	/*
	 * What each stack of a thread tells. Each look at a collector finds a byte more, and a marking that
	 * has ended.
	 */
	const char *phase;
	struct sample_request request;
	uint64_t code_pc, proto;
	uint64_t loop_ns; /* of the first thread's event loop; 0: it has none */

	unsigned long timers; /* how often one was set on a clock */
	unsigned long waits, stops, alarms, rehearsals, measures, run_counts, visits,
		looks_ended; /* counted */
	unsigned long sleeper_copies;
	bool short_copies, copy_is_short; /* each other copy of a sleeper has too little; the last copy has */
	bool is_visiting, may_not_visit;  /* it awaits a look on the CPU asked for; it has no right to */
	unsigned long without_native;     /* looks at running threads with lacks_native */
	unsigned long launches, cancels, reaps;
	struct stack_place place; /* of the last thread that was copied while it ran on */
	uint64_t files_may_take_ns;
	uint64_t refresh_uses_ns;        /* of these */
	uint64_t other_lua_may_ns;       /* take, at the last look for it */
	unsigned long patient_refreshes; /* that slow files may hold up for as long as they take */
	unsigned long opens,
		collectors; /* counted, too: processes looked at anew, and looks at a collector */
	unsigned long refreshes, watched_sleeps, renewals, brief_waits, awake_stops, polls, times_taken;
	unsigned long quiet_waits, quiets,
		false_quiets;              /* sleeps that no signal ended; told; told of others */
	bool look_is_awaited;              /* from the sleep before a look to its end */
	unsigned long hurried;             /* counted: processes looked into meanwhile, which takes a while */
	const struct given_layout *layout; /* that the process which was opened last was given */
	uint64_t last_stop_ns, last_capture_ns; /* 0: none */
	uint64_t collected_at_ns;               /* the time that the last look at a collector was told */
	size_t files_allowed;
	uint64_t few_files_begin_ns, few_files_end_ns; /* too few are left for one more target meanwhile */
	unsigned long closes;                          /* counted: processes that are open no more */
	bool changes_cpu;                              /* a thread, whenever ljspy asks for it */
	int cpu;                                       /* that it is on */
	bool stays_away, allows_attach, has_counted_holds;
	struct follow_options followed;
	pid_t follows[MADE_UP_PROCESSES];
	size_t follow_count;
	bool counts_no_runs; /* the kernel */
	unsigned int wakes;  /* how often each thread has run until ljspy knows what it waits for */
	int64_t last_call;   /* the number of the call that ljspy last asked about */
	unsigned long sums;  /* how many threads' CPU times were added up to read clocks without a timer */
};

extern struct made_up_machine machine;

/* A machine without processes, at this time. */
void made_up_machine_begin(uint64_t now_ns);

/* What a thread has done by now: */
struct made_up_times {
	uint64_t cpu_ns, waited_ns, slept_ns;
	uint64_t runs;    /* how often it got a CPU */
	uint64_t into_ns; /* how long it has been doing what it does */
	enum { MADE_UP_WAITS, MADE_UP_RUNS, MADE_UP_SLEEPS, MADE_UP_IS_GONE } does;
};

struct made_up_times made_up_times(const struct made_up_thread *thread, uint64_t now_ns);

/* Of all its threads. */
uint64_t made_up_cpu_ns(const struct made_up_process *process, uint64_t now_ns);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * sampler: take samples of processes until told to end.
 *
 * The alarm of each process's CPU clock says when a sample is due. The sampler
 * holds a thread that is on the CPU then, copies it and lets it go; it unwinds
 * the copy while the thread runs on. It never touches a thread that sleeps: the
 * thread's CPU time counts towards its next sample's weight.
 *
 * By the wall clock, samples are due all the time, also of threads that sleep,
 * which are read without a stop. The kernel counts each thread's time on a CPU,
 * waiting for one, and asleep; the samples of each kind stand for that time and
 * add up to the time that passed. cpu_ns holds CPU time, wall_ns time of any kind.
 */
#ifndef LJSPY_SAMPLER_H
#define LJSPY_SAMPLER_H

#include <regex.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "output/sample/figures.h"
#include "output/sample/functions.h"
#include "output/sample/sample.h"
#include "src/inspect/given_layout.h"
#include "src/inspect/known_files.h"
#include "src/linux/threads/halt.h"
#include "src/survey/puc_lua.h"
#include "unwind/names/namer.h"

/* Gets each sample as it is taken. The sampler owns what it points to. */
typedef void sampler_take(void *context, const struct sample *sample);

/* Called when sampling begins and about once a second from then on; false to end. */
typedef bool sampler_progress(void *context, const struct figures *so_far);

struct sampler_noted;

/*
 * Called once, when sampling has begun, to tell which of the processes that the user has named are left out.
 */
typedef void sampler_tell_refused(const struct sampler_noted *refused);

/* What watches over the sampler. */
struct sampler_watch {
	/*
	 * The sampler asks whenever something may be due and while it waits for others;
	 * false: let go of all targets at once. SIGCHLD makes it ask.
	 */
	bool (*may_go_on)(void *context);
	/*
	 * Before each wait, of so much time at most. rests: the sampler only waits for a target to run;
	 * false: it no longer does.
	 */
	void (*rests)(void *context, bool rests, uint64_t wait_ns);
	/* This thread binds itself to CPUs from now on; 0: none does any more. NULL if not wanted. */
	void (*binds)(void *context, pid_t tid);
	void *context;
};

/*
 * Too many functions are known, so functions are about to be dropped: call
 * functions_keep() for those that something still points to.
 */
typedef void sampler_keep(void *context);

/* A process whose memory is not read, as that does not come to an end. */
struct unreadable {
	pid_t pid;
	uint64_t start_ticks; /* see wanted_start() */
};

struct sampler_options {
	const pid_t *pids;
	size_t pid_count;
	char *const *launch;         /* a command to start instead; NULL if not */
	bool subprocesses;           /* all descendants too, also future ones */
	const regex_t *pattern;      /* future processes that match it, too; NULL if not wanted */
	bool awaits;                 /* with a pattern: begin and go on while no process matches it */
	const sigset_t *launch_mask; /* the command's signal mask */
	pid_t launch_group;          /* the command's process group; 0: ljspy's */
	pid_t launched_pid;          /* the command, if an earlier run started it as a child; else 0 */
	const pid_t *own_pids;       /* ljspy's other processes */
	size_t own_pid_count;
	const struct unreadable *unreadable; /* processes to leave out */
	size_t unreadable_count;
	bool awaits_exec;     /* an earlier run sampled the only process: wait for the end of its execve() */
	bool allow_attach;    /* see tracer_allow_attach() */
	bool no_stop;         /* look without stopping any thread; not with launch */
	unsigned int rate_hz; /* of CPU time, or by the wall clock */
	bool wall_clock;
	bool alloc;           /* sample allocations, and nothing else; see sample.alloc_bytes */
	bool coroutines;      /* sample yielded coroutines, and no threads; with the wall clock */
	bool requests;        /* sample the requests of nginx, and no threads; with the wall clock */
	bool turns;           /* fill in sample.loop_ns and sleeps; with the wall clock */
	uint64_t duration_ns; /* 0: no limit */
	struct namer_options namer;
	const struct given_layout *layout; /* NULL: recognise it */
	struct functions *functions;       /* receives all functions; must outlive the samples */
	sampler_take *take;
	sampler_progress *progress;         /* NULL if not wanted */
	sampler_tell_refused *tell_refused; /* NULL if not wanted */
	sampler_keep *keep; /* NULL: never drop functions; else needs progress, comes before it */
	void *context;
	const struct sampler_watch *watch; /* NULL if nothing watches */
};

enum sampler_end {
	SAMPLER_DURATION_OVER,
	SAMPLER_INTERRUPTED,   /* by SIGINT, SIGTERM, SIGHUP or SIGQUIT; see interrupted_by */
	SAMPLER_TOLD_TO_END,   /* progress returned false */
	SAMPLER_TARGETS_ENDED, /* all sampled targets ended */
	SAMPLER_FAILED,        /* see error and pid */
	SAMPLER_NO_LUAJIT,     /* no process has a LuaJIT that ljspy can read; see pid */
	SAMPLER_LET_GO,        /* may_go_on returned false */
	/*
	 * The process that took samples was killed (see src/sampler/sampler_apart.h); if error is not 0,
	 * because waitpid() fails with it for ljspy's own processes, or, with -ENOMEM, because memory is
	 * short to read its samples.
	 */
	SAMPLER_KILLED,
	SAMPLER_BLOCKED, /* it ended, as the kernel kept it waiting, by the memory of pid if that is not 0 */
};

enum { PACKAGE_ROOTS_MAX = 4096 }; /* bytes, with the NUL; further roots are left out */

enum { NOTED_MAX = 256 };

/* Processes, and why each is noted. */
struct sampler_noted {
	size_t count;
	size_t more; /* further ones, which the array has no place for */
	struct sampler_note {
		pid_t pid;
		int why;
	} at[NOTED_MAX];
};

enum { UNREADABLE_MAX = 16 };

struct sampler_result {
	enum sampler_end end;
	int error;                     /* a negative errno */
	pid_t pid;                     /* the process that end is about, or the launched one */
	int interrupted_by;            /* the signal; only the front knows it (src/sampler/sampler_apart.h) */
	bool interrupted_by_process;   /* by a process, to ljspy alone; the terminal signals a command, too */
	char layout[LAYOUT_NAME_MAX];  /* of the first VM found; "" if none */
	char roots[PACKAGE_ROOTS_MAX]; /* package roots of all targets, as in struct session; "" if unknown */
	bool saw_luajit;               /* in any process, at any time */
	bool has_attached;             /* to any process, at any time */
	/* Version of PUC Lua in what was launched; "" if none was seen. */
	char other_lua[PUC_LUA_VERSION_MAX];
	/* A process whose VM's layout is unknown, and why, in words; 0 if there is none. */
	pid_t unknown_pid;
	char unknown_reason[VERDICT_MAX];
	bool launched;   /* the command was started */
	bool exit_known; /* the command has ended, with exit_status as from waitpid() */
	int exit_status;
	/* Processes that could not be sampled, while others were: how many, and the reason of one. */
	size_t left_out;
	pid_t left_out_pid;
	/*
	 * a negative errno, -ETIMEDOUT of unreadable ones; 0: the user has named it, and it has not run
	 * LuaJIT
	 */
	int left_out_error;
	/*
	 * Processes that were found, and of which it is not known whether they have run LuaJIT, as no search
	 * got to them, or to its end, or as what is to be read for that never came: how many, and one of
	 * them.
	 */
	size_t unsearched;
	pid_t unsearched_pid;
	/*
	 * Those that tell_refused got: the user has named them, but they cannot be sampled, or not yet. Why
	 * is as left_out_error.
	 */
	struct sampler_noted refused;
	/* For sampler_options of a next run; only the front knows them. */
	struct unreadable unreadable[UNREADABLE_MAX];
	size_t unreadable_count;
	uint64_t begin_ns;           /* CLOCK_MONOTONIC, when the recording began; 0 if it did not */
	struct sampler_noted halted; /* targets that could not run in the end; why is an enum process_halt */
	bool wants_cpu;              /* without samples: in the end, a target had a CPU or waited for one */
	struct figures figures;
};

/*
 * Take samples, and fill in the result.
 *
 * Some of several pids may have ended, or not run LuaJIT, or ljspy may not be allowed to sample
 * them. With subprocesses or a pattern, pids is where to begin. Processes found on the way
 * are sampled as soon as they run LuaJIT and for as long as they do.
 *
 * A thread of the sampler calls take, keep and progress; at the end, when the targets
 * are free, the caller's thread calls take. SIGINT, SIGTERM, SIGHUP, SIGCHLD and SIGRTMIN
 * must be blocked in every thread; so must SIGQUIT if it is to end a recording.
 */
void sampler_run(const struct sampler_options *options, struct sampler_result *ret_result);

void sampler_note(struct sampler_noted *noted, pid_t pid, int why);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * sampler: taking samples of processes until it is told to end.
 *
 * The alarm of each process's CPU clock says when a sample is due. A thread
 * that is on the CPU then is held, copied and let go; what was copied is
 * unwound while it runs on. A thread that sleeps is never touched: the CPU
 * time that it has used is part of its next sample's weight.
 *
 * By the wall clock, samples are due all the time, and of threads that sleep,
 * too: they are read without a stop. Each thread's time on a CPU, waiting for
 * one, and asleep, as the kernel counts it, is what the samples of each kind
 * stand for: all together make up the time that went by. CPU time is in
 * cpu_ns, as ever, and time of any kind in wall_ns.
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
#include "unwind/names/namer.h"

/* Each sample, while it is taken; what it points to is the sampler's. */
typedef void sampler_take(void *context, const struct sample *sample);

/* When sampling begins, and about once a second from then on; false to end. */
typedef bool sampler_progress(void *context, const struct figures *so_far);

/* Who watches over the sampler. */
struct sampler_watch {
	/*
	 * Asked whenever something may be due, and while the sampler waits for others:
	 * false to let go of all targets at once. SIGCHLD has it ask.
	 */
	bool (*may_go_on)(void *context);
	/* Told that it only waits for a target to run, or no longer does. */
	void (*rests)(void *context, bool rests);
	void *context;
};

/*
 * Functions are about to be dropped, as too many are known: functions_keep()
 * those that are still pointed to.
 */
typedef void sampler_keep(void *context);

struct sampler_options {
	const pid_t *pids;
	size_t pid_count;
	char *const *launch;		/* a command to start instead; NULL if not */
	bool subprocesses;		/* all descendants too, and those to come */
	const regex_t *pattern;		/* processes to come that match it, too; NULL if not wanted */
	const sigset_t *launch_mask;	/* its signal mask */
	pid_t launch_group;		/* its group of processes; 0: ljspy's */
	pid_t launched_pid;		/* it runs already, as a child: started by an earlier run; 0 if not */
	const pid_t *own_pids;		/* ljspy's other processes */
	size_t own_pid_count;
	bool allow_attach;		/* see tracer_allow_attach() */
	bool no_stop;			/* look without stopping anybody; not with launch */
	unsigned int rate_hz;		/* of CPU time, or by the wall clock */
	bool wall_clock;
	bool coroutines;		/* samples of those that have yielded, and of no threads; with the wall clock */
	bool turns;			/* have sample.loop_ns and sleeps; with the wall clock */
	uint64_t duration_ns;		/* 0: no limit */
	struct namer_options namer;
	const struct given_layout *layout;	/* NULL: recognised */
	struct functions *functions;	/* receives all functions; must outlive the samples */
	sampler_take *take;
	sampler_progress *progress;		/* NULL if not wanted */
	sampler_keep *keep;		/* NULL: no function is ever dropped; else needs progress, before which it comes */
	void *context;
	const struct sampler_watch *watch;	/* NULL if nobody watches */
};

enum sampler_end {
	SAMPLER_DURATION_OVER,
	SAMPLER_INTERRUPTED,	/* by SIGINT, SIGTERM, SIGHUP or SIGQUIT; see interrupted_by */
	SAMPLER_TOLD_TO_END,	/* by the progress */
	SAMPLER_TARGETS_ENDED,	/* all that were sampled */
	SAMPLER_FAILED,		/* see error and pid */
	SAMPLER_NO_LUAJIT,	/* no process has a LuaJIT that could be read; see pid */
	SAMPLER_LET_GO,		/* by may_go_on */
	SAMPLER_KILLED,		/* what took samples was ended by somebody; see src/sampler/sampler_apart.h */
};

struct sampler_result {
	enum sampler_end end;
	int error;		/* a negative errno */
	pid_t pid;		/* the process it was about, or the launched one */
	int interrupted_by;	/* the signal; only the front knows it (src/sampler/sampler_apart.h) */
	bool interrupted_by_process;	/* which only ljspy got, then; the terminal's goes to a command, too */
	char layout[LAYOUT_NAME_MAX];	/* of the first VM that was found; "" if none was */
	bool saw_luajit;	/* in any of the processes, at any time */
	/* A process whose VM's layout is not known, and why, in words; 0 if there was none. */
	pid_t unknown_pid;
	char unknown_reason[VERDICT_MAX];
	bool launched;		/* the command was started */
	bool exit_known;	/* ... and has ended, with exit_status as waitpid() has it */
	int exit_status;
	/* Of processes that were found on the way, those that could not be sampled: how many, and one's reason. */
	size_t left_out;
	pid_t left_out_pid;
	int left_out_error;	/* a negative errno */
	struct figures figures;
};

/*
 * With subprocesses or a pattern, pids is where to begin: some of them may have
 * ended or may not be sampled. Processes that are found on the way are sampled
 * as soon as they run LuaJIT and for as long as they do.
 *
 * take, keep and progress are called by a thread of the sampler's own, and take at the end,
 * when the targets are free, by the caller's. SIGINT, SIGTERM, SIGHUP, SIGCHLD and
 * SIGRTMIN must be blocked in every thread; so must SIGQUIT if it is to end a recording.
 */
void sampler_run(const struct sampler_options *options, struct sampler_result *ret_result);

#endif

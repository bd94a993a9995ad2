/*
 * sampler: taking samples of processes until it is told to end.
 *
 * The alarm of each process's CPU clock says when a sample is due. A thread
 * that is on the CPU then is held, copied and let go; what was copied is
 * unwound while it runs on. A thread that sleeps is never touched: the CPU
 * time that it has used is part of its next sample's weight.
 */
#ifndef LJSPY_SAMPLER_H
#define LJSPY_SAMPLER_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "output/figures.h"
#include "output/sample.h"
#include "src/given_layout.h"
#include "unwind/functions.h"
#include "unwind/namer.h"

/* Each sample, while it is taken; what it points to is the sampler's. */
typedef void sampler_take(void *context, const struct sample *sample);

/* About once a second; false to end. */
typedef bool sampler_pulse(void *context, const struct figures *so_far);

struct sampler_options {
	const pid_t *pids;
	size_t pid_count;
	char *const *launch;		/* a command to start instead; NULL if not */
	const sigset_t *launch_mask;	/* its signal mask */
	unsigned int rate_hz;		/* of CPU time */
	uint64_t duration_ns;		/* 0: no limit */
	struct namer_options namer;
	const struct given_layout *layout;	/* NULL: recognised */
	struct functions *functions;	/* receives all functions; must outlive the samples */
	sampler_take *take;
	sampler_pulse *pulse;		/* NULL if not wanted */
	void *context;
};

enum sampler_end {
	SAMPLER_DURATION_OVER,
	SAMPLER_INTERRUPTED,	/* by SIGINT, SIGTERM or SIGHUP */
	SAMPLER_TOLD_TO_END,	/* by the pulse */
	SAMPLER_TARGETS_ENDED,
	SAMPLER_FAILED,		/* see error and pid */
	SAMPLER_NO_LUAJIT,	/* no process has a LuaJIT that could be read; see pid */
};

struct sampler_result {
	enum sampler_end end;
	int error;		/* a positive errno */
	pid_t pid;		/* the process it was about, or the launched one */
	char layout[LAYOUT_NAME_MAX];	/* of the first VM that was found; "" if none was */
	bool saw_luajit;	/* in any of the processes, at any time */
	bool launched;		/* the command was started */
	bool exit_known;	/* ... and has ended, with exit_status as waitpid() has it */
	int exit_status;
	struct figures figures;
};

/*
 * Run in a thread of its own, which must end afterwards: that frees the
 * targets (see src/target/tracer.h). SIGINT, SIGTERM, SIGHUP, SIGCHLD and
 * SIGRTMIN must be blocked in every thread.
 */
void sampler_run(const struct sampler_options *options, struct sampler_result *ret_result);

#endif

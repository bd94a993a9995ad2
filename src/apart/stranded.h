/* SPDX-License-Identifier: MIT */
/*
 * stranded: does the thread that traces wait, and wait, for the CPU that it has bound itself to?
 *
 * It binds itself to one CPU, or to all others, to look at what runs there (src/linux/clocks/visit.h). It is
 * urgent then, but threads of a higher real-time priority come first, and may keep that CPU for ever
 * (sched(7)). Meanwhile tracees stand still. Only another thread can let it run elsewhere.
 */
#ifndef LJSPY_STRANDED_H
#define LJSPY_STRANDED_H

#include <stdint.h>
#include <sys/types.h>

/* What the last calls saw; all zero before the first one. */
struct stranded {
	uint64_t since_ns; /* since then, calls have found it waiting for its CPU; 0: not so */
	uint64_t cpu_ns;
};

/*
 * If the thread, one of this process, is bound and has waited for longer than it would wait for its CPU, let
 * it run wherever the caller may run. tid 0: there is none. cpu_ns: the CPU time that it has used. now_ns:
 * CLOCK_MONOTONIC.
 */
void stranded_free(struct stranded *stranded, pid_t tid, uint64_t cpu_ns, uint64_t now_ns);

#endif

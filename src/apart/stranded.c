/* SPDX-License-Identifier: MIT */
#include "src/apart/stranded.h"

#include <sched.h>
#include <stdbool.h>

#include "src/apart/thread_status.h"

/* A machine that shares its CPUs may halt one for some time. */
enum { WAIT_MAX_NS = 40 * 1000 * 1000 };

/* May the thread run on fewer CPUs than the caller, which may run on these? */
static bool is_bound(pid_t tid, cpu_set_t *ret_own)
{
	cpu_set_t theirs;

	if (sched_getaffinity(tid, sizeof(theirs), &theirs) ||
	    sched_getaffinity(0, sizeof(*ret_own), ret_own))
		return false;
	return CPU_COUNT(&theirs) < CPU_COUNT(ret_own);
}

/* Does it run, or wait for a CPU? */
static bool is_runnable(pid_t tid)
{
	char text[THREAD_STATUS_SIZE];
	uint64_t switches;

	return thread_status_is(tid, 'R', text, &switches);
}

void stranded_free(struct stranded *stranded, pid_t tid, uint64_t cpu_ns, uint64_t now_ns)
{
	bool has_run = cpu_ns != stranded->cpu_ns;
	cpu_set_t own;

	/* Mostly it has, and more need not be asked. */
	stranded->cpu_ns = cpu_ns;
	if (has_run || !tid || !is_bound(tid, &own) || !is_runnable(tid)) {
		stranded->since_ns = 0;
		return;
	}
	if (stranded->since_ns == 0)
		stranded->since_ns = now_ns;
	if (now_ns - stranded->since_ns >= WAIT_MAX_NS)
		sched_setaffinity(tid, sizeof(own), &own);
}

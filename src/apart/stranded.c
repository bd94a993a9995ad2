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

void stranded_free(struct stranded *stranded, pid_t tid, uint64_t now_ns)
{
	char text[THREAD_STATUS_SIZE];
	uint64_t switches;
	cpu_set_t own;

	/* It runs, or waits for a CPU. */
	if (!tid || !is_bound(tid, &own) || !thread_status_is(tid, 'R', text, &switches)) {
		stranded->since_ns = 0;
		return;
	}
	if (stranded->since_ns == 0 || switches != stranded->switches)
		stranded->since_ns = now_ns;
	stranded->switches = switches;
	if (now_ns - stranded->since_ns >= WAIT_MAX_NS)
		sched_setaffinity(tid, sizeof(own), &own);
}

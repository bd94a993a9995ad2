/* SPDX-License-Identifier: MIT */
#include "src/apart/stranded.h"

#include <sched.h>
#include <stdbool.h>
#include <string.h>

#include "src/linux/clocks/scheduler.h"
#include "src/linux/proc/proc_text.h"

enum {
	STATUS_MAX = 1 << 16, /* it lists all groups of the user before the switches */
	/* A machine that shares its CPUs may halt one for some time. */
	WAIT_MAX_NS = 40 * 1000 * 1000,
};

/* May the thread run on fewer CPUs than the caller, which may run on these? */
static bool is_bound(pid_t tid, cpu_set_t *ret_own)
{
	cpu_set_t theirs;

	if (sched_getaffinity(tid, sizeof(theirs), &theirs) ||
	    sched_getaffinity(0, sizeof(*ret_own), ret_own))
		return false;
	return CPU_COUNT(&theirs) < CPU_COUNT(ret_own);
}

/* Does it wait for a CPU, or run? */
static bool is_runnable(pid_t tid, uint64_t *ret_switches)
{
	struct switches switches;
	char text[STATUS_MAX];

	if (proc_text_read(tid, "status", text, sizeof(text)) < 0 || !strstr(text, "\nState:\tR") ||
	    !switches_parse(text, &switches))
		return false;
	*ret_switches = switches.count;
	return true;
}

void stranded_free(struct stranded *stranded, pid_t tid, uint64_t now_ns)
{
	uint64_t switches;
	cpu_set_t own;

	if (!tid || !is_bound(tid, &own) || !is_runnable(tid, &switches)) {
		stranded->since_ns = 0;
		return;
	}
	if (stranded->since_ns == 0 || switches != stranded->switches)
		stranded->since_ns = now_ns;
	stranded->switches = switches;
	if (now_ns - stranded->since_ns >= WAIT_MAX_NS)
		sched_setaffinity(tid, sizeof(own), &own);
}

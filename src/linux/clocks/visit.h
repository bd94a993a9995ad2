/* SPDX-License-Identifier: MIT */
/*
 * visit: ljspy waits for a look on the CPU of the thread that it will look at.
 *
 * From another CPU, a stop reaches a thread some microseconds after ljspy asks for it,
 * in a virtual machine up to 50. So ljspy would never see what a thread does in that
 * time after a sleep, and a thread that makes a system call in that time stops at the
 * end of the call. A timer of the thread's own CPU interrupts the thread at once: ljspy
 * takes the CPU from it, and the thread stays where it was. Then ljspy goes to another CPU, so
 * that the thread has its own back, and does so before it lets the thread go: the kernel
 * would start the thread on an idle CPU, where its data are in no cache. Only a thread that
 * may run on no other CPU goes on at once. Where a look finds the thread asleep, ljspy stays.
 *
 * Belongs to one thread, which must be urgent by its policy (urgent.h) from the beginning
 * of a visit to its end: else it might wait for the CPU behind the thread that it visits.
 * It must start no thread or process between begin and end. A thread that is more urgent still may keep its
 * CPU for ever: then another thread lets it run elsewhere (sched_setaffinity(2)), and there are no visits for
 * some time.
 */
#ifndef LJSPY_VISIT_H
#define LJSPY_VISIT_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

struct visit {
	bool possible; /* ljspy may run on more than one CPU */
	bool begun;
	bool has_left;     /* it has begun, but ljspy is on another CPU again */
	int cpu;           /* the one visited */
	cpu_set_t allowed; /* where ljspy's user lets it run */
	cpu_set_t bound;   /* where the visit has it run */
	uint64_t rest_ns;  /* without visits, after the last one from which it was freed; 0: it never was */
	uint64_t next_ns;  /* CLOCK_MONOTONIC: none before */
};

void visit_open(struct visit *visit);

/*
 * Run on this CPU only, after the end of another visit. Only that end if ljspy may not run there, or it is
 * -1.
 */
void visit_begin(struct visit *visit, int cpu);

/* Go to another CPU; the visit is still to end. False, and no effect, if ljspy is not there. */
bool visit_leave(struct visit *visit);

/* Leave, and then run anywhere. No effect without a visit. */
void visit_end(struct visit *visit);

/* End the visit, and begin no more. */
void visit_close(struct visit *visit);

#endif

/* SPDX-License-Identifier: MIT */
#include "src/linux/clocks/visit.h"

#include "src/linux/clocks/clock.h"

static const uint64_t first_rest_ns = UINT64_C(10) * NS_PER_SECOND;

static bool bind_to(struct visit *visit, const cpu_set_t *cpus)
{
	if (sched_setaffinity(0, sizeof(*cpus), cpus))
		return false;
	visit->bound = *cpus;
	return true;
}

/*
 * Has another thread let this one run elsewhere, as it had waited for its CPU? It might have to at the next
 * visit, too: so that comes later each time.
 */
static bool was_freed(struct visit *visit)
{
	cpu_set_t now, expected;

	if (sched_getaffinity(0, sizeof(now), &now))
		return false;
	CPU_AND(&expected, &now, &visit->bound);
	if (CPU_EQUAL(&expected, &now))
		return false;
	visit->bound = now;
	visit->has_left = true;
	visit->rest_ns = visit->rest_ns ? 2 * visit->rest_ns : first_rest_ns;
	visit->next_ns = clock_now_ns(CLOCK_MONOTONIC) + visit->rest_ns;
	return true;
}

void visit_open(struct visit *visit)
{
	*visit = (struct visit){ .possible = false };
	visit->possible = sched_getaffinity(0, sizeof(visit->allowed), &visit->allowed) == 0 &&
			  CPU_COUNT(&visit->allowed) > 1;
}

void visit_begin(struct visit *visit, int cpu)
{
	cpu_set_t only;

	if (visit->begun && !visit->has_left && visit->cpu == cpu)
		return;
	visit_end(visit);
	if (!visit->possible || cpu < 0 || cpu >= CPU_SETSIZE || !CPU_ISSET((size_t)cpu, &visit->allowed) ||
	    (visit->next_ns && clock_now_ns(CLOCK_MONOTONIC) < visit->next_ns))
		return;
	CPU_ZERO(&only);
	CPU_SET((size_t)cpu, &only);
	visit->begun = bind_to(visit, &only);
	visit->cpu = cpu;
}

bool visit_leave(struct visit *visit)
{
	cpu_set_t others = visit->allowed;

	if (!visit->begun || visit->has_left || was_freed(visit))
		return false;
	visit->has_left = true;
	CPU_CLR((size_t)visit->cpu, &others);
	return bind_to(visit, &others);
}

void visit_end(struct visit *visit)
{
	if (!visit->begun)
		return;
	visit_leave(visit);
	was_freed(visit);
	visit->begun = visit->has_left = false;
	/* ljspy is free again, as are processes that it starts. */
	sched_setaffinity(0, sizeof(visit->allowed), &visit->allowed);
}

void visit_close(struct visit *visit)
{
	visit_end(visit);
	visit->possible = false;
}

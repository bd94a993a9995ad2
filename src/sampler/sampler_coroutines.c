/* SPDX-License-Identifier: MIT */
/* Samples of coroutines that have yielded. */
#include "src/sampler/sampler_state.h"

#include <stdlib.h>

#include "src/linux/threads/hold.h"
#include "src/survey/dump_stacks.h"

enum {
	/* Reading coroutines takes at most this part of all time, however many objects a VM has. */
	BUSY_ONE_IN = 4,
};

/* Deliver one sample for all coroutines that wait at one place. */
static void deliver_group(struct sampler *sampler, struct target *target, const struct dump_group *group,
			  uint64_t now, uint64_t waited_ns)
{
	const struct sample sample = {
		.time_ns = now,
		.pid = target->pid,
		.tid = target->pid,
		.process_name = target->name,
		.thread_name = target->name,
		.phase = group->phase,
		.thread_state = THREAD_PARKED,
		.wall_ns = group->count * waited_ns,
		.frames = group->stack.frames,
		.frame_count = group->stack.count,
	};

	target_deliver(sampler, target, &sample);
	/* The rate counts how often ljspy reads coroutines, not how many it finds. */
	sampler->wall_ns += waited_ns - sample.wall_ns;
}

static void deliver_all(struct sampler *sampler, struct target *target, const struct dump_process *found,
			uint64_t now, uint64_t waited_ns)
{
	for (size_t i = 0; i < found->vm_count; i++) {
		const struct dump_vm *vm = &found->vms[i];

		if (!vm->complete)
			sampler_count_missed(sampler, 1);
		for (size_t j = 0; j < vm->group_count; j++)
			if (vm->groups[j]->state == COROUTINE_SUSPENDED ||
			    vm->groups[j]->state == COROUTINE_PARKED)
				deliver_group(sampler, target, vm->groups[j], now, waited_ns);
	}
}

uint64_t target_note_reading(const struct sampler *sampler, struct target *target, uint64_t now_ns)
{
	const uint64_t last_ns = target->read_last_ns;

	target->read_last_ns = now_ns;
	return last_ns ? now_ns - last_ns : sampler->period_ns;
}

void target_sample_coroutines(struct sampler *sampler, struct target *target)
{
	uint64_t begin = clock_now_ns(CLOCK_MONOTONIC), end;
	struct dump_process *found;
	struct hold *hold;

	if (begin < target->read_next_ns)
		return;
	found = dump_process_new(target->pid, target->name);
	hold = hold_new(sampler->tracer, target->threads);
	if (hold)
		hold_go_on_while(hold, sampler->patience.may_go_on, sampler->patience.context);
	if (found && hold && dump_coroutines(target->process, hold, found) == 0) {
		end = clock_now_ns(CLOCK_MONOTONIC);
		deliver_all(sampler, target, found, end, target_note_reading(sampler, target, end));
		if (found->holds)
			histogram_add(&sampler->result->figures.pause_ns, found->longest_hold_ns);
		target->read_next_ns = end + (BUSY_ONE_IN - 1) * (end - begin);
	}
	hold_free(hold);
	dump_process_free(found);
}

/* SPDX-License-Identifier: MIT */
/* Samples of threads that run. */
#include "src/sampler/sampler_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/linux/calls/interrupted_call.h"
#include "src/linux/threads/may_stop.h"
#include "src/linux/tracer/thread_registers.h"
#include "src/linux/tracer/tracer_looks.h"

enum {
	STOP_TIMEOUT_NS = 2 * 1000 * 1000,
	/* ljspy is too late for a look if it waited so long for a CPU, or had other work for so long. */
	WAITED_TOO_LONG_NS = 200 * 1000,
	WORKED_TOO_LONG_NS = 500 * 1000,

	/* Letting a thread go on takes less. */
	AT_ONCE_NS = 50 * 1000,

	/* After so many looks that met no system call, calls are a percent of the time at most. */
	VISITS_AFTER_CALL = 200,

	/* See sampler_take_weight(). */
	RESERVE_PERIODS = 2,
	RESERVE_SAMPLES = 16,
	EVEN_OUT_OVER = 32,
};

static void hand_on(struct sampler *sampler, const struct sample *sample)
{
	figures_add_sample(&sampler->result->figures, sample);
	sampler->options->take(sampler->options->context, sample);
}

void target_deliver(struct sampler *sampler, struct target *target, const struct sample *sample)
{
	target->accounted_ns += sample->cpu_ns;
	sampler->wall_ns += sample->wall_ns;
	/* Looks at allocations only lead to samples. */
	if (!target->allocations)
		hand_on(sampler, sample);
}

static void deliver_allocation(void *context, const struct sample *sample)
{
	hand_on(context, sample);
}

void target_deliver_allocations(struct sampler *sampler, struct target *target, bool all)
{
	if (target->allocations)
		allocations_divide(target->allocations, all, &sampler->result->figures, deliver_allocation,
				   sampler);
}

bool target_is_up(const struct target *target)
{
	for (size_t i = 0; i < target->lively_count && !target->is_late; i++)
		if (target->known[i].record->presence != PRESENCE_OFF_CPU)
			return true;
	return target->is_late;
}

/* Was no other thread up at this look? */
static bool is_alone(const struct target *target, const struct thread *thread)
{
	for (size_t i = 0; i < target->lively_count; i++)
		if (target->known[i].thread != thread &&
		    target->known[i].record->presence != PRESENCE_OFF_CPU)
			return false;
	return true;
}

bool target_is_late(const struct sampler *sampler, uint64_t due_ns, uint64_t now)
{
	return tracer_turn(sampler->tracer)->late_ns > WAITED_TOO_LONG_NS ||
	       now - due_ns > WORKED_TOO_LONG_NS;
}

void target_deliver_lost(struct sampler *sampler, struct target *target, pid_t tid, uint64_t cpu_ns,
			 enum lost_reason reason)
{
	struct frame frame = { .function = lost_function(reason) };
	struct sample sample = {
		.time_ns = clock_now_ns(CLOCK_MONOTONIC),
		.pid = target->pid,
		.tid = tid,
		.process_name = target->name,
		.thread_state = THREAD_BLOCKED,
		.vm_state = VM_STATE_UNKNOWN,
		.cpu_ns = cpu_ns,
		.wall_ns = sampler->options->wall_clock ? cpu_ns : 0,
		.frames = &frame,
		.frame_count = 1,
	};

	target_deliver(sampler, target, &sample);
}

/*
 * Looks come at random moments, so each sample should weigh the same, about a
 * period. If a sample took all time since the last one, what runs late in a burst
 * of work would take the weight of what runs early, whose looks come after a
 * sleep. The account keeps some time in reserve, and spreads what is above or below
 * that over the samples to come; the last sample takes the rest.
 */
uint64_t sampler_take_weight(const struct sampler *sampler, struct time_account *account)
{
	uint64_t count = account->sample_count++;
	double period = (double)sampler->period_ns, pending = (double)account->pending_ns;
	double reserve = period * RESERVE_PERIODS * (double)count / (double)(count + RESERVE_SAMPLES);
	double weight = period + (pending - reserve) / EVEN_OUT_OVER;
	uint64_t taken = weight > 0 ? (uint64_t)weight : 0;

	if (sampler->closing || weight >= pending)
		return sampler_take_all(account);
	account->pending_ns -= (int64_t)taken;
	return taken;
}

uint64_t sampler_take_all(struct time_account *account)
{
	uint64_t taken = account->pending_ns > 0 ? (uint64_t)account->pending_ns : 0;

	account->pending_ns -= (int64_t)taken;
	return taken;
}

/* The kernel counts a stop as a sleep, too. */
void target_note_turn(const struct sampler *sampler, struct target *target, struct thread *thread,
		      struct thread_record *record)
{
	uint64_t sleeps;

	if (!sampler->options->turns)
		return;
	record->loop_ns = thread->tid == target->pid ? lua_process_loop_clock(target->process) : 0;
	record->sleeps = 0;
	if (!record->loop_ns && thread_count_sleeps(target->threads, thread, &sleeps) == 0)
		record->sleeps = 1 + sleeps - record->stops;
}

/* lost: why there is nothing to unwind, or LOST_COUNT. */
static void unwind_and_deliver(struct sampler *sampler, struct target *target, struct thread *thread,
			       struct thread_record *record, uint64_t looked_ns, enum lost_reason lost)
{
	/* Where others want ljspy's CPU, it may get here much later. */
	const uint64_t at_ns = record->measured_ns;
	struct sample sample = {
		.time_ns = at_ns,
		.pid = target->pid,
		.tid = thread->tid,
		.process_name = target->name,
		.thread_name = record->name,
		.thread_state = THREAD_RUNNING,
		.cpu_ns = sampler_take_weight(sampler, &record->on_cpu),
		.loop_ns = record->loop_ns,
		.sleeps = record->sleeps,
	};
	struct frame lost_frame;

	target_name_thread(target, thread, record);
	/* By the wall clock, other samples stand for its time off the CPU. */
	sample.wall_ns = sampler->options->wall_clock ? sample.cpu_ns : at_ns - record->last_sample_ns;

	if (lost == LOST_COUNT &&
	    lua_process_unwind(target->process, &sample.frames, &sample.frame_count, &sample.vm_state))
		lost = LOST_OUT_OF_MEMORY;
	if (lua_process_wants_refresh(target->process))
		target_hasten_inspection(target, at_ns);
	if (lost == LOST_COUNT) {
		sample.phase = lua_process_phase(target->process);
		sample.request = lua_process_request(target->process, at_ns);
		sample.trace = lua_process_trace(target->process);
		sample.trace_g = lua_process_trace_g(target->process);
		sample.code_pc = lua_process_code_pc(target->process);
		sample.proto = lua_process_proto(target->process);
		sample.gc = lua_process_gc(target->process, looked_ns, thread->cpu_ns);
	} else {
		lost_frame = (struct frame){ .function = lost_function(lost) };
		sample.vm_state = VM_STATE_UNKNOWN;
		sample.frames = &lost_frame;
		sample.frame_count = 1;
	}
	if (target->allocations && lost == LOST_COUNT) {
		allocations_take(target->allocations, target->process, &target->clock,
				 &(struct allocating_thread){ target->threads, thread, &sampler->span_ns,
							      &sampler->series_ns, is_alone(target, thread),
							      sampler_random(sampler, sampler->period_ns) },
				 sampler->options->functions, &sample);
		target_deliver_allocations(sampler, target, false);
	}
	record->has_run = false;
	record->last_sample_ns = at_ns;
	pace_note_sample(&target->pace);
	target_deliver(sampler, target, &sample);
	if (sampler->options->wall_clock)
		target_deliver_waiting(sampler, target, record, &sample);
}

/* When a thread was stopped and let go; a copy, as each signal changes the tracee's fields. */
struct held_time {
	uint64_t begin_ns, end_ns;
};

/*
 * How long a thread was held that has just been resumed, in ns. It may already have run
 * for a while: on the same CPU it runs before ljspy does again. The kernel's count of
 * that may lag by a tick, so the result may be too long, but not too short.
 */
static uint64_t hold_length(struct target *target, struct thread *thread, const struct held_time *held,
			    uint64_t last_ns)
{
	uint64_t end = held->end_ns, ran, waited = thread->waited_ns;

	if (end - last_ns > AT_ONCE_NS && thread_measure(target->threads, thread, &ran) == 0) {
		ran += thread->waited_ns - waited;
		end -= ran < end - last_ns ? ran : end - last_ns;
	}
	return end - held->begin_ns;
}

/*
 * When ljspy left the CPU of a thread that it had let go at resumed_ns. Where others want all CPUs, it
 * notices that late: then it has waited for another one.
 */
static uint64_t left_at(const struct sampler *sampler, uint64_t resumed_ns)
{
	uint64_t since_ns = clock_now_ns(CLOCK_MONOTONIC) - resumed_ns, waited_ns;

	if (since_ns > AT_ONCE_NS) {
		waited_ns = own_turn_waited(tracer_turn(sampler->tracer));
		since_ns -= waited_ns < since_ns ? waited_ns : since_ns;
	}
	return resumed_ns + since_ns;
}

/*
 * Put off the next look for as long as this one kept the thread from running. No look
 * can come in that time; if it came sooner afterwards instead, ljspy would see what
 * runs right after a sample more often than the rest.
 */
static void put_off_look(struct target *target, struct thread *thread, const struct thread_record *record,
			 const struct held_time *held, uint64_t runs_held)
{
	uint64_t kept_ns = held->end_ns - held->begin_ns, used;

	if (thread_measure(target->threads, thread, &used))
		return;
	/* Other threads may run while this one waits for a CPU. */
	if (threads_count(target->threads) == 1) {
		kept_ns += thread->waited_ns - record->look_waited_ns;
		if (thread->runs == runs_held) /* it still waits */
			kept_ns += clock_now_ns(CLOCK_MONOTONIC) - held->end_ns;
	}
	target->due_ns += kept_ns < NS_PER_SECOND ? kept_ns : NS_PER_SECOND;
}

/*
 * Does the thread make system calls, as far as samples have met any? Only then does it matter where ljspy
 * awaits a look (visit.h). A visit takes the thread off its CPU twice more, and leaves it with cold caches.
 */
static bool makes_calls(struct thread_record *record, bool at_call)
{
	if (at_call)
		record->visits_left = VISITS_AFTER_CALL;
	else if (record->visits_left)
		record->visits_left--;
	return record->visits_left > 0;
}

/*
 * Await the next look on the thread's CPU. Others may want that CPU, too: a thread that is stopped has to
 * wait for it behind them in any case, and does not get less of it.
 */
static void choose_cpu(struct target *target, const struct thread *thread, bool may_visit)
{
	target->cpu = thread->runs && may_visit ? tracer_cpu(thread->tracee) : -1;
	target->is_bound = target->cpu >= 0 && tracer_is_bound(thread->tracee);
}

/*
 * Count a stop that came from another CPU, as far as the CPU tells that the thread is on now, and met the end
 * of a system call: most that come so late do (visit.h).
 */
static void note_skid(struct sampler *sampler, const struct target *target, bool at_call, int visited_cpu)
{
	if (at_call && (visited_cpu < 0 || visited_cpu != target->cpu))
		sampler->result->figures.skid++;
}

/*
 * The thread had a CPU at the look, and slept in a system call when the stop reached
 * it. Where it was in between is unknown.
 */
static bool fell_asleep(const struct thread *thread, const struct thread_record *record,
			const struct registers *registers)
{
	return record->presence == PRESENCE_ON_CPU && thread->runs != record->look_runs &&
	       interrupted_call_has_ended(registers);
}

/*
 * Copy what belongs to a held thread, let it go; then deliver its sample. has_looked: other looks came before
 * it stopped, so what it waited for until then puts none off.
 */
static void take_held(struct sampler *sampler, struct target *target, struct thread *thread,
		      struct thread_record *record, bool has_looked)
{
	struct registers registers;
	struct held_time held = { .begin_ns = thread->tracee->stopped_ns };
	uint64_t last_ns, runs;
	const int visited_cpu = tracer_visits(sampler->tracer) ? target->cpu : -1;
	int error = tracer_registers(thread->tracee, &registers);
	bool at_call;

	if (!error) {
		record->held = registers;
		record->hints.tid = thread->tid;
		lua_process_confirm(target->process);
		lua_process_capture(target->process, &registers, &record->hints);
		if (target->allocations)
			allocations_note(target->allocations, target->process, true);
		thread_note_stop(thread, &registers);
	}
	record->stops++;
	target_note_turn(sampler, target, thread, record);
	/* The kernel's figures of a stopped thread are exact. */
	target_measure(sampler, target, thread, record);
	if (has_looked)
		record->look_waited_ns = thread->waited_ns;
	runs = thread->runs;
	last_ns = clock_now_ns(CLOCK_MONOTONIC);
	/* A thread that finds ljspy on its CPU goes on at another one, where its data are in no cache. */
	if (!target->is_bound)
		tracer_leave(sampler->tracer);
	tracer_resume(sampler->tracer, thread->tracee);
	held.end_ns = thread->tracee->resumed_ns;
	if (tracer_leave(sampler->tracer)) /* until now ljspy had the thread's CPU */
		held.end_ns = left_at(sampler, held.end_ns);
	tracer_end_look(sampler->tracer);
	tracer_take_wakeup(sampler->tracer);
	histogram_add(&sampler->result->figures.pause_ns, hold_length(target, thread, &held, last_ns));
	if (!error && fell_asleep(thread, record, &registers)) {
		sampler_note_missed(sampler, 1);
		if (target->allocations)
			allocations_skip(target->allocations, &target->clock);
	} else if (!error) {
		unwind_and_deliver(sampler, target, thread, record, held.begin_ns, LOST_COUNT);
		lua_process_note_unwound(target->process, &record->hints);
	}
	put_off_look(target, thread, record, &held, runs);
	/* Calls have no share of what is allocated. */
	at_call = !error && !target->allocations && interrupted_call_may_be(thread->tid, &registers);
	choose_cpu(target, thread, !error && !target->allocations && makes_calls(record, at_call));
	if (error)
		return;
	note_skid(sampler, target, at_call, visited_cpu);
	thread_note_resumed(thread, &registers);
}

/*
 * Find the thread's native stack: it tells which Lua the thread runs. The stack pointer
 * of a sleeping thread serves, too. Only needed where there are several threads.
 */
static void learn_stack(const struct target *target, const struct thread *thread,
			struct thread_record *record)
{
	if (record->stack_address)
		return;
	if (thread->tid == target->pid) {
		record->stack_address = lua_process_first_stack(target->process);
	} else {
		record->stack_address = own_stack_address(thread->tid);
		record->stack_address_is_end = record->stack_address != 0;
	}
	if (!record->stack_address && thread->calls.seen.known)
		record->stack_address = thread->calls.seen.sp;
}

static void note_other_stack(struct stack_place *place, const struct thread_record *other)
{
	const uint64_t address = other->stack_address;

	place->others_unknown |= address == 0;
	if (address > place->address && address < place->above)
		place->above = address;
	if (address < place->address && address > place->below) {
		place->below = address;
		place->below_is_end = other->stack_address_is_end;
	}
}

/* Where is its native stack, beside those of all others? */
static struct stack_place place_stack(const struct target *target, const struct thread *thread,
				      struct thread_record *record)
{
	struct stack_place place = { .above = UINT64_MAX };

	if (threads_count(target->threads) == 1)
		return place;
	learn_stack(target, thread, record);
	place.address = record->stack_address;
	place.is_end = record->stack_address_is_end;
	place.others_unknown = target->known_count < threads_count(target->threads);
	for (size_t i = 0; i < target->known_count && place.address; i++) {
		struct known_thread *other = &target->known[i];

		if (other->record == record)
			continue;
		learn_stack(target, other->thread, other->record);
		note_other_stack(&place, other->record);
	}
	return place;
}

/* Sample a thread while it runs on. */
static void sample_running(struct sampler *sampler, struct target *target, struct thread *thread,
			   struct thread_record *record)
{
	const bool is_only = threads_count(target->threads) == 1;
	const uint64_t looked_ns = clock_now_ns(CLOCK_MONOTONIC);
	const struct stack_place place = place_stack(target, thread, record);
	enum lost_reason lost = LOST_COUNT;

	if (!is_only && !place.address) {
		lost = LOST_NOT_STOPPED;
	} else {
		switch (lua_process_capture_running(target->process, &place, !sampler->options->no_stop,
						    &record->hints)) {
		case CAPTURE_WHOLE:
			if (target->allocations) {
				allocations_note(target->allocations, target->process, false);
				allocations_skip(target->allocations, &target->clock);
			}
			break;
		case CAPTURE_TORN: lost = LOST_RAN_MEANWHILE; break;
		case CAPTURE_NO_LUA:
		case CAPTURE_UNSURE: lost = LOST_NOT_STOPPED; break;
		}
	}
	tracer_end_look(sampler->tracer);
	unwind_and_deliver(sampler, target, thread, record, looked_ns, lost);
}

static void sample_without_stop(struct sampler *sampler, struct target *target, struct thread *thread,
				struct thread_record *record)
{
	if (thread->tracee->state != TRACEE_RUNNING)
		return;
	target_note_turn(sampler, target, thread, record);
	sample_running(sampler, target, thread, record);
}

/* Sample a thread that a stop might harm, without one. */
static void sample_undisturbed(struct sampler *sampler, struct target *target, struct thread *thread,
			       struct thread_record *record)
{
	sampler->result->figures.undisturbed += thread->tracee->state == TRACEE_RUNNING;
	sample_without_stop(sampler, target, thread, record);
}

/*
 * A thread that does not stop at once waits for a CPU: others have them all, or
 * its container has used up its share. It stops when it gets one, still where it
 * was, so target_take_late() takes the sample then.
 */
static void sample_stopped(struct sampler *sampler, struct target *target, struct thread *thread,
			   struct thread_record *record)
{
	const bool was_awaited = thread->tracee->state == TRACEE_AWAITED;
	int error;

	if (record->presence == PRESENCE_ON_CPU || record->presence == PRESENCE_PUT_OFF)
		error = tracer_stop_seen(sampler->tracer, thread->tracee, STOP_TIMEOUT_NS,
					 record->presence == PRESENCE_ON_CPU);
	else
		error = tracer_stop_running(sampler->tracer, thread->tracee, STOP_TIMEOUT_NS);
	if (!error)
		take_held(sampler, target, thread, record, false);
	else if (error == -ETIMEDOUT)
		thread->tracee->hold_late = true;
	if (error == -ETIMEDOUT && !was_awaited)
		record->awaited_look = target->looks;
}

/*
 * The last look at a thread that waits for a CPU. It would stop when it gets one, and then wait for
 * ljspy to get one, too. While it waits, its stack holds still anyway.
 */
static void sample_waiting(struct sampler *sampler, struct target *target, struct thread *thread,
			   struct thread_record *record)
{
	if (sampler->last_chance && !tracer_may_be_first(sampler->tracer))
		sample_without_stop(sampler, target, thread, record);
	else
		sample_stopped(sampler, target, thread, record);
}

static void sample_thread(struct sampler *sampler, struct target *target, struct thread *thread,
			  struct thread_record *record)
{
	switch (thread_may_stop_now(thread, record->presence)) {
	case MAY_STOP: sample_stopped(sampler, target, thread, record); break;
	case MAY_STOP_WAITING: sample_waiting(sampler, target, thread, record); break;
	case MAY_NOT_CALLS: sample_undisturbed(sampler, target, thread, record); break;
	case MAY_NOT_WAITS:
	case MAY_NOT_YET:
	case MAY_NOT_CALLS_WAITING:
		if (sampler->last_chance)
			sample_undisturbed(sampler, target, thread, record);
		else
			sampler_note_missed(sampler, 1);
		break;
	case MAY_NOT_SLEEPS: break;
	}
}

void target_take_late(struct sampler *sampler, struct target *target)
{
	uint64_t now = clock_now_ns(CLOCK_MONOTONIC);

	for (size_t i = 0; i < threads_count(target->threads); i++) {
		struct thread *thread = threads_at(target->threads, i);
		struct thread_record *record;

		if (thread->tracee->state != TRACEE_HELD)
			continue;
		record = target_record(target, thread, now);
		if (record && target->process && target->sampled)
			take_held(sampler, target, thread, record, target->looks != record->awaited_look);
		else
			tracer_resume(sampler->tracer, thread->tracee);
	}
}

static enum presence look_at(struct sampler *sampler, struct target *target, struct thread *thread,
			     struct thread_record *record)
{
	enum presence presence;

	if (!target_measure(sampler, target, thread, record) || (target->is_late && !sampler->closing))
		return PRESENCE_OFF_CPU;
	record->look_waited_ns = thread->waited_ns;
	record->has_rested = record->look_runs == thread->runs;
	record->look_runs = thread->runs;
	presence = on_cpu_look(target->threads, thread, tracer_turn(sampler->tracer));
	if (presence != PRESENCE_OFF_CPU)
		target_note_run(record, record->measured_ns);
	thread_note_place(thread);
	return presence;
}

/*
 * A rehearsal takes longer than all else from the look to the stop. So it comes before
 * the look, for threads that had a CPU at the last one. It must not depend on which have
 * one now: if looks at running threads came later than at sleeping ones, ljspy would see
 * too little of what runs right after a sleep.
 */
static void rehearse(struct target *target)
{
	for (size_t i = 0; i < target->lively_count; i++) {
		struct thread_record *record = target->known[i].record;

		if (record->presence != PRESENCE_OFF_CPU && lua_process_wants_rehearsal(&record->hints))
			lua_process_rehearse(target->process, &record->hints);
	}
}

/*
 * At the end only threads matter that used CPU time that no sample stands for yet. If such
 * a thread is not seen to run, the place where it waits for a CPU is better than no stack.
 */
static enum presence find_last(struct sampler *sampler, struct target *target, struct thread *thread,
			       const struct thread_record *record)
{
	if (record->on_cpu.pending_ns <= (int64_t)(sampler->period_ns / WORTH_TELLING_ONE_IN))
		return PRESENCE_OFF_CPU;
	if (record->presence != PRESENCE_OFF_CPU || !thread_is_running(target->threads, thread))
		return record->presence;
	target->wants_look = true;
	return sampler->last_chance ? PRESENCE_AWAKE : PRESENCE_OFF_CPU;
}

static void look_at_each(struct sampler *sampler, struct target *target, size_t begin, size_t end)
{
	for (size_t i = begin; i < end; i++) {
		struct thread *thread = target->known[i].thread;
		struct thread_record *record = target->known[i].record;

		record->presence = look_at(sampler, target, thread, record);
		if (sampler->closing)
			record->presence = find_last(sampler, target, thread, record);
	}
}

/*
 * Which threads have a CPU now? Look at all of them that may have run before stopping any: a stop
 * takes time, and others run meanwhile. Returns how many of the known ones were looked at.
 */
static size_t find_running(struct sampler *sampler, struct target *target)
{
	look_at_each(sampler, target, 0, target->lively_count);
	if (!target_others_may_have_run(sampler, target))
		return target->lively_count;
	look_at_each(sampler, target, target->lively_count, target->known_count);
	target_note_all_seen(target);
	return target->known_count;
}

/* Note in which calls the sleeping threads sleep. */
static void watch_sleeps(struct target *target, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct thread *thread = target->known[i].thread;
		struct thread_record *record = target->known[i].record;

		if (record->presence == PRESENCE_OFF_CPU && thread->tracee->state == TRACEE_RUNNING)
			thread_watch_sleep(target->threads, thread);
	}
}

/* Stacks of sleeping threads hold still: these come after the running ones. */
static void sample_sleepers(struct sampler *sampler, struct target *target, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct thread *thread = target->known[i].thread;
		struct thread_record *record = target->known[i].record;

		target_deliver_woken(sampler, target, record);
		record->is_read = record->presence == PRESENCE_OFF_CPU &&
				  target_read_sleeper(sampler, target, thread, record);
		if (record->presence == PRESENCE_OFF_CPU && !record->is_read)
			record->has_run = true;
	}
	for (size_t i = 0; i < count; i++)
		if (target->known[i].record->is_read)
			target_sample_sleeper(sampler, target, target->known[i].thread,
					      target->known[i].record);
	target_forget_old_locks(target);
}

/*
 * A held thread waits for ljspy, so ljspy must not have to wait for its next turn then. Work on
 * other threads may have used up this turn: begin a new one, and look again. A thread that has
 * left its CPU by then is missed.
 */
static void begin_turn(struct sampler *sampler, struct target *target, struct thread *thread,
		       struct thread_record *record)
{
	if (sampler->closing || !tracer_turn_is_used_up(sampler->tracer))
		return;
	own_turn_renew(tracer_turn(sampler->tracer));
	record->presence = look_at(sampler, target, thread, record);
	if (record->presence == PRESENCE_OFF_CPU)
		sampler_note_missed(sampler, 1);
}

void target_sample(struct sampler *sampler, struct target *target)
{
	const struct sampler_options *options = sampler->options;
	bool has_sampled = false;
	size_t count;

	target->looks++;
	if (options->coroutines || options->requests) {
		if (options->coroutines)
			target_sample_coroutines(sampler, target);
		else
			target_sample_requests(sampler, target);
		tracer_end_look(sampler->tracer);
		return;
	}
	target_list_threads(sampler, target);
	if (!options->no_stop)
		rehearse(target);
	/* Better before all looks than between them: see begin_turn(). */
	if (tracer_turn_is_used_up(sampler->tracer))
		own_turn_renew(tracer_turn(sampler->tracer));
	count = find_running(sampler, target);
	for (size_t i = 0; i < count; i++) {
		struct thread *thread = target->known[i].thread;
		struct thread_record *record = target->known[i].record;

		if (record->presence == PRESENCE_OFF_CPU)
			continue;
		if (options->no_stop) {
			sample_running(sampler, target, thread, record);
		} else {
			if (has_sampled)
				begin_turn(sampler, target, thread, record);
			if (record->presence != PRESENCE_OFF_CPU)
				sample_thread(sampler, target, thread, record);
		}
		has_sampled = true;
	}
	/*
	 * Where nothing ran, ljspy stays where it is, to await the next look there: it has nothing more to
	 * do.
	 */
	if (has_sampled || options->wall_clock || !target_has_few_threads(target))
		tracer_end_look(sampler->tracer);
	watch_sleeps(target, count);
	if (options->wall_clock && (!sampler->closing || sampler->last_chance))
		sample_sleepers(sampler, target, count);
}

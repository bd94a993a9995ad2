/* SPDX-License-Identifier: MIT */
#include "src/linux/threads/hold.h"

#include <errno.h>
#include <stdlib.h>

#include "src/linux/clocks/clock.h"
#include "src/linux/threads/may_stop.h"
#include "src/linux/threads/nearest_stack.h"

enum {
	/* In this time all threads have stopped, or none is held. One that has a CPU takes much less. */
	STOP_TIMEOUT_NS = 20 * 1000 * 1000,
	STOP_AT_ONCE_NS = 200 * 1000,
	FAILURES_MAX = 1000, /* in a row */
	FAILURES_MIN = 3,    /* however long threads were held for them */
	/* No more failures after threads were held for so long for what was read and discarded. */
	IN_VAIN_MAX_NS = 1000 * 1000 * 1000,
	REST_FACTOR = 1, /* threads then run on for this many times the length of the hold */
	REST_AFTER_FAILURE_NS = 1000 * 1000,
	REST_STEPS = 9, /* from half of it to one and a half */
	LOOKS_MAX = 64, /* at threads, until signals are passed on */
};

struct watched {
	struct thread *thread;
	bool is_up; /* it had a CPU or waited for one when all were looked at, and may be stopped */
	bool stopped;
	bool is_awaited;            /* told to stop, but it has not got a CPU yet */
	bool waits;                 /* woken, but it has not got a CPU yet */
	struct registers registers; /* if stopped; all 0 if they cannot be read */
	struct thread_call call;    /* if asleep */
	uint64_t runs;              /* if it waits: how often it had a CPU */
};

struct hold {
	struct tracer *tracer;
	struct threads *threads;
	struct watched *watched;
	size_t watched_count, watched_size;
	uint64_t begin_ns; /* when the first thread stopped; 0: none did */
	uint64_t count, last_ns, longest_ns, total_ns;
	enum hold_start start;
	bool takes_waiting;
	bool (*may_go_on)(void *context); /* may be NULL */
	void *may_go_on_context;
};

struct hold *hold_new(struct tracer *tracer, struct threads *threads)
{
	struct hold *hold = calloc(1, sizeof(*hold));

	if (!hold)
		return NULL;
	hold->tracer = tracer;
	hold->threads = threads;
	return hold;
}

void hold_free(struct hold *hold)
{
	if (!hold)
		return;
	free(hold->watched);
	free(hold);
}

void hold_go_on_while(struct hold *hold, bool (*may_go_on)(void *context), void *context)
{
	hold->may_go_on = may_go_on;
	hold->may_go_on_context = context;
}

void hold_take_waiting(struct hold *hold)
{
	hold->takes_waiting = true;
}

bool hold_may_go_on(const struct hold *hold)
{
	return !hold->may_go_on || hold->may_go_on(hold->may_go_on_context);
}

static bool make_room(struct hold *hold)
{
	size_t count = threads_count(hold->threads);
	struct watched *larger;

	if (count <= hold->watched_size)
		return true;
	larger = realloc(hold->watched, count * sizeof(*larger));
	if (!larger)
		return false;
	hold->watched = larger;
	hold->watched_size = count;
	return true;
}

/* HOLD_WAITED: when it gets a CPU it stops, and stays stopped. */
static enum hold_start stop(struct hold *hold, struct watched *watched, uint64_t timeout_ns)
{
	struct tracee *tracee = watched->thread->tracee;
	int error = tracer_stop(hold->tracer, tracee, timeout_ns);

	watched->is_awaited = tracee->hold_late = error == -ETIMEDOUT;
	if (error == -ESRCH)
		return HOLD_AT_ONCE; /* a thread that has ended needs no stop */
	if (error)
		return error == -ETIMEDOUT ? HOLD_WAITED : HOLD_RAN;
	watched->stopped = true;
	if (hold->begin_ns == 0 || tracee->stopped_ns < hold->begin_ns)
		hold->begin_ns = tracee->stopped_ns;
	tracer_registers(tracee, &watched->registers);
	return HOLD_AT_ONCE;
}

/* The next one to ask for; of those that have stopped meanwhile the first. NULL if all have been. */
static struct watched *next_awaited(struct hold *hold)
{
	struct watched *next = NULL;

	for (size_t i = 0; i < hold->watched_count; i++) {
		struct watched *watched = &hold->watched[i];

		if (!watched->is_awaited)
			continue;
		if (watched->thread->tracee->state == TRACEE_HELD)
			return watched;
		next = next ? next : watched;
	}
	return next;
}

/*
 * All have been told to stop, so they wait for CPUs at the same time: one after the other, the first one
 * would stand still for the sum of these times. HOLD_WAITED if it takes too long.
 */
static enum hold_start await_stops(struct hold *hold)
{
	const uint64_t begin_ns = hold->begin_ns ? hold->begin_ns : clock_now_ns(CLOCK_MONOTONIC);
	enum hold_start start = HOLD_AT_ONCE;
	struct watched *watched;

	while (start != HOLD_RAN && (watched = next_awaited(hold))) {
		uint64_t waited_ns = clock_now_ns(CLOCK_MONOTONIC) - begin_ns;

		/* One that has stopped counts as held, for however long. */
		if (waited_ns >= STOP_TIMEOUT_NS && watched->thread->tracee->state != TRACEE_HELD)
			return HOLD_WAITED;
		/* A wait for one ends when another one stops. */
		tracer_has_held_late(hold->tracer);
		start = stop(hold, watched, waited_ns < STOP_TIMEOUT_NS ? STOP_TIMEOUT_NS - waited_ns : 1);
	}
	return start;
}

/*
 * HOLD_AT_ONCE if it is held, or awaited, or, unless ljspy stops it, if it is up; or why not. One that is
 * awaited stops when it gets a CPU.
 */
static enum hold_start watch(struct hold *hold, struct watched *watched, bool stops)
{
	enum hold_start start;
	enum thread_state state;
	uint64_t used;

	watched->waits = false;
	switch (thread_may_stop(hold->threads, watched->thread, tracer_turn(hold->tracer))) {
	case MAY_STOP:
	case MAY_STOP_WAITING:
		watched->is_up = true;
		start = stops ? stop(hold, watched, STOP_AT_ONCE_NS) : HOLD_AT_ONCE;
		return watched->is_awaited ? HOLD_AT_ONCE : start;
	case MAY_NOT_YET:
	case MAY_NOT_CALLS:
	case MAY_NOT_CALLS_WAITING: return HOLD_RAN;
	case MAY_NOT_WAITS:
		if (stops && !hold->takes_waiting)
			return HOLD_WOKE;
		watched->waits = true;
		watched->runs = watched->thread->runs;
		return HOLD_AT_ONCE;
	case MAY_NOT_SLEEPS: break;
	}
	if (thread_measure(hold->threads, watched->thread, &used) ||
	    thread_read_state(hold->threads, watched->thread, &state, &watched->call))
		return HOLD_AT_ONCE;
	return state == THREAD_RUNNING || !watched->call.known ? HOLD_WOKE : HOLD_AT_ONCE;
}

/*
 * While no thread is held: each so many looks, pass on signals, and let run on who has stopped too late. i:
 * how many looks there were.
 */
static void pass_on(struct hold *hold, size_t i)
{
	if (i > 0 && i % LOOKS_MAX == 0)
		tracer_poll(hold->tracer);
}

static bool slept_on(struct hold *hold, struct watched *watched)
{
	struct thread_call call;
	enum thread_state state;
	uint64_t used;

	if (watched->waits)
		return thread_measure(hold->threads, watched->thread, &used) == 0 && used == 0 &&
		       watched->thread->runs == watched->runs;
	/* A thread without a call had already ended in begin(). */
	if (!watched->call.known)
		return true;
	return thread_read_state(hold->threads, watched->thread, &state, &call) == 0 &&
	       state != THREAD_RUNNING && thread_call_is_same(&watched->call, &call) &&
	       thread_measure(hold->threads, watched->thread, &used) == 0 && used == 0;
}

/* End the hold. */
static void let_go(struct hold *hold)
{
	/*
	 * A thread that goes on might close the file of another one's call. Resume all before anything else.
	 */
	for (size_t i = 0; i < hold->watched_count; i++)
		if (hold->watched[i].stopped)
			thread_note_stop(hold->watched[i].thread, &hold->watched[i].registers);
	/* The last thread that goes on may take ljspy's CPU: look at the clock before. */
	for (size_t i = 0; i < hold->watched_count; i++) {
		if (!hold->watched[i].stopped)
			continue;
		hold->last_ns = clock_now_ns(CLOCK_MONOTONIC) - hold->begin_ns;
		tracer_resume(hold->tracer, hold->watched[i].thread->tracee);
	}
	for (size_t i = 0; i < hold->watched_count; i++) {
		struct tracee *tracee = hold->watched[i].thread->tracee;

		if (!hold->watched[i].is_awaited)
			continue;
		tracee->hold_late = false;
		if (tracee->state == TRACEE_HELD) /* by now */
			tracer_resume(hold->tracer, tracee);
	}
	for (size_t i = 0; i < hold->watched_count; i++)
		if (hold->watched[i].stopped)
			thread_note_resumed(hold->watched[i].thread, &hold->watched[i].registers);
	hold->count += hold->last_ns ? 1 : 0;
	hold->total_ns += hold->last_ns;
	if (hold->last_ns > hold->longest_ns)
		hold->longest_ns = hold->last_ns;
}

/* After let_go(): has nothing run since begin()? */
static bool all_slept_on(struct hold *hold)
{
	bool good = true;

	for (size_t i = 0; i < hold->watched_count && good; i++) {
		pass_on(hold, i);
		good = hold->watched[i].stopped || slept_on(hold, &hold->watched[i]);
	}
	return good;
}

/*
 * Look at all threads before any is stopped: there may be thousands that sleep. HOLD_AT_ONCE, or watch() says
 * why not.
 */
static enum hold_start watch_all(struct hold *hold)
{
	enum hold_start start = HOLD_AT_ONCE;

	for (size_t i = 0; i < threads_count(hold->threads) && start == HOLD_AT_ONCE; i++) {
		struct watched *watched = &hold->watched[hold->watched_count++];

		pass_on(hold, i);
		*watched = (struct watched){ .thread = threads_at(hold->threads, i) };
		start = watch(hold, watched, false);
	}
	return start;
}

/* Those that waited for a CPU first: they may do so still, and then none is stopped. */
static enum hold_start stop_others(struct hold *hold)
{
	enum hold_start start = HOLD_AT_ONCE;

	for (size_t i = 0; i < hold->watched_count && start == HOLD_AT_ONCE; i++)
		if (hold->watched[i].waits)
			start = watch(hold, &hold->watched[i], true);
	for (size_t i = 0; i < hold->watched_count && start == HOLD_AT_ONCE; i++)
		if (hold->watched[i].is_up && !hold->watched[i].stopped && !hold->watched[i].is_awaited)
			start = watch(hold, &hold->watched[i], true);
	return start;
}

/*
 * Hold the process. HOLD_AT_ONCE: end the hold soon. Else nothing is held: watch() says why, or memory is
 * short.
 */
static enum hold_start begin(struct hold *hold)
{
	enum hold_start start;

	hold->watched_count = 0;
	hold->begin_ns = hold->last_ns = 0;
	if (!make_room(hold))
		return HOLD_WOKE;
	start = watch_all(hold);
	if (start == HOLD_AT_ONCE && own_turn_is_used_up(tracer_turn(hold->tracer)))
		own_turn_renew(tracer_turn(hold->tracer));
	if (start == HOLD_AT_ONCE)
		start = stop_others(hold);
	if (start == HOLD_AT_ONCE)
		start = await_stops(hold);
	if (start != HOLD_AT_ONCE)
		let_go(hold);
	return start;
}

static void rest(struct hold *hold, uint64_t ns)
{
	struct timespec time = { .tv_sec = (time_t)(ns / NS_PER_SECOND),
				 .tv_nsec = (long)(ns % NS_PER_SECOND) };
	sigset_t none;

	sigemptyset(&none);
	own_turn_wait(tracer_turn(hold->tracer), &none, NULL, &time);
}

/* Not as long each time, or else all tries might meet the same part of a target's period. */
static void rest_after_failure(struct hold *hold, unsigned int number)
{
	rest(hold, REST_FACTOR * hold->last_ns +
			   REST_AFTER_FAILURE_NS * (REST_STEPS / 2 + number % REST_STEPS) / (REST_STEPS - 1));
}

static bool may_try(unsigned int failures, uint64_t in_vain_ns)
{
	return failures < FAILURES_MIN || (failures < FAILURES_MAX && in_vain_ns < IN_VAIN_MAX_NS);
}

bool hold_while(struct hold *hold, void (*read)(void *context), void (*undo)(void *context), void *context)
{
	bool has_just_slept = false;
	uint64_t in_vain_ns = 0;

	hold->start = HOLD_AT_ONCE;
	for (unsigned i = 0; may_try(i, in_vain_ns) && hold_may_go_on(hold); i++) {
		enum hold_start start;

		tracer_poll(hold->tracer); /* signals must not wait until all is read */
		start = begin(hold);
		if (start == HOLD_AT_ONCE) {
			start = HOLD_WOKE; /* unless the end finds that all slept on */
			read(context);
			let_go(hold);
			if (all_slept_on(hold)) {
				rest(hold, REST_FACTOR * hold->last_ns);
				return true;
			}
			in_vain_ns += hold->last_ns;
			if (undo)
				undo(context);
			/*
			 * Where all sleep again by now, their nap is young. After a rest it would be as old
			 * as it was, if the target takes a nap of that length each time.
			 */
			has_just_slept = !has_just_slept && !hold_has_stopped(hold);
		} else {
			has_just_slept = false;
		}
		if (i == 0)
			hold->start = start;
		if (!has_just_slept)
			rest_after_failure(hold, i);
	}
	return false;
}

enum hold_start hold_start(const struct hold *hold)
{
	return hold->start;
}

bool hold_has_waiting(const struct hold *hold)
{
	for (size_t i = 0; i < hold->watched_count; i++)
		if (hold->watched[i].waits)
			return true;
	return false;
}

bool hold_has_stopped(const struct hold *hold)
{
	return hold->begin_ns != 0;
}

uint64_t hold_began_ns(const struct hold *hold)
{
	return hold->begin_ns;
}

const struct registers *hold_registers(const struct hold *hold, pid_t tid)
{
	for (size_t i = 0; i < hold->watched_count; i++)
		if (hold->watched[i].stopped && hold->watched[i].thread->tid == tid)
			return &hold->watched[i].registers;
	return NULL;
}

bool hold_find_on_stack(const struct hold *hold, uint64_t address, pid_t *ret_tid,
			struct registers *ret_registers)
{
	struct nearest_stack nearest_stack = { .address = address };
	const struct watched *nearest = NULL;

	for (size_t i = 0; i < hold->watched_count; i++) {
		const struct watched *watched = &hold->watched[i];
		const uint64_t sp = watched->stopped      ? watched->registers.sp
				    : watched->call.known ? watched->call.sp
							  : 0;

		if (nearest_stack_takes(&nearest_stack, sp))
			nearest = watched;
	}
	if (!nearest)
		return false;
	*ret_tid = nearest->thread->tid;
	*ret_registers = nearest->stopped ? nearest->registers : thread_call_registers(&nearest->call);
	return true;
}

void hold_count_anew(struct hold *hold)
{
	hold->count = hold->longest_ns = hold->total_ns = 0;
}

uint64_t hold_count(const struct hold *hold)
{
	return hold->count;
}

uint64_t hold_longest_ns(const struct hold *hold)
{
	return hold->longest_ns;
}

uint64_t hold_total_ns(const struct hold *hold)
{
	return hold->total_ns;
}

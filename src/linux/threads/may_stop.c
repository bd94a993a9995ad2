/* SPDX-License-Identifier: MIT */
#include "src/linux/threads/may_stop.h"

#include "src/linux/clocks/clock.h"
#include "src/linux/calls/call_nature.h"

/*
 * How long ljspy leaves a thread alone after seeing it in a call that does not bear a stop: at first
 * for as long as some looks take that see it asleep; then for MEMORY_GAPS times the longest time
 * between two such calls that ljspy saw.
 */
static const uint64_t MEMORY_LEAST_NS = UINT64_C(10) * NS_PER_SECOND;
static const uint64_t MEMORY_MOST_NS = UINT64_C(600) * NS_PER_SECOND;
enum { MEMORY_GAPS = 4 };

enum {
	/* ljspy knows the calls of a thread once it has seen it asleep, or left it alone, this often. */
	SEEN_ENOUGH = 4,
	LEFT_ALONE_MAX = 8,
	/*
	 * After so many stops in calls that were not at risk, the thread need not wait for the next
	 * judgement.
	 */
	HARMLESS_ENOUGH = 16,
};

/* The thread makes a call that does not bear a stop, the same or another one. */
static void keep_alone(struct call_watch *calls)
{
	uint64_t now = clock_now_ns(CLOCK_MONOTONIC);
	uint64_t wanted = calls->fragile_seen_ns ? MEMORY_GAPS * (now - calls->fragile_seen_ns) : 0;

	if (wanted < MEMORY_LEAST_NS)
		wanted = MEMORY_LEAST_NS;
	if (wanted > MEMORY_MOST_NS)
		wanted = MEMORY_MOST_NS;
	if (wanted > calls->memory_ns)
		calls->memory_ns = wanted;
	calls->fragile_seen_ns = now;
}

/* The thread is still in the same call, or was until a moment ago. */
static void note_same_call(struct call_watch *calls)
{
	if (!calls->bears_stop)
		calls->fragile_seen_ns = clock_now_ns(CLOCK_MONOTONIC);
}

/* ljspy sees the thread asleep in this call. */
static void note_sleep(struct thread *thread, const struct thread_call *call)
{
	struct call_watch *calls = &thread->calls;

	calls->is_awake = false;
	calls->seen_count++;
	if (!call->known)
		return;
	calls->sleep_runs = thread->runs;
	if (!thread_call_is_same(call, &calls->seen)) {
		calls->seen = *call;
		calls->bears_stop = call->number < 0 ||
				    call_bears_stop(thread->tid, call->number, call->arguments);
	}
	if (!calls->bears_stop)
		keep_alone(calls);
}

static bool may_have_been_cut(const struct registers *registers)
{
	uint64_t arguments[CALL_ARGUMENTS];

	registers_call_arguments(registers, arguments);
	return call_may_be_cut((int64_t)registers->call_number, arguments, registers_call_result(registers));
}

static bool was_at_risk(const struct thread *thread, const struct registers *registers)
{
	uint64_t arguments[CALL_ARGUMENTS];

	registers_call_arguments(registers, arguments);
	return call_was_at_risk(thread->tid, (int64_t)registers->call_number, arguments,
				registers_call_result(registers));
}

void thread_note_stop(struct thread *thread, const struct registers *registers)
{
	struct call_watch *calls = &thread->calls;

	/* The stop counts as a sleep, too. Outside of a call, the thread stays awake. */
	calls->is_awake = (int64_t)registers->call_number < 0;
	calls->sleeps++;
	if (calls->harmless_count >= HARMLESS_ENOUGH || !may_have_been_cut(registers))
		return;
	calls->harmless_count++;
	if (!was_at_risk(thread, registers))
		return;
	calls->harmless_count = 0;
	keep_alone(calls);
}

void thread_note_resumed(struct thread *thread, const struct registers *registers)
{
	struct call_watch *calls = &thread->calls;

	if (calls->harmless_count >= HARMLESS_ENOUGH && was_at_risk(thread, registers))
		calls->harmless_count = 0;
}

/* For a thread that sleeps now and then: must ljspy still find out in which calls it sleeps? */
static bool is_to_be_known(struct call_watch *calls)
{
	return calls->seen_count < SEEN_ENOUGH && calls->left_alone_count++ < LEFT_ALONE_MAX;
}

static bool makes_fragile_calls(const struct thread *thread)
{
	const struct call_watch *calls = &thread->calls;

	return calls->fragile_seen_ns &&
	       clock_now_ns(CLOCK_MONOTONIC) - calls->fragile_seen_ns < calls->memory_ns;
}

void thread_note_place(struct thread *thread)
{
	struct call_watch *calls = &thread->calls;

	/* It has run since its last sleep, and ljspy may not have looked meanwhile. */
	if (calls->sleep_runs && thread->runs != calls->sleep_runs) {
		note_same_call(calls);
		calls->sleep_runs = 0;
	}
	calls->has_slept |= thread->sleeps != calls->sleeps;
	calls->is_awake = thread->sleeps == calls->sleeps && (calls->is_awake || thread->runs != calls->runs);
	calls->sleeps = thread->sleeps;
	calls->runs = thread->runs;
}

enum may_stop thread_may_stop_now(struct thread *thread, enum presence presence)
{
	struct call_watch *calls = &thread->calls;
	const bool is_counted = thread->runs > 0, has_slept = calls->has_slept;
	const bool may_be_woken = presence == PRESENCE_OFF_CPU || (presence == PRESENCE_AWAKE && is_counted);

	calls->has_slept = false;
	if (may_be_woken && !calls->is_awake)
		return MAY_NOT_WAITS;
	/* A thread that has not slept since the last question is in none of the calls in which it slept. */
	if (has_slept && is_to_be_known(calls))
		return MAY_NOT_YET;
	if (makes_fragile_calls(thread))
		return may_be_woken ? MAY_NOT_CALLS_WAITING : MAY_NOT_CALLS;
	return may_be_woken ? MAY_STOP_WAITING : MAY_STOP;
}

/* True if it runs or waits for a CPU; else note what it sleeps in. */
static bool is_up(struct threads *threads, struct thread *thread)
{
	struct thread_call call;
	enum thread_state state;

	if (thread_read_state(threads, thread, &state, &call))
		return false;
	/* A job-stopped thread need not be asleep in a call. */
	if (state == THREAD_BLOCKED && !thread->is_job_stopped)
		note_sleep(thread, &call);
	return state == THREAD_RUNNING;
}

void thread_watch_sleep(struct threads *threads, struct thread *thread)
{
	struct call_watch *calls = &thread->calls;

	/* It still sleeps, or was woken and has not run yet. */
	if (thread->runs && thread->runs == calls->sleep_runs) {
		note_same_call(calls);
		return;
	}
	/* It still waits for a CPU. */
	if (thread->runs && thread->runs == thread->runs_left && thread->runs == calls->up_runs)
		return;
	calls->up_runs = is_up(threads, thread) ? thread->runs : 0;
}

enum may_stop thread_may_stop(struct threads *threads, struct thread *thread, struct own_turn *turn)
{
	enum presence presence;
	uint64_t used;

	if (!is_up(threads, thread) || thread_measure(threads, thread, &used))
		return MAY_NOT_SLEEPS;
	presence = on_cpu_look(threads, thread, turn);
	thread_note_place(thread);
	return thread_may_stop_now(thread, presence);
}

/* SPDX-License-Identifier: MIT */
/* Samples of threads that sleep. */
#include "src/sampler/sampler_state.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "src/linux/threads/wait_text.h"
#include "src/survey/asleep.h"

/*
 * ljspy keeps the names of files and peers, and new ones may come all the time. When
 * they take so many bytes, samples name only system calls from then on.
 */
enum { WAIT_NAMES_MAX = 4 << 20 };

/* From one sleep to the next: longer waits for CPUs that have no sample are no matter of chance. */
enum { UNSEEN_WAIT_PERIODS = 2 };

/*
 * A process may have many threads that wait for work all the time and have nothing
 * to do with Lua. A thread has samples if it is the first one, if Lua is on its
 * stack, or once it has run: then of all of its time.
 */
static bool is_worth_telling(const struct target *target, const struct thread_record *record)
{
	if (record->tid == target->pid || record->has_run)
		return true;
	for (size_t i = 0; i < record->sleep.frame_count; i++)
		if (record->sleep.frames[i].function->kind == FRAME_LUA)
			return true;
	return false;
}

/* Of a thread that is not held now: who it is and what it does, but not where. */
static struct sample sample_of(const struct target *target, const struct thread_record *record,
			       enum thread_state state, uint64_t wall_ns)
{
	return (struct sample){
		.time_ns = clock_now_ns(CLOCK_MONOTONIC),
		.pid = target->pid,
		.tid = record->tid,
		.process_name = target->name,
		.thread_name = record->name,
		.thread_state = state,
		.wall_ns = wall_ns,
	};
}

/* Deliver time that the thread spent where it was last seen asleep, in that state. */
static void deliver_there(struct sampler *sampler, struct target *target, struct thread_record *record,
			  enum thread_state state, uint64_t wall_ns)
{
	struct sleep *sleep = &record->sleep;
	struct sample sample = sample_of(target, record, state, wall_ns);

	sample.phase = sleep->phase;
	sample.request = sleep->request;
	sample.wait = state == THREAD_RUNNABLE ? NULL : sleep->wait;
	sample.vm_state = sleep->vm_state;
	sample.gc = sleep->gc;
	sample.loop_ns = record->loop_ns;
	sample.sleeps = record->sleeps;
	sample.awaits_events = state == THREAD_IDLE && sleep->awaits_events;
	sample.frames = sleep->frames;
	sample.frame_count = sleep->frame_count;
	target_deliver(sampler, target, &sample);
	sleep->gc.has_marked = false;
	sleep->gc.allocated_bytes = sleep->gc.used_ns = 0;
}

static void deliver_sleep(struct sampler *sampler, struct target *target, struct thread_record *record,
			  uint64_t wall_ns)
{
	deliver_there(sampler, target, record, record->sleep.thread_state, wall_ns);
}

void target_deliver_woken(struct sampler *sampler, struct target *target, struct thread_record *record)
{
	if (record->woken.pending_ns > (int64_t)(sampler->period_ns / WORTH_TELLING_ONE_IN))
		deliver_there(sampler, target, record, THREAD_RUNNABLE, sampler_take_all(&record->woken));
}

/* One without debug info may be a main chunk, too; most of them are not. */
static bool is_in_function(const struct function *function)
{
	return function->kind == FRAME_LUA &&
	       (function->firstline > 0 || !function->name || strcmp(function->name, MAIN_CHUNK) != 0);
}

/* Which kinds of frames are on the stack? */
static struct wait_stack describe_stack(const struct frame *frames, size_t count, const char *phase)
{
	struct wait_stack stack = { .request = phase != NULL };

	for (size_t i = 0; i < count; i++) {
		const struct function *function = frames[i].function;

		stack.lua |= function->kind == FRAME_LUA || function->kind == FRAME_BUILTIN;
		stack.lua_function |= is_in_function(function);
	}
	return stack;
}

/*
 * After a stop, a call with a time limit goes on as restart_syscall. The registers
 * of that stop tell which call it is.
 */
static void resolve_restart(const struct thread_record *record, struct thread_call *call)
{
	const struct registers *held = &record->held;

	if (call->known && call->number == SYS_restart_syscall && held->pc == call->pc &&
	    held->sp == call->sp && (int64_t)held->call_number >= 0)
		call->number = (int64_t)held->call_number;
}

static bool keep_frames(struct sleep *sleep, const struct frame *frames, size_t count)
{
	if (count > sleep->frames_size) {
		struct frame *larger = realloc(sleep->frames, count * sizeof(*larger));

		if (!larger)
			return false;
		sleep->frames = larger;
		sleep->frames_size = count;
	}
	if (count)
		memcpy(sleep->frames, frames, count * sizeof(*frames));
	sleep->frame_count = count;
	return true;
}

static const char *keep_text(const char *text, char *copy, size_t size)
{
	if (!text)
		return NULL;
	snprintf(copy, size, "%s", text);
	return copy;
}

static void keep_request(struct sleep *sleep, struct sample_request request)
{
	struct sleep_texts *texts = &sleep->texts;

	request.route = keep_text(request.route, texts->route, sizeof(texts->route));
	request.method = keep_text(request.method, texts->method, sizeof(texts->method));
	request.host = keep_text(request.host, texts->host, sizeof(texts->host));
	sleep->request = request;
}

/* Does it still sleep in the call? Once it runs, its files may be others. */
static bool sleeps_on(const struct target *target, struct thread *thread, const struct thread_call *call)
{
	struct thread_call now;
	enum thread_state state;
	uint64_t runs;

	if (thread->runs)
		return thread_count_runs(target->threads, thread, &runs) == 0 && runs == thread->runs;
	return thread_read_state(target->threads, thread, &state, &now) == 0 && state != THREAD_RUNNING &&
	       now.pc == call->pc && now.sp == call->sp;
}

/* False if the thread has run meanwhile. */
static bool describe_wait(const struct target *target, struct thread *thread, struct thread_record *record,
			  const struct thread_call *call, struct wait *wait,
			  char ret_text[static WAIT_TEXT_SIZE])
{
	struct wait described = *wait;

	wait_describe(target->pid, lua_process_memory(target->process), call, &described,
		      &record->last_socket, ret_text);
	if (!sleeps_on(target, thread, call))
		return false;
	*wait = described;
	return true;
}

/*
 * Name what it waits for, as a frame shows it; may correct the wait. is_over: the call was, when the stack
 * was copied. NULL when memory is short.
 */
static const struct function *name_wait(struct sampler *sampler, const struct target *target,
					struct thread *thread, struct thread_record *record, bool is_over,
					const struct thread_call *call, struct wait *wait)
{
	struct functions *functions = sampler->options->functions;
	size_t size = functions_size(functions);
	char text[WAIT_TEXT_SIZE];
	const struct function function = { .kind = FRAME_NATIVE, .name = text, .module = "kernel" };
	const struct function *named;

	if (is_over || sampler->wait_name_bytes >= WAIT_NAMES_MAX ||
	    !describe_wait(target, thread, record, call, wait, text))
		wait_describe_briefly(call, wait, text);
	named = functions_intern(functions, &function);
	sampler->wait_name_bytes += functions_size(functions) - size;
	return named;
}

/* What was copied of a thread that sleeps. */
struct asleep {
	enum thread_state state;
	struct thread_call call;
	enum lost_reason lost; /* why there is no stack; LOST_COUNT: there is one */
	struct frame lost_frame;
	const struct frame *frames; /* valid until the process's next copy */
	size_t count;
	enum vm_state vm_state;
	bool shows_more; /* another copy will */
};

/* Copy and unwind it. False if it runs. */
static bool copy_sleeper(struct target *target, struct thread *thread, struct thread_record *record,
			 struct asleep *asleep)
{
	*asleep = (struct asleep){ .lost = LOST_COUNT, .vm_state = VM_STATE_UNKNOWN };
	switch (asleep_capture(target->process, target->threads, thread, &record->hints, &asleep->state,
			       &asleep->call)) {
	case ASLEEP_RUNS: return false;
	case ASLEEP_HOLDS: break;
	case ASLEEP_TORN: asleep->lost = LOST_RAN_MEANWHILE; break;
	case ASLEEP_UNKNOWN: asleep->lost = LOST_NOT_STOPPED; break;
	}
	if (asleep->lost == LOST_COUNT &&
	    lua_process_unwind(target->process, &asleep->frames, &asleep->count, &asleep->vm_state) != 0)
		asleep->lost = LOST_OUT_OF_MEMORY;
	if (asleep->lost == LOST_COUNT) {
		asleep->shows_more = lua_process_note_unwound(target->process, &record->hints);
		return true;
	}
	asleep->lost_frame = (struct frame){ .function = lost_function(asleep->lost) };
	asleep->frames = &asleep->lost_frame;
	asleep->count = 1;
	return true;
}

/* Note how it sleeps. False when memory is short. */
static bool note_sleep(struct sampler *sampler, struct target *target, struct thread *thread,
		       struct thread_record *record, const struct asleep *asleep)
{
	const uint64_t now = clock_now_ns(CLOCK_MONOTONIC);
	struct sleep *sleep = &record->sleep;
	struct wait_stack stack;
	struct wait wait;

	sleep->vm_state = asleep->vm_state;
	sleep->phase = NULL;
	sleep->request = (struct sample_request){ 0 };
	sleep->gc = (struct sample_gc){ .phase = GC_PHASE_NONE };
	if (asleep->lost == LOST_COUNT) {
		sleep->phase = lua_process_phase(target->process);
		keep_request(sleep, lua_process_request(target->process, now));
		sleep->gc = lua_process_gc(target->process, now, thread->cpu_ns);
		sleep->gc.step_ns = 0; /* samples come when it has slept for a while */
	}
	stack = describe_stack(asleep->frames, asleep->count, sleep->phase);
	wait_read(lua_process_memory(target->process), &asleep->call, &wait);
	sleep->wait = name_wait(sampler, target, thread, record, asleep->lost == LOST_RAN_MEANWHILE,
				&asleep->call, &wait);
	sleep->thread_state = asleep->state == THREAD_UNINTERRUPTIBLE ? asleep->state
								      : wait_state(&wait, &stack);
	sleep->awaits_events = wait_is_for_events(&wait);
	sleep->lock = wait.kind == WAIT_LOCK && sleep->thread_state == THREAD_BLOCKED && !stack.lua &&
				      !stack.request
			      ? wait.lock
			      : 0;
	sleep->lock_is_shared = wait.is_shared;
	return keep_frames(sleep, asleep->frames, asleep->count);
}

static bool has_ended(const struct target *target, const struct thread_record *record)
{
	return target->ended || !target_thread_of(target, record);
}

/* Why is there no stack? A thread that waits for a CPU stops no sooner than it gets one. */
static enum lost_reason reason_of_rest(const struct target *target, const struct thread_record *record,
				       enum thread_state state)
{
	if (has_ended(target, record))
		return LOST_TARGET_ENDED;
	return state == THREAD_RUNNABLE ? LOST_NOT_STOPPED : LOST_ASLEEP;
}

/* Deliver time that has no stack. */
static void deliver_rest(struct sampler *sampler, struct target *target, const struct thread_record *record,
			 enum thread_state state, uint64_t cpu_ns, uint64_t wall_ns)
{
	struct frame frame = { .function = lost_function(reason_of_rest(target, record, state)) };
	struct sample sample = sample_of(target, record, state, wall_ns);

	sample.vm_state = VM_STATE_UNKNOWN;
	sample.cpu_ns = cpu_ns;
	sample.frames = &frame;
	sample.frame_count = 1;
	if (wall_ns > sampler->period_ns / WORTH_TELLING_ONE_IN)
		target_deliver(sampler, target, &sample);
}

/*
 * It sleeps, so it has run since it waited for CPUs. Where it waited is unknown then, unless a sample has
 * told: what runs after this sleep has nothing to do with it. Short waits, which no look meets, even out
 * instead. A turn of an event loop has what it waited in it.
 */
static void deliver_unseen_waits(struct sampler *sampler, struct target *target, struct thread_record *record)
{
	const int64_t unseen_ns = record->waiting.pending_ns - record->waits_left_ns;

	if (!sampler->options->turns && unseen_ns > (int64_t)(sampler->period_ns * UNSEEN_WAIT_PERIODS)) {
		record->waiting.pending_ns -= unseen_ns;
		deliver_rest(sampler, target, record, THREAD_RUNNABLE, 0, (uint64_t)unseen_ns);
	}
	record->waits_left_ns = record->waiting.pending_ns;
}

/*
 * Read where a thread sleeps, unless it got no CPU since the last reading: then it
 * sleeps where it did, or was woken and waits for a CPU, which is asked where there are
 * not many to ask. False if it runs or waits.
 */
static bool read_sleeper(struct sampler *sampler, struct target *target, struct thread *thread,
			 struct thread_record *record)
{
	struct asleep asleep;

	if (record->sleep.known && record->sleep.runs == thread->runs)
		return !target_has_few_threads(target) || !thread_is_running(target->threads, thread);
	record->sleep.known = false;
	if (!copy_sleeper(target, thread, record, &asleep))
		return false;
	/* It sleeps: what the first copy had too little room for is still there. */
	if (asleep.shows_more && !copy_sleeper(target, thread, record, &asleep))
		return false;
	deliver_unseen_waits(sampler, target, record);
	target_note_turn(sampler, target, thread, record);
	resolve_restart(record, &asleep.call);
	record->sleep.known = note_sleep(sampler, target, thread, record, &asleep) && !asleep.shows_more &&
			      asleep.lost != LOST_RAN_MEANWHILE && thread->runs > 0;
	record->sleep.runs = thread->runs;
	target_measure(sampler, target, thread, record); /* the reading took a while */
	return true;
}

bool target_read_sleeper(struct sampler *sampler, struct target *target, struct thread *thread,
			 struct thread_record *record)
{
	if (thread->tracee->state == TRACEE_AWAITED || thread->tracee->state == TRACEE_HELD)
		return false;
	/* Until it runs for the first time, all its time belongs to one sleep. */
	if (!record->is_told && record->has_run && record->sleep.known)
		deliver_sleep(sampler, target, record, sampler_take_all(&record->asleep));
	record->is_told |= record->has_run;
	return read_sleeper(sampler, target, thread, record);
}

void target_sample_sleeper(struct sampler *sampler, struct target *target, struct thread *thread,
			   struct thread_record *record)
{
	target_judge_lock(target, &record->sleep);
	record->is_told |= is_worth_telling(target, record);
	if (record->is_told) {
		target_name_thread(target, thread, record);
		deliver_sleep(sampler, target, record, sampler_take_weight(sampler, &record->asleep));
	}
	record->last_sample_ns = record->measured_ns;
}

void target_deliver_waiting(struct sampler *sampler, struct target *target, struct thread_record *record,
			    const struct sample *sample)
{
	struct sample waiting = *sample;

	if (record->waiting.pending_ns <= (int64_t)(sampler->period_ns / WORTH_TELLING_ONE_IN))
		return;
	waiting.thread_state = THREAD_RUNNABLE;
	waiting.gc.has_marked = false;
	waiting.gc.allocated_bytes = waiting.gc.used_ns = 0;
	waiting.cpu_ns = 0;
	waiting.wall_ns = sampler_take_all(&record->waiting);
	record->waits_left_ns = 0;
	target_deliver(sampler, target, &waiting);
}

/*
 * Did the thread wait for a CPU until now? The kernel counts that time when the thread gets one: until then
 * it looks like a sleep.
 */
static bool waits_for_cpu(struct target *target, const struct thread_record *record)
{
	if (has_ended(target, record) || record->ran_at_ns == record->measured_ns)
		return false;
	return thread_is_running(target->threads, target_thread_of(target, record));
}

/* By the CPU clock, the process's accounts have what is left; and some samples are not of threads. */
static bool samples_have_all_times(const struct sampler *sampler, const struct target *target)
{
	const struct sampler_options *options = sampler->options;

	return options->wall_clock && !options->coroutines && !options->requests && target->sampled;
}

void target_close_record(struct sampler *sampler, struct target *target, struct thread_record *record)
{
	uint64_t cpu_ns = sampler_take_all(&record->on_cpu);
	uint64_t waited_ns = sampler_take_all(&record->waiting);
	uint64_t asleep_ns = sampler_take_all(&record->asleep);

	if (!samples_have_all_times(sampler, target))
		return;
	if (waits_for_cpu(target, record)) {
		waited_ns += asleep_ns;
		asleep_ns = 0;
	}
	target_deliver_woken(sampler, target, record);
	deliver_rest(sampler, target, record, THREAD_RUNNING, cpu_ns, cpu_ns);
	deliver_rest(sampler, target, record, THREAD_RUNNABLE, 0, waited_ns);
	/* Assume that it slept where it was last seen asleep. */
	if (record->is_told && record->sleep.frame_count && asleep_ns)
		deliver_sleep(sampler, target, record, asleep_ns);
	else if (record->is_told)
		deliver_rest(sampler, target, record, THREAD_BLOCKED, 0, asleep_ns);
}

void target_close_records(struct sampler *sampler, struct target *target)
{
	struct thread_record *record, *next;

	HASH_ITER(hh, target->records, record, next) {
		target_close_record(sampler, target, record);
	}
}

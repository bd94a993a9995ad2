#include "src/sampler.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <uthash.h>

#include "src/target/cpu_clock.h"
#include "src/target/launch.h"
#include "src/target/lua_process.h"
#include "src/target/threads.h"
#include "src/target/tracer.h"

enum {
	NS_PER_SECOND = 1000000000,
	HOUSEKEEPING_NS = NS_PER_SECOND,	/* how often mappings are looked at */
	STOP_TIMEOUT_NS = 20 * 1000 * 1000,
	WORTH_TELLING_ONE_IN = 8,		/* part of a period; less is not told as lost */
	IDLE_PERIODS = 3,			/* without CPU use, then a target is idle */
	LOOK_AGAIN_NS = 20 * 1000 * 1000,	/* for a VM that has not started yet, at first */
};

/* What is kept of a thread between its samples. */
struct thread_record {
	pid_t tid;
	struct capture_hints hints;
	uint64_t pending_ns;		/* CPU time that no sample stands for yet */
	uint64_t last_sample_ns;	/* when it was taken */
	UT_hash_handle hh;
};

struct target {
	pid_t pid;
	struct cpu_clock clock;
	struct threads *threads;
	struct lua_process *process;	/* NULL after an execve until the next look */
	struct thread_record *records;
	uint64_t start_cpu_ns, cpu_ns;	/* of the process clock */
	uint64_t accounted_ns;		/* the weight of all its samples */
	uint64_t look_at_ns;		/* when to look for a VM again */
	uint64_t look_interval_ns;
	/*
	 * While it runs, looks are due at a random moment of each period, for
	 * the kernel's tick, on which alarms come, may beat with the target's
	 * own rhythm. When it has used no CPU for some periods, only the alarm
	 * of its CPU clock is waited for: an idle target is left alone.
	 */
	bool active;
	unsigned int idle_periods;
	uint64_t period_begin_ns, due_ns;
	uint64_t active_cpu_ns;		/* of the process clock, at the last look */
	bool ended;
};

struct sampler {
	const struct sampler_options *options;
	struct sampler_result *result;
	struct tracer *tracer;
	struct target *targets;
	size_t target_count;
	struct launch launch;
	uint64_t random;		/* state of a generator, never 0 */
	uint64_t start_ns;
	uint64_t period_ns;
	uint64_t pulse_ns;		/* when the next one is due */
};

static uint64_t now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * NS_PER_SECOND + (uint64_t)now.tv_nsec;
}

/*---- Records of threads ----*/

static struct thread_record *record_of(struct target *target, pid_t tid, uint64_t now)
{
	struct thread_record *record;

	HASH_FIND_INT(target->records, &tid, record);
	if (record)
		return record;
	record = calloc(1, sizeof(*record));
	if (!record)
		return NULL;
	record->tid = tid;
	record->last_sample_ns = now;
	HASH_ADD_INT(target->records, tid, record);
	return record;
}

static void forget_records(struct target *target)
{
	struct thread_record *record, *next;

	HASH_ITER(hh, target->records, record, next) {
		HASH_DEL(target->records, record);
		free(record);
	}
}

/*---- Samples ----*/

static void deliver(struct sampler *sampler, struct target *target, const struct sample *sample)
{
	target->accounted_ns += sample->cpu_ns;
	figures_add_sample(&sampler->result->figures, sample);
	sampler->options->take(sampler->options->context, sample);
}

/* CPU time for which there is no stack. */
static void deliver_lost(struct sampler *sampler, struct target *target, pid_t tid,
			 uint64_t cpu_ns, enum lost_reason reason)
{
	struct frame frame = { .function = functions_lost(reason) };
	struct sample sample = {
		.time_ns = now_ns(CLOCK_MONOTONIC),
		.pid = target->pid,
		.tid = tid,
		.thread_state = THREAD_BLOCKED,
		.vm_state = VM_STATE_UNKNOWN,
		.cpu_ns = cpu_ns,
		.frames = &frame,
		.frame_count = 1,
	};

	deliver(sampler, target, &sample);
}

static void unwind_and_deliver(struct sampler *sampler, struct target *target,
			       struct thread_record *record)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC);
	struct sample sample = {
		.time_ns = now,
		.pid = target->pid,
		.tid = record->tid,
		.thread_state = THREAD_RUNNING,
		.cpu_ns = record->pending_ns,
		.wall_ns = now - record->last_sample_ns,
	};
	struct frame out_of_memory = { .function = functions_lost(LOST_OUT_OF_MEMORY) };

	if (lua_process_unwind(target->process, &sample.frames, &sample.frame_count,
			       &sample.vm_state)) {
		sample.vm_state = VM_STATE_UNKNOWN;
		sample.frames = &out_of_memory;
		sample.frame_count = 1;
	}
	sample.phase = lua_process_phase(target->process);
	record->pending_ns = 0;
	record->last_sample_ns = now;
	deliver(sampler, target, &sample);
}

/* Hold the thread, copy, let it go; then say what was seen. */
static void sample_thread(struct sampler *sampler, struct target *target, struct thread *thread,
			  struct thread_record *record)
{
	struct registers registers;
	uint64_t begin, used;
	int error;

	if (!thread_is_running(target->threads, thread))
		return;
	begin = now_ns(CLOCK_MONOTONIC);
	error = tracer_stop(sampler->tracer, thread->tracee, STOP_TIMEOUT_NS);
	if (error)
		return;
	error = tracer_registers(thread->tracee, &registers);
	if (!error) {
		lua_process_settle(target->process);
		lua_process_capture(target->process, &registers, &record->hints);
	}
	tracer_resume(sampler->tracer, thread->tracee);
	histogram_add(&sampler->result->figures.pause_ns, now_ns(CLOCK_MONOTONIC) - begin);
	if (error)
		return;
	/* Having been stopped, the thread's figure is exact. */
	if (thread_measure(target->threads, thread, &used) == 0)
		record->pending_ns += used;
	unwind_and_deliver(sampler, target, record);
}

/* Take a sample of each thread that has run since its last one and is running now. */
static void sample_target(struct sampler *sampler, struct target *target)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC);

	for (size_t i = 0; i < threads_count(target->threads); i++) {
		struct thread *thread = threads_at(target->threads, i);
		struct thread_record *record = record_of(target, thread->tid, now);
		uint64_t used;

		if (!record || thread_measure(target->threads, thread, &used) != 0)
			continue;
		record->pending_ns += used;
		/* Its figure lags while it runs; the only thread is the one that made the clock go. */
		if (record->pending_ns || threads_count(target->threads) == 1)
			sample_thread(sampler, target, thread, record);
	}
}

/*---- Targets ----*/

/* Look at the process as it is now; false if it has ended. */
static bool look(struct sampler *sampler, struct target *target, uint64_t now)
{
	const struct given_layout *layout = sampler->options->layout;

	if (!target->process) {
		if (lua_process_open(target->pid, sampler->options->functions,
				     &sampler->options->namer, &target->process) != 0)
			return true;
		if (layout)
			lua_process_give_layout(target->process, &layout->layout, layout->is_file);
	}
	if (lua_process_refresh(target->process, false) == -ESRCH)
		return false;
	if (lua_process_module_count(target->process))
		sampler->result->saw_luajit = true;
	if (lua_process_universe_count(target->process) && !*sampler->result->layout)
		memcpy(sampler->result->layout, lua_process_universe(target->process, 0)->vm->layout.name,
		       LAYOUT_NAME_MAX);
	if (lua_process_universe_count(target->process) ||
	    lua_process_needs_settling(target->process)) {
		target->look_at_ns = now + HOUSEKEEPING_NS;
		return true;
	}
	/* Not started yet, perhaps: look again, ever less often. */
	target->look_at_ns = now + target->look_interval_ns;
	if (target->look_interval_ns < HOUSEKEEPING_NS)
		target->look_interval_ns *= 2;
	return true;
}

/* What it cost to read symbols is ljspy's own cost. */
static void count_symbols_cost(struct sampler *sampler, const struct target *target)
{
	if (target->process)
		sampler->result->figures.self_cpu_ns += lua_process_symbols_cpu_ns(target->process);
}

/* The process runs another program now: nothing that is known of it holds. */
static void start_over(struct sampler *sampler, struct target *target, uint64_t now)
{
	count_symbols_cost(sampler, target);
	lua_process_close(target->process);
	target->process = NULL;
	target->look_interval_ns = LOOK_AGAIN_NS;
	forget_records(target);
	look(sampler, target, now);
}

static void note_execs(struct sampler *sampler, struct target *target, uint64_t now)
{
	for (size_t i = 0; i < threads_count(target->threads); i++) {
		struct thread *thread = threads_at(target->threads, i);

		if (!thread->tracee->execed)
			continue;
		thread->tracee->execed = false;
		start_over(sampler, target, now);
	}
}

static void note_end(struct sampler *sampler, struct target *target)
{
	const struct tracee *leader = tracer_find(sampler->tracer, target->pid);

	if (leader && leader->exit_known && sampler->result->launched) {
		sampler->result->exit_known = true;
		sampler->result->exit_status = leader->exit_status;
	}
	target->ended = true;
}

static void refresh_threads(struct sampler *sampler, struct target *target, uint64_t now)
{
	if (cpu_clock_now(&target->clock, &target->cpu_ns) != 0 ||
	    threads_refresh(target->threads, now, target->cpu_ns) == -ESRCH)
		note_end(sampler, target);
	else
		note_execs(sampler, target, now);
}

/* A random part of a period (xorshift64). */
static uint64_t random_delay(struct sampler *sampler)
{
	sampler->random ^= sampler->random << 13;
	sampler->random ^= sampler->random >> 7;
	sampler->random ^= sampler->random << 17;
	return sampler->random % sampler->period_ns;
}

/* A look at what runs now. */
static void take_look(struct sampler *sampler, struct target *target, uint64_t now)
{
	refresh_threads(sampler, target, now);
	if (target->ended)
		return;
	if (now >= target->look_at_ns && !look(sampler, target, now)) {
		note_end(sampler, target);
		return;
	}
	if (target->process)
		sample_target(sampler, target);
}

/* The target has begun to run: look at it now, and then once in each period. */
static void wake(struct sampler *sampler, struct target *target)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC);

	if (target->ended || target->active)
		return;
	cpu_clock_stop(&target->clock);
	take_look(sampler, target, now);
	target->active = true;
	target->idle_periods = 0;
	target->active_cpu_ns = target->cpu_ns;
	target->period_begin_ns = now + sampler->period_ns;
	target->due_ns = target->period_begin_ns + random_delay(sampler);
}

/* Wait for the target to run again. */
static void rest(struct sampler *sampler, struct target *target)
{
	target->active = false;
	if (cpu_clock_start(&target->clock, SIGRTMIN, (int)(target - sampler->targets),
			    sampler->period_ns))
		note_end(sampler, target);
}

/* A look was due. Periods that have passed without one are missed, not made up for. */
static void tick(struct sampler *sampler, struct target *target, uint64_t now)
{
	uint64_t passed = (now - target->period_begin_ns) / sampler->period_ns;

	take_look(sampler, target, now);
	if (target->ended)
		return;
	sampler->result->figures.missed_ticks += passed > 1 ? passed - 1 : 0;
	target->period_begin_ns += (passed ? passed : 1) * sampler->period_ns;
	target->due_ns = target->period_begin_ns + random_delay(sampler);
	target->idle_periods = target->cpu_ns == target->active_cpu_ns ? target->idle_periods + 1 : 0;
	target->active_cpu_ns = target->cpu_ns;
	if (target->idle_periods >= IDLE_PERIODS)
		rest(sampler, target);
}

static void tick_all(struct sampler *sampler)
{
	for (size_t i = 0; i < sampler->target_count; i++) {
		struct target *target = &sampler->targets[i];
		uint64_t now = now_ns(CLOCK_MONOTONIC);

		if (target->active && !target->ended && now >= target->due_ns)
			tick(sampler, target, now);
	}
}

/* When the next look is due, or UINT64_MAX. */
static uint64_t next_due(const struct sampler *sampler)
{
	uint64_t due = UINT64_MAX;

	for (size_t i = 0; i < sampler->target_count; i++)
		if (sampler->targets[i].active && !sampler->targets[i].ended &&
		    sampler->targets[i].due_ns < due)
			due = sampler->targets[i].due_ns;
	return due;
}

static bool all_ended(const struct sampler *sampler)
{
	for (size_t i = 0; i < sampler->target_count; i++)
		if (!sampler->targets[i].ended)
			return false;
	return true;
}

static int open_target(struct sampler *sampler, struct target *target, pid_t pid, int index)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC);
	int error;

	*target = (struct target){ .pid = pid, .look_interval_ns = LOOK_AGAIN_NS };
	error = cpu_clock_open(pid, &target->clock);
	if (error)
		return error;
	target->threads = threads_new(sampler->tracer, pid);
	if (!target->threads)
		return -ENOMEM;
	error = cpu_clock_now(&target->clock, &target->start_cpu_ns);
	if (error)
		return error;
	target->cpu_ns = target->start_cpu_ns;
	error = threads_refresh(target->threads, now, target->start_cpu_ns);
	if (error)
		return error;
	/* What was used before is nobody's. */
	for (size_t i = 0; i < threads_count(target->threads); i++) {
		uint64_t used;

		thread_measure(target->threads, threads_at(target->threads, i), &used);
		record_of(target, threads_at(target->threads, i)->tid, now);
	}
	return cpu_clock_start(&target->clock, SIGRTMIN, index, sampler->period_ns);
}

static void close_target(struct target *target)
{
	cpu_clock_close(&target->clock);
	forget_records(target);
	lua_process_close(target->process);
	threads_free(target->threads);
}

/*
 * The last period of each thread is not over: look at those that run once
 * more, and say of the rest that it has no stack.
 */
static void close_accounts(struct sampler *sampler, struct target *target)
{
	uint64_t total;

	if (!target->ended)
		refresh_threads(sampler, target, now_ns(CLOCK_MONOTONIC));
	if (!target->ended && target->process)
		sample_target(sampler, target);
	total = target->cpu_ns - target->start_cpu_ns;
	/* What ran between reading the clock and the last look is in that one's weight. */
	if (total < target->accounted_ns)
		total = target->accounted_ns;
	else if (total - target->accounted_ns > sampler->period_ns / WORTH_TELLING_ONE_IN)
		deliver_lost(sampler, target, 0, total - target->accounted_ns,
			     target->ended ? LOST_TARGET_ENDED : LOST_ASLEEP);
	sampler->result->figures.target_cpu_ns += total;
}

/*---- The loop ----*/

static void deal_with(struct sampler *sampler, const siginfo_t *info)
{
	int signal = info->si_signo, index = info->si_value.sival_int;

	if (signal == SIGRTMIN) {
		if (index >= 0 && (size_t)index < sampler->target_count)
			wake(sampler, &sampler->targets[index]);
		return;
	}
	if (signal != SIGCHLD)
		sampler->result->end = SAMPLER_INTERRUPTED;
}

static void poll_tracees(struct sampler *sampler)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC);

	if (!tracer_poll(sampler->tracer))
		return;
	for (size_t i = 0; i < sampler->target_count; i++)
		if (!sampler->targets[i].ended)
			refresh_threads(sampler, &sampler->targets[i], now);
}

/* False if the recording is to end. */
static bool pulse(struct sampler *sampler, uint64_t now)
{
	if (!sampler->options->pulse || now < sampler->pulse_ns)
		return true;
	sampler->pulse_ns = now + NS_PER_SECOND;
	return sampler->options->pulse(sampler->options->context, &sampler->result->figures);
}

static void loop(struct sampler *sampler)
{
	uint64_t end_ns = sampler->options->duration_ns
		? sampler->start_ns + sampler->options->duration_ns : UINT64_MAX;
	sigset_t wanted;

	sigemptyset(&wanted);
	sigaddset(&wanted, SIGRTMIN);
	sigaddset(&wanted, SIGCHLD);
	sigaddset(&wanted, SIGINT);
	sigaddset(&wanted, SIGTERM);
	sigaddset(&wanted, SIGHUP);
	sampler->result->end = SAMPLER_DURATION_OVER;
	for (;;) {
		uint64_t now = now_ns(CLOCK_MONOTONIC), wait_ns = HOUSEKEEPING_NS;
		uint64_t due = next_due(sampler);
		struct timespec timeout;
		siginfo_t info;

		if (now >= end_ns)
			return;
		if (all_ended(sampler)) {
			sampler->result->end = SAMPLER_TARGETS_ENDED;
			return;
		}
		if (!pulse(sampler, now)) {
			sampler->result->end = SAMPLER_TOLD_TO_END;
			return;
		}
		if (tracer_poll_is_due(sampler->tracer))
			wait_ns = 0;
		else if (end_ns - now < wait_ns)
			wait_ns = end_ns - now;
		if (due <= now)
			wait_ns = 0;
		else if (due - now < wait_ns)
			wait_ns = due - now;
		timeout = (struct timespec){ .tv_sec = (time_t)(wait_ns / NS_PER_SECOND),
					     .tv_nsec = (long)(wait_ns % NS_PER_SECOND) };
		if (sigtimedwait(&wanted, &info, &timeout) > 0)
			deal_with(sampler, &info);
		if (sampler->result->end == SAMPLER_INTERRUPTED)
			return;
		poll_tracees(sampler);
		tick_all(sampler);
	}
}

static bool fail(struct sampler *sampler, pid_t pid, int error)
{
	sampler->result->end = SAMPLER_FAILED;
	sampler->result->pid = pid;
	sampler->result->error = -error;
	return false;
}

static bool open_targets(struct sampler *sampler)
{
	const struct sampler_options *options = sampler->options;
	uint64_t now;

	if (options->launch) {
		int error = launch_start(options->launch, options->launch_mask, &sampler->launch);

		if (error)
			return fail(sampler, 0, error);
	}
	for (size_t i = 0; i < options->pid_count + (options->launch ? 1 : 0); i++) {
		pid_t pid = options->launch ? sampler->launch.pid : options->pids[i];
		int error = open_target(sampler, &sampler->targets[i], pid, (int)i);

		sampler->target_count++;
		if (error) {
			if (options->launch)
				launch_cancel(&sampler->launch);
			return fail(sampler, pid, error);
		}
	}
	if (options->launch) {
		int error = launch_go(&sampler->launch, sampler->tracer);

		if (error)
			return fail(sampler, sampler->launch.pid, error);
		sampler->result->launched = true;
		sampler->result->pid = sampler->launch.pid;
	}
	now = now_ns(CLOCK_MONOTONIC);
	for (size_t i = 0; i < sampler->target_count; i++)
		if (!look(sampler, &sampler->targets[i], now))
			note_end(sampler, &sampler->targets[i]);
	if (!options->launch && !sampler->result->saw_luajit) {
		sampler->result->end = SAMPLER_NO_LUAJIT;
		sampler->result->pid = options->pids[0];
		return false;
	}
	return true;
}

void sampler_run(const struct sampler_options *options, struct sampler_result *ret_result)
{
	uint64_t self_start_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID);
	struct figures *figures = &ret_result->figures;
	struct sampler sampler = {
		.options = options,
		.result = ret_result,
		.tracer = tracer_new(),
		.targets = calloc(options->pid_count + 1, sizeof(struct target)),
		.period_ns = NS_PER_SECOND / options->rate_hz,
		.random = self_start_ns | 1,
	};

	*ret_result = (struct sampler_result){ 0 };
	if (!sampler.tracer || !sampler.targets) {
		fail(&sampler, 0, -ENOMEM);
	} else if (open_targets(&sampler)) {
		sampler.start_ns = now_ns(CLOCK_MONOTONIC);
		sampler.pulse_ns = sampler.start_ns + NS_PER_SECOND;
		loop(&sampler);
		for (size_t i = 0; i < sampler.target_count; i++)
			close_accounts(&sampler, &sampler.targets[i]);
		figures->duration_ns = now_ns(CLOCK_MONOTONIC) - sampler.start_ns;
	}
	figures->rate_asked_hz = options->rate_hz;
	if (figures->target_cpu_ns)
		figures->rate_reached_hz = (double)figures->samples * NS_PER_SECOND /
					   (double)figures->target_cpu_ns;
	for (size_t i = 0; i < sampler.target_count; i++) {
		count_symbols_cost(&sampler, &sampler.targets[i]);
		close_target(&sampler.targets[i]);
	}
	free(sampler.targets);
	tracer_free(sampler.tracer);
	figures->self_cpu_ns += now_ns(CLOCK_PROCESS_CPUTIME_ID) - self_start_ns;
}

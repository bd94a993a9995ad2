#include "src/sampler.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include <uthash.h>

#include "src/target/cpu_clock.h"
#include "src/target/follow.h"
#include "src/target/launch.h"
#include "src/target/lua_process.h"
#include "src/target/threads.h"
#include "src/target/tracer.h"

enum {
	NS_PER_SECOND = 1000000000,
	HOUSEKEEPING_NS = NS_PER_SECOND,	/* how often mappings are looked at */
	STOP_TIMEOUT_NS = 2 * 1000 * 1000,
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

/*
 * A process. Those that were asked for are attached at once; one that was
 * found is a candidate, left alone but for a look now and then, until it runs
 * LuaJIT.
 */
struct target {
	pid_t pid;
	bool found;			/* by following others */
	bool is_new;			/* found, and started since the beginning */
	bool attached;
	bool sampled;			/* attached, and runs LuaJIT or was asked for */
	int refusal;			/* why a candidate cannot be attached, a negative errno */
	dev_t program_device;		/* of a candidate's executable, to notice another one */
	ino_t program_inode;
	char name[THREAD_NAME_MAX];	/* of the process */
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
	int index;			/* its place among the targets */
	bool ended;
};

struct sampler {
	const struct sampler_options *options;
	struct sampler_result *result;
	struct tracer *tracer;
	struct target **targets;	/* NULL in places that are free */
	size_t target_count;
	struct follow *follow;		/* NULL if nobody is to be followed */
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
		.process_name = target->name,
		.thread_state = THREAD_BLOCKED,
		.vm_state = VM_STATE_UNKNOWN,
		.cpu_ns = cpu_ns,
		.frames = &frame,
		.frame_count = 1,
	};

	deliver(sampler, target, &sample);
}

static void unwind_and_deliver(struct sampler *sampler, struct target *target,
			       const struct thread *thread, struct thread_record *record)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC);
	struct sample sample = {
		.time_ns = now,
		.pid = target->pid,
		.tid = thread->tid,
		.process_name = target->name,
		.thread_name = thread->name,
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
	record->pending_ns = 0;
	record->last_sample_ns = now;
	deliver(sampler, target, &sample);
}

/* Copy what belongs to a held thread, let it go; then say what was seen. */
static void take_held(struct sampler *sampler, struct target *target, struct thread *thread,
		      struct thread_record *record, uint64_t begin)
{
	struct registers registers;
	uint64_t used;
	int error = tracer_registers(thread->tracee, &registers);

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
	unwind_and_deliver(sampler, target, thread, record);
}

/*
 * A thread that does not stop at once waits for a CPU, be it that others have
 * them all or that its container has used up its share. It stops when it gets
 * one; that is where it was, so the sample is taken then (take_late()).
 */
static void sample_thread(struct sampler *sampler, struct target *target, struct thread *thread,
			  struct thread_record *record)
{
	uint64_t begin = now_ns(CLOCK_MONOTONIC);
	int error;

	if (thread->tracee->state == TRACEE_AWAITED || !thread_is_running(target->threads, thread))
		return;
	error = tracer_stop(sampler->tracer, thread->tracee, STOP_TIMEOUT_NS);
	if (!error)
		take_held(sampler, target, thread, record, begin);
	else if (error == -ETIMEDOUT)
		thread->tracee->hold_late = true;
}

static void take_late_of(struct sampler *sampler, struct target *target)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC);

	for (size_t i = 0; i < threads_count(target->threads); i++) {
		struct thread *thread = threads_at(target->threads, i);
		struct thread_record *record;

		if (thread->tracee->state != TRACEE_HELD)
			continue;
		record = record_of(target, thread->tid, now);
		if (record && target->process && target->sampled)
			take_held(sampler, target, thread, record, now_ns(CLOCK_MONOTONIC));
		else
			tracer_resume(sampler->tracer, thread->tracee);
	}
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

/* A process that was found is sampled while it runs LuaJIT; what it uses otherwise is not ours to account for. */
static void note_luajit(struct sampler *sampler, struct target *target)
{
	bool runs_luajit = lua_process_module_count(target->process) > 0;

	sampler->result->saw_luajit |= runs_luajit;
	if (!target->attached || target->sampled || !runs_luajit)
		return;
	target->sampled = true;
	target->start_cpu_ns = target->cpu_ns;
}

/* Not started yet, perhaps, or not ours yet: look again, ever less often. */
static void look_later(struct target *target, uint64_t now)
{
	target->look_at_ns = now + target->look_interval_ns;
	if (target->look_interval_ns < HOUSEKEEPING_NS)
		target->look_interval_ns *= 2;
}

/* Look at the process as it is now; false if it has ended. */
static bool look(struct sampler *sampler, struct target *target, uint64_t now)
{
	const struct given_layout *layout = sampler->options->layout;
	int error;

	look_later(target, now);
	if (!target->process) {
		if (lua_process_open(target->pid, sampler->options->functions,
				     &sampler->options->namer, &target->process) != 0)
			return true;
		if (layout)
			lua_process_give_layout(target->process, &layout->layout, layout->is_file);
	}
	error = lua_process_refresh(target->process, false);
	if (error == -ESRCH)
		return false;
	target->refusal = error;
	note_luajit(sampler, target);
	if (lua_process_universe_count(target->process) && !*sampler->result->layout)
		memcpy(sampler->result->layout, lua_process_universe(target->process, 0)->vm->layout.name,
		       LAYOUT_NAME_MAX);
	if (lua_process_universe_count(target->process) ||
	    lua_process_needs_settling(target->process))
		target->look_at_ns = now + HOUSEKEEPING_NS;
	return true;
}

/* CPU time that no sample stands for has no stack. What ran between reading the clock and the last look is in that one's weight. */
static void settle_accounts(struct sampler *sampler, struct target *target)
{
	uint64_t total = target->cpu_ns - target->start_cpu_ns;

	if (!target->sampled)
		return;
	if (total < target->accounted_ns)
		total = target->accounted_ns;
	else if (total - target->accounted_ns > sampler->period_ns / WORTH_TELLING_ONE_IN)
		deliver_lost(sampler, target, 0, total - target->accounted_ns,
			     target->ended ? LOST_TARGET_ENDED : LOST_ASLEEP);
	sampler->result->figures.target_cpu_ns += total;
	target->start_cpu_ns = target->cpu_ns;
	target->accounted_ns = 0;
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
	if (target->found) {
		settle_accounts(sampler, target);
		target->sampled = false;
	}
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

/* A process is called what its first thread is. */
static void note_name(struct target *target)
{
	const struct thread *first;

	if (threads_count(target->threads) == 0)
		return;
	first = threads_at(target->threads, 0);
	if (first->tid == target->pid)
		memcpy(target->name, first->name, sizeof(target->name));
}

static void refresh_threads(struct sampler *sampler, struct target *target, uint64_t now)
{
	if (cpu_clock_now(&target->clock, &target->cpu_ns) != 0 ||
	    threads_refresh(target->threads, now, target->cpu_ns) == -ESRCH)
		note_end(sampler, target);
	else
		note_execs(sampler, target, now);
	note_name(target);
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
	if (target->process && target->sampled)
		sample_target(sampler, target);
}

/* Look at it once in each period from now on. */
static void activate(struct sampler *sampler, struct target *target, uint64_t now)
{
	target->active = true;
	target->idle_periods = 0;
	target->active_cpu_ns = target->cpu_ns;
	target->period_begin_ns = now + sampler->period_ns;
	target->due_ns = target->period_begin_ns + random_delay(sampler);
}

/* The target has begun to run: look at it now, and then once in each period. */
static void wake(struct sampler *sampler, struct target *target)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC);

	if (target->ended || target->active)
		return;
	cpu_clock_stop(&target->clock);
	take_look(sampler, target, now);
	activate(sampler, target, now);
}

/*
 * Wait for the target to run again. A user may have as many timers as signals
 * may be pending (RLIMIT_SIGPENDING); without one it is looked at all the time.
 */
static int rest(struct sampler *sampler, struct target *target)
{
	int error = cpu_clock_start(&target->clock, SIGRTMIN, target->index, sampler->period_ns);

	target->active = false;
	if (error == -EAGAIN) {
		activate(sampler, target, now_ns(CLOCK_MONOTONIC));
		return 0;
	}
	return error;
}

/*
 * A look was due. Periods that have passed without one are missed, not made up
 * for: as many as the target has run in, for it may have waited for a CPU too.
 */
static void tick(struct sampler *sampler, struct target *target, uint64_t now)
{
	uint64_t passed = (now - target->period_begin_ns) / sampler->period_ns;
	uint64_t missed = passed > 1 ? passed - 1 : 0, ran;

	take_look(sampler, target, now);
	if (target->ended)
		return;
	ran = (target->cpu_ns - target->active_cpu_ns) / sampler->period_ns;
	sampler->result->figures.missed_ticks += missed < ran ? missed : ran;
	target->period_begin_ns += (passed ? passed : 1) * sampler->period_ns;
	target->due_ns = target->period_begin_ns + random_delay(sampler);
	target->idle_periods = target->cpu_ns == target->active_cpu_ns ? target->idle_periods + 1 : 0;
	target->active_cpu_ns = target->cpu_ns;
	if (target->idle_periods >= IDLE_PERIODS && rest(sampler, target))
		note_end(sampler, target);
}

static int attach(struct sampler *sampler, struct target *target)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC), begin;
	int error = cpu_clock_open(target->pid, &target->clock);

	if (error)
		return error;
	target->threads = threads_new(sampler->tracer, target->pid);
	if (!target->threads)
		return -ENOMEM;
	error = cpu_clock_now(&target->clock, &begin);
	if (error)
		return error;
	error = threads_refresh(target->threads, now, begin);
	if (error)
		return error;
	target->attached = target->sampled = true;
	target->start_cpu_ns = target->cpu_ns = begin;
	note_name(target);
	/* What was used before is nobody's. */
	for (size_t i = 0; i < threads_count(target->threads); i++) {
		uint64_t used;

		thread_measure(target->threads, threads_at(target->threads, i), &used);
		record_of(target, threads_at(target->threads, i)->tid, now);
	}
	return rest(sampler, target);
}

static struct target *find_target(const struct sampler *sampler, pid_t pid)
{
	for (size_t i = 0; i < sampler->target_count; i++)
		if (sampler->targets[i] && sampler->targets[i]->pid == pid)
			return sampler->targets[i];
	return NULL;
}

/* NULL when memory is short. */
static struct target *add_target(struct sampler *sampler, pid_t pid)
{
	struct target *target = calloc(1, sizeof(*target)), **bigger;
	size_t place = 0;

	if (!target)
		return NULL;
	while (place < sampler->target_count && sampler->targets[place])
		place++;
	if (place == sampler->target_count) {
		bigger = realloc(sampler->targets, (place + 1) * sizeof(struct target *));
		if (!bigger) {
			free(target);
			return NULL;
		}
		sampler->targets = bigger;
		sampler->target_count++;
	}
	target->pid = pid;
	target->index = (int)place;
	target->look_interval_ns = LOOK_AGAIN_NS;
	sampler->targets[place] = target;
	return target;
}

/*---- Candidates ----*/

/* Does the candidate run another program than last time? */
static bool program_has_changed(struct target *target)
{
	char path[sizeof("/proc//exe") + 3 * sizeof(int)];
	struct stat status;
	bool changed;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)target->pid);
	if (stat(path, &status))
		return false;
	changed = status.st_dev != target->program_device || status.st_ino != target->program_inode;
	target->program_device = status.st_dev;
	target->program_inode = status.st_ino;
	return changed;
}

/* An orphan of the command that was started is ljspy's child now. */
static void reap_orphan(const struct sampler *sampler, const struct target *target)
{
	if (sampler->options->launch && target->found)
		waitpid(target->pid, NULL, WNOHANG);
}

/* A new process has used CPU time before it was taken up. */
static void account_for_beginning(struct sampler *sampler, struct target *target)
{
	if (!target->is_new || target->start_cpu_ns <= sampler->period_ns / WORTH_TELLING_ONE_IN)
		return;
	sampler->result->figures.target_cpu_ns += target->start_cpu_ns;
	deliver_lost(sampler, target, 0, target->start_cpu_ns, LOST_NOT_ATTACHED);
	target->accounted_ns = 0;	/* of the time from now on */
}

/* Is there LuaJIT in it now? Then it is a target. */
static void consider(struct sampler *sampler, struct target *target, uint64_t now)
{
	int error;

	if (program_has_changed(target)) {
		lua_process_close(target->process);
		target->process = NULL;
	}
	if (!look(sampler, target, now)) {
		reap_orphan(sampler, target);
		target->ended = true;
		return;
	}
	if (!target->process || lua_process_module_count(target->process) == 0)
		return;
	error = attach(sampler, target);
	if (error == -ESRCH) {
		target->ended = true;
	} else if (error) {
		threads_free(target->threads);
		target->threads = NULL;
		target->refusal = error;
		look_later(target, now);
	} else {
		account_for_beginning(sampler, target);
		if (program_has_changed(target))
			start_over(sampler, target, now);
	}
}

static void take_found(void *context, pid_t pid)
{
	struct sampler *sampler = context;
	struct target *target = find_target(sampler, pid);

	if (target && !target->ended)
		return;
	target = add_target(sampler, pid);
	if (!target)
		return;
	target->found = true;
	target->is_new = sampler->start_ns > 0;
	consider(sampler, target, now_ns(CLOCK_MONOTONIC));
}

static void note_left_out(struct sampler_result *result, const struct target *target)
{
	if (result->left_out++ == 0) {
		result->left_out_pid = target->pid;
		result->left_out_error = -target->refusal;
	}
}

static void close_target(struct sampler *sampler, struct target *target)
{
	if (target->attached)
		cpu_clock_close(&target->clock);
	else if (target->refusal && (target->found || !target->ended))
		note_left_out(sampler->result, target);
	forget_records(target);
	count_symbols_cost(sampler, target);
	lua_process_close(target->process);
	threads_free(target->threads);
	sampler->targets[target->index] = NULL;
	free(target);
}

/*
 * The last period of each thread is not over: look at those that run once
 * more, and say of the rest that it has no stack.
 */
static void close_accounts(struct sampler *sampler, struct target *target)
{
	if (!target->attached)
		return;
	if (!target->ended)
		refresh_threads(sampler, target, now_ns(CLOCK_MONOTONIC));
	if (!target->ended && target->process && target->sampled)
		sample_target(sampler, target);
	settle_accounts(sampler, target);
}

/* Processes come and go while a recording lasts. */
static void drop_ended(struct sampler *sampler)
{
	for (size_t i = 0; i < sampler->target_count; i++) {
		struct target *target = sampler->targets[i];

		if (!target || !target->ended || (target->threads && !threads_are_gone(target->threads)))
			continue;
		close_accounts(sampler, target);
		close_target(sampler, target);
	}
}

/*---- The loop ----*/

static void tick_all(struct sampler *sampler)
{
	for (size_t i = 0; i < sampler->target_count; i++) {
		struct target *target = sampler->targets[i];
		uint64_t now = now_ns(CLOCK_MONOTONIC);

		if (!target || target->ended)
			continue;
		if (!target->attached && now >= target->look_at_ns)
			consider(sampler, target, now);
		else if (!target->sampled && now >= target->look_at_ns)
			take_look(sampler, target, now);
		else if (target->active && now >= target->due_ns)
			tick(sampler, target, now);
	}
}

/* When the next look is due, or UINT64_MAX. */
static uint64_t next_due(const struct sampler *sampler)
{
	uint64_t due = sampler->follow ? follow_due(sampler->follow) : UINT64_MAX;

	for (size_t i = 0; i < sampler->target_count; i++) {
		const struct target *target = sampler->targets[i];
		uint64_t next = UINT64_MAX;

		if (!target || target->ended)
			continue;
		if (!target->sampled)
			next = target->look_at_ns;
		if (target->active && target->due_ns < next)
			next = target->due_ns;
		due = next < due ? next : due;
	}
	return due;
}

/*
 * Is there nothing left to wait for? A candidate that was found may be
 * anything, and is waited for only a moment.
 */
static bool all_ended(const struct sampler *sampler)
{
	for (size_t i = 0; i < sampler->target_count; i++) {
		const struct target *target = sampler->targets[i];

		if (target && !target->ended &&
		    (target->sampled || !target->found || target->look_interval_ns < HOUSEKEEPING_NS))
			return false;
	}
	return true;
}

static void deal_with(struct sampler *sampler, const siginfo_t *info)
{
	int signal = info->si_signo, index = info->si_value.sival_int;

	if (signal == SIGRTMIN) {
		/* It may be about a process that was here before. */
		if (index >= 0 && (size_t)index < sampler->target_count &&
		    sampler->targets[index] && sampler->targets[index]->attached)
			wake(sampler, sampler->targets[index]);
		return;
	}
	if (signal != SIGCHLD)
		sampler->result->end = SAMPLER_INTERRUPTED;
}

static void take_late(struct sampler *sampler)
{
	if (!tracer_has_held_late(sampler->tracer))
		return;
	for (size_t i = 0; i < sampler->target_count; i++)
		if (sampler->targets[i] && sampler->targets[i]->attached)
			take_late_of(sampler, sampler->targets[i]);
}

static void poll_tracees(struct sampler *sampler)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC);

	if (!tracer_poll(sampler->tracer))
		return;
	for (size_t i = 0; i < sampler->target_count; i++) {
		struct target *target = sampler->targets[i];

		if (target && target->attached && !target->ended)
			refresh_threads(sampler, target, now);
	}
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
		uint64_t due;
		struct timespec timeout;
		siginfo_t info;

		if (now >= end_ns)
			return;
		if (sampler->follow && (now >= follow_due(sampler->follow) || all_ended(sampler)))
			follow_look(sampler->follow, now, take_found, sampler);
		drop_ended(sampler);
		if (all_ended(sampler)) {
			sampler->result->end = SAMPLER_TARGETS_ENDED;
			return;
		}
		if (!pulse(sampler, now)) {
			sampler->result->end = SAMPLER_TOLD_TO_END;
			return;
		}
		due = next_due(sampler);
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
		take_late(sampler);
		tick_all(sampler);
		take_late(sampler);
	}
}

static bool fail(struct sampler *sampler, pid_t pid, int error)
{
	sampler->result->end = SAMPLER_FAILED;
	sampler->result->pid = pid;
	sampler->result->error = -error;
	return false;
}

/* Half of the files that may be opened are for threads, the rest for everything else. */
static void raise_file_limit(struct sampler *sampler)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	if (limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	tracer_allow_files(sampler->tracer, limit.rlim_cur / 2);
}

/* Whoever belongs to the command from its beginning can be followed even if those between have ended. */
static int launch(struct sampler *sampler)
{
	const struct sampler_options *options = sampler->options;

	if (options->subprocesses)
		prctl(PR_SET_CHILD_SUBREAPER, 1);
	return launch_start(options->launch, options->launch_mask, &sampler->launch);
}

/* A process that must be sampled. */
static bool open_target(struct sampler *sampler, pid_t pid)
{
	struct target *target = add_target(sampler, pid);
	int error = target ? attach(sampler, target) : -ENOMEM;

	return error ? fail(sampler, pid, error) : true;
}

static bool open_command(struct sampler *sampler)
{
	int error = launch(sampler);

	if (error)
		return fail(sampler, 0, error);
	raise_file_limit(sampler);	/* not the command's */
	if (!open_target(sampler, sampler->launch.pid)) {
		launch_cancel(&sampler->launch);
		return false;
	}
	error = launch_go(&sampler->launch, sampler->tracer);
	if (error)
		return fail(sampler, sampler->launch.pid, error);
	sampler->result->launched = true;
	sampler->result->pid = sampler->launch.pid;
	return true;
}

static bool open_processes(struct sampler *sampler)
{
	const struct sampler_options *options = sampler->options;

	raise_file_limit(sampler);
	for (size_t i = 0; i < options->pid_count; i++) {
		struct target *target;

		if (sampler->follow) {
			target = add_target(sampler, options->pids[i]);
			if (!target)
				return fail(sampler, 0, -ENOMEM);
			consider(sampler, target, now_ns(CLOCK_MONOTONIC));
		} else if (!open_target(sampler, options->pids[i])) {
			return false;
		}
	}
	return true;
}

static bool open_follow(struct sampler *sampler)
{
	const struct sampler_options *options = sampler->options;
	struct follow_options follow_options = {
		.descendants = options->subprocesses,
		.orphans = options->subprocesses && options->launch,
		.pattern = options->pattern,
	};
	int error = 0;

	if (!options->subprocesses && !options->pattern)
		return true;
	sampler->follow = follow_new(&follow_options);
	if (!sampler->follow)
		return fail(sampler, 0, -ENOMEM);
	for (size_t i = 0; i < options->pid_count && !error; i++)
		error = follow_add(sampler->follow, options->pids[i]);
	return error ? fail(sampler, 0, error) : true;
}

/* A process that was asked for, and none runs LuaJIT; better one that ljspy may not look at. */
static bool explain_no_luajit(struct sampler *sampler)
{
	for (size_t i = 0; i < sampler->target_count; i++) {
		const struct target *target = sampler->targets[i];

		if (target && target->refusal)
			return fail(sampler, target->pid, target->refusal);
	}
	sampler->result->end = SAMPLER_NO_LUAJIT;
	sampler->result->pid = sampler->options->pids[0];
	return false;
}

static bool open_targets(struct sampler *sampler)
{
	const struct sampler_options *options = sampler->options;
	uint64_t now;

	if (!open_follow(sampler) ||
	    !(options->launch ? open_command(sampler) : open_processes(sampler)))
		return false;
	now = now_ns(CLOCK_MONOTONIC);
	if (sampler->follow) {
		if (options->launch)
			follow_add(sampler->follow, sampler->launch.pid);
		follow_look(sampler->follow, now, take_found, sampler);
	}
	for (size_t i = 0; i < sampler->target_count; i++) {
		struct target *target = sampler->targets[i];

		if (target->attached && !target->process && !look(sampler, target, now))
			note_end(sampler, target);
	}
	return options->launch || sampler->result->saw_luajit || explain_no_luajit(sampler);
}

void sampler_run(const struct sampler_options *options, struct sampler_result *ret_result)
{
	uint64_t self_start_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID);
	struct figures *figures = &ret_result->figures;
	struct tracer *tracer = tracer_new();
	const int tracer_error = errno;
	struct sampler sampler = {
		.options = options,
		.result = ret_result,
		.tracer = tracer,
		.period_ns = NS_PER_SECOND / options->rate_hz,
		.random = self_start_ns | 1,
	};

	*ret_result = (struct sampler_result){ 0 };
	if (!sampler.tracer) {
		fail(&sampler, 0, -tracer_error);
	} else if (open_targets(&sampler)) {
		sampler.start_ns = now_ns(CLOCK_MONOTONIC);
		sampler.pulse_ns = sampler.start_ns;
		loop(&sampler);
		for (size_t i = 0; i < sampler.target_count; i++)
			if (sampler.targets[i])
				close_accounts(&sampler, sampler.targets[i]);
		figures->duration_ns = now_ns(CLOCK_MONOTONIC) - sampler.start_ns;
	}
	figures->rate_asked_hz = options->rate_hz;
	if (figures->target_cpu_ns)
		figures->rate_reached_hz = (double)figures->samples * NS_PER_SECOND /
					   (double)figures->target_cpu_ns;
	for (size_t i = 0; i < sampler.target_count; i++)
		if (sampler.targets[i])
			close_target(&sampler, sampler.targets[i]);
	free(sampler.targets);
	follow_free(sampler.follow);
	tracer_free(sampler.tracer);
	figures->self_cpu_ns += now_ns(CLOCK_PROCESS_CPUTIME_ID) - self_start_ns;
}

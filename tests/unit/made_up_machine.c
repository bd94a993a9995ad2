/* SPDX-License-Identifier: MIT */
#include "tests/unit/made_up_machine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "memory/slow_file.h"
#include "src/inspect/known_files.h"
#include "src/inspect/lua_process.h"
#include "src/inspect/patience.h"
#include "src/linux/clocks/clock.h"
#include "src/linux/clocks/cpu_clock.h"
#include "src/linux/proc/follow.h"
#include "src/linux/proc/process.h"
#include "src/linux/threads/halt.h"
#include "src/linux/calls/interrupted_call.h"
#include "src/linux/threads/launch.h"
#include "src/linux/threads/threads.h"
#include "src/linux/threads/lock_holder.h"
#include "src/linux/threads/wait_text.h"
#include "src/linux/tracer/thread_registers.h"
#include "src/linux/tracer/tracer_files.h"
#include "src/linux/tracer/tracer_looks.h"
#include "src/sampler/wanted.h"
#include "src/survey/asleep.h"
#include "src/survey/puc_lua.h"
#include "tests/unit/instead_of.h"

enum {
	FOLLOW_AGAIN_NS = 10 * 1000 * 1000,
	RESUME_TAKES_NS = 5000,
	HUNDRED = 100,
	ASK_NS = 10 * 1000 * 1000,
};

static const uint64_t slept_ns = UINT64_C(100) * NS_PER_SECOND, proc_tick_ns = 10 * 1000 * 1000;

struct made_up_machine machine;
static const struct patience *the_patience; /* who is asked while ljspy works for long; NULL: nobody */

/*---- What threads do ----*/

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t above(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static bool exists(uint64_t begin_ns, uint64_t end_ns, uint64_t now_ns)
{
	return now_ns >= begin_ns && (end_ns == 0 || now_ns < end_ns);
}

struct made_up_times made_up_times(const struct made_up_thread *thread, uint64_t now_ns)
{
	uint64_t cycle_ns = thread->wait_ns + thread->run_ns + thread->sleep_ns;
	uint64_t age_ns = above(thread->end_ns ? least(now_ns, thread->end_ns) : now_ns, thread->begin_ns);
	uint64_t cycles = age_ns / cycle_ns, into_ns = age_ns % cycle_ns;
	uint64_t awake_ns = thread->wait_ns + thread->run_ns;
	struct made_up_times times = {
		.waited_ns = cycles * thread->wait_ns + least(into_ns, thread->wait_ns),
		.cpu_ns = cycles * thread->run_ns + least(above(into_ns, thread->wait_ns), thread->run_ns),
		.slept_ns = cycles * thread->sleep_ns + above(into_ns, awake_ns),
		.runs = cycles + (into_ns >= thread->wait_ns),
	};

	if (!exists(thread->begin_ns, thread->end_ns, now_ns)) {
		times.does = MADE_UP_IS_GONE;
	} else if (into_ns < thread->wait_ns) {
		times.does = MADE_UP_WAITS;
		times.into_ns = into_ns;
	} else if (into_ns < awake_ns) {
		times.does = MADE_UP_RUNS;
		times.into_ns = into_ns - thread->wait_ns;
	} else {
		times.does = MADE_UP_SLEEPS;
		times.into_ns = into_ns - awake_ns;
	}
	return times;
}

uint64_t made_up_cpu_ns(const struct made_up_process *process, uint64_t now_ns)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < process->thread_count; i++)
		for (const struct made_up_thread *thread = &process->threads[i]; thread;
		     thread = thread->next)
			sum += made_up_times(thread, now_ns).cpu_ns;
	return sum;
}

static struct made_up_process *find(pid_t pid)
{
	for (size_t i = 0; i < machine.process_count; i++)
		if (machine.processes[i].pid == pid)
			return &machine.processes[i];
	return NULL;
}

static bool has_execed(const struct made_up_process *process)
{
	return process->exec_ns && machine.now_ns >= process->exec_ns;
}

/* The one that has the id now; ret_serial: no other thread of the process has it. */
static const struct made_up_thread *thread_now(const struct made_up_process *process, size_t index,
					       uint64_t *ret_serial)
{
	const struct made_up_thread *thread = &process->threads[index];

	if (index == 0 && has_execed(process))
		thread = &process->threads[process->exec_by];
	for (*ret_serial = 1 + index; thread->next && machine.now_ns >= thread->next->begin_ns;
	     *ret_serial += MADE_UP_THREADS)
		thread = thread->next;
	return thread;
}

/* The machine has no others. */
static const struct made_up_thread *find_thread(pid_t pid, pid_t tid)
{
	const struct made_up_process *process = find(pid);
	uint64_t serial;

	if (!process)
		abort();
	return thread_now(process, (size_t)(tid - pid), &serial);
}

static bool is_there(const struct made_up_process *process)
{
	return process && exists(process->begin_ns, process->end_ns, machine.now_ns);
}

/*---- Clocks ----*/

/* The machine slept before the test. */
static uint64_t since_boot_ns(void)
{
	return machine.now_ns + slept_ns;
}

INSTEAD_OF(wanted_start);
uint64_t __wrap_wanted_start(pid_t pid)
{
	const struct made_up_process *process = find(pid);

	if (!is_there(process))
		return 0;
	return process->begin_ns ? (process->begin_ns + slept_ns) / proc_tick_ns : 1;
}

INSTEAD_OF(clock_gettime);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	if (clock == CLOCK_BOOTTIME) {
		*now = (struct timespec){ .tv_sec = (time_t)(since_boot_ns() / NS_PER_SECOND),
					  .tv_nsec = (long)(since_boot_ns() % NS_PER_SECOND) };
		return 0;
	}
	if (clock != CLOCK_MONOTONIC && clock != CLOCK_PROCESS_CPUTIME_ID)
		return __real_clock_gettime(clock, now);
	*now = (struct timespec){ .tv_sec = (time_t)(machine.now_ns / NS_PER_SECOND),
				  .tv_nsec = (long)(machine.now_ns % NS_PER_SECOND) };
	return 0;
}

/* The clock's id is the process; its alarm is kept here. */
static struct alarm {
	bool armed;
	pid_t pid;
	int index;
	uint64_t period_ns, due_cpu_ns;
} alarms[MADE_UP_PROCESSES];

INSTEAD_OF(cpu_clock_open);
int __wrap_cpu_clock_open(pid_t pid, struct cpu_clock *ret_clock)
{
	*ret_clock = (struct cpu_clock){ .id = pid };
	return is_there(find(pid)) ? 0 : -ESRCH;
}

INSTEAD_OF(cpu_clock_stop);
void __wrap_cpu_clock_stop(struct cpu_clock *clock)
{
	for (size_t i = 0; i < MADE_UP_PROCESSES; i++)
		if (alarms[i].pid == clock->id)
			alarms[i].armed = false;
}

INSTEAD_OF(cpu_clock_close);
void __wrap_cpu_clock_close(struct cpu_clock *clock)
{
	__wrap_cpu_clock_stop(clock);
}

INSTEAD_OF(cpu_clock_now);
int __wrap_cpu_clock_now(const struct cpu_clock *clock, uint64_t *ret_ns)
{
	struct made_up_process *process = find(clock->id);

	if (!is_there(process))
		return -ESRCH;
	process->clock_reads++;
	if (!alarms[process - machine.processes].armed)
		machine.sums += process->thread_count;
	*ret_ns = made_up_cpu_ns(process, machine.now_ns);
	return 0;
}

INSTEAD_OF(cpu_clock_start);
int __wrap_cpu_clock_start(struct cpu_clock *clock, int signal, int index, uint64_t period_ns)
{
	const struct made_up_process *process = find(clock->id);

	(void)signal;
	if (!is_there(process))
		return -ESRCH;
	if (machine.has_no_timers)
		return -EAGAIN;
	machine.timers++;
	alarms[process - machine.processes] = (struct alarm){
		.armed = true,
		.pid = clock->id,
		.index = index,
		.period_ns = period_ns,
		.due_cpu_ns = made_up_cpu_ns(process, machine.now_ns) + period_ns,
	};
	return 0;
}

/* At a tick: does a thread of the process run then, and is its alarm due? */
static bool rings(struct alarm *alarm, uint64_t tick_ns)
{
	const struct made_up_process *process = alarm->armed ? find(alarm->pid) : NULL;
	uint64_t cpu_ns;
	bool runs = false;

	if (!process)
		return false;
	for (size_t i = 0; i < process->thread_count; i++)
		runs |= made_up_times(&process->threads[i], tick_ns).does == MADE_UP_RUNS;
	cpu_ns = made_up_cpu_ns(process, tick_ns);
	if (!runs || cpu_ns < alarm->due_cpu_ns)
		return false;
	while (alarm->due_cpu_ns <= cpu_ns)
		alarm->due_cpu_ns += alarm->period_ns;
	return true;
}

/*---- ljspy's own sleep ----*/

static int take_signal(void)
{
	const int signal = machine.signal;

	machine.signal = 0;
	return signal;
}

/* Signals are blocked: one that came waits for the loop. */
INSTEAD_OF(sigpending);
int __wrap_sigpending(sigset_t *ret_signals)
{
	sigemptyset(ret_signals);
	if (machine.signal && machine.now_ns >= machine.signal_ns)
		sigaddset(ret_signals, machine.signal);
	return 0;
}

static bool has_late_stop(uint64_t at_ns);

/* The last sleep began then, and no signal came; 0: it ended otherwise. */
static uint64_t quiet_ns;

/* No signal comes until then: as sigtimedwait() tells it. */
static int end_quietly(struct own_turn *turn, uint64_t end_ns)
{
	const uint64_t begin_ns = machine.now_ns;

	if (machine.interrupts_one_in && machine.waits % machine.interrupts_one_in == 0) {
		machine.now_ns += (end_ns - begin_ns) / 2;
		errno = EINTR;
		return -1;
	}
	quiet_ns = begin_ns;
	machine.quiet_waits++;
	machine.now_ns = end_ns;
	if (machine.oversleep_one_in && machine.waits % machine.oversleep_one_in == 0) {
		machine.now_ns += machine.oversleep_ns;
		turn->late_ns = machine.oversleep_ns;
	}
	errno = EAGAIN;
	return -1;
}

INSTEAD_OF(own_turn_wait);
int __wrap_own_turn_wait(struct own_turn *turn, const sigset_t *signals, siginfo_t *ret_info,
			 const struct timespec *timeout)
{
	uint64_t end_ns = machine.now_ns + (uint64_t)timeout->tv_sec * NS_PER_SECOND +
			  (uint64_t)timeout->tv_nsec;
	uint64_t tick_ns = machine.now_ns - machine.now_ns % MADE_UP_TICK_NS + MADE_UP_TICK_NS;

	(void)signals;
	machine.waits++;
	quiet_ns = 0;
	turn->late_ns = 0;
	if (machine.signal && machine.signal_ns <= end_ns) {
		machine.now_ns = machine.signal_ns > machine.now_ns ? machine.signal_ns : machine.now_ns;
		if (ret_info)
			*ret_info = (siginfo_t){ .si_signo = machine.signal,
						 .si_value.sival_int = machine.signal_value };
		return take_signal();
	}
	for (uint64_t at_ns = machine.now_ns; machine.tells_late_stops && at_ns <= end_ns; at_ns += 10 * 1000)
		if (has_late_stop(at_ns)) {
			machine.now_ns = at_ns;
			if (ret_info)
				*ret_info = (siginfo_t){ .si_signo = SIGCHLD };
			return SIGCHLD;
		}
	for (; tick_ns <= end_ns; tick_ns += MADE_UP_TICK_NS)
		for (size_t i = 0; i < MADE_UP_PROCESSES; i++)
			if (rings(&alarms[i], tick_ns)) {
				machine.now_ns = tick_ns;
				machine.alarms++;
				*ret_info = (siginfo_t){ .si_signo = SIGRTMIN };
				ret_info->si_value.sival_int = alarms[i].index;
				return SIGRTMIN;
			}
	return end_quietly(turn, end_ns);
}

/*---- The tracer ----*/

struct threads {
	pid_t pid;
	struct thread list[MADE_UP_THREADS];
	struct tracee tracees[MADE_UP_THREADS];
	uint64_t known[MADE_UP_THREADS]; /* their serial numbers; 0: none */
	size_t count;
	uint64_t changes;
	uint64_t accounted_ns; /* what measures have told */
	uint64_t stops[MADE_UP_THREADS];
	bool execed;
};

static struct threads all_threads[MADE_UP_PROCESSES];

struct tracer {
	struct own_turn turn;
};

static struct tracer the_tracer;

INSTEAD_OF(tracer_new);
struct tracer *__wrap_tracer_new(void)
{
	if (machine.no_memory_for && strcmp(machine.no_memory_for, "tracer") == 0) {
		errno = EAGAIN;
		return NULL;
	}
	the_tracer = (struct tracer){ 0 };
	return &the_tracer;
}

INSTEAD_OF(tracer_turn);
struct own_turn *__wrap_tracer_turn(struct tracer *tracer)
{
	return &tracer->turn;
}

INSTEAD_OF(tracer_turn_is_used_up);
bool __wrap_tracer_turn_is_used_up(const struct tracer *tracer)
{
	(void)tracer;
	return machine.turn_is_used_up && machine.last_stop_ns;
}

INSTEAD_OF(own_turn_renew);
void __wrap_own_turn_renew(struct own_turn *turn)
{
	(void)turn;
	machine.renewals++;
	machine.now_ns += machine.renew_takes_ns;
}

INSTEAD_OF(own_turn_waited);
uint64_t __wrap_own_turn_waited(const struct own_turn *turn)
{
	(void)turn;
	return 0;
}

INSTEAD_OF(tracer_take_wakeup);
void __wrap_tracer_take_wakeup(struct tracer *tracer)
{
	(void)tracer;
}

INSTEAD_OF(tracer_registers);
int __wrap_tracer_registers(struct tracee *tracee, struct registers *ret_registers)
{
	if (machine.registers_error)
		return machine.registers_error;
	if (find_thread(tracee->pid, tracee->tid)->hides_registers)
		return -ESRCH;
	*ret_registers = machine.held;
	return 0;
}

static int stop(struct tracee *tracee, uint64_t timeout_ns)
{
	const struct made_up_thread *thread = find_thread(tracee->pid, tracee->tid);

	if (thread->stops_late || made_up_times(thread, machine.now_ns).does != MADE_UP_RUNS) {
		machine.now_ns += timeout_ns;
		tracee->state = TRACEE_AWAITED;
		return -ETIMEDOUT;
	}
	machine.stops++;
	all_threads[find(tracee->pid) - machine.processes].stops[tracee->tid - tracee->pid]++;
	machine.now_ns += machine.stop_takes_ns;
	machine.last_stop_ns = tracee->stopped_ns = machine.now_ns;
	tracee->state = TRACEE_HELD;
	return 0;
}

INSTEAD_OF(tracer_stop_seen);
int __wrap_tracer_stop_seen(struct tracer *tracer, struct tracee *tracee, uint64_t timeout_ns,
			    bool on_other_cpu)
{
	(void)tracer;
	if (!on_other_cpu)
		abort();
	return stop(tracee, timeout_ns);
}

INSTEAD_OF(tracer_stop_running);
int __wrap_tracer_stop_running(struct tracer *tracer, struct tracee *tracee, uint64_t timeout_ns)
{
	(void)tracer;
	machine.awake_stops++;
	return stop(tracee, timeout_ns);
}

INSTEAD_OF(tracer_resume);
void __wrap_tracer_resume(struct tracer *tracer, struct tracee *tracee)
{
	(void)tracer;
	machine.now_ns += machine.resume_takes_ns;
	tracee->state = TRACEE_RUNNING;
	tracee->resumed_ns = machine.now_ns;
}

static bool may_stop_late(const struct tracee *tracee, uint64_t at_ns)
{
	return tracee->state == TRACEE_AWAITED &&
	       made_up_times(find_thread(tracee->pid, tracee->tid), at_ns).does == MADE_UP_RUNS;
}

static bool has_late_stop(uint64_t at_ns)
{
	for (size_t i = 0; i < MADE_UP_PROCESSES; i++)
		for (size_t j = 0; j < MADE_UP_THREADS; j++)
			if (all_threads[i].known[j] && may_stop_late(&all_threads[i].tracees[j], at_ns))
				return true;
	return false;
}

/* A thread that was told to stop does so when it has a CPU again. */
static bool stops_now(struct tracee *tracee)
{
	if (!may_stop_late(tracee, machine.now_ns))
		return false;
	tracee->state = tracee->hold_late ? TRACEE_HELD : TRACEE_RUNNING;
	tracee->hold_late = false;
	tracee->stopped_ns = machine.now_ns;
	return tracee->state == TRACEE_HELD;
}

/*---- Threads ----*/

static const struct made_up_thread *made_up_of(const struct thread *thread)
{
	return find_thread(thread->tracee->pid, thread->tid);
}

INSTEAD_OF(tracer_has_held_late);
bool __wrap_tracer_has_held_late(struct tracer *tracer)
{
	bool any = false;

	(void)tracer;
	for (size_t i = 0; i < MADE_UP_PROCESSES; i++)
		for (size_t j = 0; j < MADE_UP_THREADS; j++)
			any |= all_threads[i].known[j] && stops_now(&all_threads[i].tracees[j]);
	return any;
}

INSTEAD_OF(threads_new);
struct threads *__wrap_threads_new(struct tracer *tracer, pid_t pid)
{
	struct threads *threads = &all_threads[find(pid) - machine.processes];

	(void)tracer;
	*threads = (struct threads){ .pid = pid };
	return threads;
}

INSTEAD_OF(threads_seize_late);
void __wrap_threads_seize_late(struct threads *threads)
{
	(void)threads;
}

INSTEAD_OF(threads_free);
void __wrap_threads_free(struct threads *threads)
{
	(void)threads;
}

INSTEAD_OF(threads_refresh);
int __wrap_threads_refresh(struct threads *threads, uint64_t now_ns, uint64_t process_cpu_ns)
{
	struct made_up_process *process = find(threads->pid);
	struct thread kept[MADE_UP_THREADS];
	size_t before;

	(void)process_cpu_ns;
	if (!is_there(process))
		return -ESRCH;
	if (now_ns >= process->busy_begin_ns && now_ns < process->busy_end_ns)
		return -EBUSY;
	if (process->ends_when_attached)
		process->end_ns = machine.now_ns;
	memcpy(kept, threads->list, sizeof(kept));
	before = threads->count;
	threads->count = 0;
	for (size_t i = 0; i < process->thread_count; i++) {
		struct thread thread = { .tid = process->pid + (pid_t)i };
		const struct made_up_thread *made_up = thread_now(process, i, &thread.serial);

		for (size_t j = 0; j < MADE_UP_THREADS; j++)
			if (kept[j].serial == thread.serial)
				thread = kept[j];
		if (!exists(made_up->begin_ns, made_up->end_ns, now_ns) ||
		    (i > 0 && process->exec_by && has_execed(process)))
			continue;
		if (threads->known[i] != thread.serial)
			threads->tracees[i] = (struct tracee){ .pid = process->pid, .tid = thread.tid };
		threads->known[i] = thread.serial;
		thread.tracee = &threads->tracees[i];
		if (!threads->execed)
			snprintf(thread.name, sizeof(thread.name), "thread %zu", i % MADE_UP_THREADS);
		threads->changes += threads->count >= before || kept[threads->count].serial != thread.serial;
		threads->list[threads->count++] = thread;
	}
	threads->changes += threads->count < before;
	if (process->exec_ns && now_ns >= process->exec_ns && !threads->execed && !machine.stays_away) {
		/* Of an execve() before ljspy came, the kernel reports nothing. */
		threads->execed = true;
		threads->tracees[0].execed = before > 0;
		threads->tracees[0].took_id = process->exec_by > 0;
		threads->changes++;
	}
	return 0;
}

INSTEAD_OF(thread_begin_anew);
void __wrap_thread_begin_anew(struct threads *threads, struct thread *thread)
{
	uint64_t accounted_ns = threads->accounted_ns, used_ns;

	if (thread_measure(threads, thread, &used_ns))
		abort();
	threads->accounted_ns = accounted_ns;
}

INSTEAD_OF(thread_read_name);
void __wrap_thread_read_name(const struct threads *threads, struct thread *thread)
{
	(void)threads;
	snprintf(thread->name, sizeof(thread->name), "other");
}

/* The kernel counts stops, too. */
INSTEAD_OF(thread_count_sleeps);
int __wrap_thread_count_sleeps(const struct threads *threads, const struct thread *thread,
			       uint64_t *ret_count)
{
	*ret_count = made_up_times(made_up_of(thread), machine.now_ns).runs +
		     threads->stops[thread->tid - threads->pid];
	return 0;
}

INSTEAD_OF(lua_process_loop_clock);
uint64_t __wrap_lua_process_loop_clock(struct lua_process *process)
{
	(void)process;
	return machine.loop_ns;
}

INSTEAD_OF(threads_changes);
uint64_t __wrap_threads_changes(const struct threads *threads)
{
	return threads->changes;
}

INSTEAD_OF(threads_unaccounted_ns);
uint64_t __wrap_threads_unaccounted_ns(const struct threads *threads, uint64_t process_cpu_ns)
{
	return process_cpu_ns > threads->accounted_ns ? process_cpu_ns - threads->accounted_ns : 0;
}

INSTEAD_OF(thread_refresh_name);
void __wrap_thread_refresh_name(const struct threads *threads, struct thread *thread)
{
	(void)threads;
	(void)thread;
}

INSTEAD_OF(threads_count);
size_t __wrap_threads_count(const struct threads *threads)
{
	return threads->count;
}

INSTEAD_OF(threads_at);
struct thread *__wrap_threads_at(const struct threads *threads, size_t index)
{
	return (struct thread *)&all_threads[threads - all_threads].list[index];
}

INSTEAD_OF(threads_find);
struct thread *__wrap_threads_find(const struct threads *threads, pid_t tid)
{
	for (size_t i = 0; i < threads->count; i++)
		if (threads_at(threads, i)->tid == tid)
			return threads_at(threads, i);
	return NULL;
}

INSTEAD_OF(threads_are_gone);
bool __wrap_threads_are_gone(const struct threads *threads)
{
	return !is_there(find(threads->pid));
}

INSTEAD_OF(thread_measure);
int __wrap_thread_measure(struct threads *threads, struct thread *thread, uint64_t *ret_used_ns)
{
	struct made_up_times times = made_up_times(made_up_of(thread), machine.now_ns);

	machine.measures++;
	if (times.does == MADE_UP_IS_GONE)
		return -ESRCH;
	threads->accounted_ns += times.cpu_ns - thread->cpu_ns;
	*ret_used_ns = times.cpu_ns - thread->cpu_ns;
	thread->cpu_ns = times.cpu_ns;
	/* The kernel counts a wait when it is over. */
	thread->waited_ns = times.waited_ns - (times.does == MADE_UP_WAITS ? times.into_ns : 0);
	thread->runs = machine.counts_no_runs ? 0 : times.runs;
	return 0;
}

INSTEAD_OF(thread_count_runs);
int __wrap_thread_count_runs(const struct threads *threads, struct thread *thread, uint64_t *ret_runs)
{
	struct made_up_times times = made_up_times(made_up_of(thread), machine.now_ns);

	(void)threads;
	if (times.does == MADE_UP_IS_GONE)
		return -ESRCH;
	machine.run_counts++;
	*ret_runs = (machine.counts_no_runs ? 0 : times.runs) + machine.wakes;
	return 0;
}

INSTEAD_OF(process_thread_with_memory);
pid_t __wrap_process_thread_with_memory(pid_t pid)
{
	return is_there(find(pid)) ? pid : 0;
}

INSTEAD_OF(process_halt);
enum process_halt __wrap_process_halt(pid_t pid)
{
	(void)pid;
	return HALT_NONE;
}

INSTEAD_OF(thread_read_state);
int __wrap_thread_read_state(struct threads *threads, struct thread *thread, enum thread_state *ret_state,
			     struct thread_call *ret_call)
{
	(void)threads;
	thread->is_job_stopped = machine.is_job_stopped;
	*ret_state = machine.sleep_state;
	if (!ret_call)
		return 0;
	*ret_call = machine.call;
	ret_call->pc += machine.wakes;
	return 0;
}

INSTEAD_OF(on_cpu_look);
enum presence __wrap_on_cpu_look(struct threads *threads, struct thread *thread, struct own_turn *turn)
{
	(void)threads;
	(void)turn;
	if (made_up_times(made_up_of(thread), machine.now_ns).does == MADE_UP_RUNS)
		return PRESENCE_ON_CPU;
	thread->runs_left = thread->runs;
	return PRESENCE_OFF_CPU;
}

INSTEAD_OF(thread_is_running);
bool __wrap_thread_is_running(struct threads *threads, struct thread *thread)
{
	struct made_up_times times = made_up_times(made_up_of(thread), machine.now_ns);

	(void)threads;
	return times.does == MADE_UP_RUNS || times.does == MADE_UP_WAITS;
}

INSTEAD_OF(thread_may_stop_now);
enum may_stop __wrap_thread_may_stop_now(struct thread *thread, enum presence presence)
{
	const enum may_stop nature = made_up_of(thread)->nature;

	if (presence == PRESENCE_OFF_CPU)
		return MAY_NOT_SLEEPS;
	return nature == MAY_STOP && presence == PRESENCE_AWAKE ? MAY_STOP_WAITING : nature;
}

INSTEAD_OF(own_stack_address);
uint64_t __wrap_own_stack_address(pid_t tid)
{
	for (size_t i = 0; i < machine.process_count; i++) {
		const struct made_up_process *process = &machine.processes[i];

		if (tid >= process->pid && tid < process->pid + (pid_t)process->thread_count)
			return process->threads[tid - process->pid].hides_stack ? 0 : (uint64_t)tid;
	}
	return 0;
}

INSTEAD_OF(interrupted_call_may_be);
bool __wrap_interrupted_call_may_be(pid_t tid, const struct registers *registers)
{
	(void)tid;
	(void)registers;
	return machine.in_calls;
}

INSTEAD_OF(interrupted_call_has_ended);
bool __wrap_interrupted_call_has_ended(const struct registers *registers)
{
	(void)registers;
	return machine.fell_asleep;
}

void made_up_machine_begin(uint64_t now_ns)
{
	machine = (struct made_up_machine){
		.files_may_take_ns = UINT64_MAX,
		.now_ns = now_ns,
		.resume_takes_ns = RESUME_TAKES_NS,
		.call = { .known = true },
		.sleep_state = THREAD_BLOCKED,
	};
	the_patience = NULL;
	memset(alarms, 0, sizeof(alarms));
	memset(all_threads, 0, sizeof(all_threads));
}

/*---- Processes: a stack is one function, and its line says how much of a run or sleep is over ----*/

static const struct function works = {
	.kind = FRAME_LUA, .name = "works", .file = "made_up.lua", .firstline = 1
};

struct lua_process {
	struct made_up_process *process;
	bool was_cut_short; /* the search of it */
	struct frame frame;
};

static struct lua_process lua_processes[MADE_UP_PROCESSES];

static void capture(struct lua_process *process, pid_t tid)
{
	const struct made_up_thread *thread = find_thread(process->process->pid, tid);
	struct made_up_times times = made_up_times(thread, machine.now_ns);
	uint64_t whole_ns = times.does == MADE_UP_WAITS  ? thread->wait_ns
			    : times.does == MADE_UP_RUNS ? thread->run_ns
							 : thread->sleep_ns;

	machine.copy_is_short = false;
	process->frame = (struct frame){
		.function = thread->function ? thread->function : &works,
		.line = whole_ns ? (uint32_t)(times.into_ns * HUNDRED / whole_ns) : 0,
	};
	machine.last_capture_ns = machine.now_ns;
	machine.now_ns += machine.copy_takes_ns;
}

/* Work for so long, but for who asks meanwhile; false if it was told to stop. */
static bool spend(uint64_t ns)
{
	const struct patience *patience = the_patience;

	for (const uint64_t end_ns = machine.now_ns + ns; machine.now_ns < end_ns;) {
		machine.now_ns += least(ASK_NS, end_ns - machine.now_ns);
		if (patience && !patience->may_go_on(patience->context))
			return false;
	}
	return true;
}

INSTEAD_OF(lua_process_open);
int __wrap_lua_process_open(pid_t pid, struct functions *functions, struct known_files *files,
			    const struct namer_options *options, struct lua_process **ret_process)
{
	struct made_up_process *process = find(pid);

	(void)functions;
	(void)files;
	(void)options;
	if (!is_there(process))
		return -ESRCH;
	*ret_process = &lua_processes[process - machine.processes];
	(*ret_process)->process = process;
	machine.layout = NULL;
	machine.opens++;
	(*ret_process)->was_cut_short = !spend(machine.open_takes_ns);
	return 0;
}

INSTEAD_OF(lua_process_give_layout);
void __wrap_lua_process_give_layout(struct lua_process *process, const struct given_layout *given)
{
	(void)process;
	machine.layout = given;
}

INSTEAD_OF(lua_process_refresh);
int __wrap_lua_process_refresh(struct lua_process *process, bool thorough)
{
	(void)thorough;
	machine.refreshes++;
	if (machine.files_may_take_ns == UINT64_MAX)
		machine.patient_refreshes++;
	else
		machine.files_may_take_ns -= least(machine.refresh_uses_ns, machine.files_may_take_ns);
	machine.hurried += machine.look_is_awaited;
	if (!is_there(process->process))
		return -ESRCH;
	if (process->process->ends_when_searched)
		process->process->end_ns = machine.now_ns;
	return process->process->refusal;
}

INSTEAD_OF(lua_process_module_count);
size_t __wrap_lua_process_module_count(const struct lua_process *process)
{
	const struct made_up_process *of = process->process;

	if (process->was_cut_short)
		return 0;
	if (of->exec_ns && machine.now_ns >= of->exec_ns)
		return machine.now_ns >= of->exec_luajit_ns;
	return machine.now_ns >= of->luajit_ns && !of->refusal;
}

INSTEAD_OF(lua_process_lacks_luajit);
int __wrap_lua_process_lacks_luajit(const struct lua_process *process)
{
	if (__wrap_lua_process_module_count(process))
		return 0;
	return process->process->is_unread || process->was_cut_short ? -ENODATA : -ENOEXEC;
}

INSTEAD_OF(lua_process_unknown_layout);
const char *__wrap_lua_process_unknown_layout(const struct lua_process *process)
{
	return process->process->has_unknown_layout ? "no row fits" : NULL;
}

INSTEAD_OF(lua_process_capture);
void __wrap_lua_process_capture(struct lua_process *process, const struct registers *registers,
				struct capture_hints *hints)
{
	(void)registers;
	capture(process, hints->tid);
}

INSTEAD_OF(lua_process_capture_running);
enum capture_verdict __wrap_lua_process_capture_running(struct lua_process *process,
							const struct stack_place *place, bool lacks_native,
							struct capture_hints *hints)
{
	const pid_t pid = process->process->pid, tid = place->address ? (pid_t)place->address : pid;

	(void)hints;
	machine.without_native += lacks_native;
	machine.place = *place;
	capture(process, tid);
	return process->process->threads[tid - pid].running;
}

INSTEAD_OF(lua_process_first_stack);
uint64_t __wrap_lua_process_first_stack(const struct lua_process *process)
{
	return (uint64_t)process->process->pid;
}

INSTEAD_OF(lua_process_unwind);
int __wrap_lua_process_unwind(struct lua_process *process, const struct frame **ret_frames, size_t *ret_count,
			      enum vm_state *ret_state)
{
	machine.now_ns += machine.unwind_takes_ns;
	if (machine.unwind_error)
		return machine.unwind_error;
	*ret_frames = &process->frame;
	*ret_count = 1;
	*ret_state = VM_STATE_INTERPRETED;
	return 0;
}

INSTEAD_OF(lua_process_note_unwound);
bool __wrap_lua_process_note_unwound(const struct lua_process *process, struct capture_hints *hints)
{
	(void)process;
	(void)hints;
	return machine.copy_is_short;
}

INSTEAD_OF(lua_process_wants_rehearsal);
bool __wrap_lua_process_wants_rehearsal(const struct capture_hints *hints)
{
	(void)hints;
	return true;
}

INSTEAD_OF(lua_process_rehearse);
void __wrap_lua_process_rehearse(struct lua_process *process, struct capture_hints *hints)
{
	(void)process;
	(void)hints;
	machine.rehearsals++;
}

static const struct made_up_thread *last_asleep; /* that was copied */

INSTEAD_OF(asleep_capture);
enum asleep_verdict __wrap_asleep_capture(struct lua_process *process, struct threads *threads,
					  struct thread *thread, struct capture_hints *hints,
					  enum thread_state *ret_state, struct thread_call *ret_call)
{
	(void)hints;
	(void)threads;
	if (made_up_times(made_up_of(thread), machine.now_ns).does != MADE_UP_SLEEPS)
		return ASLEEP_RUNS;
	capture(process, thread->tid);
	last_asleep = made_up_of(thread);
	machine.copy_is_short = machine.short_copies && machine.sleeper_copies++ % 2 == 0;
	*ret_state = machine.sleep_state;
	*ret_call = machine.call;
	return made_up_of(thread)->asleep;
}

INSTEAD_OF(wait_read);
void __wrap_wait_read(struct memory *memory, const struct thread_call *call, struct wait *ret_wait)
{
	(void)memory;
	machine.last_call = call->number;
	*ret_wait = last_asleep->wait ? *last_asleep->wait : machine.wait;
}

INSTEAD_OF(lock_holder_find);
bool __wrap_lock_holder_find(struct threads *threads, pid_t pid, struct memory *memory, uint64_t lock,
			     bool is_shared, struct lock_holder *ret_holder)
{
	(void)memory;
	machine.lock_looks++;
	*ret_holder = (struct lock_holder){ .tid = pid + (pid_t)machine.holder };
	if (lock == machine.held_lock)
		ret_holder->thread = threads_find(threads, ret_holder->tid);
	return ret_holder->thread || is_shared;
}

INSTEAD_OF(lock_holder_awaits_events);
bool __wrap_lock_holder_awaits_events(struct threads *threads, struct memory *memory,
				      const struct lock_holder *holder)
{
	(void)threads;
	(void)memory;
	(void)holder;
	return machine.now_ns < machine.events_end_ns &&
	       !(machine.events_but_one_in && machine.lock_looks % machine.events_but_one_in == 0);
}

INSTEAD_OF(wait_describe_briefly);
void __wrap_wait_describe_briefly(const struct thread_call *call, const struct wait *wait,
				  char ret_text[static WAIT_TEXT_SIZE])
{
	(void)call;
	(void)wait;
	machine.brief_waits++;
	snprintf(ret_text, WAIT_TEXT_SIZE, "brief");
}

INSTEAD_OF(wait_describe);
void __wrap_wait_describe(pid_t pid, struct memory *memory, const struct thread_call *call, struct wait *wait,
			  struct wait_socket *last, char ret_text[static WAIT_TEXT_SIZE])
{
	(void)pid;
	(void)memory;
	(void)call;
	(void)wait;
	(void)last;
	if (machine.names_waits)
		snprintf(ret_text, WAIT_TEXT_SIZE, "read %0*lu", WAIT_PATH_SIZE, machine.collectors);
	else
		snprintf(ret_text, WAIT_TEXT_SIZE, "nanosleep");
}

INSTEAD_OF(puc_lua_find);
bool __wrap_puc_lua_find(pid_t pid, struct errands *errands, char ret_version[static PUC_LUA_VERSION_MAX])
{
	(void)pid;
	(void)errands;
	machine.other_lua_may_ns = machine.files_may_take_ns;
	if (!spend(machine.other_lua_takes_ns))
		return false;
	if (machine.other_lua)
		snprintf(ret_version, PUC_LUA_VERSION_MAX, "%s", machine.other_lua);
	return machine.other_lua != NULL;
}

/*---- Starting ----*/

INSTEAD_OF(launch_start);
int __wrap_launch_start(char *const command[], const sigset_t *mask, pid_t group, struct launch *ret_launch)
{
	(void)command;
	(void)mask;
	(void)group;
	machine.launches++;
	ret_launch->pid = machine.processes[0].pid;
	return machine.launch_error;
}

INSTEAD_OF(launch_go);
int __wrap_launch_go(struct launch *launch, struct tracer *tracer)
{
	(void)launch;
	(void)tracer;
	return machine.go_error;
}

INSTEAD_OF(launch_cancel);
void __wrap_launch_cancel(struct launch *launch)
{
	(void)launch;
	machine.cancels++;
}

/* Processes are ljspy's children; one that has ended is told once. */
INSTEAD_OF(waitpid);
pid_t __wrap_waitpid(pid_t pid, int *ret_status, int flags)
{
	const struct made_up_process *process = find(pid);

	if (!(flags & WNOHANG))
		abort();
	if (is_there(process))
		return 0;
	machine.reaps++;
	if (process && ret_status && machine.exit_known)
		*ret_status = machine.exit_status;
	else if (ret_status)
		return -1;
	return pid;
}

/*---- Following ----*/

struct follow {
	uint64_t due_ns;
	bool told[MADE_UP_PROCESSES];
};

static struct follow the_follow;

INSTEAD_OF(follow_new);
struct follow *__wrap_follow_new(const struct follow_options *options)
{
	machine.followed = *options;
	the_follow = (struct follow){ 0 };
	return &the_follow;
}

INSTEAD_OF(follow_add);
int __wrap_follow_add(struct follow *follow, pid_t pid)
{
	(void)follow;
	if (machine.follow_count < MADE_UP_PROCESSES)
		machine.follows[machine.follow_count++] = pid;
	return machine.follow_error;
}

INSTEAD_OF(follow_due);
uint64_t __wrap_follow_due(const struct follow *follow)
{
	return follow->due_ns;
}

INSTEAD_OF(follow_search);
int __wrap_follow_search(struct follow *follow, uint64_t now_ns, follow_found *found, void *context)
{
	follow->due_ns = now_ns + FOLLOW_AGAIN_NS;
	for (size_t i = 0; i < machine.process_count; i++) {
		const struct made_up_process *process = &machine.processes[i];

		if (!process->followed || follow->told[i] || !is_there(process) ||
		    now_ns < process->hides_until_ns)
			continue;
		follow->told[i] = true;
		found(context, process->pid);
	}
	return 0;
}

INSTEAD_OF(slow_stat);
bool __wrap_slow_stat(struct errands *errands, const char *path, struct stat *ret_status)
{
	const struct made_up_process *process;
	int pid;

	(void)errands;
	if (!machine.tells_programs || sscanf(path, "/proc/%d/exe", &pid) != 1)
		return false;
	process = find(pid);
	if (!is_there(process))
		return false;
	*ret_status = (struct stat){ .st_dev = 1,
				     .st_ino = process->exec_ns && machine.now_ns >= process->exec_ns ? 3
												      : 2 };
	return true;
}

/*---- What a made-up machine has no use for ----*/

INSTEAD_OF(lua_process_close);
void __wrap_lua_process_close(struct lua_process *process)
{
	machine.closes += process != NULL;
}

INSTEAD_OF(lua_process_forget_functions);
void __wrap_lua_process_forget_functions(struct lua_process *process)
{
	(void)process;
}

INSTEAD_OF(lua_process_confirm);
void __wrap_lua_process_confirm(struct lua_process *process)
{
	(void)process;
}

INSTEAD_OF(lua_process_needs_confirming);
bool __wrap_lua_process_needs_confirming(const struct lua_process *process)
{
	(void)process;
	return false;
}

INSTEAD_OF(lua_process_has_new_modules);
bool __wrap_lua_process_has_new_modules(const struct lua_process *process)
{
	(void)process;
	return machine.has_new_modules;
}

INSTEAD_OF(lua_process_wants_refresh);
bool __wrap_lua_process_wants_refresh(const struct lua_process *process)
{
	(void)process;
	return machine.wants_refresh;
}

INSTEAD_OF(lua_process_global_count);
size_t __wrap_lua_process_global_count(const struct lua_process *process)
{
	return process->process->vm != NULL;
}

INSTEAD_OF(lua_process_global);
const struct global_state *__wrap_lua_process_global(const struct lua_process *process, size_t index)
{
	static struct global_state global;

	(void)index;
	global = (struct global_state){ .vm = process->process->vm };
	return &global;
}

INSTEAD_OF(lua_process_memory);
struct memory *__wrap_lua_process_memory(struct lua_process *process)
{
	(void)process;
	return NULL;
}

INSTEAD_OF(lua_process_add_roots);
void __wrap_lua_process_add_roots(const struct lua_process *process, char *list, size_t size)
{
	if (process->process->roots && !strstr(list, process->process->roots))
		snprintf(list + strlen(list), size - strlen(list), "%s", process->process->roots);
}

INSTEAD_OF(lua_process_phase);
const char *__wrap_lua_process_phase(const struct lua_process *process)
{
	(void)process;
	return machine.phase;
}

INSTEAD_OF(lua_process_request);
struct sample_request __wrap_lua_process_request(struct lua_process *process, uint64_t time_ns)
{
	(void)process;
	(void)time_ns;
	return machine.request;
}

INSTEAD_OF(lua_process_gc);
struct sample_gc __wrap_lua_process_gc(const struct lua_process *process, uint64_t now_ns, uint64_t cpu_ns)
{
	(void)process;
	machine.collectors++;
	machine.collected_at_ns = now_ns;
	return (struct sample_gc){ .phase = GC_PHASE_SWEEP,
				   .has_marked = true,
				   .allocated_bytes = 1,
				   .used_ns = 1,
				   .heap_bytes = cpu_ns,
				   .step_ns = 5 };
}

INSTEAD_OF(lua_process_code_pc);
uint64_t __wrap_lua_process_code_pc(const struct lua_process *process)
{
	(void)process;
	return machine.code_pc;
}

INSTEAD_OF(lua_process_proto);
uint64_t __wrap_lua_process_proto(const struct lua_process *process)
{
	(void)process;
	return machine.proto;
}

INSTEAD_OF(lua_process_trace_g);
uint64_t __wrap_lua_process_trace_g(const struct lua_process *process)
{
	(void)process;
	return 0;
}

INSTEAD_OF(lua_process_trace);
const struct trace *__wrap_lua_process_trace(const struct lua_process *process)
{
	(void)process;
	return NULL;
}

INSTEAD_OF(thread_note_place);
void __wrap_thread_note_place(struct thread *thread)
{
	(void)thread;
}

INSTEAD_OF(thread_watch_sleep);
void __wrap_thread_watch_sleep(struct threads *threads, struct thread *thread)
{
	(void)threads;
	(void)thread;
	machine.watched_sleeps++;
}

INSTEAD_OF(thread_note_stop);
void __wrap_thread_note_stop(struct thread *thread, const struct registers *registers)
{
	(void)thread;
	(void)registers;
}

INSTEAD_OF(thread_note_resumed);
void __wrap_thread_note_resumed(struct thread *thread, const struct registers *registers)
{
	(void)thread;
	(void)registers;
}

INSTEAD_OF(tracer_find);
struct tracee *__wrap_tracer_find(const struct tracer *tracer, pid_t tid)
{
	struct tracee *first = &all_threads[0].tracees[0];

	(void)tracer;
	if (!machine.exit_known || (tid != machine.processes[0].pid && !machine.all_ends_known))
		return NULL;
	first->exit_known = true;
	first->exit_status = machine.exit_status;
	return first;
}

INSTEAD_OF(tracer_poll);
bool __wrap_tracer_poll(struct tracer *tracer)
{
	(void)tracer;
	machine.polls++;
	return false;
}

INSTEAD_OF(tracer_awaits_stop);
bool __wrap_tracer_awaits_stop(const struct tracer *tracer)
{
	(void)tracer;
	return false;
}

INSTEAD_OF(tracer_may_be_first);
bool __wrap_tracer_may_be_first(const struct tracer *tracer)
{
	(void)tracer;
	return !machine.cannot_be_first;
}

INSTEAD_OF(tracer_note_quiet);
void __wrap_tracer_note_quiet(struct tracer *tracer, uint64_t time_ns)
{
	(void)tracer;
	machine.quiets++;
	machine.false_quiets += time_ns > quiet_ns;
}

INSTEAD_OF(tracer_poll_is_due);
bool __wrap_tracer_poll_is_due(const struct tracer *tracer)
{
	(void)tracer;
	return false;
}

INSTEAD_OF(tracer_await_look);
void __wrap_tracer_await_look(struct tracer *tracer, int cpu)
{
	(void)tracer;
	machine.look_is_awaited = true;
	machine.visits += cpu >= 0;
	machine.is_visiting = cpu >= 0 && !machine.may_not_visit;
}

INSTEAD_OF(tracer_visits);
bool __wrap_tracer_visits(const struct tracer *tracer)
{
	(void)tracer;
	return machine.is_visiting;
}

INSTEAD_OF(tracer_leave);
bool __wrap_tracer_leave(struct tracer *tracer)
{
	(void)tracer;
	return false;
}

INSTEAD_OF(tracer_end_look);
void __wrap_tracer_end_look(struct tracer *tracer)
{
	(void)tracer;
	machine.look_is_awaited = false;
	machine.looks_ended++;
}

INSTEAD_OF(tracer_take_time);
void __wrap_tracer_take_time(struct tracer *tracer)
{
	(void)tracer;
	machine.look_is_awaited = false;
	machine.times_taken++;
}

INSTEAD_OF(tracer_cpu);
int __wrap_tracer_cpu(const struct tracee *tracee)
{
	(void)tracee;
	machine.cpu ^= machine.changes_cpu;
	return machine.cpu;
}

INSTEAD_OF(tracer_stay_away);
void __wrap_tracer_stay_away(struct tracer *tracer)
{
	(void)tracer;
	machine.stays_away = true;
}

INSTEAD_OF(tracer_allow_attach);
void __wrap_tracer_allow_attach(struct tracer *tracer)
{
	(void)tracer;
	machine.allows_attach = true;
}

INSTEAD_OF(tracer_be_urgent);
void __wrap_tracer_be_urgent(struct tracer *tracer)
{
	(void)tracer;
}

INSTEAD_OF(tracer_count_holds);
void __wrap_tracer_count_holds(struct tracer *tracer, struct histogram *holds)
{
	(void)tracer;
	machine.has_counted_holds = holds != NULL;
}

INSTEAD_OF(tracer_allow_files);
void __wrap_tracer_allow_files(struct tracer *tracer, size_t count)
{
	(void)tracer;
	machine.files_allowed = count;
}

INSTEAD_OF(tracer_leave_files);
int __wrap_tracer_leave_files(struct tracer *tracer, size_t count)
{
	(void)tracer;
	return count > 0 && machine.now_ns >= machine.few_files_begin_ns &&
			       machine.now_ns < machine.few_files_end_ns
		       ? -EMFILE
		       : 0;
}

INSTEAD_OF(tracer_let_go);
void __wrap_tracer_let_go(struct tracer *tracer)
{
	(void)tracer;
}

INSTEAD_OF(tracer_free);
void __wrap_tracer_free(struct tracer *tracer)
{
	(void)tracer;
}

INSTEAD_OF(follow_unread);
size_t __wrap_follow_unread(const struct follow *follow, pid_t *ret_pid)
{
	(void)follow;
	*ret_pid = machine.unread_pid;
	return machine.unread_count;
}

INSTEAD_OF(follow_free);
void __wrap_follow_free(struct follow *follow)
{
	(void)follow;
}

/* ljspy may not take these for an end of memory. */
INSTEAD_OF(known_files_new);
struct known_files *__wrap_known_files_new(void)
{
	return machine.no_memory_for && strcmp(machine.no_memory_for, "files") == 0
		       ? NULL
		       : (struct known_files *)&machine;
}

INSTEAD_OF(known_files_free);
void __wrap_known_files_free(struct known_files *files)
{
	(void)files;
}

INSTEAD_OF(known_files_symbols);
struct symbol_files *__wrap_known_files_symbols(const struct known_files *files)
{
	(void)files;
	return NULL;
}

INSTEAD_OF(known_files_errands);
struct errands *__wrap_known_files_errands(const struct known_files *files)
{
	(void)files;
	return NULL;
}

INSTEAD_OF(known_files_allow_ns);
void __wrap_known_files_allow_ns(struct known_files *files, uint64_t ns)
{
	(void)files;
	machine.files_may_take_ns = ns;
}

INSTEAD_OF(symbol_files_cpu_ns);
uint64_t __wrap_symbol_files_cpu_ns(const struct symbol_files *files)
{
	(void)files;
	return machine.symbols_cpu_ns;
}

INSTEAD_OF(patience_begin);
void __wrap_patience_begin(struct patience *patience, const struct known_files *files)
{
	(void)files;
	the_patience = patience;
}

INSTEAD_OF(patience_end);
void __wrap_patience_end(const struct known_files *files)
{
	(void)files;
	the_patience = NULL;
}

/* SPDX-License-Identifier: MIT */
/*
 * made_up_tracing: a kernel for the tracer: threads that stop, get signals and end when the test says so.
 *
 * What the tracer asks of it is noted as a text. Time passes with each look at the clock, and while the
 * tracer sleeps.
 */
#ifndef LJSPY_MADE_UP_TRACING_H
#define LJSPY_MADE_UP_TRACING_H

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "src/linux/calls/interrupted_call.h"
#include "src/linux/clocks/clock.h"
#include "src/linux/clocks/urgent.h"
#include "src/linux/clocks/visit.h"
#include "src/linux/proc/process.h"
#include "src/linux/tracer/call_watch.h"
#include "src/linux/tracer/thread_registers.h"
#include "src/linux/tracer/tracer.h"
#include "tests/unit/instead_of.h"

INSTEAD_OF(ptrace);
INSTEAD_OF(waitpid);
INSTEAD_OF(waitid);
INSTEAD_OF(syscall);
INSTEAD_OF(clock_gettime);
INSTEAD_OF(nanosleep);
INSTEAD_OF(sigtimedwait);
INSTEAD_OF(open);
INSTEAD_OF(pread);
INSTEAD_OF(close);
INSTEAD_OF(sched_getcpu);
INSTEAD_OF(sched_getaffinity);
INSTEAD_OF(process_read_status);
INSTEAD_OF(thread_registers_complete);
INSTEAD_OF(thread_registers_read_old);
INSTEAD_OF(interrupted_call_find);
INSTEAD_OF(interrupted_call_restart);
INSTEAD_OF(interrupted_call_deliver);
INSTEAD_OF(own_turn_open);
INSTEAD_OF(own_turn_close);
INSTEAD_OF(own_turn_wait);
INSTEAD_OF(own_turn_is_used_up);
INSTEAD_OF(own_turn_is_modest);
INSTEAD_OF(call_watch_open);
INSTEAD_OF(call_watch_close);
INSTEAD_OF(call_watch_begin);
INSTEAD_OF(call_watch_end);
INSTEAD_OF(urgent_open);
INSTEAD_OF(urgent_open_by_nice);
INSTEAD_OF(urgent_close);
INSTEAD_OF(urgent_begin);
INSTEAD_OF(urgent_end);
INSTEAD_OF(urgent_go_on);
INSTEAD_OF(visit_open);
INSTEAD_OF(visit_close);
INSTEAD_OF(visit_begin);
INSTEAD_OF(visit_leave);
INSTEAD_OF(visit_end);

enum {
	TRACED_FIRST = 100, /* the first thread's id, and its process's */
	TRACED_SECOND,
	TRACED_THIRD,
	TRACED_MAX = 8, /* threads from there on */
	REPORTS_MAX = 16,
	TRACED_FILES = 5000, /* their descriptors, by number of the thread */
	TRACED_TICK_NS = 1000,
	TRACED_CPU = 3, /* that of the test */
};

struct traced {
	char state; /* as its stat file says; 0: there is none */
	int cpu;
	struct process process; /* as its files say */
	int process_error;
	unsigned long event_message;
	siginfo_t signal; /* that it has stopped for */
	int signal_error;
	int seize_error, attach_error, ask_error; /* errno of these requests */
	int registers_error, old_registers_error;
	size_t registers_size;
	bool interrupted, limited; /* the call that it is about to leave */
	bool answers;              /* it stops at once if it is told to */
	bool is_strange;           /* it is no tracee of this thread any more */
	bool has_execed;           /* there is no thread of this id any more */
	bool takes_signals;        /* of ljspy: the kernel permits them */
};

static struct {
	struct traced threads[TRACED_MAX];
	struct {
		pid_t tid;
		int status;
	} reports[REPORTS_MAX];
	size_t report_count;
	bool storms;      /* the first report comes again and again, */
	unsigned handled; /* ... and this is how many have come */
	char told[1024];  /* what the tracer has asked for */
	uint64_t now_ns;
	int waitid_error, watch_error;
	void (*asleep)(void);       /* happens while the tracer sleeps */
	bool is_woken;              /* what happens then sends it SIGCHLD */
	unsigned sleeps;            /* of the tracer */
	bool signal_waits;          /* SIGCHLD is on the queue */
	bool watches;               /* call_watch_begin() without call_watch_end() */
	unsigned files_open, reads; /* of stat files; of registers */
	enum urgent_means means;    /* that ljspy may have */
	bool is_urgent, goes_on;    /* goes_on: by urgent_go_on() */
	int visited;                /* the CPU; -1: none */
	bool turn_is_used_up, is_modest, is_bound;
} tracing;

static inline struct traced *traced_of(pid_t tid)
{
	assert_in_range(tid, TRACED_FIRST, TRACED_FIRST + TRACED_MAX - 1);
	return &tracing.threads[tid - TRACED_FIRST];
}

static void tracing_tell(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void tracing_tell(const char *format, ...)
{
	const size_t length = strlen(tracing.told), room = sizeof(tracing.told) - length;
	va_list arguments;

	if (tracing.storms)
		return;
	va_start(arguments, format);
	assert_in_range(vsnprintf(tracing.told + length, room, format, arguments), 1, room - 1);
	va_end(arguments);
}

/* So much was asked for since the last call. */
static inline void assert_told(const char *expected)
{
	assert_string_equal(tracing.told, expected);
	tracing.told[0] = '\0';
}

static inline void tracing_begin(void)
{
	memset(&tracing, 0, sizeof(tracing));
	tracing.now_ns = UINT64_C(1000) * NS_PER_SECOND;
	tracing.visited = -1;
	for (int i = 0; i < TRACED_MAX; i++)
		tracing.threads[i] = (struct traced){
			.state = 'R',
			.cpu = TRACED_CPU + 1,
			.process = { .pid = TRACED_FIRST + i, .state = 'R', .tracer_pid = gettid() },
			.registers_size = sizeof(struct user_regs_struct),
			.answers = true,
		};
}

/*---- Reports ----*/

static inline void traced_report(pid_t tid, int status)
{
	assert_in_range(tracing.report_count, 0, REPORTS_MAX - 1);
	tracing.reports[tracing.report_count].tid = tid;
	tracing.reports[tracing.report_count++].status = status;
}

/* A signal for it waits for the tracer. */
static inline void traced_gets(pid_t tid, int signal)
{
	traced_report(tid, signal << 8 | 0x7f);
}

/* SIGTRAP: by PTRACE_INTERRUPT, or at the end of a job stop; another signal: one has begun. */
static inline void traced_stops(pid_t tid, int signal)
{
	traced_report(tid, PTRACE_EVENT_STOP << 16 | signal << 8 | 0x7f);
}

/* It has called execve(), and had another id until then. */
static inline void traced_execs(pid_t tid, pid_t former)
{
	traced_of(tid)->event_message = (unsigned long)former;
	traced_report(tid, PTRACE_EVENT_EXEC << 16 | SIGTRAP << 8 | 0x7f);
}

static inline void traced_exits(pid_t tid, int code)
{
	traced_report(tid, code << 8);
}

static inline void traced_take_report(size_t index)
{
	tracing.handled++;
	if (tracing.storms)
		return;
	memmove(&tracing.reports[index], &tracing.reports[index + 1],
		(tracing.report_count - index - 1) * sizeof(tracing.reports[0]));
	tracing.report_count--;
}

pid_t __wrap_waitpid(pid_t pid, int *ret_status, int options)
{
	assert_int_equal(options, __WALL | __WNOTHREAD | WNOHANG);
	for (size_t i = 0; i < tracing.report_count; i++) {
		if (tracing.reports[i].tid != pid)
			continue;
		*ret_status = tracing.reports[i].status;
		traced_take_report(i);
		return pid;
	}
	errno = ECHILD;
	return traced_of(pid)->is_strange ? -1 : 0;
}

int __wrap_waitid(idtype_t type, id_t id, siginfo_t *ret_info, int options)
{
	assert_int_equal(type, P_ALL);
	assert_int_equal(id, 0);
	assert_int_equal(options, WEXITED | WSTOPPED | WNOWAIT | __WALL | __WNOTHREAD | WNOHANG);
	errno = tracing.waitid_error;
	if (errno)
		return -1;
	ret_info->si_pid = 0;
	if (tracing.report_count == 0)
		return 0;
	ret_info->si_pid = tracing.reports[0].tid;
	ret_info->si_code = WIFSTOPPED(tracing.reports[0].status) ? CLD_TRAPPED : CLD_EXITED;
	return 0;
}

/*---- Requests ----*/

/* One that succeeds leaves in errno what was there: the error of another call. */
static inline long traced_result(int error)
{
	errno = error ? error : EINVAL;
	return error ? -1 : 0;
}

static inline long traced_registers(struct traced *traced, struct iovec *io)
{
	struct user_regs_struct *regs = io->iov_base;

	tracing.reads++;
	if (traced->registers_error)
		return traced_result(traced->registers_error);
	assert_int_equal(io->iov_len, sizeof(*regs));
	memset(regs, 0, sizeof(*regs));
	regs->rip = (unsigned long)(traced - tracing.threads) + TRACED_FIRST;
	io->iov_len = traced->registers_size;
	return 0;
}

long __wrap_ptrace(enum __ptrace_request request, ...)
{
	struct traced *traced;
	uintptr_t address;
	va_list arguments;
	void *data;
	pid_t tid;

	va_start(arguments, request);
	tid = va_arg(arguments, pid_t);
	address = (uintptr_t)va_arg(arguments, void *);
	data = va_arg(arguments, void *);
	va_end(arguments);
	traced = traced_of(tid);
	if (request == PTRACE_GETREGSET) {
		assert_int_equal(address, NT_PRSTATUS);
		return traced_registers(traced, data);
	}
	assert_int_equal(address, 0);
	if (request == PTRACE_SEIZE) {
		tracing_tell("seize %d; ", (int)tid);
		assert_int_equal((uintptr_t)data, PTRACE_O_TRACEEXEC);
		assert_true(tracing.watches);
		return traced_result(traced->seize_error);
	}
	if (request == PTRACE_ATTACH) {
		tracing_tell("attach %d; ", (int)tid);
		assert_true(tracing.watches);
		return traced_result(traced->attach_error);
	}
	if (request == PTRACE_SETOPTIONS) {
		tracing_tell("options %d; ", (int)tid);
		assert_int_equal((uintptr_t)data, PTRACE_O_TRACEEXEC);
	} else if (request == PTRACE_INTERRUPT) {
		tracing_tell("interrupt %d; ", (int)tid);
		if (traced->answers && !traced->ask_error)
			traced_stops(tid, SIGTRAP);
		return traced_result(traced->ask_error);
	} else if (request == PTRACE_CONT) {
		tracing_tell("go on %d %d; ", (int)tid, (int)(uintptr_t)data);
	} else if (request == PTRACE_LISTEN) {
		tracing_tell("listen %d; ", (int)tid);
	} else if (request == PTRACE_GETEVENTMSG) {
		*(unsigned long *)data = traced->event_message;
	} else {
		assert_int_equal(request, PTRACE_GETSIGINFO);
		if (!traced->signal_error)
			*(siginfo_t *)data = traced->signal;
		return traced_result(traced->signal_error);
	}
	return 0;
}

long __wrap_syscall(long number, ...)
{
	va_list arguments;
	int pid, tid, sent;

	assert_int_equal(number, SYS_tgkill);
	va_start(arguments, number);
	pid = va_arg(arguments, int);
	tid = va_arg(arguments, int);
	sent = va_arg(arguments, int);
	va_end(arguments);
	if (sent == 0 && traced_of(tid)->takes_signals) {
		errno = ESRCH; /* of an earlier call */
		return 0;
	}
	if (sent == 0)
		return traced_result(traced_of(tid)->has_execed ? ESRCH : EPERM);
	tracing_tell("kill %d %d %d; ", pid, tid, sent);
	return traced_result(traced_of(tid)->ask_error);
}

bool __wrap_thread_registers_read_old(pid_t tid, struct user_regs_struct *ret_registers)
{
	errno = traced_of(tid)->old_registers_error;
	memset(ret_registers, 0, sizeof(*ret_registers));
	ret_registers->rip = (unsigned long)tid;
	return !errno;
}

void __wrap_thread_registers_complete(pid_t tid, struct registers *registers)
{
	registers->thread_pointer = (uint64_t)tid + 1;
}

bool __wrap_interrupted_call_find(pid_t tid, const struct user_regs_struct *regs, bool *ret_limited)
{
	assert_int_equal(regs->rip, tid);
	*ret_limited = traced_of(tid)->limited;
	return traced_of(tid)->interrupted;
}

void __wrap_interrupted_call_restart(pid_t tid, const struct user_regs_struct *regs,
				     struct restarted_call *ret_call)
{
	assert_int_equal(regs->rip, tid);
	tracing_tell("restart %d; ", (int)tid);
	ret_call->is_set = true;
}

void __wrap_interrupted_call_deliver(pid_t tid, int signal, struct restarted_call *call)
{
	tracing_tell("deliver %d %d%s; ", (int)tid, signal, call->is_set ? " in a call" : "");
}

int __wrap_process_read_status(pid_t pid, struct process *ret_process)
{
	if (traced_of(pid)->process_error)
		return traced_of(pid)->process_error;
	*ret_process = traced_of(pid)->process;
	return 0;
}

/*---- Its stat file ----*/

int __wrap_open(const char *path, int flags, ...)
{
	int pid, tid, mode = 0;
	char end;

	if (sscanf(path, "/proc/%d/task/%d/sta%c", &pid, &tid, &end) != 3) {
		va_list arguments;

		va_start(arguments, flags);
		mode = va_arg(arguments, int);
		va_end(arguments);
		return __real_open(path, flags, mode);
	}
	assert_int_equal(flags, O_RDONLY | O_CLOEXEC);
	if (!traced_of(tid)->state) {
		errno = ENOENT;
		return -1;
	}
	tracing.files_open++;
	return TRACED_FILES + tid - TRACED_FIRST;
}

ssize_t __wrap_pread(int fd, void *bytes, size_t room, off_t offset)
{
	const struct traced *traced;

	if (fd >= 0 && fd < TRACED_FILES)
		return __real_pread(fd, bytes, room, offset);
	errno = EBADF;
	if (fd < 0)
		return -1;
	assert_int_equal(offset, 0);
	traced = traced_of(TRACED_FIRST + fd - TRACED_FILES);
	if (!traced->state)
		return 0;
	return snprintf(bytes, room,
			"100 (a) b) %c 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28"
			" 29 30 31 32 33 34 35 36 37 38 %d 40 41\n",
			traced->state, traced->cpu);
}

int __wrap_close(int fd)
{
	if (fd < TRACED_FILES)
		return __real_close(fd);
	assert_in_range(tracing.files_open, 1, UINT32_MAX);
	tracing.files_open--;
	return 0;
}

int __wrap_sched_getcpu(void)
{
	return TRACED_CPU;
}

int __wrap_sched_getaffinity(pid_t tid, size_t size, cpu_set_t *ret_set)
{
	assert_int_equal(size, sizeof(*ret_set));
	if (!traced_of(tid)->state)
		return (int)traced_result(ESRCH);
	CPU_ZERO(ret_set);
	CPU_SET(TRACED_CPU, ret_set);
	if (!tracing.is_bound)
		CPU_SET(TRACED_CPU + 1, ret_set);
	return 0;
}

/*---- Time ----*/

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_time)
{
	assert_int_equal(clock, CLOCK_MONOTONIC);
	tracing.now_ns += TRACED_TICK_NS;
	*ret_time = (struct timespec){ .tv_sec = (time_t)(tracing.now_ns / NS_PER_SECOND),
				       .tv_nsec = (long)(tracing.now_ns % NS_PER_SECOND) };
	return 0;
}

static inline void tracing_sleep(const struct timespec *time)
{
	tracing.sleeps++;
	tracing.now_ns += (uint64_t)time->tv_sec * NS_PER_SECOND + (uint64_t)time->tv_nsec;
	if (tracing.asleep)
		tracing.asleep();
}

int __wrap_nanosleep(const struct timespec *time, struct timespec *ret_left)
{
	assert_null(ret_left);
	tracing_sleep(time);
	return 0;
}

int __wrap_sigtimedwait(const sigset_t *signals, siginfo_t *ret_info, const struct timespec *timeout)
{
	const bool waited = tracing.signal_waits;

	assert_null(ret_info);
	assert_true(sigismember(signals, SIGCHLD));
	assert_int_equal(timeout->tv_sec, 0);
	assert_int_equal(timeout->tv_nsec, 0);
	tracing.signal_waits = false;
	errno = EAGAIN;
	return waited ? SIGCHLD : -1;
}

void __wrap_own_turn_open(struct own_turn *turn)
{
	*turn = (struct own_turn){ .schedstat_fd = -1, .sched_fd = -1 };
}

void __wrap_own_turn_close(struct own_turn *turn)
{
	assert_int_equal(turn->schedstat_fd, -1);
}

int __wrap_own_turn_wait(struct own_turn *turn, const sigset_t *signals, siginfo_t *ret_info,
			 const struct timespec *timeout)
{
	const uint64_t begin_ns = tracing.now_ns;

	assert_null(ret_info);
	for (int signal = 1; signal < 32; signal++)
		assert_int_equal(sigismember(signals, signal), signal == SIGCHLD);
	tracing.is_woken = false;
	tracing_sleep(timeout);
	if (tracing.is_woken)
		tracing.now_ns = begin_ns + TRACED_TICK_NS;
	turn->woken_ns = tracing.now_ns;
	errno = EAGAIN;
	return tracing.is_woken ? SIGCHLD : -1;
}

bool __wrap_own_turn_is_used_up(const struct own_turn *turn)
{
	assert_int_equal(turn->schedstat_fd, -1);
	return tracing.turn_is_used_up;
}

bool __wrap_own_turn_is_modest(struct own_turn *turn)
{
	assert_int_equal(turn->schedstat_fd, -1);
	return tracing.is_modest;
}

int __wrap_call_watch_open(struct call_watch *watch, void (*act)(void *argument), void *argument)
{
	*watch = (struct call_watch){ .act = act, .argument = argument };
	return tracing.watch_error;
}

void __wrap_call_watch_close(struct call_watch *watch)
{
	assert_non_null(watch->act);
}

void __wrap_call_watch_begin(struct call_watch *watch)
{
	assert_non_null(watch->act);
	assert_false(tracing.watches);
	tracing.watches = true;
}

void __wrap_call_watch_end(struct call_watch *watch)
{
	assert_non_null(watch->act);
	assert_true(tracing.watches);
	tracing.watches = false;
}

/*---- How urgent it is ----*/

void __wrap_urgent_open(struct urgent *urgent)
{
	urgent->means = tracing.means;
}

void __wrap_urgent_open_by_nice(struct urgent *urgent)
{
	urgent->means = URGENT_BY_NICE;
}

void __wrap_urgent_close(struct urgent *urgent)
{
	urgent->begun = tracing.is_urgent = false;
	tracing_tell("no more urgent; ");
}

void __wrap_urgent_begin(struct urgent *urgent)
{
	urgent->begun = tracing.is_urgent = true;
}

void __wrap_urgent_end(struct urgent *urgent)
{
	urgent->begun = tracing.is_urgent = tracing.goes_on = false;
}

void __wrap_urgent_go_on(struct urgent *urgent)
{
	urgent->begun = tracing.is_urgent = tracing.goes_on = true;
}

void __wrap_visit_open(struct visit *visit)
{
	visit->possible = true;
}

void __wrap_visit_close(struct visit *visit)
{
	visit->possible = false;
}

void __wrap_visit_begin(struct visit *visit, int cpu)
{
	(void)visit;
	tracing.visited = cpu;
}

bool __wrap_visit_leave(struct visit *visit)
{
	(void)visit;
	return tracing.visited >= 0;
}

void __wrap_visit_end(struct visit *visit)
{
	(void)visit;
	tracing.visited = -1;
}

#endif

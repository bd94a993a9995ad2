/* SPDX-License-Identifier: MIT */
#include "src/linux/threads/tracer.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <time.h>
#include <unistd.h>

#include "memory/child_wait.h"
#include "memory/hash.h"
#include "src/linux/clocks/clock.h"
#include "src/linux/clocks/urgent.h"
#include "src/linux/clocks/visit.h"
#include "src/linux/proc/proc_file.h"
#include "src/linux/proc/process.h"
#include "src/linux/calls/interrupted_call.h"
#include "src/linux/threads/call_watch.h"
#include "src/linux/threads/thread_registers.h"

enum {
	/*
	 * A thread that runs on another CPU stops within microseconds: polling
	 * for this long is quicker than sleeping and being woken up.
	 */
	STOP_SPIN_NS = 25 * 1000,
	/* After a signal, others are likely. */
	SIGNALS_RECENT_NS = 1000 * 1000 * 1000,
	/* Events handled in one tracer_poll(), so that a storm of signals cannot keep it for ever. */
	POLL_EVENTS_MAX = 4096,
	/* How long to wait at the end for stops that a SIGSTOP of ljspy asked for. */
	LAST_STOP_MS = 1000,
	/* See restart_after_signal(). */
	RESTART_AGAIN_NS = 1000 * 1000 * 1000,
};

/* __WNOTHREAD: tracees and children of ljspy's other threads are not ours to reap. */
static const int wait_options = __WALL | __WNOTHREAD | WNOHANG;

struct seized {
	struct tracee tracee;  /* first, so that a pointer to one points to the other */
	int stat_fd;           /* of /proc/PID/task/TID/stat; negative if not open */
	bool reserved;         /* room for that file */
	bool is_seized;        /* or attached; else ljspy only knows the thread's id */
	bool attached;         /* by PTRACE_ATTACH, not seized */
	bool has_stopped;      /* attached: it has stopped once, and its options are set */
	bool asked;            /* attached: a SIGSTOP from ljspy is on its way */
	bool job_stopped;      /* a signal stopped it, which ends its call even without ljspy */
	bool expected;         /* ljspy expects it to stop, or to run on */
	uint64_t restarted_ns; /* when ljspy last restarted a call with a limit after a signal */
	uint64_t asked_ns;     /* seized: when ljspy last told it to stop */
	bool has_regs;         /* it is stopped, and regs are its registers */
	bool is_read;          /* it is held, and the caller has asked for its registers */
	struct user_regs_struct regs;
	struct restarted_call call; /* the one that the last stop has restarted */
	UT_hash_handle hh;
};

/* What the tracer knows of a tracee that callers need not know. */
static struct seized *seized_of(struct tracee *tracee)
{
	return (struct seized *)tracee;
}

struct tracer {
	struct seized *seized; /* by tid */
	struct call_watch watch;
	size_t files_left;    /* how many more files may be kept open */
	size_t files_to_open; /* how many are reserved, and not open yet */
	struct own_turn turn;
	struct urgent urgent;
	struct visit visit;
	size_t expected; /* how many tracees are expected */
	bool look_is_awaited;
	uint64_t quiet_ns;       /* when no tracee had anything to report */
	struct histogram *holds; /* see tracer_count_holds(); may be NULL */
	bool stays_away, allow_attach;
	bool poll_is_due;
	bool held_late;      /* since the last tracer_has_held_late() */
	bool only_passes_on; /* see tracer_pass_on() */
	bool has_let_go;
	bool keeps_urgent;  /* after a look */
	uint64_t passed_ns; /* when a thread was last let go that had stopped by itself; 0: never */
	bool changed;       /* a tracee has ended or execed since the last tracer_poll() */
	uint64_t changes;   /* how many have so far */
};

static struct seized *find_seized(const struct tracer *tracer, pid_t tid)
{
	struct seized *seized;

	HASH_FIND_INT(tracer->seized, &tid, seized);
	return seized;
}

struct tracee *tracer_find(const struct tracer *tracer, pid_t tid)
{
	struct seized *seized = find_seized(tracer, tid);

	return seized ? &seized->tracee : NULL;
}

static void update_urgency(struct tracer *tracer)
{
	if (tracer->expected || tracer->look_is_awaited)
		urgent_begin(&tracer->urgent);
	else if (tracer->keeps_urgent)
		urgent_go_on(&tracer->urgent);
	else
		urgent_end(&tracer->urgent);
}

/* ljspy is urgent from telling a thread to stop until the thread runs on. */
static void expect(struct tracer *tracer, struct tracee *tracee, bool expected)
{
	struct seized *seized = seized_of(tracee);

	if (seized->expected == expected)
		return;
	seized->expected = expected;
	tracer->expected += expected ? 1 : -1;
	update_urgency(tracer);
}

static void note_change(struct tracer *tracer)
{
	tracer->changed = true;
	tracer->changes++;
}

static void mark_gone(struct tracer *tracer, struct tracee *tracee)
{
	tracee->state = TRACEE_GONE;
	tracee->wanted = false;
	expect(tracer, tracee, false);
	note_change(tracer);
}

/* The registers of a stopped thread; NULL with errno, ENOTSUP for a 32-bit program. */
static const struct user_regs_struct *regs_of(struct seized *seized)
{
	struct iovec io = { &seized->regs, sizeof(seized->regs) };

	if (seized->has_regs)
		return &seized->regs;
	/* EIO: the kernel does not know the request. */
	if (ptrace(PTRACE_GETREGSET, seized->tracee.tid, NT_PRSTATUS, &io)) {
		if (errno != EIO || !thread_registers_read_old(seized->tracee.tid, &seized->regs))
			return NULL;
	} else if (io.iov_len != sizeof(seized->regs)) { /* a 32-bit program has fewer */
		errno = ENOTSUP;
		return NULL;
	}
	seized->has_regs = true;
	return &seized->regs;
}

/* Let a stopped thread run on. ESRCH means that it was just killed; the kernel reports its exit later. */
static void continue_tracee(struct tracer *tracer, struct tracee *tracee, int signal)
{
	seized_of(tracee)->has_regs = seized_of(tracee)->is_read = false;
	ptrace(PTRACE_CONT, tracee->tid, NULL, (void *)(intptr_t)signal);
	tracee->resumed_ns = clock_now_ns(CLOCK_MONOTONIC);
	tracee->state = TRACEE_RUNNING;
	expect(tracer, tracee, tracee->wanted || tracee->hold_late);
}

/* The same for a thread that is not held; counts how long it was stopped. */
static void pass_on(struct tracer *tracer, struct tracee *tracee, int signal)
{
	continue_tracee(tracer, tracee, signal);
	tracer->passed_ns = tracee->resumed_ns;
	if (tracer->holds)
		histogram_add(tracer->holds, tracee->resumed_ns - tracee->stopped_ns);
}

/*
 * When did the stop happen that is reported now? ljspy may have done something else
 * meanwhile, waited for a CPU, or been stopped itself. Errs on the early side.
 */
static uint64_t find_stop(const struct tracer *tracer, const struct tracee *tracee)
{
	uint64_t begin = tracer->turn.woken_ns;

	if (tracer->quiet_ns > begin)
		begin = tracer->quiet_ns;
	return tracee->quiet_ns > begin ? tracee->quiet_ns : begin;
}

/* Leave it stopped, as the sender of SIGSTOP wants, but notice SIGCONT (if attached: continue_job()). */
static void leave_job_stopped(struct tracer *tracer, struct tracee *tracee)
{
	struct seized *seized = seized_of(tracee);

	seized->job_stopped = true;
	seized->has_regs = seized->is_read = false;
	if (!seized->attached)
		ptrace(PTRACE_LISTEN, tracee->tid, NULL, NULL);
	tracee->resumed_ns = clock_now_ns(CLOCK_MONOTONIC);
	tracee->state = TRACEE_JOB_STOPPED;
	expect(tracer, tracee, false);
}

/* Tell the thread to stop soon; once is enough. 0, or -1 if it is no tracee any more. */
static int ask_to_stop(struct tracee *tracee)
{
	struct seized *seized = seized_of(tracee);

	if (!seized->attached) {
		seized->asked_ns = clock_now_ns(CLOCK_MONOTONIC);
		return (int)ptrace(PTRACE_INTERRUPT, tracee->tid, NULL, NULL);
	}
	if (seized->asked)
		return 0;
	seized->asked = true;
	return (int)syscall(SYS_tgkill, tracee->pid, tracee->tid, SIGSTOP);
}

static bool find_interrupted_call(struct seized *seized, bool *ret_limited)
{
	const struct user_regs_struct *regs = regs_of(seized);

	return regs && interrupted_call_find(seized->tracee.tid, regs, ret_limited);
}

static void restart_call(struct seized *seized)
{
	seized->has_regs = false;
	interrupted_call_restart(seized->tracee.tid, &seized->regs, &seized->call);
}

/* Keep a stop by ljspy from ending the call that the thread waits in. */
static void restart_after_interrupt(struct tracee *tracee)
{
	struct seized *seized = seized_of(tracee);
	bool limited;

	seized->job_stopped = seized->call.is_set = false;
	if (find_interrupted_call(seized, &limited))
		restart_call(seized);
}

static bool stops_the_job(int signal)
{
	return signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

/*
 * A traced thread is woken even by signals that it ignores; an untraced one is not. If the
 * signal is not ignored, the kernel ends the call in any case. ljspy does not know how
 * long the thread has waited so far: so that ignored signals cannot keep a time limit
 * from ever being reached, a signal that comes soon after another one ends the call.
 */
static void restart_after_signal(struct tracee *tracee, int signal)
{
	struct seized *seized = seized_of(tracee);
	uint64_t now = clock_now_ns(CLOCK_MONOTONIC);
	bool limited;

	if (stops_the_job(signal) || seized->job_stopped) {
		seized->job_stopped = signal != SIGCONT;
		return;
	}
	if (!find_interrupted_call(seized, &limited) ||
	    (limited && now - seized->restarted_ns < RESTART_AGAIN_NS))
		return;
	if (limited)
		seized->restarted_ns = now;
	restart_call(seized);
}

static void handle_trap(struct tracer *tracer, struct tracee *tracee, int signal)
{
	/* SIGTRAP: an interrupt by ljspy, or the end of a job stop; else the signal that began one. */
	bool job_stop = signal != SIGTRAP;

	if (!job_stop && tracee->state != TRACEE_JOB_STOPPED)
		restart_after_interrupt(tracee);
	if (tracer->only_passes_on)
		tracee->hold_late = false;
	if (tracee->wanted || tracee->hold_late) {
		tracer->held_late |= !tracee->wanted;
		tracee->state = TRACEE_HELD;
		tracee->held_in_job_stop = job_stop;
		tracee->wanted = tracee->hold_late = false;
	} else if (job_stop) {
		leave_job_stopped(tracer, tracee);
	} else {
		pass_on(tracer, tracee, 0);
	}
}

/*
 * The thread that called execve() now has the id of its process; all others have ended,
 * some of them without a report.
 */
static void handle_exec(struct tracer *tracer, struct tracee *tracee)
{
	unsigned long former_tid = 0;
	struct tracee *former;

	ptrace(PTRACE_GETEVENTMSG, tracee->tid, NULL, &former_tid);
	former = tracer_find(tracer, (pid_t)former_tid);
	if (former && former != tracee) {
		/* With the id, it keeps how it is traced. */
		seized_of(tracee)->attached = seized_of(former)->attached;
		seized_of(tracee)->has_stopped = seized_of(former)->has_stopped;
		mark_gone(tracer, former);
	}
	if (former != tracee && seized_of(tracee)->attached) {
		/* Which one a SIGSTOP went to while ids changed is not known: now one is on its way, and only one. */
		seized_of(tracee)->asked = false;
		ask_to_stop(tracee);
	}
	tracee->execed = true;
	tracee->took_id |= former != tracee;
	tracee->wanted = tracee->hold_late = false;
	note_change(tracer);
	pass_on(tracer, tracee, 0);
}

/*
 * A signal is about to be delivered. Entering any stop cancels an interrupt that ljspy
 * has asked for and the thread has not yet answered (ptrace_stop() in the kernel). So
 * ask again, before the thread goes on: afterwards it might just have answered the first
 * one, and would stop twice.
 */
static void handle_signal(struct tracer *tracer, struct tracee *tracee, int signal)
{
	if (tracee->wanted || tracee->hold_late)
		ask_to_stop(tracee);
	restart_after_signal(tracee, signal);
	interrupted_call_deliver(tracee->tid, signal, &seized_of(tracee)->call);
	pass_on(tracer, tracee, signal);
}

/* SIGCONT cancels each SIGSTOP of the process that is on its way: send those again. */
static void ask_again(struct tracer *tracer, pid_t pid)
{
	struct seized *seized, *next;

	HASH_ITER(hh, tracer->seized, seized, next) {
		if (!seized->attached || seized->tracee.pid != pid)
			continue;
		seized->asked = false;
		if (seized->tracee.wanted || seized->tracee.state == TRACEE_AWAITED)
			ask_to_stop(&seized->tracee);
	}
}

/* Is there a thread of the process that has not stopped since ljspy attached to it? */
static bool has_unstopped(const struct tracer *tracer, pid_t pid)
{
	struct seized *seized, *next;

	HASH_ITER(hh, tracer->seized, seized, next)
		if (seized->tracee.pid == pid && seized->attached && !seized->has_stopped &&
		    seized->tracee.state != TRACEE_GONE)
			return true;
	return false;
}

/*
 * Is the SIGSTOP that of attaching, which the kernel sends, or one of ask_to_stop()? It comes after execve(), too, when
 * it may not be known any more to whom ljspy had sent it.
 */
static bool is_own_stop(const struct seized *seized, const siginfo_t *info)
{
	if (seized->asked)
		return info->si_code != SI_USER;
	return info->si_code == SI_KERNEL || (info->si_code == SI_TKILL && info->si_pid == getpid());
}

/* A thread that is attached, not seized, has stopped with this signal. */
static void handle_attached(struct tracer *tracer, struct seized *seized, int signal)
{
	/* execve() gives a thread the id of the first one, which may have stopped. */
	const bool may_be_first = !seized->has_stopped ||
				  (signal == SIGTRAP && has_unstopped(tracer, seized->tracee.pid));
	struct tracee *tracee = &seized->tracee;
	siginfo_t info = { .si_code = SI_USER };
	bool job_stop = ptrace(PTRACE_GETSIGINFO, tracee->tid, NULL, &info) && errno == EINVAL;

	if (may_be_first)
		ptrace(PTRACE_SETOPTIONS, tracee->tid, NULL, (void *)PTRACE_O_TRACEEXEC);
	seized->has_stopped = true;
	if (job_stop) {
		handle_trap(tracer, tracee, signal);
	} else if (signal == SIGSTOP && is_own_stop(seized, &info)) {
		seized->asked = false;
		handle_trap(tracer, tracee, SIGTRAP);
	} else if (signal == SIGTRAP && info.si_code == SI_USER && may_be_first) {
		/*
		 * It called execve() before ljspy could set PTRACE_O_TRACEEXEC, which suppresses this SIGTRAP.
		 * The SIGSTOP of attaching is still on its way.
		 */
		seized->asked = true;
		tracee->execed = true;
		note_change(tracer);
		pass_on(tracer, tracee, 0);
	} else {
		handle_signal(tracer, tracee, signal);
		if (signal == SIGCONT)
			ask_again(tracer, tracee->pid);
	}
}

static void handle_status(struct tracer *tracer, struct tracee *tracee, int status)
{
	if (WIFEXITED(status) || WIFSIGNALED(status)) {
		tracee->exit_known = true;
		tracee->exit_status = status;
		mark_gone(tracer, tracee);
		return;
	}
	if (!WIFSTOPPED(status))
		return;
	switch (status >> 16) {
	case PTRACE_EVENT_STOP: handle_trap(tracer, tracee, WSTOPSIG(status)); break;
	case PTRACE_EVENT_EXEC: handle_exec(tracer, tracee); break;
	default:
		if (seized_of(tracee)->attached)
			handle_attached(tracer, seized_of(tracee), WSTOPSIG(status));
		else
			handle_signal(tracer, tracee, WSTOPSIG(status));
		break;
	}
}

static bool is_interrupt(int status)
{
	return WIFSTOPPED(status) && status >> 16 == PTRACE_EVENT_STOP && WSTOPSIG(status) == SIGTRAP;
}

/* Handle one report of the thread; false if it has none. */
static bool wait_once(struct tracer *tracer, struct tracee *tracee)
{
	int status;
	pid_t pid = child_wait(tracee->tid, &status, wait_options);

	if (pid == 0) {
		tracee->quiet_ns = clock_now_ns(CLOCK_MONOTONIC);
		return false;
	}
	tracee->stopped_ns = find_stop(tracer, tracee);
	/* Only ljspy makes a tracee stop so. */
	if (pid > 0 && is_interrupt(status) && seized_of(tracee)->asked_ns > tracee->stopped_ns)
		tracee->stopped_ns = seized_of(tracee)->asked_ns;
	if (pid > 0)
		handle_status(tracer, tracee, status);
	else
		mark_gone(tracer, tracee); /* ECHILD: another thread's execve() took it away */
	return true;
}

static int open_stat(const struct seized *seized)
{
	return proc_file_open_thread(seized->tracee.pid, seized->tracee.tid, "stat");
}

static void free_seized(struct tracer *tracer, struct seized *seized)
{
	expect(tracer, &seized->tracee, false);
	if (hash_added(&seized->hh))
		HASH_DEL(tracer->seized, seized);
	if (seized->stat_fd >= 0)
		close(seized->stat_fd);
	if (seized->reserved)
		tracer_release_files(tracer, 1, seized->stat_fd >= 0);
	free(seized);
}

/* Add a tracee in its initial state. NULL when memory is short. */
static struct seized *add_seized(struct tracer *tracer, pid_t pid, pid_t tid)
{
	struct seized *seized = calloc(1, sizeof(*seized));

	if (!seized)
		return NULL;
	seized->tracee = (struct tracee){
		.pid = pid, .tid = tid, .state = TRACEE_RUNNING, .quiet_ns = clock_now_ns(CLOCK_MONOTONIC)
	};
	HASH_ADD_INT(tracer->seized, tracee.tid, seized);
	if (!hash_added(&seized->hh)) {
		free(seized);
		return NULL;
	}
	seized->reserved = tracer_reserve_files(tracer, 1);
	seized->stat_fd = -1;
	return seized;
}

/*
 * A tracee reports with an unknown id: a thread whose process's first thread is not
 * seized (it had ended) has called execve() and now has its id. In any case the tracee
 * must not stay stopped.
 */
static void handle_stranger(struct tracer *tracer, pid_t tid)
{
	struct seized stranger = { .tracee = { .pid = tid, .tid = tid } };
	struct seized *seized;
	int status;

	if (child_wait(tid, &status, wait_options) <= 0)
		return;
	stranger.tracee.stopped_ns = find_stop(tracer, &stranger.tracee);
	seized = WIFSTOPPED(status) ? add_seized(tracer, tid, tid) : NULL;
	if (seized) {
		seized->is_seized = true;
		seized->tracee.stopped_ns = stranger.tracee.stopped_ns;
	}
	handle_status(tracer, seized ? &seized->tracee : &stranger.tracee, status);
}

static void poll_each(struct tracer *tracer)
{
	struct seized *seized, *next;

	HASH_ITER(hh, tracer->seized, seized, next)
		if (seized->is_seized && seized->tracee.state != TRACEE_GONE)
			wait_once(tracer, &seized->tracee);
}

/* Handle the reports of all tracees. */
static void handle_reports(struct tracer *tracer)
{
	tracer->poll_is_due = false;
	for (int i = 0;; i++) {
		siginfo_t info = { .si_pid = 0 };
		struct tracee *tracee;

		if (i == POLL_EVENTS_MAX) {
			tracer->poll_is_due = true;
			break;
		}
		if (waitid(P_ALL, 0, &info, WEXITED | WSTOPPED | WNOWAIT | wait_options)) {
			/*
			 * Before Linux 4.7, waitid() takes no __WALL; it may also be forbidden. Whatever it
			 * says, the signal for a report may be taken already, and not come again.
			 */
			poll_each(tracer);
			break;
		}
		if (info.si_pid == 0) {
			tracer->quiet_ns = clock_now_ns(CLOCK_MONOTONIC);
			break;
		}
		tracee = tracer_find(tracer, info.si_pid);
		if (tracee && tracee->state != TRACEE_GONE) {
			wait_once(tracer, tracee);
		} else if (info.si_code == CLD_TRAPPED) {
			handle_stranger(tracer, info.si_pid);
		} else {
			/* A child that is no tracee is first in the queue; leave it there. */
			poll_each(tracer);
			break;
		}
	}
}

/* What /proc/PID/task/TID/stat tells about a thread now. */
struct stat_line {
	char state;        /* a letter; 'R': it runs, or waits for a CPU */
	int cpu;           /* the last one that it was on */
	bool on_other_cpu; /* than ljspy; a thread on ljspy's CPU can only stop when ljspy sleeps */
};

/* False if the file cannot be read. */
static bool read_stat(const struct seized *seized, struct stat_line *ret_line)
{
	enum { FIELDS_BEHIND_STATE = 36 }; /* up to "processor", proc_pid_stat(5) */
	int fd = seized->stat_fd >= 0 ? seized->stat_fd : open_stat(seized);
	char text[1024], *at;
	ssize_t length = pread(fd, text, sizeof(text) - 1, 0);

	if (fd >= 0 && fd != seized->stat_fd)
		close(fd);
	if (length <= 0)
		return false;
	text[length] = '\0';
	at = proc_file_stat_fields(text);
	if (!at)
		return false;
	ret_line->state = *at;
	for (int i = 0; at && i < FIELDS_BEHIND_STATE; i++)
		at = strchr(at + 1, ' ');
	ret_line->cpu = at ? (int)strtol(at, NULL, 10) : -1;
	ret_line->on_other_cpu = at && ret_line->cpu != sched_getcpu();
	return true;
}

/*
 * Wait until some tracee may have reported; until spin_end return true at once. False if
 * nothing came before the deadline. SIGCHLD does not reliably tell from which tracee.
 */
static bool await_report(struct tracer *tracer, uint64_t spin_end, uint64_t deadline)
{
	uint64_t now = clock_now_ns(CLOCK_MONOTONIC);
	struct timespec left;
	sigset_t child;

	if (now >= deadline)
		return false;
	if (now < spin_end)
		return true;
	/* The thread itself may wait until others that have ended are reaped (execve() does). */
	if (tracer->poll_is_due) {
		handle_reports(tracer);
		return true;
	}
	left.tv_sec = (time_t)((deadline - now) / 1000000000u);
	left.tv_nsec = (long)((deadline - now) % 1000000000u);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	if (own_turn_wait(&tracer->turn, &child, NULL, &left) == SIGCHLD)
		tracer->poll_is_due = true;
	else if (errno == EAGAIN)
		return false;
	return true;
}

enum fate {
	FATE_ALIVE,  /* it is still this thread's tracee */
	FATE_ZOMBIE, /* a first thread has ended; the kernel reports that after the last one's end */
	FATE_OTHERS, /* not this thread's tracee */
	FATE_GONE,
};

/* What has become of a thread that does not answer? */
static enum fate find_out(pid_t tid)
{
	struct process process;

	if (process_read_status(tid, &process))
		return FATE_GONE;
	if (process_thread_is_zombie(&process))
		return FATE_ZOMBIE;
	return process.tracer_pid == gettid() ? FATE_ALIVE : FATE_OTHERS;
}

/*
 * Why the kernel refuses to seize the thread. Before Linux 3.1, which has no PTRACE_SEIZE, it says ESRCH for a
 * thread that exists: -EIO. It says EPERM for one that has ended but was not reaped: -ESRCH, and for a tracee of
 * ljspy's that has taken the id by execve(): 0.
 */
static int why_not_seized(pid_t tid, int error)
{
	if (error != -ESRCH && error != -EPERM)
		return error;
	switch (find_out(tid)) {
	case FATE_GONE:
	case FATE_ZOMBIE: return -ESRCH;
	case FATE_ALIVE: return error == -ESRCH ? -EIO : 0;
	case FATE_OTHERS: break;
	}
	return error == -ESRCH ? -EIO : -EPERM;
}

/* While the request waits for an execve(), reports are handled. 0 or a negative errno. */
static int ask_kernel(struct tracer *tracer, enum __ptrace_request request, pid_t tid, uintptr_t options)
{
	int error;

	call_watch_begin(&tracer->watch);
	error = ptrace(request, tid, NULL, (void *)options) ? -errno : 0;
	call_watch_end(&tracer->watch);
	return error;
}

static int attach(struct tracer *tracer, struct seized *seized)
{
	int error = ask_kernel(tracer, PTRACE_ATTACH, seized->tracee.tid, 0);

	if (!error)
		seized->attached = seized->asked = true;
	return error;
}

/*
 * The kernel seizes no thread before an execve() in its process has ended. If that was of the very thread, it
 * is seized, but has the id of its process by now, and there is none of its own, not even of one that has
 * ended.
 */
static bool has_execed_meanwhile(struct tracer *tracer, const struct seized *seized)
{
	pid_t pid = seized->tracee.pid, tid = seized->tracee.tid;
	struct seized *first;

	if (tid == pid || syscall(SYS_tgkill, pid, tid, 0) == 0 || errno != ESRCH)
		return false;
	first = find_seized(tracer, pid);
	if (first && first->tracee.state != TRACEE_GONE) {
		first->is_seized = first->tracee.execed = first->tracee.took_id = true;
		first->attached = seized->attached;
		first->asked = seized->asked;
		first->has_stopped = false;
		note_change(tracer);
	}
	return true;
}

/* 0 or a negative errno, see tracer_seize(). */
static int seize(struct tracer *tracer, struct seized *seized)
{
	pid_t tid = seized->tracee.tid;
	int error = ask_kernel(tracer, PTRACE_SEIZE, tid, PTRACE_O_TRACEEXEC);

	if (error)
		error = why_not_seized(tid, error);
	if (error == -EIO && tracer->allow_attach)
		error = attach(tracer, seized);
	if (!error && has_execed_meanwhile(tracer, seized))
		error = -ESRCH;
	seized->is_seized = !error;
	if (!error && seized->reserved)
		seized->stat_fd = open_stat(seized);
	if (seized->stat_fd >= 0)
		tracer_note_opened(tracer);
	seized->tracee.quiet_ns = clock_now_ns(CLOCK_MONOTONIC);
	return error;
}

/*
 * Find out, and mark the tracee if it is none any more: a thread that was not seized may have taken its id by
 * execve().
 */
static enum fate check_fate(struct tracer *tracer, struct tracee *tracee)
{
	enum fate fate = find_out(tracee->tid);

	if (tracee->state != TRACEE_GONE && (fate == FATE_OTHERS || fate == FATE_GONE))
		mark_gone(tracer, tracee);
	return fate;
}

void tracer_poll_one(struct tracer *tracer, struct tracee *tracee)
{
	/* With nothing to report, it may be none, but a child of ljspy's. */
	if (seized_of(tracee)->is_seized && tracee->state != TRACEE_GONE && !wait_once(tracer, tracee))
		check_fate(tracer, tracee);
}

/* The thread did not stop in time: -ESRCH if it is gone, else -ETIMEDOUT. */
static int give_up(struct tracer *tracer, struct tracee *tracee)
{
	enum fate fate = check_fate(tracer, tracee);

	tracee->wanted = false;
	if (tracee->state == TRACEE_GONE || fate != FATE_ALIVE)
		return -ESRCH;
	tracee->state = TRACEE_AWAITED;
	return -ETIMEDOUT;
}

/* on_other_cpu: poll for STOP_SPIN_NS before sleeping. */
static int stop(struct tracer *tracer, struct tracee *tracee, uint64_t timeout_ns, bool on_other_cpu)
{
	uint64_t start = clock_now_ns(CLOCK_MONOTONIC);
	uint64_t spin_end = on_other_cpu ? start + STOP_SPIN_NS : start;
	bool in_time = true;
	int error = seized_of(tracee)->is_seized ? 0 : seize(tracer, seized_of(tracee));

	if (error == -ESRCH)
		mark_gone(tracer, tracee);
	if (error)
		return error;
	tracee->wanted = true;
	expect(tracer, tracee, true);
	/* Ask only once: a second interrupt may cause a second stop. */
	if (tracee->state != TRACEE_AWAITED && ask_to_stop(tracee)) {
		wait_once(tracer, tracee);
		return give_up(tracer, tracee);
	}
	while (tracee->wanted) {
		if (wait_once(tracer, tracee))
			continue;
		/* Ask once more at the end: the thread may have stopped without waking ljspy. */
		if (!in_time)
			return give_up(tracer, tracee);
		/* A thread that has been held late meanwhile must not wait with ljspy. */
		in_time = await_report(tracer, spin_end, start + timeout_ns) && !tracer->held_late;
	}
	switch (tracee->state) {
	case TRACEE_HELD: return 0;
	case TRACEE_GONE: return -ESRCH;
	case TRACEE_RUNNING:
	case TRACEE_AWAITED:
	case TRACEE_JOB_STOPPED: break;
	}
	return -ECANCELED;
}

int tracer_stop(struct tracer *tracer, struct tracee *tracee, uint64_t timeout_ns)
{
	struct seized *seized = seized_of(tracee);
	struct stat_line line;

	if (tracee->state == TRACEE_GONE)
		return -ESRCH;
	if (tracee->state == TRACEE_HELD)
		return 0;
	if (tracee->state == TRACEE_JOB_STOPPED && seized->attached) {
		tracee->state = TRACEE_HELD;
		tracee->held_in_job_stop = true;
		tracee->stopped_ns = clock_now_ns(CLOCK_MONOTONIC);
		return 0;
	}
	return stop(tracer, tracee, timeout_ns, read_stat(seized, &line) && line.on_other_cpu);
}

int tracer_stop_running(struct tracer *tracer, struct tracee *tracee, uint64_t timeout_ns)
{
	struct stat_line line;

	if (tracee->state != TRACEE_RUNNING || !read_stat(seized_of(tracee), &line))
		return -EAGAIN;
	return line.state == 'R' ? stop(tracer, tracee, timeout_ns, line.on_other_cpu) : -EAGAIN;
}

int tracer_stop_seen(struct tracer *tracer, struct tracee *tracee, uint64_t timeout_ns, bool on_other_cpu)
{
	return tracee->state == TRACEE_RUNNING ? stop(tracer, tracee, timeout_ns, on_other_cpu) : -EAGAIN;
}

int tracer_registers(struct tracee *tracee, struct registers *ret_registers)
{
	struct seized *seized = seized_of(tracee);
	const struct user_regs_struct *regs = regs_of(seized);
	struct kernel_registers kernel;

	seized->is_read = tracee->state == TRACEE_HELD;
	if (!regs)
		return -errno;
	_Static_assert(sizeof(kernel) == sizeof(*regs), "the same by another name");
	memcpy(&kernel, regs, sizeof(kernel));
	registers_take(&kernel, ret_registers);
	thread_registers_complete(tracee->tid, ret_registers);
	return 0;
}

void tracer_resume(struct tracer *tracer, struct tracee *tracee)
{
	if (tracee->state != TRACEE_HELD)
		return;
	if (tracee->held_in_job_stop)
		leave_job_stopped(tracer, tracee);
	else
		continue_tracee(tracer, tracee, 0);
}

/* The kernel does not report the end of a job stop of an attached thread: a pending SIGCONT shows it. */
static void continue_job(struct tracer *tracer, struct seized *seized)
{
	struct process process;

	if (!seized->attached || seized->tracee.state != TRACEE_JOB_STOPPED ||
	    process_read_status(seized->tracee.tid, &process))
		return;
	if (process.pending_signals & (UINT64_C(1) << (SIGCONT - 1)))
		continue_tracee(tracer, &seized->tracee, 0);
}

bool tracer_poll(struct tracer *tracer)
{
	struct seized *seized, *next;
	bool changed;

	handle_reports(tracer);
	if (tracer->allow_attach) {
		HASH_ITER(hh, tracer->seized, seized, next) {
			continue_job(tracer, seized);
		}
	}
	changed = tracer->changed;
	tracer->changed = false;
	return changed;
}

/* Resume held threads whose registers the caller has not read: those that stopped late. */
static void resume_late(struct tracer *tracer)
{
	struct seized *seized, *next;

	HASH_ITER(hh, tracer->seized, seized, next) {
		if (!seized->is_read)
			tracer_resume(tracer, &seized->tracee);
	}
}

void tracer_pass_on(struct tracer *tracer)
{
	tracer->only_passes_on = true;
	handle_reports(tracer);
	tracer->only_passes_on = false;
	resume_late(tracer);
}

bool tracer_holds(const struct tracer *tracer)
{
	struct seized *seized, *next;

	HASH_ITER(hh, tracer->seized, seized, next)
		if (seized->is_read && seized->tracee.state == TRACEE_HELD)
			return true;
	return false;
}

void tracer_take_wakeup(struct tracer *tracer)
{
	const struct timespec at_once = { 0 };
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	/* The signal may stand for other reports, too, as may the one for which the stop was noticed. */
	if (sigtimedwait(&child, NULL, &at_once) == SIGCHLD || tracer->poll_is_due)
		handle_reports(tracer);
	tracer->poll_is_due |= tracer->changed || tracer->held_late;
}

bool tracer_awaits_stop(const struct tracer *tracer)
{
	return tracer->expected > 0;
}

bool tracer_has_held_late(struct tracer *tracer)
{
	bool held_late = tracer->held_late;

	tracer->held_late = false;
	return held_late;
}

bool tracer_poll_is_due(const struct tracer *tracer)
{
	return tracer->poll_is_due || tracer->changed;
}

void tracer_note_quiet(struct tracer *tracer, uint64_t time_ns)
{
	if (!tracer->poll_is_due)
		tracer->quiet_ns = time_ns;
}

/* Runs while ptrace() waits for an execve() that waits for ljspy. */
static void reap_meanwhile(void *tracer)
{
	handle_reports(tracer);
}

static int take(struct tracer *tracer, pid_t pid, pid_t tid, bool late, struct tracee **ret_tracee)
{
	struct seized *seized = find_seized(tracer, tid);
	int error;

	/* One of another process that has ended, which nobody has noticed yet. */
	if (seized && seized->tracee.pid != pid)
		return -ESRCH;
	if (!seized) {
		seized = add_seized(tracer, pid, tid);
		error = !seized ? -ENOMEM : late ? 0 : seize(tracer, seized);
		if (error) {
			if (seized)
				free_seized(tracer, seized);
			return error;
		}
	}
	*ret_tracee = &seized->tracee;
	return 0;
}

int tracer_seize(struct tracer *tracer, pid_t pid, pid_t tid, struct tracee **ret_tracee)
{
	return take(tracer, pid, tid, tracer->stays_away, ret_tracee);
}

int tracer_seize_late(struct tracer *tracer, pid_t pid, pid_t tid, struct tracee **ret_tracee)
{
	return take(tracer, pid, tid, tracer->stays_away || !tracer->allow_attach, ret_tracee);
}

bool tracer_has_seized(const struct tracee *tracee)
{
	return ((const struct seized *)tracee)->is_seized;
}

void tracer_note_end(struct tracer *tracer, struct tracee *tracee)
{
	mark_gone(tracer, tracee);
}

void tracer_forget(struct tracer *tracer, struct tracee *tracee)
{
	free_seized(tracer, seized_of(tracee));
}

void tracer_allow_attach(struct tracer *tracer)
{
	tracer->allow_attach = true;
}

void tracer_stay_away(struct tracer *tracer)
{
	tracer->stays_away = true;
}

bool tracer_may_be_first(const struct tracer *tracer)
{
	return tracer->urgent.means == URGENT_BY_POLICY;
}

/* Does ljspy get a CPU before all others, and keep it? */
static bool is_first(const struct tracer *tracer)
{
	return tracer->urgent.begun && tracer->urgent.means == URGENT_BY_POLICY;
}

bool tracer_turn_is_used_up(const struct tracer *tracer)
{
	return !is_first(tracer) && own_turn_is_used_up(&tracer->turn);
}

void tracer_be_urgent(struct tracer *tracer)
{
	urgent_open(&tracer->urgent);
	visit_open(&tracer->visit);
}

void tracer_be_urgent_by_nice(struct tracer *tracer)
{
	if (tracer->urgent.means == URGENT_NOT_ALLOWED)
		urgent_open_by_nice(&tracer->urgent);
}

void tracer_await_look(struct tracer *tracer, int cpu)
{
	tracer->look_is_awaited = true;
	update_urgency(tracer);
	visit_begin(&tracer->visit, is_first(tracer) ? cpu : -1);
}

bool tracer_visits(const struct tracer *tracer)
{
	return tracer->visit.begun;
}

bool tracer_leave(struct tracer *tracer)
{
	return visit_leave(&tracer->visit);
}

static bool gets_signals(const struct tracer *tracer)
{
	return tracer->passed_ns && clock_now_ns(CLOCK_MONOTONIC) - tracer->passed_ns < SIGNALS_RECENT_NS;
}

static void end_look(struct tracer *tracer, bool keeps_urgent)
{
	visit_end(&tracer->visit);
	tracer->keeps_urgent = keeps_urgent && (tracer->look_is_awaited || tracer->keeps_urgent);
	tracer->look_is_awaited = false;
	update_urgency(tracer);
}

/* By its policy only: threads and processes that ljspy starts would take over a nice value. */
static bool may_go_on(struct tracer *tracer)
{
	return tracer_may_be_first(tracer) && own_turn_is_modest(&tracer->turn);
}

void tracer_end_look(struct tracer *tracer)
{
	end_look(tracer, may_go_on(tracer) || gets_signals(tracer));
}

void tracer_take_time(struct tracer *tracer)
{
	end_look(tracer, may_go_on(tracer));
}

int tracer_cpu(const struct tracee *tracee)
{
	struct stat_line line;

	return read_stat((const struct seized *)tracee, &line) ? line.cpu : -1;
}

bool tracer_is_bound(const struct tracee *tracee)
{
	cpu_set_t allowed;

	return sched_getaffinity(tracee->tid, sizeof(allowed), &allowed) == 0 && CPU_COUNT(&allowed) == 1;
}

struct own_turn *tracer_turn(struct tracer *tracer)
{
	return &tracer->turn;
}

void tracer_count_holds(struct tracer *tracer, struct histogram *holds)
{
	tracer->holds = holds;
}

uint64_t tracer_changes(const struct tracer *tracer)
{
	return tracer->changes;
}

bool tracer_stays_away(const struct tracer *tracer)
{
	return tracer->stays_away;
}

void tracer_allow_files(struct tracer *tracer, size_t count)
{
	tracer->files_left = count;
}

bool tracer_reserve_files(struct tracer *tracer, size_t count)
{
	if (tracer->files_left < count)
		return false;
	tracer->files_left -= count;
	tracer->files_to_open += count;
	return true;
}

void tracer_note_opened(struct tracer *tracer)
{
	tracer->files_to_open--;
}

void tracer_release_files(struct tracer *tracer, size_t count, size_t opened)
{
	tracer->files_left += count;
	tracer->files_to_open -= count - opened;
}

/* At least as many files are open as the number of a new one: targets that ended may have left gaps. */
int tracer_leave_files(struct tracer *tracer, size_t count)
{
	int next = open("/", O_PATH | O_CLOEXEC);
	struct rlimit limit;
	size_t taken, room;

	if (next < 0)
		return -errno;
	close(next);
	/* prlimit64() may be refused: then files are opened while that works. */
	if (getrlimit(RLIMIT_NOFILE, &limit))
		return 0;
	taken = (size_t)next + tracer->files_to_open + count;
	if (limit.rlim_cur < taken)
		return -EMFILE;
	room = limit.rlim_cur - taken;
	if (tracer->files_left > room)
		tracer->files_left = room;
	return 0;
}

struct tracer *tracer_new(void)
{
	struct tracer *tracer = calloc(1, sizeof(*tracer));
	int error = tracer ? call_watch_open(&tracer->watch, reap_meanwhile, tracer) : 0;

	if (error) {
		free(tracer);
		errno = -error;
		return NULL;
	}
	if (tracer) {
		tracer->files_left = FILES_OPEN_DEFAULT;
		tracer->quiet_ns = clock_now_ns(CLOCK_MONOTONIC);
		own_turn_open(&tracer->turn);
	}
	return tracer;
}

static bool any_is_asked(const struct tracer *tracer)
{
	struct seized *seized, *next;

	HASH_ITER(hh, tracer->seized, seized, next)
		if (seized->asked && seized->tracee.state != TRACEE_GONE)
			return true;
	return false;
}

/* A SIGSTOP from ljspy that is delivered after ljspy ends would stop the target for good. */
static void await_last_stops(struct tracer *tracer)
{
	const struct timespec moment = { .tv_nsec = 1000 * 1000 };
	struct seized *seized, *next;

	HASH_ITER(hh, tracer->seized, seized, next) {
		seized->tracee.wanted = seized->tracee.hold_late = false;
	}
	for (int i = 0; i < LAST_STOP_MS && any_is_asked(tracer); i++) {
		nanosleep(&moment, NULL);
		handle_reports(tracer);
	}
}

void tracer_let_go(struct tracer *tracer)
{
	struct seized *seized, *next;

	HASH_ITER(hh, tracer->seized, seized, next) {
		tracer_resume(tracer, &seized->tracee);
	}
	await_last_stops(tracer);
	visit_close(&tracer->visit);
	urgent_close(&tracer->urgent); /* it applies to this thread */
	tracer->has_let_go = true;
}

void tracer_free(struct tracer *tracer)
{
	struct seized *seized, *next;

	if (!tracer)
		return;
	if (!tracer->has_let_go)
		tracer_let_go(tracer);
	HASH_ITER(hh, tracer->seized, seized, next) {
		free_seized(tracer, seized);
	}
	call_watch_close(&tracer->watch);
	own_turn_close(&tracer->turn);
	free(tracer);
}

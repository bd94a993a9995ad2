/* SPDX-License-Identifier: MIT */
/* The engine's main thread, the watch, which watches over the worker. */
#include "src/apart/apart_state.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "memory/semaphore_wait.h"
#include "src/apart/blocked.h"
#include "src/apart/guard.h"
#include "src/apart/inherited_files.h"
#include "src/apart/stranded.h"
#include "src/linux/clocks/clock.h"
#include "src/linux/proc/engine_name.h"
#include "src/linux/proc/proc_file.h"
#include "src/linux/proc/process.h"
#include "src/program/wake_signal.h"

enum {
	NAP_NS = ABSENT_NS,
	/* While the worker comes by: it wakes the watch, or its absence does. */
	NAP_IN_COMPANY_NS = 1000 * 1000 * 1000,
	/*
	 * The kernel continues a stopped engine after this, rarely DEAD_MAN_LATER_NS later: a target may
	 * stand still so long.
	 */
	DEAD_MAN_NS = 35 * 1000 * 1000,
	/* The same while ljspy takes no samples, at next to no cost. */
	NAP_AT_REST_NS = 250 * 1000 * 1000,
	DEAD_MAN_AT_REST_NS = 300 * 1000 * 1000,
	NAP_AWAY_NS = 100 * 1000 * 1000,
};

struct engine {
	struct apart *apart;
	pthread_t worker;
	struct blocked blocked;
	struct stranded stranded;
};

/*---- The front ----*/

/* The state letter of the front's beating thread in /proc; 0 if there is no such thread. */
static char beat_state(const struct shared *shared)
{
	int fd = proc_file_open_thread(shared->front_pid, shared->beat_tid, "stat");
	char text[512];
	const char *state;
	ssize_t length;

	if (fd < 0)
		return 0;
	length = proc_file_fill(fd, text, sizeof(text) - 1);
	close(fd);
	text[length > 0 ? length : 0] = '\0';
	state = proc_file_stat_fields(text);
	if (!state)
		return 0;
	return *state;
}

/* A beating thread that merely waits for a CPU is not silent. */
static bool front_is_silent(const struct shared *shared)
{
	return clock_now_ns(CLOCK_MONOTONIC) >= shared->beat_due_ns && beat_state(shared) != 'R';
}

/*---- The worker ----*/

static void *run_worker(void *context)
{
	struct engine *engine = context;

	engine->apart->options->work(engine->apart, engine->apart->options->context);
	engine->apart->worker_ends = true;
	sem_post(&engine->apart->watch);
	return NULL;
}

/*---- The watch ----*/

/* Sleep until the watch is woken, or for ns. */
static void nap(struct engine *engine, long ns)
{
	uint64_t end = clock_now_ns(CLOCK_MONOTONIC) + (uint64_t)ns;
	const struct timespec until = { .tv_sec = (time_t)(end / NS_PER_SECOND),
					.tv_nsec = (long)(end % NS_PER_SECOND) };

	guard_die_with(engine->apart->own_pids[1]);
	semaphore_wait_until(&engine->apart->watch, &until);
}

/* Signal the worker at each call while there is a wish. */
static void pass_wishes(const struct engine *engine)
{
	struct apart *apart = engine->apart;

	apart->must_let_go = front_is_silent(apart->shared);
	if (apart_wish(apart) != APART_GO_ON)
		kill(getpid(), apart_wish(apart) == APART_CONCLUDE ? SIGHUP : SIGCHLD);
}

static bool worker_is_absent(const struct engine *engine)
{
	return absence_lasts(&engine->apart->absence, clock_now_ns(CLOCK_MONOTONIC));
}

static void set_watch(struct engine *engine)
{
	struct apart *apart = engine->apart;

	if (apart->is_away) {
		dead_man_set(&apart->dead_man, 0);
		nap(engine, NAP_AWAY_NS);
	} else if (apart->shared->rests && !engine->stranded.since_ns) {
		dead_man_set(&apart->dead_man, DEAD_MAN_AT_REST_NS);
		nap(engine, NAP_AT_REST_NS);
	} else {
		dead_man_set(&apart->dead_man, DEAD_MAN_NS);
		nap(engine, worker_is_absent(engine) ? NAP_NS : NAP_IN_COMPANY_NS);
	}
}

/* End, for only that frees the tracees. */
static void end_if_blocked(struct engine *engine)
{
	struct shared *shared = engine->apart->shared;
	pid_t pid;

	if (!blocked_for_long(&engine->blocked, shared->rests, clock_now_ns(CLOCK_MONOTONIC), &pid))
		return;
	shared->blocked_pid = pid;
	/*
	 * Beside much else, its execve() is over before the front asks. To ask for its arguments as well
	 * would take the lock that a thread may be waiting for, and the watch would wait, too. In gVisor no
	 * process has code, ljspy neither.
	 */
	shared->blocked_in_exec = pid && process_lacks_code(pid) && !process_lacks_code(getpid());
	shared->is_blocked = true;
	kill(getpid(), SIGKILL);
}

static void free_tracer(struct engine *engine)
{
	struct apart *apart = engine->apart;

	pthread_mutex_lock(&apart->tracer_lock);
	stranded_free(&engine->stranded, apart->tracer_tid,
		      apart->tracer_tid ? clock_now_ns(apart->tracer_clock) : 0,
		      clock_now_ns(CLOCK_MONOTONIC));
	pthread_mutex_unlock(&apart->tracer_lock);
}

static bool run(struct engine *engine)
{
	int error = pthread_create(&engine->worker, NULL, run_worker, engine);

	if (error) {
		engine->apart->shared->start_error = error;
		return false;
	}
	while (!engine->apart->worker_ends) {
		set_watch(engine);
		pass_wishes(engine);
		if (worker_is_absent(engine))
			end_if_blocked(engine);
		free_tracer(engine);
	}
	return pthread_join(engine->worker, NULL) == 0;
}

/*---- The process ----*/

void apart_close_standard_files(struct apart *apart)
{
	const struct apart_options *options = apart->options;
	int null;

	if (apart->standard_files_closed)
		return;
	apart->standard_files_closed = true;
	inherited_files_close(&apart->inherited);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	dup2(null, STDIN_FILENO);
	dup2(options->standard_output ? options->standard_output : null, STDOUT_FILENO);
	dup2(options->standard_error ? options->standard_error : null, STDERR_FILENO);
	close(null);
}

/*
 * Close the front's files: a pipe's reader must not wait for the engine to close it. Those that a command is
 * to inherit stay until it has them.
 */
static void close_inherited(struct apart *apart)
{
	if (apart->options->keeps_standard_files)
		inherited_files_find(&apart->inherited); /* none, if that fails */
	else
		apart_close_standard_files(apart);
	inherited_files_close_others(&apart->inherited);
}

/* The terminal's and the shell's signals to a process group must not stop the engine. */
static void block_job_control(void)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGTSTP);
	sigaddset(&signals, SIGTTIN);
	sigaddset(&signals, SIGTTOU);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
}

void engine_run(struct apart *apart)
{
	struct engine engine = { .apart = apart };

	prctl(PR_SET_NAME, ENGINE_NAME);
	apart->own_pids[0] = apart->shared->front_pid;
	apart->own_pids[1] = getppid();
	block_job_control();
	close_inherited(apart);
	sem_init(&apart->watch, 0, 0);
	pthread_mutex_init(&apart->tracer_lock, NULL);
	dead_man_open(&apart->dead_man);
	absence_open(&apart->absence, &apart->watch);
	if (!run(&engine))
		_exit(1);
	fflush(stdout);
	fflush(stderr);
	apart->shared->is_done = true;
	_exit(0);
}

/*---- For the worker ----*/

enum apart_wish apart_wish(const struct apart *apart)
{
	if (apart->shared->end_wanted)
		return APART_CONCLUDE;
	return apart->must_let_go ? APART_LET_GO : APART_GO_ON;
}

bool apart_stay_away(struct apart *apart)
{
	const struct timespec moment = { .tv_nsec = NAP_NS };
	uint64_t begin = clock_now_ns(CLOCK_MONOTONIC);

	apart_rest(apart, false);
	apart->is_away = true;
	while (apart_wish(apart) == APART_LET_GO)
		nanosleep(&moment, NULL);
	apart->is_away = false;
	sem_post(&apart->watch);
	apart->shared->away_ns += clock_now_ns(CLOCK_MONOTONIC) - begin;
	return apart_wish(apart) == APART_GO_ON;
}

void apart_rest(struct apart *apart, bool rests)
{
	struct shared *shared = apart->shared;

	if (atomic_exchange(&shared->rests, rests) == rests || rests)
		return;
	sem_post(&apart->watch);
	if (shared->beat_tid)
		syscall(SYS_tgkill, shared->front_pid, shared->beat_tid, WAKE_SIGNAL);
}

void apart_come_by(struct apart *apart, uint64_t wait_ns)
{
	const struct shared *shared = apart->shared;
	const uint64_t now = clock_now_ns(CLOCK_MONOTONIC);
	const bool was_brief = apart->waits_briefly;

	/*
	 * Where it waits for longer, the watch would wake up before it does, once more than if it did not
	 * come by. What the front wants, or whether it runs, is the watch's to find out.
	 */
	apart->waits_briefly = wait_ns <= ABSENT_NS;
	if (!was_brief || !apart->waits_briefly || shared->end_wanted || now >= shared->beat_due_ns)
		return;
	if (absence_end(&apart->absence, now))
		dead_man_put_off(&apart->dead_man, DEAD_MAN_NS, now);
}

void apart_note_tracer(struct apart *apart, pid_t tid)
{
	pthread_mutex_lock(&apart->tracer_lock);
	apart->tracer_tid = tid;
	pthread_getcpuclockid(pthread_self(), &apart->tracer_clock);
	pthread_mutex_unlock(&apart->tracer_lock);
}

bool apart_send(struct apart *apart, const void *bytes, size_t size)
{
	return queue_put(&apart->shared->queue, bytes, size);
}

pid_t apart_front_group(const struct apart *apart)
{
	return apart->front_group;
}

const pid_t *apart_own_pids(const struct apart *apart)
{
	return apart->own_pids;
}

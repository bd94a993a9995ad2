/* SPDX-License-Identifier: MIT */
#include "src/linux/threads/threads.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "src/linux/proc/proc_file.h"
#include "src/linux/proc/proc_text.h"
#include "src/linux/tracer/tracer_files.h"

enum {
	/* Look again at least this often. */
	RESCAN_NS = 1000 * 1000 * 1000,
	/* This much CPU time of unknown threads is a reason to search, too; more than schedstat may lag. */
	UNACCOUNTED_NS = 20 * 1000 * 1000,
	/* Scans in a row while no thread is found. */
	SCANS_MAX = 5,
	/* "/TID/schedstat" */
	THREAD_PATH_MAX = 32,
	/* Room for any file of a thread that is read here, */
	THREAD_TEXT_MAX = 1024,
	/* ... except for status and sched. */
	LONG_FILE_MAX = SCHED_MAX,
};

struct threads {
	struct tracer *tracer;
	pid_t pid;
	DIR *directory;      /* /proc/PID/task; NULL if it cannot be opened, */
	int directory_error; /* ... and this is why, a negative errno */
	nlink_t links;       /* of the directory at the last scan: two more than threads */
	bool seizes_late;    /* threads_seize_late() */
	bool scanned;
	bool one_escapes; /* at the last scan: a thread that is there could not be seized */
	uint64_t scan_ns; /* the last scan that was due by time */

	struct thread **threads; /* by tid */
	size_t count;
	uint64_t list_changes; /* how many were added or dropped so far */
	uint64_t seen_changes; /* of the tracer, when no thread here was found to have ended */
	uint64_t name_round;   /* names read in an earlier one are old */

	/* CPU time that thread_measure() has told of, of threads that have ended, too */
	uint64_t accounted_ns;
	uint64_t unaccounted_ns; /* at the last scan */
};

/* Ids of threads as listed in /proc, ascending. */
struct tid_list {
	pid_t *tids;
	size_t count, room;
};

static int compare_tids(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

static int append_tid(struct tid_list *list, pid_t tid)
{
	if (list->count == list->room) {
		size_t room = list->room ? 2 * list->room : 64;
		pid_t *bigger = realloc(list->tids, room * sizeof(*bigger));

		if (!bigger)
			return -ENOMEM;
		list->tids = bigger;
		list->room = room;
	}
	list->tids[list->count++] = tid;
	return 0;
}

static int list_tids(struct threads *threads, struct tid_list *list)
{
	size_t unique = 0;
	pid_t tid = 0;
	int error = 0;

	rewinddir(threads->directory);
	while (!error && list->count < THREADS_MAX &&
	       !(error = proc_file_next_id(threads->directory, &tid)) && tid > 0)
		error = append_tid(list, tid);
	if (error || list->count == 0)
		return error;
	qsort(list->tids, list->count, sizeof(*list->tids), compare_tids);
	for (size_t i = 0; i < list->count; i++) /* a thread may be listed twice */
		if (unique == 0 || list->tids[unique - 1] != list->tids[i])
			list->tids[unique++] = list->tids[i];
	list->count = unique;
	return 0;
}

static int open_thread_file(const struct threads *threads, pid_t tid, const char *name)
{
	char path[THREAD_PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%d/%s", (int)tid, name);
	fd = openat(dirfd(threads->directory), path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	return errno == ENOENT ? -ESRCH : -errno;
}

/* Read the text of a file, NUL-terminated. 0 or a negative errno, -ESRCH if it is empty. */
static int read_file(int fd, char *text, size_t size)
{
	ssize_t length = pread(fd, text, size - 1, 0);

	if (length <= 0)
		return length < 0 ? -errno : -ESRCH;
	text[length] = '\0';
	return 0;
}

static int read_thread_file(const struct threads *threads, pid_t tid, const char *name, char *text,
			    size_t size)
{
	int fd = open_thread_file(threads, tid, name), error;

	if (fd < 0)
		return fd;
	error = read_file(fd, text, size);
	close(fd);
	return error;
}

/* The same for a file that is read often. */
static int read_kept_file(const struct threads *threads, struct thread *thread, enum thread_file file,
			  char *text, size_t size)
{
	static const char *const names[THREAD_FILE_COUNT] = {
		[THREAD_SCHEDSTAT] = "schedstat",
		[THREAD_SYSCALL] = "syscall",
		[THREAD_SCHED] = "sched",
		[THREAD_STAT] = "stat",
	};
	int *fd = &thread->files[file];

	if (!thread->keeps_open)
		return read_thread_file(threads, thread->tid, names[file], text, size);
	if (*fd < 0) {
		int opened = open_thread_file(threads, thread->tid, names[file]);

		if (opened < 0)
			return opened;
		*fd = opened;
		tracer_note_opened(threads->tracer);
	}
	return read_file(*fd, text, size);
}

void thread_read_name(const struct threads *threads, struct thread *thread)
{
	char text[THREAD_TEXT_MAX];
	size_t length;

	thread->name_round = threads->name_round;
	if (read_thread_file(threads, thread->tid, "comm", text, sizeof(text)))
		return;
	length = strlen(text);
	if (length && text[length - 1] == '\n') /* the kernel's; the name may end with another */
		text[length - 1] = '\0';
	snprintf(thread->name, sizeof(thread->name), "%.*s", THREAD_NAME_MAX - 1, text);
}

void thread_refresh_name(const struct threads *threads, struct thread *thread)
{
	if (thread->name_round != threads->name_round)
		thread_read_name(threads, thread);
}

/* The state in the text of /proc/PID/task/TID/stat. 0 or -ESRCH. */
static int parse_state_letter(char *text, char *ret_letter)
{
	const char *fields = proc_file_stat_fields(text);

	if (!fields)
		return -ESRCH;
	*ret_letter = *fields;
	return 0;
}

/* That of whatever thread has the id now. */
static int read_state_letter(const struct threads *threads, pid_t tid, char *ret_letter)
{
	char text[THREAD_TEXT_MAX];
	int error = read_thread_file(threads, tid, "stat", text, sizeof(text));

	return error ? error : parse_state_letter(text, ret_letter);
}

/* If the thread is seized and not gone, its tracee stays with the tracer. */
static void drop_thread(struct threads *threads, struct thread *thread, bool is_gone)
{
	size_t opened = 0;

	for (int i = 0; i < THREAD_FILE_COUNT; i++)
		if (thread->files[i] >= 0) {
			close(thread->files[i]);
			opened++;
		}
	if (thread->keeps_open)
		tracer_release_files(threads->tracer, THREAD_FILE_COUNT, opened);
	threads->list_changes++;
	if (is_gone || !tracer_has_seized(thread->tracee))
		tracer_forget(threads->tracer, thread->tracee);
	free(thread);
}

/* A thread that has ended but was not waited for is still listed. */
static bool has_ended(const struct threads *threads, pid_t tid)
{
	char letter;

	return read_state_letter(threads, tid, &letter) || letter == 'Z' || letter == 'X';
}

/*
 * execve() ends threads without a report. But a listing may miss a thread while others
 * come and go, so a missing entry alone proves nothing.
 */
static bool is_gone(const struct threads *threads, const struct thread *thread, bool listed)
{
	char letter;

	if (thread->tracee->state == TRACEE_GONE)
		return true;
	if (tracer_stays_away(threads->tracer))
		return has_ended(threads, thread->tid);
	return !listed && read_state_letter(threads, thread->tid, &letter) == -ESRCH;
}

/*
 * One thread is seized at once, to learn whether ljspy may; a first thread, to learn of its execve() and its
 * end.
 */
static int seize(struct threads *threads, pid_t tid, struct tracee **ret_tracee)
{
	if (threads->seizes_late && threads->count > 0 && tid != threads->pid)
		return tracer_seize_late(threads->tracer, threads->pid, tid, ret_tracee);
	return tracer_seize(threads->tracer, threads->pid, tid, ret_tracee);
}

static int add_thread(struct threads *threads, pid_t tid, struct thread **ret_thread)
{
	struct thread *thread = calloc(1, sizeof(*thread));
	uint64_t used_ns;
	int error;

	if (!thread)
		return -ENOMEM;
	if (tracer_stays_away(threads->tracer) && has_ended(threads, tid)) {
		free(thread);
		return -ESRCH;
	}
	error = seize(threads, tid, &thread->tracee);
	if (error) {
		free(thread);
		return error;
	}
	thread->tid = tid;
	for (int i = 0; i < THREAD_FILE_COUNT; i++)
		thread->files[i] = -1;
	thread->keeps_open = tracer_reserve_files(threads->tracer, THREAD_FILE_COUNT);
	thread_read_name(threads, thread);
	if (!threads->scanned) /* discard CPU time used before ljspy came */
		thread_measure(threads, thread, &used_ns);
	thread->serial = ++threads->list_changes;
	*ret_thread = thread;
	return 0;
}

/* A thread that has gone without a report may have called execve(), and have the first one's id now. */
static void poll_first(struct threads *threads)
{
	struct thread *first = threads_find(threads, threads->pid);

	if (first)
		tracer_poll_one(threads->tracer, first->tracee);
}

/*
 * Add the threads of the list and drop those that are gone; both lists are ascending.
 * The error, if any, is that of a thread that could not be added.
 */
static int merge(struct threads *threads, const struct tid_list *list)
{
	struct thread **old = threads->threads;
	size_t old_count = threads->count, at = 0, i = 0;
	struct thread **merged = calloc(list->count + old_count + 1, sizeof(struct thread *));
	/* A first thread that had ended, and can be seized now, has called execve() as another one. */
	bool execed = threads->seizes_late && threads->scanned && !threads_find(threads, threads->pid);
	bool ended_unseen = false;
	int error = 0;

	if (!merged)
		return -ENOMEM;
	threads->count = 0;
	threads->one_escapes = false;
	while (at < old_count || i < list->count) {
		struct thread **next = &merged[threads->count];
		bool listed = at < old_count && i < list->count && old[at]->tid == list->tids[i];
		int failure;

		if (at < old_count && (listed || i == list->count || old[at]->tid < list->tids[i])) {
			*next = old[at++];
			if (is_gone(threads, *next, listed)) {
				/*
				 * If it is listed, another thread may have the id now. The
				 * first thread ends without a report only if a thread that
				 * was not seized yet has called execve() and taken its id.
				 */
				execed |= (*next)->tid == threads->pid && !(*next)->tracee->exit_known &&
					  !tracer_stays_away(threads->tracer);
				ended_unseen |= !tracer_has_seized((*next)->tracee);
				drop_thread(threads, *next, true);
			} else {
				i += listed;
				threads->count++;
			}
			continue;
		}
		failure = add_thread(threads, list->tids[i++], next);
		if (!failure) {
			if (execed && (*next)->tid == threads->pid)
				(*next)->tracee->execed = (*next)->tracee->took_id = true;
			threads->count++;
		} else if (failure != -ESRCH) {
			error = failure;
		} else {
			threads->one_escapes |= !has_ended(threads, list->tids[i - 1]);
		}
	}
	free(old);
	threads->threads = merged;
	if (ended_unseen)
		poll_first(threads);
	return error;
}

uint64_t threads_unaccounted_ns(const struct threads *threads, uint64_t process_cpu_ns)
{
	return process_cpu_ns > threads->accounted_ns ? process_cpu_ns - threads->accounted_ns : 0;
}

static bool any_has_ended(struct threads *threads)
{
	const uint64_t changes = tracer_changes(threads->tracer);

	if (changes == threads->seen_changes)
		return false;
	for (size_t i = 0; i < threads->count; i++)
		if (threads->threads[i]->tracee->state == TRACEE_GONE)
			return true;
	threads->seen_changes = changes;
	return false;
}

static int scan_once(struct threads *threads)
{
	struct tid_list list = { .tids = NULL };
	struct stat status;
	int error;

	/* Before the listing: the next call then notices a thread that comes meanwhile. */
	if (fstat(dirfd(threads->directory), &status) == 0)
		threads->links = status.st_nlink;
	error = list_tids(threads, &list);
	if (!error)
		error = merge(threads, &list);
	free(list.tids);
	return error;
}

/*
 * A thread that runs another program takes over the first one's id: it can be seized under neither for as
 * long as that takes it. Where others want its CPU, that is longer than to look again. Only the first scan
 * waits for it: later ones come again soon, and what the kernel reports of other threads must not wait.
 */
static void await_other_id(int round)
{
	const struct timespec pause = { .tv_nsec = (1L << 2 * round) * 1000 * 1000 };

	nanosleep(&pause, NULL);
}

static int scan(struct threads *threads)
{
	int error = 0;

	/* All listed threads may have ended while new ones go on, and a scan may find that one has ended. */
	for (int i = 0; i < SCANS_MAX && !error; i++) {
		error = scan_once(threads);
		if (threads->count && !any_has_ended(threads))
			break;
		if (!threads->count && threads->one_escapes && !threads->scanned && i + 1 < SCANS_MAX)
			await_other_id(i);
	}
	if (!threads->count)
		return error ? error : threads->one_escapes ? -EBUSY : -ESRCH;
	threads->scanned = true;
	return 0;
}

int threads_refresh(struct threads *threads, uint64_t now_ns, uint64_t process_cpu_ns)
{
	bool is_late = now_ns - threads->scan_ns >= RESCAN_NS;
	struct stat status;
	int error;

	if (!threads->directory)
		return threads->directory_error;
	if (threads->count && !is_late && !any_has_ended(threads) &&
	    threads_unaccounted_ns(threads, process_cpu_ns) <= threads->unaccounted_ns + UNACCOUNTED_NS &&
	    fstat(dirfd(threads->directory), &status) == 0 && status.st_nlink == threads->links)
		return 0;
	if (is_late) {
		threads->scan_ns = now_ns;
		threads->name_round++; /* before the names of new threads are read */
	}
	error = scan(threads);
	threads->unaccounted_ns = threads_unaccounted_ns(threads, process_cpu_ns);
	return error;
}

static int read_schedstat(const struct threads *threads, struct thread *thread,
			  struct schedstat *ret_schedstat)
{
	char text[SCHEDSTAT_MAX];
	int error = read_kept_file(threads, thread, THREAD_SCHEDSTAT, text, sizeof(text));

	if (!error)
		*ret_schedstat = schedstat_parse(text);
	return error;
}

int thread_count_runs(const struct threads *threads, struct thread *thread, uint64_t *ret_runs)
{
	struct schedstat schedstat;
	int error = read_schedstat(threads, thread, &schedstat);

	if (!error)
		*ret_runs = schedstat.runs;
	return error;
}

int thread_measure(struct threads *threads, struct thread *thread, uint64_t *ret_used_ns)
{
	struct schedstat schedstat;
	int error = read_schedstat(threads, thread, &schedstat);

	if (error == -ESRCH && thread->tracee && !tracer_has_seized(thread->tracee))
		tracer_note_end(threads->tracer, thread->tracee);
	if (error)
		return error;
	*ret_used_ns = schedstat.cpu_ns > thread->cpu_ns ? schedstat.cpu_ns - thread->cpu_ns : 0;
	threads->accounted_ns += schedstat.cpu_ns - thread->cpu_ns;
	thread->cpu_ns = schedstat.cpu_ns;
	thread->waited_ns = schedstat.waited_ns;
	thread->runs = schedstat.runs;
	return 0;
}

void thread_begin_anew(struct threads *threads, struct thread *thread)
{
	const uint64_t accounted_ns = threads->accounted_ns;
	uint64_t used_ns;

	thread->serial = ++threads->list_changes;
	thread->calls = (struct call_watch){ .seen = { .known = false } };
	thread->runs_left = thread->sleeps = 0;
	thread->own_tid = 0;
	thread_measure(threads, thread, &used_ns);
	threads->accounted_ns = accounted_ns;
}

int thread_count_switches(const struct threads *threads, struct thread *thread, struct switches *ret_switches)
{
	char text[LONG_FILE_MAX];
	int error = read_kept_file(threads, thread, THREAD_SCHED, text, sizeof(text));

	if (error == -ESRCH) /* not every kernel has sched */
		error = read_thread_file(threads, thread->tid, "status", text, sizeof(text));
	if (error)
		return error;
	if (!switches_parse(text, ret_switches))
		return -ESRCH;
	thread->sleeps = ret_switches->sleeps;
	return 0;
}

int thread_count_sleeps(const struct threads *threads, const struct thread *thread, uint64_t *ret_count)
{
	static const char label[] = "\nvoluntary_ctxt_switches:";
	int fd = open_thread_file(threads, thread->tid, "status");
	char text[LONG_FILE_MAX];
	const char *found;
	ssize_t length;

	if (fd < 0)
		return fd;
	length = proc_file_fill(fd, text, sizeof(text) - 1);
	close(fd);
	if (length < 0)
		return -ESRCH;
	text[length] = '\0';
	found = strstr(text, label);
	if (!found)
		return -ESRCH;
	*ret_count = strtoull(found + sizeof(label) - 1, NULL, 10);
	return 0;
}

/*
 * /proc/PID/task/TID/syscall: "running", or "-1 sp pc", or the number of the
 * system call, its six arguments, sp and pc. False if it is none of those.
 */
static bool parse_call(const char *text, bool *ret_running, struct thread_call *ret_call)
{
	struct thread_call call = { .known = true };
	char *at;

	*ret_running = strncmp(text, "running", strlen("running")) == 0;
	if (*ret_running)
		return true;
	call.number = strtoll(text, &at, 10);
	if (at == text)
		return false;
	for (size_t i = 0; call.number >= 0 && i < 6; i++)
		call.arguments[i] = strtoull(at, &at, 16);
	call.sp = strtoull(at, &at, 16);
	call.pc = strtoull(at, &at, 16);
	if (*at != '\n')
		return false;
	*ret_call = call;
	return true;
}

/*
 * Has it stopped for a signal? Then it runs on as soon as the tracer has passed that on. With a tracer that
 * stays away, another process has stopped it.
 */
static bool thread_is_passing(const struct threads *threads, const struct thread *thread)
{
	return !tracer_stays_away(threads->tracer) && thread->tracee &&
	       thread->tracee->state != TRACEE_JOB_STOPPED;
}

static int read_proc_state(const struct threads *threads, struct thread *thread, enum thread_state *ret_state)
{
	char text[THREAD_TEXT_MAX], letter;
	int error = read_kept_file(threads, thread, THREAD_STAT, text, sizeof(text));

	if (!error)
		error = parse_state_letter(text, &letter);
	if (error)
		return error;
	thread->is_job_stopped = letter == 'T' || (letter == 't' && !thread_is_passing(threads, thread));
	switch (letter) {
	case 'R': *ret_state = THREAD_RUNNING; return 0;
	case 'D': *ret_state = THREAD_UNINTERRUPTIBLE; return 0;
	case 't': *ret_state = thread_is_passing(threads, thread) ? THREAD_RUNNING : THREAD_BLOCKED; return 0;
	case 'Z':
	case 'X': return -ESRCH;
	default: *ret_state = THREAD_BLOCKED; return 0;
	}
}

int thread_read_state(struct threads *threads, struct thread *thread, enum thread_state *ret_state,
		      struct thread_call *ret_call)
{
	struct thread_call call = { .known = false };
	char text[THREAD_TEXT_MAX];
	bool running;
	int error = read_kept_file(threads, thread, THREAD_SYSCALL, text, sizeof(text));

	if (error == -ESRCH)
		return error;
	thread->is_job_stopped = false;
	/* The file may be missing or refused. */
	if (!error && parse_call(text, &running, &call) && running) {
		*ret_state = THREAD_RUNNING;
	} else {
		error = read_proc_state(threads, thread, ret_state);
		if (error)
			return error;
	}
	if (ret_call)
		*ret_call = call;
	return 0;
}

bool thread_call_read(pid_t tid, struct thread_call *ret_call)
{
	char text[THREAD_TEXT_MAX];
	bool running;

	return proc_text_read(tid, "syscall", text, sizeof(text)) > 0 &&
	       parse_call(text, &running, ret_call) && !running;
}

bool thread_call_is_same(const struct thread_call *a, const struct thread_call *b)
{
	return a->known == b->known && a->number == b->number && a->sp == b->sp && a->pc == b->pc &&
	       memcmp(a->arguments, b->arguments, sizeof(a->arguments)) == 0;
}

struct registers thread_call_registers(const struct thread_call *call)
{
	return (struct registers){
		.pc = call->pc,
		.sp = call->sp,
		.call_number = (uint64_t)call->number,
		.unknown = REGISTERS_ALL_BUT_PC_AND_SP,
	};
}

bool thread_is_running(struct threads *threads, struct thread *thread)
{
	struct thread_call call;
	char text[THREAD_TEXT_MAX];
	bool running;
	enum thread_state state;

	if (!read_kept_file(threads, thread, THREAD_SYSCALL, text, sizeof(text)) &&
	    parse_call(text, &running, &call))
		return running;
	return !read_proc_state(threads, thread, &state) && state == THREAD_RUNNING;
}

struct threads *threads_new(struct tracer *tracer, pid_t pid)
{
	char path[sizeof("/proc//task") + 3 * sizeof(int)];
	struct threads *threads = calloc(1, sizeof(*threads));

	if (!threads)
		return NULL;
	threads->tracer = tracer;
	threads->pid = pid;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	threads->directory = opendir(path); /* close-on-exec */
	if (!threads->directory)
		threads->directory_error = errno == ENOENT ? -ESRCH : -errno;
	return threads;
}

void threads_seize_late(struct threads *threads)
{
	threads->seizes_late = true;
}

void threads_free(struct threads *threads)
{
	if (!threads)
		return;
	for (size_t i = 0; i < threads->count; i++) {
		struct thread *thread = threads->threads[i];

		drop_thread(threads, thread, thread->tracee->state == TRACEE_GONE);
	}
	free(threads->threads);
	if (threads->directory)
		closedir(threads->directory);
	free(threads);
}

bool threads_are_gone(const struct threads *threads)
{
	for (size_t i = 0; i < threads->count; i++)
		if (tracer_has_seized(threads->threads[i]->tracee) &&
		    threads->threads[i]->tracee->state != TRACEE_GONE)
			return false;
	return true;
}

uint64_t threads_changes(const struct threads *threads)
{
	return threads->list_changes + tracer_changes(threads->tracer);
}

size_t threads_count(const struct threads *threads)
{
	return threads->count;
}

struct thread *threads_at(const struct threads *threads, size_t index)
{
	return threads->threads[index];
}

static int compare_tid(const void *tid, const void *thread)
{
	return compare_tids(tid, &(*(struct thread *const *)thread)->tid);
}

struct thread *threads_find(const struct threads *threads, pid_t tid)
{
	struct thread **found = threads->count ? bsearch(&tid, threads->threads, threads->count,
							 sizeof(struct thread *), compare_tid)
					       : NULL;

	return found ? *found : NULL;
}

/* SPDX-License-Identifier: MIT */
#include "src/linux/proc/process.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "output/sample/text_ends.h"
#include "src/linux/clocks/clock.h"
#include "src/linux/proc/proc_file.h"
#include "src/linux/proc/proc_text.h"

enum {
	PROC_PATH_MAX = 64,
	STAT_MAX = 1 << 14, /* bytes of /proc/PID/stat and status that ljspy reads */
	STATM_MAX = 256,
	PATTERN_MESSAGE_MAX = 256,
	FLAG_KERNEL_THREAD = 0x00200000, /* PF_KTHREAD, include/linux/sched.h */
	MOMENT_NS = 10 * 1000 * 1000,
	/* Who has no targets yet waits so many moments for a process's memory. */
	MOMENTS_MAX = 150,
	/* So many processes of a list are awaited for that long, which is seconds; others for a moment. */
	PATIENCE_MAX = 4,
	HURRY_NS = 50 * 1000 * 1000, /* of the errand, and again for its reader */
};

/* "PID (NAME) STATE PPID ..."; the name may contain anything, even ") ". proc_pid_stat(5). */
static int read_stat(pid_t pid, struct process *process)
{
	char text[STAT_MAX], *name, *name_end;
	unsigned long long start_ticks;
	unsigned int flags;
	int parent;
	ssize_t length = proc_text_read(pid, "stat", text, sizeof(text));

	if (length < 0)
		return (int)length;
	name = strchr(text, '(');
	name_end = strrchr(text, ')');
	if (!name || !name_end || name_end < name)
		return -ESRCH;
	if (sscanf(name_end + 1,
		   " %*c %d %*d %*d %*d %*d %u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d"
		   " %*d %*d %llu",
		   &parent, &flags, &start_ticks) != 3)
		return -EPROTO;
	*name_end = '\0';
	snprintf(process->name, sizeof(process->name), "%s", name + 1);
	process->parent_pid = parent;
	process->kernel_thread = flags & FLAG_KERNEL_THREAD;
	process->start_ticks = start_ticks;
	return 0;
}

/* The text behind "KEY:" at the start of a line, or NULL. The kernel escapes newlines in the name. */
static const char *find_status(const char *text, const char *key)
{
	size_t length = strlen(key);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, length) == 0 && line[length] == ':')
			return line + length + 1;
	}
	return NULL;
}

/*
 * A process id in /proc/PID/status, which the kernel shows also in the middle of an execve(); 0 if there is
 * none.
 */
static pid_t read_status_pid(pid_t pid, const char *key)
{
	char text[STAT_MAX];
	const char *value;

	if (proc_text_read(pid, "status", text, sizeof(text)) < 0)
		return 0;
	value = find_status(text, key);
	return value ? (pid_t)strtol(value, NULL, 10) : 0;
}

static int read_status(pid_t pid, struct process *process)
{
	char text[STAT_MAX];
	const char *value;
	ssize_t length = proc_text_read(pid, "status", text, sizeof(text));

	if (length < 0)
		return (int)length;
	value = find_status(text, "Uid");
	if (!value || sscanf(value, "%u %u %u", &process->uid, &process->euid, &process->suid) != 3)
		return -EPROTO;
	value = find_status(text, "Gid");
	if (!value || sscanf(value, "%u %u %u", &process->gid, &process->egid, &process->sgid) != 3)
		return -EPROTO;
	value = find_status(text, "State");
	if (value)
		sscanf(value, " %c", &process->state);
	value = find_status(text, "TracerPid");
	if (value)
		process->tracer_pid = (pid_t)strtol(value, NULL, 10);
	value = find_status(text, "ShdPnd");
	if (value)
		process->pending_signals = strtoull(value, NULL, 16);
	value = find_status(text, "CapPrm");
	if (value)
		process->capabilities = strtoull(value, NULL, 16);
	process->own_pid = pid;
	value = find_status(text, "NSpid"); /* since Linux 4.1; outermost namespace first */
	if (value) {
		char *end;
		long id;

		while (*value != '\n' && (id = strtol(value, &end, 10)) > 0 && end != value) {
			process->own_pid = (pid_t)id;
			value = end;
		}
	}
	return 0;
}

/* 0 without setting anything if the link cannot be read. */
static int read_executable(pid_t pid, struct process *process)
{
	static const char deleted[] = " (deleted)";
	char path[PROC_PATH_MAX], target[PATH_MAX];
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	length = readlink(path, target, sizeof(target) - 1);
	if (length < 0)
		return 0;
	target[length] = '\0';
	if (length > 0 && text_ends_with(target + 1, deleted)) {
		target[(size_t)length - (sizeof(deleted) - 1)] = '\0';
		process->executable_deleted = true;
	}
	process->executable = strdup(target);
	return process->executable ? 0 : -ENOMEM;
}

/*
 * auxv has pairs of a type, a small number, and a value. In a 32-bit process the first
 * pair fills one 64-bit word. The executable would tell, too, but may be on a disk
 * that does not answer.
 */
static bool is_32bit(pid_t pid)
{
	uint64_t first[2] = { 0 };

	return proc_text_read(pid, "auxv", (char *)first, sizeof(first)) > 0 && first[0] > UINT32_MAX;
}

static int read_command(pid_t pid, struct process *process)
{
	char *command = calloc(1, PROCESS_COMMAND_MAX), *shrunk;
	ssize_t length;

	if (!command)
		return -ENOMEM;
	length = proc_text_read(pid, "cmdline", command, PROCESS_COMMAND_MAX);
	if (length <= 0) { /* empty or refused: go on without */
		free(command);
		return length == -ESRCH ? -ESRCH : 0;
	}
	/* A program that writes its own title may not end it with a NUL. */
	if (command[length - 1] != '\0')
		length++;
	shrunk = realloc(command, (size_t)length);
	process->command = shrunk ? shrunk : command;
	process->command_length = (size_t)length;
	return 0;
}

/* Is the pid still that of the process that was read? A zombie keeps it. */
static bool is_same(const struct process *process)
{
	struct process now = { .pid = process->pid };

	return read_stat(process->pid, &now) == 0 && now.start_ticks == process->start_ticks;
}

int process_read_status(pid_t tid, struct process *ret_process)
{
	struct process process = { .pid = tid };
	int error = read_status(tid, &process);

	if (!error)
		*ret_process = process;
	return error;
}

/* Has it pages, and none of code? sscanf() takes longer than the kernel does to write them. */
static bool lacks_code(const char *statm)
{
	unsigned long pages[4]; /* all, in memory, shared, of code */
	char *end;

	for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++, statm = end) {
		pages[i] = strtoul(statm, &end, 10);
		if (end == statm)
			return false;
	}
	return pages[0] > 0 && pages[3] == 0;
}

bool process_lacks_code(pid_t pid)
{
	char statm[STATM_MAX];

	return proc_text_read(pid, "statm", statm, sizeof(statm)) > 0 && lacks_code(statm);
}

/* gVisor tells of no code at all, not even ljspy's own. */
static bool lacks_arguments(pid_t pid)
{
	char text[STATM_MAX];

	return proc_text_read(pid, "cmdline", text, sizeof(text)) == 0 && !process_lacks_code(getpid());
}

/*
 * The new program's memory has no code, and no arguments, before the kernel has loaded it. Both files tell
 * that without the lock.
 */
bool process_is_in_exec(pid_t pid)
{
	return process_lacks_code(pid) && lacks_arguments(pid);
}

bool process_is_in_exec_by(int statm, pid_t pid)
{
	char text[STATM_MAX];
	ssize_t length;

	if (statm < 0)
		return process_is_in_exec(pid);
	length = pread(statm, text, sizeof(text) - 1, 0);
	text[length > 0 ? length : 0] = '\0';
	return lacks_code(text) && lacks_arguments(pid);
}

static int read_outside(pid_t pid, struct process *process)
{
	int error = process_is_in_exec(pid) ? -EBUSY : read_stat(pid, process);

	return error ? error : read_status(pid, process);
}

/* The end of a reading that has come so far without error, or with it. */
static int settle(int error, struct process *process, struct process *ret_process)
{
	if (!error && !is_same(process)) /* another process has the pid now */
		error = -ESRCH;
	if (error) {
		process_clear(process);
		return error;
	}
	process->is_32bit = is_32bit(process->pid);
	*ret_process = *process;
	return 0;
}

int process_read_outside(pid_t pid, struct process *ret_process)
{
	struct process process = { .pid = pid };

	return settle(read_outside(pid, &process), &process, ret_process);
}

int process_read(pid_t pid, struct process *ret_process)
{
	struct process process = { .pid = pid };
	int error = read_outside(pid, &process);

	if (!error)
		error = read_executable(pid, &process);
	if (!error)
		error = read_command(pid, &process);
	return settle(error, &process, ret_process);
}

void process_clear(struct process *process)
{
	free(process->executable);
	free(process->command);
	process->executable = process->command = NULL;
}

bool process_is_stopped(pid_t pid)
{
	struct process process;

	return process_read_status(pid, &process) == 0 && process.state == 'T';
}

bool process_thread_is_zombie(const struct process *process)
{
	return process->state == 'Z' || process->state == 'X';
}

bool process_is_zombie(const struct process *process)
{
	return process_thread_is_zombie(process) && process_thread_with_memory(process->pid) == 0;
}

pid_t process_parent(pid_t pid)
{
	return read_status_pid(pid, "PPid");
}

pid_t process_of_thread(pid_t tid)
{
	return read_status_pid(tid, "Tgid");
}

pid_t process_if_thread(pid_t id)
{
	const pid_t process = process_of_thread(id);

	return process == id ? 0 : process;
}

/* Whoever ends gives its memory back before it is a zombie. */
static bool has_no_pages(pid_t tid)
{
	char statm[STATM_MAX];

	return proc_text_read(tid, "statm", statm, sizeof(statm)) > 0 && strtoul(statm, NULL, 10) == 0;
}

pid_t process_thread_with_memory(pid_t pid)
{
	char path[PROC_PATH_MAX];
	bool is_unknown = false;
	pid_t found = 0, tid;
	DIR *tasks;
	int error;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	tasks = opendir(path);
	if (!tasks)
		return errno == ENOENT ? 0 : pid;
	while (!found && !(error = proc_file_next_id(tasks, &tid)) && tid > 0) {
		struct process thread;

		error = process_read_status(tid, &thread);
		if (error == 0 && !process_thread_is_zombie(&thread) && !has_no_pages(tid))
			found = tid;
		is_unknown |= error && error != -ESRCH;
	}
	is_unknown |= error && error != -ESRCH;
	closedir(tasks);
	return found || !is_unknown ? found : pid;
}

uint64_t process_start(pid_t pid)
{
	struct process process = { .pid = pid };

	return read_stat(pid, &process) || process_is_zombie(&process) ? 0 : process.start_ticks;
}

char *process_title(const struct process *process)
{
	size_t length = process->command_length;
	char *title;

	if (length == 0)
		return asprintf(&title, "[%s]", process->name) < 0 ? NULL : title;
	title = malloc(length + 1);
	if (!title)
		return NULL;
	memcpy(title, process->command, length);
	/* A program that has set its title leaves what it did not need as NULs or blanks. */
	while (length > 1 && (title[length - 1] == '\0' || title[length - 1] == ' '))
		length--;
	for (size_t i = 0; i < length; i++)
		if (title[i] == '\0')
			title[i] = ' ';
	title[length] = '\0';
	return title;
}

int process_pattern(const char *pattern, regex_t *ret_pattern, char **ret_message)
{
	int error = regcomp(ret_pattern, pattern, REG_EXTENDED | REG_NOSUB);
	char *message;

	if (!error)
		return 0;
	if (!ret_message)
		return -EINVAL;
	message = malloc(PATTERN_MESSAGE_MAX);
	if (!message)
		return -ENOMEM;
	regerror(error, ret_pattern, message, PATTERN_MESSAGE_MAX);
	*ret_message = message;
	return -EINVAL;
}

bool process_matches(const struct process *process, const regex_t *pattern)
{
	const char *at = process->command, *end;

	if (regexec(pattern, process->name, 0, NULL, 0) == 0)
		return true;
	if (process->command_length == 0)
		return false;
	end = at + process->command_length;
	if (regexec(pattern, at, 0, NULL, 0) == 0)
		return true;
	for (at += strlen(at) + 1; at < end; at += strlen(at) + 1)
		if (*at != '-' && *at != '\0')
			return regexec(pattern, at, 0, NULL, 0) == 0;
	return false;
}

/*---- Several, of which some may keep their reader waiting ----*/

/* What a helper reads. The last one to release it frees it. */
struct reading {
	atomic_uint users;
	atomic_bool is_given_up; /* the helper is to end */
	_Atomic pid_t reader;
	atomic_size_t done; /* looks before this one are the caller's, once the helper is abandoned */
	size_t count;
	struct process_look looks[];
};

static void release(void *argument)
{
	struct reading *reading = *(struct reading **)argument;

	if (atomic_fetch_sub(&reading->users, 1) > 1)
		return;
	for (size_t i = 0; i < reading->count; i++)
		if (!reading->looks[i].error)
			process_clear(&reading->looks[i].process);
	free(reading);
}

static void read_all(void *argument)
{
	struct reading *reading = *(struct reading **)argument;

	reading->reader = gettid();
	for (size_t i = 0; i < reading->count && !reading->is_given_up; i++) {
		struct process_look *look = &reading->looks[i];
		const uint64_t begin_ns = clock_now_ns(CLOCK_THREAD_CPUTIME_ID);

		look->error = process_read(look->pid, &look->process);
		look->cpu_ns = clock_now_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns;
		reading->done = i + 1;
	}
}

static struct reading *reading_new(const struct process_look *looks, size_t count)
{
	struct reading *reading = calloc(1, sizeof(*reading) + count * sizeof(reading->looks[0]));

	if (!reading)
		return NULL;
	reading->users = 2;
	reading->count = count;
	for (size_t i = 0; i < count; i++)
		reading->looks[i] = (struct process_look){ .pid = looks[i].pid, .error = -EINTR };
	return reading;
}

bool process_reader_waits(pid_t reader)
{
	struct process thread;

	return reader && process_read_status(reader, &thread) == 0 && thread.state == 'D';
}

/* Until the helper has read all, or has waited for one process for long. */
static void await_reader(const struct reading *reading, int moments_max)
{
	const struct timespec moment = { .tv_nsec = MOMENT_NS };
	size_t done = reading->done;

	for (int moments = 0; moments < moments_max && reading->done < reading->count; moments++) {
		if (reading->done != done || !process_reader_waits(reading->reader))
			moments = 0;
		done = reading->done;
		nanosleep(&moment, NULL);
	}
}

/* Take what has been read, for which the helper has no use. */
static size_t take_read(struct reading *reading, struct process_look *looks)
{
	const size_t done = reading->done;

	for (size_t i = 0; i < done; i++) {
		looks[i] = reading->looks[i];
		reading->looks[i].error = -EINTR;
	}
	return done;
}

static size_t look_at(struct errands **errands, struct process_look *looks, size_t count, int moments_max)
{
	const bool may_wait = *errands && errands_may_wait(*errands);
	struct reading *reading = may_wait ? reading_new(looks, count) : NULL;
	size_t done;

	if (!reading) {
		looks[0].error = *errands && !may_wait ? -EINTR : -ENOMEM;
		return 0;
	}
	/* NOLINTNEXTLINE(bugprone-sizeof-expression): the errand's argument is this pointer */
	if (errands_run(*errands, read_all, release, &reading, sizeof(reading))) {
		release(&reading); /* the helper's share */
	} else {
		if (errands_serve_nobody(*errands))
			await_reader(reading, moments_max);
		*errands = errands_anew(*errands);
	}
	reading->is_given_up = true;
	done = take_read(reading, looks);
	if (done < count) {
		looks[done].error = process_reader_waits(reading->reader) ? -ETIMEDOUT : -EINTR;
		looks[done].reader = reading->reader;
	}
	release(&reading);
	return done;
}

size_t process_look_at(struct errands **errands, struct process_look *looks, size_t count)
{
	return look_at(errands, looks, count, MOMENTS_MAX);
}

static bool always(void *context)
{
	(void)context;
	return true;
}

int process_read_soon(pid_t pid, struct process *ret_process)
{
	const struct errands_waiter waiter = { .may_wait = always, .meanwhile = always };
	struct errands *errands = errands_new();
	struct process_look look = { .pid = pid };

	if (errands)
		errands_wait_as(errands, &waiter);
	if (process_look_at(&errands, &look, 1) && !look.error)
		*ret_process = look.process;
	errands_free(errands);
	return look.error == -ETIMEDOUT || look.error == -EINTR ? process_read_outside(pid, ret_process)
								: look.error;
}

/*---- Found ----*/

static int compare_looks(const void *a, const void *b)
{
	const struct process_look *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

/* Looks to be taken at all processes but ljspy itself, sorted. 0 or a negative errno. */
static int list_all(struct process_look **ret_looks, size_t *ret_count)
{
	DIR *proc = opendir("/proc");
	struct process_look *looks = NULL;
	size_t count = 0;
	int error = 0;
	pid_t pid;

	if (!proc)
		return -errno;
	while (!error && !(error = proc_file_next_id(proc, &pid)) && pid > 0) {
		struct process_look *bigger;

		if (pid == getpid())
			continue;
		bigger = realloc(looks, (count + 1) * sizeof(*looks));
		if (bigger) {
			looks = bigger;
			looks[count++] = (struct process_look){ .pid = pid };
		} else {
			error = -ENOMEM;
		}
	}
	closedir(proc);
	if (error) {
		free(looks);
		return error;
	}
	if (count)
		qsort(looks, count, sizeof(*looks), compare_looks);
	*ret_looks = looks;
	*ret_count = count;
	return 0;
}

/* It may be gone by now, or in an execve(). */
static void note_unread(struct process_list *list, pid_t pid)
{
	if (process_read_outside(pid, &list->unread[list->unread_count]) == 0)
		list->unread_count++;
}

/* Leave out also who ends meanwhile, or is in an execve(). */
static void keep_match(struct process_list *list, struct process_look *look, const regex_t *pattern)
{
	struct process *process = &look->process;

	if (look->error)
		return;
	if (pattern &&
	    (process->kernel_thread || process_is_zombie(process) || !process_matches(process, pattern)))
		process_clear(process);
	else
		list->processes[list->count++] = *process;
}

/* Where many keep their reader waiting, the user shall not wait for seconds at each. */
static size_t look_at_more(struct errands **errands, struct process_look *looks, size_t count,
			   size_t unread_count)
{
	uint64_t left_ns = HURRY_NS;
	size_t done;

	if (unread_count < PATIENCE_MAX || !*errands)
		return process_look_at(errands, looks, count);
	errands_allow(*errands, &left_ns);
	done = look_at(errands, looks, count, HURRY_NS / MOMENT_NS);
	if (*errands)
		errands_allow(*errands, NULL);
	return done;
}

/* There is room for all. 0 or -ENOMEM. */
static int read_list(struct process_look *looks, size_t count, const regex_t *pattern,
		     struct process_list *list)
{
	struct errands *errands = errands_new();
	size_t at = 0;
	int error = 0;

	while (at < count && !error) {
		const size_t end = at + look_at_more(&errands, looks + at, count - at, list->unread_count);

		for (; at < end; at++)
			keep_match(list, &looks[at], pattern);
		if (at == count)
			break;
		if (looks[at].error == -ETIMEDOUT)
			note_unread(list, looks[at++].pid);
		else if (looks[at].error == -ENOMEM)
			error = -ENOMEM;
	}
	errands_free(errands);
	return error;
}

int process_list_read(struct process_look *looks, size_t count, const regex_t *pattern,
		      struct process_list *ret_list)
{
	struct process_list list = {
		.processes = calloc(count + 1, sizeof(*list.processes)),
		.unread = calloc(count + 1, sizeof(*list.unread)),
	};
	const bool has_room = list.processes && list.unread;
	int error = has_room ? read_list(looks, count, pattern, &list) : -ENOMEM;

	if (error)
		process_list_clear(&list);
	else
		*ret_list = list;
	return error;
}

int process_find(const char *pattern, struct process_list *ret_list, char **ret_message)
{
	struct process_look *looks = NULL;
	size_t count = 0;
	regex_t compiled;
	int error = process_pattern(pattern, &compiled, ret_message);

	if (error)
		return error;
	error = list_all(&looks, &count);
	if (!error)
		error = process_list_read(looks, count, &compiled, ret_list);
	free(looks);
	regfree(&compiled);
	return error;
}

void process_list_clear(struct process_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		process_clear(&list->processes[i]);
	free(list->processes);
	free(list->unread);
	*list = (struct process_list){ .processes = NULL };
}

/* SPDX-License-Identifier: MIT */
/*
 * Files of /proc/PID: maps, stat, status, cmdline, syscall, sched, fdinfo and net/tcp.
 *
 * The linker has proc_file_open() and openat() lead here (see GNUmakefile): for
 * the one or the other file the input is read, for all others what is in /proc.
 *
 *	input = file:u8 bytes
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/linux/proc/maps.h"
#include "src/linux/proc/proc_file.h"
#include "src/linux/proc/process.h"
#include "src/linux/sockets/accept_queue.h"
#include "src/linux/sockets/socket_peer.h"
#include "src/linux/calls/call_nature.h"
#include "src/linux/threads/may_stop.h"
#include "src/linux/threads/threads.h"
#include "src/linux/tracer/tracer.h"
#include "tests/fuzz/fuzz.h"

static const char *const files[] = {
	"maps",      "stat", "status", "cmdline",  "statm",   "syscall",
	"schedstat", "comm", "sched",  "fdinfo/1", "net/tcp",
};
enum { FILE_COUNT = sizeof(files) / sizeof(files[0]) };

/* What is read in place of which file; the linker leaves no other way to hand it over. */
static struct {
	const char *name;
	const uint8_t *bytes;
	size_t size;
} forged;

int __real_proc_file_open(pid_t pid, const char *name);
int __wrap_proc_file_open(pid_t pid, const char *name);
int __real_openat(int directory, const char *path, int flags, ...);
int __wrap_openat(int directory, const char *path, int flags, ...);

int __wrap_proc_file_open(pid_t pid, const char *name)
{
	if (strcmp(name, forged.name) == 0)
		return fuzz_file(forged.bytes, forged.size);
	return __real_proc_file_open(pid, name);
}

/* "TID/NAME" in the folder of a process's threads. */
int __wrap_openat(int directory, const char *path, int flags, ...)
{
	const char *slash = strchr(path, '/');

	if (slash && strcmp(slash + 1, forged.name) == 0)
		return fuzz_file(forged.bytes, forged.size);
	return __real_openat(directory, path, flags);
}

static void read_maps(void)
{
	struct maps *maps = maps_new(getpid());
	uint64_t end = 0;
	bool changed;

	fuzz_check(maps != NULL, "there is memory");
	if (maps_refresh(maps, &changed) == 0) {
		for (size_t i = 0; i < maps_count(maps); i++) {
			const struct mapping *mapping = maps_at(maps, i);

			fuzz_check(mapping->begin >= end && mapping->begin < mapping->end, "mappings ascend");
			fuzz_check(maps_find(maps, mapping->begin) == mapping, "a mapping is found");
			end = mapping->end;
		}
		for (size_t i = 0; i < maps_file_count(maps); i++)
			fuzz_check(maps_file_at(maps, i)->path != NULL, "a file has a path");
		maps_find_path(maps, "[vdso]");
	}
	maps_free(maps);
}

static void read_process(void)
{
	struct process process;
	regex_t pattern;
	char *title;

	if (process_read(getpid(), &process) != 0)
		return;
	fuzz_check(memchr(process.name, '\0', sizeof(process.name)) != NULL, "a name has an end");
	title = process_title(&process);
	fuzz_check(title != NULL && process_pattern("nginx|^lua", &pattern, NULL) == 0, "there is memory");
	process_matches(&process, &pattern);
	process_is_zombie(&process);
	regfree(&pattern);
	free(title);
	process_clear(&process);
}

static void read_sockets(void)
{
	struct accept_queues queues;
	struct socket_peer peer;

	fuzz_check(accept_queues_read_tables(getpid(), &queues) == 0, "there is memory");
	fuzz_check(queues.count <= ACCEPT_QUEUES_MAX, "queues have room");
	for (size_t i = 0; i < queues.count; i++) {
		fuzz_check(accept_queues_find(&queues, queues.list[i].inode) != NULL, "a queue is found");
		fuzz_check(memchr(queues.list[i].address, '\0', ACCEPT_ADDRESS_SIZE) != NULL,
			   "an address has an end");
		socket_peer_find(getpid(), queues.list[i].inode, &peer);
		fuzz_check(peer.known, "what listens is a socket");
	}
	accept_queues_clear(&queues);
}

/* A process whose threads are looked at; it sleeps until this one ends. */
static struct threads *sleeper(void)
{
	pid_t parent = getpid(), pid = fork();
	struct tracer *tracer;
	struct threads *threads;

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent) /* it has ended already */
			_exit(0);
		close(STDOUT_FILENO);
		close(STDERR_FILENO);
		for (;;)
			pause();
	}
	forged.name = "";
	tracer = tracer_new();
	fuzz_check(pid > 0 && tracer, "a process can be started");
	threads = threads_new(tracer, pid);
	fuzz_check(threads && threads_refresh(threads, 0, 0) == 0, "its threads are seen");
	return threads;
}

static void read_thread(struct threads *threads)
{
	struct thread *thread = threads_at(threads, 0);
	struct thread_call call;
	enum thread_state state;
	struct switches switches;
	struct own_turn turn;
	uint64_t used;

	thread->keeps_open = false; /* files that are kept open are read once only */
	thread_read_state(threads, thread, &state, &call);
	thread_measure(threads, thread, &used);
	thread_count_switches(threads, thread, &switches);
	thread_read_name(threads, thread);
	thread_is_running(threads, thread);
	own_turn_open(&turn);
	thread_may_stop(threads, thread, &turn);
	own_turn_close(&turn);
	call_was_at_risk(getpid(), SYS_sendfile, (const uint64_t[6]){ STDOUT_FILENO, 0, 0, 2 }, 1);
	fuzz_check(memchr(thread->name, '\0', sizeof(thread->name)) != NULL, "a name has an end");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct threads *threads;
	struct fuzz_input input = fuzz_input(data, size);
	const char *name = files[fuzz_take(&input, 1) % FILE_COUNT];

	if (!threads)
		threads = sleeper();
	forged.name = name;
	forged.bytes = input.at;
	forged.size = fuzz_left(&input);
	if (strcmp(name, "maps") == 0 || strcmp(name, "statm") == 0)
		read_maps();
	if (strcmp(name, "net/tcp") == 0)
		read_sockets();
	read_process();
	read_thread(threads);
	return 0;
}

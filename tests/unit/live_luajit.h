/* SPDX-License-Identifier: MIT */
/*
 * live_luajit: a LuaJIT process to test on, read by process_vm_readv.
 *
 * LJSPY_TEST_LUAJIT names the executable; without it, one unpacked under
 * build/packages, or luajit from PATH.
 */
#ifndef LJSPY_TEST_LIVE_LUAJIT_H
#define LJSPY_TEST_LIVE_LUAJIT_H

#include <elf.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "luajit-layouts/recognise/recognise.h"
#include "tests/unit/target_process.h"

struct live_luajit {
	struct memory memory;
	pid_t pid;
	int input;     /* closing it ends the program */
	uint64_t base; /* of the module that holds the VM */
	struct vm_code vm;
	uint64_t g;
};

static void live_read(struct memory *memory, struct memory_range *ranges, size_t count)
{
	pid_t pid = ((struct live_luajit *)memory)->pid;

	for (size_t i = 0; i < count; i++) {
		struct iovec local = { ranges[i].copy, ranges[i].length };
		struct iovec remote = { (void *)(uintptr_t)ranges[i].address, ranges[i].length };

		ranges[i].status = process_vm_readv(pid, &local, 1, &remote, 1, 0) ==
						   (ssize_t)ranges[i].length
					   ? MEMORY_OK
					   : MEMORY_UNMAPPED;
	}
}

static const char *live_executable(void)
{
	static const char *const places[] = {
		"build/packages/luajit/usr/bin/luajit",
		"build/packages/bookworm/luajit/usr/bin/luajit",
	};
	const char *named = getenv("LJSPY_TEST_LUAJIT");

	if (named != NULL)
		return named;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if (access(places[i], X_OK) == 0)
			return places[i];
	}
	return "luajit";
}

/* Run script until it says a line, and leave it asleep. False if there is no LuaJIT. */
static bool live_start(struct live_luajit *live, const char *script)
{
	int in[2], out[2];
	char line[16];
	bool ready;

	if (pipe(in) != 0 || pipe(out) != 0)
		return false;
	live->memory = (struct memory){ .read_ranges = live_read };
	live->pid = fork();
	if (live->pid == 0) {
		alarm(60);
		dup2(in[0], STDIN_FILENO);
		dup2(out[1], STDOUT_FILENO);
		close(in[1]);
		execlp(live_executable(), "luajit", "-e", script, (char *)NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	live->input = in[1];
	ready = read(out[0], line, sizeof(line)) > 0;
	close(out[0]);
	if (!ready)
		waitpid(live->pid, NULL, 0);
	for (int i = 0; ready && i < 100 && target_process_state(live->pid, live->pid) != 'S'; i++)
		usleep(10000); /* from saying so to sleeping, unless it never does */
	return ready;
}

static void live_stop(struct live_luajit *live)
{
	close(live->input);
	kill(live->pid, SIGKILL);
	waitpid(live->pid, NULL, 0);
}

static FILE *live_maps(const struct live_luajit *live)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)live->pid);
	return fopen(path, "r");
}

/* The first module that holds a VM, and the first state in writable memory. */
static bool live_recognise(struct live_luajit *live)
{
	FILE *maps = live_maps(live);
	uint64_t begin, end, offset;
	char line[512], flags[8];
	size_t states = 0;
	bool found = false;

	while (!found && maps != NULL && fgets(line, sizeof(line), maps) != NULL) {
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64, &begin, &end, flags, &offset) != 4 ||
		    offset != 0 || strstr(line, " /") == NULL)
			continue;
		live->base = begin;
		found = recognise_vm(&live->memory, EM_X86_64, begin, NULL, NULL, &live->vm) == RECOGNISE_OK;
	}
	if (maps != NULL)
		rewind(maps);
	while (found && states == 0 && fgets(line, sizeof(line), maps) != NULL) {
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s", &begin, &end, flags) == 3 &&
		    strncmp(flags, "rw", 2) == 0)
			states = recognise_states(&live->memory, &live->vm, begin, end, &live->g, 1);
	}
	if (maps != NULL)
		fclose(maps);
	return states == 1;
}

#endif

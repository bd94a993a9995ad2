/* SPDX-License-Identifier: MIT */
/*
 * target_process: programs of tests/targets, started as targets of a test.
 */
#ifndef LJSPY_TARGET_PROCESS_H
#define LJSPY_TARGET_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

struct target_process {
	pid_t pid;
	FILE *output; /* what it prints */
	FILE *input;  /* what it reads */
};

/*
 * Start a program and wait for its first line, which it prints when it is set
 * up. It is killed when the test ends, or after a minute. Fails the test if it
 * does not start.
 */
struct target_process target_process_start(const char *program, const char *const arguments[]);

/* The next line it prints, without the newline; fails the test if there is none. */
void target_process_line(struct target_process *target, char *line, size_t room);

/* Give it a line to read. */
void target_process_tell(struct target_process *target, const char *line);

/* Kill it, if it has not ended, and wait for it. */
void target_process_end(struct target_process *target);

/*
 * A process that sleeps and has this name, of this user, root or not, and
 * dumpable or not; and its end. It is killed when the test ends.
 */
pid_t target_process_sleeper(const char *name, uid_t user, bool dumpable);
void target_process_end_sleeper(pid_t pid);

/* The program's path. */
const char *target_process_path(const char *program, char *path, size_t room);

/* The state letter of a thread in /proc; 0 if it is gone. */
char target_process_state(pid_t pid, pid_t tid);

/* Until the thread is in one of those states (or, for "", is gone); fails the test if it takes seconds. */
void target_process_await(pid_t pid, pid_t tid, const char *states);

void sleep_ms(unsigned int ms);
uint64_t monotonic_ns(void);

#endif

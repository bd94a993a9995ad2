/* SPDX-License-Identifier: MIT */
/*
 * target: a LuaJIT process under test, started, held and moved by ptrace.
 *
 * It runs truth.lua and dies with whoever started it.
 */
#ifndef LJSPY_TESTS_EXACTNESS_TARGET_H
#define LJSPY_TESTS_EXACTNESS_TARGET_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "unwind/elf/registers.h"

struct target {
	pid_t pid;
	FILE *output;
	int input;
};

/* Run argv, its output and input being pipes. 0 or a negative errno. */
int target_start(struct target *target, char *const argv[]);

/* Seize and stop it; to be called once, when it waits for input. */
int target_hold(struct target *target);

/* Let it run, and wait for so long; it still runs then. 0 or a negative errno. */
int target_run(struct target *target, long nanoseconds);

/* Each is 0 when the target is stopped again, or a negative errno: -ESRCH when it has ended. */
int target_step(struct target *target);
/* Has the signal come here: it stops at the first instruction of its handler. To be called after a step. */
int target_step_into_handler(struct target *target, int signal);
int target_stop(struct target *target);

/* One line of input. */
void target_write_line(struct target *target);

int target_registers(const struct target *target, struct registers *ret_registers);
void target_end(struct target *target);

#endif

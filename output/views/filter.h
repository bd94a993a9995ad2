/* SPDX-License-Identifier: MIT */
/*
 * filter: some of another source's samples, and their stacks changed.
 */
#ifndef LJSPY_FILTER_H
#define LJSPY_FILTER_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "output/recording/sample_source.h"
#include "output/sample/functions.h"
#include "output/views/profile.h"

/* What a frame at the root of every stack tells. */
enum filter_group {
	GROUP_NONE,
	GROUP_PID,	/* "nginx (pid 12)" */
	GROUP_TID,	/* "worker (tid 13)" */
	GROUP_COMM,	/* the process's name */
	GROUP_STATE,	/* what the VM was doing, or why the thread did nothing */
	GROUP_PHASE,	/* of the request being handled */
	GROUP_MODULE,	/* module or plugin of the Lua code (output/labels/module_path.h) */
	GROUP_COUNT
};

/* Of samples by the wall clock, those that have a kind of time. */
enum filter_time {
	TIME_ALL,
	TIME_ON_CPU,
	/*
	 * What is left of wall_ns without cpu_ns. What the thread waits for is a frame
	 * on top of its stack. Idle threads are left out unless states are asked for.
	 */
	TIME_OFF_CPU,
};

/* To show what was recorded by one clock by another. */
enum filter_time filter_time_by(enum weight_kind shown, enum weight_kind recorded);

/* Samples that meet all conditions pass. Pointers are borrowed. */
struct filter_options {
	uint64_t since_ns;		/* CLOCK_MONOTONIC */
	uint64_t until_ns;		/* ... and earlier than this; 0: no limit */
	const pid_t *pids;
	size_t pid_count;		/* 0: any */
	const pid_t *tids;
	size_t tid_count;		/* 0: any */
	const char *thread;		/* name of the thread; NULL: any */
	uint32_t thread_states;		/* bits by enum thread_state, */
	uint32_t vm_states;		/* ... and enum vm_state: one of either; both 0: any */
	const regex_t *include;		/* some function's label matches; NULL: any */
	const regex_t *exclude;		/* no function's label matches; NULL: any */
	enum filter_time time;
	bool merge_recursion;		/* see below */
	enum filter_group group;
	bool without_line;			/* a Lua function is its name and file, wherever it begins */
};

/*
 * Frames that repeat what lies directly below them are left out, whether one
 * function that calls itself or several in turn, up to FILTER_CYCLE_MAX. The
 * lines that remain are those of the innermost.
 */
enum { FILTER_CYCLE_MAX = 16 };

struct filter;

/* The source is borrowed; functions of groups are interned in the table. NULL when memory is short. */
struct filter *filter_new(struct sample_source *source, struct functions *functions,
			  const struct filter_options *options);
void filter_free(struct filter *filter);

/* Whether every sample passes, with as many frames. */
bool filter_passes_all(const struct filter *filter);

/* next() can also fail with -ENOMEM. */
struct sample_source *filter_samples(struct filter *filter);

#endif

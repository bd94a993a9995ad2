/* SPDX-License-Identifier: MIT */
/*
 * filter: a source that passes on selected samples of another, with changed stacks.
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

/* What the added frame at the root of every stack shows. */
enum filter_group {
	GROUP_NONE,
	GROUP_PID,      /* "nginx (pid 12)" */
	GROUP_TID,      /* "worker (tid 13)" */
	GROUP_COMM,     /* the name of the thread */
	GROUP_STATE,    /* the state of the VM, or of a thread that does not run */
	GROUP_PHASE,    /* of the current request */
	GROUP_GC_PHASE, /* of the collector */
	GROUP_MODULE,   /* module or plugin of the Lua code (output/labels/module_path.h) */
	GROUP_ROUTE,    /* of the current request, with its numbers folded (struct sample_request) */
	GROUP_HOST,     /* of the current request */
	GROUP_STATUS,   /* likewise */
	GROUP_UPSTREAM, /* the peer that a request waits for (src/nginx/request_waits.h) */
	GROUP_COUNT
};

/* Which samples of a wall-clock recording pass, by their kind of time. */
enum filter_time {
	TIME_ALL,
	TIME_ON_CPU,
	/*
	 * Subtract cpu_ns from wall_ns. What the thread waits for becomes a frame on
	 * top of its stack. Leave out idle threads unless thread_states is set.
	 */
	TIME_OFF_CPU,
};

/* The filter that shows a recording of one clock by another. */
enum filter_time filter_time_by(enum weight_kind shown, enum weight_kind recorded);

/* Samples that meet all conditions pass. Pointers are borrowed. */
struct filter_options {
	uint64_t since_ns; /* CLOCK_MONOTONIC */
	uint64_t until_ns; /* ... and earlier than this; 0: no limit */
	const pid_t *pids;
	size_t pid_count; /* 0: any */
	const pid_t *tids;
	size_t tid_count;               /* 0: any */
	const char *thread;             /* name of the thread; NULL: any */
	uint32_t thread_states;         /* bits by enum thread_state, */
	uint32_t vm_states;             /* ... and by enum vm_state: one bit of either matches; both 0: any */
	const regex_t *include;         /* the label of at least one function matches; NULL: any */
	const regex_t *exclude;         /* the label of no function matches; NULL: any */
	const regex_t *include_request; /* matches METHOD HOST/ROUTE of the request; NULL: any */
	uint64_t slower_than_ns;        /* only requests seen at that age or older; 0: any */
	/* ... or only the slowest but this part in a million of those seen; 0: any */
	uint32_t slower_than_ppm;
	bool is_faster;              /* only the other requests, if one of these is set */
	uint64_t connection, number; /* only that request, by nginx's numbers; both 0: any */
	enum filter_time time;
	bool merge_recursion; /* see below */
	enum filter_group group;
	bool without_line; /* identify a Lua function by name and file, without its first line */
	bool without_root; /* ... by its file without the package root (output/labels/module_path.h) */
};

/*
 * merge_recursion leaves out frames that repeat those directly below them: one
 * function that calls itself, or a cycle of up to FILTER_CYCLE_MAX functions.
 * The innermost repetition remains, with its lines.
 */
enum { FILTER_CYCLE_MAX = 16 };

struct filter;

/* source and functions are borrowed; functions of groups are interned there. NULL when memory is short. */
struct filter *filter_new(struct sample_source *source, struct functions *functions,
			  const struct filter_options *options);
void filter_free(struct filter *filter);

/* Does every sample pass, with the same number of frames? */
bool filter_passes_all(const struct filter *filter);

/* The filter as a source, which the filter owns. next() can also fail with -ENOMEM. */
struct sample_source *filter_samples(struct filter *filter);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * sample: the state of one thread at one moment.
 */
#ifndef LJSPY_SAMPLE_H
#define LJSPY_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "output/sample/frame.h"

enum thread_state {
	THREAD_RUNNING,
	THREAD_RUNNABLE, /* wants a CPU */
	THREAD_BLOCKED,  /* asleep outside the event loop's own wait */
	THREAD_IDLE,     /* asleep where it waits for work */
	THREAD_UNINTERRUPTIBLE,
	THREAD_PARKED, /* not a thread, but a coroutine that has yielded */
	THREAD_STATE_COUNT
};

enum vm_state {
	VM_STATE_NONE, /* no Lua on this stack */
	VM_STATE_INTERPRETED,
	VM_STATE_COMPILED,
	VM_STATE_C,
	VM_STATE_GC,
	VM_STATE_RECORDING,
	VM_STATE_OPTIMISING,
	VM_STATE_ASSEMBLING,
	VM_STATE_EXIT,
	VM_STATE_UNKNOWN,
	VM_STATE_COUNT
};

/* What the collector does, in the order of a cycle (GCState in lj_gc.h). */
enum gc_phase {
	GC_PHASE_NONE, /* it does not run */
	GC_PHASE_MARK,
	GC_PHASE_ATOMIC, /* the end of marking, in one go */
	GC_PHASE_SWEEP_STRINGS,
	GC_PHASE_SWEEP,
	GC_PHASE_FINALIZE, /* with the finalizers that it calls */
	GC_PHASE_UNKNOWN,  /* it runs; the recording does not have the phase */
	GC_PHASE_COUNT
};

/* The collector of the VM whose Lua is innermost on a stack; all zero if there is none. */
struct sample_gc {
	enum gc_phase phase;
	bool has_marked;     /* since the previous sample of that VM it has ended at least one marking */
	uint64_t heap_bytes; /* g->gc.total; 0 if unknown */
	uint64_t live_bytes; /* what the last sweep left of it; 0: unknown, as in a sweep and in recordings */
	/*
	 * What the VM has allocated since its previous sample; 0 if unknown. With has_marked it may be more;
	 * and what the collector frees in the moment of a sample may count at the next one.
	 */
	uint64_t allocated_bytes;
	uint64_t used_ns; /* CPU time of the thread since that sample; 0 if unknown */
	uint64_t step_ns; /* of the collector's step that runs: since the first sample in it; 0: this is it */
};

/* The route of a sample that works for a request of nginx, but it is unknown for which. */
#define ROUTE_UNKNOWN "[unknown request]"

/* The request of nginx that a sample works for. If there is none, or it is unknown, all is zero. */
struct sample_request {
	const char *route;  /* its path with "*" for identifiers, or a gateway's "route NAME", or
				       ROUTE_UNKNOWN, with which all else is zero; NULL: none */
	const char *method; /* NULL if unknown */
	const char *host;   /* the same */
	uint32_t status;    /* 0: not set yet */
	bool is_subrequest;
	uint64_t connection; /* $connection, and which of its requests it is, $connection_requests; */
	uint64_t number;     /* ... together they name the client's request; 0 if unknown */
	uint64_t age_ns;     /* since the client's request began */
};

struct trace;

/* Strings are borrowed and may hold any byte but NUL. */
struct sample {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	pid_t pid;
	pid_t tid;
	const char *process_name; /* from /proc/PID/comm; NULL if unknown */
	const char *thread_name;  /* from /proc/PID/task/TID/comm; NULL if unknown */
	const char *phase;        /* of the current request, for example "content"; NULL if none */
	struct sample_request request;
	enum thread_state thread_state;
	enum vm_state vm_state;
	struct sample_gc gc;
	const struct function *wait; /* what a sleeping thread waits for, in the form of a frame on top of
					   its stack: "read /etc/hosts"; NULL if none */
	const struct trace *trace;   /* whose machine code runs, or called the code that runs; borrowed;
					   NULL if none, and in recordings */
	uint64_t trace_g;            /* address of that trace's global_State; 0 if there is none, and in
				   recordings */
	uint64_t code_pc;            /* the instruction that runs: in that trace, or else the innermost Lua
				   function's bytecode; 0 if unknown, and in recordings */
	uint64_t proto;              /* address of the innermost Lua function's prototype; 0 if there is none,
				   and in recordings */
	uint64_t cpu_ns;             /* CPU time this sample stands for */
	uint64_t wall_ns;            /* elapsed time this sample stands for */
	/*
	 * What was allocated that this sample stands for, as estimates; both 0 in samples of time. A sample
	 * of an allocation has no time, and a frame of the kind FRAME_ALLOCATED as its leaf. What grows has
	 * bytes and no object.
	 */
	uint64_t alloc_bytes;
	uint64_t alloc_objects;
	uint64_t loop_ns;   /* when the thread's event loop last returned from its wait, by its own clock;
				   0 if unknown, and in recordings */
	uint64_t sleeps;    /* how often the thread has gone to sleep; 0 if unknown, and in recordings */
	bool awaits_events; /* asleep as an event loop is between its turns; false in recordings */
	const struct frame *frames; /* leaf first; borrowed */
	size_t frame_count;
	uint64_t stack; /* between two rewinds of a source, equal numbers mean equal frames;
				   0 if unknown */
};

#endif

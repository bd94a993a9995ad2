/* SPDX-License-Identifier: MIT */
/*
 * capture: copy what a sample needs of a held thread, so that it can run on at once.
 *
 * The capture copies everything that the target could change or free once it runs
 * again. What it means is found out afterwards, from the copy.
 */
#ifndef LJSPY_CAPTURE_H
#define LJSPY_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "memory/snapshot.h"
#include "unwind/capture/lua_image.h"
#include "unwind/elf/registers.h"
#include "unwind/lua/lua_objects.h"
#include "unwind/lua/lua_thread.h"
#include "unwind/lua/value_capture.h"
#include "unwind/nginx/nginx_request.h"
#include "unwind/nginx/stack_requests.h"

enum {
	CAPTURE_STACK_BYTES = 16 << 10,    /* of native stack, at first */
	CAPTURE_STACK_BYTES_MAX = 1 << 20, /* and at most */
	CAPTURE_DEEP_BYTES_MAX =
		12 << 20,          /* the same of a deep capture: more than the usual limit of 8 MiB */
	CAPTURE_THREADS_MAX = 256, /* coroutines resumed by one another */
	CAPTURE_GLOBALS_MAX = 16,  /* read all in each sample; of more, only those in use */
};

/*
 * What the next sample of the same native thread should know. A right guess
 * saves a system call while the thread is held.
 */
struct capture_hints {
	pid_t tid;          /* of the native thread; 0 if unknown */
	uint64_t sleeps_at; /* the first argument of the system call in which it sleeps; 0 if it does not */
	uint64_t on_own_stack;         /* an address in the mapping of its own native stack; 0 if unknown */
	struct memory_range own_stack; /* that mapping, if it runs on another stack; else empty */
	uint64_t stack_end;            /* nothing is mapped from here on; 0 if unknown */
	uint64_t frames_end;           /* nor is a frame, by the last sample; 0 if unknown */
	size_t stack_bytes;            /* how much to copy; 0 for the default */
	bool reaches_far; /* copy more outside of all Lua, as code there took more than was copied */
	uint8_t passings; /* how often it did since copying more last helped; wraps around */
	bool deep;        /* for a single look: copy the native stack to its end */
	uint64_t g;       /* the global_State that it ran last */
	struct memory_range lua_thread, lua_stack;   /* of the Lua thread that ran; empty if none */
	struct memory_range request[REQUEST_RANGES]; /* the memory read of its request */
	struct snapshot_guesses guesses;             /* other memory read */
	uint64_t sp;                                 /* its stack pointer; 0 before its first sample */
	size_t reads; /* of the last hold in Lua: memory reads that a rehearsal would make */
};

/* The captured global fields of a global_State. */
struct global_view {
	struct global_state *global;
	int32_t vmstate;
	uint64_t cur_L; /* 0 if there is none; LuaJIT 2.0 has it only while a trace runs */
	uint64_t jit_base;
	uint64_t gc_total;
	uint8_t gc_state, gc_currentwhite, hookmask;
};

/* Read the global fields of a global_State; false if it cannot be read. */
bool capture_load_view(struct memory *memory, struct global_state *global, struct global_view *ret_view);

struct capture {
	const struct lua_image *lua; /* of the process */
	struct registers registers;
	struct snapshot *snapshot;
	uint64_t stack_begin, stack_end; /* the copied native stack */
	/* If the thread runs on another stack: what was copied of its own, which led there; else empty. */
	uint64_t own_begin, own_end;
	struct global_view globals[CAPTURE_GLOBALS_MAX];
	size_t global_count;
	struct lua_thread threads[CAPTURE_THREADS_MAX];
	size_t thread_count;
	const struct global_view *running; /* capture_running(): the one that the thread runs; else NULL */
	bool running_was_called;           /* ... and others on the same stack have called it */
	/* C frames that look like those of a state that is not known were looked at, and none led to one. */
	bool no_unknown_state;
	uint32_t request_context;       /* of the innermost thread's request, see request_context() */
	bool has_request_context;       /* request_context is known */
	struct nginx_request request;   /* the request itself; its address is 0 if it is unknown */
	struct stack_requests on_stack; /* if no Lua runs: requests that nginx's own code may work for */
	size_t request_reads;           /* of the snapshot's reads of live memory, those for on_stack */
};

/* What all captures of a process share. */
struct capture_process {
	const struct lua_image *lua;
	struct lua_objects *objects;
	struct snapshot *snapshot;
	struct value_capture *values;  /* copy what values lead to, too; NULL: do not */
	bool only_near_values;         /* of them, only strings and cdata in the innermost slots */
	struct request_places *places; /* where requests of nginx may be; NULL: it is no nginx */
	struct memory *live;           /* of the process; the snapshot reads from it, too */
};

/*
 * Just before a thread is held: look at it as it runs, to bring the hints up to
 * date and what the capture needs into the CPU's caches. The snapshot must be
 * clear and is used up; nothing else changes.
 */
void capture_rehearse(struct capture *capture, const struct capture_process *process,
		      struct capture_hints *hints);

/*
 * Copy what belongs to a thread that is held with these registers. The
 * snapshot must be clear; it is sealed on return.
 */
void capture_thread(struct capture *capture, const struct capture_process *process,
		    const struct registers *registers, struct capture_hints *hints);

/* Where the C frames of a thread's states may be. */
struct native_stack {
	struct memory_range range; /* on its native stack, or elsewhere in this range, as far as is known */
	struct memory_range sure;  /* what is of no other stack; may be empty */
};

/*
 * The same for a thread that runs on meanwhile, whose registers are unknown: capture
 * the global_State whose innermost C frame lies in native_stack. If several do, one has called
 * another, and the lowest frame is that of the one that runs. The capture is whole if
 * the VM's state, its thread, and the thread's base, C frame, stack and status are the
 * same before and after. The snapshot must be clear; it is sealed on return, except
 * with CAPTURE_NO_LUA and CAPTURE_UNSURE.
 */
enum capture_verdict {
	CAPTURE_WHOLE,
	CAPTURE_TORN,   /* the thread ran on too far meanwhile */
	CAPTURE_NO_LUA, /* no global_State has its frames there */
	CAPTURE_UNSURE, /* it cannot be known which global_States have their frames on this stack */
};

enum capture_verdict capture_running(struct capture *capture, const struct capture_process *process,
				     struct memory *live, const struct native_stack *native_stack,
				     struct capture_hints *hints);

/*
 * Copy Lua threads of one global_State as they are, whether native code runs them
 * or not: the first CAPTURE_THREADS_MAX of these addresses, without those that hold
 * no Lua thread. The target must hold still; the snapshot is as for capture_thread().
 */
void capture_coroutines(struct capture *capture, const struct capture_process *process,
			struct global_state *global, const uint64_t *addresses, size_t count);

static inline bool capture_on_own_stack(const struct capture *capture, uint64_t address)
{
	return address - capture->own_begin < capture->own_end - capture->own_begin;
}

/* The end of the copy of the stack that the address is on. */
static inline uint64_t capture_stack_end(const struct capture *capture, uint64_t address)
{
	return capture_on_own_stack(capture, address) ? capture->own_end : capture->stack_end;
}

/* Is the address on a stack, and copied? */
static inline bool capture_has_copied(const struct capture *capture, uint64_t address)
{
	return capture_on_own_stack(capture, address) ||
	       (address >= capture->stack_begin && address < capture->stack_end);
}

/* Does to lie further out than from? The thread's own stack is outermost. */
static inline bool capture_leads_outwards(const struct capture *capture, uint64_t from, uint64_t to)
{
	bool is_on_own = capture_on_own_stack(capture, to);

	return capture_on_own_stack(capture, from) == is_on_own ? to > from : is_on_own;
}

/* The captured Lua thread at the address, or NULL. */
const struct lua_thread *capture_find_thread(const struct capture *capture, uint64_t address);

/* The captured view of the global_State, or NULL. */
const struct global_view *capture_find_global(const struct capture *capture,
					      const struct global_state *global);

/*
 * Note the request and the context of a thread, where lua_State has neither. memory is the snapshot's while
 * the thread is held.
 */
void capture_note_request(struct memory *memory, const struct request_layout *layout,
			  struct lua_thread *thread);

/*
 * Unwinding the capture found that no frame of the native stack lies from this address on; 0 if it
 * did not find out. The next capture of the thread leaves out what is there: it is the program's
 * environment, or another thread's.
 */
void capture_note_frames_end(const struct capture *capture, uint64_t end, struct capture_hints *hints);

/*
 * Unwinding the capture ended beyond the copy of the native stack, or not; the end of its frames has been
 * noted. Let the next captures reach further, unless that has not helped several times: then only now and
 * then. True if the next one does, and this one did not.
 */
bool capture_note_passing(const struct capture *capture, bool passes_copy, struct capture_hints *hints);

/* The copy has changed (snapshot_overlay): load its threads and global_States again. */
void capture_reload(struct capture *capture);

#endif

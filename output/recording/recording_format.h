/* SPDX-License-Identifier: MIT */
/*
 * recording_format: the file format of a recording (.ljspy).
 *
 * A recording is a file of blocks (output/blocks/block_header.h) of the kind
 * "REC"; its version is that of this grammar. The writer only appends, in
 * independent blocks: even if the writer dies, the file is readable up to the
 * last whole block.
 *
 *	recording = header block*
 *	block     = record+
 *
 * A record lies in one block. Its first byte is its type:
 *
 *	record    = 01 string			defines the next string
 *	          | 02 function			defines the next function
 *	          | 03 stack			defines the next stack
 *	          | 04 thread			defines the next thread
 *	          | 05 sample
 *	          | 06 property
 *	          | 07 pauses
 *	          | 08				forget all definitions
 *	          | 09				end: the recording is complete; nothing follows
 *	          | 0a request			of the next sample
 *
 *	string    = length:uint byte{length}	no byte is NUL
 *	function  = kind:uint firstline:uint name:ref file:ref module:ref [ root:uint ]
 *	stack     = caller:ref function:ref line:uint certainty
 *	thread    = pid:uint tid:uint process_name:ref thread_name:ref
 *	sample    = after:uint thread:ref leaf:ref state gc [ heap:sint ]
 *	            [ allocated:uint used:uint step:uint ] phase:ref [ wait:ref ] cpu:uint wall:sint
 *	            [ bytes:uint objects:uint ]
 *	request   = route:ref method:ref host:ref status:uint subrequest:uint
 *	            connection:uint number:uint age:uint
 *	property  = name:text value:text	text = length:uint byte{length}
 *	pauses    = longest:uint count:uint (skipped:uint held:uint){count}
 *
 *	uint      = LEB128, at most 64 bits
 *	sint      = uint, zigzag: 0, -1, 1, -2 are 0, 1, 2, 3
 *	ref       = uint: 0 is none (of stacks: the empty one), 1 is the first
 *	            one defined since the last 08, and so on
 *
 *	            7 6 5 4 3 2 1 0
 *	state     = V V V V V T T T	T: enum thread_state, V: enum vm_state
 *	gc        = - S A H M P P P	P: enum gc_phase, M: has_marked, H: heap,
 *					A: bytes and objects, S: allocated, used and step
 *	certainty = - - - - - J C C	C: enum frame_certainty, J: compiled code
 *
 * A stack is its caller's stack with one frame on top; line is the frame's
 * current line. kind is of enum frame_kind. The name of a function of kind FRAME_LOST is the
 * reason for the loss, by which readers count: a new reason (output/sample/lost.c) means a
 * new version, and no text changes. Samples are in time order: each is "after" nanoseconds later
 * than the one before it; the first counts from 0 of CLOCK_MONOTONIC. cpu and
 * wall are in nanoseconds. wall holds the sample's elapsed time minus the time
 * since the thread's previous sample (minus 0 for the first sample since the
 * thread's definition): usually 0. 08 does not reset the time of samples.
 *
 * What a thread waits for (wait, a function) is there since version 2, in
 * samples of threads that do not run: if T is not THREAD_RUNNING. Functions of
 * kind FRAME_VM_WORK are there since version 3.
 *
 * gc and heap are there since version 4: what the collector does, and its heap in
 * bytes minus that of the thread's previous sample with H (minus 0 for the first
 * one since the thread's definition). In older versions the phase of samples with
 * VM_STATE_GC is unknown.
 *
 * Requests are there since version 5, as a record of their own before their sample;
 * age is in nanoseconds. Between the two, strings and such may be defined.
 *
 * The root of a function is there since version 6: how many bytes of its file are the
 * package root in the target's package.path. A program may set package.path late: readers
 * use each root, and those of the session, for all files below it.
 *
 * Samples of allocations, which have A, are there since version 7, and so are functions of
 * kind FRAME_ALLOCATED: what was allocated is the leaf, bytes and objects are estimates of how
 * much.
 *
 * What the VM has allocated since its previous sample, in bytes, how much CPU time its
 * thread has used since then, and for how long the collector's step has run, in
 * nanoseconds, are there since version 8.
 *
 * Properties describe the session, as texts or decimal numbers. A later one
 * replaces an earlier one of the same name; readers skip unknown names. The
 * names are target, command_line, cause, layout, roots, pid, clock ("cpu", "wall" or "alloc"),
 * start_unix_ns and start_ns as in struct session; home_boot, home_root,
 * home_directory, home_pid, home_start_ticks and home_began_unix_ns as in struct
 * session_home (of older recordings these are unknown); and at the end duration_ns,
 * missed_ticks, dropped, away_ns, undisturbed, skid, self_cpu_ns, target_cpu_ns,
 * alloc_estimated, alloc_least, alloc_all and alloc_large (of older recordings these are unknown), is_part
 * and is_unfinished (0 or 1) and rate_asked_uhz (millionths of a hertz) as in struct figures. labels_PID
 * holds lines "name=value\n" that say which service, pod and container that process is. All other figures
 * follow from the samples. Pauses are the histogram of how long threads were held: the longest pause in
 * nanoseconds, then pairs: the number of empty buckets to skip, and the count in the next bucket. The
 * buckets are those of output/sample/histogram.h.
 *
 * Every version of this grammar stays readable for ever. The numbers of enums
 * are part of it: append new values at the end.
 */
#ifndef LJSPY_RECORDING_FORMAT_H
#define LJSPY_RECORDING_FORMAT_H

#include <assert.h>

#include "output/blocks/block_header.h"
#include "output/sample/frame.h"
#include "output/sample/histogram.h"
#include "output/sample/sample.h"

/* One changed bit makes 8 no older version, so no property repeats it as in heap files; it would of 9. */
enum {
	RECORDING_VERSION = 8,
	RECORDING_VERSION_WAITS = 2,
	RECORDING_VERSION_GC = 4,
	RECORDING_VERSION_ROOTS = 6,
	RECORDING_VERSION_ALLOC = 7,
	RECORDING_VERSION_STEPS = 8,

	/* Limits of the format: a file that exceeds them is no recording. */
	RECORDING_TEXT_MAX = 1 << 16,  /* bytes of a string or text; writers cut longer ones */
	RECORDING_DEPTH_MAX = 1 << 17, /* frames of a stack */

	/* How many of each can be defined before record 08 must forget all. */
	RECORDING_STRINGS_MAX = 1 << 16,
	RECORDING_STRING_BYTES_MAX = 8 << 20, /* in all strings */
	RECORDING_FUNCTIONS_MAX = 1 << 16,
	RECORDING_STACKS_MAX = 1 << 18,
	RECORDING_THREADS_MAX = 1 << 16,

	RECORDING_ROOTS_MAX = 64, /* roots that a reader uses for files of other functions */
};

#define RECORDING_MAGIC BLOCK_MAGIC("REC")
/* Properties whose names begin so are labels of the process whose id follows. */
#define RECORDING_LABELS_PREFIX "labels_"

enum recording_tag {
	RECORD_STRING = 1,
	RECORD_FUNCTION,
	RECORD_STACK,
	RECORD_THREAD,
	RECORD_SAMPLE,
	RECORD_PROPERTY,
	RECORD_PAUSES,
	RECORD_FORGET,
	RECORD_END,
	RECORD_REQUEST,
};

enum {
	STATE_THREAD_BITS = 3,
	STATE_THREAD_MASK = (1 << STATE_THREAD_BITS) - 1,
	GC_PHASE_MASK = 7,
	GC_HAS_MARKED = 8,
	GC_HAS_HEAP = 16,
	GC_HAS_ALLOCATION = 32,
	GC_HAS_STEP = 64,
	CERTAINTY_MASK = 3,
	CERTAINTY_COMPILED = 4,
};

static_assert(THREAD_RUNNING == 0 && THREAD_RUNNABLE == 1 && THREAD_BLOCKED == 2 && THREAD_IDLE == 3 &&
		      THREAD_UNINTERRUPTIBLE == 4 && THREAD_PARKED == 5,
	      "thread states are in recordings");
static_assert(THREAD_STATE_COUNT <= STATE_THREAD_MASK + 1, "a thread state has three bits");
static_assert(VM_STATE_NONE == 0 && VM_STATE_INTERPRETED == 1 && VM_STATE_COMPILED == 2 && VM_STATE_C == 3 &&
		      VM_STATE_GC == 4 && VM_STATE_RECORDING == 5 && VM_STATE_OPTIMISING == 6 &&
		      VM_STATE_ASSEMBLING == 7 && VM_STATE_EXIT == 8 && VM_STATE_UNKNOWN == 9,
	      "VM states are in recordings");
static_assert(VM_STATE_COUNT <= 32, "a VM state has five bits");
static_assert(GC_PHASE_NONE == 0 && GC_PHASE_MARK == 1 && GC_PHASE_ATOMIC == 2 &&
		      GC_PHASE_SWEEP_STRINGS == 3 && GC_PHASE_SWEEP == 4 && GC_PHASE_FINALIZE == 5 &&
		      GC_PHASE_UNKNOWN == 6,
	      "phases of collectors are in recordings");
static_assert(GC_PHASE_COUNT <= GC_PHASE_MASK + 1, "a phase of the collector has three bits");
static_assert(FRAME_LUA == 0 && FRAME_BUILTIN == 1 && FRAME_C_FUNCTION == 2 && FRAME_NATIVE == 3 &&
		      FRAME_VM == 4 && FRAME_TRACE == 5 && FRAME_LOST == 6 && FRAME_VM_WORK == 7 &&
		      FRAME_ALLOCATED == 8,
	      "kinds of frames are in recordings");
static_assert(CERTAINTY_EXACT == 0 && CERTAINTY_NEAREST == 1 && CERTAINTY_FUNCTION == 2 &&
		      CERTAINTY_COUNT <= CERTAINTY_MASK + 1,
	      "certainties are in recordings");
static_assert(HISTOGRAM_STEP_BITS == 5, "buckets of histograms are in recordings");

#endif

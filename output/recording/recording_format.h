/* SPDX-License-Identifier: MIT */
/*
 * recording_format: what a recording (.ljspy) is made of.
 *
 * A recording is a Zstandard file, so `zstd -t` checks it and `zstd -d` shows
 * its records. It is only ever appended to, in blocks that stand alone: what
 * is in the file up to the last whole block can be read, whatever became of
 * its writer.
 *
 *	recording = header block*
 *	header    = 5c 2a 4d 18  0c 00 00 00	a skippable frame of 12 bytes
 *	            "LJSPYREC" version:u32	of this grammar; little-endian
 *	block     = zstd frame			with content size and checksum;
 *						its content is record+
 *
 * A record lies in one block. Its first byte tells what it is:
 *
 *	record    = 01 string			defines the next string
 *	          | 02 function			defines the next function
 *	          | 03 stack			defines the next stack
 *	          | 04 thread			defines the next thread
 *	          | 05 sample
 *	          | 06 property
 *	          | 07 pauses
 *	          | 08				forget all definitions
 *	          | 09				end: nothing is missing
 *
 *	string    = length:uint byte{length}	no byte is NUL
 *	function  = kind:uint firstline:uint name:ref file:ref module:ref
 *	stack     = caller:ref function:ref line:uint certainty
 *	thread    = pid:uint tid:uint process_name:ref thread_name:ref
 *	sample    = after:uint thread:ref leaf:ref state phase:ref
 *	            [ wait:ref ] cpu:uint wall:sint
 *	property  = name:text value:text	text = length:uint byte{length}
 *	pauses    = longest:uint count:uint (skipped:uint held:uint){count}
 *
 *	uint      = LEB128, at most 64 bits
 *	sint      = uint, zigzag: 0, -1, 1, -2 are 0, 1, 2, 3
 *	ref       = uint: 0 is none (of stacks: the empty one), 1 is the first
 *	            one that was defined since the last 08, and so on
 *
 *	            7 6 5 4 3 2 1 0
 *	state     = V V V V V T T T	T: enum thread_state, V: enum vm_state
 *	certainty = - - - - - J C C	C: enum frame_certainty, J: compiled code
 *
 * A stack is its caller's and one frame on top; line is the one being
 * executed. Samples are in time order: each is "after" nanoseconds later than
 * the one before, the first than 0 of CLOCK_MONOTONIC. Its cpu and wall time
 * are in nanoseconds. What wall holds is the difference to the time since the
 * thread's sample before (since its definition, 0): 0 as a rule. Neither time
 * starts anew with 08.
 *
 * What a thread waits for (wait, a function) is told since version 2, and of
 * threads that do not run: if T is not THREAD_RUNNING.
 *
 * Properties are what is known of the session, texts or decimal numbers; a
 * later one replaces an earlier one of that name, and unknown names are to be
 * passed over. They are target, command_line, layout, pid, clock ("cpu" or
 * "wall"), start_unix_ns and start_ns as in struct session, and at the end
 * duration_ns, missed_ticks, dropped, away_ns, undisturbed, self_cpu_ns,
 * target_cpu_ns and rate_asked_uhz
 * (millionths of a Hertz) as in struct figures. All other figures follow from
 * the samples. Pauses are the histogram of how long threads were held: the
 * longest, then pairs of how many empty buckets to skip and what is in the
 * next one, with the buckets of output/sample/histogram.h.
 *
 * Every version of this grammar is readable for ever. The numbers of enums
 * are part of it: new values go at their ends.
 */
#ifndef LJSPY_RECORDING_FORMAT_H
#define LJSPY_RECORDING_FORMAT_H

#include <assert.h>

#include "output/sample/frame.h"
#include "output/sample/histogram.h"
#include "output/sample/sample.h"

enum {
	RECORDING_VERSION = 2,
	RECORDING_VERSION_WAITS = 2,
	RECORDING_HEADER_SIZE = 20,
	RECORDING_VERSION_OFFSET = 16,

	/* Limits of the format: what goes beyond is no recording. */
	RECORDING_BLOCK_MAX = 1 << 20,		/* bytes of records */
	RECORDING_TEXT_MAX = 1 << 16,		/* bytes of a string or text; writers cut */
	RECORDING_DEPTH_MAX = 1 << 17,		/* frames of a stack */

	/* So many of each can be defined before all must be forgotten. */
	RECORDING_STRINGS_MAX = 1 << 16,
	RECORDING_STRING_BYTES_MAX = 8 << 20,	/* in all strings */
	RECORDING_FUNCTIONS_MAX = 1 << 16,
	RECORDING_STACKS_MAX = 1 << 18,
	RECORDING_THREADS_MAX = 1 << 16,
};

/* A skippable frame of Zstandard, and what is in it. */
#define RECORDING_MAGIC "\x5c\x2a\x4d\x18\x0c\0\0\0LJSPYREC"

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
};

enum {
	STATE_THREAD_BITS = 3,
	STATE_THREAD_MASK = (1 << STATE_THREAD_BITS) - 1,
	CERTAINTY_MASK = 3,
	CERTAINTY_COMPILED = 4,
};

static_assert(THREAD_RUNNING == 0 && THREAD_RUNNABLE == 1 && THREAD_BLOCKED == 2 &&
	      THREAD_IDLE == 3 && THREAD_UNINTERRUPTIBLE == 4 && THREAD_PARKED == 5, "thread states are in recordings");
static_assert(THREAD_STATE_COUNT <= STATE_THREAD_MASK + 1, "a thread state has three bits");
static_assert(VM_STATE_NONE == 0 && VM_STATE_INTERPRETED == 1 && VM_STATE_COMPILED == 2 &&
	      VM_STATE_C == 3 && VM_STATE_GC == 4 && VM_STATE_RECORDING == 5 &&
	      VM_STATE_OPTIMISING == 6 && VM_STATE_ASSEMBLING == 7 && VM_STATE_EXIT == 8 &&
	      VM_STATE_UNKNOWN == 9, "VM states are in recordings");
static_assert(VM_STATE_COUNT <= 32, "a VM state has five bits");
static_assert(FRAME_LUA == 0 && FRAME_BUILTIN == 1 && FRAME_C_FUNCTION == 2 && FRAME_NATIVE == 3 &&
	      FRAME_VM == 4 && FRAME_TRACE == 5 && FRAME_LOST == 6, "kinds of frames are in recordings");
static_assert(CERTAINTY_EXACT == 0 && CERTAINTY_NEAREST == 1 && CERTAINTY_FUNCTION == 2 &&
	      CERTAINTY_COUNT <= CERTAINTY_MASK + 1, "certainties are in recordings");
static_assert(HISTOGRAM_STEP_BITS == 5, "buckets of histograms are in recordings");

#endif

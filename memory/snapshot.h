/* SPDX-License-Identifier: MIT */
/*
 * snapshot: a copy of the pieces of a target's memory that one sample needs.
 *
 * While the target is held, reads that the snapshot does not hold yet go
 * through to the live memory and are kept. Once it is sealed the target runs
 * on, and what was not captured reads as MEMORY_NOT_CAPTURED. A snapshot is
 * meant to be reused: clearing it keeps its buffers.
 */
#ifndef LJSPY_SNAPSHOT_H
#define LJSPY_SNAPSHOT_H

#include "memory/memory.h"

struct snapshot;

/* NULL when memory is short. live must outlive the snapshot. */
struct snapshot *snapshot_new(struct memory *live);
void snapshot_free(struct snapshot *snapshot);

/* Forget everything; reads go through to the live memory again. */
void snapshot_clear(struct snapshot *snapshot);

/*
 * Copy the ranges in as few system calls as possible; only address and
 * length of each are used. A range that cannot be read whole is left out
 * and its status says why. At most SNAPSHOT_BYTES_MAX are kept in all.
 * Where a copy lies holds until more is captured.
 */
void snapshot_capture(struct snapshot *snapshot, struct memory_range *ranges, size_t count);

enum {
	SNAPSHOT_GUESSES_MAX = 64,
	SNAPSHOT_GUESS_BYTES_MAX = 64 << 10,	/* longer pieces are not guessed */
};

/* What most likely will be asked for. */
struct snapshot_guesses {
	size_t count;
	struct snapshot_guess {
		uint64_t address;
		uint32_t length;
		uint32_t vain;	/* how often it was not asked for in turn */
	} pieces[SNAPSHOT_GUESSES_MAX];
};

/* The same, and in the same go what is guessed to be asked for next. */
void snapshot_capture_first(struct snapshot *snapshot, struct memory_range *ranges, size_t count,
			    const struct snapshot_guesses *guesses);

/*
 * Guesses for the next snapshot of its kind: what was asked for after what was
 * captured first, but for what lies in [skip_begin, skip_end). What was guessed
 * in vain is guessed a few times more; is_trial: this time does not count.
 */
void snapshot_note_guesses(struct snapshot *snapshot, uint64_t skip_begin, uint64_t skip_end,
			   bool is_trial, struct snapshot_guesses *ret_guesses);

/* How often the live memory was read since the snapshot was cleared. */
size_t snapshot_read_count(const struct snapshot *snapshot);

/* From here on nothing is read from the target. */
void snapshot_seal(struct snapshot *snapshot);

/* Change the copy: from here on it holds these bytes there. Nothing is written to the target. */
void snapshot_overlay(struct snapshot *snapshot, uint64_t address, const void *bytes, size_t length);

/* The captured bytes at [address, address + length) in place, or NULL. Valid until the snapshot changes. */
const void *snapshot_view(struct snapshot *snapshot, uint64_t address, size_t length);

/* The snapshot seen as memory; owned by it. */
struct memory *snapshot_memory(struct snapshot *snapshot);

enum { SNAPSHOT_BYTES_MAX = 16 << 20 };

#endif

/* SPDX-License-Identifier: MIT */
/*
 * snapshot: a copy of the pieces of a target's memory that one sample needs.
 *
 * While the target is held, a read of bytes that the snapshot lacks goes to the
 * live memory, and the snapshot keeps them. Once it is sealed, the target runs
 * on, and such a read fails with MEMORY_NOT_CAPTURED. Reuse snapshots: clearing
 * one keeps its buffers.
 */
#ifndef LJSPY_SNAPSHOT_H
#define LJSPY_SNAPSHOT_H

#include "memory/memory.h"

struct snapshot;

/* NULL when memory is short. live must outlive the snapshot. */
struct snapshot *snapshot_new(struct memory *live);
void snapshot_free(struct snapshot *snapshot);

/* Forget everything; reads go to the live memory again. */
void snapshot_clear(struct snapshot *snapshot);

/*
 * Copy the ranges in as few system calls as possible. Takes address and length
 * of each; sets status and, with MEMORY_OK, copy, which points into the
 * snapshot and is valid until it captures more. Leaves out a range that cannot
 * be read whole. Keeps at most SNAPSHOT_BYTES_MAX in all.
 */
void snapshot_capture(struct snapshot *snapshot, struct memory_range *ranges, size_t count);

enum {
	SNAPSHOT_GUESSES_MAX = 64,
	SNAPSHOT_GUESS_BYTES_MAX = 64 << 10, /* longer pieces are not guessed */
};

/* Ranges that readers will most likely ask for. */
struct snapshot_guesses {
	size_t count;
	struct snapshot_guess {
		uint64_t address;
		uint32_t length;
		uint16_t vain; /* how many times in a row nothing of it was asked for */
		/* how many of the times that some of it was asked for in a row it was not all */
		uint16_t partly;
	} pieces[SNAPSHOT_GUESSES_MAX];
};

/* Like snapshot_capture(), with the guesses in the same system calls. */
void snapshot_capture_first(struct snapshot *snapshot, struct memory_range *ranges, size_t count,
			    const struct snapshot_guesses *guesses);

/*
 * Write guesses for the next snapshot of this kind: what readers asked for
 * beyond the ranges of snapshot_capture_first(), without what begins in
 * [skip_begin, skip_end). Vain guesses stay for a few times more, as do parts of guesses that nobody
 * asked for, in pages of which other bytes were asked for; with is_trial this time does not count.
 */
void snapshot_note_guesses(struct snapshot *snapshot, uint64_t skip_begin, uint64_t skip_end, bool is_trial,
			   struct snapshot_guesses *ret_guesses);

/* Number of reads of the live memory since the snapshot was cleared. */
size_t snapshot_read_count(const struct snapshot *snapshot);

/* Stop reading from the target. */
void snapshot_seal(struct snapshot *snapshot);

/* Put these bytes into the copy at address. The target is not written to. */
void snapshot_overlay(struct snapshot *snapshot, uint64_t address, const void *bytes, size_t length);

/* The captured bytes at [address, address + length) in place, or NULL. Valid until the snapshot changes. */
const void *snapshot_view(struct snapshot *snapshot, uint64_t address, size_t length);

/* The snapshot as memory; owned by the snapshot. */
struct memory *snapshot_memory(struct snapshot *snapshot);

enum { SNAPSHOT_BYTES_MAX = 16 << 20 };

#endif

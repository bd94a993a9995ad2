/* SPDX-License-Identifier: MIT */
/*
 * allocation_shares_parts: what the files of allocation_shares share, and their callers need not know.
 *
 *	allocation_classes.c  what cannot be told apart by counting
 *	allocation_counts.c   how many of each class windows and films have seen
 *	allocation_large.c    large allocations, which series count
 *	allocation_shares.c   samples, and the division among them
 */
#ifndef LJSPY_ALLOCATION_SHARES_PARTS_H
#define LJSPY_ALLOCATION_SHARES_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/allocations/allocation_shares.h"
#include "src/allocations/allocation_sums.h"

enum {
	PART_SIZES_MAX = 32,
	STRING_STEPS_MAX = 64,
	STACK_GROWTHS_MAX = 64,
	ARRAY_SLOT = 8, /* bytes */
	STACK_SLOT = 8, /* bytes */
	/* What a new stack has at least, to which each build adds some slots (lj_state.c: LJ_STACK_START). */
	STACK_START = 40 * STACK_SLOT,
	STACK_EXTRA_MAX = 8 * STACK_SLOT,
};

/* What windows and films of earlier divisions count at each division, in proportion. */
static const double fading = 0.75;

/* Less than this of all bytes may be unexplained by chance. */
static const double unexplained_min = 0.05;

/*
 * Films do not tell the hash parts of new tables and the stacks of coroutines from other parts; windows and
 * samples do. Of stacks, one part is what new coroutines begin with, the other one what a stack grows by.
 * What is large is no such part: LuaJIT puts only C objects on its list as it allocates them.
 */
enum part { PART_ANY, PART_FIRST, PART_GROWN, PART_STACK_GROWN, PART_STACK, PART_LARGE, PART_LARGE_CDATA };

/* What cannot be told apart by counting: an object by its kind and size, a string or a part by its size. */
struct class_key {
	enum allocation_kind
		kind; /* ALLOCATION_OTHER for all that is large, or no listed object and no string */
	/* Of strings, parts, userdata and prototypes a step; 0: of any size; see shares_is_near(). */
	uint64_t bytes;
	uint32_t ctype; /* of cdata */
	enum part part; /* of parts */
};

struct class
{
	struct class_key key;
	double counted, counted_bytes; /* in windows, in films, or in series; they fade */
	double part_bytes;             /* of parts: in windows, as parts of new objects; they fade */
	double bytes, objects;         /* that wait for samples */
	double samples, sample_bytes;  /* since the last division */
	double met;                    /* samples of what is large; they fade */
	double mean;                   /* size, by the samples so far; 0 if there were none */
};

/* The samples of all large allocations: see struct class. */
struct large_samples {
	double samples, sample_bytes, mean;
};

/* Samples of hash or array parts that have got this size: at once, or by growing from half of it. */
struct grown_size {
	enum allocation_kind kind;
	uint64_t bytes;
	double first, grown;
};

/* Samples of stacks that have grown by so many bytes. They fade. */
struct grown_stack {
	uint64_t bytes;
	double samples;
};

struct share_sample {
	size_t class;
	uint64_t bytes;
	bool is_object;
};

struct allocation_shares {
	struct allocation_sums sums;
	double after_objects; /* of all divisions */
	double large_bytes;   /* in large allocations, of the last division */
	struct large_samples large;
	/* Of intervals since the last division whose strings are known. */
	double known_bytes, known_strings;
	/* These fade. */
	double counted_samples; /* of objects and strings: of what is counted */
	/* of samples of strings and of what is not counted, but for what is large */
	double small_sample_bytes;
	double listed_bytes;                      /* of windows whose objects are known */
	double string_window_bytes, strings;      /* of windows whose strings are known */
	double film_large_bytes, film_part_bytes; /* of films: in large allocations, in other parts */
	double film_bytes;                        /* of films: in all that is not large */
	double series_large;                      /* large allocations that series have seen */
	double series_bytes, series_large_bytes;  /* in all, and in large ones */
	double series_untold_bytes;               /* besides: in large ones, or in many small ones */
	struct class classes[ALLOCATION_CLASSES_MAX];
	size_t class_count;
	uint64_t part_sizes[PART_SIZES_MAX]; /* of samples */
	size_t part_size_count;
	uint64_t string_steps[STRING_STEPS_MAX]; /* likewise */
	size_t string_step_count;
	struct grown_size grown_sizes[2 * PART_SIZES_MAX];
	size_t grown_size_count;
	struct grown_stack grown_stacks[STACK_GROWTHS_MAX];
	size_t grown_stack_count;
	uint64_t least_stack;   /* of new coroutines; 0 before there was one */
	uint64_t other_stack;   /* what may be it: the least of one window */
	bool knows_least_stack; /* two windows agree */
	bool has_sampled_stack; /* a sample tells */
	double unmet_bytes;  /* that no sample has met, and which wait for one of what is large; they fade */
	double lost_bytes;   /* ... and what has faded */
	double untold_bytes; /* of parts, which wait for films to tell whose they are */
	size_t untold_count; /* ... for so many divisions */
	struct share_sample *samples;
	struct allocation_share *shares;
	size_t sample_count, sample_size;
};

/*
 * The classes of what nothing has told apart: parts, strings, and large allocations where there are too many
 * classes.
 */
enum { CLASS_PARTS, CLASS_STRINGS, CLASS_LARGE, CLASSES_FIXED };

/* allocation_classes.c */

/* Sizes in one step are equal. */
uint64_t shares_size_step(uint64_t bytes);

/* The class, if there is one, or else a new one with create; fallback if there is none. */
size_t shares_find_class(struct allocation_shares *shares, const struct class_key *key, bool create,
			 size_t fallback);

/* Of an object of the list. Userdata and prototypes have any size. */
struct class_key shares_object_key(enum allocation_kind kind, uint64_t bytes, uint32_t ctype);

/* Of parts of about that size. */
size_t shares_part_class(struct allocation_shares *shares, uint64_t bytes, enum part part);

/* The class of stacks that new coroutines begin with; NULL if windows have counted none. */
struct class *shares_find_stacks(struct allocation_shares *shares);

/* Can it be a stack that a coroutine begins with? What stacks grow by, and what they have then, is more. */
bool shares_is_first_stack(uint64_t bytes);

/* What new coroutines begin with is now so much: what was counted is that. */
void shares_set_least_stack(struct allocation_shares *shares, uint64_t bytes);

/* NULL if there is none, and with create if there are too many. */
struct grown_size *shares_find_grown_size(struct allocation_shares *shares, enum allocation_kind kind,
					  uint64_t bytes, bool create);

/* Which part of those of this size have grown to it, as samples tell. */
double shares_grown_part(struct allocation_shares *shares, enum allocation_kind kind, uint64_t bytes);

/* How many samples have met a stack that grew by so many bytes. */
double shares_grown_stacks(const struct allocation_shares *shares, uint64_t bytes);

/* Has a sample met a part of that size? */
bool shares_is_part_size(const struct allocation_shares *shares, uint64_t bytes);

/* Has a sample met a string of about that size? */
bool shares_is_string_size(const struct allocation_shares *shares, uint64_t bytes);

/* The class of a sample, of which sizes are noted. */
size_t shares_class_of(struct allocation_shares *shares, const struct allocation *allocation);

/* allocation_large.c */

bool shares_is_large(const struct class *class);

/*
 * Are so many bytes about as large as others? Small allocations come between two looks of a series, too.
 */
bool shares_is_near(double bytes, double others);

/* Of a sample. */
size_t shares_large_class_of(struct allocation_shares *shares, const struct allocation *allocation);

/* The samples since the last division that are large. */
void shares_add_up_large(struct allocation_shares *shares);

/*
 * What nothing else explains belongs to what is large, if samples have met such; and waits for the next
 * sample, unless it is so little that it may be chance. is_all: neither strings nor parts are known.
 */
double shares_large_bytes(const struct allocation_shares *shares, double bytes, double unexplained,
			  bool is_all);

/*
 * Of so many bytes, which are in parts and in large allocations, those in parts, if samples have met what is
 * large: the latter have the part of all bytes that series tell, or that of these that films have seen.
 */
double shares_small_parts(const struct allocation_shares *shares, double all, double bytes);

/*
 * What no sample has met, with that of this division: a sample of what is large has it. It does not have what
 * was long before. Returns what it has.
 */
double shares_take_unmet(struct allocation_shares *shares, double unmet);

/*
 * Divide what is large among its classes. How often looks meet one depends on its kind: tables that grow copy
 * what they had, while C arrays are filled with zeros only after the allocation.
 */
void shares_add_large_by_series(struct allocation_shares *shares, double bytes);

/* allocation_shares.c */

/* May few bytes be what they seem to be? */
bool shares_is_sound(const struct allocated *allocated);

#endif

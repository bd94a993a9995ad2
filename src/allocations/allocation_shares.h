/* SPDX-License-Identifier: MIT */
/*
 * allocation_shares: how many bytes and objects each sample of an allocation stands for.
 *
 * A look that finds a thread inside of the allocator knows exactly who allocates, what and how much. But such
 * looks are as likely as the allocator is slow, which differs by more than the size: by two and more from
 * one kind of object to the next. So looks decide only who has allocated how much of one class, a kind of
 * object of one size. How much of each class there was is counted: the collector's counters tell the sum of
 * bytes and the number of strings, and its list the new objects of short windows at random moments.
 */
#ifndef LJSPY_ALLOCATION_SHARES_H
#define LJSPY_ALLOCATION_SHARES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/allocations/allocation_sums.h"
#include "unwind/allocation/allocated.h"
#include "unwind/allocation/allocation.h"

struct allocation_shares;

/* Of one VM. NULL when memory is short. */
struct allocation_shares *allocation_shares_new(void);
void allocation_shares_free(struct allocation_shares *shares);

/* The VM has allocated this from one look to the next one, with so much CPU time in between. */
void allocation_shares_add_interval(struct allocation_shares *shares, const struct allocated *allocated,
				    uint64_t cpu_ns);

/*
 * The same of a short time, in pieces one after the other, in which the VM's thread had its CPU and beside
 * which cycles are long. is_slowed: to get and leave the CPU took a part of the time.
 */
void allocation_shares_add_span(struct allocation_shares *shares, const struct span_piece *pieces,
				size_t count, bool is_slowed);

/*
 * Before the interval that ends with it: a look has met the VM, so much CPU time after the look before, which
 * may not have met it. These times add up to that in which the VM was there or, of more VMs than a look
 * reads, was in use: what the first one has too much, the last one lacks.
 */
void allocation_shares_add_look(struct allocation_shares *shares, uint64_t cpu_ns);

/* So much CPU time came before the first look at any VM of the process, which has met this one. */
void allocation_shares_add_before(struct allocation_shares *shares, uint64_t cpu_ns);

/*
 * A film of the counters: it tells the sizes of strings, and of what is no listed object. objects are those
 * that are new since its first look, newest first; count is 0 if they are unknown.
 */
void allocation_shares_add_film(struct allocation_shares *shares,
				const struct allocation_counters film[static ALLOCATION_FILM_LOOKS],
				const struct listed_object *objects, size_t count);

/* What was allocated in a window; objects is NULL if the new objects are unknown. */
void allocation_shares_add_window(struct allocation_shares *shares, const struct allocated *allocated,
				  const struct listed_object *objects, size_t count);

/*
 * A series of looks at the counters tells how many large allocations there are of each size, whatever time
 * the allocator takes for them. Series are of use where samples have met such.
 */
bool allocation_shares_has_large(const struct allocation_shares *shares);

/* Is what is large a C object, or several? */
enum pair_cdata { PAIR_NO_CDATA, PAIR_CDATA, PAIR_UNKNOWN };

/* What lies between two looks of a series, one right after the other. */
struct allocation_pair {
	uint64_t bytes;  /* small allocations or, from ALLOCATION_LARGE_MIN on, mostly a large one */
	bool is_merged;  /* there was time for several */
	bool has_string; /* a new string came with them, or right after them */
	enum pair_cdata cdata;
};

void allocation_shares_add_pair(struct allocation_shares *shares, const struct allocation_pair *pair);

/*
 * A look has found this allocation under way; its number, from 0 on since the last division. -1: no memory.
 */
ptrdiff_t allocation_shares_add_sample(struct allocation_shares *shares, const struct allocation *allocation);

struct allocation_share {
	uint64_t bytes, objects;
};

/*
 * Divide what the VM has allocated since the last division among the samples since then. What has no sample
 * waits for the next division. The shares are in the order of the samples, and valid until the next call of
 * any function. Returns their number.
 */
size_t allocation_shares_divide(struct allocation_shares *shares, const struct allocation_share **ret_shares);

enum { ALLOCATION_CLASSES_MAX = 512, ALLOCATION_LARGE_MIN = 64 << 10 /* bytes: hardly ever in a window */ };

/* The sum of the last division, and how it is known. */
enum allocation_sum allocation_shares_sum(const struct allocation_shares *shares, uint64_t *ret_bytes);

/*
 * How many bytes of the last division have gone to samples of large allocations, or wait for one. Series see
 * few of these: their division is rough.
 */
uint64_t allocation_shares_large(const struct allocation_shares *shares);

/* The class of a sample, by its number; also right after a division, of those that it has had. */
size_t allocation_shares_class(const struct allocation_shares *shares, size_t sample);

/* What still waits in a class, and in those that have had no sample at all. */
struct allocation_share allocation_shares_waiting(const struct allocation_shares *shares, size_t class);
struct allocation_share allocation_shares_unseen(const struct allocation_shares *shares);

/*
 * At the end: what was allocated before the first look, and nobody has seen. It is estimated by what came
 * after, unless that time is short beside this, or longer. Returns how certain it is, and how many bytes are
 * less certain for that.
 */
enum allocation_sum allocation_shares_before(const struct allocation_shares *shares,
					     struct allocation_share *ret_share,
					     uint64_t *ret_uncertain_bytes);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * allocated: how much a VM has allocated between two looks, and which objects.
 *
 * Both looks may come while the target runs. gc.total rises by what is allocated and falls by what is freed;
 * in a sweep, gc.estimate falls with it (lj_gc.c: gc_onestep), so their difference grows by allocation alone,
 * until the next marking ends and sets gc.estimate anew. Finalizers, and objects that are to have theirs
 * called, take off gc.estimate alone. New objects but strings come to the front of gc.root, and userdata to
 * the front of a list behind the main thread (lj_udata.c: lj_udata_new).
 */
#ifndef LJSPY_ALLOCATED_H
#define LJSPY_ALLOCATED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memory/memory.h"
#include "unwind/allocation/allocation.h"
#include "unwind/lua/global_state.h"

/* False if they cannot be read, or are none: of a VM that has been closed. */
bool allocation_counters_read(struct memory *memory, const struct global_state *global,
			      struct allocation_counters *ret_counters);

/* A look at one of several VMs. */
struct allocation_look {
	const struct global_state *global;
	struct allocation_counters counters;
	bool is_read; /* as allocation_counters_read() returns */
};

/*
 * Look at so many VMs, at most ALLOCATION_LOOKS_MAX, as fast as the kernel copies: the first takes 1.4 us,
 * each other one 0.3.
 */
enum { ALLOCATION_LOOKS_MAX = 48 };
void allocation_looks_read(struct memory *memory, struct allocation_look *looks, size_t count);

/* Keep in counters what an earlier look at the VM knew. */
void allocation_counters_follow(const struct allocation_counters *earlier,
				struct allocation_counters *counters);

/*
 * A film: so many looks, each right after the other, as fast as the kernel copies, some 0.3 us each. False if
 * they cannot be read.
 */
enum { ALLOCATION_FILM_LOOKS = ALLOCATION_LOOKS_MAX };
bool allocation_film_read(struct memory *memory, const struct global_state *global,
			  struct allocation_counters ret_film[static ALLOCATION_FILM_LOOKS]);

/* While nothing of the VM runs: add what the newest object has, if it is a table. */
void allocation_counters_read_newest(struct memory *memory, const struct global_state *global,
				     struct allocation_counters *counters);

/*
 * Is this what the table of strings gets for its other size? What LuaJIT does between allocating it and
 * storing it takes too long to follow.
 */
bool allocated_for_strings(const struct allocation_counters *counters, uint64_t bytes);

/* So much a sweep frees at most before it changes gc.estimate: of GCSWEEPMAX objects that are not large. */
enum { ALLOCATED_FREED_MAX = 16 << 10 };

/* What lies between two looks, the second one later. */
struct allocated {
	/*
	 * Less than 0 if the second look fell into a step of a sweep: gc.estimate follows gc.total at the
	 * step's end only. The first look may have, too, so in a sum over many pairs of looks both cancel.
	 */
	int64_t bytes;
	uint64_t heap_bytes; /* in all, at the second look */
	/*
	 * A marking has ended in between: bytes are what was allocated since then at least. Of a cycle that
	 * began and ended in between nothing can be seen.
	 */
	bool has_marked;
	/*
	 * Finalizers may have been called in between. Then C objects come to the front of gc.root once more.
	 */
	bool may_have_finalized;
	/*
	 * Bytes may be more: a marking has ended in between; or a sweep, and finalizers may have come; or the
	 * VM was closed.
	 */
	bool is_least;
	/*
	 * One of the looks may have come while the table of strings got another size: there are two of it
	 * then, and only one is subtracted. That so much lies between looks that are close to each other
	 * tells that it did.
	 */
	bool may_have_resized;
	uint32_t strings;   /* new strings, if they are known */
	bool knows_strings; /* none were freed in between */
};

struct allocated allocated_between(const struct allocation_counters *before,
				   const struct allocation_counters *after);

/*
 * The same of looks so close to each other that no more than one marking lies between them: the white tells
 * it. So what a sweep's step has freed, and tells at its end only, is no sign of another one.
 */
struct allocated allocated_in_span(const struct allocation_counters *before,
				   const struct allocation_counters *after);

/* An object of the list. */
struct listed_object {
	uint64_t address;
	uint64_t bytes; /* without its parts; 0 where it does not tell itself: cdata and traces */
	uint32_t ctype; /* of a cdata: its type's number */
	uint64_t hash_bytes, array_bytes; /* of a table: its parts, without a colocated one */
	uint64_t stack_bytes;             /* of a coroutine */
	enum allocation_kind kind;
};

static inline uint64_t listed_part_bytes(const struct listed_object *object)
{
	return object->hash_bytes + object->array_bytes + object->stack_bytes;
}

/*
 * Of one walk: as many as compiled code makes in a millisecond, as long as a window may take. If bursts of
 * small objects were more, their windows would be left out, and they would have less than they allocate.
 */
enum { LISTED_OBJECTS_MAX = 32768 };

/*
 * Fill in the objects from the newest one, first, to the one that was newest before, last, which is left out,
 * and their number, at most LISTED_OBJECTS_MAX. False if the list does not lead there, or takes too long.
 */
bool allocated_objects(struct memory *memory, const struct global_state *global, uint64_t first,
		       uint64_t last, struct listed_object *objects, size_t *ret_count);

/*
 * The newest userdata; 0 if there is none, or it cannot be read. What the copy has is not read from memory:
 * while a thread is held, each read counts. Both may be the same.
 */
uint64_t allocated_newest_userdata(struct memory *copy, struct memory *memory,
				   const struct global_state *global);

/* The same of userdata: it is added to *count objects, up to LISTED_OBJECTS_MAX. */
bool allocated_userdata(struct memory *memory, const struct global_state *global, uint64_t first,
			uint64_t last, struct listed_object *objects, size_t *count);

/*
 * How many bytes were allocated between two looks of a film; 0 if that is unknown, as a sweep frees
 * meanwhile.
 */
uint64_t allocated_in_film(const struct allocation_counters *before, const struct allocation_counters *after);

/* What was allocated between two looks of a film besides objects of the list. */
struct allocated_besides {
	uint64_t bytes;
	uint64_t part_bytes; /* ... of them in parts of the new objects, or about to be */
	uint32_t strings;
	size_t objects;
};

/*
 * objects are those from the last to the first look of the film. False if it is unknown, or nothing was
 * allocated.
 */
bool allocated_besides_objects(const struct allocation_counters *before,
			       const struct allocation_counters *after, const struct listed_object *objects,
			       size_t count, struct allocated_besides *ret_besides);

#endif

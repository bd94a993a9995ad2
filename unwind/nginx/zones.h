/* SPDX-License-Identifier: MIT */
/*
 * zones: the memory that nginx's processes share, such as a lua_shared_dict.
 *
 * ngx_cycle_t has shared_memory, a list of ngx_shm_zone_t. A zone is accepted if its memory
 * leads back to it: it begins with ngx_slab_pool_t, whose mutex refers to the lock word at the
 * beginning. The word is the pid of the process that holds the lock, in nginx's own pid
 * namespace, or 0; a process that dies
 * with the lock leaves its pid there until the master notices.
 * Facts: nginx 1.0 to 1.29, src/core/ngx_cycle.h, ngx_list.h, ngx_shmem.h, ngx_slab.h,
 * ngx_shmtx.[ch].
 */
#ifndef LJSPY_ZONES_H
#define LJSPY_ZONES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "memory/memory.h"

enum {
	ZONES_MAX = 256,       /* of a process */
	ZONE_NAME_BYTES = 128, /* with the final NUL; longer names are cut */
};

struct zone {
	uint64_t begin, size;       /* its memory; the lock word is the first */
	uint64_t mutex;             /* address of its ngx_shmtx_t, in its memory */
	char name[ZONE_NAME_BYTES]; /* as in memory, may hold any byte; a NUL ends it */
};

struct zones {
	struct zone list[ZONES_MAX];
	size_t count;
};

/* The beginning of ngx_shm_zone_t: data, ngx_shm_t */
struct shm_zone {
	uint64_t data, address, size, name_length, name;
};

enum zones_verdict {
	ZONES_GO_ON,
	ZONES_END,   /* it was found */
	ZONES_OTHER, /* this is no list of zones: take the next one, from index 0 on */
};

typedef enum zones_verdict zones_visit(void *context, size_t index, const struct shm_zone *shm_zone);

/*
 * Visit the zones of the ngx_cycle_t at an address, wherever in it their list is. memory may fail reads of
 * what is not to be read. True after a whole list, or ZONES_END.
 */
bool zones_walk(struct memory *memory, uint64_t cycle, zones_visit *visit, void *context);

/* The name, cut to room with a final NUL. False if it cannot be read. */
bool zones_read_name(struct memory *memory, const struct shm_zone *shm_zone, char *ret_name, size_t room);

/*
 * cycle: address of ngx_cycle, a pointer; 0 if unknown (request_members.h). False if there is
 * no list of zones; a list may be empty.
 */
bool zones_find(struct memory *memory, uint64_t cycle, struct zones *ret_zones);

/*
 * The zone of an ngx_shm_zone_t, or of a copy of one: lua-nginx-module gives each dictionary its own. NULL
 * if there is none at the address.
 */
const struct zone *zones_at(struct memory *memory, const struct zones *zones, uint64_t address);

/* The zone whose mutex this is, or part of it: what a waiting process sleeps at. NULL if there is none. */
const struct zone *zones_of_mutex(const struct zones *zones, uint64_t address);

/*
 * Read the lock word of each zone into ret_holders, in as few system calls as possible: 0 where it is free.
 */
void zones_read_holders(struct memory *memory, const struct zones *zones,
			uint64_t ret_holders[static ZONES_MAX]);

/*
 * Who holds the lock of the zone that begins there; 0: nobody. False if it cannot be read, or is no process
 * id.
 */
bool zones_read_holder(struct memory *memory, uint64_t begin, pid_t *ret_holder);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * shared_lock: who holds the lock of memory that nginx's processes share.
 *
 * A zone begins with its lock: a word with the process id of its holder, in nginx's own pid
 * namespace, or 0 (src/core/ngx_shmtx.c).
 */
#ifndef LJSPY_SHARED_LOCK_H
#define LJSPY_SHARED_LOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "memory/memory.h"

/* *ret_holder is 0 if nobody holds it. False if it cannot be read, or holds no process id. */
bool shared_lock_read(struct memory *memory, uint64_t zone, pid_t *ret_holder);

#endif

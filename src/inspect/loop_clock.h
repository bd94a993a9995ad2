/* SPDX-License-Identifier: MIT */
/*
 * loop_clock: when an event loop came back from its wait, by its own clock.
 *
 * nginx takes the time each time that its loop has waited (ngx_epoll_module.c:
 * ngx_epoll_process_events() calls ngx_time_update()), and keeps it in
 * ngx_current_msec, which it exports: milliseconds of CLOCK_MONOTONIC_COARSE,
 * before 1.13.11 of the time of day. Programs can have it taken anew in the
 * middle of a turn (ngx.update_time()), and with timer_resolution it is taken
 * less often.
 */
#ifndef LJSPY_LOOP_CLOCK_H
#define LJSPY_LOOP_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "memory/memory.h"

/* Where the module mapped at base keeps it; false if that has none. */
bool loop_clock_find(struct memory *memory, uint64_t base, uint64_t *ret_address);

/*
 * When the turn at hand began, CLOCK_MONOTONIC in nanoseconds; 0 if it is not
 * known. Of the time of day it is not the same each time, but to some microseconds.
 */
uint64_t loop_clock_read(struct memory *memory, uint64_t address);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * loop_clock: when an event loop came back from its wait, by its own clock.
 *
 * nginx reads the time each time its loop has waited (ngx_epoll_module.c:
 * ngx_epoll_process_events() calls ngx_time_update()), and keeps it in
 * ngx_current_msec, which it exports: milliseconds of CLOCK_MONOTONIC_COARSE,
 * before 1.13.11 of the time of day. Programs can update it in the middle of a
 * turn (ngx.update_time()); with timer_resolution nginx reads it less often.
 */
#ifndef LJSPY_LOOP_CLOCK_H
#define LJSPY_LOOP_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "memory/memory.h"

/* The address of the loop's time in the module mapped at base; false if the module has none. */
bool loop_clock_find(struct memory *memory, uint64_t base, uint64_t *ret_address);

/*
 * When the current turn began, ljspy's CLOCK_MONOTONIC in nanoseconds; 0 if unknown. The loop's own is
 * ahead_ns ahead of it (time_namespace.h). From the time of day, two reads of one turn differ by some
 * microseconds.
 */
uint64_t loop_clock_read(struct memory *memory, uint64_t address, int64_t ahead_ns);

#endif

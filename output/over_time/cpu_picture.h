/* SPDX-License-Identifier: MIT */
/*
 * cpu_picture: the CPU use over time as plain shapes, for viewers without scripts.
 *
 * Of one process, areas by the state of the VM, one on the other; of several, a line each.
 * Classes are those of flamegraph.css.
 */
#ifndef LJSPY_CPU_PICTURE_H
#define LJSPY_CPU_PICTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "output/over_time/cpu_use.h"

enum {
	CPU_PICTURE_HEIGHT = 64, /* pixels, with its text */
	CPU_PICTURE_LINES = 8,   /* classes of lines: w0, w1, ... */
};

/* Is there enough to see? */
bool cpu_picture_has(const struct cpu_use *use);

/* x and y of the upper left corner, in pixels. */
void cpu_picture_write(FILE *out, const struct cpu_use *use, size_t x, size_t y, size_t width);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * flamegraph_static: the flame graph's plain shapes, for viewers without scripts.
 */
#ifndef LJSPY_FLAMEGRAPH_STATIC_H
#define LJSPY_FLAMEGRAPH_STATIC_H

#include <stdbool.h>
#include <stdio.h>

#include "output/flamegraph/flamegraph_header.h"
#include "output/over_time/cpu_use.h"
#include "output/views/changed.h"
#include "output/views/profile.h"

enum {
	FLAMEGRAPH_STATIC_WIDTH = 1200,   /* pixels */
	FLAMEGRAPH_STATIC_ROWS_MAX = 500, /* only scripts show deeper frames */
};

struct flamegraph_static;

/*
 * Lay out a profile with the options of the view. baseline has the same
 * options, or is NULL. With changed, only its functions are shown as changed.
 * All, and header, must outlive the layout. cpu is shown above the frames, unless
 * it is NULL. 0 or -ENOMEM.
 */
int flamegraph_static_new(const struct profile *profile, const struct profile *baseline,
			  const struct changed *changed, const struct flamegraph_header *header,
			  const struct cpu_use *cpu, struct flamegraph_static **ret_picture);
void flamegraph_static_free(struct flamegraph_static *picture);

size_t flamegraph_static_height(const struct flamegraph_static *picture); /* pixels */

/* Write the picture as one <g id="static">. */
void flamegraph_static_write(FILE *out, const struct flamegraph_static *picture);

#endif

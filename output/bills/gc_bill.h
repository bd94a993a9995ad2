/* SPDX-License-Identifier: MIT */
/*
 * gc_bill: what the collectors of the VMs took, by what they did.
 */
#ifndef LJSPY_GC_BILL_H
#define LJSPY_GC_BILL_H

#include <stdbool.h>
#include <stdint.h>

#include "output/sample/sample.h"

/* Zeroed memory is an empty bill. */
struct gc_bill {
	uint64_t phase_ns[GC_PHASE_COUNT];
	uint64_t cycles;                /* at least so many markings have ended: samples see one in between */
	uint64_t heap_least, heap_most; /* bytes of a VM's heap at samples; 0 if unknown */
};

/* Add a sample with this weight. */
void gc_bill_add(struct gc_bill *bill, const struct sample_gc *gc, uint64_t ns);

/* Did a collector run at any sample? */
bool gc_bill_has_any(const struct gc_bill *bill);

#endif

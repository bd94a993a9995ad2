/* SPDX-License-Identifier: MIT */
#include "output/bills/gc_bill.h"

void gc_bill_add(struct gc_bill *bill, const struct sample_gc *gc, uint64_t ns)
{
	bill->phase_ns[gc->phase] += ns;
	bill->cycles += gc->has_marked;
	if (gc->heap_bytes == 0)
		return;
	if (bill->heap_least == 0 || gc->heap_bytes < bill->heap_least)
		bill->heap_least = gc->heap_bytes;
	if (gc->heap_bytes > bill->heap_most)
		bill->heap_most = gc->heap_bytes;
}

bool gc_bill_has_any(const struct gc_bill *bill)
{
	for (int phase = GC_PHASE_NONE + 1; phase < GC_PHASE_COUNT; phase++)
		if (bill->phase_ns[phase])
			return true;
	return false;
}

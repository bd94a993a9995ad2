/* SPDX-License-Identifier: MIT */
/* Links between C frames, as L->cframe and CFRAME_OFS_PREV have them. */
#include "unwind/capture/cframes.h"

#include "unwind/vm/vm_frame.h"

uint64_t cframe_above(const struct capture *capture, struct memory *stack, const struct lua_thread *thread,
		      uint64_t sp)
{
	bool is_on_own = capture_on_own_stack(capture, sp);
	uint64_t at = thread->cframe;

	for (unsigned i = 0; i < CFRAMES_MAX && at; i++) {
		uint64_t previous;

		if (at >= sp && capture_on_own_stack(capture, at) == is_on_own)
			return at;
		if (!vm_frame_previous(thread->layout, stack, at, &previous) ||
		    !capture_leads_outwards(capture, at, previous))
			return 0;
		at = previous;
	}
	return 0;
}

const struct lua_thread *cframe_thread(const struct capture *capture, struct memory *stack,
				       const struct layout *layout, uint64_t cframe)
{
	const struct lua_thread *thread;
	uint64_t address;

	if (!cframe || !vm_frame_thread(layout, stack, cframe, &address))
		return NULL;
	thread = capture_find_thread(capture, address);
	return thread && cframe_above(capture, stack, thread, cframe) == cframe ? thread : NULL;
}

const struct lua_thread *cframe_thread_above(const struct capture *capture, struct memory *stack, uint64_t sp,
					     uint64_t *ret_cframe)
{
	const struct lua_thread *found = NULL;

	for (size_t i = 0; i < capture->thread_count; i++) {
		uint64_t at = cframe_above(capture, stack, &capture->threads[i], sp);

		if (at && (!found || at < *ret_cframe)) {
			found = &capture->threads[i];
			*ret_cframe = at;
		}
	}
	return found;
}

unsigned cframe_count(const struct capture *capture, struct memory *stack, const struct lua_thread *thread,
		      uint64_t cframe)
{
	unsigned count = 0;

	for (unsigned i = 0; i < CFRAMES_MAX && cframe; i++) {
		uint64_t previous;
		int32_t nresults;

		if (vm_frame_nresults(thread->layout, stack, cframe, &nresults) && nresults >= 0)
			count++;
		if (!vm_frame_previous(thread->layout, stack, cframe, &previous) ||
		    !capture_leads_outwards(capture, cframe, previous))
			break;
		cframe = previous;
	}
	return count;
}

bool cframe_leads_to(const struct capture *capture, struct memory *stack, const struct layout *layout,
		     uint64_t from, uint64_t to)
{
	for (unsigned i = 0; i < CFRAMES_MAX && from && from != to; i++) {
		uint64_t previous;

		if (!vm_frame_previous(layout, stack, from, &previous) ||
		    (previous && !capture_leads_outwards(capture, from, previous)))
			return false;
		from = previous;
	}
	return from == to;
}

#include "unwind/capture/cframes.h"

#include "unwind/vm/vm_frame.h"

uint64_t cframe_above(struct memory *stack, const struct lua_thread *thread, uint64_t sp)
{
	uint64_t at = thread->cframe;

	for (unsigned i = 0; i < CFRAMES_MAX && at && at < sp; i++) {
		uint64_t previous;

		if (!vm_frame_previous(thread->layout, stack, at, &previous) ||
		    previous <= at)
			return 0;
		at = previous;
	}
	return at < sp ? 0 : at;
}

const struct lua_thread *cframe_thread(const struct capture *capture, struct memory *stack,
				       const struct layout *layout, uint64_t cframe)
{
	const struct lua_thread *thread;
	uint64_t address;

	if (!cframe || !vm_frame_thread(layout, stack, cframe, &address))
		return NULL;
	thread = capture_find_thread(capture, address);
	return thread && cframe_above(stack, thread, cframe) == cframe ? thread : NULL;
}

const struct lua_thread *cframe_thread_above(const struct capture *capture, struct memory *stack,
					     uint64_t sp, uint64_t *ret_cframe)
{
	const struct lua_thread *found = NULL;

	for (size_t i = 0; i < capture->thread_count; i++) {
		uint64_t at = cframe_above(stack, &capture->threads[i], sp);

		if (at && (!found || at < *ret_cframe)) {
			found = &capture->threads[i];
			*ret_cframe = at;
		}
	}
	return found;
}

unsigned cframe_count(struct memory *stack, const struct lua_thread *thread, uint64_t cframe)
{
	unsigned count = 0;

	for (unsigned i = 0; i < CFRAMES_MAX && cframe; i++) {
		uint64_t previous;
		int32_t nresults;

		if (vm_frame_nresults(thread->layout, stack, cframe, &nresults) && nresults >= 0)
			count++;
		if (!vm_frame_previous(thread->layout, stack, cframe, &previous) ||
		    previous <= cframe)
			break;
		cframe = previous;
	}
	return count;
}

bool cframe_leads_to(struct memory *stack, const struct layout *layout, uint64_t from, uint64_t to)
{
	for (unsigned i = 0; i < CFRAMES_MAX && from && from != to; i++) {
		uint64_t previous;

		if (!vm_frame_previous(layout, stack, from, &previous) || (previous && previous <= from))
			return false;
		from = previous;
	}
	return from == to;
}

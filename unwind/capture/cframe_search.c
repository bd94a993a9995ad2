/* SPDX-License-Identifier: MIT */
/* Candidates for C frames on a copied stack, page by page. */
#include "unwind/capture/cframe_search.h"

#include "unwind/lua/luajit.h"
#include "unwind/vm/vm_frame.h"

enum { PAGE_SIZE = 4096 };

void cframe_search_until(struct cframe_search *search, uint64_t end)
{
	uint64_t size = (uint64_t)search->layout->CFRAME_size;

	search->end = end > size ? end - size + 1 : 0;
}

struct cframe_search cframe_search(struct snapshot *snapshot, const struct image *image,
				   const struct layout *layout, uint64_t begin, uint64_t end)
{
	struct cframe_search search = {
		.snapshot = snapshot,
		.image = image,
		.layout = layout,
		.at = vm_frame_from(begin),
	};

	/* A stack pointer may have any value, so aligning it may overflow. */
	cframe_search_until(&search, search.at >= begin ? end : 0);
	return search;
}

static void view_page(struct cframe_search *search, uint64_t address)
{
	search->page.address = address & ~(uint64_t)(PAGE_SIZE - 1);
	search->page.length = PAGE_SIZE;
	search->page.bytes = snapshot_view(search->snapshot, search->page.address, PAGE_SIZE);
	if (search->page.bytes)
		return;
	/* The copy may begin or end within the page. */
	search->page.address = address;
	search->page.length = PAGE_SIZE - address % PAGE_SIZE;
	search->page.bytes = snapshot_view(search->snapshot, address, search->page.length);
}

/*
 * May this word of the copied stack be a thread's address? Most are not, and reading
 * the copy in place costs a tenth of a memory_read().
 */
static bool may_be_thread(struct cframe_search *search, uint64_t address)
{
	const struct layout *layout = search->layout;
	uint64_t word;

	if (address - search->page.address >= search->page.length)
		view_page(search, address);
	if (!search->page.bytes)
		return true;
	word = load_bytes(search->page.bytes, (int32_t)(address - search->page.address),
			  layout_ref_size(layout));
	return word >= PAGE_SIZE && may_be_object(layout->gc64, word);
}

bool cframe_search_next(struct cframe_search *search, uint64_t *ret_cframe, uint64_t *ret_thread)
{
	while (search->at < search->end) {
		uint64_t cframe = search->at;

		search->at += VM_FRAME_ALIGNMENT;
		if (!may_be_thread(search, cframe + (uint64_t)search->layout->CFRAME_L) ||
		    !vm_frame_is_plausible(search->image, search->layout, snapshot_memory(search->snapshot),
					   cframe, ret_thread))
			continue;
		*ret_cframe = cframe;
		search->page.length = 0; /* reads by the caller may move the copy */
		return true;
	}
	return false;
}

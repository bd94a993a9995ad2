/* SPDX-License-Identifier: MIT */
/* Capture the native stack: as much as needed, a page at a time. */
#include "unwind/capture/capture_parts.h"

/* One range for each page, so that a copy past the stack's end is cut short and does not fail. */
static size_t stack_ranges(struct memory_range *ranges, size_t max, uint64_t begin, uint64_t end)
{
	size_t count = 0;

	while (begin < end && count < max) {
		uint64_t next = (begin / PAGE_SIZE + 1) * PAGE_SIZE;

		if (next > end)
			next = end;
		ranges[count++] = (struct memory_range){ .address = begin, .length = (size_t)(next - begin) };
		begin = next;
	}
	return count;
}

uint64_t capture_stack_limit(const struct capture *capture, const struct capture_hints *hints)
{
	return capture->stack_begin + (hints->deep ? CAPTURE_DEEP_BYTES_MAX : CAPTURE_STACK_BYTES_MAX);
}

size_t capture_stack_ranges(const struct capture *capture, const struct capture_hints *hints, uint64_t end,
			    struct memory_range *ranges)
{
	const struct memory_range *own = &hints->own_stack;

	/* An end below is that of another stack. */
	if (hints->stack_end > capture->stack_begin && end > hints->stack_end)
		end = hints->stack_end;
	if (hints->frames_end > capture->stack_begin && end > hints->frames_end)
		end = hints->frames_end;
	if (own->length && own->address > capture->stack_begin && end > own->address)
		end = own->address;
	if (end > capture_stack_limit(capture, hints))
		end = capture_stack_limit(capture, hints);
	return stack_ranges(ranges, STACK_PAGES_MAX, capture->stack_end, end);
}

void capture_note_stack(struct capture *capture, struct capture_hints *hints,
			const struct memory_range *ranges, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const uint64_t end = ranges[i].address + ranges[i].length;

		/* Below the stack pointer there need not be a page. */
		if (ranges[i].status != MEMORY_OK && end <= capture->registers.sp) {
			capture->stack_begin = capture->stack_end = end;
			continue;
		}
		/*
		 * A page may be unreadable only for now: a new thread's stack before its first use. That is
		 * no end.
		 */
		if (ranges[i].status == MEMORY_UNMAPPED)
			hints->stack_end = ranges[i].address;
		if (ranges[i].status != MEMORY_OK)
			return;
		capture->stack_end = end;
	}
}

void capture_note_frames_end(const struct capture *capture, uint64_t end, struct capture_hints *hints)
{
	bool is_here = end > capture->registers.sp && end <= capture->stack_end;

	hints->frames_end = is_here ? end : 0;
}

void capture_extend_stack(struct capture *capture, struct capture_hints *hints, uint64_t end)
{
	struct memory_range ranges[STACK_PAGES_MAX];
	size_t count;

	do {
		count = capture_stack_ranges(capture, hints, end, ranges);
		if (count == 0)
			return;
		snapshot_capture(capture->snapshot, ranges, count);
		capture_note_stack(capture, hints, ranges, count);
		/* Is there more of it than one list holds? */
	} while (count == STACK_PAGES_MAX &&
		 capture->stack_end == ranges[count - 1].address + ranges[count - 1].length);
}

/* Do all length bytes at the address lie on the copied native stack? */
static bool is_copied(const struct capture *capture, uint64_t address, size_t length)
{
	return capture_has_copied(capture, address) &&
	       length <= capture_stack_end(capture, address) - address;
}

bool capture_reach_stack(struct capture *capture, struct capture_hints *hints, uint64_t address,
			 size_t length)
{
	uint64_t end = address + length;

	if (!capture_on_own_stack(capture, address) && address >= capture->stack_begin &&
	    end > capture->stack_end)
		capture_extend_stack(capture, hints, end + PAGE_SIZE);
	return is_copied(capture, address, length);
}

void capture_own_stack(struct capture *capture, const struct memory_range *own, uint64_t begin, uint64_t end)
{
	struct memory_range ranges[STACK_PAGES_MAX];
	size_t count;

	if (begin < own->address)
		begin = own->address;
	if (end - own->address > own->length)
		end = own->address + own->length;
	count = stack_ranges(ranges, STACK_PAGES_MAX, begin, end);
	snapshot_capture(capture->snapshot, ranges, count);
	capture->own_begin = capture->own_end = begin;
	for (size_t i = 0; i < count && ranges[i].status == MEMORY_OK; i++)
		capture->own_end = ranges[i].address + ranges[i].length;
}

bool capture_stack_word(const struct capture *capture, uint64_t address, uint64_t *ret_word)
{
	return is_copied(capture, address, sizeof(*ret_word)) &&
	       memory_u64(snapshot_memory(capture->snapshot), address, ret_word);
}

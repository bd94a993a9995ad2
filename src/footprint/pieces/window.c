/* SPDX-License-Identifier: MIT */
#include "src/footprint/pieces/window.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int window_open(struct memory *memory, const struct page_runs *runs, struct window *ret_window)
{
	struct window window = { .memory = memory, .runs = runs, .copy = malloc(WINDOW_BYTES) };

	if (!window.copy)
		return -ENOMEM;
	*ret_window = window;
	return 0;
}

void window_close(struct window *window)
{
	free(window->copy);
	*window = (struct window){ .copy = NULL };
}

void window_forget(struct window *window)
{
	window->length = 0;
}

static bool move_to(struct window *window, uint64_t address)
{
	uint64_t begin = address & ~(uint64_t)(PAGE_RUNS_PAGE - 1), length;
	const struct page_run *run = page_runs_from(window->runs, begin);

	window->length = 0;
	if (!run || run->begin > begin)
		return false;
	length = run->end - begin < WINDOW_BYTES ? run->end - begin : WINDOW_BYTES;
	if (memory_read(window->memory, begin, window->copy, length) != MEMORY_OK)
		return false;
	window->begin = begin;
	window->length = length;
	return true;
}

bool window_word(struct window *window, uint64_t address, uint64_t *ret)
{
	if ((address < window->begin || address - window->begin >= window->length) &&
	    !move_to(window, address))
		return false;
	memcpy(ret, window->copy + (address - window->begin), sizeof(*ret));
	return true;
}

bool window_peek(const struct window *window, uint64_t address, void *copy, size_t length)
{
	struct page_sum here;

	if (address > UINT64_MAX - length)
		return false;
	here = page_runs_sum(window->runs, address, address + length);
	return here.exclusive + here.shared == length &&
	       memory_read(window->memory, address, copy, length) == MEMORY_OK;
}

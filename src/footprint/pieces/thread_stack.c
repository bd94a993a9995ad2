/* SPDX-License-Identifier: MIT */
#include "src/footprint/pieces/thread_stack.h"

enum {
	WORD = 8,
	RECORD_ALIGNMENT = 16,
	RECORD_WORDS = 512, /* struct pthread: 288 of glibc, 25 of musl */
	PAGES_MAX = 16384,  /* of a mapping that ljspy looks into */
	STACK_MIN = 2 * PAGE_RUNS_PAGE,
};

/* Does the record hold the beginning and the size of a stack that contains it? */
static bool find_pair(struct window *window, uint64_t record, uint64_t lowest, uint64_t end,
		      uint64_t *ret_begin, uint64_t *ret_end)
{
	uint64_t base = 0, size;

	for (unsigned i = 1; i < RECORD_WORDS && window_word(window, record + i * WORD, &size); i++) {
		if (base >= lowest && base <= record && base % PAGE_RUNS_PAGE == 0 && size >= STACK_MIN &&
		    size % PAGE_RUNS_PAGE == 0 && size <= end - base && record < base + size) {
			*ret_begin = base;
			*ret_end = base + size;
			return true;
		}
		base = size;
	}
	return false;
}

bool thread_stack_find(struct window *window, uint64_t lowest, uint64_t begin, uint64_t end,
		       uint64_t *ret_begin, uint64_t *ret_end)
{
	const struct page_run *run = page_runs_from(window->runs, begin);
	uint64_t at = begin, pages = 0, word;

	while (run && run->begin < end && pages < PAGES_MAX) {
		at = at > run->begin ? at : run->begin;
		for (; at < run->end && at < end && pages < PAGES_MAX; at += RECORD_ALIGNMENT) {
			pages += at % PAGE_RUNS_PAGE == 0;
			if (window_word(window, at, &word) && word == at &&
			    find_pair(window, at, lowest, end, ret_begin, ret_end))
				return true;
		}
		run = page_runs_from(window->runs, run->end);
	}
	return false;
}

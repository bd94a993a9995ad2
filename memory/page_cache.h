/* SPDX-License-Identifier: MIT */
/*
 * page_cache: memory that is read once, a page at a time.
 *
 * For what does not change while it is cached, such as a program's text, and
 * for looks at many small things that lie close together: a system call each
 * would cost more than the page.
 */
#ifndef LJSPY_PAGE_CACHE_H
#define LJSPY_PAGE_CACHE_H

#include "memory/memory.h"

struct page_cache;

/* live must outlive it. NULL when memory is short. */
struct page_cache *page_cache_new(struct memory *live);
void page_cache_free(struct page_cache *cache);

/* Seen as memory; owned by the cache. */
struct memory *page_cache_memory(struct page_cache *cache);

/* Read everything anew from now on. */
void page_cache_forget(struct page_cache *cache);

#endif

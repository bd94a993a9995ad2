/* SPDX-License-Identifier: MIT */
/*
 * page_cache: reads memory once, a page at a time.
 *
 * Use it for memory that does not change while it is cached, such as a
 * program's text, and for many small reads that lie close together: a system
 * call for each costs more than the page. Reads of 256 KB or more are not kept:
 * who copies so much at once does not ask again.
 */
#ifndef LJSPY_PAGE_CACHE_H
#define LJSPY_PAGE_CACHE_H

#include "memory/memory.h"

struct page_cache;

/* A cache of live, which must outlive it. NULL when memory is short. */
struct page_cache *page_cache_new(struct memory *live);
void page_cache_free(struct page_cache *cache);

/* The cache as memory; owned by the cache. */
struct memory *page_cache_memory(struct page_cache *cache);

/* Drop all pages: the next reads go to live again. */
void page_cache_forget(struct page_cache *cache);

/*
 * The same, but copy those parts of pages again, in one read, that were read from since the last time: the
 * next reads are likely to be of most of them.
 */
void page_cache_renew(struct page_cache *cache);

#endif

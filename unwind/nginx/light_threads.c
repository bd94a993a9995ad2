/* SPDX-License-Identifier: MIT */
#include "unwind/nginx/light_threads.h"

#include <string.h>

enum { CONTEXT_BYTES_MAX = 4096, LISTED_MAX = 4096 };

/* The start of ngx_http_lua_co_ctx_t (ngx_http_lua_common.h, since August 2012). */
struct coctx {
	uint64_t data, co;
};

struct search {
	struct memory *memory;
	const struct layout *luajit;
	uint64_t request;
	uint64_t *threads;
	size_t count;
};

/* Does the lua_State refer to this context and request? */
static bool refers_back(const struct search *search, uint64_t thread, uint64_t coctx)
{
	uint64_t exdata, exdata2;

	return thread != 0 && thread % sizeof(uint64_t) == 0 &&
	       memory_u64(search->memory, thread + (uint64_t)search->luajit->L_exdata, &exdata) &&
	       exdata == search->request &&
	       memory_u64(search->memory, thread + (uint64_t)search->luajit->L_exdata2, &exdata2) &&
	       exdata2 == coctx;
}

bool light_thread_of(struct memory *memory, const struct layout *luajit, uint64_t coctx, uint64_t *ret_thread)
{
	uint64_t exdata2;
	struct coctx entry;

	if (luajit->L_exdata2 < 0 || memory_read(memory, coctx, &entry, sizeof(entry)) != MEMORY_OK ||
	    entry.co == 0 || entry.co % sizeof(uint64_t) != 0 ||
	    !memory_u64(memory, entry.co + (uint64_t)luajit->L_exdata2, &exdata2) || exdata2 != coctx)
		return false;
	*ret_thread = entry.co;
	return true;
}

static void add(struct search *search, uint64_t thread)
{
	for (size_t i = 0; i < search->count; i++)
		if (search->threads[i] == thread)
			return;
	if (search->count < LIGHT_THREADS_MAX)
		search->threads[search->count++] = thread;
}

/* The context of the first coroutine is a part of the request's context. Its address, or 0. */
static uint64_t find_entry(struct search *search, const struct request_layout *layout,
			   const struct request_context *context)
{
	uint8_t bytes[CONTEXT_BYTES_MAX];
	size_t length = (size_t)layout->ctx_context;

	if (length > sizeof(bytes) ||
	    memory_read(search->memory, context->address, bytes, length) != MEMORY_OK)
		return 0;
	for (size_t at = 0; at + sizeof(struct coctx) <= length; at += sizeof(uint64_t)) {
		struct coctx entry;

		memcpy(&entry, bytes + at, sizeof(entry));
		if (refers_back(search, entry.co, context->address + at)) {
			add(search, entry.co);
			return context->address + at;
		}
	}
	return 0;
}

static void add_listed(struct search *search, const struct request_coroutines *listed)
{
	size_t read = 0;

	for (size_t i = 0; i < listed->count; i++)
		for (uint64_t j = 0; j < listed->parts[i].count && read++ < LISTED_MAX; j++) {
			uint64_t address = listed->parts[i].first + j * listed->size;
			struct coctx coctx;

			if (search->count < LIGHT_THREADS_MAX &&
			    memory_read(search->memory, address, &coctx, sizeof(coctx)) == MEMORY_OK &&
			    refers_back(search, coctx.co, address))
				add(search, coctx.co);
		}
}

size_t light_threads_find(struct memory *memory, const struct request_layout *layout,
			  const struct layout *luajit, uint64_t request,
			  const struct request_context *context, uint64_t ret_threads[LIGHT_THREADS_MAX])
{
	struct search search = {
		.memory = memory, .luajit = luajit, .request = request, .threads = ret_threads
	};
	struct request_coroutines listed;
	uint64_t entry, list;

	if (luajit->L_exdata < 0 || luajit->L_exdata2 < 0)
		return 0;
	entry = find_entry(&search, layout, context);
	if (!entry || !memory_u64(memory, entry - sizeof(list), &list))
		return search.count;
	request_coroutines_begin(&listed);
	request_coroutines_read(memory, list, &listed);
	add_listed(&search, &listed);
	return search.count;
}

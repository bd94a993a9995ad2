/* SPDX-License-Identifier: MIT */
#include "unwind/nginx/light_threads.h"

#include <string.h>

#include "unwind/lua/lua_table.h"
#include "unwind/lua/luajit.h"

enum {
	CONTEXT_BYTES_MAX = 4096,
	LISTED_MAX = 4096,
	SIGNATURE = 0x50545448, /* ngx_http_request_t.signature: NGX_HTTP_MODULE, "HTTP" */
	GLOBAL_BYTES = 512,     /* of global_State, to the end of its gc */
};

/* The start of ngx_http_lua_co_ctx_t (ngx_http_lua_common.h, since August 2012). */
struct coctx {
	uint64_t data, co;
};

/*---- What a lua_State refers to ----*/

static bool has_exdata(const struct layout *luajit)
{
	return luajit->L_exdata >= 0 && luajit->L_exdata2 >= 0;
}

/* Among the globals of the coroutine: the bits of a light userdata. */
static bool read_global(struct memory *memory, const struct layout *luajit, uint64_t thread, uint64_t *key,
			uint64_t *ret_bits)
{
	uint64_t globals, value;
	uint8_t gct;

	return may_be_object(luajit->gc64, thread) && field_gct(memory, luajit, thread, &gct) &&
	       gct == GCT_THREAD &&
	       field_reference(memory, luajit, thread + (uint64_t)luajit->L_env, &globals) &&
	       lua_table_find(memory, luajit, globals, "__ngx_req", key, &value) &&
	       tvalue_light_userdata(luajit->gc64, value, ret_bits) && *ret_bits != 0;
}

static bool is_request(struct memory *memory, uint64_t address)
{
	uint32_t signature;

	return address % sizeof(uint64_t) == 0 && memory_u32(memory, address, &signature) &&
	       signature == SIGNATURE;
}

/* The upper half of a pointer, if there is an array of them at segments. */
static bool read_segment(struct memory *memory, uint64_t segments, uint64_t bits, uint64_t *ret_pointer)
{
	uint64_t low = bits & ((UINT64_C(1) << LIGHTUD_BITS_LO) - 1);
	uint32_t upper;

	if (segments == 0 || segments % sizeof(upper) != 0 ||
	    !memory_u32(memory, segments + (bits >> LIGHTUD_BITS_LO) * sizeof(upper), &upper) ||
	    upper > UINT16_MAX || upper % (1 << (LIGHTUD_BITS_LO - 32)) != 0)
		return false;
	*ret_pointer = (uint64_t)upper << 32 | low;
	return true;
}

/* The array is where it makes a request of these bits. */
static bool find_segments(struct memory *memory, const struct layout *luajit, uint64_t g, uint64_t bits,
			  struct request_hints *hints, uint64_t *ret_request)
{
	unsigned ref = layout_ref_size(luajit);
	uint8_t bytes[GLOBAL_BYTES];

	if (memory_read(memory, g, bytes, sizeof(bytes)) != MEMORY_OK)
		return false;
	for (size_t at = 0; at < sizeof(bytes); at += ref)
		if (read_segment(memory, load_bytes(bytes, (int32_t)at, ref), bits, ret_request) &&
		    is_request(memory, *ret_request)) {
			hints->segments = at;
			return true;
		}
	return false;
}

static bool decode(struct memory *memory, const struct layout *luajit, uint64_t thread, uint64_t bits,
		   struct request_hints *hints, uint64_t *ret_request)
{
	uint64_t g, segments;

	if (!field_reference(memory, luajit, thread + (uint64_t)luajit->L_glref, &g))
		return false;
	if (hints->segments)
		return field_reference(memory, luajit, g + hints->segments, &segments) &&
		       read_segment(memory, segments, bits, ret_request);
	*ret_request = bits;
	return is_request(memory, bits) || find_segments(memory, luajit, g, bits, hints, ret_request);
}

bool light_thread_request(struct memory *memory, const struct layout *luajit, uint64_t thread,
			  struct request_hints *hints, uint64_t *ret_request)
{
	uint64_t bits;

	if (!has_exdata(luajit))
		return read_global(memory, luajit, thread, &hints->key, &bits) &&
		       decode(memory, luajit, thread, bits, hints, ret_request);
	return memory_u64(memory, thread + (uint64_t)luajit->L_exdata, ret_request) && *ret_request != 0;
}

/* Does the coroutine of a context refer to it? Without exdata2, the context is all that tells. */
static bool has_context(struct memory *memory, const struct layout *luajit, uint64_t thread, uint64_t coctx)
{
	uint64_t exdata2;

	return !has_exdata(luajit) ||
	       (memory_u64(memory, thread + (uint64_t)luajit->L_exdata2, &exdata2) && exdata2 == coctx);
}

bool light_thread_of(struct memory *memory, const struct layout *luajit, uint64_t coctx, uint64_t *ret_thread)
{
	struct coctx entry;
	uint64_t bits, key = 0;

	if (memory_read(memory, coctx, &entry, sizeof(entry)) != MEMORY_OK || entry.co == 0 ||
	    entry.co % sizeof(uint64_t) != 0 || !has_context(memory, luajit, entry.co, coctx) ||
	    (!has_exdata(luajit) && !read_global(memory, luajit, entry.co, &key, &bits)))
		return false;
	*ret_thread = entry.co;
	return true;
}

/*---- The coroutines of a request ----*/

struct search {
	struct memory *memory;
	const struct layout *luajit;
	uint64_t request, key;
	uint64_t wanted; /* the only lua_State to find; 0: all */
	uint64_t *threads, *contexts;
	size_t count;
};

/* Does the lua_State refer to this context and request? */
static bool refers_back(struct search *search, uint64_t thread, uint64_t coctx)
{
	uint64_t refers;

	if (thread == 0 || thread % sizeof(uint64_t) != 0)
		return false;
	/* The upper bits need not be found for this. */
	if (!has_exdata(search->luajit))
		return read_global(search->memory, search->luajit, thread, &search->key, &refers) &&
		       ((refers ^ search->request) & ((UINT64_C(1) << LIGHTUD_BITS_LO) - 1)) == 0;
	return memory_u64(search->memory, thread + (uint64_t)search->luajit->L_exdata, &refers) &&
	       refers == search->request && has_context(search->memory, search->luajit, thread, coctx);
}

static void add(struct search *search, uint64_t thread, uint64_t coctx)
{
	if (search->wanted && thread != search->wanted)
		return;
	for (size_t i = 0; i < search->count; i++)
		if (search->threads[i] == thread)
			return;
	if (search->count == LIGHT_THREADS_MAX)
		return;
	search->contexts[search->count] = coctx;
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
			add(search, entry.co, context->address + at);
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
			    (!search->wanted || coctx.co == search->wanted) &&
			    refers_back(search, coctx.co, address))
				add(search, coctx.co, address);
		}
}

static void find(struct search *search, const struct request_layout *layout,
		 const struct request_context *context)
{
	struct request_coroutines listed;
	uint64_t entry = find_entry(search, layout, context), list;

	if (!entry || (search->wanted && search->count) ||
	    !memory_u64(search->memory, entry - sizeof(list), &list))
		return;
	request_coroutines_begin(&listed);
	request_coroutines_read(search->memory, list, &listed);
	add_listed(search, &listed);
}

size_t light_threads_find(struct memory *memory, const struct request_layout *layout,
			  const struct layout *luajit, uint64_t request,
			  const struct request_context *context, uint64_t ret_threads[LIGHT_THREADS_MAX])
{
	uint64_t contexts[LIGHT_THREADS_MAX];
	struct search search = { .memory = memory,
				 .luajit = luajit,
				 .request = request,
				 .threads = ret_threads,
				 .contexts = contexts };

	find(&search, layout, context);
	return search.count;
}

bool light_thread_context(struct memory *memory, const struct request_layout *layout,
			  const struct layout *luajit, uint64_t request,
			  const struct request_context *context, uint64_t thread, uint64_t *ret_coctx)
{
	uint64_t threads[LIGHT_THREADS_MAX], contexts[LIGHT_THREADS_MAX];
	struct search search = { .memory = memory,
				 .luajit = luajit,
				 .request = request,
				 .wanted = thread,
				 .threads = threads,
				 .contexts = contexts };

	if (has_exdata(luajit))
		return memory_u64(memory, thread + (uint64_t)luajit->L_exdata2, ret_coctx) && *ret_coctx != 0;
	find(&search, layout, context);
	if (search.count)
		*ret_coctx = contexts[0];
	return search.count > 0;
}

bool light_thread_read(struct memory *memory, const struct request_layout *layout,
		       const struct layout *luajit, uint64_t thread, struct request_hints *hints,
		       struct light_thread *ret_light_thread)
{
	struct light_thread found = { .thread = thread };
	struct memory_range ranges[REQUEST_RANGES];
	struct request_context context = { 0 };

	if (!light_thread_request(memory, luajit, thread, hints, &found.request))
		return false;
	if (has_exdata(luajit) || request_context(memory, layout, found.request, ranges, &context))
		light_thread_context(memory, layout, luajit, found.request, &context, thread, &found.coctx);
	*ret_light_thread = found;
	return true;
}

/* SPDX-License-Identifier: MIT */
#include "unwind/nginx/light_threads.h"

#include <string.h>

#include "unwind/lua/lua_table.h"
#include "unwind/lua/lua_thread.h"
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
	/* Either the context of one lua_State, which may have ended, ... */
	uint64_t wanted, context;
	/* ... or, if wanted is 0, all that have not. */
	struct light_threads *threads;
	uint64_t g; /* of those that refer to the request; 0: none so far */
	/* Of the list of coroutines. */
	struct request_coroutines listed;
	size_t read; /* contexts */
};

/* Does the lua_State refer to this context and request? */
static bool refers_back(struct search *search, const struct lua_thread *thread, uint64_t coctx)
{
	uint64_t refers;

	if (has_exdata(search->luajit))
		return thread->exdata == search->request && thread->exdata2 == coctx;
	/* The upper bits need not be found for this. */
	return read_global(search->memory, search->luajit, thread->address, &search->key, &refers) &&
	       ((refers ^ search->request) & ((UINT64_C(1) << LIGHTUD_BITS_LO) - 1)) == 0;
}

static void add(struct light_threads *threads, uint64_t thread)
{
	for (size_t i = 0; i < threads->count; i++)
		if (threads->threads[i] == thread)
			return;
	if (threads->count == LIGHT_THREADS_MAX)
		threads->more++;
	else
		threads->threads[threads->count++] = thread;
}

/* Take the lua_State if it is wanted. False if it is none any more, or of another request. */
static bool take(struct search *search, uint64_t address, uint64_t coctx)
{
	uint8_t bytes[LUA_STATE_BYTES_MAX];
	struct lua_thread thread;
	uint64_t g;

	if (address == 0 || address % sizeof(uint64_t) != 0 ||
	    memory_read(search->memory, address, bytes, (size_t)search->luajit->L_size) != MEMORY_OK ||
	    !lua_thread_parse(&thread, search->luajit, address, bytes, &g) || (search->g && g != search->g) ||
	    !refers_back(search, &thread, coctx))
		return false;
	search->g = g;
	if (search->wanted == address)
		search->context = coctx;
	else if (!search->wanted && lua_thread_state(&thread, 0) != COROUTINE_DEAD)
		add(search->threads, address);
	return true;
}

/*
 * The context of the first coroutine is a part of the request's context, of length bytes. Where in that it
 * is; 0 if there is none.
 */
static size_t find_entry(struct search *search, uint64_t context, const uint8_t *bytes, size_t length)
{
	for (size_t at = sizeof(uint64_t); at + sizeof(struct coctx) <= length; at += sizeof(uint64_t)) {
		struct coctx entry;

		memcpy(&entry, bytes + at, sizeof(entry));
		if (take(search, entry.co, context + at))
			return at;
	}
	return 0;
}

/* Take those that are listed at an address, if there is a list. */
static void take_list(struct search *search, uint64_t list)
{
	request_coroutines_read(search->memory, list, &search->listed);
	for (size_t i = 0; i < search->listed.count; i++)
		for (uint64_t j = 0; j < search->listed.parts[i].count && search->read++ < LISTED_MAX; j++) {
			uint64_t address = search->listed.parts[i].first + j * search->listed.size;
			struct coctx coctx;

			if (memory_read(search->memory, address, &coctx, sizeof(coctx)) == MEMORY_OK &&
			    (!search->wanted || coctx.co == search->wanted))
				take(search, coctx.co, address);
		}
}

static void find(struct search *search, const struct request_layout *layout,
		 const struct request_context *context)
{
	uint8_t bytes[CONTEXT_BYTES_MAX];
	size_t length = (size_t)layout->ctx_context, entry;

	if (length > sizeof(bytes) ||
	    memory_read(search->memory, context->address, bytes, length) != MEMORY_OK)
		return;
	entry = find_entry(search, context->address, bytes, length);
	request_coroutines_begin(&search->listed);
	if (entry && !search->context)
		take_list(search, load_bytes(bytes, (int32_t)(entry - sizeof(uint64_t)), sizeof(uint64_t)));
	/*
	 * When the first coroutine ends before light threads, the module gives it to another request
	 * (ngx_http_lua_del_thread(), since 0.10.18). Then nothing tells which word leads to the list.
	 */
	for (size_t at = 0; !entry && !search->g && at + sizeof(uint64_t) <= length; at += sizeof(uint64_t))
		take_list(search, load_bytes(bytes, (int32_t)at, sizeof(uint64_t)));
}

void light_threads_find(struct memory *memory, const struct request_layout *layout,
			const struct layout *luajit, uint64_t request, const struct request_context *context,
			struct light_threads *ret_threads)
{
	struct search search = {
		.memory = memory, .luajit = luajit, .request = request, .threads = ret_threads
	};

	ret_threads->count = ret_threads->more = 0;
	find(&search, layout, context);
	ret_threads->g = ret_threads->count ? search.g : 0;
}

bool light_thread_context(struct memory *memory, const struct request_layout *layout,
			  const struct layout *luajit, uint64_t request,
			  const struct request_context *context, uint64_t thread, uint64_t *ret_coctx)
{
	struct search search = { .memory = memory, .luajit = luajit, .request = request, .wanted = thread };

	if (has_exdata(luajit))
		return memory_u64(memory, thread + (uint64_t)luajit->L_exdata2, ret_coctx) && *ret_coctx != 0;
	find(&search, layout, context);
	if (search.context)
		*ret_coctx = search.context;
	return search.context != 0;
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

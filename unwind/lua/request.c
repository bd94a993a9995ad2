/* SPDX-License-Identifier: MIT */
#include "unwind/lua/request.h"

#include <elf.h>
#include <string.h>

#include "unwind/elf/dynamic_symbol.h"
#include "unwind/elf/registers.h"

enum {
	CODE_BYTES = 96,          /* read for a function, which is shorter */
	MODULES_MAX = 4096,       /* of nginx; far fewer fit */
	SIGNATURE = 0x50545448,   /* ngx_http_request_t.signature: NGX_HTTP_MODULE, "HTTP" */
	CONTEXT_BYTES_MAX = 4096, /* of ngx_http_lua_ctx_t, which has about 450 */
	PARENTS_MAX = 64,         /* depth of coroutines created by coroutines */
	COCTX_BYTES_MAX = 4096,   /* of ngx_http_lua_co_ctx_t, which has about 300 */
};

/* lua-nginx-module: src/ngx_http_lua_common.h (NGX_HTTP_LUA_CONTEXT_*), in the order of bits. */
static const struct {
	const char *phase; /* as in src/api of lua-resty-core: ngx.get_phase() */
	const char *block; /* start of an inline chunk's name; NULL: the phase */
} phases[] = {
	{ "set", NULL },
	{ "rewrite", NULL },
	{ "access", NULL },
	{ "content", NULL },
	{ "log", NULL },
	{ "header_filter", NULL },
	{ "body_filter", NULL },
	{ "timer", NULL },
	{ "init_worker", NULL },
	{ "balancer", NULL },
	{ "ssl_cert", "ssl_certificate" },
	{ "ssl_session_store", NULL },
	{ "ssl_session_fetch", NULL },
	{ "exit_worker", NULL },
	{ "ssl_client_hello", NULL },
	{ "server_rewrite", NULL },
	{ "proxy_ssl_verify", NULL },
	{ "precontent", NULL },
	{ "proxy_ssl_cert", "proxy_ssl_certificate" },
};

enum { PHASES = sizeof(phases) / sizeof(phases[0]) };

static void find_connection(struct memory *memory, uint64_t base, struct request_layout *layout)
{
	uint8_t bytes[CODE_BYTES];
	uint64_t function;

	layout->has_connection = dynamic_symbol_find(memory, base, "ngx_http_lua_ffi_is_subrequest",
						     &function) &&
				 memory_read(memory, function, bytes, sizeof(bytes)) == MEMORY_OK &&
				 request_code_read_main(bytes, sizeof(bytes), function, &layout->r_connection,
							&layout->r_main);
}

bool request_layout_find(struct memory *memory, uint16_t machine, uint64_t base,
			 struct request_layout *ret_layout)
{
	uint8_t bytes[CODE_BYTES];
	struct request_code code;
	uint64_t function, module, index;

	if (machine != MACHINE_OWN ||
	    !dynamic_symbol_find(memory, base, "ngx_http_lua_ffi_get_phase", &function) ||
	    memory_read(memory, function, bytes, sizeof(bytes)) != MEMORY_OK ||
	    !request_code_read(bytes, sizeof(bytes), function, &code))
		return false;
	module = code.module;
	if (code.module_is_pointer && !memory_u64(memory, module, &module))
		return false;
	/* ngx_module_t begins with ctx_index. */
	if (!memory_u64(memory, module, &index) || index >= MODULES_MAX ||
	    code.ctx_context > CONTEXT_BYTES_MAX - (int32_t)sizeof(uint32_t))
		return false;
	*ret_layout = (struct request_layout){
		.known = true,
		.r_ctx = code.r_ctx,
		.ctx_index = index,
		.ctx_context = code.ctx_context,
		.context_size = code.context_size,
	};
	find_connection(memory, base, ret_layout);
	return true;
}

/*
 * ngx_connection_t begins with data: the connection's request, or the subrequest
 * that nginx serves now. nginx changes data when a request ends.
 */
static bool is_of_connection(struct memory *memory, const struct request_layout *layout, uint64_t request,
			     uint64_t connection, struct memory_range *range)
{
	uint64_t data, main, main_of_data;

	*range = (struct memory_range){ .address = connection, .length = sizeof(data) };
	if (connection == 0 || !memory_u64(memory, connection, &data))
		return false;
	if (data == request)
		return true;
	return data != 0 && memory_u64(memory, request + (uint64_t)layout->r_main, &main) && main != 0 &&
	       memory_u64(memory, data + (uint64_t)layout->r_main, &main_of_data) && main == main_of_data;
}

/* The context points to its request in a member before the phase. */
static bool is_of_request(const struct request_layout *layout, const uint8_t *context, uint64_t request)
{
	uint64_t word;

	for (size_t at = 0; at + sizeof(word) <= (size_t)layout->ctx_context; at += sizeof(word)) {
		memcpy(&word, context + at, sizeof(word));
		if (word == request)
			return true;
	}
	return false;
}

bool request_context(struct memory *memory, const struct request_layout *layout, uint64_t request,
		     struct memory_range ranges[static REQUEST_RANGES], struct request_context *ret_context)
{
	struct {
		uint32_t signature;
		uint64_t contexts, connection;
	} found;
	uint8_t context[CONTEXT_BYTES_MAX];
	size_t length = (size_t)layout->ctx_context + layout->context_size;
	uint64_t address, field;
	uint32_t phase = 0;

	if (!layout->known || request == 0)
		return false;
	field = request + (uint64_t)layout->r_ctx;
	ranges[0] = (struct memory_range){ .address = request,
					   .length = (size_t)layout->r_ctx + sizeof(found.contexts) };
	if (!memory_u32(memory, request, &found.signature) || found.signature != SIGNATURE ||
	    !memory_u64(memory, field, &found.contexts) || found.contexts == 0)
		return false;
	field = found.contexts + layout->ctx_index * sizeof(address);
	ranges[1] = (struct memory_range){ .address = field, .length = sizeof(address) };
	if (!memory_u64(memory, field, &address) || address == 0)
		return false;
	ranges[2] = (struct memory_range){ .address = address, .length = length };
	if (memory_read(memory, address, context, length) != MEMORY_OK ||
	    !is_of_request(layout, context, request))
		return false;
	if (layout->has_connection &&
	    (!memory_u64(memory, request + (uint64_t)layout->r_connection, &found.connection) ||
	     !is_of_connection(memory, layout, request, found.connection, &ranges[3])))
		return false;
	memcpy(&phase, context + layout->ctx_context, layout->context_size);
	*ret_context = (struct request_context){ .address = address, .phase = phase };
	return true;
}

/* The start of ngx_http_lua_co_ctx_t, the same since it exists (ngx_http_lua_common.h, August 2012). */
struct coctx {
	uint64_t data;
	uint64_t co;
	uint64_t parent_co_ctx;
};

bool request_parent(struct memory *memory, uint64_t L, uint64_t address, uint64_t *ret_L, uint64_t *ret_coctx)
{
	struct coctx own, parent;

	if (address == 0 || memory_read(memory, address, &own, sizeof(own)) != MEMORY_OK || own.co != L ||
	    own.parent_co_ctx == 0 || own.parent_co_ctx == address ||
	    memory_read(memory, own.parent_co_ctx, &parent, sizeof(parent)) != MEMORY_OK)
		return false;
	*ret_L = parent.co;
	*ret_coctx = own.parent_co_ctx;
	return true;
}

/* ngx_list_t, which contains its first part, and ngx_list_part_t (src/core/ngx_list.h). */
struct list_part {
	uint64_t elts, nelts, next;
};

struct list {
	uint64_t last;
	struct list_part part;
	uint64_t size, nalloc, pool;
};

void request_coroutines_begin(struct request_coroutines *coroutines)
{
	coroutines->request = 0;
	coroutines->read = 0;
}

void request_coroutines_read(struct memory *memory, uint64_t address, struct request_coroutines *coroutines)
{
	struct list list;
	struct list_part part;

	coroutines->count = 0;
	if (address == 0 || memory_read(memory, address, &list, sizeof(list)) != MEMORY_OK ||
	    list.size < sizeof(struct coctx) || list.size > COCTX_BYTES_MAX)
		return;
	part = list.part;
	coroutines->size = list.size;
	while (coroutines->count < REQUEST_PARTS_MAX && part.nelts <= list.nalloc &&
	       coroutines->read < REQUEST_PARTS_READ_MAX) {
		coroutines->parts[coroutines->count].first = part.elts;
		coroutines->parts[coroutines->count++].count = part.nelts;
		coroutines->read++;
		if (part.next == 0 || memory_read(memory, part.next, &part, sizeof(part)) != MEMORY_OK)
			return;
	}
}

static bool is_listed(const struct request_coroutines *coroutines, uint64_t coctx)
{
	for (size_t i = 0; i < coroutines->count; i++) {
		uint64_t distance = coctx - coroutines->parts[i].first;

		if (distance % coroutines->size == 0 &&
		    distance / coroutines->size < coroutines->parts[i].count)
			return true;
	}
	return false;
}

/*
 * The context of a request's first coroutine is a part of the request's context
 * (entry_co_ctx). The context of another coroutine leads there through those that
 * first ran it (parent_co_ctx). It lies in the list that the word before entry_co_ctx
 * points to (user_co_ctx). A coroutine created without a context has its creator's.
 */
bool request_has_coroutine(struct memory *memory, const struct request_layout *layout,
			   const struct request_context *context, uint64_t L, uint64_t coctx,
			   struct request_coroutines *coroutines)
{
	uint64_t entry = coctx, list;
	struct coctx current;

	for (int i = 0; entry - context->address >= (uint64_t)layout->ctx_context; i++) {
		if (i == PARENTS_MAX || entry == 0 ||
		    memory_read(memory, entry, &current, sizeof(current)) != MEMORY_OK ||
		    (i == 0 && current.co != L))
			return false;
		entry = current.parent_co_ctx;
	}
	if (entry == coctx)
		return memory_read(memory, entry, &current, sizeof(current)) == MEMORY_OK && current.co == L;
	if (coroutines->request != context->address) {
		if (!memory_u64(memory, entry - sizeof(list), &list))
			return false;
		coroutines->request = context->address;
		request_coroutines_read(memory, list, coroutines);
	}
	return is_listed(coroutines, coctx);
}

const char *request_phase(uint32_t context)
{
	for (unsigned int i = 0; i < PHASES; i++)
		if (context == 1u << i)
			return phases[i].phase;
	return NULL;
}

const char *request_phase_named(const char *text)
{
	for (size_t i = 0; i < PHASES && text; i++)
		if (strcmp(phases[i].phase, text) == 0)
			return phases[i].phase;
	return NULL;
}

const char *request_phase_of_chunk(const char *chunkname)
{
	static const char infix[] = "_by_lua(";
	const char *end = *chunkname == '=' ? strstr(chunkname, infix) : NULL;

	for (unsigned int i = 0; end && i < PHASES; i++) {
		const char *block = phases[i].block ? phases[i].block : phases[i].phase;

		if (strlen(block) == (size_t)(end - chunkname - 1) &&
		    strncmp(block, chunkname + 1, strlen(block)) == 0)
			return phases[i].phase;
	}
	return NULL;
}

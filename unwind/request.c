#include "unwind/request.h"

#include <elf.h>
#include <string.h>

#include "unwind/dynamic_symbol.h"

enum {
	CODE_BYTES = 96,		/* of the function, which is rather shorter */
	MODULES_MAX = 4096,		/* of nginx; far fewer fit */
	SIGNATURE = 0x50545448,		/* ngx_http_request_t.signature: NGX_HTTP_MODULE, "HTTP" */
};

/* lua-nginx-module: src/ngx_http_lua_common.h (NGX_HTTP_LUA_CONTEXT_*), in the order of bits. */
static const struct {
	const char *phase;	/* as in src/api of lua-resty-core: ngx.get_phase() */
	const char *block;	/* how the name of an inline chunk begins, if not the same */
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

bool request_layout_find(struct memory *memory, uint16_t machine, uint64_t base,
			 struct request_layout *ret_layout)
{
	uint8_t bytes[CODE_BYTES];
	struct request_code code;
	uint64_t function, module, index;

	if (machine != EM_X86_64 || !dynamic_symbol_find(memory, base, "ngx_http_lua_ffi_get_phase", &function) ||
	    memory_read(memory, function, bytes, sizeof(bytes)) != MEMORY_OK ||
	    !request_code_read(bytes, sizeof(bytes), function, &code))
		return false;
	module = code.module;
	if (code.module_is_pointer && !memory_u64(memory, module, &module))
		return false;
	/* ngx_module_t begins with ctx_index. */
	if (!memory_u64(memory, module, &index) || index >= MODULES_MAX)
		return false;
	*ret_layout = (struct request_layout){
		.known = true,
		.r_ctx = code.r_ctx,
		.ctx_index = index,
		.ctx_context = code.ctx_context,
		.context_size = code.context_size,
	};
	return true;
}

uint32_t request_context(struct memory *memory, const struct request_layout *layout,
			 uint64_t request, struct memory_range ranges[static REQUEST_RANGES])
{
	struct { uint32_t signature; uint64_t contexts; } found;
	uint64_t context, field;
	uint32_t value = 0;

	if (!layout->known || request == 0)
		return 0;
	field = request + (uint64_t)layout->r_ctx;
	ranges[0] = (struct memory_range){ .address = request, .length = (size_t)layout->r_ctx +
									   sizeof(found.contexts) };
	if (!memory_u32(memory, request, &found.signature) || found.signature != SIGNATURE ||
	    !memory_u64(memory, field, &found.contexts) || found.contexts == 0)
		return 0;
	field = found.contexts + layout->ctx_index * sizeof(context);
	ranges[1] = (struct memory_range){ .address = field, .length = sizeof(context) };
	if (!memory_u64(memory, field, &context) || context == 0)
		return 0;
	field = context + (uint64_t)layout->ctx_context;
	ranges[2] = (struct memory_range){ .address = field, .length = layout->context_size };
	if (memory_read(memory, field, &value, layout->context_size) != MEMORY_OK)
		return 0;
	return value;
}

/* How ngx_http_lua_co_ctx_t begins, since there is one (ngx_http_lua_common.h, August 2012). */
struct coctx {
	uint64_t data;
	uint64_t co;
	uint64_t parent_co_ctx;
};

bool request_parent(struct memory *memory, uint64_t L, uint64_t address,
		    uint64_t *ret_L, uint64_t *ret_coctx)
{
	struct coctx own, parent;

	if (address == 0 || memory_read(memory, address, &own, sizeof(own)) != MEMORY_OK ||
	    own.co != L || own.parent_co_ctx == 0 || own.parent_co_ctx == address ||
	    memory_read(memory, own.parent_co_ctx, &parent, sizeof(parent)) != MEMORY_OK)
		return false;
	*ret_L = parent.co;
	*ret_coctx = own.parent_co_ctx;
	return true;
}

const char *request_phase(uint32_t context)
{
	for (unsigned int i = 0; i < PHASES; i++)
		if (context == 1u << i)
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

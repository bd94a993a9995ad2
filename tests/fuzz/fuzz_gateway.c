/* SPDX-License-Identifier: MIT */
/*
 * The route that a gateway has matched, in a state of Lua that is sound but for some words.
 *
 *	input  = choice:u8 change*
 *	change = word:u16 value:u64
 *
 * The choice is the width of references, the gateway, and whether the words are changed before the gateway is
 * searched for or after that.
 */
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "unwind/lua/luajit.h"
#include "unwind/nginx/gateway.h"

enum {
	MADE_BYTES = 16384,
	WORD = sizeof(uint64_t),
	CONTEXT = FUZZ_BASE, /* of the request, with its reference to ngx.ctx */
	CONTEXT_BYTES = 64,
	REF = 1, /* what the reference is */
	GLOBAL = FUZZ_BASE + CONTEXT_BYTES,
	GLOBAL_BYTES = 4096,
	PAIRS_MAX = 4,
	CHANGES_MAX = 16,
	CHOICE_GC32 = 1,
	CHOICE_KONG = 2,
	CHOICE_CHANGED_FIRST = 4,
};

static const struct request_layout request_layout = { .known = true, .ctx_ref = 8 };

struct made {
	const struct layout *layout;
	uint8_t bytes[MADE_BYTES];
	size_t end;
};

struct pair {
	const char *key;
	uint64_t value;
};

static void put(struct made *made, uint64_t address, uint64_t value, size_t bytes)
{
	fuzz_check(address - FUZZ_BASE + bytes <= sizeof(made->bytes), "what is made has room");
	memcpy(made->bytes + (address - FUZZ_BASE), &value, bytes);
}

static uint64_t take(struct made *made, size_t bytes)
{
	uint64_t address = FUZZ_BASE + made->end;

	made->end += (bytes + WORD - 1) / WORD * WORD;
	return address;
}

static uint64_t tagged(const struct made *made, int32_t tag, uint64_t object)
{
	return made->layout->gc64 ? (uint64_t)tag << 47 | object : (uint64_t)(uint32_t)tag << 32 | object;
}

static uint64_t make_string(struct made *made, const char *text)
{
	size_t length = strlen(text);
	uint64_t string = take(made, (size_t)made->layout->GCstr_size + length + 1);

	put(made, string + (uint64_t)made->layout->GChead_gct, GCT_STRING, 1);
	put(made, string + (uint64_t)made->layout->GCstr_len, length, sizeof(uint32_t));
	for (size_t i = 0; i < length; i++)
		put(made, string + (uint64_t)made->layout->GCstr_size + i, (uint8_t)text[i], 1);
	return tagged(made, TAG_STR, string);
}

/* A table with these pairs, up to one without a key, and an element at REF. */
static uint64_t make_table(struct made *made, const struct pair pairs[PAIRS_MAX], uint64_t element)
{
	const struct layout *layout = made->layout;
	uint64_t table = take(made, (size_t)layout->GCtab_size);
	uint64_t array = take(made, (REF + 1) * SLOT_SIZE);
	uint64_t nodes = take(made, PAIRS_MAX * (size_t)layout->Node_size);
	unsigned ref = layout_ref_size(layout);

	put(made, table + (uint64_t)layout->GChead_gct, GCT_TABLE, 1);
	put(made, table + (uint64_t)layout->GCtab_array, array, ref);
	put(made, table + (uint64_t)layout->GCtab_asize, REF + 1, sizeof(uint32_t));
	put(made, table + (uint64_t)layout->GCtab_node, nodes, ref);
	put(made, table + (uint64_t)layout->GCtab_hmask, PAIRS_MAX - 1, sizeof(uint32_t));
	put(made, array + REF * SLOT_SIZE, element, SLOT_SIZE);
	for (int i = 0; i < PAIRS_MAX; i++) {
		uint64_t node = nodes + (uint64_t)i * (uint64_t)layout->Node_size, nil = UINT64_MAX;
		bool is_used = pairs[i].key != NULL;

		put(made, node + (uint64_t)layout->Node_key, is_used ? make_string(made, pairs[i].key) : nil,
		    SLOT_SIZE);
		put(made, node + (uint64_t)layout->Node_val, is_used ? pairs[i].value : nil, SLOT_SIZE);
	}
	return tagged(made, TAG_TAB, table);
}

#define TABLE(...) make_table(made, (const struct pair[PAIRS_MAX]){ __VA_ARGS__ }, UINT64_MAX)
#define STRING(text) make_string(made, text)

static void make_state(struct made *made, bool is_kong)
{
	uint64_t route = TABLE({ is_kong ? "id" : "name", STRING("orders") }), ctx, ngx, loaded, tables;

	if (is_kong)
		ctx = TABLE({ "service", TABLE({ "name", STRING("shop") }) }, { "route", route });
	else
		ctx = TABLE({ "api_ctx", TABLE({ "matched_route", TABLE({ "value", route }) }) });
	tables = make_table(made, (const struct pair[PAIRS_MAX]){ { NULL, 0 } }, ctx);
	ngx = TABLE({ "config", TABLE({ "subsystem", STRING("http") }) });
	loaded = TABLE({ is_kong ? "kong" : "apisix", TABLE({ NULL, 0 }) }, { "ngx", ngx });
	put(made, GLOBAL + (uint64_t)made->layout->g_registrytv,
	    TABLE({ "_LOADED", loaded }, { "ngx_lua_ctx_tables", tables }), SLOT_SIZE);
	put(made, CONTEXT + (uint64_t)request_layout.ctx_ref, REF, sizeof(uint32_t));
}

static bool change(struct made *made, struct fuzz_input *input)
{
	bool is_changed = false;

	for (int i = 0; i < CHANGES_MAX && fuzz_left(input) > 0; i++) {
		size_t word = fuzz_take(input, 2) % (made->end / WORD);

		put(made, FUZZ_BASE + word * WORD, fuzz_take(input, WORD), WORD);
		is_changed = true;
	}
	return is_changed;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct made made;
	const struct request_context context = { .address = CONTEXT };
	struct fuzz_input input = fuzz_input(data, size);
	uint64_t choice = fuzz_take(&input, 1);
	bool is_kong = choice & CHOICE_KONG, is_changed = false;
	struct fuzz_input bytes = fuzz_input(made.bytes, sizeof(made.bytes));
	struct fuzz_memory memory = fuzz_memory(&bytes);
	struct gateway *gateway;
	char route[ROUTE_BYTES];

	memset(&made, 0, sizeof(made));
	made.layout = fuzz_layout(choice & CHOICE_GC32 ? LAYOUT_X64_GC32 : LAYOUT_X64_GC64);
	made.end = CONTEXT_BYTES + GLOBAL_BYTES;
	make_state(&made, is_kong);
	if (choice & CHOICE_CHANGED_FIRST)
		is_changed = change(&made, &input);
	gateway = gateway_new(&memory.memory, made.layout, GLOBAL);
	fuzz_check(gateway || is_changed, "the gateway is found");
	/* Once more, with the keys that are known then. */
	for (int i = 0; i < 2 && gateway; i++) {
		bool is_matched = gateway_route(&memory.memory, &request_layout, made.layout, gateway,
						&context, route);

		fuzz_check(is_matched || is_changed, "the route is found");
		fuzz_check(!is_matched || memchr(route, '\0', sizeof(route)), "a route ends");
		fuzz_check(is_changed ||
				   strcmp(route, is_kong ? "route orders of shop" : "route orders") == 0,
			   "the route is right");
		is_changed |= change(&made, &input);
	}
	gateway_free(gateway);
	return 0;
}

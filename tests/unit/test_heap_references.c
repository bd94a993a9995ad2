/* SPDX-License-Identifier: MIT */
/*
 * What traces and string.buffers hold in a heap, what these and cdata take, and what makes tables weak:
 * in that of a real program (test_heap_read.c), whose trace gets other constants and links, which gets a
 * string.buffer, and of which a cdata has no type and a metatable no mode any more.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/kept_heap.h"
#include "unwind/lua/luajit.h"
#include "unwind/values/ctype_text.h"

enum {
	BUFFER = 0x30000100, /* on a page of which nothing is kept */
	BUFFER_BYTES = 0x100000,
	BUFFER_LENGTH = 100,
	BUFFER_WRITTEN = 60,
	BUFFER_READ = 25,
	UDTYPE_BUFFER = 3,
	EXT = 1, /* it is an SBufExt, as all of these are */
	COW = 2,
	BORROWED = 4,
	STATE = 0x5000, /* where its state would be */
	WORD = 8,
	IR_BYTES = 8,
	IR_OPCODE = 5,
	REF_BIAS = 0x8000,
	CTYPE_KIND_SHIFT = 28, /* lj_ctype.h */
};

static const char *const builds[] = { "heap-gc64.process", "heap-gc32.process" };
enum { BUILDS = sizeof(builds) / sizeof(builds[0]) };

static void load(size_t build)
{
	load_heap(builds[build]);
	read_heap();
}

static unsigned ref_size(void)
{
	return layout_ref_size(&vm.layout);
}

static uint64_t ref_at(uint64_t address)
{
	return ref_size() == WORD ? word(address) : word(address) & UINT32_MAX;
}

static uint32_t node_at(uint64_t address)
{
	for (uint32_t i = 0; i < graph.node_count; i++)
		if (graph.nodes[i].address == address && graph.nodes[i].kind != HEAP_KIND_ROOT)
			return i;
	fail_msg("no object at 0x%llx", (unsigned long long)address);
	return HEAP_NO_NODE;
}

static uint64_t of_kind(enum heap_kind kind)
{
	for (uint32_t i = 0; i < graph.node_count; i++)
		if (graph.nodes[i].kind == kind)
			return graph.nodes[i].address;
	fail();
	return 0;
}

/* Does one object hold another so? */
static bool holds(uint64_t by, enum heap_hold hold, const char *text, uint64_t object)
{
	const struct heap_node *node = &graph.nodes[node_at(by)];

	for (uint32_t i = node->first_edge; i < node[1].first_edge; i++)
		if (graph.edges[i].hold == hold && graph.nodes[graph.edges[i].to].address == object &&
		    strcmp(heap_text(&graph, graph.edges[i].text), text) == 0)
			return true;
	return false;
}

static size_t count_held(uint64_t by, enum heap_hold hold)
{
	const struct heap_node *node = &graph.nodes[node_at(by)];
	size_t found = 0;

	for (uint32_t i = node->first_edge; i < node[1].first_edge; i++)
		found += graph.edges[i].hold == hold;
	return found;
}

/*---- Traces ----*/

static uint64_t trace;

static uint64_t trace_word(int32_t field, unsigned size)
{
	uint64_t value = 0;

	assert_int_equal(memory_read(&kept.memory, trace + (uint64_t)field, &value, size), MEMORY_OK);
	return value;
}

/* A constant of the trace: the first ones come first. In GC64 an object takes the place of two. */
static void put_constant(uint64_t number, uint8_t op, uint64_t object)
{
	const uint64_t at = trace_word(vm.layout.GCtrace_ir, WORD) +
			    (trace_word(vm.layout.GCtrace_nk, 4) + number) * IR_BYTES;

	put(at, 0, WORD);
	put(at + IR_OPCODE, op, 1);
	if (ref_size() == WORD)
		put(at + IR_BYTES, object, WORD);
	else
		put(at, object, 4);
}

static void a_trace_holds_its_constants(void **state)
{
	(void)state;
	for (size_t build = 0; build < BUILDS; build++) {
		uint64_t inner, weak, text, last;

		load(build);
		inner = address_of("inner");
		weak = address_of("weak");
		text = address_of("text");
		trace = of_kind(HEAP_KIND_TRACE);
		last = REF_BIAS - 3 - trace_word(vm.layout.GCtrace_nk, 4);
		assert_in_range(last, 3, 100);
		for (uint64_t i = 0; i <= last; i++)
			put_constant(i, (uint8_t)(vm.layout.IR_KGC - 1), inner);
		read_heap();
		assert_int_equal(count_held(trace, HEAP_HOLDS_CONSTANT), 0);
		put_constant(0, (uint8_t)vm.layout.IR_KGC, inner);
		put_constant(last, (uint8_t)vm.layout.IR_KGC, weak);
		read_heap();
		assert_int_equal(count_held(trace, HEAP_HOLDS_CONSTANT), 2);
		/* The place of nil, which is the last constant of all traces. */
		put_constant(last + 2, (uint8_t)vm.layout.IR_KGC, text);
		read_heap();
		assert_int_equal(count_held(trace, HEAP_HOLDS_CONSTANT), 2);
		assert_true(holds(trace, HEAP_HOLDS_CONSTANT, "", inner));
		assert_true(holds(trace, HEAP_HOLDS_CONSTANT, "", weak));
		/* Half of another constant, by chance. */
		put_constant(0, (uint8_t)vm.layout.IR_KGC, inner + 4);
		read_heap();
		assert_int_equal(count_held(trace, HEAP_HOLDS_CONSTANT), 1);
		assert_int_equal(uncertain(), 0);
		put(trace + (uint64_t)vm.layout.GCtrace_nk, REF_BIAS, 4);
		read_heap();
		assert_int_equal(count_held(trace, HEAP_HOLDS_CONSTANT), 0);
		end_heap();
	}
}

static void a_trace_holds_where_it_begins_and_what_it_leads_to(void **state)
{
	(void)state;
	for (size_t build = 0; build < BUILDS; build++) {
		int32_t links[3];

		load(build);
		links[0] = vm.layout.GCtrace_link;
		links[1] = vm.layout.GCtrace_nextroot;
		links[2] = vm.layout.GCtrace_nextside;
		trace = of_kind(HEAP_KIND_TRACE);
		for (size_t i = 0; i < 8; i++) {
			size_t expected = 0;

			for (size_t j = 0; j < 3; j++) {
				put(trace + (uint64_t)links[j], (i >> j) & 1, 2);
				expected += (i >> j) & 1;
			}
			read_heap();
			assert_int_equal(count_held(trace, HEAP_HOLDS_TRACE), expected);
			assert_int_equal(holds(trace, HEAP_HOLDS_TRACE, "", trace), expected > 0);
			assert_true(holds(trace, HEAP_HOLDS_PROTO, "",
					  trace_word(vm.layout.GCtrace_startpt, ref_size())));
		}
		/* One that was abandoned. */
		put(trace + (uint64_t)vm.layout.GCtrace_traceno, 0, 2);
		read_heap();
		assert_int_equal(count_held(trace, HEAP_HOLDS_TRACE), 0);
		assert_int_equal(count_held(trace, HEAP_HOLDS_CONSTANT), 0);
		assert_int_equal(count_held(trace, HEAP_HOLDS_PROTO), 0);
		end_heap();
	}
}

/*---- A string.buffer ----*/

struct words { /* SBufExt */
	uint64_t w, e, b, L, cowref, r, dict_str, dict_mt;
};

/* A field that was set to nil stays in the metatable as a key without a value. */
static void a_finalizer_that_was_taken_away_is_none(void **state)
{
	(void)state;
	for (size_t build = 0; build < BUILDS; build++) {
		const struct layout *layout = &vm.layout;
		uint64_t file, metatable, nodes, count;

		load(build);
		file = address_of("file");
		assert_true(graph.nodes[node_at(file)].flags & HEAP_FINALIZER);
		metatable = ref_at(file + (uint64_t)layout->GCudata_metatable);
		nodes = ref_at(metatable + (uint64_t)layout->GCtab_node);
		count = (word(metatable + (uint64_t)layout->GCtab_hmask) & UINT32_MAX) + 1;
		assert_in_range(count, 1, 64);
		for (uint64_t i = 0; i < count; i++)
			put(nodes + i * (uint64_t)layout->Node_size + (uint64_t)layout->Node_val, UINT64_MAX,
			    WORD);
		read_heap();
		assert_false(graph.nodes[node_at(file)].flags & HEAP_FINALIZER);
		end_heap();
	}
}

/*
 * sizeof(SBufExt), without its depth (lj_buf.h): L, cowref and the dictionaries are references, the rest
 * pointers.
 */
static uint64_t words_size(void)
{
	return 4 * WORD + 4 * ref_size();
}

/* After the first userdata on the list of all objects comes the buffer. */
static void put_buffer(const struct words *words)
{
	const struct layout *layout = &vm.layout;
	const unsigned ref = ref_size();
	const uint64_t proxy = address_of("proxy"), next = proxy + (uint64_t)layout->GChead_nextgc;
	const struct {
		uint64_t value;
		unsigned size;
	} values[] = { { words->w, WORD },       { words->e, WORD },     { words->b, WORD },
		       { words->L, ref },        { words->cowref, ref }, { words->r, WORD },
		       { words->dict_str, ref }, { words->dict_mt, ref } };
	uint64_t at = BUFFER + (uint64_t)layout->GCudata_size;

	if (ref_at(next) != BUFFER) {
		for (int32_t i = 0; i < layout->GCudata_size; i += 4)
			put(BUFFER + (uint64_t)i, word(proxy + (uint64_t)i), 4);
		put(next, BUFFER, ref);
	}
	put(BUFFER + (uint64_t)layout->GChead_gct + 1, UDTYPE_BUFFER, 1);
	put(BUFFER + (uint64_t)layout->GCudata_len, words_size(), 4);
	put(BUFFER + (uint64_t)layout->GCudata_metatable, 0, ref);
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); at += values[i++].size)
		put(at, values[i].value, values[i].size);
}

static const struct heap_node *read_buffer(const struct words *words)
{
	put_buffer(words);
	read_heap();
	return &graph.nodes[node_at(BUFFER)];
}

static struct words usual_buffer(void)
{
	return (struct words){ .b = BUFFER_BYTES,
			       .e = BUFFER_BYTES + BUFFER_LENGTH,
			       .w = BUFFER_BYTES + BUFFER_WRITTEN,
			       .r = BUFFER_BYTES + BUFFER_READ,
			       .L = STATE | EXT };
}

static void check_bytes(size_t build)
{
	uint64_t header;
	struct words words = usual_buffer();
	const struct heap_node *node;

	load(build);
	header = words_size();
	node = read_buffer(&words);
	assert_string_equal(heap_text(&graph, node->text), "string.buffer");
	assert_int_equal(node->bytes, (uint64_t)vm.layout.GCudata_size + header + BUFFER_LENGTH);
	assert_int_equal(node->slots, BUFFER_LENGTH);
	assert_int_equal(node->used, BUFFER_WRITTEN - BUFFER_READ);
	for (uint64_t flags = 1; flags < 8; flags++) {
		words.L = STATE | flags;
		node = read_buffer(&words);
		assert_int_equal(node->bytes, (uint64_t)vm.layout.GCudata_size + header +
						      (flags & (COW | BORROWED) ? 0 : BUFFER_LENGTH));
	}
	/* One that has never been written to. */
	words = (struct words){ .L = STATE | EXT };
	node = read_buffer(&words);
	assert_int_equal(node->bytes, (uint64_t)vm.layout.GCudata_size + header);
	assert_int_equal(node->slots, 0);
	end_heap();
}

static void a_buffer_has_bytes_of_its_own_or_shares_them(void **state)
{
	(void)state;
	for (size_t i = 0; i < BUILDS; i++)
		check_bytes(i);
}

/* It changed while it was read, or it is none. */
static void a_buffer_that_cannot_be_is_not_believed(void **state)
{
	const uint64_t bytes = 8 * WORD;
	struct words words = usual_buffer();
	const struct heap_node *node;

	(void)state;
	load(0);
	words.r = words.w;
	assert_int_equal(read_buffer(&words)->used, 0);
	words.r = words.w + 1;
	assert_int_equal(read_buffer(&words)->used, 0);
	words.r = words.b;
	words.w = words.e;
	assert_int_equal(read_buffer(&words)->used, BUFFER_LENGTH);
	words.w = words.e + 1;
	assert_int_equal(read_buffer(&words)->used, 0);
	words.w = words.e;
	words.r = words.b - 1;
	assert_int_equal(read_buffer(&words)->used, 0);
	words.e = words.b - 1;
	node = read_buffer(&words);
	assert_int_equal(node->bytes, (uint64_t)vm.layout.GCudata_size + bytes);
	words.e = words.b + UINT32_MAX;
	node = read_buffer(&words);
	assert_int_equal(node->slots, UINT32_MAX);
	words.e++;
	node = read_buffer(&words);
	assert_int_equal(node->bytes, (uint64_t)vm.layout.GCudata_size + bytes);
	assert_int_equal(node->slots, 0);
	end_heap();
}

static void check_references(size_t build)
{
	struct words words = usual_buffer();
	uint64_t inner, weak, text;

	load(build);
	inner = address_of("inner");
	weak = address_of("weak");
	text = address_of("text");
	read_buffer(&words);
	assert_int_equal(count_held(BUFFER, HEAP_HOLDS_OTHER), 0);
	words.dict_str = inner;
	read_buffer(&words);
	assert_int_equal(count_held(BUFFER, HEAP_HOLDS_OTHER), 1);
	assert_true(holds(BUFFER, HEAP_HOLDS_OTHER, "buffer", inner));
	words.dict_mt = weak;
	put(BUFFER + (uint64_t)vm.layout.GCudata_size + words_size(), text,
	    ref_size());     /* of the next object */
	words.cowref = text; /* of bytes that are its own, that is no reference */
	words.L = STATE | EXT | BORROWED;
	read_buffer(&words);
	assert_int_equal(count_held(BUFFER, HEAP_HOLDS_OTHER), 2);
	assert_true(holds(BUFFER, HEAP_HOLDS_OTHER, "buffer", weak));
	words.L = STATE | EXT | COW;
	read_buffer(&words);
	assert_int_equal(count_held(BUFFER, HEAP_HOLDS_OTHER), 3);
	assert_true(holds(BUFFER, HEAP_HOLDS_OTHER, "buffer", text));
	assert_int_equal(uncertain(), 0);
	end_heap();
}

static void a_buffer_holds_its_dictionaries_and_what_it_shares(void **state)
{
	(void)state;
	for (size_t i = 0; i < BUILDS; i++)
		check_references(i);
}

/*---- Types of cdata ----*/

/* A cdata gets this type, of which nothing can be known: it counts, and takes what a pointer does. */
static void check_unsized(uint64_t cdata, uint64_t type)
{
	put(cdata + (uint64_t)vm.layout.GChead_gct + 1, type, 2);
	read_heap();
	assert_int_equal(account.uncertain.unsized_objects, 1);
	assert_int_equal(graph.nodes[node_at(cdata)].bytes, (ref_size() == WORD ? 3 : 2) * WORD);
}

static void a_type_that_is_none_has_no_size(void **state)
{
	(void)state;
	for (size_t i = 0; i < BUILDS; i++) {
		uint64_t cdata, types, type, top;

		load(i);
		cdata = address_of("long");
		types = ref_at(kept.g + (uint64_t)vm.layout.g_ctype_state);
		top = word(types + WORD) & UINT32_MAX;
		type = word(cdata + (uint64_t)vm.layout.GChead_gct + 1) & UINT16_MAX;
		assert_in_range(type, 1, top - 1);
		assert_int_equal(account.uncertain.unsized_objects, 0);
		check_unsized(cdata, top);
		/* An attribute of itself. */
		put(word(types) + type * WORD * (ref_size() == WORD ? 3 : 2),
		    (uint64_t)CT_ATTRIB << CTYPE_KIND_SHIFT | type, 4);
		check_unsized(cdata, type);
		end_heap();
	}
}

/*---- Metatables ----*/

/* What its metatable has under another name does not. */
static void the_mode_makes_a_table_weak(void **state)
{
	(void)state;
	for (size_t i = 0; i < BUILDS; i++) {
		uint64_t table, metatable, name, key, bits, count;

		load(i);
		bits = ref_size() == WORD ? (UINT64_C(1) << 47) - 1 : UINT32_MAX;
		table = address_of("weak");
		name = address_of("text");
		assert_int_equal(graph.nodes[node_at(table)].flags, HEAP_WEAK);
		metatable = ref_at(table + (uint64_t)vm.layout.GCtab_metatable);
		count = (word(metatable + (uint64_t)vm.layout.GCtab_hmask) & UINT32_MAX) + 1;
		assert_in_range(count, 1, 4);
		key = ref_at(metatable + (uint64_t)vm.layout.GCtab_node) + (uint64_t)vm.layout.Node_key;
		for (uint64_t j = 0; j < count; j++, key += (uint64_t)vm.layout.Node_size)
			put(key, (word(key) & ~bits) | name, WORD);
		read_heap();
		assert_int_equal(graph.nodes[node_at(table)].flags, 0);
		assert_int_equal(uncertain(), 0);
		end_heap();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_trace_holds_its_constants),
		cmocka_unit_test(a_trace_holds_where_it_begins_and_what_it_leads_to),
		cmocka_unit_test(a_finalizer_that_was_taken_away_is_none),
		cmocka_unit_test(a_buffer_has_bytes_of_its_own_or_shares_them),
		cmocka_unit_test(a_buffer_that_cannot_be_is_not_believed),
		cmocka_unit_test(a_buffer_holds_its_dictionaries_and_what_it_shares),
		cmocka_unit_test(a_type_that_is_none_has_no_size),
		cmocka_unit_test(the_mode_makes_a_table_weak),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

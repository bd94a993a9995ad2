/* SPDX-License-Identifier: MIT */
/*
 * The heap of a real program, as it lay in a process: its graph adds up, and what a test changes in it is
 * told.
 *
 * With LJSPY_KEEP=1 the process runs and is kept anew.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/linux/proc/maps.h"
#include "tests/unit/heap_walk.h"
#include "tests/unit/kept_heap.h"
#include "tests/unit/live_process.h"
#include "unwind/lua/luajit.h"

enum {
	WHITES = 3,        /* of GChead.marked and gc.currentwhite */
	FIXED = 0x20,      /* of GChead.marked */
	OBJECTS_MIN = 300, /* of a LuaJIT that has opened its libraries */
	FIXED_MIN = 20,    /* words of the language */
};

/* With references of 64 bits, and of 32 bits. */
static const struct build {
	const char *luajit, *process, *text;
} builds[] = {
	{ LIVE_LUAJIT, "heap-gc64.process", "heap-gc64.txt" },
	{ "build/packages/bullseye/luajit/usr/bin/luajit", "heap-gc32.process", "heap-gc32.txt" },
};

enum { BUILDS = sizeof(builds) / sizeof(builds[0]) };

static const char program[] =
	"local ffi = require('ffi')\n"
	"ffi.cdef('struct point { double x, y; };')\n"
	"local captured, count = { 'captured' }, 0\n"
	"local function sum(n)\n"
	"  local total = 0\n"
	"  for i = 1, n do total = total + #captured end\n"
	"  count = count + 1\n"
	"  return total\n"
	"end\n"
	"sum(200)\n"
	"jit.off()\n"
	"local parked = coroutine.create(function(argument, ...)\n"
	"  local inside = { argument }\n"
	"  coroutine.yield(inside)\n"
	"  return inside\n"
	"end)\n"
	"coroutine.resume(parked, 'argument', 'vararg')\n"
	"keep = {\n"
	"  threads = { parked = parked, new = coroutine.create(function() return captured end) },\n"
	"  tables = {\n"
	"    weak = setmetatable({}, { __mode = 'k' }), both = setmetatable({ captured }, { __mode = 'kv' }),\n"
	"    values = setmetatable({ captured }, { __mode = 'v', __index = string }),\n"
	"    inner = { 1, 2 }, [true] = false, [1.5] = {}, [captured] = 'by table',\n"
	"  },\n"
	"  cdata = {\n"
	"    point = ffi.gc(ffi.new('struct point'), function() end), long = 5LL,\n"
	"    array = ffi.new('char[?]', 1000), pointer = ffi.new('struct point *[3]'),\n"
	"    type = ffi.typeof('struct point'),\n"
	"  },\n"
	"  proxy = newproxy(true), text = 'a text of its own', sum = sum, builtin = string.gsub, file = io.stderr,\n"
	"}\n"
	"keep.self, keep.closed = keep, (function() local value = {} return function() return value end end)()\n"
	"keep.last = {}\n"
	"collectgarbage() collectgarbage() collectgarbage('stop')\n"
	"io.write('ready') io.flush()\n"
	"io.read('*l')\n";

/* Run the program, and keep what is read of its heap. */
static void keep(const struct build *build)
{
	struct kept_process *process = kept_process_new();
	struct heap_range ranges[RANGES_MAX];
	const struct maps *maps;
	struct live live;
	size_t count = 0;

	live_begin_with(&live, build->luajit, program, 0, 1);
	process->live = lua_process_memory(live.process);
	process->layout = vm.layout = live.global->vm->layout;
	process->g = kept.g = live.global->g;
	process->told = strdup("");
	maps = lua_process_maps(live.process);
	for (size_t i = 0; i < maps_count(maps); i++) {
		const struct mapping *mapping = maps_at(maps, i);

		assert_in_range(count, 0, RANGES_MAX - 1);
		if ((mapping->access & MAPPING_WRITE) && (mapping->access & MAPPING_READ))
			ranges[count++] = (struct heap_range){ mapping->begin, mapping->end, false };
	}
	assert_int_equal(read_from(&process->memory, ranges, count), 0);
	kept_process_save(process, build->process);
	kept_process_free(process);
	live_end(&live);
}

static void load(const struct build *build)
{
	static bool is_kept[BUILDS];

	if (getenv("LJSPY_KEEP") && !is_kept[build - builds])
		keep(build);
	is_kept[build - builds] = true;
	load_heap(build->process);
}

static int begin(void **state)
{
	(void)state;
	load(&builds[0]);
	return 0;
}

static int end(void **state)
{
	(void)state;
	end_heap();
	return 0;
}

/*---- What is there ----*/

static void a_heap_is_what_its_program_made(void **state)
{
	for (size_t i = 0; i < BUILDS; i++) {
		struct kept_text text;

		end(state);
		load(&builds[i]);
		read_heap();
		assert_int_equal(account.sum, account.gc_total);
		assert_int_equal(uncertain(), 0);
		kept_text_begin(&text);
		heap_walk_print(text.out, &graph, "keep");
		kept_text_check(&text, builds[i].text);
	}
}

static void contents_of_strings_are_kept_only_if_asked_for(void **state)
{
	struct heap_graph whole, without;

	(void)state;
	read_heap();
	whole = graph;
	assert_int_equal(heap_read(copy, &vm, kept.g, &(struct heap_read_options){ 0 }, &without, &account),
			 0);
	assert_int_equal(whole.node_count, without.node_count);
	for (uint32_t i = 0; i < whole.node_count; i++) {
		assert_int_equal(whole.nodes[i].bytes, without.nodes[i].bytes);
		if (whole.nodes[i].kind == HEAP_KIND_STRING)
			assert_int_equal(without.nodes[i].text, HEAP_TEXT_NONE);
		else
			assert_string_equal(heap_text(&whole, whole.nodes[i].text),
					    heap_text(&without, without.nodes[i].text));
	}
	assert_string_equal(heap_text(&whole, whole.nodes[node_of("text")].text), "a text of its own");
	free(without.nodes);
	free(without.edges);
	free(without.texts);
}

enum { CALLS_MAX = 64 };

struct calls {
	struct function_object asked[CALLS_MAX];
	size_t count;
	size_t short_at; /* memory is short at this call; 0: at none */
};

static int name_c(void *context, const struct function_object *function,
		  char ret_text[static FRAME_LABEL_SIZE])
{
	struct calls *calls = context;

	assert_in_range(calls->count, 0, CALLS_MAX - 1);
	calls->asked[calls->count++] = *function;
	snprintf(ret_text, FRAME_LABEL_SIZE, "function number %zu [c]", calls->count);
	return calls->count == calls->short_at ? -ENOMEM : 0;
}

static void functions_in_c_that_hold_something_are_told_by_the_reader(void **state)
{
	struct calls calls = { .count = 0 };
	struct heap_graph named;

	(void)state;
	read_heap();
	assert_int_equal(heap_read(copy, &vm, kept.g,
				   &(struct heap_read_options){ .name_c = name_c, .context = &calls }, &named,
				   &account),
			 0);
	assert_in_range(calls.count, 2, CALLS_MAX);
	for (uint32_t i = 0; i < named.node_count; i++) {
		char wanted[FRAME_LABEL_SIZE];
		size_t at = 0;

		while (at < calls.count && calls.asked[at].address != named.nodes[i].address)
			at++;
		if (at == calls.count)
			continue;
		snprintf(wanted, sizeof(wanted), "function number %zu [c]", at + 1);
		assert_int_equal(named.nodes[i].kind, HEAP_KIND_FUNCTION);
		assert_string_equal(heap_text(&named, named.nodes[i].text), wanted);
		assert_int_not_equal(calls.asked[at].ffid, FF_LUA);
		assert_int_not_equal(calls.asked[at].f, 0);
	}
	free(named.nodes);
	free(named.edges);
	free(named.texts);
}

/* Without its name, what a function holds would have another path than at other moments. */
static void a_heap_without_room_for_a_name_is_not_read(void **state)
{
	struct heap_graph named = { 0 };

	(void)state;
	read_heap();
	for (size_t i = 1; i <= 2; i++) {
		struct calls calls = { .short_at = i };

		assert_int_equal(heap_read(copy, &vm, kept.g,
					   &(struct heap_read_options){ .name_c = name_c, .context = &calls },
					   &named, &account),
				 -ENOMEM);
		assert_in_range(calls.count, 2, CALLS_MAX);
		assert_null(named.nodes);
	}
}

static void the_collectors_state_has_luajits_name(void **state)
{
	static const char *const names[] = { "pause", "propagate", "atomic", "sweep strings",
					     "sweep", "finalize",  "?",      "?" };

	(void)state;
	for (uint8_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		put(kept.g + (uint64_t)vm.layout.g_gc_state, i, 1);
		read_heap();
		assert_string_equal(account.gc_state, names[i]);
	}
}

static void objects_add_up_to_what_the_vm_has_allocated(void **state)
{
	size_t kinds[HEAP_KIND_COUNT] = { 0 };
	uint64_t sum = 0;

	(void)state;
	read_heap();
	for (uint32_t i = 0; i < graph.node_count; i++) {
		kinds[graph.nodes[i].kind]++;
		sum += graph.nodes[i].bytes;
	}
	assert_int_equal(sum, account.sum);
	assert_int_equal(account.sum, account.gc_total);
	assert_int_equal(uncertain(), 0);
	assert_int_equal(account.dead_objects, 0);
	assert_true(account.dead_known);
	assert_true(graph.node_count > OBJECTS_MIN);
	assert_int_equal(kinds[HEAP_KIND_ROOT], 1);
	assert_int_equal(kinds[HEAP_KIND_THREAD], 3);
	assert_int_equal(kinds[HEAP_KIND_TRACE], 1);
	assert_string_equal(account.gc_state, "pause");
}

static void what_the_vm_holds_is_held_by_the_root(void **state)
{
	static const char *const tables[] = { "_G",  "registry",  "package.loaded", "metatable of strings",
					      "FFI", "finalizers" };
	uint32_t fixed = HEAP_NO_NODE;

	(void)state;
	read_heap();
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		assert_int_equal(graph.nodes[root(tables[i])].kind, HEAP_KIND_TABLE);
	assert_int_equal(graph.nodes[root("main thread")].kind, HEAP_KIND_THREAD);
	assert_int_equal(graph.nodes[root("io.input()")].kind, HEAP_KIND_USERDATA);
	assert_int_equal(graph.nodes[root("io.output()")].kind, HEAP_KIND_USERDATA);
	assert_int_equal(field(root("package.loaded"), "_G"), root("_G"));
	assert_int_equal(field(root("metatable of strings"), "__index"),
			 field(root("package.loaded"), "string"));
	assert_true(held(HEAP_ROOT, HEAP_HOLDS_ROOT, "fixed string", &fixed) > FIXED_MIN);
	assert_int_equal(graph.nodes[fixed].kind, HEAP_KIND_STRING);
	assert_true(held(HEAP_ROOT, HEAP_HOLDS_ROOT, "name of a metamethod", &fixed) > FIXED_MIN / 2);
	assert_int_equal(memcmp(heap_text(&graph, graph.nodes[fixed].text), "__", 2), 0);
	assert_false(has_root("waits for its finalizer"));
	assert_false(has_root("running coroutine"));
	assert_int_equal(graph.nodes[node_of("weak")].flags, HEAP_WEAK);
}

/* What is no object: its string table and the like. */
static void memory_of_the_vm_itself_is_held_by_the_root(void **state)
{
	const struct heap_node *strings;
	size_t count = 0;

	(void)state;
	read_heap();
	for (uint32_t i = 0; i < graph.node_count; i++) {
		uint32_t node = HEAP_NO_NODE;

		if (graph.nodes[i].kind != HEAP_KIND_VM)
			continue;
		assert_int_equal(
			held(HEAP_ROOT, HEAP_HOLDS_ROOT, heap_text(&graph, graph.nodes[i].text), &node), 1);
		assert_int_equal(node, i);
		assert_true(graph.nodes[i].bytes > 0);
		count++;
	}
	assert_true(count > 1);
	strings = &graph.nodes[root("string table")];
	assert_int_equal(strings->slots, (uint32_t)word(kept.g + (uint64_t)vm.layout.g_strmask) + 1);
	assert_int_equal(strings->used, (uint32_t)word(kept.g + (uint64_t)vm.layout.g_strnum));
	assert_int_equal(strings->bytes, strings->slots * sizeof(uint64_t));
}

static void a_measured_heap_is_the_one_that_is_read(void **state)
{
	struct heap_account measured = { 0 };

	(void)state;
	read_heap();
	assert_int_equal(heap_measure(copy, &vm, kept.g, &measured), 0);
	assert_int_equal(measured.sum, account.sum);
	assert_int_equal(measured.gc_total, account.gc_total);
	assert_int_equal(measured.uncertain.broken_chains, 0);
}

/* lj_obj.h: GCRootID, behind the names of metamethods: metatables by type, then what the library holds. */
static void each_metatable_of_a_type_is_held_by_the_root(void **state)
{
	static const char *const names[] = {
		"metatable of nil",       "metatable of booleans",
		"metatable of booleans",  "metatable of light userdata",
		"metatable of strings",   NULL,
		"metatable of threads",   NULL,
		"metatable of functions", NULL,
		"metatable of cdata",     "metatable of tables",
		"metatable of userdata",  "metatable of numbers",
	};
	uint32_t node = HEAP_NO_NODE;

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		uint64_t inner;
		size_t metamethods;

		end(state);
		load(&builds[0]);
		read_heap();
		inner = address_of("inner");
		metamethods = held(HEAP_ROOT, HEAP_HOLDS_ROOT, "name of a metamethod", &node);
		put(kept.g + (uint64_t)vm.layout.g_gcroot + (metamethods + i) * 8, inner, 8);
		read_heap();
		assert_int_equal(held(HEAP_ROOT, HEAP_HOLDS_ROOT, "name of a metamethod", &node),
				 metamethods);
		assert_int_equal(held(HEAP_ROOT, HEAP_HOLDS_ROOT, names[i] ? names[i] : "gcroot", &node), 1);
		assert_int_equal(graph.nodes[node].address, inner);
	}
}

/*---- Other threads and userdata ----*/

/* The last one that ran counts only while it has a C frame. */
static void the_coroutine_that_runs_is_held_by_the_root(void **state)
{
	uint64_t parked;

	(void)state;
	read_heap();
	parked = address_of("parked");
	put(kept.g + (uint64_t)vm.layout.g_cur_L, parked, 8);
	put(parked + (uint64_t)vm.layout.L_cframe, 0, 8);
	read_heap();
	assert_false(has_root("running coroutine"));
	put(parked + (uint64_t)vm.layout.L_cframe, 0x1000, 8);
	read_heap();
	assert_int_equal(graph.nodes[root("running coroutine")].address, parked);
	/* One that is gone. */
	put(kept.g + (uint64_t)vm.layout.g_cur_L, 0x1000, 8);
	read_heap();
	assert_false(has_root("running coroutine"));
}

/* Take a userdata off the list that begins with the main thread, and make it a ring. */
static void let_it_wait(uint64_t userdata)
{
	const int32_t next = vm.layout.GChead_nextgc;
	uint64_t at = word(kept.g + (uint64_t)vm.layout.g_gc_root);

	while (at && word(at + (uint64_t)next) != userdata)
		at = word(at + (uint64_t)next);
	assert_int_not_equal(at, 0);
	put(at + (uint64_t)next, word(userdata + (uint64_t)next), 8);
	put(userdata + (uint64_t)next, userdata, 8);
	put(kept.g + (uint64_t)vm.layout.g_gc_root + 5 * sizeof(uint64_t), userdata, 8); /* gc.mmudata */
}

static void userdata_that_wait_for_finalizers_are_listed(void **state)
{
	uint32_t nodes;
	uint64_t proxy;

	(void)state;
	read_heap();
	nodes = graph.node_count;
	proxy = address_of("proxy");
	let_it_wait(proxy);
	read_heap();
	assert_int_equal(graph.nodes[root("waits for its finalizer")].address, proxy);
	assert_int_equal(graph.node_count, nodes);
	assert_int_equal(account.sum, account.gc_total);
	assert_int_equal(uncertain(), 0);
}

/*---- What is wrong ----*/

static void an_object_of_the_other_white_is_dead(void **state)
{
	uint8_t white = 0, marked = 0;
	uint64_t inner;
	uint32_t node;

	(void)state;
	read_heap();
	inner = address_of("inner");
	assert_int_equal(memory_read(&kept.memory, kept.g + (uint64_t)vm.layout.g_gc_state - 1, &white, 1),
			 MEMORY_OK);
	assert_int_equal(memory_read(&kept.memory, inner + (uint64_t)vm.layout.GChead_marked, &marked, 1),
			 MEMORY_OK);
	marked = (uint8_t)((marked & ~WHITES) | ((white & WHITES) ^ WHITES));
	put(inner + (uint64_t)vm.layout.GChead_marked, marked, 1);
	read_heap();
	node = node_of("inner");
	assert_int_equal(account.dead_objects, 1);
	assert_int_equal(account.dead_bytes, graph.nodes[node].bytes);
	assert_int_equal(graph.nodes[node].flags, HEAP_DEAD);
	assert_int_equal(account.sum, account.gc_total);
	/* The sweep keeps it nevertheless if it is fixed, as names of metamethods and reserved words are. */
	put(inner + (uint64_t)vm.layout.GChead_marked, marked | FIXED, 1);
	read_heap();
	assert_int_equal(account.dead_objects, 0);
	assert_int_equal(graph.nodes[node_of("inner")].flags, 0);
}

/* Read the heap: its first object, and how many nodes it has. */
static uint64_t read_first(uint32_t *ret_nodes)
{
	read_heap();
	*ret_nodes = graph.node_count;
	return word(kept.g + (uint64_t)vm.layout.g_gc_root);
}

static void a_chain_that_leads_back_is_broken(void **state)
{
	uint32_t nodes;
	uint64_t first = read_first(&nodes);

	(void)state;
	put(word(first + (uint64_t)vm.layout.GChead_nextgc) + (uint64_t)vm.layout.GChead_nextgc, first, 8);
	read_heap();
	assert_in_range(account.uncertain.broken_chains, 1, 2);
	assert_in_range(graph.node_count, 2, nodes - 1);
	assert_true(account.sum < account.gc_total);
	/* What is gone is held by nothing, but what held it says so. */
	assert_true(account.uncertain.dangling > 0);
}

/* When objects are only counted, nothing tells that one comes again. It ends all the same, and says so. */
static void only_so_many_objects_are_counted(void **state)
{
	struct heap_account measured = { 0 };
	uint32_t nodes;
	uint64_t first = read_first(&nodes);

	(void)state;
	put(first + (uint64_t)vm.layout.GChead_nextgc, first, 8);
	read_heap();
	assert_int_equal(account.uncertain.left_out, 0);
	assert_int_equal(heap_measure(copy, &vm, kept.g, &measured), 0);
	assert_in_range(measured.uncertain.left_out, 1, nodes);
	assert_int_equal(measured.uncertain.broken_chains, 0);
}

static void an_object_of_no_type_ends_its_chain(void **state)
{
	uint64_t text;

	(void)state;
	read_heap();
	text = address_of("text");
	put(text + (uint64_t)vm.layout.GChead_gct, 0x7f, 1);
	read_heap();
	assert_int_equal(account.uncertain.unknown_objects, 1);
	assert_int_equal(account.uncertain.broken_chains, 1);
	assert_true(account.uncertain.dangling > 0);
}

static void an_object_that_cannot_be_read_is_told(void **state)
{
	uint64_t inner;

	(void)state;
	read_heap();
	inner = address_of("inner");
	kept_pages_forget(&kept, inner);
	read_heap();
	assert_in_range(account.uncertain.unread_objects, 1, 100);
	assert_true(account.uncertain.broken_chains > 0);
	assert_true(account.sum < account.gc_total);
}

static void a_state_that_cannot_be_read_has_no_heap(void **state)
{
	struct heap_account measured = { 0 };

	(void)state;
	read_heap();
	kept_pages_forget(&kept, kept.g + (uint64_t)vm.layout.g_mainthref);
	assert_int_equal(try_to_read(), -EIO);
	assert_null(graph.nodes);
	assert_int_equal(heap_measure(copy, &vm, kept.g, &measured), -EIO);
}

static void a_reference_to_no_object_dangles(void **state)
{
	uint64_t inner;

	(void)state;
	read_heap();
	inner = address_of("inner");
	/* Its second element, in the array part: a table where none is. */
	put(word(inner + (uint64_t)vm.layout.GCtab_array) + 2 * sizeof(uint64_t),
	    (uint64_t)(int64_t)TAG_TAB << 47 | (inner + 8), 8);
	read_heap();
	assert_int_equal(account.uncertain.dangling, 1);
	assert_int_equal(account.sum, account.gc_total);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(a_heap_is_what_its_program_made),
		TEST(contents_of_strings_are_kept_only_if_asked_for),
		TEST(functions_in_c_that_hold_something_are_told_by_the_reader),
		TEST(a_heap_without_room_for_a_name_is_not_read),
		TEST(the_collectors_state_has_luajits_name),
		TEST(objects_add_up_to_what_the_vm_has_allocated),
		TEST(what_the_vm_holds_is_held_by_the_root),
		TEST(memory_of_the_vm_itself_is_held_by_the_root),
		TEST(each_metatable_of_a_type_is_held_by_the_root),
		TEST(a_measured_heap_is_the_one_that_is_read),
		TEST(the_coroutine_that_runs_is_held_by_the_root),
		TEST(userdata_that_wait_for_finalizers_are_listed),
		TEST(an_object_of_the_other_white_is_dead),
		TEST(a_chain_that_leads_back_is_broken),
		TEST(only_so_many_objects_are_counted),
		TEST(an_object_of_no_type_ends_its_chain),
		TEST(an_object_that_cannot_be_read_is_told),
		TEST(a_state_that_cannot_be_read_has_no_heap),
		TEST(a_reference_to_no_object_dangles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

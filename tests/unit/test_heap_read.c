/* SPDX-License-Identifier: MIT */
/*
 * The heap of a real program, as it lay in a process: its graph adds up, and what a test changes in it is told.
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
#include "tests/unit/kept_pages.h"
#include "tests/unit/live_process.h"
#include "unwind/heap/heap_read.h"
#include "unwind/lua/luajit.h"

enum {
	RANGES_MAX = 1024,
	WHITES = 3,        /* of GChead.marked and gc.currentwhite */
	OBJECTS_MIN = 300, /* of a LuaJIT that has opened its libraries */
	FIXED_MIN = 20,    /* words of the language */
};

static const char process_file[] = "heap-gc64.process";

static const char program[] =
	"collectgarbage() collectgarbage('stop')\n"
	"local parked = coroutine.create(function() coroutine.yield() end)\n"
	"coroutine.resume(parked)\n"
	"keep = { parked = parked, proxy = newproxy(true), text = 'a text of its own', inner = { 1, 2 } }\n"
	"keep.weak = setmetatable({}, { __mode = 'k' })\n"
	"io.write('ready') io.flush()\n"
	"io.read('*l')\n";

static struct kept_pages kept;
static struct vm_code vm;
static struct heap_copy *copy;
static struct heap_graph graph;
static struct heap_account account;

static void forget_graph(void)
{
	free(graph.nodes);
	free(graph.edges);
	free(graph.texts);
	graph = (struct heap_graph){ 0 };
	heap_copy_free(copy);
	copy = NULL;
}

static int read_from(struct memory *memory, const struct heap_range *ranges, size_t count)
{
	forget_graph();
	copy = heap_copy_new(memory);
	account = (struct heap_account){ 0 };
	assert_non_null(copy);
	assert_int_equal(heap_copy_set_regions(copy, ranges, count), 0);
	return heap_read(copy, &vm, kept.g, &(struct heap_read_options){ .strings = true }, &graph, &account);
}

/* Run the program, and keep what is read of its heap. */
static void keep(void)
{
	struct kept_process *process = kept_process_new();
	struct heap_range ranges[RANGES_MAX];
	const struct maps *maps;
	struct live live;
	size_t count = 0;

	live_begin(&live, program, 0, 1);
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
	kept_process_save(process, process_file);
	kept_process_free(process);
	live_end(&live);
}

static int begin(void **state)
{
	static bool is_kept;

	(void)state;
	if (getenv("LJSPY_KEEP") && !is_kept)
		keep();
	is_kept = true;
	kept_pages_load(&kept, process_file);
	vm.layout = kept.layout;
	return 0;
}

static int end(void **state)
{
	(void)state;
	forget_graph();
	kept_pages_free(&kept);
	return 0;
}

static int compare_pages(const void *a, const void *b)
{
	const struct kept_page *left = a, *right = b;

	return (left->address > right->address) - (left->address < right->address);
}

static int try_to_read(void)
{
	struct heap_range ranges[RANGES_MAX];
	size_t count = 0;

	qsort(kept.pages, kept.count, sizeof(*kept.pages), compare_pages);
	assert_in_range(kept.count, 1, RANGES_MAX);
	for (size_t i = 0; i < kept.count; i++)
		ranges[count++] = (struct heap_range){ kept.pages[i].address,
						       kept.pages[i].address + KEPT_PAGE, false };
	return read_from(&kept.memory, ranges, count);
}

static void read_heap(void)
{
	assert_int_equal(try_to_read(), 0);
}

static uint64_t uncertain(void)
{
	const struct heap_uncertain *all = &account.uncertain;

	return all->unread_objects + all->unread_bytes + all->broken_chains + all->unknown_objects +
	       all->dangling + all->unsized_objects + all->changed_pages + all->changed_objects +
	       all->left_out;
}

/* All that is held by a node in this way, under this name; the last of them. */
static size_t held(uint32_t by, enum heap_hold hold, const char *text, uint32_t *ret_node)
{
	const struct heap_node *node = &graph.nodes[by];
	size_t count = 0;

	for (uint32_t i = node->first_edge; i < node[1].first_edge; i++) {
		if (graph.edges[i].hold != hold || strcmp(heap_text(&graph, graph.edges[i].text), text) != 0)
			continue;
		*ret_node = graph.edges[i].to;
		count++;
	}
	return count;
}

static uint32_t root(const char *text)
{
	uint32_t node = HEAP_NO_NODE;

	assert_int_equal(held(HEAP_ROOT, HEAP_HOLDS_ROOT, text, &node), 1);
	return node;
}

static uint32_t field(uint32_t table, const char *name)
{
	uint32_t node = HEAP_NO_NODE;

	assert_int_equal(held(table, HEAP_HOLDS_FIELD, name, &node), 1);
	return node;
}

/* One of the program's objects. */
static uint64_t address_of(const char *name)
{
	return graph.nodes[field(field(root("_G"), "keep"), name)].address;
}

static bool has_root(const char *text)
{
	uint32_t node;

	return held(HEAP_ROOT, HEAP_HOLDS_ROOT, text, &node) > 0;
}

static uint64_t word(uint64_t address)
{
	uint64_t value = 0;

	assert_true(memory_u64(&kept.memory, address, &value));
	return value;
}

static void put(uint64_t address, uint64_t value, size_t size)
{
	kept_pages_put(&kept, address, value, size);
}

/*---- What is there ----*/

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
	assert_int_equal(kinds[HEAP_KIND_THREAD], 2);
	assert_string_equal(account.gc_state, "pause");
}

static void what_the_vm_holds_is_held_by_the_root(void **state)
{
	static const char *const tables[] = { "_G", "registry", "package.loaded", "metatable of strings" };
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
	assert_int_equal(graph.nodes[field(field(root("_G"), "keep"), "weak")].flags, HEAP_WEAK);
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
	put(inner + (uint64_t)vm.layout.GChead_marked, (marked & ~WHITES) | ((white & WHITES) ^ WHITES), 1);
	read_heap();
	node = field(field(root("_G"), "keep"), "inner");
	assert_int_equal(account.dead_objects, 1);
	assert_int_equal(account.dead_bytes, graph.nodes[node].bytes);
	assert_int_equal(graph.nodes[node].flags, HEAP_DEAD);
	assert_int_equal(account.sum, account.gc_total);
}

static void a_chain_that_leads_back_is_broken(void **state)
{
	uint64_t first;
	uint32_t nodes;

	(void)state;
	read_heap();
	nodes = graph.node_count;
	first = word(kept.g + (uint64_t)vm.layout.g_gc_root);
	put(word(first + (uint64_t)vm.layout.GChead_nextgc) + (uint64_t)vm.layout.GChead_nextgc, first, 8);
	read_heap();
	assert_in_range(account.uncertain.broken_chains, 1, 2);
	assert_in_range(graph.node_count, 2, nodes - 1);
	assert_true(account.sum < account.gc_total);
	/* What is gone is held by nothing, but what held it says so. */
	assert_true(account.uncertain.dangling > 0);
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
		TEST(objects_add_up_to_what_the_vm_has_allocated),
		TEST(what_the_vm_holds_is_held_by_the_root),
		TEST(a_measured_heap_is_the_one_that_is_read),
		TEST(the_coroutine_that_runs_is_held_by_the_root),
		TEST(userdata_that_wait_for_finalizers_are_listed),
		TEST(an_object_of_the_other_white_is_dead),
		TEST(a_chain_that_leads_back_is_broken),
		TEST(an_object_of_no_type_ends_its_chain),
		TEST(an_object_that_cannot_be_read_is_told),
		TEST(a_state_that_cannot_be_read_has_no_heap),
		TEST(a_reference_to_no_object_dangles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

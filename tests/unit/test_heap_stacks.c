/* SPDX-License-Identifier: MIT */
/* How far up a stack holds objects: that of a coroutine in the heap of a real program (test_heap_read.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "tests/unit/kept_heap.h"
#include "unwind/lua/luajit.h"

enum { SLOT = 8, FRAME_SLOTS = 2, SOME_C_FRAME = 0x1000 };

static uint64_t thread, weak, base, innermost, framesize;

static uint64_t word_of(uint64_t object, int32_t offset, size_t size)
{
	uint64_t value = 0;

	assert_int_equal(memory_read(&kept.memory, object + (uint64_t)offset, &value, size), MEMORY_OK);
	return value;
}

/* The address of the Lua function in a slot; 0 if there is none. */
static uint64_t lua_function(uint64_t slot)
{
	const uint64_t value = word(slot), function = tvalue_object(true, value);

	return tvalue_tag(true, value) == TAG_FUNC && word_of(function, vm.layout.GCfunc_ffid, 1) == FF_LUA
		       ? function
		       : 0;
}

/* Let the coroutine be in its innermost Lua function, with as few values as that can have. */
static int begin(void **state)
{
	const struct layout *layout = &vm.layout;

	(void)state;
	innermost = 0;
	load_heap("heap-gc64.process");
	read_heap();
	thread = address_of("parked");
	weak = address_of("weak");
	for (base = word(thread + (uint64_t)layout->L_base) - SLOT; !innermost; base -= SLOT)
		innermost = lua_function(base - (FRAME_SLOTS + 1) * SLOT);
	framesize = word_of(word_of(innermost, layout->GCfunc_pc, SLOT) - (uint64_t)layout->GCproto_size,
			    layout->GCproto_framesize, 1);
	assert_in_range(framesize, 3, 50);
	put(thread + (uint64_t)layout->L_base, base, SLOT);
	put(thread + (uint64_t)layout->L_top, base + SLOT, SLOT);
	put(thread + (uint64_t)layout->L_cframe, SOME_C_FRAME, SLOT);
	return 0;
}

static int end(void **state)
{
	(void)state;
	running = (struct heap_running){ 0 };
	end_heap();
	return 0;
}

/* Does the coroutine hold what this slot has? The slot has it then, whatever was there. */
static bool is_held(uint64_t slot)
{
	const uint64_t before = word(slot);
	const struct heap_node *node;
	bool found = false;

	put(slot, (uint64_t)(int64_t)TAG_TAB << 47 | weak, SLOT);
	read_heap();
	node = &graph.nodes[node_of("parked")];
	for (uint32_t i = node->first_edge; i < node[1].first_edge; i++)
		found |= graph.nodes[graph.edges[i].to].address == weak;
	put(slot, before, SLOT);
	return found;
}

static void a_lua_function_that_runs_may_use_its_whole_frame(void **state)
{
	(void)state;
	assert_true(is_held(base));
	assert_true(is_held(base + (framesize - 1) * SLOT));
	assert_false(is_held(base + framesize * SLOT));
	/* It has called a function of the library with more arguments. */
	put(thread + (uint64_t)vm.layout.L_top, base + (framesize + 2) * SLOT, SLOT);
	assert_true(is_held(base + (framesize + 1) * SLOT));
	assert_false(is_held(base + (framesize + 2) * SLOT));
}

static void one_that_waits_has_values_up_to_the_top(void **state)
{
	(void)state;
	put(thread + (uint64_t)vm.layout.L_cframe, 0, SLOT);
	assert_true(is_held(base));
	assert_false(is_held(base + SLOT));
	assert_false(is_held(base + (framesize - 1) * SLOT));
}

/* How the coroutine holds what this slot has; NULL if it does not. */
static const struct heap_edge *edge_of(uint64_t slot)
{
	const uint64_t value = tvalue_object(true, word(slot));
	const struct heap_node *node = &graph.nodes[node_of("parked")];

	for (uint32_t i = node->first_edge; i < node[1].first_edge; i++)
		if (graph.nodes[graph.edges[i].to].address == value)
			return &graph.edges[i];
	return NULL;
}

/* lua_State.base is that of a function that has returned. */
static void the_stack_of_its_thread_tells_where_one_that_runs_is(void **state)
{
	const uint64_t pc = word_of(innermost, vm.layout.GCfunc_pc, SLOT);
	struct heap_running_frame frame = { .thread = thread, .base = base, .pc = pc + 4 };

	(void)state;
	put(thread + (uint64_t)vm.layout.L_base, word(thread + (uint64_t)vm.layout.L_top), SLOT);
	put(base, (uint64_t)(int64_t)TAG_TAB << 47 | weak, SLOT);
	read_heap();
	assert_non_null(edge_of(base));
	assert_int_equal(edge_of(base)->hold, HEAP_HOLDS_SLOT);
	running = (struct heap_running){ .frames = &frame, .count = 1 };
	read_heap();
	assert_non_null(edge_of(base));
	assert_int_equal(edge_of(base)->hold, HEAP_HOLDS_LOCAL);
	assert_non_null(strstr(heap_place(&graph, &graph.nodes[node_of("parked")]), "running "));
	/* By its definition, wherever it is. */
	assert_null(strstr(heap_text(&graph, edge_of(base)->detail), "> "));
}

static bool runs(void)
{
	read_heap();
	return strstr(heap_place(&graph, &graph.nodes[node_of("parked")]), "running ");
}

/* One that has resumed another has its C frame still. */
static void a_coroutine_waits_if_it_has_no_c_frame(void **state)
{
	(void)state;
	assert_true(runs());
	put(thread + (uint64_t)vm.layout.L_cframe, 0, SLOT);
	assert_false(runs());
}

/* That function is the same while the coroutine waits, runs, or stands nobody knows where. */
static void a_coroutine_is_what_it_was_made_for(void **state)
{
	char words[HEAP_TEXT_MAX + 1];

	(void)state;
	put(thread + (uint64_t)vm.layout.L_cframe, 0, SLOT);
	read_heap();
	snprintf(words, sizeof(words), "%s", heap_text(&graph, graph.nodes[node_of("parked")].text));
	assert_non_null(strstr(words, "function <"));
	put(thread + (uint64_t)vm.layout.L_cframe, SOME_C_FRAME, SLOT);
	read_heap();
	assert_string_equal(heap_text(&graph, graph.nodes[node_of("parked")].text), words);
	/* A frame that leads nowhere. */
	put(base - SLOT, 0, SLOT);
	read_heap();
	assert_string_equal(heap_text(&graph, graph.nodes[node_of("parked")].text), words);
	/* It has ended: its first value may be anything. */
	put(thread + (uint64_t)vm.layout.L_cframe, 0, SLOT);
	put(thread + (uint64_t)vm.layout.L_status, 2, 1);
	read_heap();
	assert_string_equal(heap_text(&graph, graph.nodes[node_of("parked")].text), "");
}

/* A host calls one function after another of it, and ljspy says what it runs in its table of places. */
static void the_main_thread_is_made_for_no_function(void **state)
{
	const struct heap_node *root = &graph.nodes[HEAP_ROOT];

	(void)state;
	for (uint32_t i = root->first_edge; i < root[1].first_edge; i++) {
		const struct heap_node *node = &graph.nodes[graph.edges[i].to];

		if (strcmp(heap_text(&graph, graph.edges[i].text), "main thread") != 0)
			continue;
		assert_string_equal(heap_text(&graph, node->text), "");
		assert_string_not_equal(heap_place(&graph, node), "");
		assert_string_not_equal(heap_text(&graph, node->module), "");
		return;
	}
	fail();
}

/* Without a trace that is known, none of its variables is sure to be there. */
static void what_compiled_code_may_have_in_registers_has_no_name(void **state)
{
	const uint64_t pc = word_of(innermost, vm.layout.GCfunc_pc, SLOT);
	struct heap_running_frame frame = { .thread = thread, .base = base, .pc = pc + 4, .trace = weak };

	(void)state;
	put(base, (uint64_t)(int64_t)TAG_TAB << 47 | weak, SLOT);
	running = (struct heap_running){ .frames = &frame, .count = 1 };
	read_heap();
	assert_non_null(edge_of(base));
	assert_int_equal(edge_of(base)->hold, HEAP_HOLDS_SLOT);
}

/* Even within the frame of its function. */
static void a_stack_ends_where_its_slots_do(void **state)
{
	const uint64_t stack = word(thread + (uint64_t)vm.layout.L_stack);
	const uint64_t used = (base - stack) / SLOT + 2;

	(void)state;
	put(thread + (uint64_t)vm.layout.L_stacksize, used, 4);
	put(thread + (uint64_t)vm.layout.L_maxstack, stack, SLOT);
	assert_true(is_held(base + SLOT));
	assert_false(is_held(base + 2 * SLOT));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_lua_function_that_runs_may_use_its_whole_frame, begin, end),
		cmocka_unit_test_setup_teardown(one_that_waits_has_values_up_to_the_top, begin, end),
		cmocka_unit_test_setup_teardown(the_stack_of_its_thread_tells_where_one_that_runs_is, begin,
						end),
		cmocka_unit_test_setup_teardown(a_coroutine_waits_if_it_has_no_c_frame, begin, end),
		cmocka_unit_test_setup_teardown(a_coroutine_is_what_it_was_made_for, begin, end),
		cmocka_unit_test_setup_teardown(the_main_thread_is_made_for_no_function, begin, end),
		cmocka_unit_test_setup_teardown(what_compiled_code_may_have_in_registers_has_no_name, begin,
						end),
		cmocka_unit_test_setup_teardown(a_stack_ends_where_its_slots_do, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* Walks over the objects of a made-up heap, which changes between slices. */
#include <limits.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "luajit-layouts/field.h"
#include "tests/unit/range_bytes.h"
#include "unwind/lua/object_walk.h"

enum {
	HEAP = 0x100000,
	HEAP_BYTES = 0x100000 + 1024 * 4096, /* more pages than are cached */
	OBJECT_BYTES = 24,                   /* some headers cross into another page */
	COUNT = 1000,
	G = 0x20000,
	CURRENTWHITE = 7, /* offsets in the global_State */
	ROOT = 16,
	TOTAL = 24,
	MAINTHREF = 32,
	VMTHREF = 40,
	G_BYTES = 48,
	UNMAPPED = 0x10,
};

/* Colours: two whites in turn, and black. */
enum { WHITE0 = 1, WHITE1 = 2, BLACK = 4 };

static struct target {
	struct memory memory; /* first: what is read */
	uint8_t heap[HEAP_BYTES], g[G_BYTES];
	size_t reads;
} target;

static void read_target(struct memory *memory, struct memory_range *ranges, size_t count)
{
	(void)memory;
	target.reads++;
	for (size_t i = 0; i < count; i++)
		if (ranges[i].address >= HEAP)
			range_bytes(&ranges[i], 1, HEAP, target.heap, sizeof(target.heap));
		else
			range_bytes(&ranges[i], 1, G, target.g, sizeof(target.g));
}

static const struct layout layout = {
	.gc64 = true,
	.GChead_nextgc = 0,
	.GChead_marked = 8,
	.GChead_gct = 9,
	.g_gc_state = CURRENTWHITE + 1,
	.g_gc_root = ROOT,
	.g_gc_total = TOTAL,
	.g_mainthref = MAINTHREF,
	.g_vmthref = VMTHREF,
};
static struct vm_code vm;
static const struct global_state global = { .g = G, .vm = &vm };

static uint64_t object(size_t index)
{
	return HEAP + index * OBJECT_BYTES;
}

static void set_object(size_t index, uint64_t next, uint8_t marked, uint8_t gct)
{
	uint8_t *bytes = &target.heap[index * OBJECT_BYTES];

	memcpy(bytes, &next, sizeof(next));
	bytes[8] = marked;
	bytes[9] = gct;
}

static void mark(size_t first, size_t end, uint8_t marked)
{
	for (size_t i = first; i < end; i++)
		target.heap[i * OBJECT_BYTES + 8] = marked;
}

static void set_global(size_t offset, uint64_t value)
{
	memcpy(&target.g[offset], &value, sizeof(value));
}

static bool is_thread(size_t index)
{
	return index % 5 == 3;
}

/* A heap of COUNT objects, the last of which is the main thread. Each fifth one is a thread. */
static struct object_walk *begin(void)
{
	struct object_walk *walk;

	memset(&target, 0, sizeof(target));
	target.memory.read_ranges = read_target;
	vm.layout = layout;
	target.g[CURRENTWHITE] = WHITE0;
	for (size_t i = 0; i < COUNT; i++)
		set_object(i, object(i + 1), WHITE0, is_thread(i) ? GCT_THREAD : GCT_TABLE);
	set_object(COUNT - 1, 0, WHITE0, GCT_THREAD);
	set_global(ROOT, object(0));
	set_global(TOTAL, COUNT * OBJECT_BYTES);
	set_global(MAINTHREF, object(COUNT - 1));
	walk = object_walk_new(&target.memory, &global, GCT_THREAD);
	assert_non_null(walk);
	return walk;
}

/* How often each object was found. */
static uint8_t found[COUNT + 1];

/* Go on until a step is not an object; note those. */
static enum object_walk_step go_on(struct object_walk *walk)
{
	enum object_walk_step step;
	uint64_t address;

	while ((step = object_walk_next(walk, &address)) == OBJECT_WALK_FOUND) {
		assert_int_equal((address - HEAP) % OBJECT_BYTES, 0);
		assert_in_range((address - HEAP) / OBJECT_BYTES, 0, COUNT);
		found[(address - HEAP) / OBJECT_BYTES]++;
	}
	return step;
}

/* Slices, each of which finds so many objects, until the end. */
static enum object_walk_step go_to_end(struct object_walk *walk)
{
	enum object_walk_step step;

	do {
		object_walk_begin_slice(walk);
		step = go_on(walk);
	} while (step == OBJECT_WALK_PAUSE);
	return step;
}

static void assert_found(size_t first, size_t end, uint8_t times)
{
	for (size_t i = first; i < end; i++)
		assert_int_equal(found[i], is_thread(i) ? times : 0);
}

static void clear_found(void)
{
	memset(found, 0, sizeof(found));
}

static void each_object_of_a_type_is_found_once(void **state)
{
	struct object_walk *walk = begin();

	(void)state;
	clear_found();
	assert_int_equal(go_to_end(walk), OBJECT_WALK_END);
	assert_found(0, COUNT - 1, 1);
	assert_int_equal(found[COUNT - 1], 0); /* the main thread */
	object_walk_begin_slice(walk);
	assert_int_equal(go_on(walk), OBJECT_WALK_END);
	assert_found(0, COUNT - 1, 1);
	/* Pages are read several at a time. */
	assert_in_range(target.reads, 1, 20);
	object_walk_free(walk);
	object_walk_free(NULL);
}

static void narrow_references_are_followed(void **state)
{
	struct object_walk *walk = begin();

	(void)state;
	vm.layout.gc64 = false;
	for (size_t i = 0; i < COUNT; i++)
		target.heap[i * OBJECT_BYTES + 5] = 0x7f; /* no part of the link */
	set_global(ROOT, object(0) | UINT64_C(1) << 40);
	set_global(MAINTHREF, object(COUNT - 1) | UINT64_C(1) << 40);
	clear_found();
	assert_int_equal(go_to_end(walk), OBJECT_WALK_END);
	assert_found(0, COUNT - 1, 1);
	object_walk_free(walk);
}

static void dead_objects_and_the_vms_thread_are_left_out(void **state)
{
	struct object_walk *walk = begin();

	(void)state;
	mark(3, 4, WHITE1);
	mark(8, 9, BLACK);
	mark(13, 14, 0);
	set_global(VMTHREF, object(18));
	clear_found();
	assert_int_equal(go_to_end(walk), OBJECT_WALK_END);
	assert_int_equal(found[3], 0);
	assert_int_equal(found[8], 1);
	assert_int_equal(found[13], 1);
	assert_int_equal(found[18], 0);
	assert_found(19, COUNT - 1, 1);
	object_walk_free(walk);
	/* Where there is no such thread, that word of the global_State is something else. */
	walk = begin();
	vm.layout.g_vmthref = LAYOUT_ABSENT;
	set_global(VMTHREF, object(18));
	clear_found();
	assert_int_equal(go_to_end(walk), OBJECT_WALK_END);
	assert_found(0, COUNT - 1, 1);
	object_walk_free(walk);
}

static void the_list_may_end_without_the_main_thread(void **state)
{
	struct object_walk *walk = begin();

	(void)state;
	set_global(MAINTHREF, UNMAPPED);
	clear_found();
	assert_int_equal(go_to_end(walk), OBJECT_WALK_END);
	assert_found(0, COUNT - 1, 1);
	assert_int_equal(found[COUNT - 1], 1);
	object_walk_free(walk);
}

/*---- Slices ----*/

/* Go to object 508, and pause behind it. */
static struct object_walk *pause_in_the_middle(void)
{
	struct object_walk *walk = begin();
	uint64_t address;

	clear_found();
	object_walk_begin_slice(walk);
	do {
		assert_int_equal(object_walk_next(walk, &address), OBJECT_WALK_FOUND);
		found[(address - HEAP) / OBJECT_BYTES]++;
	} while (address != object(508));
	object_walk_rest(walk);
	return walk;
}

static void a_walk_goes_on_where_it_has_paused(void **state)
{
	struct object_walk *walk = pause_in_the_middle();

	(void)state;
	assert_int_equal(go_on(walk), OBJECT_WALK_PAUSE);
	assert_int_equal(go_on(walk), OBJECT_WALK_PAUSE);
	assert_found(0, 509, 1);
	assert_found(509, COUNT - 1, 0);
	/* A new object comes first, and is not seen. */
	set_object(COUNT, object(0), WHITE0, GCT_THREAD);
	set_global(ROOT, object(COUNT));
	assert_int_equal(go_to_end(walk), OBJECT_WALK_END);
	assert_found(0, COUNT - 1, 1);
	assert_int_equal(found[COUNT], 0);
	object_walk_free(walk);
}

static void a_walk_pauses_only_at_what_stays(void **state)
{
	struct object_walk *walk = pause_in_the_middle();

	(void)state;
	mark(509, 600, WHITE1);
	assert_int_equal(go_on(walk), OBJECT_WALK_PAUSE);
	/* The sweep frees the dead ones, and their memory is something else. */
	memset(&target.heap[509 * OBJECT_BYTES], 0xee, (600 - 509) * OBJECT_BYTES);
	set_object(508, object(600), WHITE0, GCT_THREAD);
	assert_int_equal(go_to_end(walk), OBJECT_WALK_END);
	/* The link of the last object has changed: all are seen once more. */
	assert_found(0, 509, 2);
	assert_found(600, COUNT - 1, 1);
	object_walk_free(walk);
}

static void after_a_cycle_it_goes_on_from_an_object_that_has_survived(void **state)
{
	struct object_walk *walk = pause_in_the_middle();
	size_t seen = 0;

	(void)state;
	assert_int_equal(go_on(walk), OBJECT_WALK_PAUSE);
	/* A cycle: what survives has the other white. The objects from 400 on are dead, and freed. */
	target.g[CURRENTWHITE] = WHITE1;
	mark(0, COUNT, WHITE1);
	mark(400, 600, WHITE0);
	memset(&target.heap[480 * OBJECT_BYTES], 0xee, 120 * OBJECT_BYTES);
	set_object(399, object(600), WHITE1, GCT_TABLE);
	assert_int_equal(go_to_end(walk), OBJECT_WALK_END);
	for (size_t i = 0; i < 400; i++)
		seen += found[i] == 2;
	/* Not many are seen again. */
	assert_in_range(seen, 1, 8);
	assert_found(600, COUNT - 1, 1);
	object_walk_free(walk);
}

static void without_a_survivor_it_starts_over(void **state)
{
	struct object_walk *walk = pause_in_the_middle();

	(void)state;
	assert_int_equal(go_on(walk), OBJECT_WALK_PAUSE);
	target.g[CURRENTWHITE] = WHITE1;
	memset(target.heap, 0xee, 600 * OBJECT_BYTES);
	mark(600, COUNT, WHITE1);
	set_global(ROOT, object(600));
	clear_found();
	assert_int_equal(go_to_end(walk), OBJECT_WALK_END);
	assert_found(600, COUNT - 1, 1);
	object_walk_free(walk);
}

/* An anchor whose memory has another object since. */
static void an_object_of_another_type_is_no_survivor(void **state)
{
	struct object_walk *walk = pause_in_the_middle();

	(void)state;
	assert_int_equal(go_on(walk), OBJECT_WALK_PAUSE);
	target.g[CURRENTWHITE] = WHITE1;
	for (size_t i = 0; i < 600; i++)
		set_object(i, UNMAPPED, WHITE1, GCT_STRING);
	mark(600, COUNT, WHITE1);
	set_global(ROOT, object(600));
	clear_found();
	assert_int_equal(go_to_end(walk), OBJECT_WALK_END);
	assert_found(600, COUNT - 1, 1);
	object_walk_free(walk);
}

static void a_slice_that_does_not_count_is_walked_again(void **state)
{
	struct object_walk *walk = pause_in_the_middle();

	(void)state;
	assert_int_equal(go_on(walk), OBJECT_WALK_PAUSE);
	object_walk_begin_slice(walk);
	assert_int_equal(go_on(walk), OBJECT_WALK_END);
	assert_found(509, COUNT - 1, 1);
	object_walk_undo_slice(walk);
	assert_int_equal(go_to_end(walk), OBJECT_WALK_END);
	assert_found(0, 509, 1);
	assert_found(509, COUNT - 1, 2);
	object_walk_free(walk);
}

/* A slice costs so many objects, and reads. */
static void slices_are_bounded(void **state)
{
	enum { MANY = HEAP_BYTES / OBJECT_BYTES - 1 };
	struct object_walk *walk = begin();
	size_t slices = 0, most = 0, threads = 0;
	enum object_walk_step step;
	uint64_t address;

	(void)state;
	for (size_t i = 0; i < MANY; i++)
		set_object(i, i + 1 < MANY ? object(i + 1) : 0, WHITE0, GCT_THREAD);
	set_global(MAINTHREF, UNMAPPED);
	set_global(TOTAL, MANY * OBJECT_BYTES);
	do {
		size_t of_slice = 0;

		object_walk_begin_slice(walk);
		while ((step = object_walk_next(walk, &address)) == OBJECT_WALK_FOUND)
			of_slice++;
		slices++;
		threads += of_slice;
		if (of_slice > most)
			most = of_slice;
	} while (step == OBJECT_WALK_PAUSE);
	assert_int_equal(step, OBJECT_WALK_END);
	assert_int_equal(threads, MANY);
	assert_in_range(most, 4096, 8192);
	assert_in_range(slices, MANY / 8192 + 1, MANY / 4096 + 1);
	object_walk_free(walk);
}

/*---- Lists that are none ----*/

/* Slices until the list is broken; the most reads of one. */
static size_t count_slices_to_broken(struct object_walk *walk, size_t *ret_most)
{
	size_t slices = 0, most = 0;
	enum object_walk_step step;

	do {
		target.reads = 0;
		object_walk_begin_slice(walk);
		step = go_on(walk);
		slices++;
		if (target.reads > most)
			most = target.reads;
	} while (step == OBJECT_WALK_PAUSE);
	assert_int_equal(step, OBJECT_WALK_BROKEN);
	*ret_most = most;
	return slices;
}

static void a_circle_of_dead_objects_ends(void **state)
{
	const size_t far = 1024 * 4096; /* its page takes the place of the first one: each step is a read */
	struct object_walk *walk = begin();
	uint8_t *other = &target.heap[far];
	size_t most;

	(void)state;
	set_object(0, HEAP + far, WHITE1, GCT_TABLE);
	memcpy(other, &(uint64_t){ HEAP }, sizeof(uint64_t));
	other[8] = WHITE1;
	other[9] = GCT_TABLE;
	assert_in_range(count_slices_to_broken(walk, &most), 2, 260);
	/* A slice pays 33 for each step, up to nine times what one with live objects pays. */
	assert_in_range(most, 1000, 9 * 8192 / 32);
	object_walk_free(walk);
}

static void a_circle_of_live_objects_ends(void **state)
{
	struct object_walk *walk = begin();
	size_t most;

	(void)state;
	set_object(1, object(0), WHITE0, GCT_TABLE);
	/* As many as a list might have, but not again and again. */
	assert_in_range(count_slices_to_broken(walk, &most), (1 << 20) / 8192, 3 * (1 << 20) / 8192 + 8);
	assert_in_range(most, 1, 20);
	object_walk_free(walk);
}

static void a_list_that_leads_nowhere_is_broken(void **state)
{
	static const uint64_t nowhere[] = { UNMAPPED, HEAP + 4, HEAP + HEAP_BYTES };

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct object_walk *walk = begin();

		if (i < 3)
			set_object(100, nowhere[i], WHITE0, GCT_TABLE);
		else
			target.heap[100 * OBJECT_BYTES + 9] = GCT_USERDATA + 1;
		assert_int_equal(go_to_end(walk), OBJECT_WALK_BROKEN);
		object_walk_begin_slice(walk);
		assert_int_equal(go_on(walk), OBJECT_WALK_BROKEN);
		object_walk_free(walk);
	}
}

static void a_list_that_is_mended_meanwhile_is_walked_again(void **state)
{
	struct object_walk *walk = pause_in_the_middle();

	(void)state;
	assert_int_equal(go_on(walk), OBJECT_WALK_PAUSE);
	set_object(508, UNMAPPED, WHITE0, GCT_THREAD);
	set_object(507, object(509), WHITE0, GCT_TABLE);
	clear_found();
	assert_int_equal(go_to_end(walk), OBJECT_WALK_END);
	assert_found(0, 508, 1);
	assert_found(509, COUNT - 1, 1);
	object_walk_free(walk);
}

static void a_global_state_that_cannot_be_read_is_broken(void **state)
{
	static const struct global_state gone = { .g = UNMAPPED, .vm = &vm };
	struct object_walk *walk;

	(void)state;
	object_walk_free(begin());
	walk = object_walk_new(&target.memory, &gone, GCT_THREAD);
	assert_non_null(walk);
	assert_int_equal(go_to_end(walk), OBJECT_WALK_BROKEN);
	object_walk_free(walk);
}

static long page_faults(void)
{
	struct rusage usage;

	assert_int_equal(getrusage(RUSAGE_THREAD, &usage), 0);
	return usage.ru_minflt;
}

/*
 * From now on, memory comes from the kernel, not from an earlier walk, and page by page. False where it
 * cannot be told: the sanitizers have memory of their own.
 */
static bool count_page_faults(void)
{
	return sysconf(_SC_PAGESIZE) == 4096 && malloc_trim(0) >= 0 &&
	       mallopt(M_MMAP_THRESHOLD, 1 << 16) == 1 && prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) == 0;
}

/* Of a walk through a heap of this size, until it is made. */
static long faults_of_new_walk(uint64_t total)
{
	long before;

	set_global(TOTAL, total);
	before = page_faults();
	object_walk_free(object_walk_new(&target.memory, &global, GCT_THREAD));
	return page_faults() - before;
}

static void a_walk_takes_as_much_memory_as_its_heap_is_large(void **state)
{
	(void)state;
	object_walk_free(begin());
	if (!count_page_faults())
		skip();
	assert_in_range(faults_of_new_walk(100 << 10), 50, 100);
	assert_in_range(faults_of_new_walk(1 << 20), 500, 550);
	assert_in_range(faults_of_new_walk(UINT32_MAX), 1000, 1100);
}

/* A target that is held would wait for it. */
static void a_slice_does_not_wait_for_memory(void **state)
{
	const bool is_counted = count_page_faults();
	const size_t far = (HEAP_BYTES - OBJECT_BYTES) / OBJECT_BYTES;
	struct object_walk *walk;
	long before;

	(void)state;
	object_walk_free(begin());
	set_global(TOTAL, HEAP_BYTES);
	walk = object_walk_new(&target.memory, &global, GCT_THREAD);
	assert_non_null(walk);
	/* Objects on all pages, so that all of its memory is used. */
	for (size_t i = 0; i < COUNT; i++)
		set_object(i * (far / COUNT), object((i + 1) * (far / COUNT)), WHITE0, GCT_TABLE);
	set_object((COUNT - 1) * (far / COUNT), 0, WHITE0, GCT_TABLE);
	set_global(MAINTHREF, object((COUNT - 1) * (far / COUNT)));
	before = page_faults();
	object_walk_begin_slice(walk);
	while (go_on(walk) == OBJECT_WALK_PAUSE)
		object_walk_begin_slice(walk);
	assert_true(target.reads > 100);
	assert_in_range(page_faults() - before, 0, is_counted ? 32 : LONG_MAX);
	object_walk_free(walk);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_object_of_a_type_is_found_once),
		cmocka_unit_test(narrow_references_are_followed),
		cmocka_unit_test(dead_objects_and_the_vms_thread_are_left_out),
		cmocka_unit_test(the_list_may_end_without_the_main_thread),
		cmocka_unit_test(a_walk_goes_on_where_it_has_paused),
		cmocka_unit_test(a_walk_pauses_only_at_what_stays),
		cmocka_unit_test(after_a_cycle_it_goes_on_from_an_object_that_has_survived),
		cmocka_unit_test(without_a_survivor_it_starts_over),
		cmocka_unit_test(an_object_of_another_type_is_no_survivor),
		cmocka_unit_test(a_slice_that_does_not_count_is_walked_again),
		cmocka_unit_test(slices_are_bounded),
		cmocka_unit_test(a_circle_of_dead_objects_ends),
		cmocka_unit_test(a_circle_of_live_objects_ends),
		cmocka_unit_test(a_list_that_leads_nowhere_is_broken),
		cmocka_unit_test(a_list_that_is_mended_meanwhile_is_walked_again),
		cmocka_unit_test(a_global_state_that_cannot_be_read_is_broken),
		cmocka_unit_test(a_walk_takes_as_much_memory_as_its_heap_is_large),
		cmocka_unit_test(a_slice_does_not_wait_for_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

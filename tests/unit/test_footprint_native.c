/* SPDX-License-Identifier: MIT */
/* What of a process's memory is claimed for malloc() and for stacks. The mappings are made up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/footprint/pieces/glibc_heap.h"
#include "src/footprint/pieces/thread_stack.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/one_taking.h"

enum {
	HEAP = GLIBC_HEAP_ALIGNMENT, /* of an arena */
	ARENAS_MAX = 4,
	ARENA_FREE = 100,
};

/* What lies in its memory. */
static struct {
	uint64_t main_begin, main_end; /* asked for */
	bool is_told;                  /* chunks can be followed */
	uint64_t heaps[ARENAS_MAX];    /* where heaps of other arenas begin; 0: none */
	uint64_t firsts;               /* so many of them are the first of their arenas */
	uint64_t stack, stack_end;     /* 0: none */
} found;

static void tell_chunks(struct heap_piece *piece, uint64_t begin, uint64_t end)
{
	*piece = (struct heap_piece){
		.begin = begin, .end = end, .is_told = found.is_told, .free = found.is_told ? ARENA_FREE : 0
	};
}

INSTEAD_OF(glibc_heap_main);
void __wrap_glibc_heap_main(struct window *window, uint64_t begin, uint64_t end, struct heap_piece *ret_piece)
{
	assert_ptr_equal(window, &taking.window);
	found.main_begin = begin;
	found.main_end = end;
	tell_chunks(ret_piece, begin, end);
}

INSTEAD_OF(glibc_heap_other);
bool __wrap_glibc_heap_other(struct window *window, uint64_t base, uint64_t limit,
			     struct heap_piece *ret_piece, bool *ret_is_first)
{
	assert_ptr_equal(window, &taking.window);
	for (size_t i = 0; i < ARENAS_MAX; i++) {
		if (!found.heaps[i] || found.heaps[i] != base)
			continue;
		assert_true(base < limit);
		tell_chunks(ret_piece, base, base + HEAP < limit ? base + HEAP : limit);
		*ret_is_first = i < found.firsts;
		return true;
	}
	return false;
}

INSTEAD_OF(thread_stack_find);
bool __wrap_thread_stack_find(struct window *window, uint64_t lowest, uint64_t begin, uint64_t end,
			      uint64_t *ret_begin, uint64_t *ret_end)
{
	assert_ptr_equal(window, &taking.window);
	assert_true(lowest < begin);
	if (found.stack_end <= begin || found.stack_end > end)
		return false;
	*ret_begin = found.stack;
	*ret_end = found.stack_end;
	return true;
}

static int begin(void **state)
{
	(void)state;
	memset(&found, 0, sizeof(found));
	found.is_told = true;
	return taking_begin() ? 0 : -1;
}

static void map(const char *text)
{
	assert_int_equal(smaps_parse(text, strlen(text), &taking.smaps), 0);
}

static void assert_claim(size_t index, uint64_t from, uint64_t to, enum footprint_kind kind)
{
	assert_true(index < taking.claims.count);
	assert_int_equal(taking.claims.list[index].begin, from);
	assert_int_equal(taking.claims.list[index].end, to);
	assert_int_equal(taking.report->rows[taking.claims.list[index].row].kind, kind);
}

/*---- malloc() ----*/

static void the_main_arena_goes_on_in_the_next_mappings(void **state)
{
	(void)state;
	map("100000-101000 rw-p 00000000 00:00 0 [heap]\n"
	    "101000-103000 rw-p 00000000 00:00 0 [heap]\n"
	    "103000-104000 rw-p 00000000 00:00 0\n"
	    "105000-106000 rw-p 00000000 00:00 0 [heap]\n");
	assert_int_equal(taking_malloc(&taking), 0);
	assert_int_equal(found.main_begin, 0x100000);
	assert_int_equal(found.main_end, 0x103000);
	assert_int_equal(taking.report->malloc.arenas, 1);
	assert_int_equal(taking.claims.count, 1);
	assert_claim(0, 0x100000, 0x103000, FOOTPRINT_MALLOC);
	assert_int_equal(taking.report->malloc.arena_bytes, 0x3000);
	assert_int_equal(taking.report->malloc.free_bytes, ARENA_FREE);
	assert_int_equal(taking.report->malloc.pieces_untold, 0);
	assert_null(taking.report->malloc.name);
}

static void a_heap_that_ends_the_address_space_is_whole(void **state)
{
	(void)state;
	map("100000-101000 rw-p 00000000 00:00 0 [heap]\n"
	    "101000-103000 rw-p 00000000 00:00 0 [heap]\n");
	assert_int_equal(taking_malloc(&taking), 0);
	assert_int_equal(found.main_end, 0x103000);
}

/* Its figures are not told then, but its memory is malloc()'s. */
static void an_arena_that_cannot_be_followed_is_counted(void **state)
{
	(void)state;
	map("100000-101000 rw-p 00000000 00:00 0 [heap]\n");
	found.is_told = false;
	assert_int_equal(taking_malloc(&taking), 0);
	assert_claim(0, 0x100000, 0x101000, FOOTPRINT_MALLOC);
	assert_int_equal(taking.report->malloc.pieces_untold, 1);
	assert_int_equal(taking.report->malloc.arena_bytes, 0);
	assert_int_equal(taking.report->malloc.free_bytes, 0);
}

/* One lies right behind the other. */
static void other_arenas_begin_at_multiples_of_a_heaps_size(void **state)
{
	(void)state;
	map("7000000-14000000 rw-p 00000000 00:00 0\n"
	    "18000000-18001000 r--p 00000000 00:00 0\n");
	found.heaps[0] = 2 * (uint64_t)HEAP;
	found.heaps[1] = 3 * (uint64_t)HEAP;
	found.heaps[2] = 4 * (uint64_t)HEAP;
	found.heaps[3] = 6 * (uint64_t)HEAP; /* not in plain memory */
	found.firsts = 2;
	assert_int_equal(taking_malloc(&taking), 0);
	assert_int_equal(taking.report->malloc.arenas, 2);
	assert_int_equal(taking.claims.count, 3);
	for (size_t i = 0; i < 3; i++)
		assert_claim(i, (2 + i) * HEAP, (3 + i) * HEAP, FOOTPRINT_MALLOC);
	assert_int_equal(taking.report->malloc.arena_bytes, 3 * (uint64_t)HEAP);
	assert_int_equal(taking.report->malloc.free_bytes, 3 * ARENA_FREE);
}

static void the_library_is_known_by_its_file(void **state)
{
	static const struct {
		const char *file, *name;
	} cases[] = {
		{ "/usr/lib/libjemalloc.so.2", "jemalloc" },
		{ "/usr/lib/libtcmalloc_minimal.so.4", "tcmalloc" },
		{ "/usr/lib/libmimalloc.so", "mimalloc" },
		{ "/lib/ld-musl-x86_64.so.1", "musl" },
		{ "/lib/libc.so.6", "glibc" },
		{ "/lib/libc-2.31.so", "glibc" },
		{ "/lib/libc.so.6.d/libother.so", NULL },
		{ "/lib/mylibjemalloc.so", NULL },
	};
	char text[1024];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (i) {
			taking_end(state);
			begin(state);
		}
		snprintf(text, sizeof(text), "100000-101000 r-xp 00000000 08:01 7 %s\n", cases[i].file);
		map(text);
		assert_int_equal(taking_malloc(&taking), 0);
		assert_int_equal(taking.report->malloc.arenas, 0);
		if (cases[i].name)
			assert_string_equal(taking.report->malloc.name, cases[i].name);
		else
			assert_null(taking.report->malloc.name);
	}
}

/* malloc() of the C library is there, too, but nobody calls it. */
static void a_library_that_replaces_malloc_is_told(void **state)
{
	(void)state;
	map("100000-101000 r-xp 00000000 08:01 7 /lib/libc.so.6\n"
	    "200000-201000 r-xp 00000000 08:01 8 /usr/lib/libjemalloc.so.2\n");
	assert_int_equal(taking_malloc(&taking), 0);
	assert_string_equal(taking.report->malloc.name, "jemalloc");
}

/*---- Stacks ----*/

static void a_stack_is_behind_its_guard(void **state)
{
	(void)state;
	map("100000-101000 ---p 00000000 00:00 0\n"
	    "101000-110000 rw-p 00000000 00:00 0\n");
	found.stack = 0x100000; /* with its guard */
	found.stack_end = 0x108000;
	assert_int_equal(taking_stacks(&taking), 0);
	assert_int_equal(taking.claims.count, 1);
	assert_claim(0, 0x101000, 0x108000, FOOTPRINT_STACK);
	assert_string_equal(taking.report->rows[taking.claims.list[0].row].name, "of other threads");
}

static void memory_without_a_guard_is_no_stack(void **state)
{
	static const char *const texts[] = {
		"101000-110000 rw-p 00000000 00:00 0\n",
		"100000-101000 r--p 00000000 00:00 0\n101000-110000 rw-p 00000000 00:00 0\n",
		"0f0000-100000 ---p 00000000 00:00 0\n101000-110000 rw-p 00000000 00:00 0\n",
		"100000-101000 ---p 00000000 00:00 0\n101000-110000 r--p 00000000 00:00 0\n",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (i) {
			taking_end(state);
			begin(state);
		}
		map(texts[i]);
		found.stack = 0x101000;
		found.stack_end = 0x108000;
		assert_int_equal(taking_stacks(&taking), 0);
		assert_int_equal(taking.claims.count, 0);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, taking_end)
	const struct CMUnitTest tests[] = {
		TEST(the_main_arena_goes_on_in_the_next_mappings),
		TEST(a_heap_that_ends_the_address_space_is_whole),
		TEST(an_arena_that_cannot_be_followed_is_counted),
		TEST(other_arenas_begin_at_multiples_of_a_heaps_size),
		TEST(the_library_is_known_by_its_file),
		TEST(a_library_that_replaces_malloc_is_told),
		TEST(a_stack_is_behind_its_guard),
		TEST(memory_without_a_guard_is_no_stack),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

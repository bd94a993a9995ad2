/* SPDX-License-Identifier: MIT */
/* A copy of memory whose mappings grow, shrink and move while it is copied. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "tests/unit/instead_of.h"
#include "unwind/heap/heap_copy.h"

enum {
	PAGES = 512,
	BASE = 1 << 20,
	FAR_AWAY = 1 << 30, /* more than a region has room for */
};

static bool memory_is_short;

INSTEAD_OF(mmap);
void *__wrap_mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
	return memory_is_short ? MAP_FAILED : __real_mmap(address, length, protection, flags, fd, offset);
}

/* Every page has one letter all over. Reads of letter 0 fail. */
struct letters {
	struct memory memory; /* first */
	char letters[PAGES];
	uint64_t base;
	unsigned int reads; /* pages */
};

static void read_letters(struct memory *memory, struct memory_range *ranges, size_t count)
{
	struct letters *source = (struct letters *)(void *)memory;

	for (size_t i = 0; i < count; i++) {
		ranges[i].status = MEMORY_OK;
		for (size_t at = 0; at < ranges[i].length; at += HEAP_PAGE) {
			const char letter =
				source->letters[(ranges[i].address + at - source->base) / HEAP_PAGE];

			if (!letter)
				ranges[i].status = MEMORY_UNMAPPED;
			memset((char *)ranges[i].copy + at, letter, HEAP_PAGE);
			source->reads++;
		}
	}
}

static struct letters source_at(uint64_t base)
{
	struct letters source = { .memory.read_ranges = read_letters, .base = base };

	memset(source.letters, 'a', sizeof(source.letters));
	return source;
}

static uint64_t page(unsigned int number)
{
	return BASE + (uint64_t)number * HEAP_PAGE;
}

static void set(struct heap_copy *copy, unsigned int begin, unsigned int end)
{
	const struct heap_range range = { page(begin), page(end), false };

	assert_int_equal(heap_copy_set_regions(copy, &range, 1), 0);
}

static int letter(struct heap_copy *copy, unsigned int number)
{
	const uint8_t *view = heap_copy_view(copy, page(number), HEAP_PAGE);

	return view ? view[HEAP_PAGE - 1] : -1;
}

static bool next_all(void *context, uint64_t *at, uint64_t end, uint64_t *ret_begin, uint64_t *ret_end)
{
	(void)context;
	*ret_begin = *at;
	*ret_end = end;
	*at = end;
	return *ret_begin < end;
}

static bool always(void *context)
{
	(void)context;
	return true;
}

static bool three_times(void *context)
{
	return (*(int *)context)++ < 3;
}

static void a_region_keeps_what_was_copied_when_it_grows(void **state)
{
	struct letters source = source_at(BASE);
	struct heap_copy *copy = heap_copy_new(&source.memory);

	(void)state;
	set(copy, 10, 20);
	assert_int_equal(letter(copy, 12), 'a');
	memset(source.letters, 'b', sizeof(source.letters));
	set(copy, 5, 30);
	heap_copy_fill(copy, HEAP_FILL_ALL, next_all, NULL);
	heap_copy_seal(copy);
	assert_int_equal(letter(copy, 12), 'a');
	assert_int_equal(letter(copy, 5), 'b');
	assert_int_equal(letter(copy, 29), 'b');
	assert_int_equal(heap_copy_missed(copy), 0);
	assert_int_equal(letter(copy, 30), -1);
	heap_copy_free(copy);
}

static void what_was_unmapped_is_copied_anew(void **state)
{
	struct letters source = source_at(BASE);
	struct heap_copy *copy = heap_copy_new(&source.memory);
	const struct heap_range parts[] = { { page(2), page(4), false }, { page(8), page(12), false } };

	(void)state;
	set(copy, 0, 16);
	assert_int_equal(letter(copy, 0), 'a');
	assert_int_equal(heap_copy_kept(copy), 16 * HEAP_PAGE);
	assert_int_equal(heap_copy_set_regions(copy, parts, 2), 0);
	assert_int_equal(heap_copy_kept(copy), 6 * HEAP_PAGE);
	assert_int_equal(letter(copy, 5), -1);
	memset(source.letters, 'b', sizeof(source.letters));
	assert_int_equal(letter(copy, 3), 'a');
	assert_int_equal(letter(copy, 9), 'a');
	set(copy, 0, 16);
	assert_int_equal(letter(copy, 5), 'b');
	assert_int_equal(letter(copy, 9), 'a');
	heap_copy_free(copy);
}

static void only_regions_in_use_or_new_are_filled(void **state)
{
	struct letters source = source_at(BASE);
	struct heap_copy *copy = heap_copy_new(&source.memory);
	const struct heap_range ranges[] = { { page(0), page(4), false },
					     { page(8), page(12), false },
					     { page(16), page(20), false },
					     { page(24), page(28), true } };

	(void)state;
	assert_int_equal(heap_copy_set_regions(copy, ranges, 2), 0);
	assert_int_equal(letter(copy, 0), 'a');
	assert_int_equal(heap_copy_set_regions(copy, ranges, 4), 0);
	heap_copy_fill(copy, HEAP_FILL_ALL, next_all, NULL);
	heap_copy_seal(copy);
	assert_int_equal(letter(copy, 3), 'a');
	assert_int_equal(letter(copy, 8), -1);
	assert_int_equal(letter(copy, 16), 'a');
	assert_int_equal(letter(copy, 24), -1);
	heap_copy_free(copy);
}

static void near_what_is_copied_is_filled_and_no_more(void **state)
{
	struct letters source = source_at(BASE);
	struct heap_copy *copy = heap_copy_new(&source.memory);
	uint64_t kept;

	(void)state;
	set(copy, 0, PAGES / 2);
	assert_int_equal(letter(copy, 0), 'a');
	set(copy, 0, PAGES);
	heap_copy_fill(copy, HEAP_FILL_NEAR, next_all, NULL);
	kept = heap_copy_kept(copy);
	assert_in_range(kept, 65 * HEAP_PAGE, PAGES / 2 * HEAP_PAGE);
	heap_copy_fill(copy, HEAP_FILL_NEAR, next_all, NULL);
	assert_int_equal(heap_copy_kept(copy), kept);
	heap_copy_seal(copy);
	assert_int_equal(letter(copy, 65), 'a');
	assert_int_equal(letter(copy, PAGES - 1), -1);
	/* What was missed is there the next time. */
	heap_copy_unseal(copy);
	heap_copy_fill(copy, HEAP_FILL_NEAR, next_all, NULL);
	assert_in_range(heap_copy_kept(copy), kept + HEAP_PAGE, (PAGES - 1) * HEAP_PAGE);
	heap_copy_seal(copy);
	assert_int_equal(letter(copy, PAGES - 1), 'a');
	assert_int_equal(letter(copy, PAGES / 2), -1);
	heap_copy_unseal(copy);
	heap_copy_fill(copy, HEAP_FILL_ALL, next_all, NULL);
	assert_int_equal(heap_copy_kept(copy), PAGES * HEAP_PAGE);
	heap_copy_free(copy);
}

static void regions_beyond_the_room_of_one_become_one(void **state)
{
	struct letters source = source_at(BASE);
	struct heap_copy *copy = heap_copy_new(&source.memory);
	const struct heap_range apart[] = { { page(0), page(4), false },
					    { FAR_AWAY, FAR_AWAY + HEAP_PAGE, false } };
	const struct heap_range joined = { page(0), FAR_AWAY + HEAP_PAGE, false };

	(void)state;
	assert_int_equal(heap_copy_set_regions(copy, apart, 2), 0);
	assert_int_equal(letter(copy, 1), 'a');
	source.base = FAR_AWAY;
	source.letters[0] = 'z';
	assert_int_equal(*heap_copy_view(copy, FAR_AWAY, 1), 'z');
	assert_int_equal(heap_copy_set_regions(copy, &joined, 1), 0);
	heap_copy_seal(copy);
	assert_int_equal(letter(copy, 1), 'a');
	assert_int_equal(*heap_copy_view(copy, FAR_AWAY, 1), 'z');
	heap_copy_free(copy);
}

static void what_was_not_copied_in_the_hold_is_compared(void **state)
{
	struct letters source = source_at(BASE);
	struct heap_copy *copy = heap_copy_new(&source.memory);

	(void)state;
	set(copy, 0, 16);
	assert_int_equal(letter(copy, 0), 'a');
	source.letters[3] = 'b';
	heap_copy_follow(copy);
	assert_int_equal(heap_copy_marked(copy), HEAP_PAGE);
	source.letters[3] = 'c';
	heap_copy_begin_hold(copy, always, NULL);
	heap_copy_again_marked(copy, UINT64_MAX);
	assert_true(heap_copy_end_hold(copy));
	source.letters[3] = source.letters[7] = 'd';
	assert_int_equal(heap_copy_check(copy), 1);
	assert_int_equal(letter(copy, 3), 'c');
	assert_int_equal(letter(copy, 7), 'a');
	assert_false(heap_copy_has_changed(copy, page(3), HEAP_PAGE));
	assert_true(heap_copy_has_changed(copy, page(7) + 5, 1));
	assert_true(heap_copy_has_changed(copy, page(6), HEAP_PAGE + 1));

	/* What has changed is copied in the next hold. */
	heap_copy_begin_hold(copy, always, NULL);
	heap_copy_again_marked(copy, UINT64_MAX);
	assert_true(heap_copy_end_hold(copy));
	assert_int_equal(heap_copy_check(copy), 0);
	assert_int_equal(letter(copy, 7), 'd');
	assert_false(heap_copy_has_changed(copy, page(7), 1));
	heap_copy_free(copy);
}

static void a_hold_that_may_not_go_on_copies_no_more(void **state)
{
	struct letters source = source_at(BASE);
	struct heap_copy *copy = heap_copy_new(&source.memory);
	int asked = 3;

	(void)state;
	set(copy, 0, 16);
	assert_int_equal(letter(copy, 0), 'a');
	source.reads = 0;
	heap_copy_begin_hold(copy, three_times, &asked);
	heap_copy_again(copy, UINT64_MAX);
	assert_false(heap_copy_end_hold(copy));
	assert_int_equal(source.reads, 0);
	/* That is over: nothing is asked, and all is copied. */
	asked = 3;
	heap_copy_again(copy, UINT64_MAX);
	assert_int_equal(source.reads, 16);
	assert_int_equal(asked, 3);
	source.reads = 0;
	asked = 0;
	heap_copy_begin_hold(copy, three_times, &asked);
	heap_copy_again(copy, UINT64_MAX);
	assert_true(heap_copy_end_hold(copy));
	assert_int_equal(source.reads, 16);
	heap_copy_free(copy);
}

static bool once(void *context)
{
	return (*(int *)context)++ < 1;
}

/* Whoever looks for pages reads a file of the kernel's, which takes long of a large process. */
static bool next_page(void *context, uint64_t *at, uint64_t end, uint64_t *ret_begin, uint64_t *ret_end)
{
	(*(unsigned int *)context)++;
	*ret_begin = *at;
	*ret_end = *at = *at + HEAP_PAGE;
	return *ret_begin < end;
}

static void a_hold_that_may_not_go_on_looks_for_no_more(void **state)
{
	struct letters source = source_at(BASE);
	struct heap_copy *copy = heap_copy_new(&source.memory);
	unsigned int found = 0;
	int asked = 0;

	(void)state;
	set(copy, 0, 10);
	assert_non_null(heap_copy_view(copy, page(0), 10 * HEAP_PAGE));
	assert_int_equal(heap_copy_kept(copy), 10 * HEAP_PAGE);
	heap_copy_begin_hold(copy, once, &asked);
	heap_copy_mark(copy, next_page, &found);
	assert_int_equal(found, 1);
	assert_false(heap_copy_end_hold(copy));
	set(copy, 0, 20);
	found = 0;
	asked = 0;
	heap_copy_begin_hold(copy, three_times, &asked);
	heap_copy_fill(copy, HEAP_FILL_ALL, next_page, &found);
	assert_in_range(found, 1, 3);
	assert_false(heap_copy_end_hold(copy));
	/* The next hold does. */
	heap_copy_begin_hold(copy, always, NULL);
	heap_copy_fill(copy, HEAP_FILL_ALL, next_page, &found);
	assert_true(heap_copy_end_hold(copy));
	assert_int_equal(heap_copy_kept(copy), 20 * HEAP_PAGE);
	heap_copy_free(copy);
}

static void a_page_that_could_not_be_read_is_tried_when_mappings_change(void **state)
{
	struct letters source = source_at(BASE);
	struct heap_copy *copy = heap_copy_new(&source.memory);

	(void)state;
	source.letters[2] = 0;
	set(copy, 0, 16);
	assert_int_equal(letter(copy, 2), -1);
	assert_int_equal(letter(copy, 1), 'a');
	source.letters[2] = 'b';
	assert_int_equal(letter(copy, 2), -1);
	set(copy, 0, 17);
	assert_int_equal(letter(copy, 2), 'b');
	heap_copy_free(copy);
}

static void a_copy_reads_as_memory(void **state)
{
	struct letters source = source_at(BASE);
	struct heap_copy *copy = heap_copy_new(&source.memory);
	struct memory *memory;
	char bytes[2] = "--";

	(void)state;
	assert_non_null(copy);
	set(copy, 0, 2);
	memory = heap_copy_memory(copy);
	source.letters[1] = 'b';
	assert_int_equal(memory_read(memory, page(1) - 1, bytes, 2), MEMORY_OK);
	assert_memory_equal(bytes, "ab", 2);
	/* What is not all in the regions is not read, not even in part. */
	assert_int_equal(memory_read(memory, page(2) - 1, bytes, 2), MEMORY_NOT_CAPTURED);
	assert_int_equal(memory_read(memory, page(2), bytes, 1), MEMORY_NOT_CAPTURED);
	assert_int_equal(memory_read(memory, page(0) - 1, bytes, 1), MEMORY_NOT_CAPTURED);
	assert_memory_equal(bytes, "ab", 2);
	/* Nothing is read everywhere. */
	assert_int_equal(memory_read(memory, page(2), bytes, 0), MEMORY_OK);
	heap_copy_free(copy);
	heap_copy_free(NULL);
}

/* Pages from the first on, before the last, in pieces of two pages with one between them. */
struct piece_search {
	uint64_t first, last;
};

static bool next_piece(void *context, uint64_t *at, uint64_t end, uint64_t *ret_begin, uint64_t *ret_end)
{
	const struct piece_search *search = context;

	for (; *at < end; *at += HEAP_PAGE) {
		const uint64_t number = (*at - BASE) / HEAP_PAGE;

		if (number < search->first || number >= search->last || (number - search->first) % 3 != 0)
			continue;
		*ret_begin = *at;
		*ret_end = *at + 2 * HEAP_PAGE < end ? *at + 2 * HEAP_PAGE : end;
		*at = *ret_end;
		return true;
	}
	return false;
}

static void what_is_looked_for_is_marked_and_copied_again(void **state)
{
	struct letters source = source_at(BASE);
	struct heap_copy *copy = heap_copy_new(&source.memory);
	const struct heap_range ranges[] = { { page(0), page(4), false },
					     { page(8), page(16), false },
					     { page(20), page(24), false } };
	struct piece_search search = { 1, 13 };

	(void)state;
	assert_int_equal(heap_copy_set_regions(copy, ranges, 3), 0);
	source.letters[9] = 0;
	assert_int_equal(letter(copy, 0), 'a');
	assert_int_equal(letter(copy, 8), 'a');
	/* Pages 1, 2 and 10, 11: others are not in regions, not copied, or not found. */
	heap_copy_mark(copy, next_piece, &search);
	assert_int_equal(heap_copy_marked(copy), 4 * HEAP_PAGE);
	memset(source.letters, 'b', sizeof(source.letters));
	source.reads = 0;
	heap_copy_again_marked(copy, UINT64_MAX);
	assert_int_equal(source.reads, 4);
	for (unsigned int number = 0; number < 16; number++)
		if (number < 4 || number >= 10)
			assert_int_equal(letter(copy, number),
					 number == 1 || number == 2 || number == 10 || number == 11 ? 'b'
												    : 'a');
	/* They stay marked, and are no longer when others are. */
	assert_int_equal(heap_copy_marked(copy), 4 * HEAP_PAGE);
	search = (struct piece_search){ 12, 13 };
	heap_copy_mark(copy, next_piece, &search);
	assert_int_equal(heap_copy_marked(copy), 2 * HEAP_PAGE);
	/* A page that is gone is dropped. */
	source.letters[12] = 0;
	assert_int_equal(heap_copy_kept(copy), 11 * HEAP_PAGE);
	heap_copy_again_marked(copy, UINT64_MAX);
	assert_int_equal(heap_copy_kept(copy), 10 * HEAP_PAGE);
	assert_int_equal(heap_copy_marked(copy), HEAP_PAGE);
	assert_int_equal(letter(copy, 12), -1);
	assert_int_equal(letter(copy, 13), 'b');
	heap_copy_free(copy);
}

/* Regions of four pages at each eighth, all copied; then the source changes. */
static struct heap_copy *copy_of_four_regions(struct letters *source)
{
	struct heap_copy *copy = heap_copy_new(&source->memory);
	struct heap_range ranges[4];

	for (unsigned int i = 0; i < 4; i++)
		ranges[i] = (struct heap_range){ page(8 * i), page(8 * i + 4), false };
	assert_int_equal(heap_copy_set_regions(copy, ranges, 4), 0);
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(letter(copy, 8 * i), 'a');
	memset(source->letters, 'b', sizeof(source->letters));
	source->reads = 0;
	return copy;
}

static void so_many_bytes_are_copied_again_and_some_more(void **state)
{
	struct letters source = source_at(BASE);
	struct heap_copy *copy = copy_of_four_regions(&source);
	uint64_t bytes = heap_copy_bytes(copy);

	(void)state;
	assert_int_equal(bytes, 16 * HEAP_PAGE);
	heap_copy_again(copy, 0);
	assert_int_equal(source.reads, 0);
	heap_copy_again(copy, 4 * HEAP_PAGE);
	assert_int_equal(source.reads, 4);
	assert_int_equal(letter(copy, 3), 'b');
	assert_int_equal(letter(copy, 8), 'a');
	heap_copy_again(copy, 4 * HEAP_PAGE + 1);
	assert_int_equal(source.reads, 12);
	heap_copy_again(copy, UINT64_MAX);
	assert_int_equal(source.reads, 28);
	assert_int_equal(heap_copy_bytes(copy), bytes + 28 * HEAP_PAGE);
	assert_int_equal(heap_copy_kept(copy), 16 * HEAP_PAGE);
	for (unsigned int number = 0; number < 28; number++)
		assert_int_equal(letter(copy, number), number % 8 < 4 ? 'b' : -1);
	heap_copy_free(copy);
}

static void of_changes_that_are_followed_all_is_taken_over(void **state)
{
	struct letters source = source_at(BASE);
	struct heap_copy *copy = copy_of_four_regions(&source);
	uint64_t bytes = heap_copy_bytes(copy);

	(void)state;
	memset(source.letters, 'a', sizeof(source.letters));
	source.letters[1] = source.letters[3] = source.letters[25] = 'c';
	heap_copy_follow(copy);
	assert_int_equal(heap_copy_bytes(copy), bytes + 16 * HEAP_PAGE);
	assert_int_equal(heap_copy_marked(copy), 3 * HEAP_PAGE);
	for (unsigned int number = 0; number < 28; number++)
		if (number % 8 < 4)
			assert_int_equal(letter(copy, number), source.letters[number]);
	/* What cannot be read any more is marked, too, and stays as it was until the next hold. */
	source.letters[16] = 0;
	heap_copy_follow(copy);
	assert_int_equal(heap_copy_marked(copy), 7 * HEAP_PAGE);
	assert_int_equal(letter(copy, 16), 'a');
	heap_copy_again_marked(copy, UINT64_MAX);
	assert_int_equal(letter(copy, 16), -1);
	assert_int_equal(letter(copy, 17), 'a');
	assert_int_equal(heap_copy_marked(copy), 6 * HEAP_PAGE);
	heap_copy_free(copy);
}

static void a_hold_forgets_the_one_before(void **state)
{
	struct letters source = source_at(BASE);
	struct heap_copy *copy = copy_of_four_regions(&source);

	(void)state;
	assert_false(heap_copy_has_changed(copy, page(0), 1));
	heap_copy_begin_hold(copy, always, NULL);
	heap_copy_again(copy, 4 * HEAP_PAGE);
	assert_true(heap_copy_end_hold(copy));
	assert_int_equal(heap_copy_check(copy), 12);
	assert_false(heap_copy_has_changed(copy, page(3), HEAP_PAGE));
	assert_true(heap_copy_has_changed(copy, page(8), 1));
	assert_true(heap_copy_has_changed(copy, page(11), HEAP_PAGE));
	/* Of what no region has as a whole, no change is known. */
	assert_false(heap_copy_has_changed(copy, page(12), 1));
	assert_false(heap_copy_has_changed(copy, page(11), HEAP_PAGE + 1));
	source.letters[0] = 'c';
	heap_copy_begin_hold(copy, always, NULL);
	assert_false(heap_copy_has_changed(copy, page(8), 1));
	assert_true(heap_copy_end_hold(copy));
	assert_int_equal(heap_copy_check(copy), 13);
	assert_true(heap_copy_has_changed(copy, page(0), 1));
	/* Of pages that are gone, nothing counts. */
	set(copy, 0, 4);
	assert_int_equal(heap_copy_check(copy), 1);
	assert_int_equal(heap_copy_marked(copy), HEAP_PAGE);
	heap_copy_free(copy);
}

/* Told apart from memory of the target that is gone. */
static void a_region_without_room_is_told(void **state)
{
	struct letters source = source_at(BASE);
	struct heap_copy *copy = heap_copy_new(&source.memory);
	const struct heap_range ranges[] = { { page(0), page(10), false }, { page(20), page(30), false } };

	(void)state;
	set(copy, 0, 10);
	assert_null(heap_copy_view(copy, page(20), HEAP_PAGE));
	assert_false(heap_copy_is_short(copy));
	memory_is_short = true;
	assert_null(heap_copy_view(copy, page(0), HEAP_PAGE));
	memory_is_short = false;
	assert_true(heap_copy_is_short(copy));
	assert_int_equal(letter(copy, 0), 'a');
	/* That is of the attempt before; and what nobody has asked for is not missing. */
	heap_copy_begin_hold(copy, always, NULL);
	assert_false(heap_copy_is_short(copy));
	assert_int_equal(heap_copy_set_regions(copy, ranges, 2), 0);
	memory_is_short = true;
	heap_copy_fill(copy, HEAP_FILL_ALL, next_all, NULL);
	memory_is_short = false;
	assert_true(heap_copy_end_hold(copy));
	assert_false(heap_copy_is_short(copy));
	assert_int_equal(letter(copy, 20), 'a');
	heap_copy_free(copy);
}

static void a_sealed_copy_reads_nothing(void **state)
{
	struct letters source = source_at(BASE);
	struct heap_copy *copy = heap_copy_new(&source.memory);

	(void)state;
	set(copy, 0, PAGES);
	source.letters[60] = 0;
	heap_copy_seal(copy);
	assert_int_equal(letter(copy, 0), -1);
	assert_int_equal(letter(copy, 1), -1);
	assert_int_equal(heap_copy_missed(copy), 2);
	assert_int_equal(source.reads, 0);
	heap_copy_unseal(copy);
	assert_int_equal(letter(copy, 0), 'a');
	assert_int_equal(heap_copy_missed(copy), 2);
	heap_copy_seal(copy);
	assert_int_equal(heap_copy_missed(copy), 0);
	assert_int_equal(letter(copy, 1), 'a');
	/* All of what is asked for must be there. */
	assert_non_null(heap_copy_view(copy, page(59) + 1, HEAP_PAGE - 1));
	assert_null(heap_copy_view(copy, page(59) + 1, HEAP_PAGE));
	assert_null(heap_copy_view(copy, page(PAGES - 1), HEAP_PAGE + 1));
	assert_int_equal(heap_copy_missed(copy), 1);
	heap_copy_free(copy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_region_keeps_what_was_copied_when_it_grows),
		cmocka_unit_test(what_was_unmapped_is_copied_anew),
		cmocka_unit_test(only_regions_in_use_or_new_are_filled),
		cmocka_unit_test(near_what_is_copied_is_filled_and_no_more),
		cmocka_unit_test(regions_beyond_the_room_of_one_become_one),
		cmocka_unit_test(what_was_not_copied_in_the_hold_is_compared),
		cmocka_unit_test(a_hold_that_may_not_go_on_copies_no_more),
		cmocka_unit_test(a_hold_that_may_not_go_on_looks_for_no_more),
		cmocka_unit_test(a_page_that_could_not_be_read_is_tried_when_mappings_change),
		cmocka_unit_test(a_copy_reads_as_memory),
		cmocka_unit_test(what_is_looked_for_is_marked_and_copied_again),
		cmocka_unit_test(so_many_bytes_are_copied_again_and_some_more),
		cmocka_unit_test(of_changes_that_are_followed_all_is_taken_over),
		cmocka_unit_test(a_hold_forgets_the_one_before),
		cmocka_unit_test(a_region_without_room_is_told),
		cmocka_unit_test(a_sealed_copy_reads_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

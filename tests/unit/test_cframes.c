/* SPDX-License-Identifier: MIT */
/* Links between C frames, and the search for frames that no link leads to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/made_up_states.h"
#include "unwind/capture/cframe_search.h"
#include "unwind/capture/cframes.h"

enum {
	BEGIN = C_STACK_AT,
	END = C_STACK_AT + 0x4000,
	FRAME_SIZE = 80,
	FIRST = BEGIN + 0x100,
	SECOND = BEGIN + 0x400,
	THIRD = BEGIN + 0x800,
	OWN = C_STACK_AT + 0x8000, /* the thread's own stack, where it has another one */
	OWN_END = OWN + 0x2000,
};

/* Threads 0 to count - 1 are captured, with these innermost frames. */
static void set_threads(const uint64_t *cframes, size_t count)
{
	states.capture.stack_begin = BEGIN;
	states.capture.stack_end = END;
	states.capture.thread_count = count;
	for (size_t i = 0; i < count; i++)
		states.capture.threads[i] = (struct lua_thread){ .address = thread_at(i),
								 .layout = &states.vm.layout,
								 .cframe = cframes[i] };
}

#define THREADS(...) \
	set_threads((const uint64_t[]){ __VA_ARGS__ }, \
		    sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t))

static void set_own_stack(void)
{
	states.capture.own_begin = OWN;
	states.capture.own_end = OWN_END;
}

static uint64_t above(size_t thread, uint64_t sp)
{
	return cframe_above(&states.capture, &states.memory, &states.capture.threads[thread], sp);
}

static const struct lua_thread *owner(uint64_t cframe)
{
	return cframe_thread(&states.capture, &states.memory, &states.vm.layout, cframe);
}

static unsigned count_from(uint64_t cframe)
{
	return cframe_count(&states.capture, &states.memory, &states.capture.threads[0], cframe);
}

static bool leads(uint64_t from, uint64_t to)
{
	return cframe_leads_to(&states.capture, &states.memory, &states.vm.layout, from, to);
}

/* Thread 0 has three frames. */
static void put_chain(void)
{
	THREADS(FIRST);
	put_cframe(FIRST, thread_at(0), SECOND | CFRAME_FLAGS, NATIVE_CODE);
	put_cframe(SECOND, thread_at(0), THIRD, NATIVE_CODE);
	put_cframe(THIRD, thread_at(0), 0, NATIVE_CODE);
}

/*---- Links ----*/

static void the_next_frame_is_at_or_above_a_stack_pointer(void **state)
{
	(void)state;
	put_chain();
	assert_int_equal(above(0, BEGIN), FIRST);
	assert_int_equal(above(0, FIRST), FIRST);
	assert_int_equal(above(0, FIRST + 1), SECOND);
	assert_int_equal(above(0, THIRD), THIRD);
	assert_int_equal(above(0, THIRD + 1), 0);
	states.capture.threads[0].cframe = 0;
	assert_int_equal(above(0, BEGIN), 0);
}

static void links_that_do_not_lead_outwards_end(void **state)
{
	(void)state;
	put_chain();
	put_cframe(SECOND, thread_at(0), FIRST, NATIVE_CODE); /* a circle */
	assert_int_equal(above(0, SECOND + 1), 0);
	assert_int_equal(count_from(FIRST), 2);
	assert_false(leads(FIRST, THIRD));
	put_cframe(SECOND, thread_at(0), SECOND, NATIVE_CODE);
	assert_int_equal(above(0, SECOND + 1), 0);
	assert_int_equal(count_from(FIRST), 2);
	put_cframe(SECOND, thread_at(0), C_STACK_END, NATIVE_CODE); /* nothing is there */
	assert_int_equal(above(0, C_STACK_END + 1), 0);
	assert_false(leads(FIRST, 0));
}

static void the_threads_own_stack_is_outermost(void **state)
{
	(void)state;
	put_chain();
	set_own_stack();
	put_cframe(SECOND, thread_at(0), OWN + 0x40, NATIVE_CODE);
	put_cframe(OWN + 0x40, thread_at(0), OWN + 0x100, NATIVE_CODE);
	put_cframe(OWN + 0x100, thread_at(0), 0, NATIVE_CODE);
	/* On the same stack only. */
	assert_int_equal(above(0, SECOND), SECOND);
	assert_int_equal(above(0, SECOND + 1), 0);
	assert_int_equal(above(0, OWN), OWN + 0x40);
	assert_int_equal(above(0, OWN + 0x41), OWN + 0x100);
	assert_true(leads(FIRST, OWN + 0x100));
	/* From there nothing leads back, wherever the other stack lies. */
	put_cframe(OWN + 0x100, thread_at(0), OWN_END + 0x100, NATIVE_CODE);
	put_cframe(OWN_END + 0x100, thread_at(0), 0, NATIVE_CODE);
	assert_false(leads(FIRST, OWN_END + 0x100));
	assert_int_equal(count_from(FIRST), 4);
}

static void a_frames_thread_is_the_one_whose_links_lead_there(void **state)
{
	(void)state;
	put_chain();
	assert_ptr_equal(owner(FIRST), &states.capture.threads[0]);
	assert_ptr_equal(owner(THIRD), &states.capture.threads[0]);
	assert_null(owner(0));
	assert_null(owner(C_STACK_END));
	/* The stack has a frame that the thread has left, and one of a thread that is not captured. */
	put_cframe(THIRD + 0x100, thread_at(0), 0, NATIVE_CODE);
	assert_null(owner(THIRD + 0x100));
	put_cframe(THIRD, thread_at(1), 0, NATIVE_CODE);
	assert_null(owner(THIRD));
}

static void of_several_threads_the_nearest_frame_is_next(void **state)
{
	uint64_t cframe = 0;

	(void)state;
	THREADS(SECOND, FIRST, THIRD);
	put_cframe(SECOND, thread_at(0), 0, NATIVE_CODE);
	put_cframe(FIRST, thread_at(1), 0, NATIVE_CODE);
	put_cframe(THIRD, thread_at(2), 0, NATIVE_CODE);
	assert_ptr_equal(cframe_thread_above(&states.capture, &states.memory, BEGIN, &cframe),
			 &states.capture.threads[1]);
	assert_int_equal(cframe, FIRST);
	assert_ptr_equal(cframe_thread_above(&states.capture, &states.memory, FIRST + 1, &cframe),
			 &states.capture.threads[0]);
	assert_int_equal(cframe, SECOND);
	assert_ptr_equal(cframe_thread_above(&states.capture, &states.memory, THIRD, &cframe),
			 &states.capture.threads[2]);
	assert_int_equal(cframe, THIRD);
	assert_null(cframe_thread_above(&states.capture, &states.memory, THIRD + 1, &cframe));
	assert_int_equal(cframe, THIRD); /* as it was */
}

static void only_frames_that_run_lua_count(void **state)
{
	(void)state;
	put_chain();
	assert_int_equal(count_from(FIRST), 3);
	assert_int_equal(count_from(THIRD), 1);
	assert_int_equal(count_from(0), 0);
	put(SECOND + (uint64_t)states.vm.layout.CFRAME_NRES, (uint32_t)-1, 4); /* lua_cpcall */
	assert_int_equal(count_from(FIRST), 2);
	assert_int_equal(count_from(SECOND), 1);
}

static void links_lead_from_one_frame_to_another(void **state)
{
	(void)state;
	put_chain();
	assert_true(leads(FIRST, FIRST));
	assert_true(leads(FIRST, THIRD));
	assert_true(leads(FIRST, 0));
	assert_false(leads(SECOND, FIRST));
	assert_false(leads(FIRST, THIRD + 0x100));
	assert_false(leads(0, FIRST));
}

/*---- The search ----*/

/* The copy of [BEGIN, end) of the stack, in one piece. */
static struct cframe_search search_in(uint64_t begin, uint64_t end)
{
	struct memory_range range = { .address = BEGIN, .length = (size_t)(END - BEGIN) };

	snapshot_clear(states.process.snapshot);
	snapshot_capture(states.process.snapshot, &range, 1);
	assert_int_equal(range.status, MEMORY_OK);
	return cframe_search(states.process.snapshot, states.image, &states.vm.layout, begin, end);
}

/* The search finds these frames, each of the thread of its number, and no more. */
static void check_found(struct cframe_search *search, const uint64_t *expected, size_t count)
{
	uint64_t cframe, thread;

	for (size_t i = 0; i < count; i++) {
		assert_true(cframe_search_next(search, &cframe, &thread));
		assert_int_equal(cframe, expected[i]);
		assert_int_equal(thread, thread_at(i));
	}
	assert_false(cframe_search_next(search, &cframe, &thread));
}

#define FINDS(search, ...) \
	check_found((search), (const uint64_t[]){ __VA_ARGS__ }, \
		    sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t))

static void frames_are_found_outwards(void **state)
{
	struct cframe_search search;

	(void)state;
	put_cframe(FIRST, thread_at(0), 0, NATIVE_CODE);
	put_cframe(SECOND, thread_at(1), SECOND + 0x100, NATIVE_CODE);
	put_cframe(BEGIN + 0x1000 - 16, thread_at(2), 0, NATIVE_CODE); /* across two pages */
	put_cframe(END - FRAME_SIZE, thread_at(3), 0, NATIVE_CODE);    /* to the very end */
	search = search_in(BEGIN, END);
	FINDS(&search, FIRST, SECOND, BEGIN + 0x1000 - 16, END - FRAME_SIZE);
	search = search_in(FIRST, END - 1);
	FINDS(&search, FIRST, SECOND, BEGIN + 0x1000 - 16);
	search = search_in(FIRST - 15, SECOND + FRAME_SIZE); /* begins at an address that is not aligned */
	FINDS(&search, FIRST, SECOND);
	search = search_in(BEGIN, SECOND + FRAME_SIZE - 1);
	FINDS(&search, FIRST);
}

static void what_does_not_resemble_a_frame_is_passed(void **state)
{
	struct cframe_search search;
	uint64_t cframe, thread;

	(void)state;
	put_cframe(FIRST, thread_at(0) + 4, 0, NATIVE_CODE);
	put_cframe(FIRST + 0x100, 0, 0, NATIVE_CODE);
	put_cframe(FIRST + 0x200, STATES_PAGE - 8, 0, NATIVE_CODE);
	put_cframe(SECOND, thread_at(0), SECOND, NATIVE_CODE);
	put_cframe(SECOND + 0x108, thread_at(0), 0, NATIVE_CODE); /* not aligned */
	put_cframe(THIRD, thread_at(0), 0, FREE_AT);              /* returns to no module */
	search = search_in(BEGIN, END);
	assert_false(cframe_search_next(&search, &cframe, &thread));
	put_cframe(THIRD + 0x100, STATES_PAGE, 0, NATIVE_CODE); /* an object might be there */
	search = search_in(BEGIN, END);
	assert_true(cframe_search_next(&search, &cframe, &thread));
	assert_int_equal(thread, STATES_PAGE);
}

static void a_search_goes_on_when_the_copy_has_grown(void **state)
{
	struct cframe_search search;

	(void)state;
	put_cframe(FIRST, thread_at(0), 0, NATIVE_CODE);
	search = search_in(BEGIN, SECOND);
	FINDS(&search, FIRST);
	put_cframe(SECOND, thread_at(0), 0, NATIVE_CODE);
	snapshot_overlay(states.process.snapshot, SECOND, states.bytes + (SECOND - STATES_AT), FRAME_SIZE);
	cframe_search_until(&search, SECOND + FRAME_SIZE - 1);
	FINDS(&search);
	cframe_search_until(&search, SECOND + FRAME_SIZE);
	FINDS(&search, SECOND);
}

/* Registers may hold anything where the stack pointer was. */
static void a_search_beyond_all_addresses_finds_nothing(void **state)
{
	struct cframe_search search;

	(void)state;
	put_cframe(FIRST, thread_at(0), 0, NATIVE_CODE);
	search = search_in(UINT64_MAX - 3, END);
	FINDS(&search);
	search = search_in(BEGIN, 8);
	FINDS(&search);
	search = search_in(END, BEGIN);
	FINDS(&search);
}

/* The copy of the stack begins and ends within pages, and has a gap. */
static void a_copy_in_pieces_is_searched_too(void **state)
{
	struct memory_range ranges[] = { { .address = FIRST, .length = 0x200 },
					 { .address = BEGIN + 0x2010, .length = 0x100 } };
	struct cframe_search search;

	(void)state;
	put_cframe(FIRST, thread_at(0), 0, NATIVE_CODE);
	put_cframe(BEGIN + 0x2010, thread_at(1), 0, NATIVE_CODE);
	put_cframe(BEGIN + 0x2200, thread_at(2), 0, NATIVE_CODE); /* not copied */
	snapshot_capture(states.process.snapshot, ranges, 2);
	snapshot_seal(states.process.snapshot);
	search = cframe_search(states.process.snapshot, states.image, &states.vm.layout, FIRST, END);
	FINDS(&search, FIRST, BEGIN + 0x2010);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, states_begin, states_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_next_frame_is_at_or_above_a_stack_pointer),
		TEST(links_that_do_not_lead_outwards_end),
		TEST(the_threads_own_stack_is_outermost),
		TEST(a_frames_thread_is_the_one_whose_links_lead_there),
		TEST(of_several_threads_the_nearest_frame_is_next),
		TEST(only_frames_that_run_lua_count),
		TEST(links_lead_from_one_frame_to_another),
		TEST(frames_are_found_outwards),
		TEST(what_does_not_resemble_a_frame_is_passed),
		TEST(a_search_goes_on_when_the_copy_has_grown),
		TEST(a_search_beyond_all_addresses_finds_nothing),
		TEST(a_copy_in_pieces_is_searched_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* The coroutines of a request, with OpenResty's LuaJIT and with others, in made-up memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/made_up_lua.h"
#include "unwind/nginx/light_threads.h"

enum { SIGNATURE = 0x50545448 };

/* Words of the target. */
enum {
	G = 2,
	SEGMENTS_MEMBER = 20, /* of g, words */
	REQUEST = 70,
	CONTEXTS = 74,
	CONTEXT = 80,        /* the module's context of the request */
	ENTRY = CONTEXT + 6, /* of the first coroutine, behind the list of the others */
	CONTEXT_WORDS = 16,
	LIST = 100,
	SECOND_PART = 110,
	COCTX_WORDS = 4,
	LISTED = 120, /* contexts of the others: two parts of two */
	THREAD_COUNT = 5,
	TABLES = 200,
	TABLE_WORDS = 12,
	KEY = 280,
	SEGMENTS = 300,
	STACK = 304, /* of all threads */
	THREADS = 320,
	UNMAPPED = WORDS,
};

/* Words of a lua_State. */
enum {
	GLREF = 2,
	L_BASE = 3,
	ENV = 4,
	EXDATA = 5,
	EXDATA2 = 6,
	TOP = 7,
	MAXSTACK = 8,
	L_STACK = 9,
	CFRAME = 10,
	STATUS = 11,
	STACKSIZE = 12,
	THREAD_WORDS = 13,
};

#define THREAD_LAYOUT \
	.L_top = TOP * WORD, .L_maxstack = MAXSTACK * WORD, .L_stack = L_STACK * WORD, \
	.L_cframe = CFRAME * WORD, .L_status = STATUS * WORD, .L_stacksize = STACKSIZE * WORD, \
	.L_size = THREAD_WORDS * WORD

static const struct layout openresty = {
	.gc64 = true, MADE_UP_LAYOUT, THREAD_LAYOUT, .L_exdata = EXDATA * WORD, .L_exdata2 = EXDATA2 * WORD
};
static const struct layout luajit_of_debian = {
	.gc64 = true, MADE_UP_LAYOUT, THREAD_LAYOUT, .L_exdata = -1, .L_exdata2 = -1
};
static const struct layout *const other = &luajit_of_debian;

static const struct request_layout layout = {
	.known = true,
	.r_ctx = WORD,
	.ctx_index = 2,
	.ctx_context = (CONTEXT_WORDS - 1) * WORD,
	.context_size = 2,
};

static const struct request_context context = { .address = BASE + CONTEXT * WORD };

static uint64_t thread(size_t index)
{
	return at(THREADS + index * THREAD_WORDS);
}

/* Where the context of a coroutine is. */
static size_t coctx(size_t index)
{
	return index == 0 ? ENTRY : LISTED + (index - 1) * COCTX_WORDS;
}

/* A coroutine that has yielded: words of a lua_State. */
static void put_thread(uint64_t *words, uint64_t exdata, uint64_t exdata2)
{
	words[1] = GCT_THREAD << 8;
	words[GLREF] = at(G);
	words[EXDATA] = exdata;
	words[EXDATA2] = exdata2;
	words[L_STACK] = at(STACK);
	words[L_BASE] = words[TOP] = at(STACK + 4);
	words[MAXSTACK] = at(STACK + 8);
	words[STACKSIZE] = 16;
	words[STATUS] = LUA_YIELD;
}

/* Its function has returned. */
static void end_thread(uint64_t *words)
{
	words[STATUS] = 0;
	words[L_BASE] = words[TOP] = at(STACK + 2);
}

/* A request with five coroutines, the first of which is a part of its context. */
static struct made_up worker(const struct layout *luajit)
{
	struct made_up made_up = { .memory = { .read_ranges = read_ranges } };
	uint64_t *words = made_up.words, key = put_string(&made_up, luajit, KEY, "__ngx_req");

	words[REQUEST] = SIGNATURE;
	words[REQUEST + 1] = at(CONTEXTS);
	words[CONTEXTS + 2] = at(CONTEXT);
	words[CONTEXT] = at(REQUEST);
	words[ENTRY - 1] = at(LIST);
	/* ngx_list_t: last; elts, nelts, next; size, nalloc, pool */
	memcpy(&words[LIST],
	       (uint64_t[]){ at(SECOND_PART), at(LISTED), 2, at(SECOND_PART), COCTX_WORDS * WORD, 2, at(0) },
	       7 * sizeof(uint64_t));
	memcpy(&words[SECOND_PART], (uint64_t[]){ at(LISTED + 2 * COCTX_WORDS), 2, 0 }, 3 * sizeof(uint64_t));
	for (size_t i = 0; i < THREAD_COUNT; i++) {
		size_t word = THREADS + i * THREAD_WORDS, table = TABLES + i * TABLE_WORDS;

		words[coctx(i) + 1] = thread(i);
		put_thread(&words[word], at(REQUEST), at(coctx(i)));
		words[word + ENV] = at(table);
		if (luajit->L_exdata < 0) {
			put_table(&made_up, luajit, table, table, 0, table + 6, 2);
			put_node(&made_up, table + 6 + NODE_WORDS, key,
				 tagged(luajit, TAG_LIGHTUD, at(REQUEST)));
		}
	}
	return made_up;
}

/* The indices of the coroutines that are found, as digits. */
static const char *found(struct made_up *made_up, const struct layout *luajit)
{
	static char text[LIGHT_THREADS_MAX + 1];
	struct light_threads threads;

	light_threads_find(&made_up->memory, &layout, luajit, at(REQUEST), &context, &threads);
	assert_int_equal(threads.more, 0);
	assert_int_equal(threads.g, threads.count ? at(G) : 0);
	for (size_t i = 0; i < threads.count; i++)
		text[i] = (char)('0' + (threads.threads[i] - thread(0)) / (THREAD_WORDS * WORD));
	text[threads.count] = '\0';
	return text;
}

static void all_coroutines_of_a_request_are_found(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2; i++) {
		const struct layout *luajit = i ? &openresty : other;
		struct made_up made_up = worker(luajit);

		assert_string_equal(found(&made_up, luajit), "01234");
		/* One that is listed twice, and one that has gone. */
		made_up.words[coctx(2) + 1] = i ? 0 : thread(1);
		assert_string_equal(found(&made_up, luajit), "0134");
		made_up.words[coctx(3) + 1] = at(UNMAPPED);
		assert_string_equal(found(&made_up, luajit), "014");
		made_up.words[LIST + 3] = 0;
		assert_string_equal(found(&made_up, luajit), "01");
		made_up.words[ENTRY - 1] = at(UNMAPPED);
		assert_string_equal(found(&made_up, luajit), "0");
		made_up.words[ENTRY + 1] = thread(0) + 1;
		assert_string_equal(found(&made_up, luajit), "");
	}
}

static void a_coroutine_of_another_request_is_left_out(void **state)
{
	struct made_up made_up = worker(&openresty);

	(void)state;
	made_up.words[THREADS + 1 * THREAD_WORDS + EXDATA] = at(CONTEXT);
	made_up.words[THREADS + 3 * THREAD_WORDS + EXDATA2] = at(coctx(2));
	assert_string_equal(found(&made_up, &openresty), "024");
	made_up = worker(other);
	made_up.words[TABLES + 1 * TABLE_WORDS + 6 + NODE_WORDS] = tagged(other, TAG_LIGHTUD, at(CONTEXT));
	made_up.words[TABLES + 2 * TABLE_WORDS + 6 + NODE_WORDS] = tagged(other, TAG_UDATA, at(REQUEST));
	put_head(&made_up, THREADS + 3 * THREAD_WORDS, GCT_UPVALUE);
	assert_string_equal(found(&made_up, other), "04");
	made_up = worker(other);
	made_up.words[TABLES + 6 + NODE_WORDS] = tagged(other, TAG_LIGHTUD, 0);
	assert_string_equal(found(&made_up, other), "1234");
}

/* The module lists a coroutine until the request ends, whatever has become of its lua_State. */
static void a_coroutine_that_was_collected_is_left_out(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2; i++) {
		const struct layout *luajit = i ? &openresty : other;
		struct made_up made_up = worker(luajit);

		put_head(&made_up, THREADS + 1 * THREAD_WORDS, GCT_TABLE);
		made_up.words[THREADS + 2 * THREAD_WORDS + GLREF] = at(REQUEST);
		made_up.words[THREADS + 3 * THREAD_WORDS + L_STACK] = 0;
		assert_string_equal(found(&made_up, luajit), "04");
	}
}

static void a_coroutine_that_has_ended_is_left_out(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2; i++) {
		const struct layout *luajit = i ? &openresty : other;
		struct made_up made_up = worker(luajit);

		end_thread(&made_up.words[THREADS + 1 * THREAD_WORDS]);
		made_up.words[THREADS + 2 * THREAD_WORDS + STATUS] = LUA_YIELD + 1; /* by an error */
		assert_string_equal(found(&made_up, luajit), "034");
		/* It has not begun, and it runs. */
		made_up.words[THREADS + 1 * THREAD_WORDS + TOP] += WORD;
		made_up.words[THREADS + 2 * THREAD_WORDS + CFRAME] = at(1);
		assert_string_equal(found(&made_up, luajit), "01234");
		/* The light threads of the first one go on when it ends. */
		end_thread(&made_up.words[THREADS]);
		assert_string_equal(found(&made_up, luajit), "1234");
	}
}

static void light_threads_are_found_when_the_first_one_works_for_another_request(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2; i++) {
		const struct layout *luajit = i ? &openresty : other;
		struct made_up made_up = worker(luajit);

		made_up.words[THREADS + EXDATA] = at(CONTEXT);
		made_up.words[TABLES + 6 + NODE_WORDS] = tagged(luajit, TAG_LIGHTUD, at(CONTEXT));
		assert_string_equal(found(&made_up, luajit), "1234");
		made_up.words[ENTRY - 1] = at(UNMAPPED);
		assert_string_equal(found(&made_up, luajit), "");
	}
}

/* A request with more coroutines than there is room for. */
enum { MANY_COUNT = 100, MANY_CONTEXTS = WORDS, MANY_THREADS = MANY_CONTEXTS + MANY_COUNT * COCTX_WORDS };

static struct {
	struct memory memory; /* first: what is read */
	uint64_t words[MANY_THREADS + MANY_COUNT * THREAD_WORDS];
} many;

static void read_many(struct memory *memory, struct memory_range *ranges, size_t count)
{
	(void)memory;
	range_bytes(ranges, count, BASE, many.words, sizeof(many.words));
}

static uint64_t *words_of_many(size_t index)
{
	return &many.words[MANY_THREADS + index * THREAD_WORDS];
}

static void begin_many(void)
{
	const struct made_up made_up = worker(&openresty);

	many.memory.read_ranges = read_many;
	memcpy(many.words, made_up.words, sizeof(made_up.words));
	memcpy(&many.words[LIST],
	       (uint64_t[]){ at(LIST + 1), at(MANY_CONTEXTS), MANY_COUNT, 0, COCTX_WORDS * WORD, MANY_COUNT },
	       6 * sizeof(uint64_t));
	for (size_t i = 0; i < MANY_COUNT; i++) {
		many.words[MANY_CONTEXTS + i * COCTX_WORDS + 1] = at(MANY_THREADS + i * THREAD_WORDS);
		put_thread(words_of_many(i), at(REQUEST), at(MANY_CONTEXTS + i * COCTX_WORDS));
	}
}

static void coroutines_that_have_ended_take_no_room(void **state)
{
	struct light_threads threads;

	(void)state;
	begin_many();
	for (size_t i = 0; i < MANY_COUNT - 1; i++)
		end_thread(words_of_many(i));
	light_threads_find(&many.memory, &layout, &openresty, at(REQUEST), &context, &threads);
	assert_int_equal(threads.count, 2);
	assert_int_equal(threads.more, 0);
	assert_int_equal(threads.threads[0], thread(0));
	assert_int_equal(threads.threads[1], at(MANY_THREADS + (MANY_COUNT - 1) * THREAD_WORDS));
}

static void those_that_have_no_room_are_counted(void **state)
{
	struct light_threads threads;

	(void)state;
	begin_many();
	end_thread(words_of_many(MANY_COUNT - 1));
	light_threads_find(&many.memory, &layout, &openresty, at(REQUEST), &context, &threads);
	assert_int_equal(threads.count, LIGHT_THREADS_MAX);
	assert_int_equal(threads.threads[0], thread(0));
	assert_int_equal(threads.more, 1 + (MANY_COUNT - 1) - LIGHT_THREADS_MAX);
}

static void a_list_has_no_end_for_ever(void **state)
{
	struct made_up made_up = worker(&openresty);

	(void)state;
	made_up.words[SECOND_PART + 2] = at(SECOND_PART);
	assert_string_equal(found(&made_up, &openresty), "01234");
	made_up.words[SECOND_PART + 1] = 3; /* more than there is room for */
	assert_string_equal(found(&made_up, &openresty), "012");
}

static void the_request_of_a_coroutine_is_told(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2; i++) {
		const struct layout *luajit = i ? &openresty : other;
		struct made_up made_up = worker(luajit);
		struct request_hints hints = { 0 };
		struct light_thread light_thread;
		uint64_t request = 0, of = 0;

		assert_true(light_thread_request(&made_up.memory, luajit, thread(3), &hints, &request));
		assert_int_equal(request, at(REQUEST));
		for (size_t j = 0; j < THREAD_COUNT; j++) {
			assert_true(light_thread_read(&made_up.memory, &layout, luajit, thread(j), &hints,
						      &light_thread));
			assert_int_equal(light_thread.thread, thread(j));
			assert_int_equal(light_thread.request, at(REQUEST));
			assert_int_equal(light_thread.coctx, at(coctx(j)));
			assert_true(light_thread_context(&made_up.memory, &layout, luajit, at(REQUEST),
							 &context, thread(j), &of));
			assert_int_equal(of, at(coctx(j)));
			assert_true(light_thread_of(&made_up.memory, luajit, at(coctx(j)), &of));
			assert_int_equal(of, thread(j));
		}
		assert_false(light_thread_of(&made_up.memory, luajit, at(CONTEXTS), &of));
		assert_false(light_thread_of(&made_up.memory, luajit, at(UNMAPPED), &of));
		made_up.words[coctx(1) + 1] += 4;
		assert_false(light_thread_of(&made_up.memory, luajit, at(coctx(1)), &of));
		made_up.words[coctx(1) + 1] = 0;
		assert_false(light_thread_of(&made_up.memory, luajit, at(coctx(1)), &of));
		/* A coroutine that has none: no request, and no context. */
		if (i) {
			made_up.words[THREADS + 2 * THREAD_WORDS + EXDATA2] = 0;
			made_up.words[THREADS + 3 * THREAD_WORDS + EXDATA] = 0;
		} else {
			made_up.words[coctx(2) + 1] = 0;
			made_up.words[TABLES + 3 * TABLE_WORDS + 6 + NODE_WORDS] = UINT64_MAX;
		}
		assert_false(light_thread_context(&made_up.memory, &layout, luajit, at(REQUEST), &context,
						  thread(2), &of));
		assert_true(light_thread_read(&made_up.memory, &layout, luajit, thread(2), &hints,
					      &light_thread));
		assert_int_equal(light_thread.coctx, 0);
		assert_false(light_thread_read(&made_up.memory, &layout, luajit, thread(3), &hints,
					       &light_thread));
		assert_false(light_thread_request(&made_up.memory, luajit, at(UNMAPPED), &hints, &of));
	}
}

/* Since 2020 a light userdata has the lower bits of a pointer, and the index of the upper ones. */
static void pointers_may_be_in_segments(void **state)
{
	struct made_up made_up = worker(other);
	struct request_hints hints = { 0 };
	uint64_t request = 0, *value = &made_up.words[TABLES + 6 + NODE_WORDS];

	(void)state;
	*value = tagged(other, TAG_LIGHTUD, UINT64_C(3) << LIGHTUD_BITS_LO | at(REQUEST));
	assert_false(light_thread_request(&made_up.memory, other, thread(0), &hints, &request));
	assert_int_equal(hints.segments, 0);
	/* The array is nowhere but here; its element has the pointer's upper half, which is 0. */
	made_up.words[G + SEGMENTS_MEMBER] = at(SEGMENTS);
	assert_true(light_thread_request(&made_up.memory, other, thread(0), &hints, &request));
	assert_int_equal(request, at(REQUEST));
	assert_int_equal(hints.segments, SEGMENTS_MEMBER * WORD);
	/* With the hint, only the array counts: the pointer need not be a request. */
	made_up.words[SEGMENTS + 1] = UINT64_C(0x180) << 32;
	assert_true(light_thread_request(&made_up.memory, other, thread(0), &hints, &request));
	assert_int_equal(request, UINT64_C(0x180) << 32 | at(REQUEST));
	made_up.words[SEGMENTS + 1] = UINT64_C(0x181) << 32; /* overlaps with the lower bits */
	assert_false(light_thread_request(&made_up.memory, other, thread(0), &hints, &request));
	made_up.words[SEGMENTS + 1] = UINT64_C(0x10000) << 32;
	assert_false(light_thread_request(&made_up.memory, other, thread(0), &hints, &request));
	made_up.words[SEGMENTS + 1] = 0;
	made_up.words[G + SEGMENTS_MEMBER] = at(SEGMENTS) + 2;
	assert_false(light_thread_request(&made_up.memory, other, thread(0), &hints, &request));
	made_up.words[G + SEGMENTS_MEMBER] = 0;
	assert_false(light_thread_request(&made_up.memory, other, thread(0), &hints, &request));
	/* The lower bits are enough to know the coroutines of a request. */
	assert_string_equal(found(&made_up, other), "01234");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_coroutines_of_a_request_are_found),
		cmocka_unit_test(a_coroutine_of_another_request_is_left_out),
		cmocka_unit_test(a_coroutine_that_was_collected_is_left_out),
		cmocka_unit_test(a_coroutine_that_has_ended_is_left_out),
		cmocka_unit_test(light_threads_are_found_when_the_first_one_works_for_another_request),
		cmocka_unit_test(coroutines_that_have_ended_take_no_room),
		cmocka_unit_test(those_that_have_no_room_are_counted),
		cmocka_unit_test(a_list_has_no_end_for_ever),
		cmocka_unit_test(the_request_of_a_coroutine_is_told),
		cmocka_unit_test(pointers_may_be_in_segments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

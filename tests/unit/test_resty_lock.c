/* SPDX-License-Identifier: MIT */
/* Which lock of lua-resty-lock a coroutine waits for, in made-up memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/made_up_lua.h"
#include "unwind/details/resty_lock.h"
#include "unwind/lua/global_state.h"
#include "unwind/lua/lua_thread.h"

/* Words of the target: the global_State, the stack of the coroutine, and objects from OBJECTS on. */
enum { G = 2, STACK = 4, SLOTS = 4, OBJECTS = 12 };

static struct made_up made_up;
static size_t next;

static struct vm_code vm;
static struct global_state global = { .g = BASE + G * WORD, .vm = &vm };
static struct lua_thread thread;
static char chunkname[64];
static struct proto proto = { .chunkname = chunkname };
static struct merged_frame frames[6];
static struct merged_stack stack = { .frames = frames };
static uint64_t dogs, cats;

static uint64_t string(const char *text)
{
	size_t word = next;

	next += 4 + strlen(text) / WORD;
	return put_string(&made_up, &made_up_gc64, word, text);
}

/* A table of at most two pairs; a value of 0 is none. */
static uint64_t table(const char *key, uint64_t value, const char *other_key, uint64_t other)
{
	uint64_t keys[2] = { string(key), string(other_key) };
	size_t word = next;

	next += 6 + 2 * NODE_WORDS;
	put_table(&made_up, &made_up_gc64, word, word, 0, word + 6, 2);
	if (value)
		put_node(&made_up, word + 6, keys[0], value);
	if (other)
		put_node(&made_up, word + 6 + NODE_WORDS, keys[1], other);
	return tagged(&made_up_gc64, TAG_TAB, at(word));
}

/* ngx.shared has dogs and cats; lock(self, "tom") of cats is the second frame. */
static void begin(void)
{
	made_up = (struct made_up){ .memory = { .read_ranges = read_ranges } };
	next = OBJECTS;
	vm.layout = made_up_gc64;
	dogs = table("x", 0, "y", 0);
	cats = table("x", 0, "y", 0);
	made_up.words[G + 1] = table(
		"_LOADED", table("ngx", table("shared", table("dogs", dogs, "cats", cats), "y", 0), "z", 0),
		"w", 0);
	made_up.words[STACK] = table("dict", cats, "exptime", 0);
	made_up.words[STACK + 1] = string("tom");
	assert_in_range(next, 0, WORDS);
	thread = (struct lua_thread){ .global = &global,
				      .layout = &vm.layout,
				      .stack = at(STACK),
				      .stack_end = at(STACK + SLOTS),
				      .slots = (const uint8_t *)&made_up.words[STACK] };
	strcpy(chunkname, "@/usr/share/lua/5.1/resty/lock.lua");
	memset(frames, 0, sizeof(frames));
	for (size_t i = 0; i < 6; i++)
		frames[i].kind = MERGED_NATIVE;
	frames[1] = (struct merged_frame){
		.kind = MERGED_LUA, .proto = &proto, .global = &global, .thread = &thread, .base = at(STACK)
	};
	stack.count = 6;
}

static bool find(struct resty_lock_memo *memo, struct resty_lock *ret_lock)
{
	return resty_lock_find(&made_up.memory, &stack, memo, ret_lock);
}

static void the_dictionary_and_the_key_are_told(void **state)
{
	struct resty_lock_memo memo = { 0 };
	struct resty_lock lock;

	(void)state;
	begin();
	for (int round = 0; round < 2; round++) {
		assert_true(find(&memo, &lock));
		assert_string_equal(lock.dict, "cats");
		assert_string_equal(lock.key, "tom");
		/* The second time ngx.shared and the dictionary's name are known. */
		made_up.words[G + 1] = UINT64_MAX;
	}
	/* Another dictionary, and a key that is none. */
	begin();
	made_up.words[STACK] = table("dict", dogs, "x", 0);
	made_up.words[STACK + 1] = tagged(&made_up_gc64, TAG_NUMBER, 7);
	assert_true(find(&memo, &lock));
	assert_string_equal(lock.dict, "dogs");
	assert_string_equal(lock.key, "");
	/* What is no element of ngx.shared has no name. */
	made_up.words[STACK] = table("dict", made_up.words[STACK], "x", 0);
	assert_false(find(&memo, &lock));
	/* Another VM. */
	global.g = at(G + 1);
	made_up.words[G + 2] = made_up.words[G + 1];
	begin();
	assert_false(find(&memo, &lock));
	global.g = at(G);
	assert_true(find(&memo, &lock));
}

static void only_lock_itself_waits_so(void **state)
{
	struct resty_lock lock;

	(void)state;
	for (size_t i = 0; i < 9; i++) {
		struct resty_lock_memo memo = { 0 };

		begin();
		assert_true(find(&memo, &lock));
		memo = (struct resty_lock_memo){ 0 };
		switch (i) {
		case 0: strcpy(chunkname, "@/usr/share/lua/5.1/resty/lock.luac"); break;
		case 1: frames[1].kind = MERGED_C_FUNCTION; break;
		case 2: frames[1].compiled = true; break;
		case 3: frames[1].proto = NULL; break;
		case 4: frames[1].global = NULL; break;
		case 5: frames[1].thread = NULL; break;
		case 6: made_up.words[STACK] = tagged(&made_up_gc64, TAG_UDATA, cats); break;
		case 7: made_up.words[STACK] = table("dicts", cats, "x", 0); break;
		case 8: made_up.words[G + 1] = table("_LOADED", table("ngx", 0, "y", 0), "z", 0); break;
		}
		assert_false(find(&memo, &lock));
	}
}

static void it_is_one_of_the_innermost_frames(void **state)
{
	struct resty_lock lock;

	(void)state;
	begin();
	for (size_t i = 1; i < 6; i++) {
		struct resty_lock_memo memo = { 0 };

		frames[i] = frames[1];
		if (i > 1)
			frames[i - 1].kind = MERGED_NATIVE;
		frames[i].kind = MERGED_LUA;
		assert_int_equal(find(&memo, &lock), i < 4);
		frames[1] = frames[i];
		frames[1].kind = MERGED_NATIVE;
	}
	frames[1].kind = MERGED_LUA;
	stack.count = 1;
	assert_false(find(&(struct resty_lock_memo){ 0 }, &lock));
	stack.count = 2;
	assert_true(find(&(struct resty_lock_memo){ 0 }, &lock));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_dictionary_and_the_key_are_told),
		cmocka_unit_test(only_lock_itself_waits_so),
		cmocka_unit_test(it_is_one_of_the_innermost_frames),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* A Lua state is read again and again only while it is the one that was met first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "luajit-layouts/recognise/recognise.h"
#include "src/survey/same_state.h"
#include "unwind/lua/lua_table.h"
#include "tests/unit/instead_of.h"

enum { SEED_AT = 24, STRHASH = 200, GC_TOTAL = 100 };

/* What is in the process. */
static struct {
	bool is_no_state, has_no_registry, has_no_seed;
	uint64_t registry, seed;
	bool is_not_held, runs_meanwhile; /* once: what was read then is undone */
} world;

static struct vm_code vm;
static struct global_state global;
static struct same_state same;
static char hold, memory;
static unsigned int reads, undone, seeds;

INSTEAD_OF(recognise_is_state);
bool __wrap_recognise_is_state(struct memory *of, const struct vm_code *code, uint64_t g)
{
	assert_ptr_equal(of, &memory);
	assert_ptr_equal(code, &vm);
	assert_int_equal(g, global.g);
	return !world.is_no_state;
}

INSTEAD_OF(lua_table_registry);
bool __wrap_lua_table_registry(struct memory *of, const struct layout *layout, uint64_t g,
			       uint64_t *ret_registry)
{
	assert_ptr_equal(of, &memory);
	assert_ptr_equal(layout, &vm.layout);
	assert_int_equal(g, global.g);
	if (!world.has_no_registry)
		*ret_registry = world.registry;
	return !world.has_no_registry;
}

INSTEAD_OF(memory_u64);
bool __wrap_memory_u64(struct memory *of, uint64_t address, uint64_t *ret_value)
{
	assert_ptr_equal(of, &memory);
	assert_int_equal(address, global.g + STRHASH + SEED_AT);
	seeds++;
	if (!world.has_no_seed)
		*ret_value = world.seed;
	return !world.has_no_seed;
}

INSTEAD_OF(hold_while);
bool __wrap_hold_while(struct hold *of, void (*read)(void *context), void (*undo)(void *context),
		       void *context)
{
	assert_ptr_equal(of, &hold);
	if (world.is_not_held || world.runs_meanwhile) {
		read(context);
		undo(context);
	}
	if (!world.is_not_held)
		read(context);
	return !world.is_not_held;
}

static void read_it(void *context)
{
	assert_ptr_equal(context, &world);
	reads++;
}

static void undo_it(void *context)
{
	assert_ptr_equal(context, &world);
	undone++;
}

static int begin(void **state)
{
	(void)state;
	memset(&world, 0, sizeof(world));
	world.registry = 0x1110;
	world.seed = 0x2222;
	vm.layout.g_strhash = STRHASH;
	vm.layout.g_gc_total = GC_TOTAL;
	global.vm = &vm;
	global.g = 0x5000;
	same = (struct same_state){ .hold = (struct hold *)&hold,
				    .memory = (struct memory *)&memory,
				    .global = &global };
	return 0;
}

static enum same_state_read look(void)
{
	reads = undone = seeds = 0;
	return same_state_hold(&same, read_it, undo_it, &world);
}

static void assert_closed(void)
{
	assert_int_equal(look(), SAME_STATE_CLOSED);
	assert_int_equal(reads, 0);
}

static void the_state_that_was_met_is_read_again(void **state)
{
	(void)state;
	assert_int_equal(look(), SAME_STATE_READ);
	assert_int_equal(reads, 1);
	assert_true(same.is_met);
	assert_int_equal(same.registry, world.registry);
	assert_int_equal(same.seed, world.seed);
	assert_int_equal(look(), SAME_STATE_READ);
	assert_int_equal(reads, 1);
	assert_int_equal(undone, 0);
}

/* Where it was, a new state may be. */
static void another_state_in_its_place_is_not_read(void **state)
{
	(void)state;
	assert_int_equal(look(), SAME_STATE_READ);
	world.registry++;
	assert_closed();
	world.registry--;
	world.seed++;
	assert_closed();
	world.seed--;
	assert_int_equal(look(), SAME_STATE_READ);
	assert_int_equal(reads, 1);
}

static void what_is_no_state_is_not_read(void **state)
{
	(void)state;
	world.is_no_state = true;
	assert_closed();
	world.is_no_state = false;
	world.has_no_registry = true;
	assert_closed();
	world.has_no_registry = false;
	world.has_no_seed = true;
	assert_closed();
	assert_false(same.is_met);
}

/* Before strings had a seed of the state's own. */
static void an_old_state_has_no_seed(void **state)
{
	(void)state;
	vm.layout.g_strhash = GC_TOTAL;
	assert_int_equal(look(), SAME_STATE_READ);
	assert_int_equal(seeds, 0);
	assert_int_equal(same.seed, 0);
	world.seed++;
	assert_int_equal(look(), SAME_STATE_READ);
	world.registry++;
	assert_closed();
}

static void what_was_read_while_it_ran_is_undone(void **state)
{
	(void)state;
	world.runs_meanwhile = true;
	assert_int_equal(look(), SAME_STATE_READ);
	assert_int_equal(reads, 2);
	assert_int_equal(undone, 1);
	assert_int_equal(same_state_hold(&same, read_it, NULL, &world), SAME_STATE_READ);
	/* Nothing was read of another one. */
	world.registry++;
	assert_closed();
	assert_int_equal(undone, 0);
}

static void a_state_that_was_not_held_is_not_met(void **state)
{
	(void)state;
	world.is_not_held = true;
	assert_int_equal(look(), SAME_STATE_NOT_HELD);
	assert_int_equal(reads, 1);
	assert_int_equal(undone, 1);
	assert_false(same.is_met);
	world.is_no_state = true;
	assert_int_equal(look(), SAME_STATE_NOT_HELD);
	assert_int_equal(reads + undone, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, begin)
	const struct CMUnitTest tests[] = {
		TEST(the_state_that_was_met_is_read_again), TEST(another_state_in_its_place_is_not_read),
		TEST(what_is_no_state_is_not_read),         TEST(an_old_state_has_no_seed),
		TEST(what_was_read_while_it_ran_is_undone), TEST(a_state_that_was_not_held_is_not_met),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

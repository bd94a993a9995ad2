/* SPDX-License-Identifier: MIT */
/* Coroutines are read in slices, each of which ends where the search for them may be interrupted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "luajit-layouts/vm.h"
#include "src/survey/dump_stacks.h"
#include "tests/unit/instead_of.h"
#include "unwind/lua/object_walk.h"

enum {
	COROUTINES = 1000,
	FIRST = 0x40000,
	SIZE = 0x80,
	RESTS_EVERY = 3, /* only every third one allows it */
	AT_ONCE = 4,     /* a slice for fewer would hold the process too often */
};

static struct memory memory;
#include "tests/unit/one_global.h"

static size_t walked, slice_begin, slices, captured, captured_in_all;
static bool wants_rest, has_rested, has_values, loses_hold;

INSTEAD_OF(lua_process_global_count);
size_t __wrap_lua_process_global_count(const struct lua_process *process)
{
	(void)process;
	return 1;
}

INSTEAD_OF(lua_process_global_path);
const char *__wrap_lua_process_global_path(const struct lua_process *process, size_t index)
{
	(void)process, (void)index;
	return "/usr/bin/luajit";
}

INSTEAD_OF(lua_process_wants_values);
bool __wrap_lua_process_wants_values(const struct lua_process *process)
{
	(void)process;
	return has_values;
}

/*---- The search ----*/

INSTEAD_OF(object_walk_new);
struct object_walk *__wrap_object_walk_new(struct memory *live, const struct global_state *of, uint8_t gct)
{
	assert_ptr_equal(live, &memory);
	assert_ptr_equal(of, &global);
	(void)gct;
	walked = 0;
	has_rested = true;
	return (struct object_walk *)&walked;
}

INSTEAD_OF(object_walk_free);
void __wrap_object_walk_free(struct object_walk *walk)
{
	(void)walk;
}

INSTEAD_OF(object_walk_begin_slice);
void __wrap_object_walk_begin_slice(struct object_walk *walk)
{
	(void)walk;
	assert_true(has_rested);
	has_rested = wants_rest = false;
	slice_begin = walked;
	slices++;
}

INSTEAD_OF(object_walk_undo_slice);
void __wrap_object_walk_undo_slice(struct object_walk *walk)
{
	(void)walk;
	walked = slice_begin;
	has_rested = true;
}

INSTEAD_OF(object_walk_rest);
void __wrap_object_walk_rest(struct object_walk *walk)
{
	(void)walk;
	wants_rest = true;
}

INSTEAD_OF(object_walk_next);
enum object_walk_step __wrap_object_walk_next(struct object_walk *walk, uint64_t *ret_object)
{
	(void)walk;
	has_rested = true;
	if (walked == COROUTINES)
		return OBJECT_WALK_END;
	if (wants_rest && walked % RESTS_EVERY == 0)
		return OBJECT_WALK_PAUSE;
	has_rested = false;
	*ret_object = FIRST + walked++ * SIZE;
	return OBJECT_WALK_FOUND;
}

/*---- What is found ----*/

INSTEAD_OF(hold_while);
bool __wrap_hold_while(struct hold *hold, void (*read)(void *context), void (*undo)(void *context),
		       void *context)
{
	(void)hold;
	read(context);
	if (loses_hold)
		undo(context);
	return !loses_hold;
}

INSTEAD_OF(hold_count);
uint64_t __wrap_hold_count(const struct hold *hold)
{
	(void)hold;
	return slices;
}

INSTEAD_OF(hold_longest_ns);
uint64_t __wrap_hold_longest_ns(const struct hold *hold)
{
	(void)hold;
	return 5;
}

INSTEAD_OF(lua_process_capture_coroutines);
void __wrap_lua_process_capture_coroutines(struct lua_process *process, size_t index,
					   const uint64_t *addresses, size_t count)
{
	(void)process;
	assert_int_equal(index, 0);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(addresses[i], FIRST + (slice_begin + i) * SIZE);
	captured = count;
	captured_in_all += count;
}

INSTEAD_OF(lua_process_coroutine_count);
size_t __wrap_lua_process_coroutine_count(const struct lua_process *process)
{
	(void)process;
	return captured;
}

INSTEAD_OF(lua_process_coroutine_state);
enum coroutine_state __wrap_lua_process_coroutine_state(const struct lua_process *process, size_t index)
{
	(void)process;
	assert_true(index < captured);
	return COROUTINE_RUNNING;
}

static struct dump_process *dump(bool is_live)
{
	struct dump_process *report = dump_process_new(10, "luajit");

	slices = captured_in_all = 0;
	assert_non_null(report);
	assert_int_equal(dump_coroutines(NULL, is_live ? (struct hold *)&slices : NULL, report), 0);
	assert_int_equal(report->vm_count, 1);
	return report;
}

static void all_coroutines_are_read_in_slices(void **state)
{
	(void)state;
	loses_hold = false;
	for (int way = 0; way < 4; way++) {
		const bool is_live = way % 2 == 0;
		struct dump_process *report;

		has_values = way / 2 == 0;
		report = dump(is_live);
		assert_true(report->vms[0].complete);
		assert_int_equal(captured_in_all, COROUTINES);
		assert_in_range(slices, 2, COROUTINES / AT_ONCE);
		assert_int_equal(report->holds, is_live ? slices : 0);
		assert_int_equal(report->longest_hold_ns, is_live ? 5 : 0);
		dump_process_free(report);
	}
}

static void what_no_hold_has_read_is_not_reported(void **state)
{
	struct dump_process *report;

	(void)state;
	loses_hold = true;
	report = dump(true);
	assert_false(report->vms[0].complete);
	dump_process_free(report);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_coroutines_are_read_in_slices),
		cmocka_unit_test(what_no_hold_has_read_is_not_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

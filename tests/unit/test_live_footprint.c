/* SPDX-License-Identifier: MIT */
/* What is read of the memory of a LuaJIT process whose allocator may be in the middle of a change. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "src/footprint/footprint.h"
#include "src/footprint/pieces/lj_alloc.h"
#include "src/inspect/lua_process.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/live_process.h"

static const char waits[] = "io.write('ready') io.flush() io.read('*l')";

/* How many looks at the allocator find it in the middle of a change, and how many there were. */
static unsigned int in_change, looks;

INSTEAD_OF(lj_alloc_read);

enum lj_alloc_status __wrap_lj_alloc_read(struct window *window, uint64_t allocd, struct lj_alloc *ret_alloc)
{
	return looks++ < in_change ? LJ_ALLOC_UNSTEADY : __real_lj_alloc_read(window, allocd, ret_alloc);
}

/* What is known of the process, where it is not what is read. */
static struct known {
	bool has_unread_file, has_no_module, is_open, has_no_state;
} known;

INSTEAD_OF(lua_process_lacks_luajit);
INSTEAD_OF(lua_process_module_count);
INSTEAD_OF(lua_process_needs_confirming);
INSTEAD_OF(lua_process_global_count);

int __wrap_lua_process_lacks_luajit(const struct lua_process *process)
{
	return known.has_unread_file ? -ENODATA : __real_lua_process_lacks_luajit(process);
}

size_t __wrap_lua_process_module_count(const struct lua_process *process)
{
	return known.has_no_module ? 0 : __real_lua_process_module_count(process);
}

bool __wrap_lua_process_needs_confirming(const struct lua_process *process)
{
	return known.is_open || __real_lua_process_needs_confirming(process);
}

size_t __wrap_lua_process_global_count(const struct lua_process *process)
{
	return known.has_no_state ? 0 : __real_lua_process_global_count(process);
}

static uint64_t rss_of(const struct footprint *footprint, enum footprint_kind kind)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < footprint->row_count; i++)
		if (footprint->rows[i].kind == kind)
			sum += footprint->rows[i].rss;
	return sum;
}

/* Take it with that many looks in the middle of a change. Free with footprint_free(). */
static struct footprint *take(struct live *live, unsigned int changes)
{
	struct footprint *footprint = footprint_new(live->target.pid, "luajit");
	struct smaps before;

	in_change = changes;
	looks = 0;
	assert_non_null(footprint);
	assert_int_equal(smaps_read(live->target.pid, &before), 0);
	assert_int_equal(footprint_take(live->process, &before, footprint), 0);
	smaps_clear(&before);
	return footprint;
}

static void an_allocator_is_read_once_it_holds_still(void **state)
{
	struct live live;

	(void)state;
	live_begin(&live, waits, 0, 1);
	for (unsigned int changes = 0; changes < 4; changes++) {
		struct footprint *footprint = take(&live, changes);

		assert_int_equal(footprint->vm_count, 1);
		assert_false(footprint->unconfirmed);
		assert_int_equal(looks, changes + 1);
		assert_int_equal(footprint->vms[0].allocator, FOOTPRINT_LJ_ALLOC);
		assert_true(rss_of(footprint, FOOTPRINT_LUA_HEAP) > 0);
		footprint_free(footprint);
	}
	live_end(&live);
}

static void an_allocator_that_never_holds_still_is_unknown(void **state)
{
	struct footprint *footprint;
	struct live live;

	(void)state;
	live_begin(&live, waits, 0, 1);
	footprint = take(&live, 100);
	assert_int_equal(looks, 4);
	assert_int_equal(footprint->vms[0].allocator, FOOTPRINT_ALLOCATOR_UNKNOWN);
	assert_int_equal(rss_of(footprint, FOOTPRINT_LUA_HEAP), 0);
	footprint_free(footprint);
	live_end(&live);
}

/* A process without LuaJIT has no state, which is no doubt. */
static void there_may_be_states_that_are_not_known(void **state)
{
	static const struct {
		struct known known;
		bool unconfirmed;
	} cases[] = {
		{ { .has_unread_file = true }, true },
		{ { .has_unread_file = true, .has_no_module = true, .has_no_state = true }, true },
		{ { .is_open = true }, true },
		{ { .has_no_state = true }, true },
		{ { .has_no_module = true, .has_no_state = true }, false },
		{ { 0 }, false },
	};
	struct live live;

	(void)state;
	live_begin(&live, waits, 0, 1);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct footprint *footprint;

		known = cases[i].known;
		footprint = take(&live, 0);
		assert_int_equal(footprint->unconfirmed, cases[i].unconfirmed);
		footprint_free(footprint);
	}
	known = (struct known){ 0 };
	live_end(&live);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_allocator_is_read_once_it_holds_still),
		cmocka_unit_test(an_allocator_that_never_holds_still_is_unknown),
		cmocka_unit_test(there_may_be_states_that_are_not_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

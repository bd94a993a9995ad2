/* SPDX-License-Identifier: MIT */
/* What ljspy lacks to copy a heap is not taken for a state that was closed. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "src/heap/heap_capture.h"
#include "src/heap/heap_holding.h"
#include "src/inspect/lua_process.h"
#include "tests/unit/instead_of.h"
#include "unwind/heap/heap_copy.h"
#include "unwind/heap/heap_read.h"

static struct memory memory;

#include "tests/unit/one_global.h"

static bool copy_is_short;
static bool names_are_short;
static int read_error;

INSTEAD_OF(heap_holding_set_regions);
int __wrap_heap_holding_set_regions(struct heap_holding *holding)
{
	(void)holding;
	return 0;
}

INSTEAD_OF(running_stack_capture_core);
void __wrap_running_stack_capture_core(struct running_stack *stack, struct lua_process *process,
				       const struct global_state *of)
{
	(void)stack, (void)process, (void)of;
}

INSTEAD_OF(running_stack_unwind);
void __wrap_running_stack_unwind(struct running_stack *stack, struct lua_process *process,
				 const struct global_state *of)
{
	(void)stack, (void)process, (void)of;
}

INSTEAD_OF(heap_copy_is_short);
bool __wrap_heap_copy_is_short(const struct heap_copy *copy)
{
	(void)copy;
	return copy_is_short;
}

INSTEAD_OF(heap_read);
int __wrap_heap_read(struct heap_copy *copy, const struct vm_code *of, uint64_t g,
		     const struct heap_read_options *options, struct heap_graph *ret_graph,
		     struct heap_account *account)
{
	const struct function_object function = { .ffid = 2 };
	char text[FRAME_LABEL_SIZE];
	int error = options->name_c(options->context, &function, text);

	(void)copy, (void)of, (void)g, (void)ret_graph, (void)account;
	if (!error)
		assert_string_equal(text, "print [builtin]");
	return error ? error : read_error;
}

INSTEAD_OF(lua_process_function);
const struct function *__wrap_lua_process_function(struct lua_process *process, size_t index,
						   const struct function_object *function)
{
	static const struct function print = { .kind = FRAME_BUILTIN, .name = "print" };

	(void)process, (void)function;
	assert_int_equal(index, 0);
	return names_are_short ? NULL : &print;
}

static int capture(void)
{
	const struct heap_capture_options options = { 0 };
	struct heap_account account = { 0 };
	struct heap_graph graph = { 0 };

	return heap_capture(NULL, NULL, 0, &options, &graph, &account);
}

static void a_state_that_ljspy_has_no_room_for_was_not_closed(void **state)
{
	(void)state;
	read_error = -EIO;
	copy_is_short = false;
	assert_int_equal(capture(), -EIO);
	copy_is_short = true;
	assert_int_equal(capture(), -ENOMEM);
	read_error = 0;
	assert_int_equal(capture(), 0);
}

static void a_name_that_ljspy_has_no_room_for_is_told(void **state)
{
	(void)state;
	read_error = 0;
	copy_is_short = false;
	names_are_short = true;
	assert_int_equal(capture(), -ENOMEM);
	names_are_short = false;
	assert_int_equal(capture(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_state_that_ljspy_has_no_room_for_was_not_closed),
		cmocka_unit_test(a_name_that_ljspy_has_no_room_for_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

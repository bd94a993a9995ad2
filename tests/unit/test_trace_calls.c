/* SPDX-License-Identifier: MIT */
/* Which functions a trace may call: those among its constants, if all of these are known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/instead_of.h"
#include "tests/unit/made_up_trace.h"
#include "unwind/jit/trace_calls.h"

enum {
	FUNCTION = 0x1000, /* runs KNOWN */
	OTHER = 0x2000,    /* likewise */
	BUILTIN = 0x3000,
	UNREAD = 0x4000, /* a function of which nothing was read */
	HALF_READ = 0x5000,
	PROTO = 0x6000,
	UNREAD_PROTO = 0x7000,
	FIRST = MADE_UP_NK, /* constants; each takes two places */
	SECOND = MADE_UP_NK + 2,
};

static const struct proto known, elsewhere, by_proto;
static const struct trace_numbers numbers;
static struct made_up_trace made_up;
static struct trace_calls calls;
static size_t constants; /* how many functions there are instead of those in the trace, if any */

INSTEAD_OF(lua_objects_function);
const struct function_object *__wrap_lua_objects_function(const struct lua_objects *objects, uint64_t address)
{
	static const struct function_object functions[] = {
		{ .address = FUNCTION, .ffid = FF_LUA, .proto = &known },
		{ .address = OTHER, .ffid = FF_LUA, .proto = &known },
		{ .address = BUILTIN, .ffid = FF_LUA + 1 },
		{ .address = HALF_READ, .ffid = FF_LUA },
	};

	(void)objects;
	for (unsigned i = 0; i < sizeof(functions) / sizeof(*functions); i++)
		if (functions[i].address == address)
			return &functions[i];
	return NULL;
}

INSTEAD_OF(lua_objects_proto);
const struct proto *__wrap_lua_objects_proto(const struct lua_objects *objects, uint64_t address)
{
	(void)objects;
	return address == PROTO ? &by_proto : NULL;
}

INSTEAD_OF(trace_constants);
size_t __real_trace_constants(const struct trace *trace, const struct layout *layout,
			      enum trace_constant kind, uint64_t *ret_objects, size_t max);
size_t __wrap_trace_constants(const struct trace *trace, const struct layout *layout,
			      enum trace_constant kind, uint64_t *ret_objects, size_t max)
{
	size_t count = constants < max ? constants : max;

	if (!constants || kind != TRACE_FUNCTIONS)
		return __real_trace_constants(trace, layout, kind, ret_objects, max);
	for (size_t i = 0; i < count; i++)
		ret_objects[i] = i % 2 ? FUNCTION : OTHER;
	return count;
}

static int begin(void **state)
{
	(void)state;
	constants = 0;
	made_up_trace_begin(&made_up, true);
	put_object(&made_up, FIRST, IRT_FUNC, FUNCTION);
	return 0;
}

static void find(void)
{
	trace_calls_find(&calls, &numbers, &made_up.trace, &made_up.layout, NULL);
}

static void a_trace_may_call_its_constants(void **state)
{
	const struct function_object builtin = { .address = BUILTIN }, other = { .address = UNREAD };
	const struct function_object closure = { .address = OTHER, .proto = &known };

	(void)state;
	put_object(&made_up, SECOND, IRT_PROTO, PROTO);
	find();
	assert_true(trace_calls_may_call(&calls, &known));
	assert_true(trace_calls_may_call(&calls, &by_proto));
	assert_false(trace_calls_may_call(&calls, &elsewhere));
	assert_true(trace_calls_may_call_function(&calls, &closure));
	assert_false(trace_calls_may_call_function(&calls, &builtin));
	assert_false(calls.has_builtin);
	put_object(&made_up, SECOND, IRT_FUNC, BUILTIN);
	find();
	assert_true(calls.has_builtin);
	assert_false(trace_calls_may_call(&calls, &by_proto));
	assert_true(trace_calls_may_call_function(&calls, &builtin));
	assert_false(trace_calls_may_call_function(&calls, &other));
}

static void a_trace_may_call_all_if_a_constant_was_not_read(void **state)
{
	static const struct {
		uint8_t type;
		uint32_t object;
	} unread[] = { { IRT_FUNC, UNREAD }, { IRT_FUNC, HALF_READ }, { IRT_PROTO, UNREAD_PROTO } };
	const struct function_object builtin = { .address = BUILTIN };

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		put_object(&made_up, SECOND, unread[i].type, unread[i].object);
		find();
		assert_true(calls.is_incomplete);
		assert_int_equal(calls.callee_count, 1);
		assert_true(trace_calls_may_call(&calls, &elsewhere));
		assert_true(trace_calls_may_call_function(&calls, &builtin));
	}
}

/* The last ones may be those that it calls, though there are few prototypes. */
static void a_trace_may_call_all_if_it_has_too_many_constants(void **state)
{
	(void)state;
	constants = TRACE_CALLEES_MAX - 1;
	find();
	assert_false(trace_calls_may_call(&calls, &elsewhere));
	constants = TRACE_CALLEES_MAX + 1;
	find();
	assert_int_equal(calls.callee_count, 1);
	assert_true(trace_calls_may_call(&calls, &elsewhere));
}

static void functions_that_are_stored_are_found(void **state)
{
	enum { UPVALUE = TRACE_REF_BASE + 2, VALUE = TRACE_REF_BASE + 3, GUARD = 0x80 };

	(void)state;
	put_object(&made_up, SECOND, IRT_FUNC, OTHER);
	put_ir(&made_up, UPVALUE, IR_UREFC, IRT_NUM | GUARD, FIRST, 3 << 8 | 7);
	put_ir(&made_up, TRACE_REF_BASE + 4, IR_USTORE, IRT_NUM, UPVALUE, VALUE);
	put_ir(&made_up, TRACE_REF_BASE + 5, IR_USTORE, IRT_FUNC, UPVALUE, SECOND);
	put_ir(&made_up, TRACE_REF_BASE + 6, IR_USTORE, IRT_FUNC, UPVALUE, VALUE);
	find();
	assert_int_equal(calls.store_count, 2);
	assert_int_equal(calls.stores[0].upvalue.ref, TRACE_REF_BASE + 5);
	assert_int_equal(calls.stores[0].upvalue.function, FUNCTION);
	assert_int_equal(calls.stores[0].upvalue.index, 3);
	assert_int_equal(calls.stores[0].stored, OTHER);
	assert_int_equal(calls.stores[1].stored, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_trace_may_call_its_constants, begin),
		cmocka_unit_test_setup(a_trace_may_call_all_if_a_constant_was_not_read, begin),
		cmocka_unit_test_setup(a_trace_may_call_all_if_it_has_too_many_constants, begin),
		cmocka_unit_test_setup(functions_that_are_stored_are_found, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

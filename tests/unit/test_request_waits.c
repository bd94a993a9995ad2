/* SPDX-License-Identifier: MIT */
/* Which requests have their Lua copied at a time, where a worker has several VMs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "src/nginx/request_waits.h"
#include "tests/unit/instead_of.h"

enum { REQUESTS_MAX = 40, UNKNOWN_VM = 9, VMS = 3 };

/* A worker: how many coroutines each of its requests has, and in which VM. */
static struct {
	size_t coroutines[REQUESTS_MAX], vm[REQUESTS_MAX];
	size_t gone; /* this request has ended meanwhile */
} worker;

/* What was copied last. */
static struct {
	size_t global, count, copies;
	uint64_t threads[REQUEST_WAITS_COROUTINES];
} copied;

INSTEAD_OF(lua_process_request_members);
const struct request_members *__wrap_lua_process_request_members(const struct lua_process *process)
{
	(void)process;
	return NULL;
}

INSTEAD_OF(lua_process_memory);
struct memory *__wrap_lua_process_memory(struct lua_process *process)
{
	(void)process;
	return NULL;
}

INSTEAD_OF(nginx_request_read);
bool __wrap_nginx_request_read(struct memory *memory, const struct request_members *members, uint64_t address,
			       struct nginx_request *ret_request)
{
	(void)memory;
	(void)members;
	*ret_request = (struct nginx_request){ .ordinal = address };
	return address != worker.gone;
}

INSTEAD_OF(lua_process_light_threads);
void __wrap_lua_process_light_threads(struct lua_process *process, uint64_t request, const char **ret_phase,
				      struct light_threads *ret_threads)
{
	(void)process;
	ret_threads->count = worker.coroutines[request];
	ret_threads->g = worker.coroutines[request] ? 0x1000 * (1 + worker.vm[request]) : 0;
	for (size_t i = 0; i < ret_threads->count; i++)
		ret_threads->threads[i] = 100 * request + i;
	if (ret_threads->count)
		*ret_phase = "content";
}

INSTEAD_OF(lua_process_find_global);
bool __wrap_lua_process_find_global(const struct lua_process *process, uint64_t g, size_t *ret_index)
{
	(void)process;
	if (g > VMS * 0x1000)
		return false;
	*ret_index = g / 0x1000 - 1;
	return true;
}

INSTEAD_OF(lua_wait_read);
void __wrap_lua_wait_read(struct lua_process *process, uint64_t thread, struct lua_wait *ret_wait)
{
	(void)process;
	ret_wait->thread = thread;
}

INSTEAD_OF(lua_process_capture_coroutines);
void __wrap_lua_process_capture_coroutines(struct lua_process *process, size_t global,
					   const uint64_t *addresses, size_t count)
{
	(void)process;
	copied.global = global;
	copied.count = count;
	copied.copies++;
	memcpy(copied.threads, addresses, count * sizeof(addresses[0]));
}

INSTEAD_OF(lua_process_coroutine_count);
size_t __wrap_lua_process_coroutine_count(const struct lua_process *process)
{
	(void)process;
	return copied.count;
}

static int begin(void **state)
{
	(void)state;
	memset(&worker, 0, sizeof(worker));
	memset(&copied, 0, sizeof(copied));
	worker.gone = REQUESTS_MAX;
	return 0;
}

static struct lua_waits lua;

/* From this request on. Returns of how many. */
static size_t capture(size_t first, size_t count)
{
	static struct waiting_request requests[REQUESTS_MAX];
	const struct request_waits waits = { .requests = requests, .count = REQUESTS_MAX };

	for (size_t i = 0; i < REQUESTS_MAX; i++)
		requests[i] = (struct waiting_request){ .request.ordinal = i, .serves = i };
	return request_waits_capture(NULL, &waits, first, count, &lua);
}

static void assert_copied(size_t index, size_t request)
{
	assert_true(lua.is_there[index]);
	assert_int_equal(lua.count[index], worker.coroutines[request]);
	assert_string_equal(lua.phase[index], "content");
	for (size_t i = 0; i < lua.count[index]; i++) {
		assert_int_equal(copied.threads[lua.first[index] + i], 100 * request + i);
		assert_int_equal(lua.waits[lua.first[index] + i].thread, 100 * request + i);
	}
}

static void the_coroutines_of_one_vm_are_copied_at_a_time(void **state)
{
	static const size_t coroutines[] = { 2, 1, 0, 3, 1, 0, 2 }, vm[] = { 1, 1, 0, 1, 2, 0, 0 };

	(void)state;
	memcpy(worker.coroutines, coroutines, sizeof(coroutines));
	memcpy(worker.vm, vm, sizeof(vm));
	assert_int_equal(capture(0, 7), 4);
	assert_int_equal(copied.global, 1);
	assert_int_equal(copied.count, 6);
	assert_copied(0, 0);
	assert_copied(1, 1);
	assert_true(lua.is_there[2]);
	assert_int_equal(lua.count[2], 0);
	assert_copied(3, 3);
	/* The rest, from where it was cut off. */
	assert_int_equal(capture(4, 3), 2);
	assert_int_equal(copied.global, 2);
	assert_copied(0, 4);
	assert_int_equal(lua.count[1], 0);
	assert_int_equal(capture(6, 1), 1);
	assert_int_equal(copied.global, 0);
	assert_copied(0, 6);
}

static void a_vm_that_is_not_known_yet_costs_only_its_own_request(void **state)
{
	static const size_t coroutines[] = { 1, 2, 1 }, vm[] = { UNKNOWN_VM, 2, UNKNOWN_VM };

	(void)state;
	memcpy(worker.coroutines, coroutines, sizeof(coroutines));
	memcpy(worker.vm, vm, sizeof(vm));
	assert_int_equal(capture(0, 3), 3);
	assert_int_equal(copied.global, 2);
	assert_int_equal(copied.count, 2);
	assert_copied(1, 1);
	for (size_t i = 0; i < 3; i += 2) {
		assert_false(lua.is_there[i]);
		assert_int_equal(lua.count[i], 0);
		assert_null(lua.phase[i]);
	}
}

/* Nor need a VM be known then. */
static void without_coroutines_none_are_copied(void **state)
{
	(void)state;
	assert_int_equal(capture(0, 3), 3);
	assert_int_equal(copied.copies, 0);
	for (size_t i = 0; i < 3; i++) {
		assert_true(lua.is_there[i]);
		assert_int_equal(lua.count[i], 0);
	}
}

static void a_request_that_has_ended_has_no_lua(void **state)
{
	(void)state;
	worker.coroutines[0] = worker.coroutines[1] = 1;
	worker.gone = 0;
	assert_int_equal(capture(0, 2), 2);
	assert_false(lua.is_there[0]);
	assert_int_equal(lua.count[0], 0);
	assert_copied(1, 1);
}

static void there_is_room_for_the_coroutines_of_some_requests(void **state)
{
	(void)state;
	for (size_t i = 0; i < REQUESTS_MAX; i++)
		worker.coroutines[i] = LIGHT_THREADS_MAX;
	assert_int_equal(capture(0, REQUEST_WAITS_AT_ONCE), REQUEST_WAITS_COROUTINES / LIGHT_THREADS_MAX);
	assert_int_equal(copied.count, REQUEST_WAITS_COROUTINES);
	assert_int_equal(copied.copies, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(the_coroutines_of_one_vm_are_copied_at_a_time, begin),
		cmocka_unit_test_setup(a_vm_that_is_not_known_yet_costs_only_its_own_request, begin),
		cmocka_unit_test_setup(without_coroutines_none_are_copied, begin),
		cmocka_unit_test_setup(a_request_that_has_ended_has_no_lua, begin),
		cmocka_unit_test_setup(there_is_room_for_the_coroutines_of_some_requests, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

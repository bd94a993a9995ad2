/* SPDX-License-Identifier: MIT */
/* Which request of nginx a held thread works for, and which coroutines wait for what it runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "memory/snapshot.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/made_up_states.h"
#include "unwind/nginx/gateway.h"
#include "unwind/nginx/light_threads.h"

enum {
	SIGNATURE = 0x50545448,
	WORD = 8,
	FRAME = C_STACK_AT + 0x200,
	FRAME_SIZE = 80,
	IN_VM = VM_AT + 8,
	/* The target's requests, each with what belongs to it. */
	REQUEST_BYTES = 0x1000,
	CONTEXTS = 0x100,
	CONTEXT = 0x200,
	CONNECTION = 0x400,
	CONTEXT_WORDS = 12, /* before the phase */
	PHASE = 8,
	COCTX_AT = FREE_AT + 0x8000, /* contexts of coroutines */
	COCTX_BYTES = 0x40,
};

static const struct request_layout request_layout = {
	.known = true,
	.r_ctx = 2 * WORD,
	.ctx_index = 3,
	.ctx_context = CONTEXT_WORDS * WORD,
	.context_size = 4,
};

static const struct request_members members = {
	.known = true,
	.connection = 1 * WORD,
	.main = 3 * WORD,
	.uri = 4 * WORD,
	.method_name = 6 * WORD,
	.server = 8 * WORD,
	.start_sec = 10 * WORD,
	.start_msec = 11 * WORD,
	.status = MEMBER_UNKNOWN,
	.err_status = MEMBER_UNKNOWN,
	.args = MEMBER_UNKNOWN,
	.request_length = MEMBER_UNKNOWN,
	.upstream_states = MEMBER_UNKNOWN,
	.addr_text = MEMBER_UNKNOWN,
	.number = 4 * WORD,
	.requests = 5 * WORD,
	.sent = MEMBER_UNKNOWN,
	.request_bytes = 12 * WORD,
	.connection_bytes = 6 * WORD,
};

static struct request_places places;

/*---- A gateway routes each request by its context ----*/

INSTEAD_OF(gateway_route);
bool __wrap_gateway_route(struct memory *memory, const struct request_layout *layout,
			  const struct layout *luajit, struct gateway *gateway,
			  const struct request_context *context, char ret_route[static ROUTE_BYTES])
{
	(void)memory;
	assert_true(layout->known);
	assert_ptr_equal(luajit, &states.vm.layout);
	assert_non_null(gateway);
	snprintf(ret_route, ROUTE_BYTES, "%llx", (unsigned long long)context->address);
	return true;
}

INSTEAD_OF(gateway_free);
void __wrap_gateway_free(struct gateway *gateway)
{
	(void)gateway;
}

static void check_route(const char *matched, uint64_t request)
{
	char expected[ROUTE_BYTES];

	snprintf(expected, sizeof(expected), "%llx", (unsigned long long)(request + CONTEXT));
	assert_string_equal(matched, expected);
}

/*---- A LuaJIT without L->exdata has the request elsewhere ----*/

static uint64_t elsewhere;

INSTEAD_OF(light_thread_request);
bool __wrap_light_thread_request(struct memory *memory, const struct layout *luajit, uint64_t thread,
				 struct request_hints *hints, uint64_t *ret_request)
{
	(void)memory;
	(void)luajit;
	(void)hints;
	if (elsewhere == 0 || thread != thread_at(0))
		return false;
	*ret_request = elsewhere;
	return true;
}

INSTEAD_OF(light_thread_context);
bool __wrap_light_thread_context(struct memory *memory, const struct request_layout *layout,
				 const struct layout *luajit, uint64_t request,
				 const struct request_context *context, uint64_t thread, uint64_t *ret_coctx)
{
	(void)memory;
	(void)layout;
	(void)luajit;
	assert_int_equal(request, elsewhere);
	assert_int_equal(context->address, request + CONTEXT);
	assert_int_equal(thread, thread_at(0));
	*ret_coctx = COCTX_AT;
	return true;
}

/*---- What the target has ----*/

static uint64_t request_at(size_t i)
{
	return FREE_AT + i * REQUEST_BYTES;
}

static uint64_t coctx_at(size_t i)
{
	return COCTX_AT + i * COCTX_BYTES;
}

static void put_request(size_t i)
{
	const uint64_t at = request_at(i);

	put(at, SIGNATURE, 4);
	put_word(at + 1 * WORD, at + CONNECTION);
	put_word(at + 2 * WORD, at + CONTEXTS);
	put_word(at + 3 * WORD, at);
	put_word(at + 10 * WORD, 1700000000);
	put_word(at + CONTEXTS + 3 * WORD, at + CONTEXT);
	put_word(at + CONTEXT + WORD, at);
	put(at + CONTEXT + CONTEXT_WORDS * WORD, PHASE + i, 4);
	put_word(at + CONNECTION, at);
}

/* The request of a thread, and its own context, whose parent this is. */
static void put_work(size_t thread, uint64_t request, uint64_t parent)
{
	put_word(thread_at(thread) + (uint64_t)states.vm.layout.L_exdata, request);
	put_word(thread_at(thread) + (uint64_t)states.vm.layout.L_exdata2, coctx_at(thread));
	put_word(coctx_at(thread) + WORD, thread_at(thread));
	put_word(coctx_at(thread) + 2 * WORD, parent);
}

static void put_running(size_t thread)
{
	put_g(0, put_thread(thread, 0, FRAME));
	put_cframe(FRAME, thread_at(thread), 0, NATIVE_CODE);
}

/* A coroutine that has yielded. */
static void put_parked(size_t thread)
{
	put_thread(thread, 0, 0);
	put(thread_at(thread) + (uint64_t)states.vm.layout.L_status, LUA_YIELD, 1);
}

static int begin(void **state)
{
	const int status = states_begin(state);

	states.vm.layout.L_exdata = 0x50;
	states.vm.layout.L_exdata2 = 0x58;
	lua_image_set_request_layout(states.lua, &request_layout);
	lua_image_set_request_members(states.lua, &members);
	places = (struct request_places){
		.connections = { .first = request_at(1) + CONNECTION,
				 .stride = REQUEST_BYTES,
				 .count = 1,
				 .read_events = C_STACK_END,
				 .write_events = C_STACK_END,
				 .event_bytes = WORD,
				 .request_connection = WORD },
		.heaps = { { FREE_AT, COCTX_AT } },
		.heap_count = 1,
	};
	elsewhere = 0;
	return status;
}

/*---- The request ----*/

static void the_innermost_thread_says_which_request_it_is(void **state)
{
	(void)state;
	put_running(0);
	put_cframe(FRAME, thread_at(0), 0, IN_VM);
	put_thread(1, 0, FRAME + FRAME_SIZE);
	put_cframe(FRAME + FRAME_SIZE, thread_at(1), 0, NATIVE_CODE);
	put_request(0);
	put_request(1);
	put_work(0, request_at(0), 0);
	put_work(1, request_at(1), 0);
	/* The resumer comes first in the capture, and a thread without a C frame too. */
	states.registers.pc = IN_VM;
	states.registers.sp = FRAME - 0x80;
	states.registers.rbx = thread_at(1);
	states.registers.rdi = put_thread(2, 0, 0);
	put_work(2, request_at(1), 0);
	states_capture();
	assert_int_equal(states.capture.thread_count, 3);
	assert_true(states.capture.has_request_context);
	assert_int_equal(states.capture.request_context, PHASE);
	assert_int_equal(states.capture.request.address, request_at(0));
	assert_string_equal(states.capture.request.matched, "");
	assert_int_equal(states.hints.request[0].address, request_at(0));
	assert_int_equal(states.hints.request[2].address, request_at(0) + CONTEXT);
}

static void a_request_that_has_ended_is_none(void **state)
{
	(void)state;
	put_running(0);
	put_work(0, request_at(0), 0);
	states_capture();
	assert_true(states.capture.has_request_context);
	assert_int_equal(states.capture.request_context, 0);
	assert_int_equal(states.capture.request.address, 0);
}

static void nothing_is_known_where_no_lua_runs_or_it_is_no_nginx(void **state)
{
	const struct request_layout unknown = { .known = false };

	(void)state;
	put_request(0);
	states_capture();
	assert_false(states.capture.has_request_context);
	put_running(0);
	put_work(0, request_at(0), coctx_at(1));
	put_parked(1);
	put_work(1, request_at(0), 0);
	lua_image_set_request_layout(states.lua, &unknown);
	states_capture();
	assert_false(states.capture.has_request_context);
	assert_int_equal(states.capture.request_context, 0);
	assert_int_equal(states.capture.request.address, 0);
	assert_int_equal(states.capture.thread_count, 1);
}

static void a_gateway_says_which_route_it_takes(void **state)
{
	(void)state;
	put_running(0);
	put_request(0);
	put_work(0, request_at(0), 0);
	lua_image_global(states.lua, 0)->gateway = (struct gateway *)&places;
	states_capture();
	check_route(states.capture.request.matched, request_at(0));
}

static void without_exdata_the_request_is_found_elsewhere(void **state)
{
	(void)state;
	states.vm.layout.L_exdata = states.vm.layout.L_exdata2 = -1;
	put_running(0);
	put_request(0);
	states_capture();
	assert_int_equal(states.capture.request.address, 0);
	elsewhere = request_at(0);
	states_capture();
	assert_int_equal(states.capture.request.address, request_at(0));
	assert_int_equal(states.capture.threads[0].exdata, request_at(0));
	assert_int_equal(states.capture.threads[0].exdata2, COCTX_AT);
	/* A build that has it is asked nothing else. */
	states.vm.layout.L_exdata = 0x50;
	put_word(thread_at(0) + 0x50, 0);
	states_capture();
	assert_int_equal(states.capture.request.address, 0);
}

/*---- Parents ----*/

static void coroutines_that_wait_for_the_one_that_runs_are_captured(void **state)
{
	(void)state;
	put_request(0);
	put_running(0);
	put_work(0, request_at(0), coctx_at(1));
	put_parked(1);
	put_work(1, request_at(0), coctx_at(2));
	put_parked(2);
	put_work(2, request_at(0), 0);
	states_capture();
	assert_int_equal(states.capture.thread_count, 3);
	assert_int_equal(states.capture.threads[0].parent, thread_at(1));
	assert_int_equal(states.capture.threads[1].parent, thread_at(2));
	assert_int_equal(states.capture.threads[2].parent, 0);
	assert_non_null(states.capture.threads[2].slots);
	/* A circle ends where it began. */
	put_word(coctx_at(2) + 2 * WORD, coctx_at(1));
	states_capture();
	assert_int_equal(states.capture.thread_count, 3);
	assert_int_equal(states.capture.threads[2].parent, thread_at(1));
	/* The one that runs waits for nobody, and is captured once. */
	put_word(coctx_at(2) + 2 * WORD, coctx_at(0));
	states_capture();
	assert_int_equal(states.capture.thread_count, 3);
	assert_int_equal(states.capture.threads[2].parent, 0);
}

/* The parent of thread 0. */
static uint64_t parent(void)
{
	states_capture();
	assert_int_not_equal(states.capture.thread_count, 0);
	return states.capture.threads[0].parent;
}

static void what_does_not_wait_for_it_is_no_parent(void **state)
{
	const struct layout *layout = &states.vm.layout;

	(void)state;
	put_request(0);
	put_running(0);
	put_work(0, request_at(0), coctx_at(1));
	put_parked(1);
	put_work(1, request_at(0), 0);
	assert_int_equal(parent(), thread_at(1));
	put_word(thread_at(1) + (uint64_t)layout->L_exdata, request_at(1));
	assert_int_equal(parent(), 0);
	put_work(1, request_at(0), 0);
	put_word(thread_at(1) + (uint64_t)layout->L_exdata2, coctx_at(2));
	assert_int_equal(parent(), 0);
	put_work(1, request_at(0), 0);
	put(thread_at(1) + (uint64_t)layout->L_status, 0, 1);
	assert_int_equal(parent(), 0);
	put_parked(1);
	put_word(thread_at(1) + (uint64_t)layout->L_cframe, FRAME + 0x400);
	assert_int_equal(parent(), 0);
	put_parked(1);
	assert_int_equal(parent(), thread_at(1));
	/* Addresses that no thread can have. */
	put_word(coctx_at(1) + WORD, thread_at(1) + 4);
	assert_int_equal(parent(), 0);
	put_word(coctx_at(1) + WORD, 0);
	assert_int_equal(parent(), 0);
	put_word(coctx_at(1) + WORD, C_STACK_END);
	assert_int_equal(parent(), 0);
	put_word(coctx_at(1) + WORD, FREE_AT + 0x7000);
	assert_int_equal(parent(), 0);
	assert_int_equal(states.capture.thread_count, 1);
}

static void so_many_parents_and_no_more(void **state)
{
	enum { MANY = CAPTURE_THREADS_MAX + 10 };

	(void)state;
	put_request(0);
	put_running(0);
	for (size_t i = 0; i < MANY; i++) {
		if (i)
			put_parked(i);
		put_work(i, request_at(0), coctx_at(i + 1));
	}
	states_capture();
	assert_int_equal(states.capture.thread_count, CAPTURE_THREADS_MAX);
	assert_int_equal(states.capture.threads[CAPTURE_THREADS_MAX - 2].parent,
			 thread_at(CAPTURE_THREADS_MAX - 1));
	assert_int_equal(states.capture.threads[CAPTURE_THREADS_MAX - 1].parent, 0);
}

/*---- No Lua runs ----*/

static void words_of_the_stack_lead_to_requests(void **state)
{
	(void)state;
	put_request(1);
	put_word(FRAME, request_at(1));
	states_capture(); /* nobody knows where requests are */
	assert_int_equal(states.capture.on_stack.count, 0);
	assert_int_equal(states.capture.request_reads, 0);
	states.process.places = &places;
	states.hints = (struct capture_hints){ 0 };
	states_capture();
	assert_int_equal(states.capture.on_stack.count, 1);
	assert_int_equal(states.capture.on_stack.requests[0].address, request_at(1));
	assert_int_equal(states.capture.on_stack.requests[0].matched[0], '\0');
	assert_int_equal(states.capture.on_stack.word_count, 1);
	assert_int_equal(states.capture.on_stack.words[0].word, request_at(1));
	/* The stack itself was read before. */
	assert_in_range(states.capture.request_reads, 1, snapshot_read_count(states.process.snapshot) - 1);
}

static void registers_lead_to_requests_before_the_stack_does(void **state)
{
	(void)state;
	states.process.places = &places;
	put_request(1);
	put_request(2);
	put_word(states.registers.sp, request_at(1));
	states.registers.rbx = request_at(2);
	states.registers.rax = request_at(3); /* calls do not keep it */
	put_request(3);
	states_capture();
	assert_int_equal(states.capture.on_stack.word_count, 2);
	assert_int_equal(states.capture.on_stack.words[0].word, request_at(2));
	assert_int_equal(states.capture.on_stack.words[1].word, request_at(1));
}

static void words_far_out_on_the_stack_are_not_read(void **state)
{
	const uint64_t last = states.registers.sp + CAPTURE_STACK_BYTES - WORD;

	(void)state;
	states.process.places = &places;
	states.hints.stack_bytes = 2 * CAPTURE_STACK_BYTES;
	put_request(1);
	put_word(last + WORD, request_at(1));
	put_word(states.registers.sp - WORD, request_at(1)); /* below the stack pointer */
	states_capture();
	assert_int_equal(states.capture.on_stack.count, 0);
	put_word(last, request_at(1));
	states.hints = (struct capture_hints){ .stack_bytes = 2 * CAPTURE_STACK_BYTES };
	states_capture();
	assert_int_equal(states.capture.on_stack.count, 1);
	/* A stack that cannot be read has none. */
	unmap(C_STACK_AT);
	states_capture();
	assert_int_equal(states.capture.on_stack.count, 0);
}

/* At first all words are tried; later only those that lead to where requests were. */
static void it_is_learned_where_requests_are(void **state)
{
	(void)state;
	states.process.places = &places;
	put_request(1);
	put_request(2);
	put_word(FRAME, request_at(1));
	states_capture();
	assert_int_equal(states.capture.on_stack.count, 1);
	put_word(FRAME + WORD, request_at(2));
	states_capture();
	assert_int_equal(states.capture.on_stack.count, 1);
	assert_int_equal(states.capture.on_stack.other_count, 1);
	states.hints.sp = 0; /* as if it were the first */
	states_capture();
	assert_int_equal(states.capture.on_stack.count, 2);
	put_word(FRAME, 0);
	put_word(FRAME + WORD, request_at(3));
	put_request(3);
	states_capture();
	assert_int_equal(states.capture.on_stack.count, 0);
	assert_int_equal(states.capture.on_stack.other_count, 1);
	stack_requests_note(&places, request_at(3));
	states_capture();
	assert_int_equal(states.capture.on_stack.count, 1);
	assert_int_equal(states.capture.on_stack.requests[0].address, request_at(3));
}

static void the_only_gateway_says_which_route_each_takes(void **state)
{
	(void)state;
	states.process.places = &places;
	put_request(1);
	put_request(2);
	put_word(FRAME, request_at(1));
	put_word(FRAME + WORD, request_at(2));
	lua_image_global(states.lua, 0)->gateway = (struct gateway *)&places;
	states_capture();
	assert_int_equal(states.capture.on_stack.count, 2);
	for (size_t i = 0; i < 2; i++)
		check_route(states.capture.on_stack.requests[i].matched,
			    states.capture.on_stack.requests[i].address);
}

static void while_lua_runs_its_own_request_counts(void **state)
{
	(void)state;
	states.process.places = &places;
	put_request(0);
	put_request(1);
	put_word(FRAME + 0x400, request_at(1));
	states_capture();
	assert_int_equal(states.capture.on_stack.count, 1);
	put_running(0);
	put_work(0, request_at(0), 0);
	states_capture();
	assert_int_equal(states.capture.request.address, request_at(0));
	assert_int_equal(states.capture.on_stack.count, 0);
	assert_int_equal(states.capture.on_stack.word_count, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, states_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_innermost_thread_says_which_request_it_is),
		TEST(a_request_that_has_ended_is_none),
		TEST(nothing_is_known_where_no_lua_runs_or_it_is_no_nginx),
		TEST(a_gateway_says_which_route_it_takes),
		TEST(without_exdata_the_request_is_found_elsewhere),
		TEST(coroutines_that_wait_for_the_one_that_runs_are_captured),
		TEST(what_does_not_wait_for_it_is_no_parent),
		TEST(so_many_parents_and_no_more),
		TEST(words_of_the_stack_lead_to_requests),
		TEST(registers_lead_to_requests_before_the_stack_does),
		TEST(words_far_out_on_the_stack_are_not_read),
		TEST(it_is_learned_where_requests_are),
		TEST(the_only_gateway_says_which_route_each_takes),
		TEST(while_lua_runs_its_own_request_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

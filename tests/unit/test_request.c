/* SPDX-License-Identifier: MIT */
/* The request that Lua code works for, in made-up memory, and where code of lua-nginx-module keeps it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/made_up_words.h"
#include "unwind/lua/request.h"

enum { SIGNATURE = 0x50545448 };

/* Words of the target. */
enum {
	REQUEST = 8,
	OTHER = 16, /* of the same main request */
	CONNECTION = 24,
	CONTEXTS = 32,
	CONTEXT = 40,
	ENTRY = CONTEXT + 4, /* of the first coroutine, behind the list of the others */
	CONTEXT_WORDS = 12,  /* before the phase */
	LIST = 64,
	SECOND_PART = 72,
	COCTX_WORDS = 4,
	LISTED = 80, /* two parts of two contexts */
	UNMAPPED = WORDS,
};

static const struct request_layout layout = {
	.known = true,
	.r_ctx = 2 * WORD,
	.ctx_index = 3,
	.ctx_context = CONTEXT_WORDS * WORD,
	.context_size = 2,
	.has_connection = true,
	.r_connection = WORD,
	.r_main = 3 * WORD,
};

/* lua_States need no memory of their own. */
static uint64_t thread(size_t index)
{
	return 0x500000 + index * 0x100;
}

static uint64_t coctx(size_t index)
{
	return index == 0 ? at(ENTRY) : at(LISTED + (index - 1) * COCTX_WORDS);
}

static uint64_t *coctx_words(struct made_up *made_up, size_t index)
{
	return &made_up->words[(coctx(index) - BASE) / WORD];
}

/* A request in its content phase; coroutine 1 and 2 were run by the first one, 3 by 2, 4 by 3. */
static struct made_up worker(void)
{
	static const size_t parents[] = { 0, 0, 0, 2, 3 };
	struct made_up made_up = { .memory = { .read_ranges = read_ranges } };
	uint64_t *words = made_up.words;

	words[REQUEST] = SIGNATURE;
	words[REQUEST + 1] = at(CONNECTION);
	words[REQUEST + 2] = at(CONTEXTS);
	words[REQUEST + 3] = at(REQUEST);
	words[OTHER + 3] = at(REQUEST);
	words[CONNECTION] = at(REQUEST);
	words[CONTEXTS + 3] = at(CONTEXT);
	words[CONTEXT + CONTEXT_WORDS - 1] = at(REQUEST);
	words[CONTEXT + CONTEXT_WORDS] = 0xffff0008;
	words[ENTRY - 1] = at(LIST);
	memcpy(&words[LIST],
	       (uint64_t[]){ at(SECOND_PART), at(LISTED), 2, at(SECOND_PART), COCTX_WORDS * WORD, 2, at(0) },
	       7 * sizeof(uint64_t));
	memcpy(&words[SECOND_PART], (uint64_t[]){ at(LISTED + 2 * COCTX_WORDS), 2, 0 }, 3 * sizeof(uint64_t));
	for (size_t i = 0; i < 5; i++) {
		coctx_words(&made_up, i)[1] = thread(i);
		coctx_words(&made_up, i)[2] = i ? coctx(parents[i]) : 0;
	}
	return made_up;
}

static bool has_context(struct made_up *made_up, const struct request_layout *which,
			struct request_context *ret)
{
	struct memory_range ranges[REQUEST_RANGES];

	return request_context(&made_up->memory, which, at(REQUEST), ranges, ret);
}

static void a_request_has_a_context_and_a_phase(void **state)
{
	struct made_up made_up = worker();
	struct memory_range ranges[REQUEST_RANGES];
	struct request_context context;

	(void)state;
	assert_true(request_context(&made_up.memory, &layout, at(REQUEST), ranges, &context));
	assert_int_equal(context.address, at(CONTEXT));
	assert_int_equal(context.phase, 8); /* the phase has 16 bits */
	/* What was read, to read it at once the next time. */
	assert_int_equal(ranges[0].address, at(REQUEST));
	assert_int_equal(ranges[0].length, 3 * WORD);
	assert_int_equal(ranges[1].address, at(CONTEXTS + 3));
	assert_int_equal(ranges[1].length, WORD);
	assert_int_equal(ranges[2].address, at(CONTEXT));
	assert_int_equal(ranges[2].length, CONTEXT_WORDS * WORD + 2);
	assert_int_equal(ranges[3].address, at(CONNECTION));
	assert_int_equal(ranges[3].length, WORD);
	/* While nginx serves another request of the same main request. */
	made_up.words[CONNECTION] = at(OTHER);
	assert_true(has_context(&made_up, &layout, &context));
}

static void what_nothing_leads_back_to_is_none(void **state)
{
	static const struct {
		size_t word;
		uint64_t value;
	} wrong[] = {
		{ REQUEST, SIGNATURE - 1 },
		{ REQUEST + 1, 0 },
		{ REQUEST + 1, BASE + WORDS * WORD },
		{ REQUEST + 2, 0 },
		{ REQUEST + 2, BASE + WORDS * WORD },
		{ CONTEXTS + 3, 0 },
		{ CONTEXTS + 3, BASE + WORDS * WORD },
		{ CONTEXT + CONTEXT_WORDS - 1, BASE + OTHER * WORD },
		{ CONNECTION, 0 },
		{ CONNECTION, BASE + WORDS * WORD },
		{ CONNECTION, BASE + CONTEXT * WORD },
	};
	struct request_layout which = layout;
	struct request_context context;
	struct memory_range ranges[REQUEST_RANGES];
	struct made_up made_up;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		made_up = worker();
		made_up.words[wrong[i].word] = wrong[i].value;
		assert_false(has_context(&made_up, &layout, &context));
	}
	/* A request behind the phase is none of the context's members. */
	made_up = worker();
	made_up.words[CONTEXT + CONTEXT_WORDS - 1] = 0;
	made_up.words[CONTEXT + CONTEXT_WORDS] = at(REQUEST);
	assert_false(has_context(&made_up, &layout, &context));
	/* Two requests without a main one are not of the same. */
	made_up = worker();
	made_up.words[CONNECTION] = at(OTHER);
	made_up.words[OTHER + 3] = made_up.words[REQUEST + 3] = 0;
	assert_false(has_context(&made_up, &layout, &context));
	/* Without its offset, no connection is asked. */
	made_up.words[REQUEST + 1] = 0;
	which.has_connection = false;
	assert_true(has_context(&made_up, &which, &context));
	which.known = false;
	assert_false(has_context(&made_up, &which, &context));
	assert_false(request_context(&made_up.memory, &layout, 0, ranges, &context));
}

/*---- Coroutines ----*/

static struct request_coroutines coroutines;

static bool has(struct made_up *made_up, uint64_t L, uint64_t of)
{
	static const struct request_context context = { .address = BASE + CONTEXT * WORD };

	return request_has_coroutine(&made_up->memory, &layout, &context, L, of, &coroutines);
}

static void coroutines_of_a_request_lead_to_its_first(void **state)
{
	struct made_up made_up = worker();

	(void)state;
	request_coroutines_begin(&coroutines);
	for (size_t i = 0; i < 5; i++) {
		assert_true(has(&made_up, thread(i), coctx(i)));
		assert_false(has(&made_up, thread(i) + 8, coctx(i)));
	}
	assert_int_equal(coroutines.request, at(CONTEXT));
	assert_int_equal(coroutines.count, 2);
	assert_int_equal(coroutines.read, 2); /* once for all of them */
	/* One that is in no list; one that leads nowhere, in a circle, or to what cannot be read. */
	memcpy(&made_up.words[200], coctx_words(&made_up, 1), COCTX_WORDS * WORD);
	assert_false(has(&made_up, thread(1), at(200)));
	coctx_words(&made_up, 2)[2] = 0;
	assert_false(has(&made_up, thread(2), coctx(2)));
	assert_false(has(&made_up, thread(4), coctx(4)));
	coctx_words(&made_up, 2)[2] = coctx(4);
	assert_false(has(&made_up, thread(4), coctx(4)));
	coctx_words(&made_up, 2)[2] = at(UNMAPPED);
	assert_false(has(&made_up, thread(3), coctx(3)));
	assert_true(has(&made_up, thread(1), coctx(1)));
	request_coroutines_begin(&coroutines);
	made_up.words[ENTRY - 1] = 0;
	assert_false(has(&made_up, thread(1), coctx(1)));
	assert_true(has(&made_up, thread(0), coctx(0)));
}

/* A chain of so many coroutines, each run by the one before it. */
static bool chain_is_of_request(size_t length)
{
	struct made_up made_up = worker();

	made_up.words[LIST + 1] = at(100);
	made_up.words[LIST + 2] = made_up.words[LIST + 5] = length;
	for (size_t i = 0; i < length; i++) {
		made_up.words[100 + i * COCTX_WORDS + 1] = thread(i + 1);
		made_up.words[100 + i * COCTX_WORDS + 2] = i ? at(100 + (i - 1) * COCTX_WORDS) : coctx(0);
	}
	request_coroutines_begin(&coroutines);
	return has(&made_up, thread(length), at(100 + (length - 1) * COCTX_WORDS));
}

static void chains_of_coroutines_are_bounded(void **state)
{
	(void)state;
	for (size_t length = 1; length <= 64; length++)
		assert_true(chain_is_of_request(length));
	assert_false(chain_is_of_request(65));
}

static size_t parts_of(struct made_up *made_up)
{
	request_coroutines_begin(&coroutines);
	request_coroutines_read(&made_up->memory, at(LIST), &coroutines);
	return coroutines.count;
}

static void what_is_no_list_of_contexts_has_none(void **state)
{
	struct made_up made_up = worker();

	(void)state;
	assert_int_equal(parts_of(&made_up), 2);
	assert_int_equal(coroutines.size, COCTX_WORDS * WORD);
	assert_int_equal(coroutines.parts[1].first, at(LISTED + 2 * COCTX_WORDS));
	assert_int_equal(coroutines.parts[1].count, 2);
	made_up.words[SECOND_PART + 1] = 3;
	assert_int_equal(parts_of(&made_up), 1);
	made_up.words[LIST + 3] = at(UNMAPPED);
	assert_int_equal(parts_of(&made_up), 1);
	made_up.words[LIST + 4] = 3 * WORD;
	assert_int_equal(parts_of(&made_up), 1);
	made_up.words[LIST + 4] = 3 * WORD - 1;
	assert_int_equal(parts_of(&made_up), 0);
	made_up.words[LIST + 4] = 4096;
	assert_int_equal(parts_of(&made_up), 1);
	made_up.words[LIST + 4] = 4097;
	assert_int_equal(parts_of(&made_up), 0);
	made_up = worker();
	made_up.words[SECOND_PART + 2] = at(SECOND_PART);
	assert_int_equal(parts_of(&made_up), REQUEST_PARTS_MAX);
	/* So many of all requests together. */
	for (size_t i = 2; i <= 5; i++) {
		request_coroutines_read(&made_up.memory, at(LIST), &coroutines);
		assert_int_equal(coroutines.count, i <= 4 ? REQUEST_PARTS_MAX : 0);
	}
}

static void who_runs_a_coroutine_is_its_parent(void **state)
{
	struct made_up made_up = worker();
	uint64_t L = 0, of = 0;

	(void)state;
	assert_true(request_parent(&made_up.memory, thread(3), coctx(3), &L, &of));
	assert_int_equal(L, thread(2));
	assert_int_equal(of, coctx(2));
	L = of = 0;
	assert_false(request_parent(&made_up.memory, thread(0), coctx(0), &L, &of));
	assert_false(request_parent(&made_up.memory, thread(3), coctx(2), &L, &of));
	assert_false(request_parent(&made_up.memory, thread(3), 0, &L, &of));
	assert_false(request_parent(&made_up.memory, thread(3), at(UNMAPPED), &L, &of));
	coctx_words(&made_up, 3)[2] = coctx(3);
	assert_false(request_parent(&made_up.memory, thread(3), coctx(3), &L, &of));
	coctx_words(&made_up, 3)[2] = at(UNMAPPED);
	assert_false(request_parent(&made_up.memory, thread(3), coctx(3), &L, &of));
	assert_int_equal(L, 0);
	assert_int_equal(of, 0);
}

/*---- Phases ----*/

static void phases_have_names(void **state)
{
	/* NGX_HTTP_LUA_CONTEXT_*, in the order of bits. */
	static const char *const names[] = {
		"set",
		"rewrite",
		"access",
		"content",
		"log",
		"header_filter",
		"body_filter",
		"timer",
		"init_worker",
		"balancer",
		"ssl_cert",
		"ssl_session_store",
		"ssl_session_fetch",
		"exit_worker",
		"ssl_client_hello",
		"server_rewrite",
		"proxy_ssl_verify",
		"precontent",
		"proxy_ssl_cert",
	};
	char chunk[64];

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *block = strcmp(names[i], "ssl_cert") == 0         ? "ssl_certificate"
				    : strcmp(names[i], "proxy_ssl_cert") == 0 ? "proxy_ssl_certificate"
									      : names[i];

		assert_string_equal(request_phase(1u << i), names[i]);
		assert_string_equal(request_phase_named(names[i]), names[i]);
		snprintf(chunk, sizeof(chunk), "=%s_by_lua(nginx.conf:24)", block);
		assert_string_equal(request_phase_of_chunk(chunk), names[i]);
		chunk[0] = '@';
		assert_null(request_phase_of_chunk(chunk));
	}
	assert_null(request_phase(0));
	assert_null(request_phase(3));
	assert_null(request_phase(1u << (sizeof(names) / sizeof(names[0]))));
	assert_null(request_phase_named("sets"));
	assert_null(request_phase_named(NULL));
	assert_null(request_phase_of_chunk("=sets_by_lua(nginx.conf:24)"));
	assert_null(request_phase_of_chunk("=se_by_lua(nginx.conf:24)"));
	assert_null(request_phase_of_chunk("=set_by_lua"));
	assert_null(request_phase_of_chunk("=(load)"));
}

/*---- Code ----*/

enum { CODE = 0x1000 };

static struct request_code code_of(const char *bytes, size_t length)
{
	struct request_code code = { .r_ctx = -1 };

	assert_true(request_code_read((const uint8_t *)bytes, length, CODE, &code));
	return code;
}

static bool is_other_code(const char *bytes, size_t length)
{
	struct request_code code;

	return !request_code_read((const uint8_t *)bytes, length, CODE, &code);
}

#define BYTES(bytes) bytes, sizeof(bytes) - 1

/* mov 0x268e9(%rip),%rax; mov (%rax),%rdx */
#define INDEX_BY_POINTER "\x48\x8b\x05\xe9\x68\x02\x00\x48\x8b\x10"
/* mov 0x268e9(%rip),%rdx */
#define INDEX "\x48\x8b\x15\xe9\x68\x02\x00"
/* mov 0x10(%rdi),%rax; mov (%rax,%rdx,8),%rax */
#define CONTEXT_OF "\x48\x8b\x47\x10\x48\x8b\x04\xd0"
/* test %rax,%rax */
#define TEST "\x48\x85\xc0"
/* movzwl 0x1a4(%rax),%eax; ret */
#define PHASE "\x0f\xb7\x80\xa4\x01\x00\x00\xc3"
/* xor %eax,%eax; ret */
#define NONE "\x31\xc0\xc3"

static void code_tells_where_the_phase_is(void **state)
{
	struct request_code code = code_of(BYTES(INDEX_BY_POINTER CONTEXT_OF TEST "\x74\x08" PHASE NONE));

	(void)state;
	assert_int_equal(code.module, CODE + 7 + 0x268e9);
	assert_true(code.module_is_pointer);
	assert_int_equal(code.r_ctx, 0x10);
	assert_int_equal(code.ctx_context, 0x1a4);
	assert_int_equal(code.context_size, 2);
	/*
	 * In nginx itself there is no pointer; the phase may have 32 bits, and stand where the branch goes.
	 */
	code = code_of(BYTES(INDEX CONTEXT_OF TEST "\x75\x03" NONE "\x8b\x80\xa4\x01\x00\x00\xc3"));
	assert_int_equal(code.module, CODE + 7 + 0x268e9);
	assert_false(code.module_is_pointer);
	assert_int_equal(code.r_ctx, 0x10);
	assert_int_equal(code.ctx_context, 0x1a4);
	assert_int_equal(code.context_size, 4);
	/* Through other registers: mov %rdi,%rcx; mov 0x10(%rcx),%rax; cmp %rax,%rcx */
	code = code_of(BYTES(INDEX "\x48\x89\xf9\x48\x8b\x41\x10\x48\x39\xc1\x48\x8b\x04\xd0" PHASE));
	assert_int_equal(code.r_ctx, 0x10);
}

static void other_code_tells_nothing(void **state)
{
	(void)state;
	/* It returns before, ends before, or jumps out of itself. */
	assert_true(is_other_code(BYTES(INDEX CONTEXT_OF NONE PHASE)));
	assert_true(is_other_code(BYTES(INDEX CONTEXT_OF)));
	assert_true(is_other_code(BYTES(INDEX CONTEXT_OF TEST "\x75\x70" NONE PHASE)));
	assert_true(is_other_code(BYTES(INDEX CONTEXT_OF TEST "\x75\x80" NONE PHASE)));
	assert_true(is_other_code(BYTES(INDEX CONTEXT_OF TEST "\x75\xfb" NONE PHASE)));
	/* Without the index; with one of another size; of another argument: mov 0x10(%rsi),%rax */
	assert_true(is_other_code(BYTES(CONTEXT_OF PHASE)));
	assert_true(is_other_code(BYTES(INDEX "\x48\x8b\x47\x10\x48\x8b\x04\x90" PHASE)));
	assert_true(is_other_code(BYTES(INDEX "\x48\x8b\x46\x10\x48\x8b\x04\xd0" PHASE)));
	/* A register that has been written meanwhile: mov %esi,%eax; lea (%rsi),%rax; pop %rax */
	assert_true(is_other_code(BYTES(INDEX CONTEXT_OF "\x89\xf0" PHASE)));
	assert_true(is_other_code(BYTES(INDEX CONTEXT_OF "\x48\x8d\x06" PHASE)));
	assert_true(is_other_code(BYTES(INDEX CONTEXT_OF "\x58" PHASE)));
	/*
	 * What is no number of 16 or 32 bits at a fixed place behind the start: movzbl, mov (%rax), mov
	 * -4(%rax)
	 */
	assert_true(is_other_code(BYTES(INDEX CONTEXT_OF "\x0f\xb6\x80\xa4\x01\x00\x00\xc3")));
	assert_true(is_other_code(BYTES(INDEX CONTEXT_OF "\x8b\x00\xc3")));
	assert_true(is_other_code(BYTES(INDEX CONTEXT_OF "\x8b\x40\xfc\xc3")));
	assert_int_equal(code_of(BYTES(INDEX CONTEXT_OF "\x8b\x80\xff\x7f\x00\x00\xc3")).ctx_context,
			 INT16_MAX);
	assert_true(is_other_code(BYTES(INDEX CONTEXT_OF "\x8b\x80\x00\x80\x00\x00\xc3")));
	/* mov 0x1a4(%rax,%rcx,1),%eax */
	assert_true(is_other_code(BYTES(INDEX CONTEXT_OF "\x8b\x84\x08\xa4\x01\x00\x00\xc3")));
}

static void code_tells_the_connection_and_the_main_request(void **state)
{
	static const struct {
		const char *bytes;
		size_t length;
		int32_t connection, main; /* 0: other code */
	} known[] = {
		/* mov 0x8(%rdi),%rax; cmpl $-1,0x18(%rax); je; xor %eax,%eax; cmp %rdi,0x468(%rdi) */
		{ BYTES("\x48\x8b\x47\x08\x83\x78\x18\xff\x74\x0d\x31\xc0\x48\x39\xbf\x68\x04\x00\x00"), 8,
		  0x468 },
		/* mov 0x8(%rdi),%rax; cmp 0x468(%rdi),%rdi */
		{ BYTES("\x48\x8b\x47\x08\x48\x3b\xbf\x68\x04\x00\x00"), 8, 0x468 },
		/* mov 0x8(%rdi),%rax; mov 0x468(%rdi),%rax; cmp %rax,%rdi; or cmp %rdi,%rax */
		{ BYTES("\x48\x8b\x47\x08\x48\x8b\x87\x68\x04\x00\x00\x48\x39\xc7"), 8, 0x468 },
		{ BYTES("\x48\x8b\x47\x08\x48\x8b\x87\x68\x04\x00\x00\x48\x39\xf8"), 8, 0x468 },
		/* Without main: cmp %rax,%rdi; without the request: cmp %rax,%rcx */
		{ BYTES("\x48\x8b\x47\x08\x48\x39\xc7"), 0, 0 },
		{ BYTES("\x48\x8b\x47\x08\x48\x8b\x87\x68\x04\x00\x00\x48\x39\xc1"), 0, 0 },
		/* Without the connection; of 4 bytes; of another argument */
		{ BYTES("\x48\x39\xbf\x68\x04\x00\x00"), 0, 0 },
		{ BYTES("\x48\x8b\x47\x08\x39\xbf\x68\x04\x00\x00"), 0, 0 },
		{ BYTES("\x48\x8b\x47\x08\x48\x39\xbe\x68\x04\x00\x00"), 0, 0 },
		/* cmp %rdi,(%rdi); cmp %rdi,-8(%rdi); cmp %rdi,0x468(%rdi,%rax,1) */
		{ BYTES("\x48\x8b\x47\x08\x48\x39\x3f"), 0, 0 },
		{ BYTES("\x48\x8b\x47\x08\x48\x39\x7f\xf8"), 0, 0 },
		{ BYTES("\x48\x8b\x47\x08\x48\x39\xbc\x07\x68\x04\x00\x00"), 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		int32_t connection = 0, main = 0;

		assert_int_equal(request_code_read_main((const uint8_t *)known[i].bytes, known[i].length,
							CODE, &connection, &main),
				 known[i].connection != 0);
		assert_int_equal(connection, known[i].connection);
		assert_int_equal(main, known[i].main);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_has_a_context_and_a_phase),
		cmocka_unit_test(what_nothing_leads_back_to_is_none),
		cmocka_unit_test(coroutines_of_a_request_lead_to_its_first),
		cmocka_unit_test(chains_of_coroutines_are_bounded),
		cmocka_unit_test(what_is_no_list_of_contexts_has_none),
		cmocka_unit_test(who_runs_a_coroutine_is_its_parent),
		cmocka_unit_test(phases_have_names),
		cmocka_unit_test(code_tells_where_the_phase_is),
		cmocka_unit_test(other_code_tells_nothing),
		cmocka_unit_test(code_tells_the_connection_and_the_main_request),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

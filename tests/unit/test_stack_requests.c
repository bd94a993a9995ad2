/* SPDX-License-Identifier: MIT */
/* Which request of nginx the registers of frames refer to, in made-up memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/instead_of.h"
#include "tests/unit/made_up_words.h"
#include "unwind/elf/registers.h"
#include "unwind/nginx/stack_requests.h"

enum { SIGNATURE = 0x50545448 };

/*
 * Words of the target: events from READS and WRITES on, connections, and requests with the text of their
 * path.
 */
enum {
	READS = 8,
	WRITES = 40,
	EVENT_WORDS = 8,
	CONNECTIONS = 72,
	STRIDE = 16,
	COUNT = 4,
	REQUESTS = 160,
	SIZE = 32
};

static const struct request_members members = {
	.known = true,
	.connection = 1 * WORD,
	.main = 2 * WORD,
	.uri = 3 * WORD,
	.method_name = 5 * WORD,
	.server = 7 * WORD,
	.start_sec = 9 * WORD,
	.start_msec = 10 * WORD,
	.status = 11 * WORD,
	.err_status = 12 * WORD,
	.args = MEMBER_UNKNOWN,
	.request_length = MEMBER_UNKNOWN,
	.upstream_states = MEMBER_UNKNOWN,
	.addr_text = MEMBER_UNKNOWN,
	.number = 4 * WORD,
	.requests = 5 * WORD,
	.sent = MEMBER_UNKNOWN,
	.request_bytes = 13 * WORD,
	.connection_bytes = 6 * WORD,
};

static struct request_places places = {
	.connections = { .first = BASE + CONNECTIONS * WORD,
			 .stride = STRIDE * WORD,
			 .count = COUNT,
			 .read_events = BASE + READS * WORD,
			 .write_events = BASE + WRITES * WORD,
			 .event_bytes = EVENT_WORDS * WORD,
			 .request_connection = 1 * WORD },
	.heaps = { { 0x1000, 0x2000 }, { BASE, BASE + WORDS *WORD } },
	.heap_count = 2,
};

static uint64_t connection(size_t index)
{
	return at(CONNECTIONS + index * STRIDE);
}

static uint64_t request(size_t index)
{
	return at(REQUESTS + index * SIZE);
}

/* A request, and its main request and connection by their indices. */
static void set_request(struct made_up *made_up, size_t index, size_t main, size_t of)
{
	uint64_t *words = &made_up->words[REQUESTS + index * SIZE];

	words[0] = SIGNATURE;
	words[1] = connection(of);
	words[2] = request(main);
	words[9] = 1700000000;
}

static void set_connection(struct made_up *made_up, size_t index, uint64_t data)
{
	uint64_t *words = &made_up->words[CONNECTIONS + index * STRIDE];

	words[0] = data;
	words[4] = 17 + index;
}

/*
 * Connection 0 has request 0, connection 1 request 1 with the subrequest 2; 2 is free, 3 one of an upstream.
 */
static struct made_up worker(void)
{
	struct made_up made_up = { .memory = { .read_ranges = read_ranges } };

	set_request(&made_up, 0, 0, 0);
	set_request(&made_up, 1, 1, 1);
	set_request(&made_up, 2, 1, 1);
	set_request(&made_up, 3, 3, 2); /* has ended */
	set_connection(&made_up, 0, request(0));
	set_connection(&made_up, 1, request(1));
	set_connection(&made_up, 2, connection(0));
	set_connection(&made_up, 3, request(1));
	return made_up;
}

static void list_words(struct request_words *listed, const uint64_t *words, size_t count)
{
	request_words_begin(listed);
	for (size_t i = 0; i < count; i++)
		request_words_add(&places, listed, words[i]);
}

static struct stack_requests read_of(struct made_up *made_up, const uint64_t *words, size_t count)
{
	static struct stack_requests requests;
	struct request_words listed;

	list_words(&listed, words, count);
	/* The second time, it is known where requests are. */
	for (int i = 0; i < 2; i++) {
		stack_requests_read(&made_up->memory, &members, &places, &listed, &requests);
		stack_requests_learn(&made_up->memory, &members, &places, &requests);
	}
	return requests;
}

/* The number of a register that calls keep. */
static int kept(int index)
{
	int number = 0;

	for (;; number++)
		if (registers_are_kept(number) && index-- == 0)
			return number;
}

static void set_register(struct registers *registers, int index, uint64_t value)
{
	*registers_locate(registers, kept(index)) = value;
	registers->unknown &= ~registers_set_of(kept(index));
}

/* The index of the request that a frame with two words in registers decides for; -1: none, -2: unknown. */
static int judged(struct made_up *made_up, uint64_t one, uint64_t other)
{
	const uint64_t words[] = { one, other, 3, at(1) + 1, 0x1008, UINT64_C(1) << 46 };
	struct stack_requests requests = read_of(made_up, words, 6);
	struct registers registers = { .unknown = REGISTERS_ALL_BUT_PC_AND_SP };

	set_register(&registers, 0, one);
	set_register(&registers, 1, other);
	stack_requests_judge(&requests, &registers);
	stack_requests_end(&requests, true);
	if (requests.verdict != STACK_REQUEST_FOUND)
		return requests.verdict == STACK_REQUEST_NONE ? -1 : -2;
	return (int)((requests.requests[requests.found].address - request(0)) / (SIZE * WORD));
}

static void a_register_tells_the_request(void **state)
{
	struct made_up made_up = worker();

	(void)state;
	assert_int_equal(judged(&made_up, request(0), 0), 0);
	assert_int_equal(judged(&made_up, request(2), 0), 2);
	assert_int_equal(judged(&made_up, connection(1), 0), 1);
	assert_int_equal(judged(&made_up, connection(3), 0), 1);
	assert_int_equal(judged(&made_up, at(READS), 0), 0);
	assert_int_equal(judged(&made_up, at(WRITES + EVENT_WORDS), 0), 1);
	/* The request itself counts for more than its connection, which has the main one. */
	assert_int_equal(judged(&made_up, connection(1), request(2)), 2);
}

static unsigned int registers_asked;

INSTEAD_OF(registers_get);
bool __wrap_registers_get(const struct registers *registers, int number, uint64_t *ret_value)
{
	registers_asked++;
	return __real_registers_get(registers, number, ret_value);
}

/* Programs other than nginx have none. */
static void registers_are_asked_only_where_a_word_refers_to_a_request(void **state)
{
	struct made_up made_up = worker();
	unsigned int once;

	(void)state;
	registers_asked = 0;
	assert_int_equal(judged(&made_up, request(0), 0), 0);
	once = registers_asked;
	assert_in_range(once, 1, REGISTER_NUMBERS);
	/* A connection is looked for at the same time. */
	assert_int_equal(judged(&made_up, connection(1), 0), 1);
	assert_int_equal(registers_asked, 2 * once);
	assert_int_equal(judged(&made_up, 0, 0), -1);
	assert_int_equal(registers_asked, 2 * once);
}

static void what_is_no_live_request_is_none(void **state)
{
	struct made_up made_up = worker();

	(void)state;
	assert_int_equal(judged(&made_up, request(3), 0), -1);
	assert_int_equal(judged(&made_up, connection(2), 0), -1);
	assert_int_equal(judged(&made_up, at(READS + 2 * EVENT_WORDS), 0), -1);
	assert_int_equal(judged(&made_up, at(300), 0), -1);
}

static void a_frame_with_several_is_unknown(void **state)
{
	struct made_up made_up = worker();

	(void)state;
	assert_int_equal(judged(&made_up, request(0), request(1)), -2);
	assert_int_equal(judged(&made_up, connection(0), connection(1)), -2);
}

static void the_innermost_frame_decides(void **state)
{
	const uint64_t words[] = { request(2), request(1) };
	struct made_up made_up = worker();
	struct stack_requests requests = read_of(&made_up, words, 2);
	struct registers registers = { .unknown = REGISTERS_ALL_BUT_PC_AND_SP };

	(void)state;
	stack_requests_judge(&requests, &registers);
	assert_int_equal(requests.verdict, STACK_REQUEST_NONE);
	set_register(&registers, 0, request(2));
	stack_requests_judge(&requests, &registers);
	set_register(&registers, 0, request(1));
	stack_requests_judge(&requests, &registers);
	stack_requests_end(&requests, true);
	assert_int_equal(requests.verdict, STACK_REQUEST_FOUND);
	assert_int_equal(requests.requests[requests.found].address, request(2));
}

/* Words of earlier calls may be on the stack: by themselves they tell nothing. */
static void a_stack_that_ends_early_is_unknown(void **state)
{
	const uint64_t words[] = { request(0) };
	struct made_up made_up = worker();
	struct stack_requests requests = read_of(&made_up, words, 1);

	(void)state;
	stack_requests_end(&requests, true);
	assert_int_equal(requests.verdict, STACK_REQUEST_NONE);
	stack_requests_end(&requests, false);
	assert_int_equal(requests.verdict, STACK_REQUEST_UNKNOWN);
}

/* The memory of another one; counts ranges, and those that cannot be read. */
struct counted {
	struct memory memory; /* first */
	struct memory *of;
	size_t ranges, failed;
};

static void read_counted(struct memory *memory, struct memory_range *ranges, size_t count)
{
	struct counted *counted = (struct counted *)memory;

	memory_read_ranges(counted->of, ranges, count);
	counted->ranges += count;
	for (size_t i = 0; i < count; i++)
		counted->failed += ranges[i].length && ranges[i].status != MEMORY_OK;
}

/* Each range that cannot be read costs a system call while nginx is held. */
static void what_cannot_be_a_request_is_not_followed(void **state)
{
	static const char text[] = "HTTP/1.1 200 OK\r\nServer: nginx\r\nDate: Mon, 01 Jan 2024";
	const uint64_t listed[] = { request(4), connection(2), connection(3), request(0) };
	struct made_up made_up = worker();
	struct counted counted = { .memory = { .read_ranges = read_counted }, .of = &made_up.memory };
	struct stack_requests requests;
	struct request_words words;

	(void)state;
	memcpy(&made_up.words[REQUESTS + 4 * SIZE], text, sizeof(text));
	set_connection(&made_up, 2, UINT64_C(0x5050));
	set_connection(&made_up, 3, UINT64_MAX / 2 + 1);
	list_words(&words, listed, sizeof(listed) / sizeof(listed[0]));
	stack_requests_read(&counted.memory, &members, &places, &words, &requests);
	stack_requests_learn(&counted.memory, &members, &places, &requests);
	assert_int_equal(requests.count, 1);
	assert_int_equal(requests.requests[0].address, request(0));
	/* Nor does the text become one later. */
	assert_int_equal(requests.word_count, 1);
	assert_int_equal(counted.failed, 0);
}

static void forget_places(void)
{
	memset(places.known, 0, sizeof(places.known));
	places.known_count = 0;
}

/* Words of one page cost one range, in whatever order they are on the stack. */
static void new_places_of_a_page_are_read_at_once(void **state)
{
	const uint64_t listed[] = { request(1), at(300), request(0) };
	struct made_up made_up = worker();
	struct counted counted = { .memory = { .read_ranges = read_counted }, .of = &made_up.memory };
	struct stack_requests requests;
	struct request_words words;

	(void)state;
	forget_places();
	list_words(&words, listed, sizeof(listed) / sizeof(listed[0]));
	stack_requests_read(&made_up.memory, &members, &places, &words, &requests);
	assert_int_equal(requests.other_count, 3);
	made_up.words[REQUESTS] = made_up.words[REQUESTS + SIZE] = 0;
	stack_requests_learn(&counted.memory, &members, &places, &requests);
	assert_int_equal(counted.ranges, 1);
	assert_int_equal(requests.word_count, 0);
	made_up = worker();
	stack_requests_read(&made_up.memory, &members, &places, &words, &requests);
	stack_requests_learn(&made_up.memory, &members, &places, &requests);
	assert_int_equal(requests.word_count, 2);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(requests.words[i].word, request(i));
		assert_int_equal(requests.words[i].request, STACK_REQUEST_UNREAD);
		assert_false(requests.words[i].is_connection);
	}
	assert_int_equal(places.known_count, 2);
}

/* Memory that is mapped from 0 on: the pages before the words hold nothing. */
static void read_from_zero(struct memory *memory, struct memory_range *ranges, size_t count)
{
	struct made_up *made_up = (struct made_up *)memory;

	for (size_t i = 0; i < count; i++)
		if (ranges[i].length && ranges[i].address + ranges[i].length <= BASE) {
			memset(ranges[i].copy, 0, ranges[i].length);
			ranges[i].status = MEMORY_OK;
		} else {
			read_ranges(&made_up->memory, &ranges[i], 1);
		}
}

/* Is a request in a new place found behind full pages, and so many bytes of another page? */
static bool is_found_behind(uint64_t bytes)
{
	enum { PAGE = 4096 };
	const struct request_places whole = places;
	struct made_up made_up = worker();
	struct stack_requests requests;
	struct request_words words;

	made_up.memory.read_ranges = read_from_zero;
	set_request(&made_up, 10, 1, 1);
	forget_places();
	places.heaps[0] = (struct request_heap){ 0, BASE + WORDS * WORD };
	places.heap_count = 1;
	request_words_begin(&words);
	request_words_add(&places, &words, WORD);
	request_words_add(&places, &words, bytes);
	for (uint64_t page = PAGE; page < BASE; page += PAGE) {
		request_words_add(&places, &words, page);
		request_words_add(&places, &words, page + PAGE - WORD);
	}
	request_words_add(&places, &words, at(0));
	request_words_add(&places, &words, request(10));
	stack_requests_read(&made_up.memory, &members, &places, &words, &requests);
	stack_requests_learn(&made_up.memory, &members, &places, &requests);
	places = whole;
	assert_int_equal(words.count, 2 * BASE / PAGE + 2);
	return requests.word_count == 1;
}

/* One buffer of 16 pages takes all that is read late: no word behind these is. */
static void new_places_are_read_as_far_as_they_fit(void **state)
{
	const uint64_t left = BASE / 16 -
			      (request(10) + WORD - at(0)); /* of 16 pages, behind 15 and the last */

	(void)state;
	assert_true(is_found_behind(left));
	assert_false(is_found_behind(left + WORD));
}

/* What is a request when the thread runs on need not be the one that it was while the thread was held. */
static void a_request_in_a_new_place_is_unknown_once(void **state)
{
	const uint64_t word = request(1);
	struct made_up made_up = worker();
	struct registers registers = { .unknown = REGISTERS_ALL_BUT_PC_AND_SP };
	struct request_words words;
	enum stack_request_verdict verdicts[2];

	(void)state;
	forget_places();
	set_register(&registers, 0, word);
	request_words_begin(&words);
	request_words_add(&places, &words, word);
	for (int i = 0; i < 2; i++) {
		struct stack_requests requests;

		stack_requests_read(&made_up.memory, &members, &places, &words, &requests);
		assert_int_equal(requests.other_count, i == 0);
		assert_int_equal(requests.word_count, i);
		stack_requests_judge(&requests, &registers);
		stack_requests_end(&requests, true);
		stack_requests_settle(&made_up.memory, &members, &places, &requests);
		verdicts[i] = requests.verdict;
	}
	assert_int_equal(verdicts[0], STACK_REQUEST_UNKNOWN);
	assert_int_equal(verdicts[1], STACK_REQUEST_FOUND);
}

/*
 * Two frames hold a request in a new place and one in a known place. Returns the verdict: after the frames
 * are judged, and the stack has ended, as a whole or not. *ret_ranges: how many were read when the thread ran
 * on.
 */
static enum stack_request_verdict settled(uint64_t inner, uint64_t outer, bool is_whole, size_t *ret_ranges)
{
	const uint64_t listed[] = { request(1), request(0), at(300), 0x1008 };
	struct made_up made_up = worker();
	struct counted counted = { .memory = { .read_ranges = read_counted }, .of = &made_up.memory };
	struct registers registers = { .unknown = REGISTERS_ALL_BUT_PC_AND_SP };
	struct stack_requests requests;
	struct request_words words;

	forget_places();
	stack_requests_note(&places, request(0));
	list_words(&words, listed, sizeof(listed) / sizeof(listed[0]));
	stack_requests_read(&made_up.memory, &members, &places, &words, &requests);
	set_register(&registers, 0, inner);
	stack_requests_judge(&requests, &registers);
	set_register(&registers, 0, outer);
	stack_requests_judge(&requests, &registers);
	stack_requests_end(&requests, is_whole);
	stack_requests_settle(&counted.memory, &members, &places, &requests);
	*ret_ranges = counted.ranges;
	return requests.verdict;
}

/* Of the other words, only those matter that a frame holds, as far as the one that decides. */
static void only_what_frames_hold_is_read_when_the_thread_runs_on(void **state)
{
	size_t ranges;

	(void)state;
	assert_int_equal(settled(request(0), request(1), true, &ranges), STACK_REQUEST_FOUND);
	assert_int_equal(ranges, 0);
	assert_int_equal(settled(at(300), request(0), true, &ranges), STACK_REQUEST_FOUND);
	assert_int_equal(ranges, 1);
	assert_int_equal(settled(at(300), at(300), true, &ranges), STACK_REQUEST_NONE);
	assert_int_equal(ranges, 1);
	assert_int_equal(settled(7, 7, true, &ranges), STACK_REQUEST_NONE);
	assert_int_equal(ranges, 0);
}

static void a_new_place_in_a_frame_further_in_leaves_it_unknown(void **state)
{
	size_t ranges;

	(void)state;
	assert_int_equal(settled(request(1), request(0), true, &ranges), STACK_REQUEST_UNKNOWN);
	assert_int_equal(places.known_count, 2);
}

/* Frames that were not reached may hold any of the words. */
static void a_new_place_leaves_a_stack_that_ends_early_unknown(void **state)
{
	const uint64_t listed[] = { at(300), request(1) };
	struct made_up made_up = worker();
	struct stack_requests requests;
	struct request_words words;

	(void)state;
	for (size_t count = 1; count <= 2; count++) {
		forget_places();
		list_words(&words, listed, count);
		stack_requests_read(&made_up.memory, &members, &places, &words, &requests);
		stack_requests_end(&requests, false);
		stack_requests_settle(&made_up.memory, &members, &places, &requests);
		assert_int_equal(requests.verdict, count == 1 ? STACK_REQUEST_NONE : STACK_REQUEST_UNKNOWN);
	}
}

/* A connection leads to its request in time, even if nothing was known of that. */
static void a_connection_tells_a_request_in_a_new_place(void **state)
{
	const uint64_t listed[] = { request(1), connection(1), at(300) };
	struct made_up made_up = worker();
	struct registers registers = { .unknown = REGISTERS_ALL_BUT_PC_AND_SP };
	struct stack_requests requests;
	struct request_words words;

	(void)state;
	set_register(&registers, 0, request(1));
	/* Whether there are other words, too, or not. */
	for (size_t count = 2; count <= 3; count++) {
		forget_places();
		list_words(&words, listed, count);
		stack_requests_read(&made_up.memory, &members, &places, &words, &requests);
		assert_int_equal(requests.other_count, count - 2);
		stack_requests_judge(&requests, &registers);
		stack_requests_end(&requests, true);
		stack_requests_settle(&made_up.memory, &members, &places, &requests);
		assert_int_equal(requests.verdict, STACK_REQUEST_FOUND);
	}
}

/* Of several requests that connections lead to, each is known by its own word. */
static void connections_tell_several_requests_in_new_places(void **state)
{
	const uint64_t listed[] = { request(1), request(0), connection(0), connection(1) };
	struct made_up made_up = worker();
	struct stack_requests requests;
	struct request_words words;

	(void)state;
	forget_places();
	list_words(&words, listed, sizeof(listed) / sizeof(listed[0]));
	stack_requests_read(&made_up.memory, &members, &places, &words, &requests);
	assert_int_equal(requests.count, 2);
	assert_int_equal(requests.other_count, 0);
	assert_int_equal(requests.word_count, 4);
	for (size_t i = 0; i < 4; i++) {
		const struct stack_request_word *word = &requests.words[i];

		assert_int_equal(requests.requests[word->request].address,
				 word->word == request(0) || word->word == connection(0) ? request(0)
											 : request(1));
	}
}

static void only_aligned_words_within_heaps_may_refer_to_requests(void **state)
{
	static const uint64_t others[] = {
		0, WORD - 4, 0x1001, 0xff8, 0x2000, 0x2008, BASE - WORD, BASE + WORDS * WORD, UINT64_MAX - 7
	};
	const struct request_places whole = places;
	struct request_words words;

	(void)state;
	request_words_begin(&words);
	/* In whatever heap the word before was. */
	for (size_t heap = 0; heap < 2; heap++) {
		request_words_add(&places, &words, heap ? BASE : 0x1ff8);
		assert_int_equal(words.count, heap + 1);
		for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
			request_words_add(&places, &words, others[i]);
		assert_int_equal(words.count, heap + 1);
	}
	places.heap_count = 0;
	request_words_add(&places, &words, 0x1000);
	assert_int_equal(words.count, 2);
	places.heaps[0].begin = 0;
	places.heap_count = 1;
	request_words_begin(&words);
	request_words_add(&places, &words, 0);
	assert_int_equal(words.count, 0);
	places = whole;
}

/* What an earlier look has left behind the counts means nothing. */
static void only_what_was_read_counts(void **state)
{
	struct stack_requests requests = {
		.requests = { { .address = request(0) }, { .address = request(1) } },
		.words = { { .word = request(0) }, { .word = request(1), .request = 1 } },
	};
	struct registers registers = { .unknown = REGISTERS_ALL_BUT_PC_AND_SP };
	struct made_up made_up = worker();

	(void)state;
	forget_places();
	stack_requests_begin(&requests);
	requests.count = requests.word_count = 1;
	stack_requests_settle(&made_up.memory, &members, &places, &requests);
	assert_int_equal(places.known_count, 1);
	set_register(&registers, 0, request(1));
	stack_requests_judge(&requests, &registers);
	assert_int_equal(requests.verdict, STACK_REQUEST_NONE);
	set_register(&registers, 0, request(0));
	stack_requests_judge(&requests, &registers);
	assert_int_equal(requests.verdict, STACK_REQUEST_FOUND);
}

/* Requests lie in any of its heaps, the first and the last one, too. */
static void a_connection_leads_into_each_heap(void **state)
{
	static const struct request_heap heap = { BASE, BASE + WORDS * WORD };
	const struct request_places whole = places;
	struct made_up made_up = worker();

	(void)state;
	for (size_t number = 0; number < 3; number++) {
		forget_places();
		for (size_t i = 0; i < 3; i++)
			places.heaps[i] = i == number ? heap
						      : (struct request_heap){
								0x1000 + i + (i > number) * BASE * 16,
								0x1001 + i + (i > number) * BASE * 16
							};
		places.heap_count = 3;
		assert_int_equal(judged(&made_up, connection(0), 0), 0);
		assert_int_equal(judged(&made_up, connection(1), 0), 1);
	}
	places = whole;
}

/* A worker has had requests in more places than are kept. */
static void places_are_forgotten_when_there_are_too_many(void **state)
{
	struct made_up made_up = worker();
	struct stack_requests requests;

	(void)state;
	for (uint64_t i = 1; i <= 2 * REQUEST_PLACES_KNOWN; i++) {
		stack_requests_begin(&requests);
		requests.requests[0].address = i * 64;
		requests.count = 1;
		stack_requests_settle(&made_up.memory, &members, &places, &requests);
		assert_true(places.known_count <= REQUEST_PLACES_KNOWN / 2);
	}
}

static void too_many_requests_are_unknown(void **state)
{
	uint64_t words[STACK_REQUESTS_MAX + 1];
	struct made_up made_up = worker();
	struct stack_requests requests;

	(void)state;
	for (size_t i = 0; i <= STACK_REQUESTS_MAX; i++) {
		set_request(&made_up, i + 4, 1, 1);
		words[i] = request(i + 4);
	}
	requests = read_of(&made_up, words, STACK_REQUESTS_MAX);
	assert_false(requests.is_cut);
	requests = read_of(&made_up, words, STACK_REQUESTS_MAX + 1);
	assert_int_equal(requests.count, STACK_REQUESTS_MAX);
	stack_requests_end(&requests, true);
	assert_int_equal(requests.verdict, STACK_REQUEST_UNKNOWN);
}

static void only_so_many_words_are_read(void **state)
{
	struct request_words words;

	(void)state;
	request_words_begin(&words);
	for (size_t i = 0; i < 2 * WORDS; i++)
		request_words_add(&places, &words, at(i / 2));
	assert_int_equal(words.count, STACK_REQUEST_WORDS_MAX);
	for (size_t i = 0; i < words.count; i++)
		assert_int_equal(words.words[i], at(i));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_register_tells_the_request),
		cmocka_unit_test(registers_are_asked_only_where_a_word_refers_to_a_request),
		cmocka_unit_test(what_is_no_live_request_is_none),
		cmocka_unit_test(a_frame_with_several_is_unknown),
		cmocka_unit_test(the_innermost_frame_decides),
		cmocka_unit_test(a_stack_that_ends_early_is_unknown),
		cmocka_unit_test(what_cannot_be_a_request_is_not_followed),
		cmocka_unit_test(new_places_of_a_page_are_read_at_once),
		cmocka_unit_test(new_places_are_read_as_far_as_they_fit),
		cmocka_unit_test(a_request_in_a_new_place_is_unknown_once),
		cmocka_unit_test(only_what_frames_hold_is_read_when_the_thread_runs_on),
		cmocka_unit_test(a_new_place_in_a_frame_further_in_leaves_it_unknown),
		cmocka_unit_test(a_new_place_leaves_a_stack_that_ends_early_unknown),
		cmocka_unit_test(a_connection_tells_a_request_in_a_new_place),
		cmocka_unit_test(connections_tell_several_requests_in_new_places),
		cmocka_unit_test(only_aligned_words_within_heaps_may_refer_to_requests),
		cmocka_unit_test(only_what_was_read_counts),
		cmocka_unit_test(a_connection_leads_into_each_heap),
		cmocka_unit_test(places_are_forgotten_when_there_are_too_many),
		cmocka_unit_test(too_many_requests_are_unknown),
		cmocka_unit_test(only_so_many_words_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

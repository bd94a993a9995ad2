/* SPDX-License-Identifier: MIT */
#include "unwind/nginx/stack_requests.h"

#include <stdlib.h>
#include <string.h>

enum {
	SIGNATURE = 0x50545448, /* ngx_http_request_t.signature: NGX_HTTP_MODULE, "HTTP" */
	SEEN_MAX = 2 * STACK_REQUEST_WORDS_MAX,
	NO_REQUEST = STACK_REQUESTS_MAX + 1,
	PAGE_SIZE = 4096,
	BUFFER_BYTES = 64 << 10,
};

void stack_requests_begin(struct stack_requests *requests)
{
	requests->places = NULL;
	requests->count = requests->word_count = requests->other_count = requests->doubt_count = 0;
	requests->is_cut = false;
	requests->verdict = STACK_REQUEST_NONE;
}

/*---- Which words to read ----*/

void request_words_begin(struct request_words *words)
{
	words->count = words->heap = 0;
	memset(words->seen, 0, sizeof(words->seen));
}

static bool is_in(const struct request_heap *heap, uint64_t word)
{
	return word - heap->begin < heap->end - heap->begin;
}

/* *heap: that of the last word; becomes this word's. */
static bool is_in_heap(const struct request_places *places, size_t *heap, uint64_t word)
{
	size_t begin = 0, end = places->heap_count;

	if (end == 0 || word < places->heaps[0].begin || word >= places->heaps[end - 1].end)
		return false;
	if (is_in(&places->heaps[*heap], word))
		return true;
	while (begin < end) {
		size_t middle = begin + (end - begin) / 2;

		if (word >= places->heaps[middle].end)
			begin = middle + 1;
		else
			end = middle;
	}
	if (begin == places->heap_count || !is_in(&places->heaps[begin], word))
		return false;
	*heap = begin;
	return true;
}

/* False if the word was there before. */
static bool note_seen(struct request_words *words, uint64_t word)
{
	size_t at = (size_t)((word * UINT64_C(0x9e3779b97f4a7c15)) >> 32) % SEEN_MAX;

	for (; words->seen[at]; at = (at + 1) % SEEN_MAX)
		if (words->seen[at] == word)
			return false;
	words->seen[at] = word;
	return true;
}

/* *heap: as for is_in_heap(). */
static bool may_refer(const struct request_places *places, size_t *heap, uint64_t word)
{
	return word != 0 && word % sizeof(word) == 0 && is_in_heap(places, heap, word);
}

void request_words_add(const struct request_places *places, struct request_words *words, uint64_t word)
{
	if (words->count < STACK_REQUEST_WORDS_MAX && may_refer(places, &words->heap, word) &&
	    note_seen(words, word))
		words->words[words->count++] = word;
}

/*---- Where requests were seen ----*/

/* Where the address is among the known ones, or would be. */
static size_t known_place(const struct request_places *places, uint64_t address)
{
	size_t at = (size_t)((address * UINT64_C(0x9e3779b97f4a7c15)) >> 32) % REQUEST_PLACES_KNOWN;

	while (places->known[at] && places->known[at] != address)
		at = (at + 1) % REQUEST_PLACES_KNOWN;
	return at;
}

static bool is_known(const struct request_places *places, uint64_t address)
{
	return places->known[known_place(places, address)] == address;
}

/* When half of the places are taken, begin anew: what is still in use is soon seen again. */
void stack_requests_note(struct request_places *places, uint64_t address)
{
	if (is_known(places, address))
		return;
	if (places->known_count >= REQUEST_PLACES_KNOWN / 2) {
		memset(places->known, 0, sizeof(places->known));
		places->known_count = 0;
	}
	places->known[known_place(places, address)] = address;
	places->known_count++;
}

/*---- While the thread is held ----*/

/* A word that is read: for each, the first word of what may be a request, and where that is. */
struct candidate {
	uint64_t word, address, begin;
	bool is_connection;
};

static bool begins_request(uint64_t word)
{
	return (uint32_t)word == SIGNATURE;
}

/* The connection that a word refers to, itself or through one of its events; 0 if it refers to none. */
static uint64_t connection_of(const struct request_places *places, uint64_t word)
{
	return connections_hold(&places->connections, word)
		       ? word
		       : connections_of_event(&places->connections, word);
}

/* List the words that are to be read; the others go to requests->others. */
static size_t list_candidates(const struct request_places *places, const struct request_words *words,
			      struct candidate *candidates, struct stack_requests *requests)
{
	size_t count = 0;

	for (size_t i = 0; i < words->count; i++) {
		uint64_t word = words->words[i], connection = connection_of(places, word);

		if (connection || is_known(places, word))
			candidates[count++] = (struct candidate){ word, connection ? connection : word, 0,
								  connection != 0 };
		else
			requests->others[requests->other_count++] = word;
	}
	return count;
}

/* ngx_connection_t begins with its data, which may be a request. */
static void follow_connections(struct memory *memory, const struct request_places *places,
			       struct candidate *candidates, size_t count)
{
	struct memory_range ranges[STACK_REQUEST_WORDS_MAX];
	size_t range_count = 0, heap = 0;

	for (size_t i = 0; i < count; i++)
		if (candidates[i].is_connection)
			ranges[range_count++] = (struct memory_range){ .address = candidates[i].address,
								       .copy = &candidates[i].address,
								       .length = sizeof(
									       candidates[i].address) };
	memory_read_ranges(memory, ranges, range_count);
	for (size_t i = 0, range = 0; i < count; i++) {
		struct candidate *candidate = &candidates[i];

		if (!candidate->is_connection)
			continue;
		/* To read what cannot be read would cost a system call for each. */
		if (ranges[range++].status != MEMORY_OK || candidate->address % sizeof(uint64_t) ||
		    !is_in_heap(places, &heap, candidate->address))
			candidate->address = 0;
	}
}

static void read_begins(struct memory *memory, struct candidate *candidates, size_t count)
{
	struct memory_range ranges[STACK_REQUEST_WORDS_MAX];
	size_t range_count = 0;

	for (size_t i = 0; i < count; i++)
		if (candidates[i].address)
			ranges[range_count++] = (struct memory_range){ .address = candidates[i].address,
								       .copy = &candidates[i].begin,
								       .length = sizeof(
									       candidates[i].begin) };
	memory_read_ranges(memory, ranges, range_count);
	for (size_t i = 0, range = 0; i < count; i++)
		if (candidates[i].address && ranges[range++].status != MEMORY_OK)
			candidates[i].begin = 0;
}

/* The index of the request at the address; NO_REQUEST if there is none, or no room. */
static size_t take_request(struct memory *memory, const struct request_members *members, uint64_t address,
			   struct stack_requests *requests)
{
	struct nginx_request request;

	for (size_t i = 0; i < requests->count; i++)
		if (requests->requests[i].address == address)
			return i;
	if (!nginx_request_read(memory, members, address, &request))
		return NO_REQUEST;
	if (requests->count == STACK_REQUESTS_MAX) {
		requests->is_cut = true;
		return NO_REQUEST;
	}
	requests->requests[requests->count] = request;
	return requests->count++;
}

static void add_word(struct stack_requests *requests, uint64_t word, size_t request, bool is_connection)
{
	requests->words[requests->word_count++] = (struct stack_request_word){ word, request, is_connection };
}

/* A word may be read after all if a connection has led to the request that it refers to. */
static void take_others(struct stack_requests *requests)
{
	size_t left = 0;

	for (size_t i = 0; i < requests->other_count; i++) {
		size_t request = 0;

		while (request < requests->count &&
		       requests->requests[request].address != requests->others[i])
			request++;
		if (request < requests->count)
			add_word(requests, requests->others[i], request, false);
		else
			requests->others[left++] = requests->others[i];
	}
	requests->other_count = left;
}

void stack_requests_read(struct memory *memory, const struct request_members *members,
			 const struct request_places *places, const struct request_words *words,
			 struct stack_requests *ret_requests)
{
	struct candidate candidates[STACK_REQUEST_WORDS_MAX];
	size_t count;

	stack_requests_begin(ret_requests);
	ret_requests->places = places;
	ret_requests->is_cut = words->count == STACK_REQUEST_WORDS_MAX;
	count = list_candidates(places, words, candidates, ret_requests);
	follow_connections(memory, places, candidates, count);
	read_begins(memory, candidates, count);
	for (size_t i = 0; i < count; i++) {
		size_t request;

		if (!begins_request(candidates[i].begin))
			continue;
		request = take_request(memory, members, candidates[i].address, ret_requests);
		if (request != NO_REQUEST)
			add_word(ret_requests, candidates[i].word, request, candidates[i].is_connection);
	}
	take_others(ret_requests);
}

/*---- The other words ----*/

static int compare_words(const void *left, const void *right)
{
	uint64_t one = *(const uint64_t *)left, other = *(const uint64_t *)right;

	return (one > other) - (one < other);
}

/*
 * Ranges of the bytes that words refer to, by address: one for all of a page, as each costs more than its
 * bytes.
 */
struct late_reading {
	struct memory_range ranges[STACK_REQUEST_WORDS_MAX];
	size_t count;
	uint8_t buffer[BUFFER_BYTES];
};

/* Returns how many of the words, which are in order, the ranges are for. */
static size_t join(struct late_reading *reading, const uint64_t *words, size_t count)
{
	size_t used = 0, i;

	reading->count = 0;
	for (i = 0; i < count; i++) {
		struct memory_range *last = reading->count ? &reading->ranges[reading->count - 1] : NULL;
		bool is_same = last && words[i] / PAGE_SIZE == last->address / PAGE_SIZE;
		size_t length = is_same ? (size_t)(words[i] - last->address) + sizeof(*words)
					: sizeof(*words);
		size_t more = is_same ? length - last->length : length;

		if (more > BUFFER_BYTES - used)
			break;
		if (!is_same)
			reading->ranges[reading->count++] = (struct memory_range){
				.address = words[i], .copy = reading->buffer + used
			};
		reading->ranges[reading->count - 1].length = length;
		used += more;
	}
	return i;
}

/*
 * Which of the words refer to a request now? Puts these first, by address, notes where they are, and counts
 * them.
 */
static size_t find_late(struct memory *live, const struct request_members *members,
			struct request_places *places, uint64_t *words, size_t word_count)
{
	struct late_reading reading;
	struct nginx_request request;
	size_t range = 0, found = 0, count;

	qsort(words, word_count, sizeof(*words), compare_words);
	count = join(&reading, words, word_count);
	memory_read_ranges(live, reading.ranges, reading.count);
	for (size_t i = 0; i < count; i++) {
		uint64_t word = words[i], begin;

		while (word - reading.ranges[range].address >= reading.ranges[range].length)
			range++;
		if (reading.ranges[range].status != MEMORY_OK)
			continue;
		memcpy(&begin,
		       (const uint8_t *)reading.ranges[range].copy + (word - reading.ranges[range].address),
		       sizeof(begin));
		if (!begins_request(begin) || !nginx_request_read(live, members, word, &request))
			continue;
		stack_requests_note(places, word);
		words[found++] = word;
	}
	return found;
}

void stack_requests_learn(struct memory *live, const struct request_members *members,
			  struct request_places *places, struct stack_requests *requests)
{
	size_t found = find_late(live, members, places, requests->others, requests->other_count);

	for (size_t i = 0; i < found; i++)
		add_word(requests, requests->others[i], STACK_REQUEST_UNREAD, false);
	requests->other_count = 0;
}

/*---- Which of them runs ----*/

/* The request of those registers of a frame that hold one themselves, or of those that hold a connection. */
struct held {
	size_t request; /* NO_REQUEST without any */
	bool is_several;
};

/* Add to what a frame holds: by whether it is a connection. */
static void find_in_frame(const struct stack_requests *requests, const struct registers *frame,
			  struct held all[static 2])
{
	uint64_t value;

	for (int number = 0; number < REGISTER_NUMBERS && requests->word_count; number++) {
		if (!registers_are_kept(number) || !registers_get(frame, number, &value))
			continue;
		for (size_t i = 0; i < requests->word_count; i++) {
			const struct stack_request_word *word = &requests->words[i];
			struct held *held = &all[word->is_connection];

			if (word->word != value)
				continue;
			held->is_several |= held->request != NO_REQUEST && held->request != word->request;
			held->request = word->request;
		}
	}
}

static void add_doubt(struct stack_requests *requests, uint64_t word)
{
	for (size_t i = 0; i < requests->doubt_count; i++)
		if (requests->doubts[i] == word)
			return;
	if (requests->doubt_count == STACK_REQUEST_WORDS_MAX)
		requests->is_cut = true;
	else
		requests->doubts[requests->doubt_count++] = word;
}

static bool is_read(const struct stack_requests *requests, uint64_t word)
{
	for (size_t i = 0; i < requests->word_count; i++)
		if (requests->words[i].word == word)
			return true;
	return is_known(requests->places, word) || connection_of(requests->places, word);
}

/* Note what the registers of a frame hold that may refer to requests that were not read. */
static void doubt_frame(struct stack_requests *requests, const struct registers *frame)
{
	uint64_t value;
	size_t heap = 0;

	for (int number = 0; number < REGISTER_NUMBERS; number++)
		if (registers_are_kept(number) && registers_get(frame, number, &value) &&
		    may_refer(requests->places, &heap, value) && !is_read(requests, value))
			add_doubt(requests, value);
}

void stack_requests_judge(struct stack_requests *requests, const struct registers *frame)
{
	struct held held[2] = { { .request = NO_REQUEST }, { .request = NO_REQUEST } }, *found;

	if (requests->verdict != STACK_REQUEST_NONE)
		return;
	if (requests->other_count)
		doubt_frame(requests, frame);
	find_in_frame(requests, frame, held);
	found = &held[held[false].request == NO_REQUEST];
	if (found->request == NO_REQUEST)
		return;
	if (found->is_several || found->request == STACK_REQUEST_UNREAD) {
		requests->verdict = STACK_REQUEST_UNKNOWN;
		return;
	}
	requests->verdict = STACK_REQUEST_FOUND;
	requests->found = found->request;
}

void stack_requests_end(struct stack_requests *requests, bool is_whole)
{
	if (requests->verdict != STACK_REQUEST_NONE)
		return;
	/* Any of them may belong to a frame that was not reached. */
	for (size_t i = 0; !is_whole && i < requests->other_count; i++)
		add_doubt(requests, requests->others[i]);
	if (requests->is_cut || (requests->word_count && !is_whole))
		requests->verdict = STACK_REQUEST_UNKNOWN;
}

void stack_requests_settle(struct memory *live, const struct request_members *members,
			   struct request_places *places, struct stack_requests *requests)
{
	for (size_t i = 0; i < requests->count; i++)
		stack_requests_note(places, requests->requests[i].address);
	if (requests->doubt_count &&
	    find_late(live, members, places, requests->doubts, requests->doubt_count))
		requests->verdict = STACK_REQUEST_UNKNOWN;
	requests->doubt_count = 0;
}

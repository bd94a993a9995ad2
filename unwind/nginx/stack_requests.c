/* SPDX-License-Identifier: MIT */
#include "unwind/nginx/stack_requests.h"

#include <stdlib.h>
#include <string.h>

enum {
	SIGNATURE = 0x50545448, /* ngx_http_request_t.signature: NGX_HTTP_MODULE, "HTTP" */
	SEEN_MAX = 2 * STACK_REQUEST_WORDS_MAX,
	NO_REQUEST = STACK_REQUESTS_MAX,
	PAGE_SIZE = 4096,
	BUFFER_BYTES = 64 << 10,
};

void stack_requests_begin(struct stack_requests *requests)
{
	requests->count = requests->word_count = 0;
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

void request_words_add(const struct request_places *places, struct request_words *words, uint64_t word)
{
	if (word == 0 || word % sizeof(word) || words->count == STACK_REQUEST_WORDS_MAX ||
	    !is_in_heap(places, &words->heap, word) || !note_seen(words, word))
		return;
	words->words[words->count++] = word;
}

/*---- What they refer to ----*/

/* A word to read, and for which word of the stack. */
struct wanted {
	uint64_t address;
	size_t word;
};

struct reading {
	struct memory *live, *kept; /* see stack_requests_read() */
	const struct request_members *members;
	struct stack_requests *requests;
	struct wanted wanted[STACK_REQUEST_WORDS_MAX];
	struct memory_range ranges[STACK_REQUEST_WORDS_MAX];
	uint8_t buffer[BUFFER_BYTES];
	/* For each word: the first word there, and of a connection its data. */
	uint64_t begins[STACK_REQUEST_WORDS_MAX], data[STACK_REQUEST_WORDS_MAX];
	bool is_connection[STACK_REQUEST_WORDS_MAX];
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

static int compare_wanted(const void *left, const void *right)
{
	const struct wanted *one = left, *other = right;

	return (one->address > other->address) - (one->address < other->address);
}

/* List ranges to read, each for all wanted words of a page, from begin on. Returns how many words it is for. */
static size_t join(struct reading *reading, size_t begin, size_t count, size_t *used, size_t *range_count)
{
	const struct wanted *wanted = reading->wanted;
	struct memory_range *range = &reading->ranges[*range_count];
	size_t end = begin;

	while (end < count && wanted[end].address / PAGE_SIZE == wanted[begin].address / PAGE_SIZE &&
	       *used + wanted[end].address - wanted[begin].address + sizeof(uint64_t) <= BUFFER_BYTES)
		end++;
	if (end == begin)
		return 0;
	*range = (struct memory_range){
		.address = wanted[begin].address,
		.copy = reading->buffer + *used,
		.length = (size_t)(wanted[end - 1].address - wanted[begin].address) + sizeof(uint64_t),
	};
	*used += range->length;
	(*range_count)++;
	return end - begin;
}

static void read_begins(struct reading *reading, const struct request_places *places,
			const struct request_words *words)
{
	size_t range_count = 0, used = 0, listed = 0, joined, range = 0;

	for (size_t i = 0; i < words->count; i++) {
		uint64_t connection = connection_of(places, words->words[i]);

		reading->is_connection[i] = connection != 0;
		reading->begins[i] = 0;
		reading->wanted[i] = (struct wanted){ connection ? connection : words->words[i], i };
	}
	/* Each range costs more than the bytes in it do. */
	qsort(reading->wanted, words->count, sizeof(reading->wanted[0]), compare_wanted);
	while (listed < words->count &&
	       (joined = join(reading, listed, words->count, &used, &range_count)) != 0)
		listed += joined;
	memory_read_ranges(reading->live, reading->ranges, range_count);
	for (size_t i = 0; i < listed; i++) {
		const struct wanted *wanted = &reading->wanted[i];

		while (wanted->address - reading->ranges[range].address >= reading->ranges[range].length)
			range++;
		if (reading->ranges[range].status == MEMORY_OK)
			memcpy(&reading->begins[wanted->word],
			       (const uint8_t *)reading->ranges[range].copy +
				       (wanted->address - reading->ranges[range].address),
			       sizeof(uint64_t));
	}
}

/* From the data of connections to what is there: ngx_connection_t begins with data. */
static void follow_connections(struct reading *reading, const struct request_places *places,
			       const struct request_words *words)
{
	size_t count = 0, heap = words->heap, of[STACK_REQUEST_WORDS_MAX];

	for (size_t i = 0; i < words->count; i++) {
		if (!reading->is_connection[i])
			continue;
		reading->data[i] = reading->begins[i];
		reading->begins[i] = 0;
		/* Each range that cannot be read costs a system call of its own. */
		if (reading->data[i] % sizeof(uint64_t) || !is_in_heap(places, &heap, reading->data[i]))
			continue;
		of[count] = i;
		reading->ranges[count++] = (struct memory_range){
			.address = reading->data[i],
			.copy = &reading->begins[i],
			.length = sizeof(reading->begins[i]),
		};
	}
	memory_read_ranges(reading->kept, reading->ranges, count);
	for (size_t i = 0; i < count; i++)
		if (reading->ranges[i].status != MEMORY_OK)
			reading->begins[of[i]] = 0;
}

/* The index of the request at the address; NO_REQUEST if there is none, or no room. */
static size_t take_request(struct reading *reading, uint64_t address)
{
	struct stack_requests *requests = reading->requests;
	struct nginx_request request;

	for (size_t i = 0; i < requests->count; i++)
		if (requests->requests[i].address == address)
			return i;
	if (!nginx_request_read(reading->kept, reading->members, address, &request))
		return NO_REQUEST;
	if (requests->count == STACK_REQUESTS_MAX) {
		requests->is_cut = true;
		return NO_REQUEST;
	}
	requests->requests[requests->count] = request;
	return requests->count++;
}

void stack_requests_read(struct memory *live, struct memory *kept, const struct request_members *members,
			 const struct request_places *places, const struct request_words *words,
			 struct stack_requests *ret_requests)
{
	struct reading reading;

	reading.live = live;
	reading.kept = kept;
	reading.members = members;
	reading.requests = ret_requests;
	stack_requests_begin(ret_requests);
	ret_requests->is_cut = words->count == STACK_REQUEST_WORDS_MAX;
	read_begins(&reading, places, words);
	follow_connections(&reading, places, words);
	for (size_t i = 0; i < words->count; i++) {
		bool is_connection = reading.is_connection[i];
		size_t request;

		if (!begins_request(reading.begins[i]))
			continue;
		request = take_request(&reading, is_connection ? reading.data[i] : words->words[i]);
		if (request != NO_REQUEST)
			ret_requests->words[ret_requests->word_count++] = (struct stack_request_word){
				words->words[i], request, is_connection
			};
	}
}

/*---- Which of them runs ----*/

/* The request of the registers of a frame that hold one themselves, or a connection; NO_REQUEST without any. */
static size_t find_in_frame(const struct stack_requests *requests, const struct registers *frame,
			    bool is_connection, bool *ret_several)
{
	size_t found = NO_REQUEST;
	uint64_t value;

	*ret_several = false;
	for (int number = 0; number < REGISTER_NUMBERS; number++) {
		if (!registers_are_kept(number) || !registers_get(frame, number, &value))
			continue;
		for (size_t i = 0; i < requests->word_count; i++) {
			const struct stack_request_word *word = &requests->words[i];

			if (word->word != value || word->is_connection != is_connection)
				continue;
			*ret_several |= found != NO_REQUEST && found != word->request;
			found = word->request;
		}
	}
	return found;
}

void stack_requests_judge(struct stack_requests *requests, const struct registers *frame)
{
	bool is_several;
	size_t found;

	if (requests->word_count == 0 || requests->verdict != STACK_REQUEST_NONE)
		return;
	found = find_in_frame(requests, frame, false, &is_several);
	if (found == NO_REQUEST)
		found = find_in_frame(requests, frame, true, &is_several);
	if (found == NO_REQUEST)
		return;
	requests->verdict = is_several ? STACK_REQUEST_UNKNOWN : STACK_REQUEST_FOUND;
	requests->found = found;
}

void stack_requests_end(struct stack_requests *requests, bool is_whole)
{
	if (requests->verdict == STACK_REQUEST_NONE &&
	    (requests->is_cut || (requests->word_count && !is_whole)))
		requests->verdict = STACK_REQUEST_UNKNOWN;
}

/* SPDX-License-Identifier: MIT */
/*
 * stack_requests: the request that nginx's C code works for while no Lua runs.
 *
 * nginx's functions keep their request, its connection or that connection's event in registers, which
 * called functions save on the stack. While the thread is held, ljspy reads the requests that words on the
 * stack refer to: words of earlier calls are among them, whose requests may have nothing to do with what
 * runs. Later, from the copy, unwind tables tell what the registers of each frame hold. Only these count. The
 * innermost frame with a request decides; a frame with several leaves the request unknown.
 *
 * Most words refer to something else, each to another page, and to read one takes the kernel a microsecond or
 * two.
 * So only those are read while the thread is held that refer to a connection, or to where a request has been
 * seen before: nginx takes the same memory again and again. When the thread runs on, the others are read that
 * frames hold, up to the one that decides. What is a request then may have been another one before: a frame
 * with it leaves the request unknown, this once.
 *
 * A request is accepted as in nginx_request.h: its connection leads back to it.
 */
#ifndef LJSPY_STACK_REQUESTS_H
#define LJSPY_STACK_REQUESTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memory/memory.h"
#include "unwind/elf/registers.h"
#include "unwind/nginx/connections.h"
#include "unwind/nginx/nginx_request.h"

enum {
	STACK_REQUESTS_MAX = 4, /* live ones that words of a stack refer to; a fifth makes it unknown */
	STACK_REQUEST_WORDS_MAX = 256, /* of a stack that may refer to one: the innermost */
	REQUEST_HEAPS_MAX = 64,
	REQUEST_PLACES_KNOWN = 2048, /* a power of 2 */
};

/* Where requests of a process may be. */
struct request_places {
	struct connections connections;
	struct request_heap {
		uint64_t begin, end;
	} heaps[REQUEST_HEAPS_MAX]; /* by address: memory that is writable and of no file */
	size_t heap_count;
	uint64_t known[REQUEST_PLACES_KNOWN]; /* by hash: where requests were seen; 0: free */
	size_t known_count;
};

enum stack_request_verdict {
	STACK_REQUEST_NONE,
	STACK_REQUEST_FOUND,
	STACK_REQUEST_UNKNOWN, /* there may be one */
};

enum { STACK_REQUEST_UNREAD = STACK_REQUESTS_MAX }; /* in place of an index: it was not read in time */

struct stack_requests {
	struct nginx_request requests[STACK_REQUESTS_MAX];
	size_t count;
	struct stack_request_word {
		uint64_t word;
		size_t request;     /* index in requests, or STACK_REQUEST_UNREAD */
		bool is_connection; /* a connection or an event, not the request itself */
	} words[STACK_REQUEST_WORDS_MAX];
	size_t word_count;
	const struct request_places *places;      /* the words'; NULL: nothing was read */
	uint64_t others[STACK_REQUEST_WORDS_MAX]; /* words that were not read */
	size_t other_count;
	uint64_t doubts[STACK_REQUEST_WORDS_MAX]; /* words of frames that were not read */
	size_t doubt_count;
	bool is_cut; /* there is no room for all words, or for all requests that they refer to */
	enum stack_request_verdict verdict;
	size_t found; /* STACK_REQUEST_FOUND: index in requests */
};

/* Words that may refer to requests, each once. */
struct request_words {
	uint64_t words[STACK_REQUEST_WORDS_MAX];
	size_t count;
	uint64_t seen[2 * STACK_REQUEST_WORDS_MAX]; /* by hash */
	size_t heap;                                /* of the word added last */
};

void stack_requests_begin(struct stack_requests *requests);

void request_words_begin(struct request_words *words);

/* Add a word of a stack or a register, if it may refer to a request. */
void request_words_add(const struct request_places *places, struct request_words *words, uint64_t word);

/*
 * While the thread is held: read the requests that words refer to, but those of ret_requests->others. Keeps
 * places.
 */
void stack_requests_read(struct memory *memory, const struct request_members *members,
			 const struct request_places *places, const struct request_words *words,
			 struct stack_requests *ret_requests);

/* A request is, or was, at the address. */
void stack_requests_note(struct request_places *places, uint64_t address);

/* Find out about all the others, before any frame is judged, and note where requests are. */
void stack_requests_learn(struct memory *live, const struct request_members *members,
			  struct request_places *places, struct stack_requests *requests);

/* The next frame outwards has these registers: does it decide? */
void stack_requests_judge(struct stack_requests *requests, const struct registers *frame);

/* The walk along the stack has ended; is_whole: at the stack's end. */
void stack_requests_end(struct stack_requests *requests, bool is_whole);

/* When the thread runs on, after the walk: find out about the doubts, and note where requests are. */
void stack_requests_settle(struct memory *live, const struct request_members *members,
			   struct request_places *places, struct stack_requests *requests);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * symbol_server: a process of its own that reads symbols and unwind tables.
 *
 * The files of a target may be anything, and their debug info be made to keep
 * libdw busy for ever, to fill all memory or to crash it. Whoever asks is safe
 * from that: the server has a bound on its memory and on the CPU time of each
 * answer, and if it dies, whatever of, the question stays unanswered. It ends
 * by itself when the process that asks has ended.
 */
#ifndef LJSPY_SYMBOL_SERVER_H
#define LJSPY_SYMBOL_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/elf/frame_rules.h"
#include "unwind/symbols/symbol.h"
#include "unwind/symbols/symbol_file.h"

enum { SYMBOL_SERVER_FILES_MAX = 65536 };

enum symbol_question {
	SYMBOL_FUNCTIONS,	/* symbol_file_find() and symbol_file_extent() */
	SYMBOL_COVERED,		/* symbol_file_covers(): a count of 1 or 0 */
	SYMBOL_RULES,		/* symbol_file_rules(): a count of 1 or 0 */
};

struct symbol_answer {
	size_t count;
	struct symbol_extent extent;	/* of SYMBOL_FUNCTIONS; it holds the address */
	union {			/* what the question was for, if it is counted */
		struct symbol symbols[SYMBOL_INLINES_MAX];
		struct frame_rules rules;
	};
};

struct symbol_server;

/* NULL if there can be none. */
struct symbol_server *symbol_server_start(void);
void symbol_server_end(struct symbol_server *server);

/* Both are false when the server has failed: it should be ended then. */

/* Hand it a file, to be known by a number below SYMBOL_SERVER_FILES_MAX. The descriptor stays open here. */
bool symbol_server_open(struct symbol_server *server, size_t number,
			const struct symbol_source *source);

/* Bytes of the answer beyond what is counted are not set. */
bool symbol_server_ask(struct symbol_server *server, enum symbol_question question, size_t number,
		       uint64_t address, struct symbol_answer *ret_answer);

/*
 * Every few milliseconds for as long as an answer is waited for; false to do
 * without it. NULL at first.
 */
typedef bool symbol_server_meanwhile(void *context);
void symbol_server_while_waiting(struct symbol_server *server, symbol_server_meanwhile *meanwhile,
				 void *context);

/* CPU time that it has used, as of its last answer. */
uint64_t symbol_server_cpu_ns(const struct symbol_server *server);

#endif

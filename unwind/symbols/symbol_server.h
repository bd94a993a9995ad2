/* SPDX-License-Identifier: MIT */
/*
 * symbol_server: a separate process that reads symbols and unwind tables.
 *
 * A target's files are untrusted: their debug info may keep libdw busy forever,
 * fill all memory or crash it. The server protects its client from that. It has
 * limits on its memory and on the CPU time of each answer, and if it dies, the
 * question stays unanswered. It ends when its client has ended.
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
	SYMBOL_FUNCTIONS, /* symbol_file_find() and symbol_file_extent() */
	SYMBOL_COVERED,   /* symbol_file_covers(): a count of 1 or 0 */
	SYMBOL_RULES,     /* symbol_file_rules(): a count of 1 or 0 */
};

struct symbol_answer {
	size_t count;
	struct symbol_extent extent; /* for SYMBOL_FUNCTIONS; it holds the address */
	union {                      /* by question: count of them are set */
		struct symbol symbols[SYMBOL_INLINES_MAX];
		struct frame_rules rules;
	};
};

struct symbol_server;

/*
 * Called every few milliseconds while the client waits for the start of the server, or for an answer; returns
 * false to do without the answer. It may be NULL.
 */
typedef bool symbol_server_meanwhile(void *context);

/* Start a server; meanwhile is called from now on. NULL on failure. */
struct symbol_server *symbol_server_start(symbol_server_meanwhile *meanwhile, void *context);
void symbol_server_end(struct symbol_server *server);

/* The next two are false when the server has failed: end it then. */

/* Send it a file under a number below SYMBOL_SERVER_FILES_MAX. The caller still owns the descriptor. */
bool symbol_server_open(struct symbol_server *server, size_t number, const struct symbol_source *source);

/* Sets only as many symbols or rules of the answer as it counts. */
bool symbol_server_ask(struct symbol_server *server, enum symbol_question question, size_t number,
		       uint64_t address, struct symbol_answer *ret_answer);

/* Call another one from now on. */
void symbol_server_while_waiting(struct symbol_server *server, symbol_server_meanwhile *meanwhile,
				 void *context);

/* CPU time that the server has used, as of its last answer. */
uint64_t symbol_server_cpu_ns(const struct symbol_server *server);

#endif

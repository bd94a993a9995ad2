/* SPDX-License-Identifier: MIT */
/*
 * option_table: all commands and options, with their help.
 */
#ifndef LJSPY_OPTION_TABLE_H
#define LJSPY_OPTION_TABLE_H

#include <getopt.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "src/options/command.h"

enum { OPTIONS_MAX = 96 };

/* Stand for the letter of options that have none. */
enum {
	OPTION_NAME = UCHAR_MAX + 1,
	OPTION_TREE,
	OPTION_CLOCK,
	OPTION_OFF_CPU,
	OPTION_ALLOC,
	OPTION_STATS,
	OPTION_NATIVE,
	OPTION_LINES,
	OPTION_ANNOTATE,
	OPTION_JSON,
	OPTION_CORE,
	OPTION_TRACES,
	OPTION_NO_STOP,
	OPTION_ALLOW_ATTACH,
	OPTION_VM_STATE,
	OPTION_LAYOUT,
	OPTION_DWARF,
	OPTION_INVERTED,
	OPTION_HEATMAP,
	OPTION_COROUTINES,
	OPTION_REQUESTS,
	OPTION_BLOCKED,
	OPTION_THRESHOLD,
	OPTION_MIN_PERCENT,
	OPTION_SINCE,
	OPTION_UNTIL,
	OPTION_TID,
	OPTION_THREAD,
	OPTION_STATE,
	OPTION_INCLUDE,
	OPTION_EXCLUDE,
	OPTION_BY,
	OPTION_MERGE_RECURSION,
	OPTION_MAX_PAUSE,
	OPTION_STRINGS,
	OPTION_DETAIL,
	OPTION_LOCALS,
	OPTION_MEASURE,
	OPTION_EVERY,
	OPTION_FOR,
	OPTION_SOURCE,
	OPTION_WATCH,
	OPTION_EXACT_PATHS,
	OPTION_INCLUDE_REQUEST,
	OPTION_SLOWER_THAN,
	OPTION_REQUEST,
	OPTION_KEEP,
	OPTION_KEEP_BYTES,
	OPTION_LISTEN,
	OPTION_TOKEN_FILE,
	OPTION_PUSH,
	OPTION_PUSH_CREDENTIALS,
	OPTION_PUSH_CA,
	OPTION_SHOW,
	OPTION_BYTECODE,
	OPTION_WHEN,
	OPTION_AT_MOST,
};

struct option_entry {
	const char *name;
	int letter;
	unsigned int commands; /* 1 << command for each one that has the option */
	const char *argument;  /* NULL if it takes none */
	const char *help;      /* empty for -f: its help lists the formats */
};

struct command_entry {
	const char *name;
	const char *arguments;
	const char *summary;
	const char *examples; /* whole lines */
};

extern const struct option_entry option_table[]; /* in the order of help; a name may have several */
extern const size_t option_count;
extern const struct command_entry command_table[COMMAND_COUNT];

bool option_is_of(const struct option_entry *option, enum command command);
/* The command's option with that letter; it has to have one. */
const struct option_entry *option_of_letter(enum command command, int letter);

/* Does the command look at processes? The others read recordings. */
bool command_has_targets(enum command command);

/* The command's options, for getopt_long(). */
struct getopt_tables {
	char letters[2 + 2 * OPTIONS_MAX + 1];
	struct option names[OPTIONS_MAX + 1];
};

void option_table_fill(enum command command, struct getopt_tables *ret_tables);

#endif

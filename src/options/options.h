/* SPDX-License-Identifier: MIT */
/*
 * options: parse the command line.
 */
#ifndef LJSPY_OPTIONS_H
#define LJSPY_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "output/formats/format.h"
#include "output/heap_reports/heap_report.h"
#include "output/views/filter.h"
#include "src/inspect/given_layout.h"
#include "src/options/clock_time.h"
#include "src/options/command.h"
#include "src/options/condition.h"
#include "unwind/names/namer.h"

/* An option as it was given; all NULL if it was not. */
struct given_option {
	const char *name, *argument; /* argument: NULL if it takes none */
};

/* Strings point into argv. */
struct options {
	enum command command;
	pid_t *pids;        /* owned */
	size_t pid_count;   /* 0: chosen by name or command, or the only process there is */
	bool subprocesses;  /* include descendants of the processes or the command */
	const char *name;   /* extended regular expression; NULL if not given */
	char **launch;      /* command and arguments up to NULL; NULL if not given */
	const char *output; /* file; "-" is standard output; NULL: see options_default_output() */
	/* One is NULL if only heaps, or only profiles, have such a format. */
	const struct format *format;
	const struct heap_format *heap_format;
	uint64_t duration_ns; /* 0: until interrupted or the target ends */
	unsigned int rate_hz;
	enum weight_kind clock;    /* what to show; for a recording, its own unless clock_given */
	enum heap_measure measure; /* of a picture of a heap */
	enum heap_grouping heap_group;
	bool clock_given;
	const char *stats; /* file; NULL if not wanted */
	enum native_display native;
	bool no_stop, allow_attach;
	bool traces; /* show the trace that runs */
	bool lines;
	bool annotate;
	bool json;
	bool verbose;
	bool details;         /* show what C functions work on, and who catches errors */
	bool locals;          /* show values of variables */
	bool watch;           /* show it again and again */
	bool exact_paths;     /* of requests, with query strings */
	bool strings;         /* keep the contents of strings */
	const char *core;     /* core file; NULL if not given */
	uint32_t show;        /* number of a trace to list; 0 if not given */
	const char *bytecode; /* function whose bytecode to list; NULL if not given */
	bool inverted;
	bool heatmap;
	bool source;                  /* show the lines of source files */
	bool coroutines;              /* show parked coroutines instead of threads */
	bool requests;                /* show requests of nginx instead of threads */
	bool alloc;                   /* record allocations instead of time */
	uint64_t blocked_ns;          /* only turns of event loops at least this long; 0: everything */
	uint64_t max_pause_ns;        /* of holds; 0 if not given */
	uint64_t every_ns, for_ns;    /* a series of heaps; 0: one, and until interrupted */
	uint64_t keep_ns, keep_bytes; /* an archive's bounds; 0: the default */
	struct condition conditions[CONDITIONS_MAX]; /* record when one holds, for_ns on from there */
	unsigned int condition_count, at_most;       /* at_most: recordings an hour; 0: the default */
	double min_percent;                          /* 0 if not given */
	char **recordings;                           /* files, up to NULL */
	/* Options that were given, and are for one kind of these files only. */
	struct given_option for_profiles, for_heaps;
	char **archived;                /* owned, with its texts: the same, if a directory was given */
	char **named;                   /* then what the user named: directories, and files */
	uint64_t since_ns;              /* after the beginning of each recording */
	uint64_t until_ns;              /* the same; 0: to its end */
	struct clock_time since, until; /* by the clock, in their place */
	struct filter_options filter;   /* without times, ids and patterns, which are members here */
	pid_t *tids;                    /* owned */
	regex_t *include, *exclude;     /* owned */
	regex_t *include_request;       /* owned */
	struct given_layout *layout;    /* owned; NULL: recognise it */
	const char *layout_text;        /* the argument that names it */
	const char *listen;             /* address; NULL if not given */
	const char *token_file;         /* NULL if not given */
	const char *push;               /* URL; NULL if not given */
	const char *push_credentials;   /* file; the same */
	const char *push_ca;            /* file; the same */
	const char *dwarf;              /* file with debug info; NULL if not given */
};

/* Does the command look into nginx, which may run no Lua? */
static inline bool options_look_into_nginx(const struct options *options)
{
	return options->command == COMMAND_REQUESTS || options->command == COMMAND_TIMERS ||
	       options->command == COMMAND_SHDICT;
}

/* Is it `ljspy record` into an archive, without an end? */
static inline bool options_want_archive(const struct options *options)
{
	return options->command == COMMAND_RECORD && (options->every_ns || options->condition_count);
}

/* Does sampling go on without any process, until there is one of that name? */
static inline bool options_await_processes(const struct options *options)
{
	return options->name && (options->command == COMMAND_SERVE || options_want_archive(options));
}

/*
 * True if there is a command to run. Otherwise it has printed help, the version or
 * what is wrong with the command line, and *ret_status is the exit status. Call
 * options_clear() in either case.
 */
bool options_parse(int argc, char **argv, struct options *ret_options, enum exit_status *ret_status);
void options_clear(struct options *options);

/*
 * Now that the first file is known to be a heap, or none: false after telling the user of an option for
 * others.
 */
bool options_check_kind(const struct options *options, bool is_heap);

/* Tell the user that a format shows no comparison. */
void options_explain_no_comparison(const char *format);

/*
 * "ljspy-NAME-PID-20250131-235959.svg", in the current directory. "_" replaces unusual
 * characters of NAME; PID is left out if it is 0. The caller frees it; NULL when memory
 * is short.
 */
char *options_default_output(const char *name, pid_t pid, const struct format *format);

#endif

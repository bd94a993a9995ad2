/* SPDX-License-Identifier: MIT */
/*
 * options: the command line.
 */
#ifndef LJSPY_OPTIONS_H
#define LJSPY_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "output/formats/format.h"
#include "output/views/filter.h"
#include "src/inspect/given_layout.h"
#include "src/options/command.h"
#include "unwind/names/namer.h"

/* Strings are those of argv. */
struct options {
	enum command command;
	pid_t *pids;		/* owned */
	size_t pid_count;	/* 0: by name, by command, or whatever there is */
	bool subprocesses;	/* descendants of the processes or the command are meant as well */
	const char *name;	/* extended regular expression; NULL if not given */
	char **launch;		/* command and arguments up to NULL; NULL if not given */
	const char *output;	/* file; "-" is standard output; NULL: see options_default_output() */
	const struct format *format;
	uint64_t duration_ns;	/* 0: until interrupted or the target ends */
	unsigned int rate_hz;
	enum weight_kind clock;	/* what to show; a recording shows its own unless one was given */
	bool clock_given;
	const char *stats;	/* file; NULL if not wanted */
	enum native_display native;
	bool no_stop, allow_attach;
	bool traces;		/* show the one that runs */
	bool lines;
	bool annotate;
	bool json;
	const char *core;	/* core file; NULL if not given */
	bool inverted;
	bool heatmap;
	bool coroutines;	/* those that have yielded, and no threads */
	uint64_t blocked_ns;	/* only turns of event loops that take so long; 0: all there is */
	double min_percent;	/* 0 if not given */
	char **recordings;	/* files, up to NULL */
	uint64_t since_ns;	/* after the beginning of each recording */
	uint64_t until_ns;	/* the same; 0: to its end */
	struct filter_options filter;	/* without the times; its ids and patterns are these: */
	pid_t *tids;		/* owned */
	regex_t *include, *exclude;	/* owned */
	struct given_layout *layout;	/* owned; NULL: it is recognised */
	const char *dwarf;	/* file with debug info; NULL if not given */
};

/*
 * True if there is a command to be carried out. Otherwise the user has been
 * told (help, version, or what is wrong with the command line) and
 * *ret_status is what to exit with. Free with options_clear() in either case.
 */
bool options_parse(int argc, char **argv, struct options *ret_options, enum exit_status *ret_status);
void options_clear(struct options *options);

/*
 * "ljspy-NAME-PID-20250131-235959.svg" in the current directory, the name
 * reduced to harmless characters, PID left out if it is 0. NULL when memory is
 * short.
 */
char *options_default_output(const char *name, pid_t pid, const struct format *format);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * source_lines: the time of each line of each Lua file.
 *
 * A line's own time is that of samples whose innermost Lua frame is at that line: what it
 * takes itself, and what is no Lua that it calls: builtins, C, the collector. Its total is
 * that of samples with any frame at that line, each counted once.
 */
#ifndef LJSPY_SOURCE_LINES_H
#define LJSPY_SOURCE_LINES_H

#include <stdint.h>

#include "memory/hash.h"
#include "output/recording/sample_source.h"
#include "output/sample/sample.h"
#include "output/sample/weight.h"

struct source_time {
	uint64_t own_ns, total_ns;
	uint64_t state_ns[VM_STATE_COUNT]; /* own_ns by state of the VM */
	uint64_t last_sample;              /* private to source_lines.c */
};

struct source_line {
	uint32_t number; /* 0 if unknown */
	struct source_time time;
	UT_hash_handle hh;
};

struct source_file {
	const char *name; /* as in struct function */
	struct source_time time;
	struct source_line *lines; /* in the order of their numbers */
	UT_hash_handle hh;
};

struct source_lines {
	struct source_file *files; /* that with most own time first */
	uint64_t samples, all_ns;
};

/*
 * Read all of a source; names are those of its functions. 0, -ENOMEM or the source's
 * error; free with source_lines_clear().
 */
int source_lines_read(struct sample_source *source, enum weight_kind weight, struct source_lines *ret_lines);
void source_lines_clear(struct source_lines *lines);

#endif

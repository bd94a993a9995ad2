/* SPDX-License-Identifier: MIT */
/*
 * heap_output: write heaps as the options say, once they have been read.
 */
#ifndef LJSPY_HEAP_OUTPUT_H
#define LJSPY_HEAP_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "output/heap_reports/heap_report.h"
#include "src/options/options.h"
#include "src/program/output_file.h"

/* The heaps of one moment after the other. Zero it first. */
struct heap_output {
	const struct options *options;
	const char *command_line; /* of ljspy; NULL if unknown */
	struct heap_moment_read *moments;
	size_t moment_count, moment_size;
	size_t unread;    /* moments of a series that were dropped, because nothing could be read */
	size_t unwritten; /* moments of a series that were read, but have no file of their own */
	/* negative errno of the last moment, which the user was told; 0 if it was written */
	int unwritten_by;
	bool is_partial; /* of a heap that was added, not all was found */
};

/*
 * The next heaps are those of a new moment. name is of the file that they are from; NULL: none. 0 or -ENOMEM.
 */
int heap_output_begin_moment(struct heap_output *output, const char *name);

/*
 * Take over a graph, and analyse it. account is copied. Tells the user what is uncertain or missing, if the
 * format does not. 0 or a negative errno.
 */
int heap_output_add(struct heap_output *output, struct heap_graph *graph, const struct heap_account *account);

/* Has a heap been added to the moment that is not missing? */
bool heap_output_has_any(const struct heap_output *output);

/* Forget the last moment. */
void heap_output_drop_moment(struct heap_output *output);
size_t heap_output_moments(const struct heap_output *output);

/* Write the last moment as one. False after telling the user what failed. */
bool heap_output_write(struct heap_output *output);

/*
 * Write the last moment of a series to a file of its own, if -o names a .heap file. The moments that could
 * not be read have their numbers, too. False as above, but what fails the same way again is told once; the
 * first time, it also tells what is kept.
 */
bool heap_output_write_moment(struct heap_output *output);

/*
 * Write what changed between the two moments, without VMs that could not be read in one of them; or over the
 * series. False as above.
 */
bool heap_output_compare(struct heap_output *output);
bool heap_output_write_series(struct heap_output *output);

/* Can the format show a series, or keep each of its moments? False after telling the user. */
bool heap_output_check_series(const struct options *options);

void heap_output_clear(struct heap_output *output);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * heap_report: a table of the formats in which heaps are shown and compared.
 *
 * Each takes all VMs that were read. Everything that comes from a target is escaped for where it goes.
 */
#ifndef LJSPY_HEAP_REPORT_H
#define LJSPY_HEAP_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "output/heap_reports/heap_subject.h"

struct heap_format {
	const char *name;    /* the argument of -f */
	const char *suffix;  /* of files, without the dot */
	const char *summary; /* for the manual: what reads the format */
	unsigned int heeds;  /* the options that it heeds, of enum heeds */
	bool picture;        /* a browser opens it */
	bool needs_graph;    /* write() needs the graphs */
	bool says_uncertain; /* people read in it what is uncertain or missing: no message tells it */
	/* 0, -ENOMEM, -EIO (the stream's own error is in errno). */
	int (*write)(FILE *out, const struct heap_side *side, const struct heap_view *view);
	/* Write how after differs from before; same results. NULL if the format cannot show that. */
	int (*compare)(FILE *out, const struct heap_side *before, const struct heap_side *after,
		       const struct heap_view *view);
};

extern const struct heap_format heap_formats[];
extern const size_t heap_format_count;

/* The format with this name; NULL if there is none. */
const struct heap_format *heap_format_by_name(const char *name);
/* The format of a file by the suffix of its name; NULL if no format has it. */
const struct heap_format *heap_format_by_path(const char *path);

#endif

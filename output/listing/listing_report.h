/* SPDX-License-Identifier: MIT */
/*
 * listing_report: the listings of a process, ready to write.
 */
#ifndef LJSPY_LISTING_REPORT_H
#define LJSPY_LISTING_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include <jansson.h>

#include "unwind/listing/listing.h"

struct listing_part {
	uint64_t g;     /* address of its VM's global_State */
	char *module;   /* path of the file with LuaJIT; untrusted */
	uint32_t trace; /* its number; 0: a function */
	struct listing listing;
};

struct listing_process {
	pid_t pid;
	char *name;           /* untrusted; NULL if unknown */
	bool has_samples;     /* false for a core file */
	uint64_t duration_ns; /* of sampling */
	uint64_t samples, cpu_ns;
	struct listing_part *parts;
	size_t count, size;
	bool complete;     /* every function was looked at */
	uint32_t left_off; /* functions that were found, too, but are not shown */
};

/* name is copied and may be NULL. NULL when memory is short. */
struct listing_process *listing_process_new(pid_t pid, const char *name);
void listing_process_free(struct listing_process *process);

/* Add a part; module is copied. The result is valid until the next is added. NULL when memory is short. */
struct listing_part *listing_process_add(struct listing_process *process, uint64_t g, const char *module);

/* Print for people. On failure, the stream's error flag is set. */
void listing_process_print(FILE *out, const struct listing_process *process);

/* The JSON object described in doc/JSON.md. The caller owns the reference. NULL when memory is short. */
json_t *listing_process_json(const struct listing_process *process);

#endif

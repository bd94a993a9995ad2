/* SPDX-License-Identifier: MIT */
/*
 * zone_report: the memory that nginx's processes share, as text or JSON.
 *
 * A JSON document has "version" and "processes". Each process has pid, name and zones, in the order
 * of their addresses: name, kind (as their owner calls them), size_bytes, usable_bytes, used_bytes,
 * free_pages, keys and expired (of a lua_shared_dict), exact (nobody used it while it was read) and
 * lock: null if nobody holds it, else holder (the process id, as nginx has it), pid (as ljspy has
 * it), alive and name. What is unknown is null.
 */
#ifndef LJSPY_ZONE_REPORT_H
#define LJSPY_ZONE_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include <jansson.h>

enum { ZONE_TEXT_BYTES = 256, ZONE_ROWS_MAX = 4096, ZONE_PAGE_BYTES = 4096, ZONE_HOLDER_BYTES = 64 };

enum zone_holder { ZONE_HOLDER_ALIVE, ZONE_HOLDER_DEAD, ZONE_HOLDER_UNKNOWN /* whether it is alive */ };

struct zone_lock {
	bool is_known;
	pid_t holder; /* as nginx has it; 0: nobody */
	enum zone_holder state;
	pid_t pid;                    /* as ljspy has it; 0 if unknown */
	char name[ZONE_HOLDER_BYTES]; /* of the process; untrusted; "" if unknown */
};

struct zone_row {
	char name[ZONE_TEXT_BYTES], kind[ZONE_TEXT_BYTES]; /* untrusted; "" if unknown */
	uint64_t size, usable, free;                       /* bytes */
	bool knows_free;
	bool is_dict;    /* a lua_shared_dict: */
	bool knows_keys; /* all of it could be read */
	bool is_exact;   /* and nobody used it meanwhile */
	uint64_t keys, expired;
	struct zone_lock lock;
};

struct zone_report {
	pid_t pid;
	char *name;            /* of the process; owned */
	struct zone_row *rows; /* owned */
	size_t count, room;
	bool is_cut; /* there are more */
};

/* name is copied. NULL when memory is short. */
struct zone_report *zone_report_new(pid_t pid, const char *name);
void zone_report_free(struct zone_report *report);

/* 0 or -ENOMEM. */
int zone_report_add(struct zone_report *report, const struct zone_row *row);

void zone_report_print(FILE *out, const struct zone_report *report);

/* NULL when memory is short. */
json_t *zone_report_json(const struct zone_report *report);

#endif

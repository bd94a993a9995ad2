/* SPDX-License-Identifier: MIT */
/*
 * option_values: parse the arguments of options.
 *
 * Each function takes an argument's text. It returns false after telling the user
 * what is wrong with it.
 */
#ifndef LJSPY_OPTION_VALUES_H
#define LJSPY_OPTION_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "output/formats/format.h"
#include "output/heap_reports/heap_report.h"
#include "output/heap_reports/heap_subject.h"
#include "src/options/clock_time.h"
#include "unwind/names/namer.h"

enum {
	OPTIONS_PIDS_MAX = 1024,
	OPTIONS_RATE_DEFAULT = 99,
	OPTIONS_RATE_COROUTINES = 10,
	OPTIONS_RATE_ALLOC = 499,
	OPTIONS_RATE_ARCHIVE = 19, /* what is always on is to cost next to nothing */
	OPTIONS_RATE_MAX = 10000,
	TRACE_NUMBER_MAX = 65535,
	OPTIONS_AT_MOST_MAX = 60,
};

/* Tell that memory is short. Sets errno to ENOMEM, which tells this from a wrong value; returns false. */
bool option_value_no_memory(const char *doing);

/*
 * "12,13": append ids, each once; allocates *ids with the first one, for the caller to
 * free. is_target: the ids are of processes to look at.
 */
bool option_value_ids(const char *text, bool is_target, pid_t **ids, size_t *count);

/* Which formats a command writes: those of profiles, those of heaps, or, by its input, either. */
enum option_formats { FORMATS_OF_PROFILES = 1, FORMATS_OF_HEAPS = 2 };

enum { OPTION_LIST_MAX = 32, OPTION_LIST_SIZE = 256 };

/* "svg, html and text": the formats of these kinds that heed that (heeds.h) and, if need be, compare. */
void option_value_list_formats(unsigned int kinds, unsigned int heeds, bool compares,
			       char ret_all[static OPTION_LIST_SIZE]);

/* Either result is NULL if its kind has no such format; false if no wanted kind has it. */
bool option_value_format(const char *text, unsigned int wanted, const struct format **ret_format,
			 const struct heap_format **ret_heap_format);

/* "module", "coroutine"; "retained", "count" */
bool option_value_heap_group(const char *text, enum heap_grouping *ret_group);
bool option_value_measure(const char *text, enum heap_measure *ret_measure);

/* "90", "1.5s", "12.34s", "500ms", "2m", "1h"; what names the value in a message, such as "duration". */
bool option_value_time(const char *text, const char *what, uint64_t *ret_ns);

/* A time, or "p99", "p99.9": a percentile, as parts in a million. The other one becomes 0. */
bool option_value_slowness(const char *text, uint64_t *ret_ns, uint32_t *ret_ppm);

/* The same, or a time of the clock: "14:02". Sets one of the results. */
bool option_value_moment(const char *text, uint64_t *ret_ns, struct clock_time *ret_time);

/* "500M", "2G", "1000000" */
bool option_value_size(const char *text, uint64_t *ret_bytes);

/* "6": recordings an hour, from 1 on */
bool option_value_at_most(const char *text, unsigned int *ret_count);

bool option_value_threshold(const char *text, uint64_t *ret_ns);

/* "17.3": $connection and $connection_requests of a request, both from 1 on */
bool option_value_request(const char *text, uint64_t *ret_connection, uint64_t *ret_number);

bool option_value_rate(const char *text, unsigned int *ret_hz);

/* "0.5", "10", up to 100 */
bool option_value_percent(const char *text, double *ret_percent);
/* The number of a trace, from 1 on. */
bool option_value_trace(const char *text, uint32_t *ret_number);

/*
 * The name of a file to write to, or "-"; not what looks like the next option. option names the option in a
 * message. *ret_file is text.
 */
bool option_value_file(const char *text, const char *option, const char **ret_file);

bool option_value_native(const char *text, enum native_display *ret_native);
bool option_value_clock(const char *text, bool records, enum weight_kind *ret_clock);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * evidence: what was seen of one process, as sums that the rules judge (output/findings/findings.h).
 *
 * Samples are of the wall clock: their CPU time and the time that they slept add up side by side.
 * Functions and texts are borrowed and must outlive the evidence.
 */
#ifndef LJSPY_EVIDENCE_H
#define LJSPY_EVIDENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "memory/hash.h"
#include "output/heap_views/heap_growth.h"
#include "output/reports/trace_report.h"
#include "output/reports/turn_report.h"
#include "output/sample/sample.h"
#include "output/source/source_text.h"
#include "output/bills/gc_bill.h"

enum {
	EVIDENCE_ROWS_MAX = 1 << 16,  /* of one table; what comes later counts in the sums only */
	EVIDENCE_FILES_MAX = 64,      /* of source */
	EVIDENCE_DEEP = 1000,         /* Lua frames: a stack with so many of them is deep */
	EVIDENCE_SAMPLES_MIN = 20,    /* of equal weight: fewer say nothing of CPU time */
	EVIDENCE_BUSY_PER_MILLE = 20, /* of the time: a process that runs less has no CPU time to save */
};

/* What a line of Lua was at when a sample was taken. */
struct work_key {
	const struct function *function; /* the innermost Lua function; NULL without Lua */
	const struct function *callee;   /* the frame that it called; NULL if it ran itself */
	const struct function *leaf;     /* the innermost frame, or what a sleeping thread waits for */
	uint64_t proto;                  /* of the function, if the interpreter runs it; 0 if unknown */
	uint32_t line;
	uint8_t state; /* enum vm_state */
	bool compiled, asleep;
};

struct work {
	struct work_key key;
	uint64_t cpu_ns, asleep_ns;
	UT_hash_handle hh;
};

/* A builtin anywhere in a stack, with all that it calls, and the Lua function that called it. */
struct call_key {
	const struct function *called, *caller;
	uint32_t line;
};

struct call {
	struct call_key key;
	uint64_t cpu_ns;
	uint64_t last_sample; /* private */
	UT_hash_handle hh;
};

/* A source file that was looked at. */
struct evidence_file {
	const char *name;
	struct source_text text;
};

struct heap_evidence {
	uint64_t first_bytes, last_bytes; /* of all VMs compared, at the first and the last look; 0: none */
	uint64_t duration_ns;             /* between the two */
	struct heap_growths growths;      /* between looks, sorted; empty if there is none */
};

struct evidence {
	pid_t pid;
	char *name;           /* untrusted; NULL if unknown; owned */
	uint64_t duration_ns; /* of sampling */
	uint64_t samples;
	uint64_t cpu_ns, lost_ns; /* lost: CPU time with an unknown part of the stack */
	double squares;           /* of cpu_ns of the samples */
	uint64_t state_ns[VM_STATE_COUNT];
	struct gc_bill gc;
	struct work *works;
	struct call *calls;
	bool has_loop; /* an event loop was seen */
	struct {
		const struct function *function; /* of the deepest stack */
		uint32_t line;
		uint64_t cpu_ns;
		size_t frames; /* the most */
	} deep;
	struct evidence_file *files; /* sources; owned */
	size_t file_count, file_size;
	struct heap_evidence heap;
	struct turn_sums turns;
	struct turn_line *turn_lines; /* heaviest first; owned */
	size_t turn_line_count;
	const struct trace_process *traces; /* borrowed; NULL: not looked at */
};

/* name is copied and may be NULL. NULL when memory is short. */
struct evidence *evidence_new(pid_t pid, const char *name);
void evidence_free(struct evidence *evidence);

/* Add a sample of the process. 0 or -ENOMEM. */
int evidence_add(struct evidence *evidence, const struct sample *sample);

/* Read the sources of the lines that take time. 0 or -ENOMEM. */
int evidence_read_sources(struct evidence *evidence, struct source_reader *reader);

/* The text of a line; NULL if there is none. */
const char *evidence_line(const struct evidence *evidence, const struct function *function, uint32_t line);

/* The number of samples of equal weight that tell as much of CPU time as those that there are. */
double evidence_weight(const struct evidence *evidence);

/* Are there enough of them, and has the process used enough CPU time to judge? */
bool evidence_is_enough(const struct evidence *evidence);
bool evidence_is_busy(const struct evidence *evidence);

/*
 * The share of ns in CPU time, from 0 to 1; and the share that it has at least, but for one recording in 40.
 */
double evidence_share(const struct evidence *evidence, uint64_t ns);
double evidence_sure_share(const struct evidence *evidence, uint64_t ns);

#endif

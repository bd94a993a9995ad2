/* SPDX-License-Identifier: MIT */
/*
 * heap_uncertain: what is uncertain of heaps, or was not found.
 *
 * A text says it where it shows the heap, a picture in its header; for all but texts there is a line for a
 * message, too. All of it is escaped as ESCAPE_PLAIN.
 */
#ifndef LJSPY_HEAP_UNCERTAIN_H
#define LJSPY_HEAP_UNCERTAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "output/heap_reports/heap_subject.h"

enum { HEAP_UNCERTAIN_SIZE = 2048 };

/* What to say of paths that do not read alike; see heap_unlike in heap_subject.h. */
#define HEAP_OTHER_COROUTINES \
	"Paths through coroutines do not compare: files of an older ljspy have where coroutines stand, " \
	"others their function."
#define HEAP_OTHER_C_FUNCTIONS \
	"Paths through functions in C do not compare: files of an older ljspy do not name these."

/* "+1234 bytes not found", "all of it found", or "could not be read; gc.total 1,234 bytes" */
void heap_not_found_write(FILE *out, const struct heap_account *account);

/* "uncertain: 3 objects could not be read" and the like, each in a line of its own; nothing if nothing is. */
void heap_uncertain_write(FILE *out, const struct heap_uncertain *uncertain);

/*
 * "nginx (pid 4242), VM 1: +1234 bytes not found; uncertain: 3 objects could not be read", cut if it is too
 * long; "" if nothing is uncertain or missing. Returns ret_text.
 */
const char *heap_uncertain_text(const struct heap_account *account,
				char ret_text[static HEAP_UNCERTAIN_SIZE]);

/* The same of a side: its first VM of which there is something to say, and how many more there are. */
const char *heap_side_uncertain_text(const struct heap_side *side, char ret_text[static HEAP_UNCERTAIN_SIZE]);

/*
 * Write the same of all VMs of a side, each in a line of its own. most_processes: of the sides that it is
 * shown with; if this one has fewer, a line says so.
 */
void heap_side_uncertain_write(FILE *out, const struct heap_side *side, size_t most_processes);

/* How many processes are its VMs of? Those of a process follow each other. */
size_t heap_side_processes(const struct heap_side *side);

/* Of the side that has most. */
size_t heap_sides_most_processes(const struct heap_side *sides, size_t count);

#endif

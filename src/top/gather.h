/* SPDX-License-Identifier: MIT */
/*
 * gather: the three kinds of lists. Each gathers entries from samples, then makes rows of
 * them. Only rows_fill.c uses it.
 *
 * Entries are NULL at first, rows all zero bytes. Functions return 0 or -ENOMEM unless
 * they say otherwise.
 */
#ifndef LJSPY_TOP_GATHER_H
#define LJSPY_TOP_GATHER_H

#include "output/views/profile.h"
#include "src/top/rows.h"

/*---- Functions ----*/

struct function_entry;

/* number differs for each sample and is not 0. */
int function_rows_gather(struct function_entry **entries, const struct rows_options *options,
			 const struct sample *sample, uint64_t number);
int function_rows_finish(struct function_entry *entries, struct rows *rows);
void function_rows_free(struct function_entry **entries);

/*
 * Does any frame of the sample pass the filter? 1, 0 or -ENOMEM. Entries keep the answer for each function.
 */
int function_rows_any_passes(struct function_entry **entries, const struct rows_options *options,
			     const struct sample *sample);

/*---- The tree ----*/

int tree_rows_finish(const struct profile *profile, const struct rows_options *options, struct rows *rows);

/*---- Processes and threads ----*/

struct thread_entry;

int thread_rows_gather(struct thread_entry **entries, const struct rows_options *options,
		       const struct sample *sample);
void thread_rows_count(const struct thread_entry *entries, struct totals *totals);
int thread_rows_finish(const struct thread_entry *entries, const struct rows_options *options,
		       struct rows *rows);
void thread_rows_free(struct thread_entry **entries);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * similar: which word did the user mean?
 */
#ifndef LJSPY_SIMILAR_H
#define LJSPY_SIMILAR_H

#include <stddef.h>

/* The search for the candidate that is most like a word. */
struct similar {
	const char *word;
	const char *best; /* NULL: none is like it */
	size_t distance;  /* of the best: edits of one letter, or exchanges of neighbours */
};

/* Candidates that need more than a third of the word's letters edited are not like it. */
struct similar similar_begin(const char *word);

/* Consider one more candidate. It must outlive the search. Words of more than 32 bytes are like none. */
void similar_add(struct similar *similar, const char *candidate);

#endif

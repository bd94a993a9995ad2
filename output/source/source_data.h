/* SPDX-License-Identifier: MIT */
/*
 * source_data: source files in a picture, for its script.
 *
 * "files" has a line for each file of a function: its name, a tab, a note on its text
 * (empty: none), a tab, and the indices of its functions, with spaces between them. Where
 * file N (from 0) has a text, "source-N" has its lines, with a newline after each.
 */
#ifndef LJSPY_SOURCE_DATA_H
#define LJSPY_SOURCE_DATA_H

#include <stddef.h>
#include <stdio.h>

#include "output/sample/frame.h"
#include "output/source/source_text.h"

enum { SOURCE_ALL_BYTES_MAX = 16 << 20 }; /* of all files in a picture; further ones have no text */

/* Write the files of these functions, in their order; NULL among them stands for none. 0 or -ENOMEM. */
int source_data_write(FILE *out, const struct function *const *functions, size_t count,
		      struct source_reader *reader);

/* Write a line, with its tabs, as character data of XML. */
void source_data_write_line(FILE *out, const char *line);

#endif

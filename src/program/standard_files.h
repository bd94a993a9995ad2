/* SPDX-License-Identifier: MIT */
/*
 * standard_files: standard input, output and error, which may be closed or refuse what is written.
 */
#ifndef LJSPY_STANDARD_FILES_H
#define LJSPY_STANDARD_FILES_H

#include <stdbool.h>

/*
 * Keep the numbers of the three from other files. Call this before any file is opened. Where one of the three
 * is closed, the next file would get its number, and what ljspy prints would go there. Reads and writes of it
 * fail then as if it were closed (EBADF), and so it is for commands that ljspy starts.
 */
void standard_files_reserve(void);

/* Write all that was printed to standard output. False if that cannot be; the user knows then. */
bool standard_output_flush(void);

#endif

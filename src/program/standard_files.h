/* SPDX-License-Identifier: MIT */
/*
 * standard_files: keep the numbers of standard input, output and error from other files.
 */
#ifndef LJSPY_STANDARD_FILES_H
#define LJSPY_STANDARD_FILES_H

/*
 * Call this before any file is opened. Where one of the three is closed, the next file would get its number, and what
 * ljspy prints would go there. Reads and writes of it fail then as if it were closed (EBADF), and so it is for
 * commands that ljspy starts.
 */
void standard_files_reserve(void);

#endif

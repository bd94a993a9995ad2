/* SPDX-License-Identifier: MIT */
/*
 * close_files: close a range of files, with any kernel and C library.
 */
#ifndef LJSPY_CLOSE_FILES_H
#define LJSPY_CLOSE_FILES_H

/*
 * Close the files from first to last, if they are open. For a process of one thread: glibc has
 * close_range() since 2.34, Linux since 5.9; without it, each file is closed by itself. Keeps errno.
 */
void close_files(unsigned int first, unsigned int last);

#endif

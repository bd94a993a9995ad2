/* SPDX-License-Identifier: MIT */
/*
 * same_file: is what has two names one file?
 */
#ifndef LJSPY_SAME_FILE_H
#define LJSPY_SAME_FILE_H

#include <stdbool.h>
#include <sys/stat.h>

/* Do both tell of one file, directory or namespace? Device and inode together identify it (inode(7)). */
static inline bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * archive_list: the recordings in a directory, in the order in which they were made.
 *
 * A recording's name is the time at which it begins, in UTC, and a number that counts up:
 * 20261123T140200Z-000017.ljspy. The number gives the order, also where the clock was set
 * back. Files of other names are no part of the archive.
 */
#ifndef LJSPY_ARCHIVE_LIST_H
#define LJSPY_ARCHIVE_LIST_H

#include <stddef.h>
#include <stdint.h>

enum { ARCHIVE_NAME_SIZE = sizeof("20261123T140200Z-4294967295.ljspy") };

struct archive_entry {
	uint32_t number;
	int64_t begin_s; /* since 1970, by its name */
	int64_t end_s;   /* the last write to it, by the file system; not before begin_s */
	uint64_t bytes;
};

struct archive_list {
	struct archive_entry *entries; /* owned, the oldest first */
	size_t count;
};

void archive_name(const struct archive_entry *entry, char ret_name[static ARCHIVE_NAME_SIZE]);

/*
 * Read the directory; a descriptor. However many recordings it has, all count: an entry takes 32 bytes,
 * and --keep may let them be millions. 0 or a negative errno: a part is no list, for numbers would begin
 * anew.
 */
int archive_list_read(int directory, struct archive_list *ret_list);
void archive_list_clear(struct archive_list *list);

#endif

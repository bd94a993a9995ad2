/* SPDX-License-Identifier: MIT */
#include "output/labels/string_index.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "memory/hash.h"

struct entry {
	int64_t number;
	UT_hash_handle hh;
	char text[];
};

struct string_index {
	struct entry *entries; /* uthash keeps them in the order of their numbers */
};

struct string_index *string_index_new(void)
{
	return calloc(1, sizeof(struct string_index));
}

void string_index_free(struct string_index *index)
{
	if (!index)
		return;
	HASH_FREE_ALL(index->entries);
	free(index);
}

int64_t string_index_add(struct string_index *index, const char *text)
{
	size_t length = strlen(text);
	struct entry *entry;

	HASH_FIND(hh, index->entries, text, length, entry);
	if (entry)
		return entry->number;
	entry = calloc(1, sizeof(*entry) + length + 1);
	if (!entry)
		return -ENOMEM;
	memcpy(entry->text, text, length);
	entry->number = HASH_COUNT(index->entries);
	HASH_ADD(hh, index->entries, text, length, entry);
	if (!hash_added(&entry->hh)) {
		free(entry);
		return -ENOMEM;
	}
	return entry->number;
}

char *string_index_next(struct string_index *index, const char *text)
{
	struct entry *entry = index->entries;

	if (text) {
		/* Not in the macro, which would evaluate it for each byte. */
		size_t length = strlen(text);

		HASH_FIND(hh, index->entries, text, length, entry);
		entry = entry ? entry->hh.next : NULL;
	}
	return entry ? entry->text : NULL;
}

/* SPDX-License-Identifier: MIT */
/*
 * made_up_listing: directories of /proc that list the ids of a test's choice.
 *
 * A directory that the test has not put cannot be opened.
 */
#ifndef LJSPY_MADE_UP_LISTING_H
#define LJSPY_MADE_UP_LISTING_H

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>

#include "tests/unit/instead_of.h"

INSTEAD_OF(opendir);
INSTEAD_OF(readdir);
INSTEAD_OF(closedir);

enum { LISTED_MAX = 16, LISTINGS_MAX = 4, LISTING_PATH_SIZE = 32 };

struct made_up_listing {
	char path[LISTING_PATH_SIZE];
	pid_t ids[LISTED_MAX];
	size_t count;
	int error;             /* of opendir(); 0: none */
	int reading_error;     /* of readdir(), behind the ids; 0: none */
	unsigned int openings; /* that succeeded */
	size_t next;           /* entry */
};

static struct made_up_listing made_up_listings[LISTINGS_MAX];
static size_t made_up_listing_count;

static inline void made_up_listings_begin(void)
{
	memset(made_up_listings, 0, sizeof(made_up_listings));
	made_up_listing_count = 0;
}

/* One that is empty at first. */
static inline struct made_up_listing *made_up_listing_put(const char *path)
{
	struct made_up_listing *listing = &made_up_listings[made_up_listing_count++];

	assert_in_range(made_up_listing_count, 1, LISTINGS_MAX);
	assert_in_range(strlen(path), 1, sizeof(listing->path) - 1);
	strcpy(listing->path, path);
	return listing;
}

static inline void made_up_listing_add(struct made_up_listing *listing, pid_t id)
{
	assert_in_range(listing->count, 0, LISTED_MAX - 1);
	listing->ids[listing->count++] = id;
}

static inline void made_up_listing_take_away(struct made_up_listing *listing, pid_t id)
{
	size_t i = 0;

	while (i < listing->count && listing->ids[i] != id)
		i++;
	assert_in_range(i, 0, listing->count - 1);
	listing->ids[i] = listing->ids[--listing->count];
}

DIR *__wrap_opendir(const char *path)
{
	for (size_t i = 0; i < made_up_listing_count; i++) {
		struct made_up_listing *listing = &made_up_listings[i];

		if (strcmp(listing->path, path) != 0)
			continue;
		errno = listing->error;
		if (listing->error)
			return NULL;
		listing->openings++;
		listing->next = 0;
		return (DIR *)listing;
	}
	errno = ENOENT;
	return NULL;
}

/* Before the ids, what is none. */
struct dirent *__wrap_readdir(DIR *directory)
{
	static const char *const others[] = { ".", "..", "self", "0", "-7" };
	enum { OTHERS = sizeof(others) / sizeof(others[0]) };
	struct made_up_listing *listing = (struct made_up_listing *)directory;
	static struct dirent entry;
	const size_t index = listing->next++;

	if (index < OTHERS)
		strcpy(entry.d_name, others[index]);
	else if (index - OTHERS < listing->count)
		snprintf(entry.d_name, sizeof(entry.d_name), "%d", (int)listing->ids[index - OTHERS]);
	else {
		errno = listing->reading_error;
		return NULL;
	}
	return &entry;
}

int __wrap_closedir(DIR *directory)
{
	(void)directory;
	return 0;
}

#endif

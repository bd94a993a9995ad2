/* SPDX-License-Identifier: MIT */
/*
 * mark: how far an archive has been pushed, in a file beside its recordings.
 *
 * The file "pushed" begins with one line of fixed length, so that writing it needs no room on a full disk:
 *
 *	ljspy pushed 0000000017 0000000018 0000000002
 *	 0000000040
 *
 * Everything up to recording 17 is done, and of recording 18 the first two profiles. Of those behind,
 * recording 40 among them, the first profile was taken out of turn. Whoever pushes has the file locked.
 */
#ifndef LJSPY_MARK_H
#define LJSPY_MARK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	MARK_AHEAD_MAX = 1024,
	MARK_LINE_LENGTH = sizeof("ljspy pushed 4294967295 4294967295 4294967295\n") - 1,
	MARK_AHEAD_LENGTH = sizeof(" 4294967295\n") - 1,
	MARK_TEXT_SIZE = MARK_LINE_LENGTH + MARK_AHEAD_MAX * MARK_AHEAD_LENGTH + 1,
};

struct mark {
	uint32_t done;                  /* the last recording that needs nothing more */
	uint32_t current;               /* of this recording, */
	uint32_t parts;                 /* ... so many profiles are done */
	uint32_t ahead[MARK_AHEAD_MAX]; /* the recordings whose first profile was taken out of turn */
	size_t ahead_count;
};

/* All up to this recording are done; what was taken out of turn behind it stays. */
void mark_finish(struct mark *mark, uint32_t number);
bool mark_is_ahead(const struct mark *mark, uint32_t number);

void mark_write_text(const struct mark *mark, char ret_text[static MARK_TEXT_SIZE]);
/*
 * False if it is no mark. A line behind the first that is not whole ends it: a full disk had no room for it.
 */
bool mark_read_text(const char *text, size_t length, struct mark *ret_mark);

/*
 * Open and lock the file in the directory, a descriptor, and make it if need be. The
 * descriptor of the file, or a negative errno; -EWOULDBLOCK if another ljspy has it.
 */
int mark_open(int directory);

/*
 * 0; -ENODATA if nothing was written to the file yet; -EILSEQ if it holds no mark; or another negative errno.
 */
int mark_read(int fd, struct mark *ret_mark);
/* 0 or a negative errno. */
int mark_write(int fd, const struct mark *mark);

#endif

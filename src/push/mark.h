/* SPDX-License-Identifier: MIT */
/*
 * mark: how far an archive has been pushed, in a file beside its recordings.
 *
 * The file "pushed" is one line of fixed length, so that writing it needs no room on a full disk:
 *
 *	ljspy pushed 0000000017 0000000018 0000000002
 *
 * Everything up to recording 17 is done, and of recording 18 the first two profiles. Whoever
 * pushes has the file locked.
 */
#ifndef LJSPY_MARK_H
#define LJSPY_MARK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MARK_TEXT_SIZE = sizeof("ljspy pushed 4294967295 4294967295 4294967295\n") };

struct mark {
	uint32_t done;    /* the last recording that needs nothing more */
	uint32_t current; /* of this recording, */
	uint32_t parts;   /* ... so many profiles are done */
};

void mark_write_text(const struct mark *mark, char ret_text[static MARK_TEXT_SIZE]);
/* False if it is no mark. */
bool mark_read_text(const char *text, size_t length, struct mark *ret_mark);

/*
 * Open and lock the file in the directory, a descriptor, and make it if need be. The
 * descriptor of the file, or a negative errno; -EWOULDBLOCK if another ljspy has it.
 */
int mark_open(int directory);

/* 0; -ENODATA if nothing was written to the file yet; -EILSEQ if it holds no mark; or another negative errno. */
int mark_read(int fd, struct mark *ret_mark);
/* 0 or a negative errno. */
int mark_write(int fd, const struct mark *mark);

#endif

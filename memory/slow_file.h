/* SPDX-License-Identifier: MIT */
/*
 * slow_file: read files whose disk or server may never answer, as errands (errand.h).
 *
 * Each function works like the system call in its name, but fails with ETIMEDOUT when the answer takes too
 * long, or there is no time for it. With errands NULL it waits for as long as the call takes.
 */
#ifndef LJSPY_SLOW_FILE_H
#define LJSPY_SLOW_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "memory/errand.h"

enum {
	SLOW_READ_MAX = 64 << 10, /* bytes of one slow_pread() */
	SLOW_HEAD_MAX = 1024,     /* of one slow_head() */
};

bool slow_stat(struct errands *errands, const char *path, struct stat *ret_status);
bool slow_fstat(struct errands *errands, int fd, struct stat *ret_status);

/* Open for reading and close on exec. Does not wait for a FIFO's writer or take a terminal. -1 with errno. */
int slow_open(struct errands *errands, const char *path);
/* Closed in any case, later where the disk does not answer in time. */
void slow_close(struct errands *errands, int fd);

/*
 * Open the file, read its first length bytes and close it, as one errand. False with errno: EIO if there are
 * fewer.
 */
bool slow_head(struct errands *errands, const char *path, void *bytes, size_t length);

/* True if it read all length bytes. Sets no errno. */
bool slow_pread(struct errands *errands, int fd, void *bytes, size_t length, uint64_t offset);

#endif

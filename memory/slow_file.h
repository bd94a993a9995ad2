/* SPDX-License-Identifier: MIT */
/*
 * slow_file: files that may never answer (errand.h).
 *
 * As the system calls that they are named after; what does not come in time fails
 * with ETIMEDOUT. With errands NULL they wait for as long as it takes.
 */
#ifndef LJSPY_SLOW_FILE_H
#define LJSPY_SLOW_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "memory/errand.h"

enum { SLOW_READ_MAX = 64 << 10 }; /* bytes of one slow_pread() */

bool slow_stat(struct errands *errands, const char *path, struct stat *ret_status);
bool slow_fstat(struct errands *errands, int fd, struct stat *ret_status);

/* To read, closed on exec, without waiting for a FIFO's writer or taking a terminal. -1 with errno. */
int slow_open(struct errands *errands, const char *path);
void slow_close(struct errands *errands, int fd);

/* True if all was read. */
bool slow_pread(struct errands *errands, int fd, void *bytes, size_t length, uint64_t offset);

#endif

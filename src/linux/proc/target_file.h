/* SPDX-License-Identifier: MIT */
/*
 * target_file: what kind of file a target has open.
 *
 * Asked while threads are held: so whoever keeps the file is not asked, but what the
 * kernel knows by itself is taken, and a disk that hangs keeps nobody waiting.
 */
#ifndef LJSPY_TARGET_FILE_H
#define LJSPY_TARGET_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/* Only its mode and, of a device, which one it is. False if there is none. */
bool target_file_status(pid_t pid, uint64_t fd, struct statx *ret_status);

#endif

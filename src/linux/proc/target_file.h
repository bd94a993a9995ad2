/* SPDX-License-Identifier: MIT */
/*
 * target_file: what kind of file a target has open.
 *
 * ljspy asks while it holds threads. So it takes what the kernel already knows and
 * does not ask the filesystem; a disk that hangs delays no thread.
 */
#ifndef LJSPY_TARGET_FILE_H
#define LJSPY_TARGET_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/* Gets only the mode and, for a device, its number. False if there is no such file. */
bool target_file_status(pid_t pid, uint64_t fd, struct statx *ret_status);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * root_file: read a small file as a process with another root directory would see it.
 *
 * The path is the target's word, so it is resolved below that root, whatever links it
 * leads through; nothing but a regular file is opened, so that no FIFO, terminal or device
 * is touched; and a disk that does not answer fails the call (memory/errand.h). The
 * superuser, who may read everything, gets only files that everybody may read: what a
 * target names shall not bring secrets into a picture.
 */
#ifndef LJSPY_ROOT_FILE_H
#define LJSPY_ROOT_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "memory/errand.h"

struct root_file_wanted {
	const char *root; /* for example /proc/PID/root */
	const char *path; /* absolute, below the root */
	size_t size_max;  /* of the file, in bytes */
};

struct root_file {
	char *bytes; /* with a NUL behind them; free them */
	size_t length;
	uint64_t changed_unix_ns; /* when its contents, name or mode last changed */
};

/*
 * 0 or a negative errno: -ENOENT, -EACCES, -EFBIG, -EINVAL (no regular file), -ETIMEDOUT,
 * -ENOSYS (Linux before 5.6 cannot resolve below a root other than "/"), -ENOMEM, ...
 */
int root_file_read(struct errands *errands, const struct root_file_wanted *wanted,
		   struct root_file *ret_file);

#endif

/* SPDX-License-Identifier: MIT */
#include "memory/memory_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static int unlinked(char *path)
{
	int fd = mkostemp(path, O_CLOEXEC);

	if (fd >= 0)
		unlink(path);
	return fd;
}

int memory_file(const char *name)
{
	char shared[] = "/dev/shm/ljspy-XXXXXX", temporary[] = "/tmp/ljspy-XXXXXX";
	int fd = memfd_create(name, MFD_CLOEXEC);

	if (fd >= 0 || (errno != ENOSYS && errno != EPERM))
		return fd;
	fd = unlinked(shared);
	return fd < 0 ? unlinked(temporary) : fd;
}

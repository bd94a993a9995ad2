/* SPDX-License-Identifier: MIT */
#include "src/apart/inherited_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "memory/array.h"
#include "memory/close_files.h"

enum { FIRST = STDERR_FILENO + 1 };

static int compare(const void *a, const void *b)
{
	const int *one = a, *other = b;

	return (*one > *other) - (*one < *other);
}

static int find(DIR *directory, struct inherited_files *files)
{
	const struct dirent *entry;
	size_t size = 0;

	while ((entry = readdir(directory))) {
		int fd = atoi(entry->d_name), flags; /* "." and ".." are 0 */
		int *bigger;

		if (fd < FIRST || (flags = fcntl(fd, F_GETFD)) < 0 || flags & FD_CLOEXEC)
			continue;
		bigger = array_grow(files->fds, &size, files->count + 1, sizeof(*bigger));
		if (!bigger)
			return -ENOMEM;
		files->fds = bigger;
		files->fds[files->count++] = fd;
	}
	return 0;
}

int inherited_files_find(struct inherited_files *ret_files)
{
	struct inherited_files files = { 0 };
	DIR *directory = opendir("/proc/self/fd");
	int error;

	if (!directory)
		return -errno;
	error = find(directory, &files);
	closedir(directory);
	if (error) {
		free(files.fds);
		return error;
	}
	if (files.count)
		qsort(files.fds, files.count, sizeof(*files.fds), compare);
	*ret_files = files;
	return 0;
}

void inherited_files_close_others(const struct inherited_files *files)
{
	unsigned int first = FIRST;

	for (size_t i = 0; i < files->count; i++) {
		unsigned int fd = (unsigned int)files->fds[i];

		close_files(first, fd - 1);
		first = fd + 1;
	}
	close_files(first, UINT_MAX);
}

void inherited_files_close(struct inherited_files *files)
{
	for (size_t i = 0; i < files->count; i++)
		close(files->fds[i]);
	free(files->fds);
	*files = (struct inherited_files){ 0 };
}

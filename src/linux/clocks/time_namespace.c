/* SPDX-License-Identifier: MIT */
#include "src/linux/clocks/time_namespace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "src/linux/clocks/clock.h"

enum { PATH_SIZE = 64, LINK_SIZE = 64 };

/* 0 or a negative errno. */
static int read_link(pid_t pid, const char *name, char ret_text[static LINK_SIZE])
{
	char path[PATH_SIZE];
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)pid, name);
	length = readlink(path, ret_text, LINK_SIZE - 1);
	if (length < 0)
		return -errno;
	ret_text[length] = '\0';
	return 0;
}

/* Ahead of the machine's clock. */
static bool read_offset(pid_t pid, int64_t *ret_ns)
{
	char path[PATH_SIZE], own[LINK_SIZE], of_children[LINK_SIZE];
	int64_t seconds, ns;
	bool is_read;
	FILE *file;

	/* The file tells the offsets for children. */
	if (read_link(pid, "time", own) || read_link(pid, "time_for_children", of_children) ||
	    strcmp(own, of_children) != 0)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/timens_offsets", (int)pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	is_read = fscanf(file, "monotonic %" SCNd64 " %" SCNd64, &seconds, &ns) == 2;
	fclose(file);
	if (is_read)
		*ret_ns = seconds * NS_PER_SECOND + ns;
	return is_read;
}

bool time_namespace_offset(pid_t pid, int64_t *ret_ns)
{
	char ours[LINK_SIZE], theirs[LINK_SIZE];
	int64_t our_ns, their_ns;
	int our_error = read_link(getpid(), "time", ours);
	int error = read_link(pid, "time", theirs);

	/* A kernel without such namespaces, or both have the same. */
	if (our_error == -ENOENT || (!our_error && !error && strcmp(ours, theirs) == 0)) {
		*ret_ns = 0;
		return true;
	}
	if (our_error || error || !read_offset(getpid(), &our_ns) || !read_offset(pid, &their_ns))
		return false;
	*ret_ns = their_ns - our_ns;
	return true;
}

/* SPDX-License-Identifier: MIT */
#include "src/linux/files/home.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "src/linux/files/same_file.h"
#include "src/linux/proc/process.h"

static const uint64_t second_ns = 1000000000;

void home_boot(char ret_boot[static HOME_BOOT_SIZE])
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : read(fd, ret_boot, HOME_BOOT_SIZE - 1);

	if (fd >= 0)
		close(fd);
	ret_boot[length > 0 ? length : 0] = '\0';
	ret_boot[strcspn(ret_boot, "\n")] = '\0';
}

static uint64_t now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * second_ns + (uint64_t)now.tv_nsec;
}

static uint64_t began_ns(uint64_t start_ticks)
{
	uint64_t tick_ns = second_ns / (uint64_t)sysconf(_SC_CLK_TCK);

	return now_ns(CLOCK_REALTIME) - now_ns(CLOCK_BOOTTIME) + start_ticks * tick_ns;
}

/* The target of the link /proc/PID/NAME; "" if it cannot be read. */
static void read_link(pid_t pid, const char *name, char ret_target[static PATH_MAX])
{
	char path[64];
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	length = readlink(path, ret_target, PATH_MAX - 1);
	ret_target[length > 0 ? length : 0] = '\0';
}

/* Is the root of the process what ljspy finds under this path? Not if it has mounts of its own. */
static bool is_same_root(pid_t pid, const char *root)
{
	struct stat theirs, ours;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/root", (int)pid);
	return stat(path, &theirs) == 0 && stat(root, &ours) == 0 && same_file(&theirs, &ours);
}

/* The kernel tells paths from ljspy's root on: take away the part up to the target's root. */
static void cut_root(char *directory, const char *root)
{
	size_t length = strcmp(root, "/") == 0 ? 0 : strlen(root);

	if (*directory != '/' || strncmp(directory, root, length) != 0 ||
	    (directory[length] != '/' && directory[length] != '\0'))
		*directory = '\0';
	else if (directory[length] == '\0')
		memcpy(directory, "/", sizeof("/"));
	else
		memmove(directory, directory + length, strlen(directory + length) + 1);
}

int home_read(pid_t pid, struct home *ret_home)
{
	struct process process;
	struct home *home = ret_home;
	int error = process_read_outside(pid, &process);

	if (error)
		return error;
	*home = (struct home){
		.pid = pid,
		.start_ticks = process.start_ticks,
		.began_unix_ns = began_ns(process.start_ticks),
	};
	process_clear(&process);
	home_boot(home->boot);
	read_link(pid, "root", home->root);
	read_link(pid, "cwd", home->directory);
	cut_root(home->directory, *home->root ? home->root : "/");
	if (!is_same_root(pid, home->root))
		*home->root = '\0';
	return 0;
}

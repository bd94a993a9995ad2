/* SPDX-License-Identifier: MIT */
/* Where the directories of a process are, and files below the root that it has. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/linux/files/home.h"
#include "src/linux/files/root_file.h"

static char folder[] = "/tmp/ljspy-files-XXXXXX";

static int begin(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	return chdir("/") == 0 ? rmdir(folder) : -1;
}

/*---- home ----*/

/* A process in that directory, perhaps with another root. */
static pid_t child_in(const char *directory, const char *root)
{
	int ready[2];
	char byte;
	pid_t child;

	assert_int_equal(pipe(ready), 0);
	child = fork();
	if (child == 0) {
		alarm(60);
		if ((root && chroot(root)) || chdir(directory))
			_exit(1);
		if (write(ready[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return child;
}

static void end_child(pid_t child)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

static uint64_t unix_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void a_process_has_a_directory_and_a_time(void **state)
{
	static struct home home;
	const uint64_t second_ns = 1000000000, before_ns = unix_now_ns();
	pid_t child = child_in(folder, NULL);
	char boot[HOME_BOOT_SIZE];

	(void)state;
	assert_int_equal(home_read(child, &home), 0);
	assert_int_equal(home.pid, child);
	assert_string_equal(home.directory, folder);
	assert_string_equal(home.root, "/");
	home_boot(boot);
	assert_int_equal(strlen(boot), 36);
	assert_string_equal(home.boot, boot);
	assert_int_not_equal(home.start_ticks, 0);
	/* The kernel counts in hundredths of seconds. */
	assert_true(home.began_unix_ns + second_ns > before_ns);
	assert_true(home.began_unix_ns < unix_now_ns() + second_ns);
	end_child(child);
	assert_true(home_read(child, &home) < 0);
}

static void the_directory_is_that_below_its_root(void **state)
{
	static struct home home;
	char inner[sizeof(folder) + sizeof("/inner")];
	pid_t child;

	(void)state;
	if (geteuid() != 0)
		skip();
	snprintf(inner, sizeof(inner), "%s/inner", folder);
	assert_int_equal(mkdir(inner, 0755), 0);
	child = child_in("/inner", folder);
	assert_int_equal(home_read(child, &home), 0);
	assert_string_equal(home.root, folder);
	assert_string_equal(home.directory, "/inner");
	end_child(child);
	child = child_in("/", folder);
	assert_int_equal(home_read(child, &home), 0);
	assert_string_equal(home.directory, "/");
	end_child(child);
	assert_int_equal(rmdir(inner), 0);
}

/*---- root_file ----*/

static void make_file(const char *name, mode_t mode)
{
	int fd = open(name, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, mode);

	assert_true(fd >= 0);
	assert_int_equal(fchmod(fd, mode), 0);
	assert_int_equal(write(fd, "text\n", 5), 5);
	close(fd);
}

static int read_file(const char *path, size_t size_max, struct root_file *ret_file)
{
	const struct root_file_wanted wanted = { .root = folder, .path = path, .size_max = size_max };
	struct errands *errands = errands_new();
	int error;

	assert_non_null(errands);
	error = root_file_read(errands, &wanted, ret_file);
	errands_free(errands);
	return error;
}

static void check_read(const char *path)
{
	struct root_file file;

	assert_int_equal(read_file(path, 5, &file), 0);
	assert_int_equal(file.length, 5);
	assert_string_equal(file.bytes, "text\n");
	assert_true(file.changed_unix_ns <= unix_now_ns() &&
		    file.changed_unix_ns + 60000000000 > unix_now_ns());
	free(file.bytes);
}

static void files_are_those_below_the_root(void **state)
{
	struct root_file file;

	(void)state;
	assert_int_equal(chdir(folder), 0);
	make_file("plain", 0644);
	make_file("secret", 0600);
	assert_int_equal(symlink("/plain", "link"), 0);
	assert_int_equal(symlink("/etc/hostname", "outside"), 0);
	assert_int_equal(mkfifo("fifo", 0644), 0);
	check_read("/plain");
	check_read("/link");
	check_read("/../../plain");
	assert_int_equal(read_file("/plain", 4, &file), -EFBIG);
	assert_int_equal(read_file("/outside", 4096, &file), -ENOENT);
	assert_int_equal(read_file("/none", 4096, &file), -ENOENT);
	assert_int_equal(read_file("/fifo", 4096, &file), -EINVAL);
	assert_int_equal(read_file("/", 4096, &file), -EINVAL);
	if (geteuid() == 0)
		assert_int_equal(read_file("/secret", 4096, &file), -EACCES);
	else
		check_read("/secret");
	for (size_t i = 0; i < 5; i++)
		unlink((const char *const[]){ "plain", "secret", "link", "outside", "fifo" }[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_has_a_directory_and_a_time),
		cmocka_unit_test(the_directory_is_that_below_its_root),
		cmocka_unit_test(files_are_those_below_the_root),
	};

	return cmocka_run_group_tests(tests, begin, end);
}

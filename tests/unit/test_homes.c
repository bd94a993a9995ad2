/* SPDX-License-Identifier: MIT */
/* Which directories a process has and when it began, by links and times that are made up. */
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/linux/files/home.h"
#include "src/linux/proc/process.h"
#include "tests/unit/instead_of.h"

INSTEAD_OF(process_read_outside);
INSTEAD_OF(readlink);
INSTEAD_OF(read);
INSTEAD_OF(clock_gettime);

/* What the kernel says of this very process. */
static struct {
	const char *root, *directory; /* NULL: they cannot be read */
	const char *boot;
	int process_error;
	uint64_t start_ticks;
	struct timespec now, since_boot;
} kernel;
static struct home home;

int __wrap_process_read_outside(pid_t pid, struct process *ret_process)
{
	*ret_process = (struct process){ .pid = pid, .start_ticks = kernel.start_ticks };
	return kernel.process_error;
}

ssize_t __wrap_readlink(const char *path, char *target, size_t room)
{
	const char *found = strcmp(strrchr(path, '/'), "/root") == 0 ? kernel.root : kernel.directory;

	/* The kernel adds no NUL. */
	memset(target, 'x', room);
	errno = EACCES;
	if (!found)
		return -1;
	assert_in_range(strlen(found), 0, room);
	memcpy(target, found, strlen(found));
	return (ssize_t)strlen(found);
}

ssize_t __wrap_read(int fd, void *bytes, size_t size)
{
	if (!kernel.boot)
		return __real_read(fd, bytes, size);
	assert_in_range(size, strlen(kernel.boot), HOME_BOOT_SIZE - 1);
	memset(bytes, 'x', size);
	memcpy(bytes, kernel.boot, strlen(kernel.boot));
	return (ssize_t)strlen(kernel.boot);
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_time)
{
	*ret_time = clock == CLOCK_BOOTTIME ? kernel.since_boot : kernel.now;
	return clock == CLOCK_BOOTTIME || clock == CLOCK_REALTIME ? 0 : __real_clock_gettime(clock, ret_time);
}

static int begin(void **state)
{
	(void)state;
	memset(&kernel, 0, sizeof(kernel));
	kernel.root = "/";
	kernel.directory = "/srv";
	kernel.boot = "01234567-89ab-cdef-0123-456789abcdef\n";
	return 0;
}

static void assert_home(const char *root, const char *directory)
{
	memset(&home, 'x', sizeof(home));
	assert_int_equal(home_read(getpid(), &home), 0);
	assert_int_equal(home.pid, getpid());
	assert_string_equal(home.root, root);
	assert_string_equal(home.directory, directory);
}

static void a_directory_is_told_below_its_root(void **state)
{
	static const struct {
		const char *root, *directory, *expected;
	} links[] = {
		{ "/", "/srv", "/srv" },
		{ "/", "/", "/" },
		{ "/tmp", "/tmp/a/b", "/a/b" },
		{ "/tmp", "/tmp", "/" },
		{ "/tmp", "/tmpa", "" },
		{ "/tmp", "/", "" },
		{ "/tmp", "/srv/tmp/a", "" },
		/* It is not reachable from the root of ljspy, or unknown. */
		{ "/", "(unreachable)/srv", "" },
		{ "/", NULL, "" },
		{ NULL, "/srv", "/srv" },
		{ NULL, NULL, "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		kernel.root = links[i].root;
		kernel.directory = links[i].directory;
		/* The root of this process is "/", whatever the link says. */
		assert_home(links[i].root && strcmp(links[i].root, "/") == 0 ? "/" : "", links[i].expected);
	}
}

/* One that has mounts of its own may have another directory under the same name. */
static void a_root_without_a_path_is_unknown(void **state)
{
	(void)state;
	assert_home("/", "/srv");
	kernel.root = "/no/such/directory";
	kernel.directory = "/no/such/directory/a";
	assert_home("", "/a");
}

static void the_longest_directory_is_whole(void **state)
{
	static char longest[PATH_MAX];

	(void)state;
	memset(longest, '/', PATH_MAX - 1);
	kernel.directory = longest;
	assert_home("/", longest);
}

static void a_process_begins_so_long_after_the_machine(void **state)
{
	const uint64_t second_ns = 1000000000;

	(void)state;
	kernel.now = (struct timespec){ 1700000000, 700000000 };
	kernel.since_boot = (struct timespec){ 1000, 200000000 };
	kernel.start_ticks = 500 * (uint64_t)sysconf(_SC_CLK_TCK) + 3;
	assert_home("/", "/srv");
	assert_int_equal(home.start_ticks, kernel.start_ticks);
	assert_true(home.began_unix_ns == (1700000000 - 1000 + 500) * second_ns + 500000000 +
						  3 * (second_ns / (uint64_t)sysconf(_SC_CLK_TCK)));
}

static void a_start_of_the_machine_has_an_id(void **state)
{
	char boot[HOME_BOOT_SIZE];

	(void)state;
	home_boot(boot);
	assert_string_equal(boot, "01234567-89ab-cdef-0123-456789abcdef");
	assert_home("/", "/srv");
	assert_string_equal(home.boot, boot);
	kernel.boot = "short";
	home_boot(boot);
	assert_string_equal(boot, "short");
	kernel.boot = "012345678901234567890123456789012345678"; /* as much as there is room for */
	home_boot(boot);
	assert_string_equal(boot, kernel.boot);
	kernel.boot = "";
	home_boot(boot);
	assert_string_equal(boot, "");
}

static void a_process_that_is_gone_has_no_home(void **state)
{
	(void)state;
	memset(&home, 'x', sizeof(home));
	kernel.process_error = -ESRCH;
	assert_int_equal(home_read(getpid(), &home), -ESRCH);
	assert_int_equal(home.root[0], 'x');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_directory_is_told_below_its_root, begin),
		cmocka_unit_test_setup(a_root_without_a_path_is_unknown, begin),
		cmocka_unit_test_setup(the_longest_directory_is_whole, begin),
		cmocka_unit_test_setup(a_process_begins_so_long_after_the_machine, begin),
		cmocka_unit_test_setup(a_start_of_the_machine_has_an_id, begin),
		cmocka_unit_test_setup(a_process_that_is_gone_has_no_home, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * Files below another root: how they are opened, who may read them, and what becomes of a reading that fails.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/linux/files/root_file.h"
#include "src/linux/proc/call_numbers.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/open_files.h"

INSTEAD_OF(malloc);
INSTEAD_OF(calloc);
INSTEAD_OF(realloc);
#include "tests/unit/failing_allocation.h"

INSTEAD_OF(syscall);
INSTEAD_OF(geteuid);
INSTEAD_OF(read);
INSTEAD_OF(open);
INSTEAD_OF(errands_run);

/*---- The kernel ----*/

static struct {
	int open_error; /* of openat2() */
	uid_t euid;
	int interruptions; /* of read() */
	int read_error;
	size_t read_max; /* at once */
	bool is_abandoned;
	const char *added; /* to the file while it is read; NULL: nothing */
	int reopen_error;  /* of the file that was found */
} kernel;

/* Relative to the descriptor, as far as the tests need it. */
long __wrap_syscall(long number, ...)
{
	const struct open_how *how;
	const char *path;
	va_list arguments;
	int directory;

	assert_int_equal(number, SYS_openat2);
	va_start(arguments, number);
	directory = va_arg(arguments, int);
	path = va_arg(arguments, const char *);
	how = va_arg(arguments, const struct open_how *);
	assert_int_equal(va_arg(arguments, size_t), sizeof(*how));
	va_end(arguments);
	assert_true(how->resolve & RESOLVE_IN_ROOT);
	errno = kernel.open_error;
	return kernel.open_error ? -1 : openat(directory, path + 1, (int)how->flags);
}

uid_t __wrap_geteuid(void)
{
	return kernel.euid;
}

int __wrap_open(const char *path, int flags, ...)
{
	va_list arguments;
	int mode;

	va_start(arguments, flags);
	mode = va_arg(arguments, int);
	va_end(arguments);
	errno = kernel.reopen_error;
	if (errno && strncmp(path, "/proc/self/fd/", strlen("/proc/self/fd/")) == 0)
		return -1;
	return __real_open(path, flags, mode);
}

static void add_to_file(void);

ssize_t __wrap_read(int fd, void *bytes, size_t size)
{
	if (kernel.added)
		add_to_file();
	errno = kernel.interruptions > 0 ? EINTR : kernel.read_error;
	if (kernel.interruptions > 0)
		kernel.interruptions--;
	return errno ? -1 : __real_read(fd, bytes, size < kernel.read_max ? size : kernel.read_max);
}

/* The work is done at once; what is abandoned is undone when it ends after all. */
bool __wrap_errands_run(struct errands *errands, errand_work *work, errand_work *undo, void *arguments,
			size_t size)
{
	void *copy = kernel.is_abandoned ? malloc(size) : NULL;

	(void)errands;
	if (!copy) {
		work(arguments);
		return true;
	}
	memcpy(copy, arguments, size);
	work(copy);
	undo(copy);
	free(copy);
	return false;
}

/*---- Files ----*/

static char root[] = "/tmp/test_root_file.XXXXXX";
static char file_path[sizeof(root) + 8];
static struct root_file file;

static void put_file(const char *text, mode_t mode)
{
	int fd;

	unlink(file_path); /* it may be one that cannot be written */
	fd = open(file_path, O_CREAT | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(fchmod(fd, mode), 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void add_to_file(void)
{
	int fd = open(file_path, O_WRONLY | O_APPEND | O_CLOEXEC);

	assert_int_equal(write(fd, kernel.added, strlen(kernel.added)), strlen(kernel.added));
	close(fd);
	kernel.added = NULL;
}

static int begin(void **state)
{
	(void)state;
	memset(&kernel, 0, sizeof(kernel));
	kernel.euid = 1;
	kernel.read_max = SIZE_MAX;
	memset(strrchr(root, '.') + 1, 'X', 6);
	assert_non_null(mkdtemp(root));
	snprintf(file_path, sizeof(file_path), "%s/file", root);
	put_file("0123456789", 0644);
	return 0;
}

static int end(void **state)
{
	(void)state;
	unlink(file_path);
	return rmdir(root);
}

static int read_below(const char *below, const char *path, size_t size_max)
{
	const struct root_file_wanted wanted = { .root = below, .path = path, .size_max = size_max };

	file = (struct root_file){ .length = 77 };
	return root_file_read(NULL, &wanted, &file);
}

/* It is read, and nothing is left open. */
static int read_it(void)
{
	const unsigned int files = open_files_count();
	const int error = read_below(root, "/file", 4096);

	assert_int_equal(open_files_count(), files);
	assert_int_equal(file.length == 77, error != 0);
	return error;
}

static void assert_text(const char *expected)
{
	assert_int_equal(read_it(), 0);
	assert_int_equal(file.length, strlen(expected));
	assert_string_equal(file.bytes, expected);
	free(file.bytes);
}

static void a_file_is_read_piece_by_piece(void **state)
{
	(void)state;
	assert_text("0123456789");
	kernel.read_max = 3;
	assert_text("0123456789");
	kernel.interruptions = 2;
	assert_text("0123456789");
	put_file("", 0644);
	assert_text("");
}

static void a_file_has_a_largest_size(void **state)
{
	(void)state;
	assert_int_equal(read_below(root, "/file", 10), 0);
	free(file.bytes);
	assert_int_equal(read_below(root, "/file", 9), -EFBIG);
	assert_int_equal(read_below(root, "/file", 0), -EFBIG);
	put_file("", 0644);
	assert_int_equal(read_below(root, "/file", 0), 0);
	free(file.bytes);
}

/* The time of its contents, or of its name and mode, which is that of this test. */
static void the_last_change_counts(void **state)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = 5000000000, .tv_nsec = 7 } };
	struct stat status;

	(void)state;
	assert_int_equal(utimensat(AT_FDCWD, file_path, times, 0), 0);
	assert_int_equal(stat(file_path, &status), 0);
	if (status.st_mtim.tv_sec == times[1].tv_sec) {
		assert_int_equal(read_it(), 0);
		assert_true(file.changed_unix_ns == UINT64_C(5000000000000000007));
		free(file.bytes);
	}
	for (time_t second = -1; second <= 1; second++) {
		times[1].tv_sec = second;
		assert_int_equal(utimensat(AT_FDCWD, file_path, times, 0), 0);
		assert_int_equal(stat(file_path, &status), 0);
		assert_int_equal(read_it(), 0);
		assert_true(file.changed_unix_ns ==
			    (uint64_t)status.st_ctim.tv_sec * 1000000000 + (uint64_t)status.st_ctim.tv_nsec);
		free(file.bytes);
	}
}

/* What a target names shall not bring secrets into a picture. */
static void the_superuser_gets_what_everybody_may_read(void **state)
{
	(void)state;
	kernel.euid = 0;
	assert_text("0123456789");
	put_file("secret", 0440);
	assert_int_equal(read_it(), -EACCES);
	put_file("secret", 0404);
	assert_text("secret");
	kernel.euid = 1;
	put_file("secret", 0440);
	assert_text("secret");
}

/* Without openat2(), paths lead out of any root but the own one. */
static void an_old_kernel_resolves_below_its_own_root_only(void **state)
{
	char above[2 * sizeof(root)];

	(void)state;
	kernel.open_error = ENOSYS;
	assert_int_equal(read_it(), -ENOSYS);
	assert_int_equal(read_below("/", file_path, 4096), 0);
	assert_string_equal(file.bytes, "0123456789");
	free(file.bytes);
	snprintf(above, sizeof(above), "%s/none", root);
	assert_int_equal(read_below("/", above, 4096), -ENOENT);
	kernel.open_error = ELOOP;
	assert_int_equal(read_it(), -ELOOP);
	assert_int_equal(read_below("/", file_path, 4096), -ELOOP);
}

/* There is room for what it held when it was found. */
static void a_file_that_grows_is_read_as_far_as_it_went(void **state)
{
	(void)state;
	kernel.added = "abcdefghijklmnopqrstuvwxyz";
	assert_text("0123456789");
	assert_text("0123456789abcdefghijklmnopqrstuvwxyz");
	kernel.added = "more";
	kernel.read_max = 7;
	assert_text("0123456789abcdefghijklmnopqrstuvwxyz");
}

static void a_reading_that_fails_says_why(void **state)
{
	(void)state;
	assert_int_equal(read_below("/no/such/root", "/file", 4096), -ENOENT);
	assert_int_equal(read_below(file_path, "/file", 4096), -ENOTDIR);
	assert_int_equal(read_below(root, "/none", 4096), -ENOENT);
	assert_int_equal(read_below(root, "/.", 4096), -EINVAL);
	kernel.read_error = EIO;
	assert_int_equal(read_it(), -EIO);
	kernel.read_error = 0;
	kernel.reopen_error = EACCES;
	assert_int_equal(read_it(), -EACCES);
	kernel.reopen_error = 0;
	for (size_t count = 0; count < 2; count++) {
		allocation_fails_after(count);
		assert_int_equal(read_it(), -ENOMEM);
		assert_true(allocation_failed());
	}
	kernel.is_abandoned = true;
	assert_int_equal(read_it(), -ETIMEDOUT);
	kernel.open_error = ENOENT;
	assert_int_equal(read_it(), -ETIMEDOUT);
}

static void names_have_a_largest_length(void **state)
{
	static char name[PATH_MAX + 1];

	(void)state;
	memset(name, '/', PATH_MAX);
	assert_int_equal(read_below(root, name, 4096), -ENAMETOOLONG);
	assert_int_equal(read_below(name, "/file", 4096), -ENAMETOOLONG);
	name[PATH_MAX - 1] = '\0';
	assert_int_equal(read_below(name, "/none", 4096), -ENOENT);
	memcpy(name, root, strlen(root));
	memcpy(name + PATH_MAX - 1 - strlen("file"), "file", strlen("file"));
	assert_int_equal(read_below("/", name, strlen("0123456789")), 0);
	assert_string_equal(file.bytes, "0123456789");
	free(file.bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_file_is_read_piece_by_piece, begin, end),
		cmocka_unit_test_setup_teardown(a_file_has_a_largest_size, begin, end),
		cmocka_unit_test_setup_teardown(the_last_change_counts, begin, end),
		cmocka_unit_test_setup_teardown(the_superuser_gets_what_everybody_may_read, begin, end),
		cmocka_unit_test_setup_teardown(an_old_kernel_resolves_below_its_own_root_only, begin, end),
		cmocka_unit_test_setup_teardown(a_file_that_grows_is_read_as_far_as_it_went, begin, end),
		cmocka_unit_test_setup_teardown(a_reading_that_fails_says_why, begin, end),
		cmocka_unit_test_setup_teardown(names_have_a_largest_length, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

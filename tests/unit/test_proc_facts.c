/* SPDX-License-Identifier: MIT */
/* Names of users, namespaces of process ids, and kinds of open files. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pwd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/linux/proc/pid_namespace.h"
#include "src/linux/proc/proc_file.h"
#include "src/linux/proc/target_file.h"
#include "src/linux/proc/user_name.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/open_files.h"

INSTEAD_OF(fopen);
INSTEAD_OF(readlink);
INSTEAD_OF(statfs);
INSTEAD_OF(statx);
INSTEAD_OF(read);

/*---- Users ----*/

static const char *passwd; /* NULL: there is no such file */

FILE *__wrap_fopen(const char *path, const char *mode)
{
	if (strcmp(path, "/etc/passwd") != 0)
		return __real_fopen(path, mode);
	return passwd ? fmemopen((void *)(uintptr_t)passwd, strlen(passwd), mode) : NULL;
}

static void assert_user(uid_t uid, const char *expected)
{
	char name[USER_NAME_SIZE];

	memset(name, 'x', sizeof(name));
	user_name(uid, name);
	assert_string_equal(name, expected);
}

static void a_user_has_a_name_or_else_a_number(void **state)
{
	(void)state;
	passwd = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n"
		 "again:x:65534:1::/:/bin/false\n";
	assert_user(0, "root");
	assert_user(65534, "nobody");
	assert_user(1, "1");
	assert_user(4294967294, "4294967294");
	passwd = "?\n";
	assert_user(0, "0");
	passwd = NULL;
	assert_user(0, "0");
}

static void a_long_name_is_cut(void **state)
{
	static char text[256];
	char expected[USER_NAME_SIZE];

	(void)state;
	memset(expected, 'n', sizeof(expected) - 1);
	expected[sizeof(expected) - 1] = '\0';
	snprintf(text, sizeof(text), "%snnnn:x:7:7::/:/bin/sh\n", expected);
	passwd = text;
	assert_user(7, expected);
}

/*---- Namespaces ----*/

static struct {
	const char *self, *namespace; /* what the links lead to; NULL: they cannot be read */
} links;

ssize_t __wrap_readlink(const char *path, char *target, size_t room)
{
	const char *found = strcmp(path, "/proc/self") == 0 ? links.self : links.namespace;

	assert_true(found == links.self || strcmp(path, "/proc/self/ns/pid") == 0);
	if (!found) {
		errno = ENOENT;
		return -1;
	}
	/* Without a NUL, and what is behind it is not a number's end. */
	memset(target, '7', room);
	assert_in_range(strlen(found), 1, room);
	memcpy(target, found, strlen(found));
	return (ssize_t)strlen(found);
}

static void proc_is_that_of_the_namespace_if_it_tells_the_own_number(void **state)
{
	char number[16];

	(void)state;
	snprintf(number, sizeof(number), "%d", (int)getpid());
	links.self = number;
	assert_true(pid_namespace_is_that_of_proc());
	snprintf(number, sizeof(number), "%d", (int)getpid() + 1);
	assert_false(pid_namespace_is_that_of_proc());
	links.self = NULL;
	assert_false(pid_namespace_is_that_of_proc());
}

static long type_of_proc; /* 0: /proc cannot be asked */

int __wrap_statfs(const char *path, struct statfs *ret_status)
{
	assert_string_equal(path, "/proc");
	ret_status->f_type = type_of_proc ? type_of_proc : PROC_SUPER_MAGIC;
	return type_of_proc ? 0 : -1;
}

static void proc_is_mounted_where_its_file_system_is(void **state)
{
	(void)state;
	type_of_proc = PROC_SUPER_MAGIC;
	assert_true(pid_namespace_has_proc());
	type_of_proc = TMPFS_MAGIC;
	assert_false(pid_namespace_has_proc());
	type_of_proc = 0;
	assert_false(pid_namespace_has_proc());
}

/* Linux gives its first pid namespace this number. */
static void the_first_namespace_is_known_by_its_number(void **state)
{
	(void)state;
	links.namespace = "pid:[4026531836]";
	assert_true(pid_namespace_is_first());
	links.namespace = "pid:[4026531837]";
	assert_false(pid_namespace_is_first());
	links.namespace = "pid:[402653183]";
	assert_false(pid_namespace_is_first());
	links.namespace = NULL;
	assert_false(pid_namespace_is_first());
}

/*---- Files ----*/

/* The filesystem is not asked, as it may not answer. */
int __wrap_statx(int directory, const char *restrict path, int flags, unsigned int mask,
		 struct statx *restrict ret_status)
{
	assert_true(flags & AT_STATX_DONT_SYNC);
	assert_false(mask & ~(unsigned int)(STATX_TYPE | STATX_MODE));
	return __real_statx(directory, path, flags, mask, ret_status);
}

static void the_kind_of_an_open_file_is_told(void **state)
{
	struct statx status;
	int pipe_ends[2], device;

	(void)state;
	assert_int_equal(pipe(pipe_ends), 0);
	device = open("/dev/null", O_RDWR | O_CLOEXEC);
	assert_true(device >= 0);
	assert_true(target_file_status(getpid(), (uint64_t)pipe_ends[0], &status));
	assert_true(S_ISFIFO(status.stx_mode));
	assert_true(target_file_status(getpid(), (uint64_t)device, &status));
	assert_true(S_ISCHR(status.stx_mode));
	assert_int_equal(makedev(status.stx_rdev_major, status.stx_rdev_minor), makedev(1, 3));
	/* The kernel takes the lower half of a register for the number of a file. */
	assert_true(target_file_status(getpid(), UINT64_C(1) << 32 | (uint64_t)device, &status));
	close(device);
	close(pipe_ends[0]);
	close(pipe_ends[1]);
	assert_false(target_file_status(getpid(), (uint64_t)device, &status));
	assert_false(target_file_status(getpid(), UINT64_MAX, &status));
}

/*---- Files of /proc ----*/

static void a_file_of_a_process_that_is_gone_is_no_file(void **state)
{
	enum { NO_PROCESS = 0x7ffffff0 };
	int fd = proc_file_open(getpid(), "stat");
	uint64_t number = 1;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	close(fd);
	assert_int_equal(proc_file_open(NO_PROCESS, "stat"), -ESRCH);
	assert_int_equal(proc_file_open(getpid(), "stat/more"), -ENOTDIR);
	assert_false(proc_file_number(NO_PROCESS, "status", "Pid:", 10, &number));
	assert_false(proc_file_number(getpid(), "status", "\nNothing:", 10, &number));
	/* A directory can be opened but not read. */
	assert_false(proc_file_number(getpid(), "task", "", 10, &number) && number != 0);
	assert_true(proc_file_number(getpid(), "status", "\nPid:", 10, &number));
	assert_int_equal(number, getpid());
}

/* So many bytes come at a time, and so many reads are interrupted first; 0: as there are. */
static size_t piece;
static unsigned int interrupts;
static int read_error;

ssize_t __wrap_read(int fd, void *bytes, size_t size)
{
	if (read_error) {
		errno = read_error;
		return -1;
	}
	if (interrupts) {
		interrupts--;
		errno = EINTR;
		return -1;
	}
	return __real_read(fd, bytes, piece && piece < size ? piece : size);
}

static int file_of(const char *text)
{
	int fd = memfd_create("text", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, text, strlen(text), 0), strlen(text));
	return fd;
}

static void a_file_may_come_in_pieces(void **state)
{
	const int fd = file_of("abcdefghij");

	(void)state;
	for (piece = 1; piece < 12; piece++) {
		char bytes[12] = "";

		assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
		interrupts = 3;
		assert_int_equal(proc_file_fill(fd, bytes, 7), 7);
		assert_string_equal(bytes, "abcdefg");
		assert_int_equal(proc_file_fill(fd, bytes, 7), 3);
		assert_memory_equal(bytes, "hijdefg", 7);
	}
	piece = 0;
	close(fd);
}

/* The number behind a label in this text, or 77 without one. */
static uint64_t number_in(const char *text, const char *label, int base)
{
	const unsigned int files = open_files_count();
	char name[32];
	uint64_t number = 77;
	int fd = file_of(text);
	bool found;

	snprintf(name, sizeof(name), "fd/%d", fd);
	found = proc_file_number(getpid(), name, label, base, &number);
	assert_int_equal(found, number != 77);
	close(fd);
	assert_int_equal(open_files_count(), files);
	return number;
}

static void a_number_is_behind_the_first_of_its_labels(void **state)
{
	enum { FIRST_BYTES = 4095 };
	static char text[FIRST_BYTES + 64];

	(void)state;
	assert_int_equal(number_in("a: 1\nb:\t20\nb: 3\n", "b:", 10), 20);
	assert_int_equal(number_in("flags:\t0100002\n", "flags:", 8), 0100002);
	assert_int_equal(number_in("Sig: ffffffffffffffff\n", "Sig:", 16), UINT64_MAX);
	assert_int_equal(number_in("a: 1", "b:", 10), 77);
	assert_int_equal(number_in("", "b:", 10), 77);
	/* At the end of the first 4 KiB, but not behind them. */
	for (size_t at = FIRST_BYTES - 4; at <= FIRST_BYTES; at++) {
		memset(text, ' ', sizeof(text) - 1);
		memcpy(text + at, "b:34", 4);
		assert_int_equal(number_in(text, "b:", 10), at == FIRST_BYTES - 4   ? 34
							    : at == FIRST_BYTES - 3 ? 3
							    : at == FIRST_BYTES - 2 ? 0
										    : 77);
	}
	read_error = EIO;
	assert_int_equal(number_in("b: 1", "b:", 10), 77);
	read_error = 0;
}

static void a_file_is_read_until_the_room_is_full_or_it_ends(void **state)
{
	char bytes[8] = "";
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], "abcdefghij", 10), 10);
	assert_int_equal(proc_file_fill(ends[0], bytes, 4), 4);
	assert_memory_equal(bytes, "abcd\0\0\0", 8);
	assert_int_equal(proc_file_fill(ends[0], bytes, 0), 0);
	close(ends[1]);
	assert_int_equal(proc_file_fill(ends[0], bytes, 8), 6);
	assert_memory_equal(bytes, "efghij", 6);
	assert_int_equal(proc_file_fill(ends[0], bytes, 8), 0);
	interrupts = 1; /* the end is none, though one came before */
	assert_int_equal(proc_file_fill(ends[0], bytes, 8), 0);
	close(ends[0]);
	assert_int_equal(proc_file_fill(ends[0], bytes, 8), -EBADF);
}

static void the_state_is_behind_a_name_of_any_letters(void **state)
{
	char usual[] = "1 (a) b) c) S 2", cut[] = "1 (a)", odd[] = "1 (a)S 2", none[] = "";

	(void)state;
	assert_string_equal(proc_file_stat_fields(usual), "S 2");
	assert_null(proc_file_stat_fields(cut));
	assert_null(proc_file_stat_fields(odd));
	assert_null(proc_file_stat_fields(none));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_user_has_a_name_or_else_a_number),
		cmocka_unit_test(a_long_name_is_cut),
		cmocka_unit_test(proc_is_that_of_the_namespace_if_it_tells_the_own_number),
		cmocka_unit_test(proc_is_mounted_where_its_file_system_is),
		cmocka_unit_test(the_first_namespace_is_known_by_its_number),
		cmocka_unit_test(the_kind_of_an_open_file_is_told),
		cmocka_unit_test(a_file_of_a_process_that_is_gone_is_no_file),
		cmocka_unit_test(a_file_may_come_in_pieces),
		cmocka_unit_test(a_number_is_behind_the_first_of_its_labels),
		cmocka_unit_test(a_file_is_read_until_the_room_is_full_or_it_ends),
		cmocka_unit_test(the_state_is_behind_a_name_of_any_letters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* Closing files. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "memory/close_files.h"

enum { FIRST = 100, COUNT = 20 };

/* From now on, the kernel has no close_range(). */
static void refuse_close_range(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_close_range, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = sizeof(filter) / sizeof(filter[0]), .filter = filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		_exit(77);
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

/* In a process of its own: the test's own files stay open. The exit status is 0 if all is right. */
static int close_in_child(bool old_kernel)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		for (int fd = FIRST; fd < FIRST + COUNT; fd++)
			if (dup2(STDERR_FILENO, fd) != fd)
				_exit(2);
		if (old_kernel)
			refuse_close_range();
		errno = EXDEV;
		close_files(FIRST + 1, FIRST + COUNT - 2);
		if (errno != EXDEV || !is_open(FIRST) || !is_open(FIRST + COUNT - 1))
			_exit(3);
		for (int fd = FIRST + 1; fd < FIRST + COUNT - 1; fd++)
			if (is_open(fd))
				_exit(4);
		close_files(3, 2);
		close_files(FIRST, UINT_MAX);
		_exit(is_open(FIRST) || is_open(FIRST + COUNT - 1) || !is_open(STDERR_FILENO) ? 5 : 0);
	}
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void a_range_of_files_is_closed(void **state)
{
	(void)state;
	assert_int_equal(close_in_child(false), 0);
}

static void a_range_of_files_is_closed_on_old_kernels(void **state)
{
	int status = close_in_child(true);

	(void)state;
	if (status == 77)
		skip();
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_range_of_files_is_closed),
		cmocka_unit_test(a_range_of_files_is_closed_on_old_kernels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* Threads that no signal wakes, such as one whose child has its memory until it ends. */
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "memory/errand.h"
#include "src/apart/blocked.h"
#include "src/linux/proc/proc_text.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/target_process.h"

enum { STACK_SIZE = 1 << 16 };

static const uint64_t second = 1000000000;
static pid_t read_pid;

static _Alignas(16) char stack[STACK_SIZE];
static const char *name;
static _Atomic pid_t child, parent;
static pthread_t waiting;

/* The call that the thread waits in, as the kernel tells; "": as it is. */
static char made_up_call[256];

INSTEAD_OF(proc_text_read);
ssize_t __wrap_proc_text_read(pid_t tid, const char *file, char *text, size_t room)
{
	if (!*made_up_call || strcmp(file, "syscall") != 0)
		return __real_proc_text_read(tid, file, text, room);
	return snprintf(text, room, "%s", made_up_call);
}

static int sleep_on(void *unused)
{
	(void)unused;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	child = getpid();
	while (pause())
		;
	return 0;
}

static void *wait_for_child(void *unused)
{
	(void)unused;
	if (name)
		prctl(PR_SET_NAME, name);
	parent = gettid();
	waitpid(clone(sleep_on, stack + STACK_SIZE, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL), NULL, 0);
	return NULL;
}

static void begin_waiting(const char *as)
{
	name = as;
	child = 0;
	assert_int_equal(pthread_create(&waiting, NULL, wait_for_child, NULL), 0);
	while (!child)
		sched_yield();
	/* The child may tell so before its parent waits. */
	target_process_await(getpid(), parent, "D");
}

static void end_waiting(void)
{
	kill(child, SIGKILL);
	child = 0;
	assert_int_equal(pthread_join(waiting, NULL), 0);
}

/* Also after a test that failed. */
static int leave_none(void **state)
{
	(void)state;
	*made_up_call = '\0';
	if (child)
		end_waiting();
	return 0;
}

/* What does a look say, after one each half second since the last one? */
static bool looks(struct blocked *blocked, uint64_t at_ns)
{
	read_pid = -1;
	for (uint64_t now = blocked->looked_ns + second / 2; blocked->looked_ns && now < at_ns;
	     now += second / 2)
		blocked_for_long(blocked, false, now, &read_pid);
	return blocked_for_long(blocked, false, at_ns, &read_pid);
}

static void a_thread_that_waits_for_seconds_is_blocked(void **state)
{
	struct blocked blocked = { 0 };

	(void)state;
	begin_waiting(NULL);
	assert_false(looks(&blocked, 100 * second));
	assert_int_equal(blocked.count, 1);
	assert_false(looks(&blocked, 101 * second));
	assert_true(looks(&blocked, 102 * second));
	assert_int_equal(read_pid, 0); /* it does not read memory */
	/* It does not look all the time. */
	assert_false(looks(&blocked, 102 * second + 1));
	assert_true(looks(&blocked, 103 * second));
	end_waiting();
	assert_false(looks(&blocked, 104 * second));
	assert_int_equal(blocked.count, 0);
}

static pid_t read_in_text(const char *call)
{
	struct blocked blocked = { 0 };

	snprintf(made_up_call, sizeof(made_up_call), "%s", call);
	assert_false(looks(&blocked, 100 * second));
	assert_true(looks(&blocked, 102 * second));
	return read_pid;
}

static pid_t read_in(int64_t call, uint64_t first_argument, uint64_t second_argument)
{
	char text[sizeof(made_up_call)];

	snprintf(text, sizeof(text),
		 "%" PRId64 " 0x%" PRIx64 " 0x%" PRIx64 " 0x0 0x0 0x0 0x0 0x7ffd0 0x7f0a\n", call,
		 first_argument, second_argument);
	return read_in_text(text);
}

/* So that who reads several can do without that one. */
static void the_process_that_it_reads_is_named(void **state)
{
	char path[64];
	int file, other;

	(void)state;
	begin_waiting(NULL);
	snprintf(path, sizeof(path), "/proc/%d/status", (int)child);
	file = open(path, O_RDONLY | O_CLOEXEC);
	other = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_int_equal(read_in(SYS_process_vm_readv, (uint64_t)child, 0), child);
	assert_int_equal(read_in(SYS_process_vm_readv, (uint64_t)parent, 0), getpid());
	assert_int_equal(read_in(SYS_read, (uint64_t)file, 0), child);
	assert_int_equal(read_in(SYS_pread64, (uint64_t)file, 0), child);
	assert_int_equal(read_in(SYS_openat, (uint64_t)AT_FDCWD, (uintptr_t)path), child);
	assert_int_equal(read_in(SYS_readlinkat, (uint64_t)AT_FDCWD, (uintptr_t)path), child);
	/* Not known. */
	assert_int_equal(read_in(SYS_read, (uint64_t)other, 0), 0);
	assert_int_equal(read_in(SYS_read, INT32_MAX, 0), 0);
	assert_int_equal(read_in(SYS_openat, (uint64_t)AT_FDCWD, 8), 0);
	assert_int_equal(read_in(SYS_openat, (uint64_t)AT_FDCWD, (uintptr_t) "/dev/null"), 0);
	assert_int_equal(read_in(SYS_process_vm_readv, 0, 0), 0);
	assert_int_equal(read_in(SYS_close, (uint64_t)file, 0), 0);
	assert_int_equal(read_in_text("running\n"), 0);
	close(file);
	close(other);
	end_waiting();
}

static void one_that_ran_in_between_is_not(void **state)
{
	struct blocked blocked = { 0 };

	(void)state;
	begin_waiting(NULL);
	assert_false(looks(&blocked, 100 * second));
	blocked.threads[0].switches--;
	assert_false(looks(&blocked, 102 * second));
	assert_true(looks(&blocked, 103 * second));
	end_waiting();
}

/* As on a machine that was paused. */
static void what_lies_between_two_looks_is_not_known(void **state)
{
	struct blocked blocked = { 0 };

	(void)state;
	begin_waiting(NULL);
	assert_false(blocked_for_long(&blocked, false, 100 * second, &read_pid));
	assert_false(blocked_for_long(&blocked, false, 110 * second, &read_pid));
	assert_false(looks(&blocked, 111 * second));
	assert_true(looks(&blocked, 112 * second));
	end_waiting();
}

/* Where something goes on, it looks four times a second, whether a thread waits or not. */
static void it_looks_often(void **state)
{
	struct blocked blocked = { 0 };

	(void)state;
	assert_false(blocked_for_long(&blocked, false, 100 * second, &read_pid));
	begin_waiting(NULL);
	assert_false(blocked_for_long(&blocked, false, 100 * second + second / 4 - 1, &read_pid));
	assert_int_equal(blocked.count, 0);
	assert_false(blocked_for_long(&blocked, false, 100 * second + second / 4, &read_pid));
	assert_int_equal(blocked.count, 1);
	end_waiting();
}

/* Where nothing goes on, it looks once a second, until a thread waits. */
static void at_rest_it_looks_rarely(void **state)
{
	struct blocked blocked = { 0 };

	(void)state;
	assert_false(blocked_for_long(&blocked, true, 100 * second, &read_pid));
	begin_waiting(NULL);
	assert_false(blocked_for_long(&blocked, true, 101 * second - 1, &read_pid));
	assert_int_equal(blocked.count, 0);
	assert_false(blocked_for_long(&blocked, true, 101 * second, &read_pid));
	assert_int_equal(blocked.count, 1);
	for (uint64_t quarter = 1; quarter < 8; quarter++)
		assert_false(
			blocked_for_long(&blocked, true, 101 * second + quarter * second / 4, &read_pid));
	assert_true(blocked_for_long(&blocked, true, 103 * second, &read_pid));
	end_waiting();
}

static void errands_may_wait_so(void **state)
{
	struct blocked blocked = { 0 };

	(void)state;
	begin_waiting(ERRAND_THREAD_NAME);
	assert_false(looks(&blocked, 100 * second));
	assert_false(looks(&blocked, 103 * second));
	assert_int_equal(blocked.count, 0);
	end_waiting();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_thread_that_waits_for_seconds_is_blocked, leave_none),
		cmocka_unit_test_teardown(the_process_that_it_reads_is_named, leave_none),
		cmocka_unit_test_teardown(one_that_ran_in_between_is_not, leave_none),
		cmocka_unit_test_teardown(what_lies_between_two_looks_is_not_known, leave_none),
		cmocka_unit_test_teardown(it_looks_often, leave_none),
		cmocka_unit_test_teardown(at_rest_it_looks_rarely, leave_none),
		cmocka_unit_test_teardown(errands_may_wait_so, leave_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

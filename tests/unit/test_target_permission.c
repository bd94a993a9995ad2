/* SPDX-License-Identifier: MIT */
/* Why a process may not be traced. */
#include <errno.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/linux/proc/permission.h"
#include "tests/unit/target_process.h"

enum { NOBODY = 65534, SOMEBODY = 1234 };

static bool drop_capability(int capability)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &header, data))
		return false;
	data[capability / 32].effective &= ~(1u << capability % 32);
	data[capability / 32].permitted &= ~(1u << capability % 32);
	return syscall(SYS_capset, &header, data) == 0;
}

static bool has_ptrace_capability(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	return syscall(SYS_capget, &header, data) == 0 && data[0].effective & (1u << CAP_SYS_PTRACE);
}

static bool forbid_ptrace(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ptrace, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* Who ljspy is, in a process of its own. */
struct role {
	uid_t user;              /* 0: as the test */
	bool without_capability; /* CAP_SYS_PTRACE */
	bool filtered;
};

static bool play(const struct role *role)
{
	return (!role->user || (setresgid(role->user, role->user, role->user) == 0 &&
				setresuid(role->user, role->user, role->user) == 0)) &&
	       (!role->without_capability || drop_capability(CAP_SYS_PTRACE)) &&
	       (!role->filtered || forbid_ptrace());
}

/* In that role, tracing the process fails and this is said to be why. */
static struct permission_verdict diagnose_as(const struct role *role, pid_t pid)
{
	struct permission_verdict verdict;
	int fds[2], status;
	pid_t ljspy;

	assert_int_equal(pipe(fds), 0);
	ljspy = fork();
	if (ljspy == 0) {
		if (!play(role) || ptrace(PTRACE_SEIZE, pid, NULL, NULL) == 0)
			_exit(1);
		permission_diagnose(pid, errno, &verdict);
		_exit(write(fds[1], &verdict, sizeof(verdict)) != sizeof(verdict));
	}
	waitpid(ljspy, &status, 0);
	assert_int_equal(status, 0);
	assert_int_equal(read(fds[0], &verdict, sizeof(verdict)), sizeof(verdict));
	close(fds[0]);
	close(fds[1]);
	print_message("%s\n    %s\n", verdict.sentence, verdict.remedy);
	return verdict;
}

static struct permission_verdict diagnose(pid_t pid)
{
	return diagnose_as(&(struct role){ .user = 0 }, pid);
}

static void needs_root(void)
{
	if (geteuid() == 0 && has_ptrace_capability())
		return;
	print_message("skipped: only root can play other users\n");
	skip();
}

static void the_process_itself_is_the_reason(void **state)
{
	struct permission_verdict verdict;
	pid_t child = fork();

	(void)state;
	if (child == 0)
		_exit(0);
	target_process_await(child, child, "Z");
	verdict = diagnose(child);
	assert_int_equal(verdict.reason, PERMISSION_ZOMBIE);
	waitpid(child, NULL, 0);
	verdict = diagnose(child);
	assert_int_equal(verdict.reason, PERMISSION_NO_SUCH_PROCESS);
	permission_diagnose(getpid(), EPERM, &verdict);
	assert_int_equal(verdict.reason, PERMISSION_SELF);
	if (target_process_state(2, 2) && getppid() != 2) {
		verdict = diagnose(2);
		assert_int_equal(verdict.reason, PERMISSION_KERNEL_THREAD);
	}
}

static void *trace(void *pid)
{
	if (ptrace(PTRACE_SEIZE, *(pid_t *)pid, NULL, NULL))
		_exit(1);
	for (;;)
		pause();
	return NULL;
}

/* By the process, though it is a thread of it that traces. */
static void another_tracer_is_named(void **state)
{
	pid_t child = target_process_sleeper("sleeper", 0, true), tracer = fork();
	struct permission_verdict verdict;
	struct process process;
	char expected[64];
	pthread_t thread;

	(void)state;
	if (tracer == 0) {
		prctl(PR_SET_NAME, "gdb) x");
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (pthread_create(&thread, NULL, trace, &child))
			_exit(1);
		for (;;)
			pause();
	}
	do {
		assert_int_equal(process_read(child, &process), 0);
		process_clear(&process);
	} while (process.tracer_pid == 0);
	verdict = diagnose(child);
	assert_int_equal(verdict.reason, PERMISSION_OTHER_TRACER);
	snprintf(expected, sizeof(expected), "process %d (gdb) x)", (int)tracer);
	assert_non_null(strstr(verdict.sentence, expected));
	target_process_end_sleeper(tracer);
	target_process_end_sleeper(child);
}

static void another_user_is_named(void **state)
{
	const struct role nobody = { .user = NOBODY };
	struct permission_verdict verdict;
	pid_t child;

	(void)state;
	needs_root();
	child = target_process_sleeper("sleeper", 0, true);
	verdict = diagnose_as(&nobody, child);
	assert_int_equal(verdict.reason, PERMISSION_OTHER_USER);
	assert_non_null(strstr(verdict.sentence, "user root"));
	assert_non_null(strstr(verdict.remedy, "sudo"));
	target_process_end_sleeper(child);
}

static void missing_capability_is_named(void **state)
{
	const struct role container = { .without_capability = true };
	struct permission_verdict verdict;
	pid_t child;

	(void)state;
	needs_root();
	child = target_process_sleeper("sleeper", SOMEBODY, true);
	verdict = diagnose_as(&container, child);
	assert_int_equal(verdict.reason, PERMISSION_MISSING_CAPABILITY);
	assert_non_null(strstr(verdict.remedy, "SYS_PTRACE"));
	target_process_end_sleeper(child);

	child = target_process_sleeper("sleeper", 0, true); /* root as well, but with all capabilities */
	verdict = diagnose_as(&container, child);
	assert_int_equal(verdict.reason, PERMISSION_MISSING_CAPABILITY);
	target_process_end_sleeper(child);
}

static void undumpable_process_is_told(void **state)
{
	const struct role same_user = { .user = SOMEBODY };
	struct permission_verdict verdict;
	pid_t child;

	(void)state;
	needs_root();
	child = target_process_sleeper("sleeper", SOMEBODY, false);
	verdict = diagnose_as(&same_user, child);
	assert_int_equal(verdict.reason, PERMISSION_NOT_DUMPABLE);
	target_process_end_sleeper(child);
}

static void filter_on_ljspy_is_told(void **state)
{
	const struct role filtered = { .filtered = true };
	pid_t child = target_process_sleeper("sleeper", 0, true);
	struct permission_verdict verdict = diagnose_as(&filtered, child);

	(void)state;
	assert_int_equal(verdict.reason, PERMISSION_SECCOMP);
	target_process_end_sleeper(child);
}

static void what_the_kernel_lacks_or_limits_is_told(void **state)
{
	pid_t child = target_process_sleeper("sleeper", 0, true);
	struct permission_verdict verdict;

	(void)state;
	permission_diagnose(child, EIO, &verdict);
	assert_int_equal(verdict.reason, PERMISSION_NO_SEIZE);
	assert_non_null(strstr(verdict.remedy, "--allow-attach"));
	permission_diagnose(child, EMFILE, &verdict);
	assert_int_equal(verdict.reason, PERMISSION_TOO_FEW_FILES);
	assert_non_null(strstr(verdict.remedy, "ulimit -n"));
	permission_diagnose(child, ENFILE, &verdict);
	assert_int_equal(verdict.reason, PERMISSION_TOO_FEW_FILES);
	assert_non_null(strstr(verdict.remedy, "fs.file-max"));
	permission_diagnose(child, EAGAIN, &verdict);
	assert_int_equal(verdict.reason, PERMISSION_TOO_FEW_PROCESSES);
	assert_false(permission_diagnose_error(EPERM, &verdict));
	target_process_end_sleeper(child);
}

/* Nothing that ljspy knows of keeps root from it. */
static void what_else_refuses_is_named_by_its_error(void **state)
{
	pid_t child;
	struct permission_verdict verdict;

	(void)state;
	needs_root();
	child = target_process_sleeper("sleeper", 0, true);
	permission_diagnose(child, EPERM, &verdict);
	assert_int_equal(verdict.reason, PERMISSION_UNKNOWN);
	assert_non_null(strstr(verdict.sentence, "Operation not permitted"));
	assert_non_null(strstr(verdict.remedy, "security module"));
	permission_diagnose(child, EINVAL, &verdict);
	assert_int_equal(verdict.reason, PERMISSION_UNKNOWN);
	assert_string_equal(verdict.remedy, "");
	permission_diagnose(child, ESRCH, &verdict);
	assert_int_equal(verdict.reason, PERMISSION_NO_SUCH_PROCESS);
	target_process_end_sleeper(child);
}

/* What root without CAP_SYS_PTRACE can do: 0 if it seizes the process, or which step failed. */
static int seize_as_owner(pid_t pid)
{
	struct process process;

	if (!drop_capability(CAP_SYS_PTRACE) || process_read(pid, &process))
		return 1;
	if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) == 0)
		return 2;
	if (permission_take_target_identity(&process))
		return 3;
	if (getuid() != SOMEBODY || getgid() != SOMEBODY || geteuid() != SOMEBODY || getgroups(0, NULL) != 1)
		return 4;
	if (ptrace(PTRACE_SEIZE, pid, NULL, NULL))
		return 5;
	if (permission_take_target_identity(&process) != -EALREADY)
		return 6;
	return setresuid(0, 0, 0) == 0 ? 7 : 0;
}

static void root_without_capability_takes_the_identity_of_the_target(void **state)
{
	pid_t child, ljspy;
	int status;

	(void)state;
	needs_root();
	child = target_process_sleeper("sleeper", SOMEBODY, true);
	ljspy = fork();
	if (ljspy == 0)
		_exit(seize_as_owner(child));
	waitpid(ljspy, &status, 0);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	target_process_end_sleeper(child);
}

static void identity_stays_where_nothing_is_to_be_gained(void **state)
{
	struct process process;
	pid_t child = target_process_sleeper("sleeper", 0, true);

	(void)state;
	assert_int_equal(process_read(child, &process), 0);
	assert_int_equal(permission_take_target_identity(&process), -EALREADY);
	process_clear(&process);
	target_process_end_sleeper(child);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_process_itself_is_the_reason),
		cmocka_unit_test(another_tracer_is_named),
		cmocka_unit_test(another_user_is_named),
		cmocka_unit_test(missing_capability_is_named),
		cmocka_unit_test(undumpable_process_is_told),
		cmocka_unit_test(filter_on_ljspy_is_told),
		cmocka_unit_test(what_the_kernel_lacks_or_limits_is_told),
		cmocka_unit_test(what_else_refuses_is_named_by_its_error),
		cmocka_unit_test(root_without_capability_takes_the_identity_of_the_target),
		cmocka_unit_test(identity_stays_where_nothing_is_to_be_gained),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

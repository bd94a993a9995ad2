/* SPDX-License-Identifier: MIT */
/* Why a process may not be traced, as far as the kernel tells. What it tells is made up. */
#include <errno.h>
#include <limits.h>
#include <linux/capability.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/linux/proc/permission.h"
#include "src/linux/proc/pid_namespace.h"
#include "src/linux/proc/user_name.h"
#include "tests/unit/instead_of.h"

INSTEAD_OF(malloc);
INSTEAD_OF(calloc);
INSTEAD_OF(realloc);
#include "tests/unit/failing_allocation.h"

INSTEAD_OF(process_read);
INSTEAD_OF(process_parent);
INSTEAD_OF(process_of_thread);
INSTEAD_OF(process_if_thread);
INSTEAD_OF(process_thread_with_memory);
INSTEAD_OF(pid_namespace_is_that_of_proc);
INSTEAD_OF(pid_namespace_has_proc);
INSTEAD_OF(pid_namespace_is_first);
INSTEAD_OF(user_name);
INSTEAD_OF(getuid);
INSTEAD_OF(geteuid);
INSTEAD_OF(getgid);
INSTEAD_OF(getgroups);
INSTEAD_OF(kill);
INSTEAD_OF(ptrace);
INSTEAD_OF(syscall);
INSTEAD_OF(fopen);

enum {
	FIRST = 1,          /* it has files in /proc */
	PID = INT_MAX - 10, /* of no process, nor are these */
	TRACER_THREAD,
	HIDDEN_TRACER,
	TRACER,
	GUARD,
	FRONT,
	USER = 1234,
	GROUP = 5678,
};

/*---- The kernel ----*/

static struct process target, tracer;
static unsigned int target_reads;
static struct {
	int read_error; /* negative: of the target's files */
	bool tracer_is_gone;
	pid_t thread_with_memory, front;
	bool foreign_proc, no_proc, inner_namespace;
	uid_t uid, euid;
	gid_t gid;
	int kill_error;
	int ptrace_error;
	const char *yama; /* its file; NULL: none */
	uint64_t effective, permitted;
	bool capget_fails;
} kernel;

int __wrap_process_read(pid_t pid, struct process *ret_process)
{
	if (pid == TRACER) {
		*ret_process = tracer;
		return kernel.tracer_is_gone ? -ESRCH : 0;
	}
	if (pid == FRONT) {
		*ret_process = (struct process){ .pid = pid, .name = "ljspy" };
		return 0;
	}
	target_reads++;
	if (kernel.read_error)
		return kernel.read_error;
	*ret_process = target;
	ret_process->pid = pid;
	return 0;
}

pid_t __wrap_process_parent(pid_t pid)
{
	assert_int_equal(pid, GUARD);
	return kernel.front;
}

pid_t __wrap_process_of_thread(pid_t tid)
{
	if (tid == TRACER_THREAD)
		return TRACER;
	return tid == getpid() ? tid : 0;
}

pid_t __wrap_process_if_thread(pid_t id)
{
	return id == TRACER_THREAD ? TRACER : 0;
}

pid_t __wrap_process_thread_with_memory(pid_t pid)
{
	assert_int_equal(pid, PID);
	return kernel.thread_with_memory;
}

bool __wrap_pid_namespace_is_that_of_proc(void)
{
	return !kernel.foreign_proc;
}

bool __wrap_pid_namespace_has_proc(void)
{
	return !kernel.no_proc;
}

bool __wrap_pid_namespace_is_first(void)
{
	return !kernel.inner_namespace;
}

void __wrap_user_name(uid_t uid, char ret_name[static USER_NAME_SIZE])
{
	snprintf(ret_name, USER_NAME_SIZE, "the %u.", (unsigned int)uid);
}

uid_t __wrap_getuid(void)
{
	return kernel.uid;
}

uid_t __wrap_geteuid(void)
{
	return kernel.euid;
}

gid_t __wrap_getgid(void)
{
	return kernel.gid;
}

int __wrap_kill(pid_t pid, int number)
{
	assert_int_equal(pid, PID);
	assert_int_equal(number, 0);
	errno = kernel.kill_error;
	return kernel.kill_error ? -1 : 0;
}

long __wrap_ptrace(enum __ptrace_request request, ...)
{
	assert_int_equal(request, PTRACE_CONT);
	errno = kernel.ptrace_error;
	return -1;
}

FILE *__wrap_fopen(const char *path, const char *mode)
{
	assert_string_equal(path, "/proc/sys/kernel/yama/ptrace_scope");
	return kernel.yama ? fmemopen((void *)(uintptr_t)kernel.yama, strlen(kernel.yama), mode) : NULL;
}

/* Calls that change who the thread is, as a text; and the one that fails, from the left. */
static char calls[256];
static unsigned int failing_calls; /* by bit from the first call on */
static unsigned int call_count;
static int group_count;

static void note_call(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void note_call(const char *format, ...)
{
	const size_t length = strlen(calls);
	va_list arguments;

	va_start(arguments, format);
	assert_in_range(vsnprintf(calls + length, sizeof(calls) - length, format, arguments), 1,
			sizeof(calls) - length - 1);
	va_end(arguments);
}

int __wrap_getgroups(int size, gid_t *ret_groups)
{
	if (group_count < 0) {
		errno = EINVAL;
		return -1;
	}
	assert_true(size >= group_count);
	for (int i = 0; i < group_count; i++)
		ret_groups[i] = (gid_t)i + 20;
	return group_count;
}

static void take_capabilities(const struct __user_cap_header_struct *header,
			      struct __user_cap_data_struct *ret_data)
{
	assert_int_equal(header->version, _LINUX_CAPABILITY_VERSION_3);
	assert_int_equal(header->pid, 0);
	for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
		ret_data[i] = (struct __user_cap_data_struct){
			.effective = (uint32_t)(kernel.effective >> 32 * i),
			.permitted = (uint32_t)(kernel.permitted >> 32 * i),
		};
}

long __wrap_syscall(long number, ...)
{
	const size_t count = number == SYS_setresuid || number == SYS_setresgid ? 3 : 2;
	unsigned long words[3];
	va_list arguments;

	va_start(arguments, number);
	for (size_t i = 0; i < count; i++)
		words[i] = va_arg(arguments, unsigned long);
	va_end(arguments);
	errno = EPERM;
	if (number == SYS_capget) {
		if (!kernel.capget_fails)
			take_capabilities((void *)words[0], (void *)words[1]);
		return kernel.capget_fails ? -1 : 0;
	}
	if (number == SYS_setgroups) {
		note_call("groups");
		for (size_t i = 0; i < words[0]; i++)
			note_call(" %u", ((const gid_t *)words[1])[i]);
	} else {
		assert_true(number == SYS_setresuid || number == SYS_setresgid);
		note_call("%s", number == SYS_setresuid ? "user" : "group");
		for (size_t i = 0; i < 3; i++)
			note_call(" %u", (unsigned int)words[i]);
	}
	note_call("; ");
	return failing_calls >> call_count++ & 1 ? -1 : 0;
}

/*---- Verdicts ----*/

static const uint64_t ptrace_capability = UINT64_C(1) << CAP_SYS_PTRACE;

/* A user's process, and ljspy is that user's. Nothing is in the way. */
static int begin(void **state)
{
	(void)state;
	memset(&kernel, 0, sizeof(kernel));
	kernel.ptrace_error = ESRCH;
	kernel.uid = kernel.euid = USER;
	kernel.gid = GROUP;
	target = (struct process){ .name = "target",
				   .state = 'S',
				   .parent_pid = 7,
				   .uid = USER,
				   .euid = USER,
				   .suid = USER,
				   .gid = GROUP,
				   .egid = GROUP,
				   .sgid = GROUP };
	tracer = (struct process){ .pid = TRACER, .name = "gdb", .parent_pid = GUARD };
	memset(calls, 0, sizeof(calls));
	failing_calls = call_count = 0;
	group_count = 3;
	return 0;
}

static void become_root(void)
{
	kernel.uid = kernel.euid = 0;
	kernel.gid = 0;
}

static struct permission_verdict verdict;

static enum permission_reason reason_for(pid_t pid, int error)
{
	memset(&verdict, 'x', sizeof(verdict));
	permission_diagnose(pid, error, &verdict);
	return verdict.reason;
}

static enum permission_reason reason(void)
{
	return reason_for(PID, EPERM);
}

static void assert_says(const char *sentence, const char *remedy)
{
	if (!strstr(verdict.sentence, sentence))
		fail_msg("\"%s\" lacks \"%s\"", verdict.sentence, sentence);
	if (*remedy ? !strstr(verdict.remedy, remedy) : *verdict.remedy)
		fail_msg("\"%s\" lacks \"%s\"", verdict.remedy, remedy);
}

static void what_is_not_explained_is_named_by_its_error(void **state)
{
	(void)state;
	assert_int_equal(reason(), PERMISSION_UNKNOWN);
	assert_says("(target) may not be traced: Operation not permitted.", "security module");
	assert_int_equal(reason_for(PID, EACCES), PERMISSION_UNKNOWN);
	assert_says("Permission denied", "security module");
	assert_int_equal(reason_for(PID, EINVAL), PERMISSION_UNKNOWN);
	assert_says("Invalid argument", "");
	assert_int_equal(reason_for(PID, ESRCH), PERMISSION_NO_SUCH_PROCESS);
	assert_says("(target) has ended", "");
}

static void one_that_kept_ljspy_waiting_is_not_read_again(void **state)
{
	(void)state;
	target_reads = 0;
	assert_int_equal(reason_for(PID, ETIMEDOUT), PERMISSION_UNREADABLE);
	assert_says("waiting for memory of process", "Leave that process out");
	assert_int_equal(target_reads, 0);
}

static void a_process_may_be_of_a_kind_that_cannot_be_traced(void **state)
{
	(void)state;
	target.state = 'Z';
	assert_int_equal(reason(), PERMISSION_ZOMBIE);
	assert_says("(target) has ended; its parent, process 7", "");
	kernel.thread_with_memory = PID + 1;
	assert_int_equal(reason(), PERMISSION_UNKNOWN);
	target.state = 'S';
	target.is_32bit = true;
	assert_int_equal(reason(), PERMISSION_32BIT);
	target.kernel_thread = true;
	assert_int_equal(reason(), PERMISSION_KERNEL_THREAD);
	assert_int_equal(reason_for(getpid(), EPERM), PERMISSION_SELF);
}

static void a_tracer_is_named_as_the_user_knows_it(void **state)
{
	char expected[64];

	(void)state;
	target.tracer_pid = TRACER_THREAD;
	assert_int_equal(reason(), PERMISSION_OTHER_TRACER);
	snprintf(expected, sizeof(expected), "traced by process %d (gdb) already", TRACER);
	assert_says(expected, "one tracer only");
	/* The engine of another ljspy is known by its front. */
	strcpy(tracer.name, "ljspy-engine");
	kernel.front = FRONT;
	assert_int_equal(reason(), PERMISSION_OTHER_TRACER);
	snprintf(expected, sizeof(expected), "traced by process %d (ljspy) already", FRONT);
	assert_says(expected, "one tracer only");
}

static void a_tracer_that_has_ended_since_is_told(void **state)
{
	(void)state;
	assert_int_equal(reason_for(PID, EALREADY), PERMISSION_OTHER_TRACER);
	assert_says("was traced by another process when ljspy was about to", "Try again");
	kernel.read_error = -ESRCH;
	assert_int_equal(reason_for(PID, EALREADY), PERMISSION_OTHER_TRACER);
	assert_says("was traced by another process when ljspy was about to, and has ended.", "");
	kernel.read_error = 0;
	/* One that is hidden has no process as far as can be seen. */
	target.tracer_pid = HIDDEN_TRACER;
	assert_int_equal(reason_for(PID, EALREADY), PERMISSION_OTHER_TRACER);
	assert_says("is traced by a process that ljspy may not see", "End that first");
}

static void a_tracer_of_ljspy_has_what_ljspy_starts_as_well(void **state)
{
	(void)state;
	assert_true(permission_diagnose_launch("luajit", EALREADY, &verdict));
	assert_int_equal(verdict.reason, PERMISSION_OTHER_TRACER);
	assert_says("luajit was traced by another process when ljspy was about to.", "Try again");
	target.tracer_pid = HIDDEN_TRACER;
	assert_true(permission_diagnose_launch("luajit", EALREADY, &verdict));
	assert_says("luajit cannot be traced: a process that ljspy may not see traces ljspy",
		    "Start ljspy without that");
	target.tracer_pid = TRACER_THREAD;
	assert_true(permission_diagnose_launch("luajit", EALREADY, &verdict));
	assert_says("(gdb) traces ljspy, and what it starts.", "Start ljspy without that");
}

static void a_tracer_without_a_front_is_named_itself(void **state)
{
	char expected[64];

	(void)state;
	target.tracer_pid = TRACER_THREAD;
	strcpy(tracer.name, "ljspy-engine");
	snprintf(expected, sizeof(expected), "traced by process %d (ljspy-engine) already", TRACER);
	for (kernel.front = 0; kernel.front <= 1; kernel.front++) {
		assert_int_equal(reason(), PERMISSION_OTHER_TRACER);
		assert_says(expected, "one tracer only");
	}
	kernel.tracer_is_gone = true;
	assert_int_equal(reason(), PERMISSION_OTHER_TRACER);
	snprintf(expected, sizeof(expected), "traced by process %d already", TRACER);
	assert_says(expected, "one tracer only");
	/* Another pid namespace's, and ljspy itself. */
	target.tracer_pid = TRACER;
	assert_int_equal(reason(), PERMISSION_UNKNOWN);
	target.tracer_pid = getpid();
	assert_int_equal(reason(), PERMISSION_UNKNOWN);
}

static void what_the_kernel_refuses_to_all_is_told(void **state)
{
	(void)state;
	assert_int_equal(reason_for(PID, EIO), PERMISSION_NO_SEIZE);
	kernel.ptrace_error = EPERM;
	assert_int_equal(reason_for(PID, EIO), PERMISSION_NO_SEIZE);
	assert_says("(target) cannot be stopped", "--allow-attach");
	assert_int_equal(reason(), PERMISSION_SECCOMP);
	assert_says("(target) cannot be traced", "seccomp");
}

/* All three users and groups have to be ljspy's. */
static void a_process_of_another_user_is_told(void **state)
{
	const size_t places[] = { offsetof(struct process, uid),  offsetof(struct process, euid),
				  offsetof(struct process, suid), offsetof(struct process, gid),
				  offsetof(struct process, egid), offsetof(struct process, sgid) };

	(void)state;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		uid_t *id = (uid_t *)(void *)((char *)&target + places[i]);

		++*id;
		assert_int_equal(reason(), PERMISSION_OTHER_USER);
		assert_says(i == 1 ? "belongs to user the 1235., not to you" : "user the 1234.",
			    "sudo ljspy ... -p 2147483637");
		kernel.effective = ptrace_capability;
		assert_int_equal(reason(), PERMISSION_UNKNOWN);
		kernel.effective = 0;
		--*id;
	}
	become_root();
	assert_int_equal(reason(), PERMISSION_MISSING_CAPABILITY);
	assert_says("belongs to user the 1234., and ljspy is root", "docker run --cap-add=SYS_PTRACE");
	/* All others, but not this one; or they cannot be told. */
	kernel.effective = ~ptrace_capability;
	assert_int_equal(reason(), PERMISSION_MISSING_CAPABILITY);
	kernel.effective = UINT64_MAX;
	assert_int_equal(reason(), PERMISSION_UNKNOWN);
	kernel.capget_fails = true;
	assert_int_equal(reason(), PERMISSION_MISSING_CAPABILITY);
}

static void yama_has_a_scope(void **state)
{
	static const struct {
		const char *text, *sentence, *remedy;
		bool is_reason, is_reason_for_root;
	} scopes[] = {
		{ "0\n", "", "", false, false },
		{ "1\n", "ptrace_scope is 1: only a program's own ancestors", "record -- COMMAND", true,
		  false },
		{ "2\n", "ptrace_scope is 2: only root", "sysctl kernel.yama.ptrace_scope=0", true, false },
		{ "3\n", "ptrace_scope is 3: nobody", "before the next boot", true, true },
		{ "4\n", "", "", false, false },
		{ "-1\n", "", "", false, false },
		{ "?\n", "", "", false, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(scopes) / sizeof(scopes[0]); i++) {
		kernel.yama = scopes[i].text;
		kernel.effective = 0;
		assert_int_equal(reason(), scopes[i].is_reason ? PERMISSION_YAMA : PERMISSION_UNKNOWN);
		if (scopes[i].is_reason)
			assert_says(scopes[i].sentence, scopes[i].remedy);
		kernel.effective = ptrace_capability;
		assert_int_equal(reason(),
				 scopes[i].is_reason_for_root ? PERMISSION_YAMA : PERMISSION_UNKNOWN);
	}
}

static void a_process_that_may_do_more_is_told(void **state)
{
	(void)state;
	target.capabilities = UINT64_C(1) << 40 | 2;
	assert_int_equal(reason(), PERMISSION_MISSING_CAPABILITY);
	assert_says("(target) has capabilities that ljspy has not", "Run ljspy as root");
	kernel.permitted = UINT64_C(1) << 40;
	assert_int_equal(reason(), PERMISSION_MISSING_CAPABILITY);
	kernel.permitted = 2;
	assert_int_equal(reason(), PERMISSION_MISSING_CAPABILITY);
	kernel.permitted = UINT64_C(7) << 40 | 3;
	assert_int_equal(reason(), PERMISSION_UNKNOWN);
	kernel.permitted = 0;
	kernel.euid = 0;
	assert_int_equal(reason(), PERMISSION_MISSING_CAPABILITY);
	assert_says("has capabilities", "docker run --cap-add=SYS_PTRACE");
	kernel.effective = ptrace_capability;
	assert_int_equal(reason(), PERMISSION_UNKNOWN);
}

/*
 * The first process's files are its own user's, as /proc says, and so not this user's, who has made itself
 * unreadable.
 */
static void an_unreadable_process_is_told(void **state)
{
	struct stat status;

	(void)state;
	if (stat("/proc/1/stat", &status) || status.st_uid == USER)
		skip();
	assert_int_equal(reason_for(FIRST, EPERM), PERMISSION_NOT_DUMPABLE);
	assert_says("Process 1 (target) has made itself unreadable", "Run ljspy as root");
	kernel.effective = ptrace_capability;
	assert_int_equal(reason_for(FIRST, EPERM), PERMISSION_UNKNOWN);
	kernel.effective = 0;
	kernel.uid = kernel.euid = status.st_uid;
	target.uid = target.euid = target.suid = status.st_uid;
	assert_int_equal(reason_for(FIRST, EPERM), PERMISSION_UNKNOWN);
}

/* Also if it is over by now. */
static void an_execve_is_told(void **state)
{
	(void)state;
	assert_int_equal(reason_for(PID, EBUSY), PERMISSION_IN_EXEC);
	kernel.read_error = -EBUSY;
	assert_int_equal(reason_for(PID, EBUSY), PERMISSION_IN_EXEC);
	assert_says("Process 2147483637 is about to run another program", "Try again");
}

static void a_process_that_cannot_be_looked_at_is_told(void **state)
{
	(void)state;
	kernel.read_error = -ESRCH;
	kernel.kill_error = ESRCH;
	assert_int_equal(reason(), PERMISSION_NO_SUCH_PROCESS);
	assert_says("There is no process 2147483637.", "");
	kernel.inner_namespace = true;
	assert_int_equal(reason(), PERMISSION_NO_SUCH_PROCESS);
	assert_says("There is no process 2147483637.", "share the namespace");
	kernel.kill_error = 0;
	assert_int_equal(reason(), PERMISSION_NO_SUCH_PROCESS);
	kernel.kill_error = EPERM;
	assert_int_equal(reason(), PERMISSION_HIDDEN);
	assert_says("hidepid", "root");
	kernel.read_error = -EACCES;
	assert_int_equal(reason(), PERMISSION_HIDDEN);
	kernel.read_error = -ENOMEM;
	assert_int_equal(reason(), PERMISSION_TOO_LITTLE_MEMORY);
	kernel.read_error = -EIO;
	kernel.kill_error = 0;
	assert_int_equal(reason(), PERMISSION_UNKNOWN);
	assert_says("cannot be looked at: Input/output error", "");
	kernel.read_error = -EMFILE;
	assert_int_equal(reason(), PERMISSION_TOO_FEW_FILES);
}

static void what_concerns_no_process_is_told_first(void **state)
{
	struct rlimit limit;
	char expected[64];

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	snprintf(expected, sizeof(expected), "only %llu files", (unsigned long long)limit.rlim_cur);
	kernel.foreign_proc = true;
	assert_int_equal(reason(), PERMISSION_FOREIGN_PROC);
	assert_says("/proc is not that", "mount -t proc");
	kernel.no_proc = true;
	assert_int_equal(reason(), PERMISSION_FOREIGN_PROC);
	assert_says("/proc is not mounted", "mount -t proc");
	kernel.no_proc = false;
	/* Without files nothing is known of /proc. */
	assert_int_equal(reason_for(PID, EMFILE), PERMISSION_TOO_FEW_FILES);
	assert_says(expected, "ulimit -n");
	assert_int_equal(reason_for(PID, ENFILE), PERMISSION_TOO_FEW_FILES);
	assert_says("As many files", "fs.file-max");
	kernel.foreign_proc = false;
	assert_int_equal(reason_for(PID, EAGAIN), PERMISSION_TOO_FEW_PROCESSES);
	assert_says("as many signals", "ulimit -u");
	assert_int_equal(reason_for(PID, ENOMEM), PERMISSION_TOO_LITTLE_MEMORY);
	assert_says("not enough memory for ljspy", "ulimit -v");
	assert_false(permission_diagnose_error(EPERM, &verdict));
	assert_false(permission_diagnose_error(0, &verdict));
}

/*---- Another identity ----*/

static int take(void)
{
	memset(calls, 0, sizeof(calls));
	call_count = 0;
	return permission_take_target_identity(&target);
}

static void only_root_without_the_capability_takes_an_identity(void **state)
{
	(void)state;
	assert_false(permission_would_take_identity(&target));
	target.uid++;
	assert_false(permission_would_take_identity(&target));
	assert_int_equal(take(), -EALREADY);
	target.uid--;
	become_root();
	assert_true(permission_would_take_identity(&target));
	assert_int_equal(take(), 0);
	assert_string_equal(calls, "groups 5678; group 5678 5678 5678; user 1234 1234 1234; ");
	kernel.effective = ptrace_capability;
	assert_false(permission_would_take_identity(&target));
	assert_int_equal(take(), -EALREADY);
	assert_string_equal(calls, "");
	kernel.effective = 0;
	kernel.uid = USER;
	kernel.gid = GROUP;
	assert_false(permission_would_take_identity(&target));
}

static void nobody_is_several_users_at_once(void **state)
{
	(void)state;
	become_root();
	target.suid++;
	assert_true(permission_would_take_identity(&target));
	assert_int_equal(take(), -EPERM);
	target.suid--;
	target.egid++;
	assert_int_equal(take(), -EPERM);
	assert_string_equal(calls, "");
}

static void an_identity_that_is_refused_changes_nothing(void **state)
{
	(void)state;
	become_root();
	failing_calls = 1;
	assert_int_equal(take(), -EPERM);
	assert_string_equal(calls, "groups 5678; ");
	failing_calls = 2;
	assert_int_equal(take(), -EPERM);
	assert_string_equal(calls, "groups 5678; group 5678 5678 5678; groups 20 21 22; ");
	failing_calls = 4;
	assert_int_equal(take(), -EPERM);
	assert_string_equal(calls, "groups 5678; group 5678 5678 5678; user 1234 1234 1234; "
				   "group 0 0 0; groups 20 21 22; ");
	failing_calls = 0;
	group_count = -1;
	assert_int_equal(take(), -EINVAL);
	allocation_fails_after(0);
	assert_int_equal(take(), -ENOMEM);
	assert_true(allocation_failed());
	assert_string_equal(calls, "");
	/* No groups are some, too. */
	group_count = 0;
	failing_calls = 2;
	assert_int_equal(take(), -EPERM);
	assert_string_equal(calls, "groups 5678; group 5678 5678 5678; groups; ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(what_is_not_explained_is_named_by_its_error, begin),
		cmocka_unit_test_setup(a_process_may_be_of_a_kind_that_cannot_be_traced, begin),
		cmocka_unit_test_setup(a_tracer_is_named_as_the_user_knows_it, begin),
		cmocka_unit_test_setup(a_tracer_that_has_ended_since_is_told, begin),
		cmocka_unit_test_setup(a_tracer_of_ljspy_has_what_ljspy_starts_as_well, begin),
		cmocka_unit_test_setup(a_tracer_without_a_front_is_named_itself, begin),
		cmocka_unit_test_setup(what_the_kernel_refuses_to_all_is_told, begin),
		cmocka_unit_test_setup(a_process_of_another_user_is_told, begin),
		cmocka_unit_test_setup(yama_has_a_scope, begin),
		cmocka_unit_test_setup(a_process_that_may_do_more_is_told, begin),
		cmocka_unit_test_setup(an_unreadable_process_is_told, begin),
		cmocka_unit_test_setup(an_execve_is_told, begin),
		cmocka_unit_test_setup(a_process_that_cannot_be_looked_at_is_told, begin),
		cmocka_unit_test_setup(what_concerns_no_process_is_told_first, begin),
		cmocka_unit_test_setup(one_that_kept_ljspy_waiting_is_not_read_again, begin),
		cmocka_unit_test_setup(only_root_without_the_capability_takes_an_identity, begin),
		cmocka_unit_test_setup(nobody_is_several_users_at_once, begin),
		cmocka_unit_test_setup(an_identity_that_is_refused_changes_nothing, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

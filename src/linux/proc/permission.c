/* SPDX-License-Identifier: MIT */
#include "src/linux/proc/permission.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/linux/proc/engine_name.h"
#include "src/linux/proc/pid_namespace.h"
#include "src/linux/proc/user_name.h"

enum {
	WHO_MAX = 128,      /* bytes of "process 12 (name)" or "user 33 (name)" */
	GROUPS_MAX = 65536, /* NGROUPS_MAX of Linux */
};

/* Remedies. */
static const char add_capability[] =
	"Start the container with the capability: docker run --cap-add=SYS_PTRACE,"
	" compose cap_add: [SYS_PTRACE], Kubernetes securityContext.capabilities.add: [SYS_PTRACE].";
static const char allow_ptrace[] =
	"Start the container with --security-opt seccomp=unconfined or a profile that allows ptrace"
	" (Kubernetes: securityContext.seccompProfile).";
static const char run_as_root[] = "Run ljspy as root, in a container with --cap-add=SYS_PTRACE.";

/* By capget(2): the capabilities that the calling thread has in effect, and those it may turn on. */
static bool read_capabilities(uint64_t *ret_effective, uint64_t *ret_permitted)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &header, data))
		return false;
	*ret_effective = data[0].effective | (uint64_t)data[1].effective << 32;
	*ret_permitted = data[0].permitted | (uint64_t)data[1].permitted << 32;
	return true;
}

bool permission_has_capability(int number)
{
	uint64_t effective, permitted;

	return read_capabilities(&effective, &permitted) && effective >> number & 1;
}

static bool has_ptrace_capability(void)
{
	return permission_has_capability(CAP_SYS_PTRACE);
}

/* Without a filter that forbids ptrace(), the kernel says ESRCH here. */
static bool ptrace_is_filtered(void)
{
	return ptrace(PTRACE_CONT, getpid(), NULL, NULL) < 0 && errno != ESRCH;
}

/* 0 also without Yama. */
static int read_yama_scope(void)
{
	FILE *file = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
	int scope = 0;

	if (!file)
		return 0;
	if (fscanf(file, "%d", &scope) != 1)
		scope = 0;
	fclose(file);
	return scope;
}

static void describe_process(pid_t pid, char text[static WHO_MAX])
{
	struct process process;

	if (process_read(pid, &process)) {
		snprintf(text, WHO_MAX, "process %d", (int)pid);
		return;
	}
	snprintf(text, WHO_MAX, "process %d (%s)", (int)pid, process.name);
	process_clear(&process);
}

static void describe_user(uid_t uid, char text[static WHO_MAX])
{
	char name[USER_NAME_SIZE];

	user_name(uid, name);
	snprintf(text, WHO_MAX, "user %s", name);
}

/* All three users and groups of a process must be the tracer's (ptrace(2), access mode checking). */
static bool belongs_to(const struct process *process, uid_t uid, gid_t gid)
{
	return process->uid == uid && process->euid == uid && process->suid == uid && process->gid == gid &&
	       process->egid == gid && process->sgid == gid;
}

/* If a process is not dumpable, root owns the files in its directory in /proc. */
static bool is_dumpable(const struct process *process)
{
	char path[32];
	struct stat status;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)process->pid);
	return stat(path, &status) != 0 || status.st_uid == process->euid;
}

__attribute__((__format__(__printf__, 4, 5))) static bool decide(struct permission_verdict *verdict,
								 enum permission_reason reason,
								 const char *remedy, const char *format, ...)
{
	va_list arguments;

	verdict->reason = reason;
	va_start(arguments, format);
	vsnprintf(verdict->sentence, sizeof(verdict->sentence), format, arguments);
	va_end(arguments);
	snprintf(verdict->remedy, sizeof(verdict->remedy), "%s", remedy);
	return true;
}

/* If the tracer is the engine of another ljspy, its front, which the user knows: the guard's parent. */
static pid_t front_of(pid_t tracer)
{
	struct process process;
	pid_t front;

	if (process_read(tracer, &process))
		return tracer;
	front = strcmp(process.name, ENGINE_NAME) == 0 ? process_parent(process.parent_pid) : 0;
	process_clear(&process);
	return front > 1 ? front : tracer;
}

/* Is the kind of process the reason? */
static bool explain_by_process(const struct process *process, struct permission_verdict *verdict)
{
	const int pid = process->pid;
	char text[WHO_MAX];
	pid_t tracer;

	if (pid == getpid())
		return decide(verdict, PERMISSION_SELF, "", "Process %d is ljspy itself.", pid);
	if (process_is_zombie(process))
		return decide(verdict, PERMISSION_ZOMBIE, "",
			      "Process %d (%s) has ended; its parent, process %d, has yet to notice.", pid,
			      process->name, (int)process->parent_pid);
	if (process->kernel_thread)
		return decide(verdict, PERMISSION_KERNEL_THREAD, "",
			      "Process %d (%s) is a thread of the kernel.", pid, process->name);
	if (process->is_32bit)
		return decide(verdict, PERMISSION_32BIT, "",
			      "Process %d (%s) runs a 32-bit program; ljspy can only read 64-bit ones.", pid,
			      process->name);
	tracer = process->tracer_pid ? process_of_thread(process->tracer_pid) : 0;
	if (tracer == 0 || tracer == getpid())
		return false;
	describe_process(front_of(tracer), text);
	return decide(verdict, PERMISSION_OTHER_TRACER, "End that first; a process can have one tracer only.",
		      "Process %d (%s) is traced by %s already.", pid, process->name, text);
}

static bool explain_by_user(const struct process *process, bool is_root, struct permission_verdict *verdict)
{
	const int pid = process->pid;
	char owner[WHO_MAX], remedy[WHO_MAX + 64];

	if (belongs_to(process, getuid(), getgid()))
		return false;
	describe_user(process->euid, owner);
	if (is_root)
		return decide(verdict, PERMISSION_MISSING_CAPABILITY, add_capability,
			      "Process %d (%s) belongs to %s, and ljspy is root without CAP_SYS_PTRACE.", pid,
			      process->name, owner);
	snprintf(remedy, sizeof(remedy), "Run ljspy as that user, or as root: sudo ljspy ... -p %d", pid);
	return decide(verdict, PERMISSION_OTHER_USER, remedy, "Process %d (%s) belongs to %s, not to you.",
		      pid, process->name, owner);
}

static bool explain_by_yama(const struct process *process, bool has_capability,
			    struct permission_verdict *verdict)
{
	static const char *const remedies[] = {
		[1] = "Run ljspy as root, start the program with `ljspy record -- COMMAND`,"
		      " or allow it for all: sudo sysctl kernel.yama.ptrace_scope=0",
		[2] = "Run ljspy as root, or allow it for your own processes: sudo sysctl kernel.yama.ptrace_scope=0",
		[3] = "This setting cannot be taken back before the next boot.",
	};
	static const char *const meanings[] = {
		[1] = "only a program's own ancestors may trace it",
		[2] = "only root may trace",
		[3] = "nobody may trace",
	};
	int scope = read_yama_scope();

	if (scope < 1 || scope > 3 || (has_capability && scope < 3))
		return false;
	return decide(verdict, PERMISSION_YAMA, remedies[scope],
		      "Process %d (%s) may not be traced, as kernel.yama.ptrace_scope is %d: %s.",
		      (int)process->pid, process->name, scope, meanings[scope]);
}

static const char has_ended_since[] = "Try again: that has ended since. A process can have one tracer only.";

/* Another process traced it when ljspy was about to. */
static bool explain_tracer(const struct process *process, struct permission_verdict *verdict)
{
	if (process->tracer_pid)
		return decide(verdict, PERMISSION_OTHER_TRACER,
			      "End that first; a process can have one tracer only.",
			      "Process %d (%s) is traced by a process that ljspy may not see.",
			      (int)process->pid, process->name);
	return decide(verdict, PERMISSION_OTHER_TRACER, has_ended_since,
		      "Process %d (%s) was traced by another process when ljspy was about to.",
		      (int)process->pid, process->name);
}

/* Does the error alone tell the reason? */
static bool explain_by_error(const struct process *process, int error, struct permission_verdict *verdict)
{
	const int pid = process->pid;

	if (error == EALREADY)
		return explain_tracer(process, verdict);
	if (error == ENODATA)
		return decide(
			verdict, PERMISSION_UNREADABLE,
			"Try again: a disk may not have answered, ljspy may have waited for a CPU or lacked memory,"
			" or the process may have been starting a program. `ljspy info -p PID` names a file.",
			"It is not known yet whether process %d (%s) runs LuaJIT: it could not be read as a whole.",
			pid, process->name);
	return error == EIO &&
	       decide(verdict, PERMISSION_NO_SEIZE,
		      "--no-stop does without. --allow-attach uses PTRACE_ATTACH instead, at a price: each look sends a"
		      " SIGSTOP, each thread is woken once, SIGCONT may be lost, and the target stays stopped"
		      " if ljspy is killed at a wrong moment.",
		      "There is no PTRACE_SEIZE here (Linux has it since 3.4), so process %d (%s) cannot be stopped"
		      " unnoticed.",
		      pid, process->name);
}

static void explain(const struct process *process, int error, struct permission_verdict *verdict)
{
	const int pid = process->pid;
	const bool is_root = geteuid() == 0;
	uint64_t effective = 0, permitted = 0;
	bool has_capability;

	read_capabilities(&effective, &permitted);
	has_capability = effective & (1u << CAP_SYS_PTRACE);
	if (explain_by_process(process, verdict))
		return;
	if (explain_by_error(process, error, verdict))
		return;
	if (ptrace_is_filtered()) {
		decide(verdict, PERMISSION_SECCOMP, allow_ptrace,
		       "A seccomp filter on ljspy forbids ptrace, so process %d (%s) cannot be traced.", pid,
		       process->name);
		return;
	}
	if (!has_capability && explain_by_user(process, is_root, verdict))
		return;
	if (explain_by_yama(process, has_capability, verdict))
		return;
	if (!has_capability && process->capabilities & ~permitted) {
		decide(verdict, PERMISSION_MISSING_CAPABILITY, is_root ? add_capability : run_as_root,
		       "Process %d (%s) has capabilities that ljspy has not.", pid, process->name);
		return;
	}
	if (!has_capability && !is_dumpable(process)) {
		decide(verdict, PERMISSION_NOT_DUMPABLE, is_root ? add_capability : run_as_root,
		       "Process %d (%s) has made itself unreadable (it is not dumpable), as programs do that"
		       " change their user.",
		       pid, process->name);
		return;
	}
	if (error == ESRCH)
		decide(verdict, PERMISSION_NO_SUCH_PROCESS, "", "Process %d (%s) has ended.", pid,
		       process->name);
	else
		decide(verdict, PERMISSION_UNKNOWN,
		       error == EPERM || error == EACCES
			       ? "Perhaps a security module (AppArmor, SELinux) or a user namespace is in the way."
			       : "",
		       "Process %d (%s) may not be traced: %s.", pid, process->name, strerror(error));
}

static bool explain_files(int error, struct permission_verdict *verdict)
{
	struct rlimit limit = { 0 };

	if (error == ENFILE)
		return decide(verdict, PERMISSION_TOO_FEW_FILES,
			      "Allow more: sudo sysctl fs.file-max=1000000",
			      "As many files as this machine allows are open, so ljspy can open none.");
	if (error != EMFILE)
		return false;
	getrlimit(RLIMIT_NOFILE, &limit);
	return decide(
		verdict, PERMISSION_TOO_FEW_FILES,
		"Allow more: ulimit -n 1024 (as root: prlimit --nofile=1024 ljspy ...; docker run --ulimit nofile=1024)",
		"ljspy may have only %llu files open at a time, which is too few.",
		(unsigned long long)limit.rlim_cur);
}

/* timer_create(), pthread_create() and fork() fail so; the tracer's timer is what fails first. */
static bool explain_limits(int error, struct permission_verdict *verdict)
{
	return error == EAGAIN &&
	       decide(verdict, PERMISSION_TOO_FEW_PROCESSES,
		      "Allow more: ulimit -i, ulimit -u, ulimit -v; in a container also its limit of processes.",
		      "No timer, thread or process can be had: as many signals as ljspy's user may have pending,"
		      " or processes, or as much memory, are in use.");
}

/* No word of the target, which has done nothing to it. */
static bool explain_memory(int error, struct permission_verdict *verdict)
{
	return error == ENOMEM && decide(verdict, PERMISSION_TOO_LITTLE_MEMORY,
					 "Allow more: ulimit -v; in a container its limit of memory.",
					 "There is not enough memory for ljspy to do that.");
}

static void explain_proc(struct permission_verdict *verdict)
{
	if (pid_namespace_has_proc())
		decide(verdict, PERMISSION_FOREIGN_PROC,
		       "Run ljspy where that /proc belongs, or mount one for here: mount -t proc proc /proc",
		       "/proc is not that of the pid namespace that ljspy runs in, so it does not tell"
		       " which process has which number here.");
	else
		decide(verdict, PERMISSION_FOREIGN_PROC, "Mount it: mount -t proc proc /proc",
		       "/proc is not mounted, so ljspy sees no process.");
}

bool permission_diagnose_error(int error, struct permission_verdict *ret_verdict)
{
	if (!pid_namespace_is_that_of_proc() && error != EMFILE && error != ENFILE) {
		explain_proc(ret_verdict);
		return true;
	}
	return explain_files(error, ret_verdict) || explain_limits(error, ret_verdict) ||
	       explain_memory(error, ret_verdict);
}

/* Programs such as `strace -f` trace what their target starts, too. */
static bool explain_traced_launch(const char *command, struct permission_verdict *verdict)
{
	char who[WHO_MAX] = "a process that ljspy may not see";
	struct process process;
	pid_t tracer = 0;

	if (!process_read(getpid(), &process)) {
		tracer = process.tracer_pid;
		process_clear(&process);
	}
	if (!tracer)
		return decide(verdict, PERMISSION_OTHER_TRACER, has_ended_since,
			      "%s was traced by another process when ljspy was about to.", command);
	tracer = process_of_thread(tracer);
	if (tracer)
		describe_process(tracer, who);
	return decide(verdict, PERMISSION_OTHER_TRACER,
		      "Start ljspy without that; a process can have one tracer only.",
		      "%s cannot be traced: %s traces ljspy, and what it starts.", command, who);
}

bool permission_diagnose_launch(const char *command, int error, struct permission_verdict *ret_verdict)
{
	if (error == EALREADY)
		return explain_traced_launch(command, ret_verdict);
	return (error == EPERM || error == ENOSYS) && ptrace_is_filtered() &&
	       decide(ret_verdict, PERMISSION_SECCOMP, allow_ptrace,
		      "A seccomp filter on ljspy forbids ptrace, so %s cannot be traced.", command);
}

static bool explain_thread(pid_t pid, struct permission_verdict *verdict)
{
	const pid_t process = process_if_thread(pid);
	char remedy[WHO_MAX];

	snprintf(remedy, sizeof(remedy), "Name the process: -p %d", (int)process);
	return process &&
	       decide(verdict, PERMISSION_NO_SUCH_PROCESS, remedy,
		      "There is no process %d: that is a thread of process %d.", (int)pid, (int)process);
}

/* The processes of a container have other numbers outside. */
static const char *where_else(void)
{
	return pid_namespace_is_first()
		       ? ""
		       : "In a container ljspy sees only what is in it: share the namespace of the process (docker run"
			 " --pid=container:NAME or --pid=host, kubectl debug --target=CONTAINER), or run ljspy outside.";
}

void permission_diagnose(pid_t pid, int error, struct permission_verdict *ret_verdict)
{
	struct process process;
	int failure;

	if (permission_diagnose_error(error, ret_verdict))
		return;
	/* Who reads its command line might wait for that, too. */
	if (error == ETIMEDOUT) {
		decide(ret_verdict, PERMISSION_UNREADABLE,
		       "Leave that process out, as long as its memory is not to be had.",
		       "The kernel has kept ljspy waiting for memory of process %d for seconds:"
		       " ljspy leaves it alone, and it runs on.",
		       (int)pid);
		return;
	}
	failure = process_read(pid, &process);
	if (failure && failure != -ENOMEM && kill(pid, 0) && errno == EPERM) {
		decide(ret_verdict, PERMISSION_HIDDEN, "Run ljspy as that process's user or as root.",
		       "Process %d is another user's, and /proc is mounted so that those are hidden (hidepid).",
		       (int)pid);
	} else if (failure == -EBUSY || (error == EBUSY && !failure)) {
		decide(ret_verdict, PERMISSION_IN_EXEC,
		       "Try again when it is done. It may wait for a disk or server of a file that it had open.",
		       "Process %d is about to run another program (execve()), and meanwhile the kernel shows"
		       " it to nobody.",
		       (int)pid);
	} else if (failure == -ESRCH && error == EALREADY) {
		decide(ret_verdict, PERMISSION_OTHER_TRACER, "",
		       "Process %d was traced by another process when ljspy was about to, and has ended.",
		       (int)pid);
	} else if (failure == -ESRCH) {
		decide(ret_verdict, PERMISSION_NO_SUCH_PROCESS, where_else(), "There is no process %d.",
		       (int)pid);
	} else if (failure && !explain_files(-failure, ret_verdict) &&
		   !explain_memory(-failure, ret_verdict)) {
		decide(ret_verdict, PERMISSION_UNKNOWN, "", "Process %d cannot be looked at: %s.", (int)pid,
		       strerror(-failure));
	} else if (!failure) {
		if (!explain_thread(pid, ret_verdict))
			explain(&process, error, ret_verdict);
		process_clear(&process);
	}
}

/*
 * These system calls change the calling thread only; the C library's functions of
 * these names change all threads.
 */
static int set_groups(size_t count, const gid_t *groups)
{
	return syscall(SYS_setgroups, count, groups) ? -errno : 0;
}

static int set_group(gid_t gid)
{
	return syscall(SYS_setresgid, gid, gid, gid) ? -errno : 0;
}

static int set_user(uid_t uid)
{
	return syscall(SYS_setresuid, uid, uid, uid) ? -errno : 0;
}

/* Become that user for good; on failure, restore the former identity. */
static int take_identity(uid_t uid, gid_t gid, const gid_t *groups, int group_count)
{
	int error = set_groups(1, &gid);

	if (error)
		return error;
	error = set_group(gid);
	if (error) {
		set_groups((size_t)group_count, groups);
		return error;
	}
	error = set_user(uid);
	if (error && set_group(0) == 0)
		set_groups((size_t)group_count, groups);
	return error;
}

bool permission_would_take_identity(const struct process *process)
{
	return geteuid() == 0 && !has_ptrace_capability() && !belongs_to(process, getuid(), getgid());
}

int permission_take_target_identity(const struct process *process)
{
	gid_t *groups;
	int group_count, error;

	if (!permission_would_take_identity(process))
		return -EALREADY;
	if (!belongs_to(process, process->uid, process->gid))
		return -EPERM; /* ljspy cannot be several users at once */
	groups = calloc(GROUPS_MAX, sizeof(*groups));
	if (!groups)
		return -ENOMEM;
	group_count = getgroups(GROUPS_MAX, groups);
	error = group_count < 0 ? -errno : take_identity(process->uid, process->gid, groups, group_count);
	free(groups);
	return error;
}

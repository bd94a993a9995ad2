/* SPDX-License-Identifier: MIT */
/*
 * faulty CALL FIRST LAST ERRNO REPORT COMMAND [ARG...]: run a command of which some system calls fail.
 *
 * CALL: a name of the table below, or one with the value of its first argument, as in "ptrace=16902",
 * or with the name of a file in /proc, as in "open:syscall".
 * FIRST, LAST: which calls fail with ERRNO, the first being 1, of the command and all its children
 * in one count. 0 0 lets all pass. The dynamic linker's own calls pass and are not counted: without
 * them there is no command.
 * REPORT: a file for "COUNT FAILED LEFT" at the end: how many calls there were, how many failed, and
 * whether some child outlived the command, by LEFT_MS_MAX.
 *
 * Ends as the command does, and with 128 and the number of its signal. Children that are left keep
 * their calls only as long as this program runs.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <limits.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NUMBERS_MAX = 5, LEFT_MS_MAX = 5000, MOMENT_MS = 10, PAGE_BYTES = 4096 };

struct call {
	const char *name;
	unsigned int numbers[NUMBERS_MAX]; /* 0, read(), ends the list but as its first */
	int argument;                      /* -1, or the argument of which a bit decides */
	uint64_t bits;                     /* of this call, if one is set */
	bool none;                         /* ... if none is set */
};

enum { MAKES = O_CREAT | (O_TMPFILE & ~O_DIRECTORY) };

static const struct call calls[] = {
	{ "read", { SYS_read, SYS_pread64, SYS_readv }, -1, 0, false },
	{ "write", { SYS_write, SYS_pwrite64, SYS_writev }, -1, 0, false },
	{ "open", { SYS_openat }, 2, MAKES, true },
	{ "create", { SYS_openat }, 2, MAKES, false },
	{ "rename", { SYS_rename, SYS_renameat, SYS_renameat2 }, -1, 0, false },
	{ "link", { SYS_linkat }, -1, 0, false },
	{ "unlink", { SYS_unlinkat }, -1, 0, false },
	{ "sync", { SYS_fsync, SYS_fdatasync }, -1, 0, false },
	{ "truncate", { SYS_ftruncate, SYS_fallocate }, -1, 0, false },
	{ "list", { SYS_getdents64 }, -1, 0, false },
	{ "map", { SYS_mmap, SYS_mremap }, -1, 0, false },
	{ "ptrace", { SYS_ptrace }, -1, 0, false },
	{ "process_vm_readv", { SYS_process_vm_readv }, -1, 0, false },
	{ "wait", { SYS_waitid, SYS_wait4 }, -1, 0, false },
	{ "waitid", { SYS_waitid }, -1, 0, false },
	{ "timer_create", { SYS_timer_create }, -1, 0, false },
	{ "timer_settime", { SYS_timer_settime }, -1, 0, false },
	{ "pipe", { SYS_pipe2, SYS_pipe }, -1, 0, false },
	{ "socketpair", { SYS_socketpair }, -1, 0, false },
	{ "fork", { SYS_clone, SYS_clone3, SYS_fork, SYS_vfork }, -1, 0, false },
	{ "poll", { SYS_poll, SYS_ppoll }, -1, 0, false },
	{ "memfd", { SYS_memfd_create }, -1, 0, false },
	{ "listen", { SYS_listen }, -1, 0, false },
};

/* What fails, and how often it was called. */
struct fault {
	const struct call *call;
	bool has_first;
	uint64_t first_argument;
	const char *file; /* NULL if any */
	unsigned long from, to, count, failed;
	int error;
};

static bool parse_call(const char *text, struct fault *fault)
{
	size_t length = strcspn(text, "=:");

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (strlen(calls[i].name) == length && strncmp(calls[i].name, text, length) == 0)
			fault->call = &calls[i];
	fault->file = text[length] == ':' ? text + length + 1 : NULL;
	fault->has_first = text[length] == '=';
	if (fault->has_first)
		fault->first_argument = strtoull(text + length + 1, NULL, 0);
	return fault->call;
}

/* All calls of those numbers ask us. Returns the descriptor on which they do. */
static int install(const struct call *call)
{
	struct sock_filter code[2 + 2 * NUMBERS_MAX];
	struct sock_fprog program = { 0, code };

	code[program.len++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
							   offsetof(struct seccomp_data, nr));
	for (int i = 0; i < NUMBERS_MAX && (i == 0 || call->numbers[i]); i++) {
		code[program.len++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
								   call->numbers[i], 0, 1);
		code[program.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
	}
	code[program.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -1;
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
			    SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV,
			    &program);
}

/*
 * Become the command. Its first call may be of those that ask, so the parent takes the descriptor
 * from this process itself, by its number, which no call has to pass on.
 */
static void become(const struct call *call, volatile int *ret_listener, char **argv)
{
	int listener;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	listener = install(call);

	*ret_listener = listener < 0 ? -errno : listener;
	while (*ret_listener == listener)
		;
	if (listener >= 0)
		syscall(SYS_close, listener);
	execvp(argv[0], argv);
	_exit(127);
}

/* Is the code that calls the dynamic linker's? */
static bool is_linkers(pid_t pid, uint64_t pc)
{
	char path[64], line[4352];
	bool found = false;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	maps = fopen(path, "r");
	while (maps && fgets(line, sizeof(line), maps)) {
		unsigned long start, end;

		if (sscanf(line, "%lx-%lx", &start, &end) == 2 && pc >= start && pc < end)
			found = strstr(line, "/ld-linux") || strstr(line, "/ld-2.");
	}
	if (maps)
		fclose(maps);
	return found;
}

/* Is the path that openat() is given a file of that name in /proc? */
static bool is_file(const struct seccomp_notif *asked, const char *name)
{
	char path[PATH_MAX] = "";
	struct iovec ours = { path, sizeof(path) - 1 };
	struct iovec theirs = { (void *)asked->data.args[1], sizeof(path) - 1 };
	const char *last;

	/* A path at the end of its page is read up to there. */
	theirs.iov_len -= asked->data.args[1] % PAGE_BYTES;
	if (process_vm_readv((pid_t)asked->pid, &ours, 1, &theirs, 1, 0) <= 0)
		return false;
	last = strrchr(path, '/');
	return strcmp(last ? last + 1 : path, name) == 0 &&
	       (path[0] != '/' || strncmp(path, "/proc/", 6) == 0);
}

static bool is_meant(const struct fault *fault, const struct seccomp_notif *asked)
{
	const struct call *call = fault->call;

	if (fault->has_first && asked->data.args[0] != fault->first_argument)
		return false;
	if (fault->file && !is_file(asked, fault->file))
		return false;
	if (call->argument >= 0 && ((asked->data.args[call->argument] & call->bits) != 0) == call->none)
		return false;
	return !is_linkers((pid_t)asked->pid, asked->data.instruction_pointer);
}

/* Answer one question; who asked may be gone meanwhile. */
static void answer(int listener, struct fault *fault)
{
	struct seccomp_notif asked = { 0 };
	struct seccomp_notif_resp answer = { .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE };

	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked))
		return;
	answer.id = asked.id;
	if (is_meant(fault, &asked)) {
		fault->count++;
		if (fault->count >= fault->from && fault->count <= fault->to) {
			fault->failed++;
			answer.flags = 0;
			answer.error = -fault->error;
		}
	}
	ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
}

/* Answer until the command and all of its children have ended, or too long. Returns whether some are left. */
static bool serve(int listener, struct fault *fault, pid_t command, int *ret_status)
{
	bool ended = false;

	for (int left_ms = LEFT_MS_MAX; left_ms > 0;) {
		struct pollfd pollfd = { .fd = listener, .events = POLLIN };
		int ready = poll(&pollfd, 1, MOMENT_MS);

		if (!ended)
			ended = waitpid(command, ret_status, WNOHANG) == command;
		if (ready > 0 && (pollfd.revents & POLLIN))
			answer(listener, fault);
		else if (ended && ready > 0)
			return false;
		else if (ended)
			left_ms -= MOMENT_MS;
	}
	return true;
}

/* The child's descriptor, when it has one; below 0 if the kernel refuses. */
static int take_listener(pid_t child, volatile int *listener)
{
	int pidfd = (int)syscall(SYS_pidfd_open, child, 0), theirs, ours;

	while (*listener == 0)
		;
	theirs = *listener;
	ours = theirs < 0 ? theirs : (int)syscall(SYS_pidfd_getfd, pidfd, theirs, 0);
	*listener = 0;
	close(pidfd);
	return ours;
}

int main(int argc, char **argv)
{
	struct fault fault = { 0 };
	volatile int *shared;
	int listener, status = 0;
	bool left;
	FILE *report;
	pid_t child;

	if (argc < 7 || !parse_call(argv[1], &fault))
		return 64;
	fault.from = strtoul(argv[2], NULL, 10);
	fault.to = strtoul(argv[3], NULL, 10);
	fault.error = atoi(argv[4]);
	report = fopen(argv[5], "we");
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!report || shared == MAP_FAILED)
		return 64;
	child = fork();
	if (child == 0)
		become(fault.call, shared, argv + 6);
	listener = take_listener(child, shared);
	if (listener < 0) {
		fprintf(stderr, "seccomp: %s\n", strerror(-listener));
		return 125;
	}
	left = serve(listener, &fault, child, &status);
	fprintf(report, "%lu %lu %d\n", fault.count, fault.failed, left);
	fclose(report);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* SPDX-License-Identifier: MIT */
/*
 * refused CALL ERRNO COMMAND [ARG...]: run a command that is refused a
 * system call, as in a container whose seccomp profile forbids it.
 *
 * CALL: "ptrace", "process_vm_readv" and others by their names; "seize": ptrace() of that
 * request and those after it, as security modules and older kernels refuse them; "getregset": ptrace()
 * of that request only; or "tmpfile": openat() of a file without a name, as some file systems do.
 * ERRNO: a number.
 */
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * Refused if all of these bits of the argument are set and, counted from 0, it is a request from first to
 * last.
 */
struct call {
	const char *name;
	int number;
	unsigned int argument, first, last, bits;
};

static const struct call calls[] = {
	{ "ptrace", SYS_ptrace, 0, 0, UINT_MAX, 0 },
	{ "getregset", SYS_ptrace, 0, PTRACE_GETREGSET, PTRACE_GETREGSET, 0 },
	{ "seize", SYS_ptrace, 0, PTRACE_SEIZE, UINT_MAX, 0 },
	{ "process_vm_readv", SYS_process_vm_readv, 0, 0, UINT_MAX, 0 },
	{ "timer_create", SYS_timer_create, 0, 0, UINT_MAX, 0 },
	{ "prlimit64", SYS_prlimit64, 0, 0, UINT_MAX, 0 },
	{ "renameat2", SYS_renameat2, 0, 0, UINT_MAX, 0 },
	{ "memfd_create", SYS_memfd_create, 0, 0, UINT_MAX, 0 },
	{ "getrandom", SYS_getrandom, 0, 0, UINT_MAX, 0 },
	{ "statx", SYS_statx, 0, 0, UINT_MAX, 0 },
	{ "rseq", SYS_rseq, 0, 0, UINT_MAX, 0 },
	{ "clone3", SYS_clone3, 0, 0, UINT_MAX, 0 },
	{ "openat2", SYS_openat2, 0, 0, UINT_MAX, 0 },
	{ "close_range", SYS_close_range, 0, 0, UINT_MAX, 0 },
	{ "tmpfile", SYS_openat, 2, 0, UINT_MAX, O_TMPFILE & ~O_DIRECTORY },
};

static const struct call *find(const char *name)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (strcmp(calls[i].name, name) == 0)
			return &calls[i];
	return NULL;
}

int main(int argc, char **argv)
{
	const struct call *call = argc < 4 ? NULL : find(argv[1]);

	if (!call)
		return 64;

	unsigned int error = (unsigned int)atoi(argv[2]) & SECCOMP_RET_DATA;
	const unsigned int argument = (unsigned int)offsetof(struct seccomp_data, args[0]) +
				      8 * call->argument;
	/* Jumps are counted from the next instruction. */
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned int)call->number, 0, 6),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, argument),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, call->first, 0, 4),
		BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, call->last, 3, 0),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, call->bits),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call->bits, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
		perror("seccomp");
		return 1;
	}
	execv(argv[3], argv + 3);
	perror(argv[3]);
	return 127;
}

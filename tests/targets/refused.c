/*
 * refused SYSCALL ERRNO COMMAND [ARG...]: run a command that is refused a
 * system call, as in a container whose seccomp profile forbids it.
 *
 * SYSCALL: "ptrace", "process_vm_readv", or "seize": ptrace() of that request
 * only, as security modules refuse it.
 * ERRNO: a number.
 */
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

static int number_of(const char *name)
{
	return strcmp(name, "process_vm_readv") == 0 ? SYS_process_vm_readv : SYS_ptrace;
}

int main(int argc, char **argv)
{
	if (argc < 4)
		return 64;

	/* No request is below 0; those behind PTRACE_SEIZE need it. Jumps are counted from the next instruction. */
	unsigned int request = strcmp(argv[1], "seize") == 0 ? PTRACE_SEIZE : 0;
	unsigned int error = (unsigned int)atoi(argv[2]) & SECCOMP_RET_DATA;
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned int)number_of(argv[1]), 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, request, 0, 1),
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

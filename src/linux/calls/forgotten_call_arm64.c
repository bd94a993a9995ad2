/* SPDX-License-Identifier: MIT */
#include "src/linux/calls/forgotten_call_arm64.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <unistd.h>

#include "src/linux/proc/proc_file.h"

enum {
	SUPERVISOR_CALL = 0xd4000001, /* svc #0 */
	NO_CALL = -1,
	TEXT_BYTES_MAX = 256,
};

int64_t forgotten_call_number(pid_t tid, uint64_t pc, uint64_t x8, bool *ret_begins)
{
	uint32_t words[2] = { 0 }; /* before the pc, and at it */
	struct iovec here = { words, sizeof(words) };
	struct iovec there = { (void *)(uintptr_t)(pc - CALL_INSTRUCTION_BYTES), sizeof(words) };

	if (process_vm_readv(tid, &here, 1, &there, 1, 0) <= 0)
		return NO_CALL;
	*ret_begins = words[1] == SUPERVISOR_CALL;
	return *ret_begins || words[0] == SUPERVISOR_CALL ? (int32_t)x8 : NO_CALL;
}

static bool set_number(pid_t tid, int32_t number)
{
	struct iovec io = { &number, sizeof(number) };

	return ptrace(PTRACE_SETREGSET, tid, NT_ARM_SYSTEM_CALL, &io) == 0;
}

/* "NUMBER 0xARGUMENT 0x..." */
static bool read_argument(int fd, uint64_t *ret_argument)
{
	char text[TEXT_BYTES_MAX], *end;
	ssize_t length = proc_file_fill(fd, text, sizeof(text) - 1);

	text[length > 0 ? length : 0] = '\0';
	if (strtoll(text, &end, 10) < 0 || end == text || *end != ' ')
		return false;
	*ret_argument = strtoull(end, NULL, 16);
	return true;
}

bool forgotten_call_argument(pid_t tid, uint64_t number, uint64_t *ret_argument)
{
	int fd = proc_file_open(tid, "syscall");
	bool is_known;

	if (fd < 0)
		return false;
	is_known = set_number(tid, (int32_t)number) && read_argument(fd, ret_argument);
	set_number(tid, NO_CALL);
	close(fd);
	return is_known;
}

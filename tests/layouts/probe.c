/* SPDX-License-Identifier: MIT */
/*
 * probe PID: what recognition makes of a running process, for the matrix in
 * test_builds.py. Prints each verdict as "evidence NAME: WORDS", then
 * "result WORD", and for a recognised LuaJIT its layout. The process is
 * expected to be asleep or stopped.
 *
 * probe PID --debug-info FILE: also compare the layout with FILE's debug info.
 */
#include <elf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "luajit-layouts/layout_text.h"
#include "luajit-layouts/module/dwarf_layout.h"
#include "luajit-layouts/recognise/recognise.h"

enum { STATES_MAX = 8 };

struct process {
	struct memory memory;
	pid_t pid;
};

static void read_process(struct memory *memory, struct memory_range *ranges, size_t count)
{
	pid_t pid = ((struct process *)memory)->pid;

	for (size_t i = 0; i < count; i++) {
		struct iovec local = { ranges[i].copy, ranges[i].length };
		struct iovec remote = { (void *)(uintptr_t)ranges[i].address, ranges[i].length };

		ranges[i].status = process_vm_readv(pid, &local, 1, &remote, 1, 0) ==
						   (ssize_t)ranges[i].length
					   ? MEMORY_OK
					   : MEMORY_UNMAPPED;
	}
}

static void print_evidence(void *context, const char *probe, const char *verdict)
{
	(void)context;
	printf("evidence %s: %s\n", probe, verdict);
}

static FILE *open_maps(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	return fopen(path, "r");
}

static enum recognise_status find_vm(struct process *process, struct vm_code *vm)
{
	enum recognise_status status, best = RECOGNISE_NO_VM;
	FILE *maps = open_maps(process->pid);
	uint64_t begin, end, offset;
	char line[1024];

	while (maps != NULL && best != RECOGNISE_OK && fgets(line, sizeof(line), maps) != NULL) {
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64, &begin, &end, &offset) != 3 ||
		    offset != 0 || strstr(line, " /") == NULL)
			continue;
		printf("module %s", strchr(line, '/'));
		status = recognise_vm(&process->memory, EM_X86_64, begin, print_evidence, NULL, vm);
		if (status != RECOGNISE_NO_VM && status != RECOGNISE_UNREADABLE)
			best = status;
	}
	if (maps != NULL)
		fclose(maps);
	return best;
}

static size_t find_states(struct process *process, const struct vm_code *vm, uint64_t *g)
{
	FILE *maps = open_maps(process->pid);
	uint64_t begin, end;
	size_t count = 0;
	char line[1024], flags[8];

	while (maps != NULL && fgets(line, sizeof(line), maps) != NULL) {
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s", &begin, &end, flags) == 3 &&
		    flags[0] == 'r' && flags[1] == 'w' && count < STATES_MAX)
			count += recognise_states(&process->memory, vm, begin, end, &g[count],
						  STATES_MAX - count);
	}
	if (maps != NULL)
		fclose(maps);
	return count;
}

static const char *status_word(enum recognise_status status)
{
	static const char *const words[] = {
		[RECOGNISE_OK] = "ok",
		[RECOGNISE_NO_VM] = "no-vm",
		[RECOGNISE_UNREADABLE] = "unreadable",
		[RECOGNISE_OTHER_MACHINE] = "other-machine",
		[RECOGNISE_UNKNOWN_LAYOUT] = "unknown-layout",
	};

	return words[status];
}

static void compare(const struct layout *layout, const char *path)
{
	struct layout described;
	enum dwarf_layout_status status = dwarf_layout_read(path, &described);
	const char *conflict;

	if (status != DWARF_LAYOUT_OK) {
		printf("debug info: %s\n", dwarf_layout_status_text(status));
		return;
	}
	conflict = layout_conflict(layout, &described);
	if (conflict != NULL)
		printf("debug info: differs at %s\n", conflict);
	else
		printf("debug info: agrees%s\n",
		       layout->gc64 == described.gc64 && layout->bytecode == described.bytecode
			       ? ""
			       : ", but not on the mode");
}

int main(int argc, char **argv)
{
	struct process process = { { .read_ranges = read_process }, argc > 1 ? atoi(argv[1]) : 0 };
	enum recognise_status status;
	uint64_t g[STATES_MAX];
	struct vm_code vm;
	size_t states = 0;

	status = find_vm(&process, &vm);
	if (status == RECOGNISE_OK) {
		states = find_states(&process, &vm, g);
		printf("states %zu\n", states);
		for (size_t i = 0; i < states && status == RECOGNISE_OK; i++)
			status = recognise_confirm(&process.memory, &vm, g[i], print_evidence, NULL);
	}
	printf("result %s\n", status_word(status));
	if (status == RECOGNISE_OK) {
		printf("open %s%s\n", vm.traces_open ? "traces " : "", vm.bytecode_open ? "bytecode" : "");
		layout_text_write(&vm.layout, stdout);
		if (argc == 4 && strcmp(argv[2], "--debug-info") == 0)
			compare(&vm.layout, argv[3]);
	}
	return 0;
}

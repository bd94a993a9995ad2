/* SPDX-License-Identifier: MIT */
/*
 * core_file: a process's memory from an ELF core file.
 *
 * Memory that the core leaves out, mostly program text, comes from the file
 * that was mapped there, if that file on this machine begins with the same
 * bytes, which hold its build id. Reads cores by the kernel (elf(5), core(5))
 * and by gdb's gcore. The core is untrusted; a truncated one is refused.
 */
#ifndef LJSPY_CORE_FILE_H
#define LJSPY_CORE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "memory/memory.h"

enum {
	CORE_SEGMENTS_MAX = 1 << 20,
	CORE_NOTES_BYTES_MAX = 256 << 20,
	CORE_THREADS_MAX = 65536,
	CORE_NAME_SIZE = 16, /* TASK_COMM_LEN, with the NUL */
};

/* A part of the address space: a PT_LOAD segment, or a mapping of NT_FILE that has none. */
struct core_mapping {
	uint64_t begin, end;
	uint32_t flags;           /* PF_R, PF_W, PF_X */
	uint64_t offset;          /* in the file */
	const char *path;         /* untrusted; NULL if no file was mapped */
	uint64_t data, data_size; /* its bytes in the core, from begin on: offset and size there */
	int file;                 /* index of the opened file, or -1 */
};

/* A note as it is in the core, which owns it; its meaning depends on the machine. */
struct core_note {
	const uint8_t *bytes;
	size_t size;
};

struct core_file;

/*
 * Returns 0 and writes *ret_core, or returns a negative errno. With -EBADMSG,
 * *ret_problem says what is wrong with the file: a constant.
 */
int core_file_open(const char *path, struct core_file **ret_core, const char **ret_problem);
void core_file_close(struct core_file *core);

/* The core as memory; owned by the core. */
struct memory *core_file_memory(struct core_file *core);

/* As in the ELF header: EM_X86_64 and the like. */
uint16_t core_file_machine(const struct core_file *core);

/* Sorted by address; they do not overlap. */
size_t core_file_mapping_count(const struct core_file *core);
const struct core_mapping *core_file_mapping(const struct core_file *core, size_t index);

/* Does this machine have, at this path, the file that was mapped? */
bool core_file_has_file(const struct core_file *core, const char *path);

/* NT_PRSTATUS of each thread. The first thread got the signal, if any did. */
size_t core_file_thread_count(const struct core_file *core);
struct core_note core_file_thread(const struct core_file *core, size_t index);

/* From NT_PRPSINFO; 0 and "" if the core has none. */
pid_t core_file_pid(const struct core_file *core);
const char *core_file_name(const struct core_file *core);

/* From NT_AUXV: where the vdso is mapped, or 0. */
uint64_t core_file_vdso(const struct core_file *core);

#endif

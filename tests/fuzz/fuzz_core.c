/* SPDX-License-Identifier: MIT */
/*
 * Core files: opened, their threads and mappings looked at, and their LuaJIT
 * states searched for and walked.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "memory/core_file.h"
#include "src/inspect/lua_process.h"
#include "tests/fuzz/fuzz.h"
#include "unwind/native/core_registers.h"

enum { THREADS_READ_MAX = 8 };

static void check_mappings(struct core_file *core)
{
	uint64_t end = 0;
	uint8_t byte;

	for (size_t i = 0; i < core_file_mapping_count(core); i++) {
		const struct core_mapping *mapping = core_file_mapping(core, i);

		fuzz_check(mapping->begin < mapping->end && mapping->begin >= end, "mappings ascend");
		end = mapping->end;
		memory_read(core_file_memory(core), mapping->begin, &byte, 1);
		memory_read(core_file_memory(core), mapping->end - 1, &byte, 1);
	}
}

static void read_threads(struct core_file *core, struct lua_process *process)
{
	for (size_t i = 0; i < core_file_thread_count(core) && i < THREADS_READ_MAX; i++) {
		struct core_note note = core_file_thread(core, i);
		struct capture_hints hints = { 0 };
		struct registers registers;
		const struct frame *frames;
		enum vm_state state;
		pid_t tid;
		size_t count;

		if (!core_registers_read(note.bytes, note.size, &tid, &registers))
			continue;
		lua_process_capture(process, &registers, &hints);
		lua_process_unwind(process, &frames, &count, &state);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct namer_options options = { .native = NATIVE_NONE };
	struct functions *functions = functions_new();
	struct lua_process *process;
	struct core_file *core;
	const char *problem;
	char path[32];
	int fd = fuzz_file(data, size);

	fuzz_check(functions != NULL, "there is memory");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (core_file_open(path, &core, &problem) == 0) {
		fuzz_check(strlen(core_file_name(core)) < CORE_NAME_SIZE, "a name has an end");
		check_mappings(core);
		if (lua_process_open_core(core, functions, &options, &process) == 0) {
			if (lua_process_refresh(process, true) == 0) {
				lua_process_confirm(process);
				read_threads(core, process);
			}
			lua_process_close(process);
		}
		core_file_close(core);
	}
	close(fd);
	functions_free(functions);
	return 0;
}

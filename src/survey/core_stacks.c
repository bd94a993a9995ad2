/* SPDX-License-Identifier: MIT */
#include "src/survey/core_stacks.h"

#include <elf.h>
#include <errno.h>

#include "src/inspect/lua_process.h"
#include "src/survey/dump_stacks.h"
#include "unwind/native/core_registers.h"

/* Skip a note that is too short for its machine. */
static int read_thread(struct lua_process *process, struct core_note note, struct dump_process *report)
{
	struct dump_thread thread = { .state = "in core file" };
	struct capture_hints hints = { .deep = true };
	struct registers registers;
	bool whole;

	if (!core_registers_read(note.bytes, note.size, &thread.tid, &registers))
		return 0;
	hints.tid = thread.tid;
	lua_process_capture(process, &registers, &hints);
	return dump_thread(process, &thread, false, report, &whole);
}

static int read_all(struct lua_process *process, struct core_file *core,
		    const struct core_stacks_options *options, struct dump_process *report)
{
	int error;

	lua_process_give_layout(process, options->layout);
	if (options->wants_values && lua_process_want_values(process))
		return -ENOMEM;
	error = lua_process_refresh(process, true);
	for (size_t i = 0; i < core_file_thread_count(core) && !error; i++)
		error = read_thread(process, core_file_thread(core, i), report);
	return error ? error : dump_coroutines(process, NULL, report);
}

int core_stacks_read(struct core_file *core, const struct core_stacks_options *options,
		     struct functions *functions, struct dump_process **ret_report)
{
	struct dump_process *report = dump_process_new(core_file_pid(core), core_file_name(core));
	struct lua_process *process = NULL;
	int error = report ? lua_process_open_core(core, functions, &options->namer, &process) : -ENOMEM;

	if (!error)
		error = read_all(process, core, options, report);
	lua_process_close(process);
	if (error)
		dump_process_free(report);
	else
		*ret_report = report;
	return error;
}

#ifndef LJSPY_OTHER_MACHINE
bool core_stacks_machine(const struct core_file *core, bool *ret_is_other)
{
	uint16_t machine = core_file_machine(core);

	*ret_is_other = !core_registers_machine(machine);
	return !*ret_is_other || machine == EM_X86_64 || machine == EM_AARCH64;
}
#endif

/* SPDX-License-Identifier: MIT */
/* ljspy info: show what ljspy sees of a process. */
#include "src/commands/commands.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "luajit-layouts/layout_text.h"
#include "luajit-layouts/module/dwarf_layout.h"
#include "output/labels/escape.h"
#include "src/inspect/lua_process.h"
#include "src/linux/files/unpacked.h"
#include "src/linux/proc/live_memory.h"
#include "src/linux/proc/maps.h"
#include "src/program/message.h"
#include "src/survey/confirm_layout.h"
#include "src/targets/choose.h"
#include "src/targets/command_apart.h"
#include "unwind/elf/registers.h"

static void print_escaped(const char *text)
{
	escape_write(ESCAPE_PLAIN, text, stdout);
}

static void print_evidence(void *context, const char *probe, const char *verdict)
{
	(void)context;
	printf("    %s: ", probe);
	print_escaped(verdict);
	putchar('\n');
}

static void print_head(const struct process *process)
{
	char *title = process_title(process);

	printf("Process %d", process->pid);
	if (process->own_pid != process->pid)
		printf(" (%d in its own pid namespace)", process->own_pid);
	printf(": ");
	print_escaped(title ? title : process->name);
	printf("\n  user %u, group %u", process->uid, process->gid);
	if (process->executable) {
		printf(", executable ");
		print_escaped(process->executable);
		if (process->executable_deleted)
			printf(" (deleted)");
	}
	putchar('\n');
	free(title);
}

static void print_global(struct lua_process *process, const struct global_state *global)
{
	struct memory *memory = lua_process_memory(process);
	const struct layout *layout = &global->vm->layout;
	uint64_t J = global->g + (uint64_t)layout->GG_J;
	uint32_t sizetrace;

	printf("    state %#" PRIx64, global->g);
	if (layout->has_jit && memory_u32(memory, J + (uint64_t)layout->J_sizetrace, &sizetrace))
		printf(", room for %" PRIu32 " traces", sizetrace ? sizetrace - 1 : 0);
	putchar('\n');
}

/* Print how the layout was found, and compare it with the one from debug info, if there is one. */
static void print_evidence_of(struct lua_process *process, const struct lua_module *module,
			      const struct options *options)
{
	struct vm_code again;

	if (options->layout)
		print_evidence(NULL, "layout given", module->verdict);
	else
		recognise_vm(lua_process_memory(process), MACHINE_OWN, module->base, print_evidence, NULL,
			     &again);
}

/* Print a LuaJIT module: where it is, what it is, and its states. */
static void print_module(struct lua_process *process, const struct lua_module *module,
			 const struct options *options, const struct layout *dwarf)
{
	printf("  LuaJIT in ");
	print_escaped(module->path);
	putchar('\n');
	if (options->verbose || !module->vm)
		print_evidence_of(process, module, options);
	if (!module->vm) {
		printf("    its layout is not known: ");
		print_escaped(module->verdict);
		printf("\n    needed: this build's debug info, for `ljspy info --dwarf FILE`, or a row in ljspy's tables"
		       " for each part that no known layout fits\n");
		return;
	}
	printf("    layout ");
	print_escaped(module->vm->layout.name);
	printf(": %s, %s JIT compiler\n", module->vm->layout.gc64 ? "GC64" : "32-bit references",
	       module->vm->layout.has_jit ? "with" : "without");
	if (module->is_unconfirmed) {
		fputs("    the objects of its Lua state have not confirmed it so far: ", stdout);
		print_escaped(module->verdict);
		putchar('\n');
	}
	if (dwarf)
		layout_text_compare(&module->vm->layout, dwarf, "    debug info: ", stdout);
	for (size_t i = 0; i < lua_process_global_count(process) && options->verbose; i++)
		if (lua_process_global(process, i)->vm == module->vm)
			print_global(process, lua_process_global(process, i));
}

/* Print the states of the whole process, and whether it can be profiled. */
static void print_prospects(struct lua_process *lua, const struct process *process)
{
	const size_t count = lua_process_global_count(lua);
	const size_t unsearched = lua_process_unsearched_programs(lua);
	bool known = false;

	for (size_t i = 0; i < lua_process_module_count(lua); i++)
		known |= lua_process_module(lua, i).vm != NULL;
	if (lua_process_needs_confirming(lua))
		printf("  Lua is not shown until the objects of a state have confirmed the layout\n");
	else if (count == 0)
		printf("  no Lua state was found%s\n", known ? " so far" : "");
	else
		printf("  %zu Lua state%s\n", count, count == 1 ? "" : "s");
	if (unsearched)
		printf("  %zu unpacked programs were not looked into: ljspy looks into %d of a process\n",
		       unsearched, UNPACKED_MAX);
	if (!known)
		printf("  only its native code can be profiled: `ljspy record --layout FILE` takes a layout from debug info\n");
	else if (process->tracer_pid)
		printf("  can be profiled only with --no-stop: process %d traces it\n", process->tracer_pid);
	else
		printf("  can be profiled: ljspy record -p %d -d 30s\n", process->pid);
}

/* Print the layout from debug info, as a file for --layout. */
static bool print_dwarf(const char *path, struct layout *ret_layout)
{
	enum dwarf_layout_status status = dwarf_layout_read(path, ret_layout);

	if (status != DWARF_LAYOUT_OK) {
		message_error("%s: %s", path, dwarf_layout_status_text(status));
		return false;
	}
	layout_text_write(ret_layout, stdout);
	return true;
}

struct confirming {
	struct command_try try;
	struct lua_process *lua;
	pid_t pid;
};

static void *confirm(void *context)
{
	struct confirming *confirming = context;

	confirm_process(confirming->lua, confirming->pid, command_try_may_go_on, &confirming->try);
	return NULL;
}

static void confirm_states(struct apart *apart, struct lua_process *lua, pid_t pid)
{
	struct confirming confirming = { { .apart = apart }, lua, pid };

	command_try_run(&confirming.try, confirm, &confirming);
}

static void explain_none(const struct lua_process *lua, pid_t pid)
{
	const size_t unsearched = lua_process_unsearched_programs(lua);
	size_t count;
	const char *unread = lua_process_unread_file(lua, &count);

	if (!unread) {
		if (!choose_explain_other_lua(pid))
			message_error(
				"Process %d does not run LuaJIT%s: none of its files holds LuaJIT's interpreter.",
				pid, unsearched ? ", as far as can be seen" : "");
		if (unsearched)
			message_note(
				"%zu unpacked programs were not looked into: ljspy looks into %d of a process.",
				unsearched, UNPACKED_MAX);
		return;
	}
	message_error("It is not known whether process %d runs LuaJIT.", pid);
	message_note(
		"%zu of its files could not be read, such as %s: a disk may not answer, or ljspy may lack memory.",
		count, unread);
}

/* False after telling the user. */
static bool inform(struct apart *apart, pid_t pid, struct functions *functions, const struct options *given,
		   const struct layout *dwarf)
{
	struct namer_options options = { .native = NATIVE_FOLD };
	struct lua_process *lua;
	struct process process;
	int error;

	if (!choose_check(pid) || !choose_check_layout(pid, given->layout))
		return false;
	error = lua_process_open(pid, functions, NULL, &options, &lua);
	if (!error) {
		lua_process_give_layout(lua, given->layout);
		error = lua_process_refresh(lua, true);
		if (error)
			lua_process_close(lua);
		else
			confirm_states(apart, lua, pid);
	}
	if (error) {
		choose_explain(pid, -error);
		return false;
	}
	if (lua_process_module_count(lua) == 0) {
		explain_none(lua, pid);
		lua_process_close(lua);
		return false;
	}
	error = process_read(pid, &process);
	if (error) {
		choose_explain(pid, -error);
		lua_process_close(lua);
		return false;
	}
	print_head(&process);
	for (size_t i = 0; i < lua_process_module_count(lua); i++) {
		struct lua_module module = lua_process_module(lua, i);

		print_module(lua, &module, given, dwarf);
	}
	print_prospects(lua, &process);
	process_clear(&process);
	lua_process_close(lua);
	return true;
}

static enum exit_status inform_all(struct apart *apart, const struct invocation *invocation)
{
	const struct options *options = invocation->options;
	enum exit_status status = EXIT_ALL_GOOD;
	size_t shown = options->dwarf ? 1 : 0; /* processes, and the layout */
	struct functions *functions;
	struct layout dwarf;

	if (options->dwarf && !print_dwarf(options->dwarf, &dwarf))
		return EXIT_NOTHING_DONE;
	functions = functions_new();
	if (!functions) {
		message_error_errno(ENOMEM, "looking at the process");
		return EXIT_NOTHING_DONE;
	}
	for (size_t i = 0; i < options->pid_count; i++) {
		if (inform(apart, options->pids[i], functions, options, options->dwarf ? &dwarf : NULL))
			shown++;
		else
			status = EXIT_WITH_ERRORS;
	}
	functions_free(functions);
	return shown ? status : EXIT_NOTHING_DONE;
}

enum exit_status command_info(const struct invocation *invocation)
{
	return command_run_apart(inform_all, invocation, false);
}

#include "src/choose.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/message.h"
#include "src/target/lua_process.h"
#include "src/target/permission.h"

void choose_explain(pid_t pid, int error)
{
	struct permission_verdict verdict;

	permission_diagnose(pid, error, &verdict);
	message_error("%s", verdict.sentence);
	if (*verdict.remedy)
		message_note("%s", verdict.remedy);
}

void choose_explain_no_luajit(pid_t pid)
{
	message_error("Process %d does not run LuaJIT, as far as can be seen from outside.", pid);
	message_note("`ljspy info -p %d` tells what was looked at.", pid);
}

bool choose_check(pid_t pid)
{
	struct process process;
	int error = process_read(pid, &process);

	if (error) {
		choose_explain(pid, -error);
		return false;
	}
	if (process_is_zombie(&process) || process.kernel_thread) {
		choose_explain(pid, ESRCH);
		process_clear(&process);
		return false;
	}
	error = permission_take_target_identity(&process);
	process_clear(&process);
	if (error && error != -EALREADY) {
		choose_explain(pid, -error);
		return false;
	}
	return true;
}

/* A module that the layout does not fit; false if there is none. */
static bool find_misfit(const struct lua_process *process, struct lua_module *ret_module)
{
	bool unsettled = lua_process_needs_settling(process);

	for (size_t i = 0; i < lua_process_module_count(process); i++) {
		*ret_module = lua_process_module(process, i);
		if (!ret_module->vm || unsettled)
			return true;
	}
	return false;
}

bool choose_check_layout(pid_t pid, const struct given_layout *layout)
{
	struct namer_options options = { .native = NATIVE_FOLD };
	struct functions *functions;
	struct lua_process *process = NULL;
	struct lua_module module;
	bool fits = true;
	int error;

	if (!layout)
		return true;
	functions = functions_new();
	error = functions ? lua_process_open(pid, functions, &options, &process) : -ENOMEM;
	if (!error) {
		lua_process_give_layout(process, &layout->layout, layout->is_file);
		error = lua_process_refresh(process, true);
	}
	if (error) {
		choose_explain(pid, -error);
	} else if (find_misfit(process, &module)) {
		message_error("The layout given does not fit the LuaJIT of process %d: %s.", pid,
			      module.verdict);
		fits = false;
	}
	lua_process_close(process);
	functions_free(functions);
	return fits && !error;
}

/* Does it run LuaJIT, as far as ljspy may see? */
static bool runs_luajit(pid_t pid, struct functions *functions)
{
	struct namer_options options = { .native = NATIVE_FOLD };
	struct lua_process *process;
	bool found;

	if (lua_process_open(pid, functions, &options, &process) != 0)
		return false;
	found = lua_process_refresh(process, false) == 0 && lua_process_module_count(process) > 0;
	lua_process_close(process);
	return found;
}

static void list_process(const struct process *process)
{
	char *title = process_title(process);

	message_note("  -p %-8d %s", process->pid, title ? title : process->name);
	free(title);
}

static enum exit_status take_pids(struct options *options, const struct process_list *list)
{
	options->pids = calloc(list->count, sizeof(*options->pids));
	if (!options->pids) {
		message_error_errno(ENOMEM, "choosing processes");
		return EXIT_NOTHING_DONE;
	}
	for (size_t i = 0; i < list->count; i++)
		options->pids[options->pid_count++] = list->processes[i].pid;
	return EXIT_ALL_GOOD;
}

/* Keep of the list those that run LuaJIT. */
static void keep_luajit(struct process_list *list)
{
	struct functions *functions = functions_new();
	size_t kept = 0;

	for (size_t i = 0; functions && i < list->count; i++) {
		if (runs_luajit(list->processes[i].pid, functions))
			list->processes[kept++] = list->processes[i];
		else
			process_clear(&list->processes[i]);
	}
	list->count = kept;
	functions_free(functions);
}

static enum exit_status choose_from(struct options *options, struct process_list *list)
{
	if (options->name) {
		if (list->count == 0) {
			message_error("No process that runs LuaJIT matches \"%s\".", options->name);
			message_note("The pattern is an extended regular expression for the name, program or script.");
			return EXIT_NOTHING_DONE;
		}
		return take_pids(options, list);
	}
	if (list->count == 1)
		return take_pids(options, list);
	if (list->count == 0) {
		message_error("No process that runs LuaJIT can be seen.");
		message_note("Name one with -p PID, or start one: ljspy record -- COMMAND");
		return EXIT_NOTHING_DONE;
	}
	message_error("There are several processes that run LuaJIT; choose one or more:");
	for (size_t i = 0; i < list->count; i++)
		list_process(&list->processes[i]);
	return EXIT_USAGE;
}

enum exit_status choose_processes(struct options *options)
{
	struct process_list list;
	char *complaint = NULL;
	enum exit_status status;
	int error;

	if (options->pid_count || options->launch || options->core || (options->dwarf && !options->name))
		return EXIT_ALL_GOOD;
	error = process_find(options->name ? options->name : "", &list, &complaint);
	if (error == -EINVAL && complaint) {
		message_error("The pattern \"%s\" is not right: %s", options->name, complaint);
		free(complaint);
		return EXIT_USAGE;
	}
	if (error) {
		message_error_errno(-error, "looking for processes in /proc");
		return EXIT_NOTHING_DONE;
	}
	keep_luajit(&list);
	status = choose_from(options, &list);
	process_list_clear(&list);
	return status;
}

/* SPDX-License-Identifier: MIT */
#include "src/targets/core_look.h"

#include <errno.h>

#include "src/program/message.h"
#include "src/survey/core_stacks.h"

const char core_unknown_layout[] =
	"The core's LuaJIT could not be recognised, or its program files are not here as they were.";

int core_open(const char *path, struct core_file **ret_core, bool *ret_is_other, const char **ret_problem)
{
	struct core_file *core;
	int error = core_file_open(path, &core, ret_problem);

	if (error)
		return error;
	if (core_stacks_machine(core, ret_is_other)) {
		*ret_core = core;
		return 0;
	}
	*ret_problem = "is a core file of a machine that is not supported";
	core_file_close(core);
	return -EBADMSG;
}

void core_explain(const char *path, int error, const char *problem)
{
	if (error == -EBADMSG)
		message_error("%s %s.", path, problem);
	else
		message_error_errno(-error, "%s", path);
}

static int look_at(const struct core_look *look, struct core_file *core)
{
	const struct namer_options namer = { .native = NATIVE_NONE };
	struct lua_process *process = NULL;
	int error = lua_process_open_core(core, look->functions, &namer, &process);

	if (error)
		return error;
	lua_process_give_layout(process, look->layout);
	error = lua_process_refresh(process, true);
	if (!error)
		error = look->look(look->context, process, core);
	lua_process_close(process);
	return error;
}

bool core_look_at(const struct core_look *look, const char *path)
{
	const char *problem = NULL;
	struct core_file *core = NULL;
	bool is_other;
	int error = core_open(path, &core, &is_other, &problem);

	if (!error)
		error = look_at(look, core);
	if (error)
		core_explain(path, error, problem);
	core_file_close(core);
	return !error;
}

/* SPDX-License-Identifier: MIT */
#include "src/survey/traced_lua.h"

#include <errno.h>

#include "src/linux/proc/process.h"
#include "src/survey/confirm_layout.h"
#include "src/survey/traced_process.h"

static int look(const struct traced_lua *traced, struct lua_process *lua, pid_t pid, const char *name)
{
	struct traced_process process = { .patience = traced->patience };
	int error;

	lua_process_give_layout(lua, traced->layout);
	error = traced_process_begin(&process, pid, lua_process_files(lua));
	if (!error)
		error = lua_process_refresh(lua, true);
	if (!error)
		error = lua_process_lacks_luajit(lua);
	if (!error) {
		confirm_while_held(lua, process.hold);
		error = traced->look(traced->context, lua, process.hold, name);
	}
	traced_process_end(&process);
	return error;
}

int traced_lua_look(const struct traced_lua *traced, pid_t pid)
{
	const struct namer_options namer = { .native = NATIVE_NONE };
	struct lua_process *lua = NULL;
	struct process process;
	int error = process_read(pid, &process);

	if (error)
		return error;
	error = lua_process_open(pid, traced->functions, traced->files, &namer, &lua);
	if (!error)
		error = look(traced, lua, pid, process.name);
	lua_process_close(lua);
	process_clear(&process);
	return error;
}

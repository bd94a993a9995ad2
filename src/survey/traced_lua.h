/* SPDX-License-Identifier: MIT */
/* traced_lua: look at one LuaJIT process that is seized meanwhile, and whose layout is confirmed. */
#ifndef LJSPY_TRACED_LUA_H
#define LJSPY_TRACED_LUA_H

#include <sys/types.h>

#include "output/sample/functions.h"
#include "src/inspect/given_layout.h"
#include "src/inspect/lua_process.h"
#include "src/inspect/patience.h"
#include "src/linux/threads/hold.h"

struct traced_lua {
	struct functions *functions;
	struct known_files *files;         /* NULL if none are known yet */
	const struct given_layout *layout; /* NULL: recognise it */
	struct patience patience;
	/* Look at it. name is that of the process. 0 or a negative errno. */
	int (*look)(void *context, struct lua_process *process, struct hold *hold, const char *name);
	void *context;
};

/*
 * Call this from the tracer's thread. 0 or a negative errno, look()'s too; lua_process_lacks_luajit()'s, too.
 */
int traced_lua_look(const struct traced_lua *traced, pid_t pid);

#endif

/* SPDX-License-Identifier: MIT */
/* core_look: look at the LuaJIT process that a core file holds. */
#ifndef LJSPY_CORE_LOOK_H
#define LJSPY_CORE_LOOK_H

#include <stdbool.h>

#include "memory/core_file.h"
#include "output/sample/functions.h"
#include "src/inspect/given_layout.h"
#include "src/inspect/lua_process.h"

/* What to tell of a core without a VM that is known. */
extern const char core_unknown_layout[];

struct core_look {
	struct functions *functions;
	const struct given_layout *layout; /* NULL: recognise it */
	/* Look at it; there may be no VM that is known. 0 or a negative errno. */
	int (*look)(void *context, struct lua_process *process, const struct core_file *core);
	void *context;
};

/* False if it could not be looked at, once the user has been told why. */
bool core_look_at(const struct core_look *look, const char *path);

/* core_file_open(), of machines that ljspy knows; is it of another one than this? */
int core_open(const char *path, struct core_file **ret_core, bool *ret_is_other, const char **ret_problem);

/* Tell why a core file cannot be used: problem is that of core_open(), for -EBADMSG. */
void core_explain(const char *path, int error, const char *problem);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * looked_at: processes from FIRST on, whose Lua is looked at.
 *
 * The test has PROCESSES, struct made_up with `unsigned int opened`, and look_at(), which tells what a look
 * ends with, before it includes this.
 */
#ifndef LJSPY_LOOKED_AT_H
#define LJSPY_LOOKED_AT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#include <cmocka.h>

#include "src/inspect/lua_process.h"
#include "tests/unit/instead_of.h"

enum { FIRST = 100 };

static struct made_up world[PROCESSES];
static const struct given_layout *layout_wanted; /* for each of them; NULL: none */
static unsigned int layouts_given;

static void looked_at_begin(const struct given_layout *wanted)
{
	memset(world, 0, sizeof(world));
	layout_wanted = wanted;
	layouts_given = 0;
}

static struct made_up *made_up(pid_t pid)
{
	assert_in_range(pid, FIRST, FIRST + PROCESSES - 1);
	return &world[pid - FIRST];
}

static void assert_no_look_is_open(void)
{
	for (size_t i = 0; i < PROCESSES; i++)
		assert_int_equal(world[i].opened, 0);
}

INSTEAD_OF(lua_process_open);
int __wrap_lua_process_open(pid_t pid, struct functions *functions, struct known_files *files,
			    const struct namer_options *namer, struct lua_process **ret_process)
{
	struct made_up *of = made_up(pid);
	int error;

	assert_true(functions);
	error = look_at(of, files, namer);
	if (error)
		return error;
	of->opened++;
	*ret_process = (struct lua_process *)of;
	return 0;
}

INSTEAD_OF(lua_process_close);
void __wrap_lua_process_close(struct lua_process *process)
{
	if (process)
		((struct made_up *)process)->opened--;
}

INSTEAD_OF(lua_process_give_layout);
void __wrap_lua_process_give_layout(struct lua_process *process, const struct given_layout *given)
{
	assert_non_null(process);
	assert_ptr_equal(given, layout_wanted);
	layouts_given++;
}

#endif

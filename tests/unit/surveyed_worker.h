/* SPDX-License-Identifier: MIT */
/*
 * surveyed_worker: a worker of nginx with two Lua states, which runs while it is read once, and sleeps
 * while it is read again.
 */
#ifndef LJSPY_SURVEYED_WORKER_H
#define LJSPY_SURVEYED_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "src/inspect/lua_process.h"
#include "src/nginx/quiet_read.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/made_up_words.h"
#include "unwind/lua/global_state.h"

enum { SURVEYED_PID = 71, NS_PER_MS = 1000 * 1000 };

static struct {
	struct made_up memory;
	struct request_members members;
	struct connections connections;
	bool has_connections;
	bool runs; /* also while it is read again */
	size_t global_count;
} surveyed;

static void surveyed_begin(void)
{
	memset(&surveyed, 0, sizeof(surveyed));
	surveyed.memory.memory.read_ranges = read_ranges;
	surveyed.members.known = true;
	surveyed.has_connections = true;
	surveyed.global_count = 2;
}

INSTEAD_OF(quiet_read);
int __wrap_quiet_read(pid_t pid, int (*read)(void *context), void *context, bool *ret_asleep)
{
	int error = pid == SURVEYED_PID ? 0 : -1;

	for (size_t i = 0; i < 2 && !error; i++)
		error = read(context);
	*ret_asleep = !surveyed.runs;
	return error;
}

INSTEAD_OF(lua_process_global_count);
size_t __wrap_lua_process_global_count(const struct lua_process *process)
{
	(void)process;
	return surveyed.global_count;
}

INSTEAD_OF(lua_process_global);
const struct global_state *__wrap_lua_process_global(const struct lua_process *process, size_t index)
{
	static const struct vm_code vm;
	static const struct global_state globals[] = { { .g = 0x30000, .vm = &vm },
						       { .g = 0x40000, .vm = &vm } };

	(void)process;
	return &globals[index];
}

INSTEAD_OF(lua_process_memory);
struct memory *__wrap_lua_process_memory(struct lua_process *process)
{
	(void)process;
	return &surveyed.memory.memory;
}

INSTEAD_OF(lua_process_maps);
const struct maps *__wrap_lua_process_maps(const struct lua_process *process)
{
	(void)process;
	return NULL;
}

INSTEAD_OF(lua_process_request_members);
const struct request_members *__wrap_lua_process_request_members(const struct lua_process *process)
{
	(void)process;
	return &surveyed.members;
}

INSTEAD_OF(lua_process_connections);
bool __wrap_lua_process_connections(struct lua_process *process, struct connections *ret_connections)
{
	(void)process;
	*ret_connections = surveyed.connections;
	return surveyed.has_connections;
}

#endif

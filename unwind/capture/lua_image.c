/* SPDX-License-Identifier: MIT */
/* The list of a process's LuaJIT states. */
#include "unwind/capture/lua_image.h"

#include <stdbool.h>
#include <stdlib.h>

#include "memory/array.h"
#include "unwind/jit/traces.h"
#include "unwind/nginx/gateway.h"

struct lua_image {
	const struct image *code;
	struct request_layout request_layout;
	struct request_members request_members;
	struct global_state **globals;
	size_t global_count, global_size;
	uint64_t last_serial;
};

struct lua_image *lua_image_new(const struct image *code)
{
	struct lua_image *lua = calloc(1, sizeof(*lua));

	if (lua)
		lua->code = code;
	return lua;
}

static void free_global(struct global_state *global)
{
	if (!global)
		return;
	traces_free(global->traces);
	gateway_free(global->gateway);
	free(global);
}

void lua_image_free(struct lua_image *lua)
{
	if (!lua)
		return;
	for (size_t i = 0; i < lua->global_count; i++)
		free_global(lua->globals[i]);
	free(lua->globals);
	free(lua);
}

const struct image *lua_image_code(const struct lua_image *lua)
{
	return lua->code;
}

struct global_state *lua_image_find(const struct lua_image *lua, uint64_t g)
{
	for (size_t i = 0; i < lua->global_count; i++)
		if (lua->globals[i]->g == g)
			return lua->globals[i];
	return NULL;
}

struct global_state *lua_image_gateway(const struct lua_image *lua)
{
	struct global_state *found = NULL;

	for (size_t i = 0; i < lua->global_count; i++) {
		if (lua->globals[i]->gateway && found)
			return NULL;
		if (lua->globals[i]->gateway)
			found = lua->globals[i];
	}
	return found;
}

static struct global_state *new_global(uint64_t g, const struct vm_code *vm)
{
	struct global_state *global = calloc(1, sizeof(*global));

	if (!global)
		return NULL;
	global->g = g;
	global->vm = vm;
	if (vm->layout.has_jit) {
		global->traces = traces_new();
		if (!global->traces) {
			free_global(global);
			return NULL;
		}
	}
	return global;
}

void lua_image_add(struct lua_image *lua, uint64_t g, const struct vm_code *vm)
{
	struct global_state *global, **globals;

	if (lua_image_find(lua, g) || lua->global_count == LUA_IMAGE_GLOBALS_MAX)
		return;
	globals = array_grow(lua->globals, &lua->global_size, lua->global_count + 1,
			     sizeof(struct global_state *));
	if (!globals)
		return;
	lua->globals = globals;
	global = new_global(g, vm);
	if (!global)
		return;
	global->serial = ++lua->last_serial;
	lua->globals[lua->global_count++] = global;
}

void lua_image_forget(struct lua_image *lua, uint64_t g)
{
	size_t kept = 0;

	for (size_t i = 0; i < lua->global_count; i++) {
		if (lua->globals[i]->g != g)
			lua->globals[kept++] = lua->globals[i];
		else
			free_global(lua->globals[i]);
	}
	lua->global_count = kept;
}

size_t lua_image_count(const struct lua_image *lua)
{
	return lua->global_count;
}

struct global_state *lua_image_global(const struct lua_image *lua, size_t index)
{
	return lua->globals[index];
}

void lua_image_set_request_layout(struct lua_image *lua, const struct request_layout *layout)
{
	lua->request_layout = *layout;
}

const struct request_layout *lua_image_request_layout(const struct lua_image *lua)
{
	return &lua->request_layout;
}

void lua_image_set_request_members(struct lua_image *lua, const struct request_members *members)
{
	lua->request_members = *members;
}

const struct request_members *lua_image_request_members(const struct lua_image *lua)
{
	return &lua->request_members;
}

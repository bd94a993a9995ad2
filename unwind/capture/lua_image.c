#include "unwind/capture/lua_image.h"

#include <stdbool.h>
#include <stdlib.h>

#include "memory/array.h"
#include "unwind/jit/traces.h"

struct lua_image {
	const struct image *code;
	struct request_layout request_layout;
	struct lua_universe **universes;
	size_t universe_count, universe_size;
};

struct lua_image *lua_image_new(const struct image *code)
{
	struct lua_image *lua = calloc(1, sizeof(*lua));

	if (lua)
		lua->code = code;
	return lua;
}

static void free_universe(struct lua_universe *universe)
{
	if (!universe)
		return;
	traces_free(universe->traces);
	free(universe);
}

void lua_image_free(struct lua_image *lua)
{
	if (!lua)
		return;
	for (size_t i = 0; i < lua->universe_count; i++)
		free_universe(lua->universes[i]);
	free(lua->universes);
	free(lua);
}

const struct image *lua_image_code(const struct lua_image *lua)
{
	return lua->code;
}

struct lua_universe *lua_image_find(const struct lua_image *lua, uint64_t g)
{
	for (size_t i = 0; i < lua->universe_count; i++)
		if (lua->universes[i]->g == g)
			return lua->universes[i];
	return NULL;
}

static struct lua_universe *new_universe(uint64_t g, const struct vm_code *vm)
{
	struct lua_universe *universe = calloc(1, sizeof(*universe));

	if (!universe)
		return NULL;
	universe->g = g;
	universe->vm = vm;
	if (vm->layout.has_jit) {
		universe->traces = traces_new();
		if (!universe->traces) {
			free_universe(universe);
			return NULL;
		}
	}
	return universe;
}

void lua_image_add(struct lua_image *lua, uint64_t g, const struct vm_code *vm)
{
	struct lua_universe *universe, **universes;

	if (lua_image_find(lua, g) || lua->universe_count == LUA_IMAGE_UNIVERSES_MAX)
		return;
	universes = array_grow(lua->universes, &lua->universe_size, lua->universe_count + 1,
			       sizeof(struct lua_universe *));
	if (!universes)
		return;
	lua->universes = universes;
	universe = new_universe(g, vm);
	if (universe)
		lua->universes[lua->universe_count++] = universe;
}

void lua_image_forget_vm(struct lua_image *lua, const struct vm_code *vm)
{
	size_t kept = 0;

	for (size_t i = 0; i < lua->universe_count; i++) {
		if (lua->universes[i]->vm != vm)
			lua->universes[kept++] = lua->universes[i];
		else
			free_universe(lua->universes[i]);
	}
	lua->universe_count = kept;
}

void lua_image_forget(struct lua_image *lua, uint64_t g)
{
	size_t kept = 0;

	for (size_t i = 0; i < lua->universe_count; i++) {
		if (lua->universes[i]->g != g)
			lua->universes[kept++] = lua->universes[i];
		else
			free_universe(lua->universes[i]);
	}
	lua->universe_count = kept;
}

size_t lua_image_count(const struct lua_image *lua)
{
	return lua->universe_count;
}

struct lua_universe *lua_image_universe(const struct lua_image *lua, size_t index)
{
	return lua->universes[index];
}

void lua_image_set_request_layout(struct lua_image *lua, const struct request_layout *layout)
{
	lua->request_layout = *layout;
}

const struct request_layout *lua_image_request_layout(const struct lua_image *lua)
{
	return &lua->request_layout;
}

/* SPDX-License-Identifier: MIT */
/*
 * lua_image: the Lua of one process, as the unwinder sees it.
 *
 * struct image has the process's code. This has the LuaJIT states found in its
 * memory, and how to read the requests that they work for.
 */
#ifndef LJSPY_LUA_IMAGE_H
#define LJSPY_LUA_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#include "luajit-layouts/vm.h"
#include "unwind/elf/image.h"
#include "unwind/lua/global_state.h"
#include "unwind/lua/request.h"
#include "unwind/nginx/request_members.h"

enum { LUA_IMAGE_GLOBALS_MAX = 4096 }; /* bounds what ljspy believes of a target */

struct lua_image;

/* code must outlive it. NULL when memory is short. */
struct lua_image *lua_image_new(const struct image *code);
void lua_image_free(struct lua_image *lua);

/* What lua_image_new() was given. */
const struct image *lua_image_code(const struct lua_image *lua);

/*
 * The image owns its global_States, which do not move until it forgets them. Adding
 * a known one does nothing; nor does adding one when memory is short.
 */
void lua_image_add(struct lua_image *lua, uint64_t g, const struct vm_code *vm);
void lua_image_forget(struct lua_image *lua, uint64_t g);
size_t lua_image_count(const struct lua_image *lua);
struct global_state *lua_image_global(const struct lua_image *lua, size_t index);

/* The known global_State at this address, or NULL. */
struct global_state *lua_image_find(const struct lua_image *lua, uint64_t g);

/*
 * The only one with a gateway; NULL if there is none, or several: then a request does not tell which it has.
 */
struct global_state *lua_image_gateway(const struct lua_image *lua);

/* How to read requests of lua-nginx-module; unknown in processes without it. */
void lua_image_set_request_layout(struct lua_image *lua, const struct request_layout *layout);
const struct request_layout *lua_image_request_layout(const struct lua_image *lua);

/* How to read requests of nginx itself; unknown in processes without it. */
void lua_image_set_request_members(struct lua_image *lua, const struct request_members *members);
const struct request_members *lua_image_request_members(const struct lua_image *lua);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * puc_lua: does a process run PUC-Rio's Lua, which ljspy does not know?
 */
#ifndef LJSPY_PUC_LUA_H
#define LJSPY_PUC_LUA_H

#include <stdbool.h>
#include <sys/types.h>

#include "memory/errand.h"

enum { PUC_LUA_VERSION_MAX = 8 };

/*
 * Look for lua_ident, which each copy of PUC-Rio's Lua has among its constants ("$Lua: Lua 5.1.5
 * Copyright ..." in lapi.c of 5.1, "$LuaVersion: Lua 5.4.6 ..." since 5.2) and LuaJIT has not, in the
 * programs and libraries that the process has loaded: in their files, or in its memory where these cannot be
 * read. Both are read by the errands.
 * *ret_version is "5.1" or the like. False also if the process cannot be read.
 */
bool puc_lua_find(pid_t pid, struct errands *errands, char ret_version[static PUC_LUA_VERSION_MAX]);

#endif

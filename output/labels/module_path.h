/* SPDX-License-Identifier: MIT */
/*
 * module_path: which module or plugin a Lua file belongs to.
 *
 * A module is named as require() is given its name, with slashes: the file
 * without its package root, its suffix and a last "init". What lies in the
 * folder of a plugin is the plugin:
 *
 *   /usr/local/share/lua/5.1/resty/core/regex.lua   resty/core/regex
 *   /usr/local/openresty/lualib/resty/redis.lua     resty/redis
 *   /usr/share/lua/5.1/pl/init.lua                  pl
 *   ./kong/plugins/rate-limiting/policies/init.lua  kong/plugins/rate-limiting
 *   /usr/local/apisix/apisix/plugins/limit-req.lua  apisix/plugins/limit-req
 *   /home/me/app/main.lua                           /home/me/app/main
 *   =content_by_lua(nginx.conf:24)                  content_by_lua(nginx.conf:24)
 *   =[string "return 1"]                            [string "return 1"]
 *
 * Package roots are ".../share/lua/5.N", ".../lib/lua/5.N",
 * ".../share/luajit-VERSION" and ".../lualib", and a leading "./"; the last
 * one in the path counts. A plugin is what follows "NAME/plugins/", and
 * the folder NAME is where its module's name begins, if no root says so.
 *
 * Time belongs to the module of the innermost Lua function with a file: what
 * that calls, builtins and native code, is its work.
 */
#ifndef LJSPY_MODULE_PATH_H
#define LJSPY_MODULE_PATH_H

#include <stddef.h>

#include "output/sample/frame.h"

enum { MODULE_PATH_SIZE = 512 };

/*
 * The module of a file as struct function has it. Returns the length without
 * the NUL; a name too long keeps its end. The text is the target's and is to
 * be escaped by whoever writes it.
 */
size_t module_path(const char *file, char ret_module[static MODULE_PATH_SIZE]);

/* The innermost Lua function that has a file (frames are leaf first), or NULL. */
const struct function *module_path_owner(const struct frame *frames, size_t count);

#endif

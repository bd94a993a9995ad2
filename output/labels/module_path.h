/* SPDX-License-Identifier: MIT */
/*
 * module_path: the module or plugin that a Lua file belongs to.
 *
 * A module has the name that require() takes, with slashes: the file without
 * its package root, its suffix and a final "init". All files in the folder of
 * a plugin belong to the plugin:
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
 * Package roots are those of the target's package.path, if it is known (struct function). Otherwise
 * they are ".../share/lua/5.N", ".../lib/lua/5.N",
 * ".../share/luajit-VERSION" and ".../lualib", and a leading "./". The last one
 * in the path counts. A plugin is the folder or file below "NAME/plugins/". Its
 * module name begins after the package root; in an absolute path without one,
 * at NAME.
 *
 * Time belongs to the module of the innermost Lua function with a file. The
 * builtins and native code that this function calls count as its work.
 */
#ifndef LJSPY_MODULE_PATH_H
#define LJSPY_MODULE_PATH_H

#include <stddef.h>

#include "output/sample/frame.h"

enum { MODULE_PATH_SIZE = 512 };

/*
 * Write the module of a Lua function with a file to ret_module. Returns
 * the length without the NUL. A name that is too long keeps its end. The text
 * is the target's: the caller escapes it before writing.
 */
size_t module_path(const struct function *function, char ret_module[static MODULE_PATH_SIZE]);

/*
 * A function's file without its "@", and how many bytes of that are its package root: by the target's
 * own package.path, or else one of the usual roots above; 0 of a file that is no path.
 */
const char *module_path_file(const struct function *function, size_t *ret_root);

/* The innermost Lua function that has a file (frames are leaf first), or NULL. */
const struct function *module_path_owner(const struct frame *frames, size_t count);

#endif

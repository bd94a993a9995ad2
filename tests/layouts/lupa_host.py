# SPDX-License-Identifier: MIT
"""Run a Lua script in a LuaJIT of the package lupa, with options as luajit has them:

    lupa_host.py ROOT MODULE [-jon|-joff] SCRIPT [ARGUMENT...]
"""

import importlib
import pathlib
import sys

root, module, *words = sys.argv[1:]
sys.path.insert(0, root)
lua = importlib.import_module(f"lupa.{module}").LuaRuntime()
if words[0].startswith("-j"):
    lua.execute(f"jit.{words.pop(0)[2:]}()")
script = pathlib.Path(words.pop(0))
lua.globals().arg = lua.table(*words)
lua.eval("function(text, name, ...) return assert(loadstring(text, name))(...) end")(script.read_bytes(), f"@{script.name}", *words)

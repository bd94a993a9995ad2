/* SPDX-License-Identifier: MIT */
/*
 * fold: choose the frames of a stack that a Lua developer wants to see.
 *
 * Every Lua function, builtin and C function is shown. For native code:
 *
 * - The native code that a builtin or C function runs is hidden. The function
 *   is a leaf, or directly calls the next Lua function.
 * - The code that LuaJIT runs for a Lua function (garbage collection, string
 *   interning, compilation) is one [vm] leaf, with what it does if that can be
 *   told (vm_work.h). Its callees are hidden.
 * - A function called through the FFI is shown with all its callees. The Lua
 *   function, interpreted or compiled, is its direct caller: the builtin
 *   through which the interpreter makes the call is hidden.
 * - Code outside of all Lua is shown (an event loop, the program's main),
 *   except the C library's start-up code and LuaJIT's own functions on the
 *   way into Lua: in the luajit program all of them, elsewhere lua_pcall and
 *   the other API functions. If LuaJIT is linked statically into a stripped
 *   program, functions without a name count as LuaJIT's only between Lua frames,
 *   and not where Lua has called them through the FFI: the namer takes these for
 *   native code, with what they call of LuaJIT's, but for the way into Lua.
 */
#ifndef LJSPY_FOLD_H
#define LJSPY_FOLD_H

#include <stddef.h>
#include <stdint.h>

enum fold_kind {
	FOLD_KEPT,     /* always shown */
	FOLD_LEFT_OUT, /* always hidden */
	FOLD_LUA,
	FOLD_BUILTIN,
	FOLD_C_FUNCTION,
	FOLD_OWN_FUNCTION, /* a C function in LuaJIT's own module, but not a builtin */
	FOLD_VM,           /* LuaJIT's interpreter */
	FOLD_FFI_CALL,     /* lj_vm_ffi_call */
	FOLD_LUAJIT,       /* LuaJIT's own C functions */
	FOLD_NAMELESS,     /* without a name: LuaJIT's, or of the program it is linked into */
	FOLD_LIBC,         /* the C library */
	FOLD_NATIVE,       /* any other native code */
};

enum fold_shown { FOLD_HIDDEN, FOLD_SHOWN, FOLD_AS_VM };

/*
 * Decide how to show each of count frames. kinds (enum fold_kind) and ret_shown (enum fold_shown)
 * run from the leaf to the root. A run of FOLD_AS_VM frames is one [vm] frame.
 */
void fold(const uint8_t *kinds, size_t count, uint8_t *ret_shown);

#endif
